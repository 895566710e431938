//! The agents and stream decoders that are known: the built-in tables, and what a program adds to them.

use super::{AGENTS, AgentCli, DECODERS, DecoderKind};

/// The agents that a run may use without configuration, and the decoders of their streams.
///
/// Starts with the built-in ones. A program adds its own; one with the name of an earlier one replaces it.
///
/// ```
/// use practicum_agents::agents::{AgentCli, AgentRegistry};
///
/// let text = AgentRegistry::default().decoder("text").expect("a built-in decoder");
/// let registry = AgentRegistry::default().with_agent(AgentCli::new("echo", "echo", text));
/// assert!(registry.agents().iter().any(|agent| agent.name == "echo"));
/// ```
#[derive(Clone)]
pub struct AgentRegistry {
    agents: Vec<AgentCli>,
    decoders: Vec<&'static DecoderKind>,
}

impl Default for AgentRegistry {
    fn default() -> Self {
        Self { agents: AGENTS.iter().map(|make| make()).collect(), decoders: DECODERS.to_vec() }
    }
}

impl AgentRegistry {
    /// Adds an agent, and the decoder of its stream.
    #[must_use]
    pub fn with_agent(self, agent: AgentCli) -> Self {
        let mut registry = self.with_decoder(agent.decoder);
        registry.agents.retain(|known| known.name != agent.name);
        registry.agents.push(agent);
        registry
    }

    /// Adds a decoder. Agents that a settings file describes may then use it by its name.
    #[must_use]
    pub fn with_decoder(mut self, decoder: &'static DecoderKind) -> Self {
        self.decoders.retain(|known| known.name != decoder.name);
        self.decoders.push(decoder);
        self
    }

    /// Gives all agents, the built-in ones first.
    pub fn agents(&self) -> &[AgentCli] {
        &self.agents
    }

    /// Gives the agent of this name.
    pub fn agent(&self, name: &str) -> Option<&AgentCli> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Gives the decoder of this name.
    pub fn decoder(&self, name: &str) -> Option<&'static DecoderKind> {
        self.decoders.iter().copied().find(|kind| kind.name == name)
    }

    /// Gives the names of all decoders.
    pub fn decoder_names(&self) -> Vec<&'static str> {
        self.decoders.iter().map(|kind| kind.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_brings_its_decoder_and_replaces_its_namesake() {
        static DECODER: DecoderKind = DecoderKind {
            name: "mine",
            shows_skills: false,
            new_decoder: super::super::text::DECODER.new_decoder,
            new_client: None,
        };
        let registry = AgentRegistry::default();
        let (agents, decoders) = (registry.agents().len(), registry.decoder_names().len());
        let registry = registry.with_agent(AgentCli::new("claude", "mine", &DECODER));
        assert_eq!((registry.agents().len(), registry.decoder_names().len()), (agents, decoders + 1));
        assert_eq!(registry.agent("claude").map(|agent| agent.decoder.name), Some("mine"));
        assert!(registry.decoder("mine").is_some() && registry.decoder("claude-stream-json").is_some());
    }
}

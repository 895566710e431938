//! What a run may use beyond the built-in formats, checks and agents.

use practicum_agents::agents::{AgentCli, AgentRegistry, DecoderKind};
use practicum_evals::checks::RuleKind;
use practicum_evals::dialects::{Dialect, EvalRegistry};

/// The eval formats, checks and agents that a run may use.
///
/// Starts with the built-in ones. A program adds its own; one with the name of an earlier one replaces it.
///
/// ```
/// use practicum_agents::agents::{AgentCli, AgentRegistry};
/// use practicum_engine::session::{RunRegistry, Session};
///
/// let text = AgentRegistry::default().decoder("text").expect("a built-in decoder");
/// let registry = RunRegistry::default().with_agent(AgentCli::new("mine", "my-agent", text));
/// let session = Session::new("path/to/project").with_registry(registry).agent("mine");
/// ```
#[derive(Clone, Default)]
pub struct RunRegistry {
    /// The eval formats and checks.
    pub evals: EvalRegistry,
    /// The agents and the decoders of their streams.
    pub agents: AgentRegistry,
}

impl RunRegistry {
    /// Adds an eval format.
    #[must_use]
    pub fn with_format(self, format: &'static dyn Dialect) -> Self {
        Self { evals: self.evals.with_format(format), ..self }
    }

    /// Adds a kind of deterministic check. Native eval files may then use its key.
    #[must_use]
    pub fn with_check(self, check: &'static RuleKind) -> Self {
        Self { evals: self.evals.with_check(check), ..self }
    }

    /// Adds an agent, and the decoder of its stream.
    #[must_use]
    pub fn with_agent(self, agent: AgentCli) -> Self {
        Self { agents: self.agents.with_agent(agent), ..self }
    }

    /// Adds a decoder. Agents that a settings file describes may then use it by its name.
    #[must_use]
    pub fn with_decoder(self, decoder: &'static DecoderKind) -> Self {
        Self { agents: self.agents.with_decoder(decoder), ..self }
    }
}

//! Finds the agents that `--agent all` stands for.

use std::collections::BTreeMap;

use practicum_agents::agents::AgentCli;

/// The agents that can work on this machine, and a notice about them.
pub struct AgentsHere {
    pub names: Vec<String>,
    /// Names the agents that are used, and those that are left out although they are installed.
    pub notice: String,
}

/// Finds the agents that are installed and logged in, as `practicum doctor` shows them. This program's own agent is not
/// among them: it must be named. If a script or a cassette answers, an agent needs no login, but a way to a gateway.
pub fn find_agents_here(
    agents: &BTreeMap<String, AgentCli>,
    user_env: &BTreeMap<String, String>,
    is_answered: bool,
) -> AgentsHere {
    let (mut names, mut left_out) = (Vec::new(), Vec::new());
    let installed = agents.values().filter(|agent| agent.installed_path(user_env).is_ok());
    for agent in installed.filter(|agent| !agent.is_this_program()) {
        let credentials = &agent.credentials;
        let has_login = credentials.variables.is_empty() || credentials.find_login(user_env).is_some();
        match (is_answered, agent.route.is_some(), has_login) {
            (true, true, _) | (false, _, true) => names.push(agent.name.clone()),
            (true, false, _) => left_out.push(format!("{} (cannot be pointed at a gateway)", agent.name)),
            (false, _, false) => left_out.push(format!("{} (not logged in)", agent.name)),
        }
    }
    let without = match left_out.as_slice() {
        [] => String::new(),
        some => format!("; without {}", some.join(", ")),
    };
    let used = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    AgentsHere { notice: format!("agent all: {used}{without}"), names }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_agents::agents::{AGENTS, AgentCredentials, find_decoder};

    #[test]
    fn all_are_those_that_can_work() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["claude", "codex", "gemini", "mine"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").expect("write");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).expect("made executable");
        }
        let mine = AgentCli::new("mine", "mine", find_decoder("text").expect("a decoder"));
        let mut login = AgentCli::new("login", "mine", find_decoder("text").expect("a decoder"));
        login.credentials = AgentCredentials::from_variables(vec!["MY_KEY".to_owned()]);
        let known = AGENTS.iter().map(|make| make()).chain([mine, login]);
        let agents: BTreeMap<String, AgentCli> = known.map(|agent| (agent.name.clone(), agent)).collect();
        let path = folder.path().display().to_string();
        let key = ("OPENAI_API_KEY", "sk-1");
        for (key, is_answered, expected) in [
            // Codex has a key, the agent of the user needs none.
            (
                Some(key),
                false,
                "agent all: codex, mine; without claude (not logged in), gemini (not logged in), login (not logged in)",
            ),
            (
                None,
                true,
                "agent all: claude, codex, gemini; without login (cannot be pointed at a gateway), mine (cannot be pointed at a gateway)",
            ),
        ] {
            let env = key.into_iter().chain([("PATH", path.as_str()), ("HOME", path.as_str())]);
            let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(find_agents_here(&agents, &env, is_answered).notice, expected);
        }
    }
}

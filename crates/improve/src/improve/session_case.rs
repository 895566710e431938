//! Turns a session that an agent recorded into a proposed case, and into an example for others.

use serde_json::{Value, json};

use super::candidates::CandidateKind;
use super::{Candidate, CapturedTrial};
use practicum_core::model::{Observation, Step, ToolCall};
use practicum_evals::checks::TOOL_ROLES;

/// The most tools of a session that a proposed case names.
const MOST_TOOLS: usize = 10;
/// The longest id of a proposed case, in characters.
const LONGEST_ID: usize = 40;

/// Proposes a case with the prompts of a session. What the agent did is a hint and not what is right, so the tools that
/// it used are checks that are not required. `skill_names` are the names of the skill under test, and `scrub` removes
/// secrets from a text.
pub fn case_from_session(
    seen: &Observation,
    id: &str,
    skill_names: &[String],
    scrub: &dyn Fn(&str) -> String,
) -> Candidate {
    let prompts = user_prompts(seen, scrub);
    let prompt = match prompts.as_slice() {
        [prompt] => json!(prompt),
        prompts => json!(prompts),
    };
    let mut case = json!({"id": case_id(id), "prompt": prompt});
    let was_activated = seen.activated.iter().any(|activated| skill_names.contains(&activated.skill));
    if was_activated {
        case["activation"] = json!("must");
    }
    let tools = used_tools(seen);
    case["checks"] = tools
        .iter()
        .map(|tool| json!({"id": format!("uses-{tool}"), "tool_used": tool, "required": false}))
        .collect::<Vec<Value>>()
        .into();
    let kind = if was_activated { CandidateKind::Positive } else { CandidateKind::Edge };
    Candidate { kind, case }
}

/// Keeps a session as an example for new cases. `scrub` removes secrets from a text.
pub fn capture_of_session(
    seen: &Observation,
    agent: &str,
    id: &str,
    scrub: &dyn Fn(&str) -> String,
) -> CapturedTrial {
    CapturedTrial {
        schema_version: 1,
        run: format!("session {id}"),
        suite: agent.to_owned(),
        case: case_id(id),
        asked: user_prompts(seen, scrub).join("\n\n"),
        gave: scrub(&seen.output),
        passed: None,
    }
}

/// Gives the id of a proposed case. It can be the name of a file.
pub fn case_id(session: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let id: String = session.chars().map(plain).take(LONGEST_ID).collect();
    format!("session-{}", id.trim_matches('-'))
}

fn user_prompts(seen: &Observation, scrub: &dyn Fn(&str) -> String) -> Vec<String> {
    let prompts = seen.steps.iter().filter_map(|step| match step {
        Step::User(prompt) => Some(scrub(prompt)),
        Step::Text(_) | Step::Tool(_) => None,
    });
    prompts.collect()
}

/// Gives the tools that were used with success, each once: by their role, which is the same for all agents, or else by
/// their name. A tool that activates skills is left out.
fn used_tools(seen: &Observation) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    let calls = seen.steps.iter().filter_map(|step| match step {
        Step::Tool(call) => Some(call),
        Step::User(_) | Step::Text(_) => None,
    });
    let role = |call: &ToolCall| {
        let known = TOOL_ROLES.iter().find(|(_, names)| names.contains(&call.name.as_str()));
        known.map_or_else(|| call.name.clone(), |(role, _)| (*role).to_owned())
    };
    for tool in calls.filter(|call| call.ok == Some(true)).map(role) {
        if tool != "skill" && !tool.is_empty() && !tools.contains(&tool) && tools.len() < MOST_TOOLS {
            tools.push(tool);
        }
    }
    tools
}

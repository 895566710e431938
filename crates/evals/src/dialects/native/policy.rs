//! The `run`, `defaults` and `judge` parts, both ways.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::decode::{duration, one_of};
use super::encode::relative;
use practicum_core::model::{
    Arm, Base, Diagnostics, JudgePolicy, Mode, Provider, Ratio, RunPolicy, Transport, format_duration,
};
use practicum_core::tree::{Node, Object};
use practicum_skills::skill::tidy;

/// The share of runs from which on a skill counts as activated. Every run reaches 0.
pub fn activation_share(
    object: &mut Object<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Ratio> {
    let share = object.number(key, 0.0, 1.0, diagnostics).and_then(Ratio::new)?;
    if let Some(node) = object.peek(key).filter(|_| share.get() <= 0.0) {
        let message = format!(
            "with a \"{key}\" of 0, a case in which a skill must be activated always passes, and one in which it must \
             not be always fails"
        );
        diagnostics.warning_help("cannot-fail", node.span, message, "write a share above 0, like 0.5");
    }
    Some(share)
}

/// The keys of `run` and `defaults`.
pub const RUN_KEYS: [&str; 12] = [
    "agents",
    "model",
    "repeat",
    "timeout",
    "arms",
    "mode",
    "script",
    "trigger_threshold",
    "sync_tasks",
    "detect_questions",
    "system_prompt",
    "workspace",
];

const WORKSPACES: [(&str, Base); 2] = [("project", Base::Project), ("empty", Base::Empty)];

pub fn run(
    node: Option<&Node>,
    what: &'static str,
    folder: &Path,
    diagnostics: &mut Diagnostics,
) -> RunPolicy {
    let Some(mut object) = node.and_then(|node| Object::new(node, what, diagnostics)) else {
        return RunPolicy::default();
    };
    let agents = object.texts("agents", diagnostics).unwrap_or_default();
    let arm_texts = object.texts("arms", diagnostics).unwrap_or_default();
    let mut arms = Vec::new();
    for (text, span) in arm_texts {
        match Arm::parse(text) {
            Some(arm) => arms.push(arm),
            None => diagnostics.error_help(
                "unknown-value",
                span,
                format!("there is no arm \"{text}\""),
                "the arms are with, without, or a version like v2",
            ),
        }
    }
    let policy = RunPolicy {
        agents: agents.into_iter().map(|(agent, _)| agent.to_owned()).collect(),
        model: object.text("model", diagnostics).map(str::to_owned),
        repeat: object.int("repeat", 1, 1000, diagnostics).and_then(|n| u32::try_from(n).ok()),
        timeout: duration(&mut object, "timeout", diagnostics),
        arms,
        mode: object.text("mode", diagnostics).map(|mode| Mode::from(mode.to_owned())),
        script: object.text("script", diagnostics).map(|path| tidy(&folder.join(path))),
        trigger_threshold: activation_share(&mut object, "trigger_threshold", diagnostics),
        sync_tasks: object.bool("sync_tasks", diagnostics),
        detect_questions: object.bool("detect_questions", diagnostics),
        system_prompt: object.text("system_prompt", diagnostics).map(str::to_owned),
        workspace: one_of(&mut object, "workspace", &WORKSPACES, diagnostics),
    };
    object.refuse_rest(what, diagnostics);
    policy
}

pub fn judge(node: Option<&Node>, diagnostics: &mut Diagnostics) -> JudgePolicy {
    let Some(mut object) = node.and_then(|node| Object::new(node, "judge", diagnostics)) else {
        return JudgePolicy::default();
    };
    let votes_node = object.given("votes");
    let votes = object.int("votes", 1, 99, diagnostics).and_then(|n| u32::try_from(n).ok());
    if votes.is_some_and(|votes| votes % 2 == 0) {
        diagnostics.error(
            "even-votes",
            votes_node.map(|node| node.span),
            "\"votes\" must be odd, so that there is a majority",
        );
    }
    let providers = Provider::NAMES.map(|name| (name, Provider::parse(name)));
    let transports = Transport::NAMES.map(|name| (name, Transport::parse(name)));
    let policy = JudgePolicy {
        model: object.text("model", diagnostics).map(str::to_owned),
        provider: one_of(&mut object, "provider", &providers, diagnostics).flatten(),
        transport: one_of(&mut object, "transport", &transports, diagnostics).flatten(),
        votes,
        user_prompt: object.text("user_prompt", diagnostics).map(str::to_owned),
    };
    object.refuse_rest("judge", diagnostics);
    policy
}

pub fn run_value(policy: &RunPolicy, folder: &Path) -> Value {
    // Without `..`, a new field makes the compiler point here.
    let RunPolicy {
        agents,
        model,
        repeat,
        timeout,
        arms,
        mode,
        script,
        trigger_threshold,
        sync_tasks,
        detect_questions,
        system_prompt,
        workspace,
    } = policy;
    let mut map = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(key.to_owned(), value);
        }
    };
    put("agents", (!agents.is_empty()).then(|| json!(agents)));
    put("model", model.as_ref().map(|model| json!(model)));
    put("repeat", repeat.map(|repeat| json!(repeat)));
    put("timeout", timeout.map(|timeout| json!(format_duration(timeout))));
    put("arms", (!arms.is_empty()).then(|| arms.iter().map(|arm| json!(arm.name())).collect()));
    put("mode", mode.as_ref().map(|mode| json!(mode.name())));
    put("script", script.as_ref().map(|script| json!(relative(script, folder))));
    put("trigger_threshold", trigger_threshold.map(|threshold| json!(threshold.get())));
    let word = |base: &Base| WORKSPACES.iter().find(|(_, known)| known == base).map(|(word, _)| json!(word));
    put("workspace", workspace.as_ref().and_then(word));
    put("sync_tasks", sync_tasks.map(|sync| json!(sync)));
    put("detect_questions", detect_questions.map(|detect| json!(detect)));
    put("system_prompt", system_prompt.as_ref().map(|prompt| json!(prompt)));
    Value::Object(map)
}

pub fn judge_value(policy: &JudgePolicy) -> Value {
    let JudgePolicy { model, provider, transport, votes, user_prompt } = policy;
    let mut map = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(key.to_owned(), value);
        }
    };
    put("model", model.as_ref().map(|model| json!(model)));
    put("provider", provider.map(|provider| json!(provider.name())));
    put("transport", transport.map(|transport| json!(transport.name())));
    put("votes", votes.map(|votes| json!(votes)));
    put("user_prompt", user_prompt.as_ref().map(|prompt| json!(prompt)));
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dialects::testing;
    use practicum_core::tree::asked;

    #[test]
    fn the_keys_of_run_are_those_that_are_read() {
        let source = testing::parse("/nowhere/a.practicum.yaml".into(), "{}");
        asked::take();
        run(Some(&source.root), "run", Path::new("/nowhere"), &mut Diagnostics::default());
        assert!(asked::take().contains(&BTreeSet::from(RUN_KEYS)));
    }
}

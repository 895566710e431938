//! Reads and writes the keys `run`, `defaults` and `judge` of native files.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::decode::{decode_duration, decode_one_of};
use super::encode::relative_path;
use practicum_core::model::{
    Arm, Diagnostics, JudgePolicy, JudgeTransportChoice, Provider, Ratio, RunPolicy, SkillUseMode,
    WorkspaceBase, format_duration,
};
use practicum_core::tree::{ObjectReader, TreeNode};
use practicum_skills::skill::normalise_path;

/// Reads the share of runs from which on a skill counts as activated. Every case reaches 0.
pub fn activation_share(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Ratio> {
    let share = object.number(key, 0.0, 1.0, diagnostics).and_then(Ratio::new)?;
    if let Some(node) = object.peek(key).filter(|_| share.get() <= 0.0) {
        let message = format!(
            "with a \"{key}\" of 0, a case in which a skill must be activated always passes, and one in which it must \
             not be always fails"
        );
        diagnostics.warning_with_help("cannot-fail", node.span, message, "write a share above 0, like 0.5");
    }
    Some(share)
}

/// The greatest numbers of runs of a case and of votes of a judge.
pub const MOST_REPEATS: i64 = 1000;
pub const MOST_VOTES: i64 = 99;

const WORKSPACE_BASES: [(&str, WorkspaceBase); 2] =
    [("project", WorkspaceBase::Project), ("empty", WorkspaceBase::Empty)];

pub fn decode_run_policy(
    node: Option<&TreeNode>,
    what: &'static str,
    folder: &Path,
    diagnostics: &mut Diagnostics,
) -> RunPolicy {
    let Some(mut object) = node.and_then(|node| ObjectReader::new(node, what, diagnostics)) else {
        return RunPolicy::default();
    };
    let agents = object.texts("agents", diagnostics).unwrap_or_default();
    let arm_texts = object.texts("arms", diagnostics).unwrap_or_default();
    let mut arms = Vec::new();
    for (text, span) in arm_texts {
        match Arm::parse(text) {
            Some(arm) => arms.push(arm),
            None => diagnostics.error_with_help(
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
        repeat: object.int("repeat", 1, MOST_REPEATS, diagnostics).and_then(|n| u32::try_from(n).ok()),
        timeout: decode_duration(&mut object, "timeout", diagnostics),
        arms,
        mode: object.text("mode", diagnostics).map(|mode| SkillUseMode::from(mode.to_owned())),
        script: object.text("script", diagnostics).map(|path| normalise_path(&folder.join(path))),
        trigger_threshold: activation_share(&mut object, "trigger_threshold", diagnostics),
        sync_tasks: object.bool("sync_tasks", diagnostics),
        detect_questions: object.bool("detect_questions", diagnostics),
        system_prompt: object.text("system_prompt", diagnostics).map(str::to_owned),
        workspace: decode_one_of(&mut object, "workspace", &WORKSPACE_BASES, diagnostics),
    };
    object.reject_unknown_keys(what, diagnostics);
    policy
}

pub fn decode_judge_policy(node: Option<&TreeNode>, diagnostics: &mut Diagnostics) -> JudgePolicy {
    let Some(mut object) = node.and_then(|node| ObjectReader::new(node, "judge", diagnostics)) else {
        return JudgePolicy::default();
    };
    let votes_node = object.get_non_null("votes");
    let votes = object.int("votes", 1, MOST_VOTES, diagnostics).and_then(|n| u32::try_from(n).ok());
    if votes.is_some_and(|votes| votes % 2 == 0) {
        diagnostics.error(
            "even-votes",
            votes_node.map(|node| node.span),
            "\"votes\" must be odd, so that there is a majority",
        );
    }
    let providers = Provider::NAMES.map(|name| (name, Provider::parse(name)));
    let transports = JudgeTransportChoice::NAMES.map(|name| (name, JudgeTransportChoice::parse(name)));
    let policy = JudgePolicy {
        model: object.text("model", diagnostics).map(str::to_owned),
        provider: decode_one_of(&mut object, "provider", &providers, diagnostics).flatten(),
        transport: decode_one_of(&mut object, "transport", &transports, diagnostics).flatten(),
        votes,
        user_prompt: object.text("user_prompt", diagnostics).map(str::to_owned),
    };
    object.reject_unknown_keys("judge", diagnostics);
    policy
}

pub fn run_value(policy: &RunPolicy, folder: &Path) -> Value {
    // Without `..`, the compiler reports a new field that is missing here.
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
    put("script", script.as_ref().map(|script| json!(relative_path(script, folder))));
    put("trigger_threshold", trigger_threshold.map(|threshold| json!(threshold.get())));
    let word = |base: &WorkspaceBase| {
        WORKSPACE_BASES.iter().find(|(_, known)| known == base).map(|(word, _)| json!(word))
    };
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
    use crate::dialects::native::schema::run_keys;
    use crate::dialects::testing;
    use practicum_core::tree::requested_keys;

    #[test]
    fn the_keys_of_run_are_those_that_are_read() {
        let source = testing::parse_source("/nowhere/a.practicum.yaml".into(), "{}");
        requested_keys::take();
        decode_run_policy(Some(&source.root), "run", Path::new("/nowhere"), &mut Diagnostics::default());
        let published = run_keys();
        assert!(
            requested_keys::take().contains(&published.iter().map(String::as_str).collect::<BTreeSet<_>>())
        );
    }
}

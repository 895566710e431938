use std::time::Duration;

use super::grading::Variance;
use super::keys::{filled_text, flag, whole, word};
use practicum_core::model::{Diagnostics, JudgePolicy, LONGEST_TIME, Provider, RunPolicy, Transport};
use practicum_core::tree::{Object, wrong_type};

/// What "harness" may say.
pub const HARNESS_WORDS: [&str; 3] = ["claude-code", "codex", "auto"];

/// The agents by the names that the format has for them.
pub const HARNESSES: [(&str, &str); 2] = [("claude-code", "claude"), ("codex", "codex")];

/// How a spec wants to be run and judged. Saying `auto` is saying nothing.
pub fn policies(
    spec: &mut Object<'_>,
    variance: Option<&Variance>,
    diagnostics: &mut Diagnostics,
) -> (RunPolicy, JudgePolicy) {
    let harness = word(spec, "harness", &HARNESS_WORDS, diagnostics);
    let agent = HARNESSES.iter().find(|(name, _)| Some(*name) == harness).map(|(_, agent)| *agent);
    let run = RunPolicy {
        agents: agent.map(str::to_owned).into_iter().collect(),
        repeat: variance.map(|variance| variance.runs),
        timeout: timeout(spec, diagnostics),
        sync_tasks: flag(spec, "sync_tasks", diagnostics),
        detect_questions: flag(spec, "allow_hang_heuristic", diagnostics),
        system_prompt: filled_text(spec, "system_prompt", diagnostics).map(str::to_owned),
        ..RunPolicy::default()
    };
    let provider = match spec.given("grading_provider") {
        Some(_) => word(spec, "grading_provider", &Provider::NAMES, diagnostics).and_then(Provider::parse),
        None => None,
    };
    let transport = word(spec, "transport", &Transport::NAMES, diagnostics).and_then(Transport::parse);
    let judge = JudgePolicy {
        model: filled_text(spec, "grading_model", diagnostics).map(str::to_owned),
        provider: provider.filter(|provider| *provider != Provider::Auto),
        transport: transport.filter(|transport| *transport != Transport::Auto),
        votes: None,
        user_prompt: filled_text(spec, "user_prompt", diagnostics).map(str::to_owned),
    };
    (run, judge)
}

fn timeout(spec: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let node = spec.given("timeout")?;
    let Some(seconds) = whole(node) else {
        wrong_type(node, "timeout", "a whole number of seconds", diagnostics);
        return None;
    };
    let Some(seconds) = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0) else {
        diagnostics.error("out-of-range", node.span, "\"timeout\" must be more than 0 seconds");
        return None;
    };
    let wanted = Duration::from_secs(seconds);
    if wanted > LONGEST_TIME {
        let message = format!("a timeout of {seconds} seconds is cut to a week");
        diagnostics.warning_help("cut-timeout", node.span, message, "it is in seconds, not milliseconds");
    }
    Some(wanted.min(LONGEST_TIME))
}

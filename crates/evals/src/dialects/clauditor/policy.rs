//! Reads the settings for running and judging from a clauditor spec.

use std::time::Duration;

use super::grading::VarianceSettings;
use super::keys::{read_filled_text, read_flag, read_word, whole_number};
use practicum_core::model::{
    Diagnostics, JudgePolicy, JudgeTransportChoice, MAX_DURATION, Provider, RunPolicy,
};
use practicum_core::tree::{ObjectReader, report_wrong_type};

/// The values that "harness" may have.
pub const HARNESS_WORDS: [&str; 3] = ["claude-code", "codex", "auto"];

/// The names of agents in clauditor specs, each with its name in this program.
pub const HARNESSES: [(&str, &str); 2] = [("claude-code", "claude"), ("codex", "codex")];

/// Reads the settings for running and judging. `auto` counts as not set.
pub fn read_policies(
    spec: &mut ObjectReader<'_>,
    variance: Option<&VarianceSettings>,
    diagnostics: &mut Diagnostics,
) -> (RunPolicy, JudgePolicy) {
    let harness = read_word(spec, "harness", &HARNESS_WORDS, diagnostics);
    let agent = HARNESSES.iter().find(|(name, _)| Some(*name) == harness).map(|(_, agent)| *agent);
    let run = RunPolicy {
        agents: agent.map(str::to_owned).into_iter().collect(),
        repeat: variance.map(|variance| variance.runs),
        timeout: read_timeout(spec, diagnostics),
        sync_tasks: read_flag(spec, "sync_tasks", diagnostics),
        detect_questions: read_flag(spec, "allow_hang_heuristic", diagnostics),
        system_prompt: read_filled_text(spec, "system_prompt", diagnostics).map(str::to_owned),
        ..RunPolicy::default()
    };
    let provider = match spec.get_non_null("grading_provider") {
        Some(_) => {
            read_word(spec, "grading_provider", &Provider::NAMES, diagnostics).and_then(Provider::parse)
        }
        None => None,
    };
    let transport = read_word(spec, "transport", &JudgeTransportChoice::NAMES, diagnostics)
        .and_then(JudgeTransportChoice::parse);
    let judge = JudgePolicy {
        model: read_filled_text(spec, "grading_model", diagnostics).map(str::to_owned),
        provider: provider.filter(|provider| *provider != Provider::Auto),
        transport: transport.filter(|transport| *transport != JudgeTransportChoice::Auto),
        votes: None,
        user_prompt: read_filled_text(spec, "user_prompt", diagnostics).map(str::to_owned),
    };
    (run, judge)
}

fn read_timeout(spec: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let node = spec.get_non_null("timeout")?;
    let Some(seconds) = whole_number(node) else {
        report_wrong_type(node, "timeout", "a whole number of seconds", diagnostics);
        return None;
    };
    let Some(seconds) = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0) else {
        diagnostics.error("out-of-range", node.span, "\"timeout\" must be more than 0 seconds");
        return None;
    };
    let wanted = Duration::from_secs(seconds);
    if wanted > MAX_DURATION {
        let message = format!("a timeout of {seconds} seconds is cut to a week");
        diagnostics.warning_with_help(
            "cut-timeout",
            node.span,
            message,
            "it is in seconds, not milliseconds",
        );
    }
    Some(wanted.min(MAX_DURATION))
}

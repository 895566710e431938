//! Deterministic checks: code, not a model, decides them.
//!
//! In: checks, an `Observation`, the workspace after the run. Out: a `CheckFinding` for each check.
//! Never: calls a model.

mod activation;
mod call_count;
mod combined;
mod command;
mod contains;
mod counting;
mod ends_with;
mod file;
mod files;
mod formats;
mod globs;
mod has_entries;
mod has_format;
mod has_urls;
mod image_matches;
mod json;
mod json_path;
mod limit;
mod line_ends;
mod max_length;
mod min_count;
mod min_length;
mod mock_called;
mod mock_calls;
mod mock_calls_match;
mod mock_inputs;
mod mock_not_called;
mod mock_order;
mod not_contains;
mod parallel;
mod pattern;
pub mod pictures;
mod public_address;
mod regex;
#[cfg(test)]
mod rule_tests;
mod sections;
mod starts_with;
mod tool_not_used;
mod tool_order;
mod tool_used;
mod tools;
mod transcript;
mod urls_reachable;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

pub use activation::{SkillNames, any_activated, arm_problem, check_activation, check_prediction};
pub use contains::{ContainsRule, Needle};
pub use file::{FileExpectation, FileRule, unmatched_globs, written_files};
pub use formats::{FORMATS, NamedFormat, ValueFormat};
pub use globs::Globs;
pub(crate) use mock_calls::{
    argument_at, arguments_fit, arguments_schema, arguments_value, conditions_schema, conditions_value,
    decode_arguments, decode_conditions, unmet_condition,
};
pub(crate) use mock_inputs::MockInputsRule;
pub use not_contains::NotContainsRule;
pub(crate) use parallel::map_in_parallel;
pub use pattern::{InvalidPattern, PatternFlags, PythonPattern, TooMuchBacktracking};
pub use public_address::{is_public, is_reserved_name};
pub use regex::{RegexRule, decode_pattern};
pub use sections::{ExtractedSections, SectionEntry, check_sections};
pub use tools::{TOOL_ROLES, ToolName};
pub use transcript::render_transcript;
pub use urls_reachable::UrlsReachableRule;

use line_ends::{text_for_rule, unify_line_ends};
use practicum_core::model::{
    Check, CheckEvidence, CheckFinding, CheckKind, CheckPermissions, CheckTarget, CheckedText, Diagnostics,
    NotScoredReason, Observation, Rule, UrlChecker, Verdict, WorkspaceView,
};
use practicum_core::tree::TreeNode;

/// A kind of deterministic check: its key in a native file, and how the value after the key is read.
///
/// Inside this crate, a new kind is a file and a line in `RULES`. A program adds its own to the registry of eval formats
/// and checks.
pub struct RuleKind {
    /// The key of the check in a native file.
    pub key: &'static str,
    /// One sentence for people: "the text contains …".
    pub doc: &'static str,
    /// The values that the key may have, as JSON Schema.
    pub schema: fn() -> Value,
    /// Reads the value. Reports what is wrong with it, and then gives `None`.
    pub decode: fn(&TreeNode, &mut Diagnostics) -> Option<Arc<dyn Rule>>,
}

/// Every kind of deterministic check. To add one, add a file and a line here.
pub static RULES: &[&RuleKind] = &[
    &contains::KIND,
    &not_contains::KIND,
    &regex::KIND,
    &min_count::KIND,
    &min_length::KIND,
    &max_length::KIND,
    &has_urls::KIND,
    &has_entries::KIND,
    &urls_reachable::KIND,
    &has_format::KIND,
    &starts_with::KIND,
    &ends_with::KIND,
    &file::KIND,
    &files::KIND,
    &image_matches::KIND,
    &json::KIND,
    &command::KIND,
    &tool_used::KIND,
    &tool_not_used::KIND,
    &tool_order::KIND,
    &mock_called::KIND,
    &mock_not_called::KIND,
    &mock_order::KIND,
    &mock_inputs::KIND,
    &mock_calls_match::KIND,
    &limit::KIND,
    &transcript::KIND,
    &combined::ALL,
    &combined::ANY,
    &combined::NOT,
];

/// Gives the built-in kind of check with this key.
pub fn rule_kind(key: &str) -> Option<&'static RuleKind> {
    RULES.iter().copied().find(|kind| kind.key == key)
}

/// Says whether a rule reads only a text, and nothing else of a run.
pub fn reads_only_text(rule: &dyn Rule) -> bool {
    rule.default_target() != CheckTarget::WholeRun
}

/// Runs the deterministic checks among `checks`, with the given permissions. The result has the same order; it is
/// `None` for every other check.
///
/// ```
/// use std::sync::Arc;
///
/// use practicum_core::model::{
///     AgentEnding, Check, CheckPermissions, Observation, RelPath, Verdict, WorkspaceView,
/// };
/// use practicum_evals::checks::{ContainsRule, Needle, run_checks};
///
/// /// A workspace without files: the check reads only the text.
/// struct NoFiles;
///
/// impl WorkspaceView for NoFiles {
///     fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
///         Ok(None)
///     }
///
///     fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
///         Ok(false)
///     }
/// }
///
/// let check = Check::by_rule("names-the-file", Arc::new(ContainsRule(Needle::exact("config.toml"))));
/// let mut observation = Observation::with_ending(AgentEnding::Finished);
/// observation.output = "Rename config.ini to config.toml.".to_owned();
/// let found = run_checks(&[&check], &observation, &NoFiles, CheckPermissions::default());
/// assert_eq!(found[0].as_ref().expect("a deterministic check").verdict, Verdict::Pass);
/// ```
pub fn run_checks(
    checks: &[&Check],
    observation: &Observation,
    workspace: &dyn WorkspaceView,
    leave: CheckPermissions<'_>,
) -> Vec<Option<CheckFinding>> {
    let all_text = if checks.iter().any(|check| check.target == CheckTarget::AllText) {
        observation.all_text()
    } else {
        Default::default()
    };
    let one = |check: &Check| match &check.kind {
        CheckKind::Rule(rule) if rule.runs_code() && !leave.run_code => {
            Some(CheckFinding::not_scored(NotScoredReason::NotTrusted))
        }
        CheckKind::Rule(rule)
            if reads_agent_output(rule.as_ref(), &check.target) && observation.unread.is_some() =>
        {
            observation.unread.clone().map(|why| CheckFinding::not_scored(NotScoredReason::CheckFailed(why)))
        }
        CheckKind::Rule(rule) => {
            Some(run_rule(rule.as_ref(), &check.target, observation, workspace, leave.url_checker, &all_text))
        }
        CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    };
    let work = checks.len().saturating_mul(observation.output.len().max(all_text.len()));
    if work < BYTES_WORTH_THREADS {
        checks.iter().map(|check| one(check)).collect()
    } else {
        map_in_parallel(checks, |check| one(check))
    }
}

/// Says whether a check depends on what the agent said.
fn reads_agent_output(rule: &dyn Rule, looks_at: &CheckTarget) -> bool {
    match looks_at {
        CheckTarget::File(_) | CheckTarget::Files(_) | CheckTarget::Pictures(_) => false,
        CheckTarget::Output | CheckTarget::LastTurn | CheckTarget::AllText | CheckTarget::WholeRun => {
            rule.reads_agent_output()
        }
    }
}

/// The number of bytes to check, over all checks, from which on threads are worth the cost of starting them.
const BYTES_WORTH_THREADS: usize = 4 * 1024 * 1024;

fn run_rule(
    rule: &dyn Rule,
    looks_at: &CheckTarget,
    observation: &Observation,
    workspace: &dyn WorkspaceView,
    network: Option<&dyn UrlChecker>,
    all_text: &str,
) -> CheckFinding {
    let whole = *looks_at == CheckTarget::WholeRun && reads_only_text(rule);
    let texts = match whole {
        true => Ok(vec![CheckedText::without_path(render_transcript(observation))]),
        false => texts_looked_at(looks_at, observation, workspace, all_text),
    };
    let mut texts = match texts {
        Ok(texts) => texts,
        Err(finding) => return finding,
    };
    for checked in &mut texts {
        checked.text = text_for_rule(rule, std::mem::take(&mut checked.text));
    }
    let check_texts = |texts: &[CheckedText<'_>]| {
        rule.check(&CheckEvidence { texts, observation, workspace, url_checker: network })
    };
    match texts.iter().find_map(|checked| checked.unread.clone()) {
        None => check_texts(&texts),
        Some(why) => check_partly_read(rule, texts, why, check_texts),
    }
}

/// Runs a rule when a file cannot be read in full. The result for the other files counts only if nothing in that
/// file could change it; otherwise the check is not scored.
fn check_partly_read<'t>(
    rule: &dyn Rule,
    mut texts: Vec<CheckedText<'t>>,
    why: String,
    check_texts: impl Fn(&[CheckedText<'t>]) -> CheckFinding,
) -> CheckFinding {
    texts.retain(|checked| checked.unread.is_none());
    let decisive = if rule.is_about_every_text() { Verdict::Fail } else { Verdict::Pass };
    let found =
        (!texts.is_empty()).then(|| check_texts(&texts)).filter(|finding| finding.verdict == decisive);
    found.unwrap_or_else(|| CheckFinding::not_scored(NotScoredReason::CheckFailed(why)))
}

/// Gives the texts that a check reads, with `\n` as line end, or the finding that there is none.
pub fn texts_of_check(
    check: &Check,
    observation: &Observation,
    workspace: &dyn WorkspaceView,
) -> Result<Vec<CheckedText<'static>>, CheckFinding> {
    let all_text = observation.all_text();
    let texts = texts_looked_at(&check.target, observation, workspace, &all_text)?;
    let unify = |text: Cow<'_, str>| Cow::Owned(unify_line_ends(text).into_owned());
    let unified = |checked: CheckedText<'_>| CheckedText {
        path: checked.path,
        text: unify(checked.text),
        unread: checked.unread,
    };
    Ok(texts.into_iter().map(unified).collect())
}

fn texts_looked_at<'t>(
    looks_at: &CheckTarget,
    observation: &'t Observation,
    workspace: &dyn WorkspaceView,
    all_text: &'t str,
) -> Result<Vec<CheckedText<'t>>, CheckFinding> {
    let text = match looks_at {
        CheckTarget::Output | CheckTarget::WholeRun => Cow::Borrowed(observation.output.as_str()),
        CheckTarget::LastTurn => Cow::Owned(observation.last_turn_text()),
        CheckTarget::AllText => Cow::Borrowed(all_text),
        CheckTarget::File(path) => return Ok(vec![file::read_written_file(workspace, observation, path)?]),
        CheckTarget::Files(globs) => return file::read_matching(workspace, observation, globs),
        CheckTarget::Pictures(_) => {
            let why = "only a judge can look at pictures".to_owned();
            return Err(CheckFinding::not_scored(NotScoredReason::CheckFailed(why)));
        }
    };
    Ok(vec![CheckedText::without_path(text)])
}

/// Shortens a text for a message: one line, at most `most` characters.
pub fn excerpt(text: &str, most: usize) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most + 1).collect();
    if flat.chars().count() > most {
        format!("{}…", flat.chars().take(most).collect::<String>())
    } else {
        flat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::CheckNeed;

    #[test]
    fn threads_change_no_finding() {
        let text = "one two three\n".repeat(BYTES_WORTH_THREADS / 100);
        let run = rule_tests::run_with_output(&text);
        let checks: Vec<Check> = (0..40)
            .map(|n| {
                let needle = ["one", "four", "three\none", "é"][n % 4];
                let rule = ContainsRule(Needle::exact(needle));
                let (need, looks_at) = (CheckNeed::Required, CheckTarget::Output);
                Check {
                    id: n.to_string(),
                    name: None,
                    need,
                    weight: practicum_core::model::CheckWeight::ONE,
                    target: looks_at,
                    kind: CheckKind::Rule(Arc::new(rule)),
                }
            })
            .collect();
        let checks: Vec<&Check> = checks.iter().collect();
        let alone: Vec<Option<CheckFinding>> = checks
            .iter()
            .flat_map(|check| run_checks(&[*check], &run, &rule_tests::NoFiles, CheckPermissions::default()))
            .collect();
        assert_eq!(run_checks(&checks, &run, &rule_tests::NoFiles, CheckPermissions::default()), alone);
    }

    #[test]
    fn every_rule_introduces_itself() {
        let mut keys: Vec<&str> = RULES.iter().map(|kind| kind.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), RULES.len(), "two rules with one key");
        for kind in RULES {
            assert!((kind.schema)().is_object(), "{}", kind.key);
            assert!(!kind.doc.is_empty() && !kind.doc.ends_with('.'), "{}", kind.key);
            assert!(rule_kind(kind.key).is_some_and(|found| std::ptr::eq(found, *kind)), "{}", kind.key);
        }
    }
}

//! Checks that code decides.
//!
//! In: checks, an `Observation`, the workspace after the run. Out: a `Finding` for each.
//! Never: calls a model.

mod activation;
mod at_least;
mod command;
mod contains;
mod ends_with;
mod file;
mod formats;
mod globs;
mod has_entries;
mod has_format;
mod has_urls;
mod json;
mod json_path;
mod limit;
mod line_ends;
mod max_length;
mod min_count;
mod min_length;
mod not_contains;
mod pattern;
mod public_address;
mod regex;
#[cfg(test)]
mod rows;
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
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

pub use activation::{Names, arm_problem, fired, mark_activation, mark_prediction};
pub use contains::{Contains, Needle};
pub use file::{FileExpectation, FileRule, unmatched_globs};
pub use formats::{FORMATS, Format, ValueFormat};
pub use globs::Globs;
pub use not_contains::NotContains;
pub use pattern::{Flags, InvalidPattern, Pattern, TooHard};
pub use public_address::{is_public, is_reserved_name};
pub use regex::RegexRule;
pub use sections::{Entry, Extracted, mark_sections};
pub use tools::{ROLES, Tool};
pub use transcript::rendered;
pub use urls_reachable::UrlsReachable;

use line_ends::{as_read_by, unify_line_ends};
use practicum_core::model::{
    Check, CheckKind, CheckedText, Diagnostics, Evidence, Finding, Leave, LooksAt, Network, Observation,
    Rule, Verdict, Why, WorkspaceView,
};
use practicum_core::tree::Node;

/// A kind of check: its key in a native file, how it is read, and what it looks at unless told.
pub struct RuleKind {
    pub key: &'static str,
    /// One sentence for people: "the text contains …".
    pub doc: &'static str,
    /// What may stand behind the key, as JSON Schema.
    pub schema: fn() -> Value,
    pub looks_at: LooksAt,
    pub decode: fn(&Node, &mut Diagnostics) -> Option<Arc<dyn Rule>>,
}

/// Every deterministic check. A new one is a file and a line here.
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
    &json::KIND,
    &command::KIND,
    &tool_used::KIND,
    &tool_not_used::KIND,
    &tool_order::KIND,
    &limit::KIND,
    &transcript::KIND,
];

pub fn rule_kind(key: &str) -> Option<&'static RuleKind> {
    RULES.iter().copied().find(|kind| kind.key == key)
}

/// Whether a rule reads a text and nothing else of a run.
pub fn reads_text(rule: &dyn Rule) -> bool {
    rule_kind(rule.key()).is_some_and(|kind| kind.looks_at != LooksAt::WholeRun)
}

/// Marks the exact checks among `checks`, with leave to do what they need; the others are `None`, in the
/// same order.
pub fn mark(
    checks: &[&Check],
    observation: &Observation,
    workspace: &dyn WorkspaceView,
    leave: Leave<'_>,
) -> Vec<Option<Finding>> {
    let all_text = if checks.iter().any(|check| check.looks_at == LooksAt::AllText) {
        observation.all_text()
    } else {
        Default::default()
    };
    let one = |check: &Check| match &check.kind {
        CheckKind::Exact(rule) if rule.runs_code() && !leave.run_code => {
            Some(Finding::not_scored(Why::NotTrusted))
        }
        CheckKind::Exact(rule)
            if hears_agent(rule.as_ref(), &check.looks_at) && observation.unread.is_some() =>
        {
            observation.unread.clone().map(|why| Finding::not_scored(Why::CheckFailed(why)))
        }
        CheckKind::Exact(rule) => {
            Some(mark_one(rule.as_ref(), &check.looks_at, observation, workspace, leave.network, &all_text))
        }
        CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    };
    let work = checks.len().saturating_mul(observation.output.len().max(all_text.len()));
    if work < WORTH_THREADS {
        checks.iter().map(|check| one(check)).collect()
    } else {
        side_by_side(checks, one)
    }
}

/// Whether what the agent said decides a check.
fn hears_agent(rule: &dyn Rule, looks_at: &LooksAt) -> bool {
    match looks_at {
        LooksAt::File(_) | LooksAt::Files(_) => false,
        LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun => rule.hears_agent(),
    }
}

/// Bytes to look at, over all checks, from which threads are worth their start.
const WORTH_THREADS: usize = 4 * 1024 * 1024;

/// The same for every check, on as many threads as there are cores. Some checks take much longer than
/// others, so each thread takes the next when it is done with one.
fn side_by_side(checks: &[&Check], one: impl Fn(&Check) -> Option<Finding> + Sync) -> Vec<Option<Finding>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(checks.len());
    let next = AtomicUsize::new(0);
    let mut findings = vec![None; checks.len()];
    let work = || {
        let mine = std::iter::from_fn(|| {
            let index = next.fetch_add(1, Ordering::Relaxed);
            checks.get(index).map(|check| (index, one(check)))
        });
        mine.collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (index, finding) in done {
                findings[index] = finding;
            }
        }
    });
    findings
}

fn mark_one(
    rule: &dyn Rule,
    looks_at: &LooksAt,
    observation: &Observation,
    workspace: &dyn WorkspaceView,
    network: Option<&dyn Network>,
    all_text: &str,
) -> Finding {
    let whole = *looks_at == LooksAt::WholeRun && reads_text(rule);
    let texts = match whole {
        true => Ok(vec![CheckedText::unnamed(rendered(observation))]),
        false => texts_looked_at(looks_at, observation, workspace, all_text),
    };
    let mut texts = match texts {
        Ok(texts) => texts,
        Err(finding) => return finding,
    };
    for checked in &mut texts {
        checked.text = as_read_by(rule, std::mem::take(&mut checked.text));
    }
    let mark = |texts: &[CheckedText<'_>]| rule.mark(&Evidence { texts, observation, workspace, network });
    match texts.iter().find_map(|checked| checked.unread.clone()) {
        None => mark(&texts),
        Some(why) => mark_partly_read(rule, texts, why, mark),
    }
}

/// The finding where a file cannot be read in full. What the other files say stands only if nothing in that file
/// could change it.
fn mark_partly_read<'t>(
    rule: &dyn Rule,
    mut texts: Vec<CheckedText<'t>>,
    why: String,
    mark: impl Fn(&[CheckedText<'t>]) -> Finding,
) -> Finding {
    texts.retain(|checked| checked.unread.is_none());
    let decisive = if rule.is_about_every_text() { Verdict::Fail } else { Verdict::Pass };
    let found = (!texts.is_empty()).then(|| mark(&texts)).filter(|finding| finding.verdict == decisive);
    found.unwrap_or_else(|| Finding::not_scored(Why::CheckFailed(why)))
}

/// The texts that a check reads, or the finding that there is none. Line ends are `\n`.
pub fn texts_of_check(
    check: &Check,
    observation: &Observation,
    workspace: &dyn WorkspaceView,
) -> Result<Vec<CheckedText<'static>>, Finding> {
    let all_text = observation.all_text();
    let texts = texts_looked_at(&check.looks_at, observation, workspace, &all_text)?;
    let unify = |text: Cow<'_, str>| Cow::Owned(unify_line_ends(text).into_owned());
    let unified = |checked: CheckedText<'_>| CheckedText {
        path: checked.path,
        text: unify(checked.text),
        unread: checked.unread,
    };
    Ok(texts.into_iter().map(unified).collect())
}

fn texts_looked_at<'t>(
    looks_at: &LooksAt,
    observation: &'t Observation,
    workspace: &dyn WorkspaceView,
    all_text: &'t str,
) -> Result<Vec<CheckedText<'t>>, Finding> {
    let text = match looks_at {
        LooksAt::Output | LooksAt::WholeRun => Cow::Borrowed(observation.output.as_str()),
        LooksAt::AllText => Cow::Borrowed(all_text),
        LooksAt::File(path) => return Ok(vec![file::read_written(workspace, observation, path)?]),
        LooksAt::Files(globs) => return file::read_matching(workspace, observation, globs),
    };
    Ok(vec![CheckedText::unnamed(text)])
}

/// A text shortened for a message, on one line, at most `most` characters.
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
    use practicum_core::model::Need;

    #[test]
    fn threads_change_no_finding() {
        let text = "one two three\n".repeat(WORTH_THREADS / 100);
        let run = rows::said(&text);
        let checks: Vec<Check> = (0..40)
            .map(|n| {
                let needle = ["one", "four", "three\none", "é"][n % 4];
                let rule = Contains(Needle::exact(needle));
                let (need, looks_at) = (Need::Required, LooksAt::Output);
                Check {
                    id: n.to_string(),
                    name: None,
                    need,
                    looks_at,
                    kind: CheckKind::Exact(Arc::new(rule)),
                }
            })
            .collect();
        let checks: Vec<&Check> = checks.iter().collect();
        let alone: Vec<Option<Finding>> =
            checks.iter().flat_map(|check| mark(&[*check], &run, &rows::NoFiles, Leave::default())).collect();
        assert_eq!(mark(&checks, &run, &rows::NoFiles, Leave::default()), alone);
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

//! The checks `all`, `any` and `not`: other checks, joined to one.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{RuleKind, rule_kind};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, Diagnostics, NotScoredReason, Rule, Verdict, count_with_noun,
};
use practicum_core::tree::{TreeNode, closest_word, json_schema, report_wrong_type};

pub static ALL: RuleKind = RuleKind {
    key: "all",
    doc: "each of these checks passes; in a score, it counts with the share of them that does",
    schema: || json_schema::nonempty_list(one_check_schema()),
    decode: |node, diagnostics| {
        Some(Arc::new(CombinedRule { join: Join::All, rules: decode_list("all", node, diagnostics)? }))
    },
};

pub static ANY: RuleKind = RuleKind {
    key: "any",
    doc: "at least one of these checks passes",
    schema: || json_schema::nonempty_list(one_check_schema()),
    decode: |node, diagnostics| {
        Some(Arc::new(CombinedRule { join: Join::Any, rules: decode_list("any", node, diagnostics)? }))
    },
};

pub static NOT: RuleKind = RuleKind {
    key: "not",
    doc: "this check fails",
    schema: one_check_schema,
    decode: |node, diagnostics| Some(Arc::new(NotRule(decode_rule(node, diagnostics)?))),
};

/// The schema of a check inside another one: a mapping with the key of one deterministic check.
fn one_check_schema() -> Value {
    json!({"type": "object", "minProperties": 1, "maxProperties": 1})
}

fn decode_list(
    key: &'static str,
    node: &TreeNode,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Arc<dyn Rule>>> {
    match node.as_list() {
        None => {
            report_wrong_type(node, key, "a list of checks", diagnostics);
            None
        }
        Some([]) => {
            diagnostics.error("empty-list", node.span, format!("\"{key}\" must have a check"));
            None
        }
        Some(items) => items.iter().map(|item| decode_rule(item, diagnostics)).collect(),
    }
}

/// Reads one check: a mapping from its key to its value. The depth is limited by the depth of a document.
fn decode_rule(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Arc<dyn Rule>> {
    let Some([entry]) = node.as_map() else {
        diagnostics.error("wrong-type", node.span, "a check inside another one is a mapping with one key");
        return None;
    };
    let Some(kind) = rule_kind(&entry.key) else {
        let keys: Vec<&str> = super::RULES.iter().map(|kind| kind.key).collect();
        let help = closest_word(&entry.key, &keys).map_or_else(
            || format!("the checks are {}", keys.join(", ")),
            |known| format!("did you mean \"{known}\"?"),
        );
        let message = format!("there is no check \"{}\" that code decides", entry.key);
        diagnostics.error_with_help("unknown-check", entry.key_span, message, help);
        return None;
    };
    (kind.decode)(&entry.value, diagnostics)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    All,
    Any,
}

/// The rule of the checks `all` and `any`.
#[derive(Debug, Clone)]
struct CombinedRule {
    join: Join,
    /// The joined rules; never empty.
    rules: Vec<Arc<dyn Rule>>,
}

fn value_of(rule: &dyn Rule) -> Value {
    Value::Object(Map::from_iter([(rule.key().to_owned(), rule.value())]))
}

/// Gives what joined rules read by default: the output if each of them reads a text.
fn joined_target<'r>(mut rules: impl Iterator<Item = &'r Arc<dyn Rule>>) -> CheckTarget {
    match rules.all(|rule| rule.default_target() == CheckTarget::Output) {
        true => CheckTarget::Output,
        false => CheckTarget::WholeRun,
    }
}

impl Rule for CombinedRule {
    fn key(&self) -> &str {
        match self.join {
            Join::All => ALL.key,
            Join::Any => ANY.key,
        }
    }

    fn value(&self) -> Value {
        self.rules.iter().map(|rule| value_of(rule.as_ref())).collect()
    }

    fn default_target(&self) -> CheckTarget {
        joined_target(self.rules.iter())
    }

    fn reads_agent_output(&self) -> bool {
        self.rules.iter().any(|rule| rule.reads_agent_output())
    }

    fn is_about_every_text(&self) -> bool {
        self.rules.iter().any(|rule| rule.is_about_every_text())
    }

    fn runs_code(&self) -> bool {
        self.rules.iter().any(|rule| rule.runs_code())
    }

    fn uses_network(&self) -> bool {
        self.rules.iter().any(|rule| rule.uses_network())
    }

    fn read_eval_files(&self, folder: &Path) -> Option<Result<Arc<dyn Rule>, String>> {
        let read: Vec<_> = self.rules.iter().map(|rule| rule.read_eval_files(folder)).collect();
        if read.iter().all(Option::is_none) {
            return None;
        }
        let rules =
            self.rules.iter().zip(read).map(|(rule, read)| read.unwrap_or_else(|| Ok(Arc::clone(rule))));
        let joined = rules.collect::<Result<Vec<_>, String>>();
        Some(joined.map(|rules| Arc::new(Self { join: self.join, rules }) as Arc<dyn Rule>))
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let findings: Vec<CheckFinding> = self.rules.iter().map(|rule| rule.check(evidence)).collect();
        match self.join {
            Join::All => all_pass(&findings),
            Join::Any => any_passes(&findings),
        }
    }
}

fn passed(finding: &&CheckFinding) -> bool {
    finding.verdict == Verdict::Pass
}

fn unanswered(findings: &[CheckFinding]) -> Option<&NotScoredReason> {
    findings.iter().find_map(|finding| match &finding.verdict {
        Verdict::NotScored(why) => Some(why),
        Verdict::Pass | Verdict::Fail => None,
    })
}

/// Describes the findings that decide, with their evidence.
fn explained(passes: bool, summary: String, deciding: Vec<&CheckFinding>) -> CheckFinding {
    let reasons: Vec<&str> = deciding.iter().map(|finding| finding.rationale.as_str()).collect();
    let rationale = if reasons.is_empty() { summary } else { format!("{summary}: {}", reasons.join("; ")) };
    let evidence = deciding.iter().flat_map(|finding| &finding.evidence).take(5).cloned().collect();
    CheckFinding { evidence, ..CheckFinding::new(passes, rationale) }
}

/// Decides `all`. A failure is one whatever has no answer. Then the score is not known, and counts as little as it
/// can: checks without an answer earn nothing.
fn all_pass(findings: &[CheckFinding]) -> CheckFinding {
    let failed: Vec<&CheckFinding> =
        findings.iter().filter(|finding| finding.verdict == Verdict::Fail).collect();
    if failed.is_empty()
        && let Some(why) = unanswered(findings)
    {
        return CheckFinding::not_scored(why.clone());
    }
    let good = findings.iter().filter(passed).count();
    let summary = format!("{good} of {} passed", count_with_noun(findings.len(), "check"));
    let share = good as f64 / findings.len() as f64;
    let finding = explained(failed.is_empty(), summary, failed);
    CheckFinding { score: Some(share), ..finding }
}

fn any_passes(findings: &[CheckFinding]) -> CheckFinding {
    if let Some(found) = findings.iter().find(passed) {
        return explained(true, "one passed".to_owned(), vec![found]);
    }
    match unanswered(findings) {
        Some(why) => CheckFinding::not_scored(why.clone()),
        None => explained(false, "none passed".to_owned(), findings.iter().collect()),
    }
}

/// The rule of the check `not`.
#[derive(Debug, Clone)]
struct NotRule(Arc<dyn Rule>);

impl Rule for NotRule {
    fn key(&self) -> &str {
        NOT.key
    }

    fn value(&self) -> Value {
        value_of(self.0.as_ref())
    }

    fn default_target(&self) -> CheckTarget {
        joined_target(std::iter::once(&self.0))
    }

    fn reads_agent_output(&self) -> bool {
        self.0.reads_agent_output()
    }

    fn is_about_every_text(&self) -> bool {
        !self.0.is_about_every_text()
    }

    fn runs_code(&self) -> bool {
        self.0.runs_code()
    }

    fn uses_network(&self) -> bool {
        self.0.uses_network()
    }

    fn read_eval_files(&self, folder: &Path) -> Option<Result<Arc<dyn Rule>, String>> {
        let read = self.0.read_eval_files(folder)?;
        Some(read.map(|rule| Arc::new(Self(rule)) as Arc<dyn Rule>))
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let finding = self.0.check(evidence);
        let verdict = match finding.verdict {
            Verdict::Pass => Verdict::Fail,
            Verdict::Fail => Verdict::Pass,
            Verdict::NotScored(why) => Verdict::NotScored(why),
        };
        let said = match verdict {
            Verdict::Fail => format!("{}, and must not", finding.rationale),
            Verdict::Pass | Verdict::NotScored(_) => finding.rationale,
        };
        CheckFinding { verdict, rationale: said, score: None, evidence: finding.evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{NoFiles, check_rows};
    use super::super::rule_tests::{
        check_run, decode, run_rule, run_with_calls, run_with_output, run_without_transcript,
    };
    use super::*;

    #[test]
    fn rows() {
        check_rows(
            &ALL,
            &[
                ("[{contains: a}, {not_contains: b}]", "a", "pass"),
                ("[{contains: a}, {not_contains: b}]", "ab", "fail"),
                ("[{contains: a}, {any: [{contains: b}, {regex: '^a'}]}]", "ac", "pass"),
                ("[]", "a", "refused"),
                ("{contains: a}", "a", "refused"),
                ("[{contains: a, regex: b}]", "a", "refused"),
                ("[{containz: a}]", "a", "refused"),
                ("[{regex: '('}]", "a", "refused"),
            ],
        );
        check_rows(
            &ANY,
            &[
                ("[{contains: a}, {contains: b}]", "b", "pass"),
                ("[{contains: a}, {contains: b}]", "c", "fail"),
                ("[]", "a", "refused"),
            ],
        );
        check_rows(
            &NOT,
            &[
                ("{contains: a}", "b", "pass"),
                ("{contains: a}", "a", "fail"),
                ("{not: {contains: a}}", "a", "pass"),
                ("{}", "a", "refused"),
            ],
        );
    }

    #[test]
    fn a_missing_answer_is_never_turned_into_a_verdict() {
        let hidden = run_without_transcript();
        check_run(&NOT, "{tool_used: Read}", &hidden, "not_scored");
        check_run(&ALL, "[{contains: done}, {tool_used: Read}]", &hidden, "not_scored");
        check_run(&ALL, "[{contains: nothing}, {tool_used: Read}]", &hidden, "fail");
        check_run(&ANY, "[{contains: done}, {tool_used: Read}]", &hidden, "pass");
        check_run(&ANY, "[{contains: nothing}, {tool_used: Read}]", &hidden, "not_scored");
        check_run(&NOT, "{tool_used: Read}", &run_with_calls(&[]), "pass");
    }

    #[test]
    fn all_counts_with_its_share() {
        let rule =
            decode(&ALL, "[{contains: a}, {contains: b}, {contains: c}, {contains: d}]").expect("a rule");
        for (text, expected) in [("abcd", 1.0), ("abc", 0.75), ("", 0.0)] {
            assert_eq!(
                run_rule(rule.as_ref(), &run_with_output(text), &NoFiles).score,
                Some(expected),
                "{text}"
            );
        }
    }
}

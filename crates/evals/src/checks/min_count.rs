//! The check `min_count`: a pattern matches at least so many times.

use std::sync::Arc;

use serde_json::{Value, json};

use super::counting::{check_count, decode_count};
use super::regex::decode_pattern_with;
use super::{PatternFlags, PythonPattern, RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Diagnostics, Rule};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
};

pub static KIND: RuleKind = RuleKind {
    key: "min_count",
    doc: "the pattern matches at least `count` times, `^` and `$` at every line",
    schema: || {
        let doc = "The pattern (Python's `re` syntax); ^ and $ match at line ends.";
        let counted = MappingSchema::closed().required("pattern", doc, json_schema::text());
        counted.required("count", "How often it must match at least.", json!({"type": "integer"})).into()
    },
    decode: |node, diagnostics| Some(Arc::new(MinCountRule::decode(node, diagnostics)?)),
};

/// The rule of the check `min_count`: a pattern, and the required count.
#[derive(Debug, Clone)]
pub struct MinCountRule {
    pattern: PythonPattern,
    count: i64,
}

impl MinCountRule {
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let pattern = object.get_non_null("pattern").map(|node| {
            // People write "^- " and mean the beginning of every line.
            let flags = PatternFlags { multiline: true, ..PatternFlags::default() };
            decode_pattern_with("pattern", flags, node, diagnostics)
        });
        let count = object.get_non_null("count").map(|node| decode_count("count", node, diagnostics));
        object.reject_unknown_keys(KIND.key, diagnostics);
        for (key, there) in [("pattern", pattern.is_some()), ("count", count.is_some())] {
            if !there {
                object.report_missing(key, diagnostics);
            }
        }
        Some(Self { pattern: pattern??, count: count?? })
    }
}

impl Rule for MinCountRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!({"pattern": self.pattern.source(), "count": self.count})
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let what = format!("/{}/", excerpt(self.pattern.source(), 80));
        check_count(evidence, |text| self.pattern.count(text), self.count, &what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::check_rows;
    use super::KIND;

    #[test]
    fn rows() {
        check_rows(
            &KIND,
            &[
                ("{pattern: '^- ', count: 2}", "- a\n- b\n", "pass"),
                ("{pattern: '^- ', count: 3}", "- a\n- b\n  - c\n", "fail"),
                ("{pattern: a, count: 2}", "aa", "pass"),
                ("{pattern: aa, count: 2}", "aaa", "fail"),
                ("{pattern: 'a*', count: 4}", "baac", "pass"),
                ("{pattern: x, count: 0}", "", "pass"),
                ("{pattern: x, count: -1}", "", "pass"),
                (
                    r"{pattern: '(?=(a+)+$)a', count: 1}",
                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                    "not_scored",
                ),
                ("{pattern: '(', count: 1}", "", "refused"),
                ("{pattern: x}", "", "refused"),
                ("{count: 1}", "", "refused"),
                ("{pattern: x, count: '1'}", "", "refused"),
                ("{pattern: x, count: true}", "", "refused"),
                ("{pattern: x, count: 1, flags: i}", "", "refused"),
                ("x", "", "refused"),
            ],
        );
    }
}

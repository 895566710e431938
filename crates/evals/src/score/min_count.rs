use std::sync::Arc;

use serde_json::{Value, json};

use super::at_least::{decode_count, finding};
use super::regex::decode_pattern_with;
use super::{Flags, Pattern, RuleKind, excerpt};
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule};
use practicum_core::tree::{
    Node, Object,
    shape::{self, Mapping},
};

pub static KIND: RuleKind = RuleKind {
    key: "min_count",
    doc: "the pattern matches at least `count` times, `^` and `$` at every line",
    schema: || {
        let doc = "The pattern (Python's `re` syntax); ^ and $ match at line ends.";
        let counted = Mapping::closed().must("pattern", doc, shape::text());
        counted.must("count", "How often it must match at least.", json!({"type": "integer"})).into()
    },
    looks_at: LooksAt::Output,
    decode: |node, diagnostics| Some(Arc::new(MinCount::decode(node, diagnostics)?)),
};

#[derive(Debug, Clone)]
pub struct MinCount {
    pattern: Pattern,
    count: i64,
}

impl MinCount {
    fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut object = Object::new(node, KIND.key, diagnostics)?;
        let pattern = object.given("pattern").map(|node| {
            // People write "^- " and mean every line.
            let flags = Flags { multiline: true, ..Flags::default() };
            decode_pattern_with("pattern", flags, node, diagnostics)
        });
        let count = object.given("count").map(|node| decode_count("count", node, diagnostics));
        object.refuse_rest(KIND.key, diagnostics);
        for (key, there) in [("pattern", pattern.is_some()), ("count", count.is_some())] {
            if !there {
                object.missing(key, diagnostics);
            }
        }
        Some(Self { pattern: pattern??, count: count?? })
    }
}

impl Rule for MinCount {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!({"pattern": self.pattern.source(), "count": self.count})
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let what = format!("/{}/", excerpt(self.pattern.source(), 80));
        finding(evidence, |text| self.pattern.count(text), self.count, &what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::check;
    use super::KIND;

    #[test]
    fn rows() {
        check(
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

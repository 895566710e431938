//! The rule that every key of the frontmatter has the right kind of value.

use crate::lint::frontmatter_keys::value_kind;
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;
use practicum_core::tree::NodeData;

pub static RULE: LintRule = LintRule {
    code: "wrong-type",
    severity: Severity::Error,
    summary: "Every key of the frontmatter has the kind of value that is read.",
    rationale: "YAML turns 123 into a number, yes into text and [a] into a list. Agents that expect text \
          refuse the skill or see something else than was meant.",
    bad_example: "---\nname: 123\ndescription: [Writes release notes]\n---",
    good_example: "---\nname: \"123\"\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    for entry in draft.frontmatter_entries().unwrap_or_default() {
        let Some(kind) = value_kind(&entry.key).filter(|kind| !kind.accepts(&entry.value)) else { continue };
        let message =
            format!("\"{}\" must be {}, not {}", entry.key, kind.describe(), entry.value.kind_name());
        match entry.value.data {
            NodeData::Int(_) | NodeData::Float(_) | NodeData::Bool(_) => {
                findings.add_with_help(entry.value.span, message, "quotes make text of it");
            }
            NodeData::Null | NodeData::Text(_) | NodeData::List(_) | NodeData::Map(_) => {
                findings.add(entry.value.span, message);
            }
        }
    }
}

use crate::lint::keys::kind;
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;
use practicum_core::tree::Data;

pub static RULE: LintRule = LintRule {
    code: "wrong-type",
    severity: Severity::Error,
    summary: "Every key of the frontmatter has the kind of value that is read.",
    why: "YAML turns 123 into a number, yes into text and [a] into a list. Agents that expect text \
          refuse the skill or see something else than was meant.",
    bad: "---\nname: 123\ndescription: [Writes release notes]\n---",
    good: "---\nname: \"123\"\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    for entry in draft.entries().unwrap_or_default() {
        let Some(kind) = kind(&entry.key).filter(|kind| !kind.fits(&entry.value)) else { continue };
        let message = format!("\"{}\" must be {}, not {}", entry.key, kind.what(), entry.value.what());
        match entry.value.data {
            Data::Int(_) | Data::Float(_) | Data::Bool(_) => {
                findings.add_help(entry.value.span, message, "quotes make text of it");
            }
            Data::Null | Data::Text(_) | Data::List(_) | Data::Map(_) => {
                findings.add(entry.value.span, message);
            }
        }
    }
}

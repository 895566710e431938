use crate::lint::reference::{Target, mentions, target};
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

const LONG: usize = 300;

pub static RULE: LintRule = LintRule {
    code: "no-references",
    severity: Severity::Notice,
    summary: "A long body moves details into files that are read when they are needed.",
    why: "A skill is read in three steps: its description always, its body when it is taken up, its \
          other files when the body sends the agent there. A body of more than 300 lines that refers \
          to no other file uses only two of them.",
    bad: "SKILL.md with 400 lines, the whole API reference among them",
    good: "For the options of each command see [the reference](references/commands.md).",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let lines = draft.body().trim_end().lines().count();
    let refers = || {
        draft.page.links.iter().any(|link| matches!(target(&link.target), Target::Inside(_)))
            || !mentions(draft).is_empty()
    };
    if lines > LONG && !refers() {
        findings.add_help(
            draft.body_begins(),
            format!("the body has {lines} lines and refers to no other file of the skill"),
            "move what is not always needed into files below references/",
        );
    }
}

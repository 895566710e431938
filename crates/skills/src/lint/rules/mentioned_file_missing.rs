use std::collections::HashSet;

use crate::lint::reference::{Standing, mentions, standing};
use crate::lint::{Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "mentioned-file-missing",
    severity: Severity::Warning,
    summary: "A path below scripts/, references/ or assets/ that is mentioned in code is there.",
    why: "Paths that begin with one of these folders are read from the root of the skill. An agent that \
          is told to run scripts/extract.py and finds none writes one of its own. Where a file of the \
          user's project is meant, say so in the path: path/to/project/scripts/x.sh or $PROJECT/scripts/x.sh.",
    bad: "Run `python scripts/extract.py FILE`.      (there is no scripts/extract.py)",
    good: "Run `python scripts/extract.py FILE`.      (there is one)",
    convention: None,
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for mention in mentions(draft) {
        if seen.insert(mention.path.clone()) && standing(draft.folder(), &mention.path) == Standing::Nothing {
            findings.add_help(
                mention.span,
                format!("the skill has no file \"{}\"", mention.path.display()),
                "add it, mend the path, or make clear that the user's project is meant",
            );
        }
    }
}

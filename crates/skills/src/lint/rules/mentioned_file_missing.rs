//! The rule that files mentioned in code exist.

use std::collections::HashSet;

use crate::lint::reference::{ReferencedPath, find_mentions, resolve_reference};
use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "mentioned-file-missing",
    severity: Severity::Warning,
    summary: "A path below scripts/, references/ or assets/ that is mentioned in code is there.",
    rationale: "Paths that begin with one of these folders are read from the root of the skill. An agent that \
          is told to run scripts/extract.py and finds none writes one of its own. Where a file of the \
          user's project is meant, say so in the path: path/to/project/scripts/x.sh or $PROJECT/scripts/x.sh.",
    bad_example: "Run `python scripts/extract.py FILE`.      (there is no scripts/extract.py)",
    good_example: "Run `python scripts/extract.py FILE`.      (there is one)",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let mut seen = HashSet::new();
    for mention in find_mentions(draft) {
        if seen.insert(mention.path.clone())
            && resolve_reference(draft.folder(), &mention.path) == ReferencedPath::Nothing
        {
            findings.add_with_help(
                mention.span,
                format!("the skill has no file \"{}\"", mention.path.display()),
                "add it, mend the path, or make clear that the user's project is meant",
            );
        }
    }
}

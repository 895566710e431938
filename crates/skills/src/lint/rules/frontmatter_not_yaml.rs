//! The rule that every value of the frontmatter is valid YAML.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "frontmatter-not-yaml",
    severity: Severity::Warning,
    summary: "Every value of the frontmatter is valid YAML, not only text that some agents can guess.",
    rationale: "Agents try to read a frontmatter that is not valid YAML, and each does it in its own way: one \
          takes the line as it stands, the next loses the description or leaves the skill out. The usual \
          causes are a colon followed by a space inside a value, and a value that begins with a bracket, \
          @, * or a backtick. Such a value goes into quotes, or below a >- .",
    bad_example: "---\nname: release-notes\ndescription: Writes notes. Example: a changelog\n---",
    good_example: "---\nname: release-notes\ndescription: \"Writes notes. Example: a changelog\"\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    for problem in draft.warnings.iter() {
        let help = problem.help.as_deref().unwrap_or("put the value in quotes");
        findings.add_with_help(problem.span, &*problem.message, help);
    }
}

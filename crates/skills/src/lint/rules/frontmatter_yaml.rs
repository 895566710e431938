//! The rule that the frontmatter can be read and is a mapping.

use crate::lint::{Convention, DraftFrontmatter, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "frontmatter-yaml",
    severity: Severity::Error,
    summary: "The frontmatter can be read, and is a mapping of keys to values.",
    rationale: "A frontmatter that no agent can read has no name and no description. The usual causes are a \
          quote that is never closed, and text after a closing quote. What agents read although it is not \
          valid YAML is reported by frontmatter-not-yaml.",
    bad_example: "---\nname: release-notes\ndescription: \"Writes notes\" from tags\n---",
    good_example: "---\nname: release-notes\ndescription: Writes \"notes\" from tags\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    match &draft.frontmatter {
        DraftFrontmatter::InvalidYaml(problems) => {
            for problem in problems.iter() {
                let span = problem.span.unwrap_or_else(|| draft.opening_fence());
                let quotes = "put a value that contains a colon into quotes";
                let help = problem.help.clone().or_else(|| {
                    let line_start =
                        draft.text[..span.start.min(draft.text.len())].rfind('\n').map_or(0, |at| at + 1);
                    let line = draft.text[line_start..].lines().next().unwrap_or_default();
                    (line.matches(": ").count() > 1).then(|| quotes.to_owned())
                });
                match help {
                    Some(help) => findings.add_with_help(span, &*problem.message, help),
                    None => findings.add(span, &*problem.message),
                }
            }
        }
        DraftFrontmatter::NotAMapping(node) => findings.add_with_help(
            node.span,
            format!("the frontmatter must be a mapping, not {}", node.kind_name()),
            "write one \"key: value\" a line",
        ),
        DraftFrontmatter::Unreadable { .. }
        | DraftFrontmatter::Missing
        | DraftFrontmatter::Unclosed
        | DraftFrontmatter::Mapping(_) => {}
    }
}

//! The rule that the frontmatter has only keys that some agent reads.

use crate::lint::frontmatter_keys::{KNOWN_KEYS, value_kind};
use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;
use practicum_core::tree::closest_word;

pub static RULE: LintRule = LintRule {
    code: "unknown-key",
    severity: Severity::Warning,
    summary: "The frontmatter has only keys that some agent reads.",
    rationale: "A misspelled key is ignored without a word. Known are the keys of the Agent Skills \
          specification and those that Claude Code documents beyond them; what is meant for a tool \
          of your own goes below metadata.",
    bad_example: "---\nname: release-notes\ndescripton: Writes release notes.\nauthor: me\n---",
    good_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\nmetadata:\n  author: me\n---",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let known: Vec<&str> = KNOWN_KEYS.iter().map(|(key, _)| *key).collect();
    for entry in draft
        .frontmatter_entries()
        .unwrap_or_default()
        .iter()
        .filter(|entry| value_kind(&entry.key).is_none())
    {
        let help = closest_word(&entry.key, &known).map_or_else(
            || "a key of your own goes below \"metadata\"".to_owned(),
            |known| format!("did you mean \"{known}\"?"),
        );
        findings.add_with_help(
            entry.key_span,
            format!("no agent is known to read the key \"{}\"", entry.key),
            help,
        );
    }
}

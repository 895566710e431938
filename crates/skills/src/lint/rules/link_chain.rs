//! The rule that SKILL.md itself links to every file of the skill.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::lint::reference::{LinkTarget, ReferencedPath, classify_link, resolve_reference};
use crate::lint::skill_markdown::SkillMarkdown;
use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;
use practicum_core::tree::read_bounded;

/// Limits against folders that are made to keep a linter busy.
const MAX_FILES: usize = 200;
const MAX_FILE_SIZE: u64 = 1024 * 1024;
const MAX_TOTAL_BYTES: usize = 8 * 1024 * 1024;

pub static RULE: LintRule = LintRule {
    code: "link-chain",
    severity: Severity::Warning,
    summary: "Every file that is worth reading is linked from SKILL.md itself.",
    rationale: "Agents often read only the beginning of a file that another file sent them to, and seldom \
          follow a second link. The specification wants references one level deep. A file may link to \
          another that SKILL.md links to as well.",
    bad_example: "SKILL.md: see [advanced](references/advanced.md)\nreferences/advanced.md: see [details](details.md)",
    good_example: "SKILL.md: see [advanced](references/advanced.md) and [details](references/details.md)",
    convention: Some(crate::lint::Convention::Disclosure),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Ok(root) = draft.folder().canonicalize() else { return };
    let mut direct: HashSet<PathBuf> = draft.file.canonicalize().into_iter().collect();
    let mut references = Vec::new();
    for link in &draft.markdown.links {
        let LinkTarget::Inside(path) = classify_link(&link.target) else { continue };
        if let ReferencedPath::File(file) = resolve_reference(&root, &path)
            && direct.insert(file.clone())
            && file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
        {
            references.push((link, file));
        }
    }
    let mut bytes_left = MAX_TOTAL_BYTES;
    for (link, file) in references.into_iter().take(MAX_FILES) {
        let Ok(bytes) = read_bounded(&file, MAX_FILE_SIZE) else { continue };
        bytes_left = bytes_left.saturating_sub(bytes.len());
        if bytes_left == 0 {
            return;
        }
        if let Some(further) = find_indirect_link(&root, &file, &String::from_utf8_lossy(&bytes), &direct) {
            findings.add_with_help(
                link.span,
                format!(
                    "\"{}\" links on to \"{}\", two steps away from here",
                    super::shorten_quote(&link.target),
                    super::shorten_quote(&further)
                ),
                "link to that file from here too",
            );
        }
    }
}

/// Finds the first link to a file of the skill that SKILL.md does not link to.
fn find_indirect_link(root: &Path, file: &Path, text: &str, direct: &HashSet<PathBuf>) -> Option<String> {
    let below = file.parent()?.strip_prefix(root).ok()?;
    SkillMarkdown::parse(text, 0).links.into_iter().filter(|link| !link.is_image).find_map(|link| {
        // A link that leaves its own folder can still lead to a file inside the skill.
        let path = link.target.split(['#', '?']).next()?;
        let from_root = crate::skill::normalise_path(&below.join(path));
        if classify_link(&link.target) == LinkTarget::External
            || classify_link(&link.target) == LinkTarget::Placeholder
        {
            return None;
        }
        let LinkTarget::Inside(inside) = classify_link(from_root.to_str()?) else { return None };
        match resolve_reference(root, &inside) {
            ReferencedPath::File(real) if !direct.contains(&real) => Some(link.target),
            ReferencedPath::File(_)
            | ReferencedPath::Folder
            | ReferencedPath::Outside
            | ReferencedPath::Nothing => None,
        }
    })
}

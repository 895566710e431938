use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::lint::page::Page;
use crate::lint::reference::{Standing, Target, standing, target};
use crate::lint::{Draft, Findings, LintRule};
use practicum_core::model::Severity;
use practicum_core::tree::read_bounded;

/// Bounds for folders made to keep a linter busy.
const MOST_FILES: usize = 200;
const LARGEST: u64 = 1024 * 1024;
const MOST_BYTES: usize = 8 * 1024 * 1024;

pub static RULE: LintRule = LintRule {
    code: "link-chain",
    severity: Severity::Warning,
    summary: "Every file that is worth reading is linked from SKILL.md itself.",
    why: "Agents often read only the beginning of a file that another file sent them to, and seldom \
          follow a second link. The specification wants references one level deep. A file may link to \
          another that SKILL.md links to as well.",
    bad: "SKILL.md: see [advanced](references/advanced.md)\nreferences/advanced.md: see [details](details.md)",
    good: "SKILL.md: see [advanced](references/advanced.md) and [details](references/details.md)",
    convention: Some(crate::lint::Convention::Disclosure),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Ok(root) = draft.folder().canonicalize() else { return };
    let mut direct: HashSet<PathBuf> = draft.file.canonicalize().into_iter().collect();
    let mut references = Vec::new();
    for link in &draft.page.links {
        let Target::Inside(path) = target(&link.target) else { continue };
        if let Standing::File(file) = standing(&root, &path)
            && direct.insert(file.clone())
            && file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
        {
            references.push((link, file));
        }
    }
    let mut bytes_left = MOST_BYTES;
    for (link, file) in references.into_iter().take(MOST_FILES) {
        let Ok(bytes) = read_bounded(&file, LARGEST) else { continue };
        bytes_left = bytes_left.saturating_sub(bytes.len());
        if bytes_left == 0 {
            return;
        }
        if let Some(further) = further(&root, &file, &String::from_utf8_lossy(&bytes), &direct) {
            findings.add_help(
                link.span,
                format!(
                    "\"{}\" links on to \"{}\", two steps away from here",
                    super::shortened(&link.target),
                    super::shortened(&further)
                ),
                "link to that file from here too",
            );
        }
    }
}

/// The first link to a file of the skill that SKILL.md does not link to.
fn further(root: &Path, file: &Path, text: &str, direct: &HashSet<PathBuf>) -> Option<String> {
    let below = file.parent()?.strip_prefix(root).ok()?;
    Page::of(text, 0).links.into_iter().filter(|link| !link.image).find_map(|link| {
        // What a link leaves its own folder for can still be inside the skill.
        let path = link.target.split(['#', '?']).next()?;
        let from_root = crate::skill::tidy(&below.join(path));
        if target(&link.target) == Target::Elsewhere || target(&link.target) == Target::Unclear {
            return None;
        }
        let Target::Inside(inside) = target(from_root.to_str()?) else { return None };
        match standing(root, &inside) {
            Standing::File(real) if !direct.contains(&real) => Some(link.target),
            Standing::File(_) | Standing::Folder | Standing::Outside | Standing::Nothing => None,
        }
    })
}

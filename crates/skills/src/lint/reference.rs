//! Files that a skill's Markdown refers to.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::draft::Draft;
use super::prose::own;
use crate::skill::tidy;
use practicum_core::model::Span;

/// What a link's target is, by its letters alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A URL, an anchor, nothing.
    Elsewhere,
    /// A placeholder, as documentation of links has them.
    Unclear,
    /// A path that leaves the skill's folder.
    Outside,
    /// A path below the skill's folder.
    Inside(PathBuf),
}

pub(super) fn target(link: &str) -> Target {
    let path = link.split(['#', '?']).next().unwrap_or_default().trim();
    if path.is_empty() || path.starts_with("//") {
        return Target::Elsewhere;
    }
    if let Some(scheme) = scheme(path) {
        return if scheme.eq_ignore_ascii_case("file") { Target::Outside } else { Target::Elsewhere };
    }
    if path.contains(['<', '>', '{', '}', '$', '*', '|', '"', '\0', '…']) || path.contains("...") {
        return Target::Unclear;
    }
    let path = percent_decoded(path);
    if path.starts_with(['/', '~', '\\']) || path.as_bytes().get(1) == Some(&b':') {
        return Target::Outside;
    }
    let path = tidy(Path::new(&path));
    match path.components().next() {
        Some(Component::ParentDir | Component::RootDir | Component::Prefix(_)) => Target::Outside,
        Some(Component::Normal(_) | Component::CurDir) | None => Target::Inside(path),
    }
}

/// The scheme of a URL. One letter is a Windows drive.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let fits = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    fits.then_some(scheme)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = (first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// What stands at a path below the skill's folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Nothing,
    /// A symbolic link leads out of the folder.
    Outside,
    File(PathBuf),
    Folder,
}

pub(super) fn standing(folder: &Path, inside: &Path) -> Standing {
    let (Ok(root), Ok(real)) = (folder.canonicalize(), folder.join(inside).canonicalize()) else {
        return Standing::Nothing;
    };
    if !real.starts_with(&root) {
        Standing::Outside
    } else if real.is_dir() {
        Standing::Folder
    } else {
        Standing::File(real)
    }
}

/// A file of the skill that is named in code instead of being linked to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention {
    pub path: PathBuf,
    pub span: Span,
}

/// What may stand before a path that begins at the skill's root, and the path.
const MENTION: &str = r#"(\./|(?:\$\{[^}\s]*\}|\$[A-Za-z_]+|\{[^}\s]*\}|<[^>\s]*>)/)?((?:scripts|references|assets)/[A-Za-z0-9_./-]*\.[A-Za-z0-9]+)"#;

static MENTIONS: LazyLock<Regex> = LazyLock::new(|| own(&format!(r#"(?:^|[\s"'`(=:,;|])(?:{MENTION})"#)));

static LEADING: LazyLock<Regex> = LazyLock::new(|| own(&format!("^(?:{MENTION})")));

/// Every mention in code spans, and of scripts in code blocks. Other paths in blocks are too often
/// part of an example.
pub(super) fn mentions(draft: &Draft) -> Vec<Mention> {
    let spans = draft.page.code_spans.iter().flat_map(|span| mentions_in(draft, *span));
    let mut found: Vec<Mention> = spans
        .filter(|mention| !linked(draft, mention.span) && !announced_as_example(draft, mention.span))
        .collect();
    let blocks = draft.page.code_blocks.iter().flat_map(|block| mentions_in(draft, block.span));
    found.extend(blocks.filter(|mention| mention.path.starts_with("scripts")));
    found
}

/// Whether a link says the same already.
fn linked(draft: &Draft, span: Span) -> bool {
    let links = &draft.page.links;
    let after = links.partition_point(|link| link.span.start <= span.start);
    links[..after].last().is_some_and(|link| span.end <= link.span.end)
}

/// Whether the words before it on its line call it an example.
fn announced_as_example(draft: &Draft, span: Span) -> bool {
    static EXAMPLE: LazyLock<Regex> = LazyLock::new(|| own(r"(?i)\bexamples?\b|\be\.g\.|\bsuch as\b"));
    // Bounded, because a line can be the whole file.
    const FAR: usize = 200;
    let before = &draft.text[..span.start];
    let line = before.char_indices().rev().take(FAR).take_while(|(_, c)| *c != '\n').last();
    EXAMPLE.is_match(&before[line.map_or(before.len(), |(start, _)| start)..])
}

fn mentions_in(draft: &Draft, within: Span) -> Vec<Mention> {
    let source = draft.text.get(within.start..within.end).unwrap_or_default();
    MENTIONS.captures_iter(source).filter_map(|found| mention(source, within.start, &found)).collect()
}

/// The mention that a command begins with.
pub(super) fn leading_mention(command: &str, at: usize) -> Option<Mention> {
    mention(command, at, &LEADING.captures(command)?)
}

fn mention(source: &str, offset: usize, found: &regex::Captures<'_>) -> Option<Mention> {
    let (prefix, path) = (found.get(1).map_or("", |prefix| prefix.as_str()), found.get(2)?);
    let variable = prefix.trim_end_matches('/').to_lowercase();
    // Another variable leads somewhere else: to the project, to a plugin.
    let ours =
        matches!(variable.as_str(), "" | ".") || variable.contains("skill") || variable.contains("base");
    let goes_on = source[path.end()..].starts_with(['*', '{', '<', '[', '$', '/', '_', '-']);
    match target(path.as_str()) {
        Target::Inside(inside) if ours && !goes_on => {
            Some(Mention { path: inside, span: Span::new(offset + path.start(), offset + path.end()) })
        }
        Target::Inside(_) | Target::Elsewhere | Target::Unclear | Target::Outside => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_told_apart_by_their_letters() {
        let inside = |path: &str| Target::Inside(PathBuf::from(path));
        for (link, expected) in [
            ("https://example.com/a.md", Target::Elsewhere),
            ("mailto:a@b.c", Target::Elsewhere),
            ("//host/x", Target::Elsewhere),
            ("#section", Target::Elsewhere),
            ("", Target::Elsewhere),
            ("references/a.md#part", inside("references/a.md")),
            ("./references/../b.md", inside("b.md")),
            ("my%20file.md", inside("my file.md")),
            ("100%.md", inside("100%.md")),
            ("%e2%82%ac.md", inside("€.md")),
            ("../../etc/passwd", Target::Outside),
            ("references/../../x.md", Target::Outside),
            ("%2e%2e/x.md", Target::Outside),
            ("/etc/passwd", Target::Outside),
            ("~/notes.md", Target::Outside),
            ("C:\\x.md", Target::Outside),
            ("file:///etc/passwd", Target::Outside),
            ("references/<topic>.md", Target::Unclear),
            ("a/.../b.md", Target::Unclear),
        ] {
            assert_eq!(target(link), expected, "{link:?}");
        }
    }

    #[test]
    fn only_paths_from_the_root_of_the_skill_are_mentions() {
        for (code, expected) in [
            ("python scripts/a.py --all", vec!["scripts/a.py"]),
            ("./scripts/a.sh && scripts/b.sh", vec!["scripts/a.sh", "scripts/b.sh"]),
            ("${CLAUDE_SKILL_DIR}/scripts/a.sh", vec!["scripts/a.sh"]),
            ("{baseDir}/scripts/a.sh", vec!["scripts/a.sh"]),
            ("$PROJECT/scripts/a.sh", vec![]),
            ("my-repo/scripts/a.sh", vec![]),
            ("/scripts/a.sh", vec![]),
            ("scripts/*.py scripts/{a,b}.py scripts/<name>.py scripts/a.py*", vec![]),
            ("scripts/", vec![]),
            ("see references/a.b.md.", vec!["references/a.b.md"]),
            ("scripts/../../x.sh", vec![]),
        ] {
            let draft = Draft::of(Path::new("x/SKILL.md"), &format!("`{code}`"));
            let paths: Vec<PathBuf> = mentions(&draft).into_iter().map(|mention| mention.path).collect();
            assert_eq!(paths, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{code:?}");
        }
    }
}

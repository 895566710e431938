//! Files that a skill's Markdown refers to.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use regex::Regex;

use super::draft::SkillFileDraft;
use super::prose::compile_pattern;
use crate::skill::normalise_path;
use practicum_core::model::Span;

/// The kind of a link's target, by its text alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkTarget {
    /// A URL, an anchor, or nothing.
    External,
    /// A placeholder, as documentation about links has them.
    Placeholder,
    /// A path that leaves the skill's folder.
    Outside,
    /// A path below the skill's folder.
    Inside(PathBuf),
}

pub(super) fn classify_link(link: &str) -> LinkTarget {
    let path = link.split(['#', '?']).next().unwrap_or_default().trim();
    if path.is_empty() || path.starts_with("//") {
        return LinkTarget::External;
    }
    if let Some(scheme) = scheme(path) {
        return if scheme.eq_ignore_ascii_case("file") { LinkTarget::Outside } else { LinkTarget::External };
    }
    if path.contains(['<', '>', '{', '}', '$', '*', '|', '"', '\0', '…']) || path.contains("...") {
        return LinkTarget::Placeholder;
    }
    let path = percent_decode_str(path).decode_utf8().unwrap_or(path.into());
    if path.starts_with(['/', '~', '\\']) || path.as_bytes().get(1) == Some(&b':') {
        return LinkTarget::Outside;
    }
    let path = normalise_path(Path::new(path.as_ref()));
    match path.components().next() {
        Some(Component::ParentDir | Component::RootDir | Component::Prefix(_)) => LinkTarget::Outside,
        Some(Component::Normal(_) | Component::CurDir) | None => LinkTarget::Inside(path),
    }
}

/// Gives the scheme of a URL. A single letter is a Windows drive, not a scheme.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let fits = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    fits.then_some(scheme)
}

/// The kind of thing at a path below the skill's folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReferencedPath {
    Nothing,
    /// A symbolic link that leads out of the folder.
    Outside,
    File(PathBuf),
    Folder,
}

pub(super) fn resolve_reference(folder: &Path, inside: &Path) -> ReferencedPath {
    let (Ok(root), Ok(real)) = (folder.canonicalize(), folder.join(inside).canonicalize()) else {
        return ReferencedPath::Nothing;
    };
    if !real.starts_with(&root) {
        ReferencedPath::Outside
    } else if real.is_dir() {
        ReferencedPath::Folder
    } else {
        ReferencedPath::File(real)
    }
}

/// A file of the skill that is named in code instead of being linked to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileMention {
    pub path: PathBuf,
    pub span: Span,
}

/// A pattern for a path that begins at the skill's root, with the prefixes that may come before it.
const MENTION: &str = r#"(\./|(?:\$\{[^}\s]*\}|\$[A-Za-z_]+|\{[^}\s]*\}|<[^>\s]*>)/)?((?:scripts|references|assets)/[A-Za-z0-9_./-]*\.[A-Za-z0-9]+)"#;

static MENTION_ANYWHERE: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(&format!(r#"(?:^|[\s"'`(=:,;|])(?:{MENTION})"#)));

static MENTION_AT_START: LazyLock<Regex> = LazyLock::new(|| compile_pattern(&format!("^(?:{MENTION})")));

/// Finds every mention in code spans, and mentions of scripts in code blocks. Other paths in blocks are too often
/// part of an example.
pub(super) fn find_mentions(draft: &SkillFileDraft) -> Vec<FileMention> {
    let spans = draft.markdown.code_spans.iter().flat_map(|span| find_mentions_in(draft, *span));
    let mut found: Vec<FileMention> = spans
        .filter(|mention| {
            !is_linked_already(draft, mention.span) && !is_introduced_as_example(draft, mention.span)
        })
        .collect();
    let blocks = draft.markdown.code_blocks.iter().flat_map(|block| find_mentions_in(draft, block.span));
    found.extend(blocks.filter(|mention| mention.path.starts_with("scripts")));
    found
}

/// Says whether a link at this place already refers to the file.
fn is_linked_already(draft: &SkillFileDraft, span: Span) -> bool {
    let links = &draft.markdown.links;
    let after = links.partition_point(|link| link.span.start <= span.start);
    links[..after].last().is_some_and(|link| span.end <= link.span.end)
}

/// Says whether the words before a mention on its line call it an example.
fn is_introduced_as_example(draft: &SkillFileDraft, span: Span) -> bool {
    static EXAMPLE_WORDS: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"(?i)\bexamples?\b|\be\.g\.|\bsuch as\b"));
    // The look back is limited, because a line can be the whole file.
    const MAX_LOOKBACK: usize = 200;
    let before = &draft.text[..span.start];
    let line = before.char_indices().rev().take(MAX_LOOKBACK).take_while(|(_, c)| *c != '\n').last();
    EXAMPLE_WORDS.is_match(&before[line.map_or(before.len(), |(start, _)| start)..])
}

fn find_mentions_in(draft: &SkillFileDraft, within: Span) -> Vec<FileMention> {
    let source = draft.text.get(within.start..within.end).unwrap_or_default();
    MENTION_ANYWHERE
        .captures_iter(source)
        .filter_map(|found| mention_from_match(source, within.start, &found))
        .collect()
}

/// Finds the mention that a command begins with.
pub(super) fn leading_mention(command: &str, at: usize) -> Option<FileMention> {
    mention_from_match(command, at, &MENTION_AT_START.captures(command)?)
}

fn mention_from_match(source: &str, offset: usize, found: &regex::Captures<'_>) -> Option<FileMention> {
    let (prefix, path) = (found.get(1).map_or("", |prefix| prefix.as_str()), found.get(2)?);
    let variable = prefix.trim_end_matches('/').to_lowercase();
    // Another variable leads elsewhere: to the project, or to a plugin.
    let ours =
        matches!(variable.as_str(), "" | ".") || variable.contains("skill") || variable.contains("base");
    let goes_on = source[path.end()..].starts_with(['*', '{', '<', '[', '$', '/', '_', '-']);
    match classify_link(path.as_str()) {
        LinkTarget::Inside(inside) if ours && !goes_on => {
            Some(FileMention { path: inside, span: Span::new(offset + path.start(), offset + path.end()) })
        }
        LinkTarget::Inside(_) | LinkTarget::External | LinkTarget::Placeholder | LinkTarget::Outside => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_told_apart_by_their_letters() {
        let inside = |path: &str| LinkTarget::Inside(PathBuf::from(path));
        for (link, expected) in [
            ("https://example.com/a.md", LinkTarget::External),
            ("mailto:a@b.c", LinkTarget::External),
            ("//host/x", LinkTarget::External),
            ("#section", LinkTarget::External),
            ("", LinkTarget::External),
            ("references/a.md#part", inside("references/a.md")),
            ("./references/../b.md", inside("b.md")),
            ("my%20file.md", inside("my file.md")),
            ("100%.md", inside("100%.md")),
            ("%+f%4.md", inside("%+f%4.md")),
            ("%ff.md", inside("%ff.md")),
            ("%e2%82%ac.md", inside("€.md")),
            ("../../etc/passwd", LinkTarget::Outside),
            ("references/../../x.md", LinkTarget::Outside),
            ("%2e%2e/x.md", LinkTarget::Outside),
            ("/etc/passwd", LinkTarget::Outside),
            ("~/notes.md", LinkTarget::Outside),
            ("C:\\x.md", LinkTarget::Outside),
            ("file:///etc/passwd", LinkTarget::Outside),
            ("references/<topic>.md", LinkTarget::Placeholder),
            ("a/.../b.md", LinkTarget::Placeholder),
        ] {
            assert_eq!(classify_link(link), expected, "{link:?}");
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
            let draft = SkillFileDraft::from_text(Path::new("x/SKILL.md"), &format!("`{code}`"));
            let paths: Vec<PathBuf> = find_mentions(&draft).into_iter().map(|mention| mention.path).collect();
            assert_eq!(paths, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{code:?}");
        }
    }
}

//! Reads the fixtures of a case: the files that it declares.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use practicum_core::model::{Diagnostics, Fixture, FixtureAccess, InlineFile, RelPath, Span};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, report_wrong_type};
use practicum_skills::skill::normalise_path;

/// The folders in which the files of a case may lie, in the order of the search.
#[derive(Debug, Default)]
pub struct FixtureFolders {
    pub roots: Vec<PathBuf>,
    /// A folder whose own path a declared path may begin with: `evals/…/<name>/`.
    pub own_folder: Option<FolderPrefix>,
}

/// A folder that a declared path may begin with, and the names that may stand for it.
#[derive(Debug)]
pub struct FolderPrefix {
    pub folder: PathBuf,
    /// The names that may be the last part of that beginning.
    pub names: Vec<String>,
}

impl FixtureFolders {
    /// Says whether a path, after following links, lies in one of the folders for a case's files.
    fn contains_path(&self, path: &Path) -> bool {
        let below = self.own_folder.as_ref().map(|below| &below.folder);
        let target = real_path(path);
        self.roots.iter().chain(below).any(|root| target.starts_with(real_path(root)))
    }

    fn candidates(&self, declared: &RelPath) -> Vec<PathBuf> {
        let mut candidates: Vec<PathBuf> = self.roots.iter().map(|root| declared.join_to(root)).collect();
        if let Some(FolderPrefix { folder, names }) = &self.own_folder {
            let parts: Vec<&str> = declared.as_str().split('/').collect();
            if parts.first() == Some(&"evals") {
                let last = parts.iter().rposition(|part| names.iter().any(|name| name == part)).unwrap_or(0);
                let rest: PathBuf = parts[last + 1..].iter().collect();
                if rest != Path::new("") {
                    candidates.push(folder.join(rest));
                }
            }
        }
        let mut seen = HashSet::new();
        candidates.iter().map(|path| normalise_path(path)).filter(|path| seen.insert(path.clone())).collect()
    }
}

/// Gives a path with all links followed, or the path itself if that is not possible.
fn real_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Says whether a path that seems to lie in a project leaves it through a link.
pub fn leads_out_of(project: &Path, path: &Path) -> bool {
    (path.is_symlink() || path.starts_with(project)) && !real_path(path).starts_with(real_path(project))
}

/// Says whether a path, after following links, lies in none of these folders. A path that does not exist yet lies where
/// its nearest folder does.
pub fn lies_in_none(folders: &[&Path], path: &Path) -> bool {
    let path = normalise_path(path);
    let there = path.ancestors().find(|above| above.exists()).unwrap_or(&path);
    let real = real_path(there);
    let is_in =
        |folder: &&Path| path.starts_with(normalise_path(folder)) && real.starts_with(real_path(folder));
    let through_link = |folder: &&Path| real.starts_with(real_path(folder)) && there == path;
    !folders.iter().any(|folder| is_in(folder) || through_link(folder))
}

/// Says whether a path lies outside a project, also if there is nothing at the path.
pub fn lies_outside(project: &Path, path: &Path) -> bool {
    let there = path.ancestors().find(|above| above.exists()).unwrap_or(path);
    !path.starts_with(project) && !real_path(there).starts_with(real_path(project))
}

/// Reads the files of a case: read-only, at the declared path. A missing file is a warning here, because checking
/// and converting can continue without it; running cannot.
pub fn read_fixtures(
    object: &mut ObjectReader<'_>,
    files: &FixtureFolders,
    diagnostics: &mut Diagnostics,
) -> Vec<Fixture> {
    let declared = object.texts("files", diagnostics).unwrap_or_default();
    find_fixtures(declared.into_iter().map(|(path, span)| (path, path, span)), files, diagnostics)
}

/// Reads the files of a case in all forms that people use: paths, `{path: content}`, and mappings that say where a
/// file comes from and goes to, or what it contains.
pub fn read_files(
    object: &mut ObjectReader<'_>,
    files: &FixtureFolders,
    diagnostics: &mut Diagnostics,
) -> (Vec<Fixture>, Vec<InlineFile>) {
    let mut copied = Vec::new();
    let mut inline = Vec::new();
    let mut add = |key: Option<&'_ str>, node: &'_ TreeNode, diagnostics: &mut Diagnostics| {
        let text = |keys: &[&str]| keys.iter().find_map(|key| node.get(key)?.as_text());
        let path = text(&["dest", "destination", "to", "target", "path", "name", "filename"]);
        let from = text(&["src", "source", "from", "path", "file"]).or(path);
        let content = match &node.data {
            NodeData::Text(content) if key.is_some() => Some(content.as_str()),
            _ => text(&["content", "contents", "text"]),
        };
        match (key.or(path), content, from) {
            (Some(path), Some(content), _) => inline.extend(inline_file(path, content, node, diagnostics)),
            (path, None, Some(from)) => {
                copied.push((from.to_owned(), path.unwrap_or(from).to_owned(), node.span));
            }
            _ => match node.as_text() {
                Some(path) => copied.push((path.to_owned(), path.to_owned(), node.span)),
                None => report_wrong_type(node, "files", "paths, or files with a content", diagnostics),
            },
        }
    };
    if let Some(node) = object.get_non_null("files") {
        match &node.data {
            NodeData::Map(entries) => {
                entries.iter().for_each(|entry| add(Some(&entry.key), &entry.value, diagnostics));
            }
            NodeData::List(items) => items.iter().for_each(|item| add(None, item, diagnostics)),
            NodeData::Text(_) => add(None, node, diagnostics),
            _ => report_wrong_type(node, "files", "a list of paths", diagnostics),
        }
    }
    let declared = copied.iter().map(|(from, to, span)| (from.as_str(), to.as_str(), *span));
    (find_fixtures(declared, files, diagnostics), inline)
}

fn inline_file(
    path: &str,
    content: &str,
    node: &TreeNode,
    diagnostics: &mut Diagnostics,
) -> Option<InlineFile> {
    let Some(path) = RelPath::new(path) else {
        let message = format!("{path:?} is not a path inside the workspace");
        diagnostics.error_with_help("escaping-path", node.span, message, "write it relative, without \"..\"");
        return None;
    };
    Some(InlineFile { path, content: content.to_owned() })
}

/// Finds declared files, each given as where it comes from and where it goes to.
fn find_fixtures<'d>(
    paths: impl Iterator<Item = (&'d str, &'d str, Span)>,
    files: &FixtureFolders,
    diagnostics: &mut Diagnostics,
) -> Vec<Fixture> {
    let mut seen = HashSet::new();
    let mut fixtures = Vec::new();
    for (from, declared, span) in paths {
        if declared.trim().is_empty() {
            diagnostics.error("empty-text", span, "an entry of \"files\" is empty");
            continue;
        }
        let Some(to) = RelPath::new(declared) else {
            diagnostics.error_with_help(
                "escaping-path",
                span,
                format!("{declared:?} is not a path inside the workspace"),
                "write it relative, without \"..\"",
            );
            continue;
        };
        if !seen.insert(to.clone()) {
            diagnostics.notice("duplicate-file", span, format!("{to} is named twice"));
            continue;
        }
        let Some(source) = RelPath::new(from) else {
            let message = format!("{from:?} is not a path inside the project");
            diagnostics.error_with_help("escaping-path", span, message, "write it relative, without \"..\"");
            continue;
        };
        let candidates = files.candidates(&source);
        let found = candidates.iter().find(|path| path.exists());
        if found.is_none() {
            let looked: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
            diagnostics.warning_with_help(
                "file-not-found",
                span,
                format!("{to} does not exist"),
                match declared.contains(['*', '?', '[']) {
                    true => format!(
                        "patterns are not expanded; name each file or the folder (looked for {})",
                        looked.join(" and ")
                    ),
                    false => format!("looked for {}", looked.join(" and ")),
                },
            );
        }
        if found.is_some_and(|found| !files.contains_path(found)) {
            diagnostics.error_with_help(
                "escaping-path",
                span,
                format!("{to} is a link that leads out of the project"),
                "put a copy there: what an agent is given goes to a model",
            );
            continue;
        }
        if let Some(from) = found.or(candidates.first()) {
            fixtures.push(Fixture { source: from.clone(), destination: to, access: FixtureAccess::ReadOnly });
        }
    }
    fixtures
}

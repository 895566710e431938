//! Reads the input files of a clauditor spec, and the files that its checks look at.

use std::collections::HashMap;
use std::path::Path;

use super::keys::read_list;
use practicum_core::model::{CheckTarget, Diagnostics, Fixture, FixtureAccess, RelPath, Span};
use practicum_core::tree::{ObjectReader, TreeNode, node_text};
use practicum_skills::skill::normalise_path;

/// Reads the declared inputs: files below the spec's folder, which are all placed in the workspace's root.
pub fn read_inputs(
    spec: &mut ObjectReader<'_>,
    folder: &Path,
    diagnostics: &mut Diagnostics,
) -> Vec<Fixture> {
    let entries = read_list(spec, "input_files", diagnostics).unwrap_or_default();
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut fixtures = Vec::new();
    for entry in entries {
        let Some(fixture) = read_input(entry, folder, diagnostics) else { continue };
        if seen.insert(fixture.destination.as_str().to_owned(), entry.span).is_some() {
            let message = format!("another input is already staged as \"{}\"", fixture.destination);
            diagnostics.error_with_help(
                "duplicate-input",
                entry.span,
                message,
                "inputs are laid flat into one folder: rename one of them",
            );
            continue;
        }
        fixtures.push(fixture);
    }
    fixtures
}

fn read_input(node: &TreeNode, folder: &Path, diagnostics: &mut Diagnostics) -> Option<Fixture> {
    let mut wrong = |why: String| {
        diagnostics.error("invalid-input-file", node.span, why);
        None
    };
    let Some(text) = node.as_text().filter(|text| !text.is_empty()) else {
        return wrong("an input file must be a path that is not empty".to_owned());
    };
    if Path::new(text).is_absolute() {
        return wrong(format!("\"{text}\" is absolute; inputs are relative to the spec's folder"));
    }
    let Ok(resolved) = folder.join(text).canonicalize() else {
        let declared = normalise_path(&folder.join(text));
        if !declared.starts_with(normalise_path(folder)) {
            return wrong(format!("\"{text}\" leads out of the spec's folder"));
        }
        // This is no error: only the case that needs the file cannot run. Whether skills are activated can still
        // be tested.
        let message = format!("\"{text}\" does not exist below {}", folder.display());
        diagnostics.warning("file-not-found", node.span, message);
        let to = declared.file_name().and_then(|name| name.to_str()).and_then(RelPath::new)?;
        return Some(Fixture { source: folder.join(text), destination: to, access: FixtureAccess::Mutable });
    };
    let Ok(root) = folder.canonicalize() else {
        return wrong(format!("{} cannot be resolved", folder.display()));
    };
    if !resolved.starts_with(&root) {
        return wrong(format!("\"{text}\" leads out of the spec's folder"));
    }
    if !resolved.is_file() {
        return wrong(format!("\"{text}\" is not a regular file"));
    }
    let name = resolved.file_name().and_then(|name| name.to_str()).and_then(RelPath::new);
    match name {
        Some(to) => Some(Fixture { source: resolved, destination: to, access: FixtureAccess::Mutable }),
        None => wrong(format!("\"{text}\" has a name that cannot be staged")),
    }
}

/// Reads what all checks look at: the one output file, otherwise the files that match, otherwise the agent's
/// output.
pub fn read_looks_at(
    spec: &mut ObjectReader<'_>,
    inputs: &[Fixture],
    diagnostics: &mut Diagnostics,
) -> CheckTarget {
    let one = spec.get_non_null("output_file").and_then(|node| {
        let text = node_text(node, "output_file", diagnostics)?;
        let path = RelPath::new(text);
        if text.trim().is_empty() {
            diagnostics.error("empty-text", node.span, "\"output_file\" must not be blank");
        } else if path.is_none() {
            let message = format!("\"{text}\" is not a path inside the agent's working folder");
            diagnostics.error("escaping-path", node.span, message);
        }
        path
    });
    let mut globs = Vec::new();
    for node in read_list(spec, "output_files", diagnostics).unwrap_or_default() {
        let Some(glob) = node_text(node, "output_files", diagnostics) else { continue };
        if inputs.iter().any(|input| is_named_like(glob, input.destination.as_str())) {
            diagnostics.error_with_help(
                "output-is-input",
                node.span,
                format!("the output \"{glob}\" has the name of an input"),
                "let the skill write to another name",
            );
        }
        if !stays_in_folder(glob) {
            let message = format!("\"{glob}\" does not stay inside the agent's working folder");
            diagnostics.error("escaping-path", node.span, message);
            continue;
        }
        globs.push(from_python_glob(glob));
    }
    match one {
        Some(path) => CheckTarget::File(path),
        None if globs.is_empty() => CheckTarget::Output,
        None => CheckTarget::Files(globs),
    }
}

/// Says whether an output has the same name as an input. A glob with wildcards names no file.
pub fn is_named_like(glob: &str, input: &str) -> bool {
    let literal = !glob.contains(['*', '?', '[']);
    literal && Path::new(glob).file_name().is_some_and(|name| name == input)
}

/// Translates a glob of Python, which has neither alternatives nor escapes. There, a `[` without a closing bracket
/// is an ordinary character.
fn from_python_glob(glob: &str) -> String {
    let mut out = String::new();
    let mut rest = glob;
    while let Some(next) = rest.chars().next() {
        let class = (next == '[').then(|| character_set_length(rest)).flatten();
        let length = class.unwrap_or(next.len_utf8());
        match next {
            '[' | '{' | '}' | '\\' if class.is_none() => out.push_str(&format!("[{next}]")),
            _ => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out
}

/// Gives the length of a set of characters like `[!a-z]` at the start of a text. A `]` directly after the opening
/// does not end the set.
fn character_set_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?;
    let inside = inside.strip_prefix('!').unwrap_or(inside);
    let first = inside.chars().next()?.len_utf8();
    let end = inside[first..].find(']')?;
    Some(text.len() - inside.len() + first + end + 1)
}

/// Says whether a glob stays below its folder: it is relative and has no `..`.
pub fn stays_in_folder(glob: &str) -> bool {
    !glob.is_empty() && !Path::new(glob).is_absolute() && glob.split('/').all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::from_python_glob;

    #[test]
    fn globs_of_python_have_no_alternatives_and_no_escapes() {
        for (pythons, ours) in [
            ("r/*.md", "r/*.md"),
            ("**/[!a-c]?.md", "**/[!a-c]?.md"),
            ("[]].md", "[]].md"),
            ("{a,b}.md", "[{]a,b[}].md"),
            ("a[.md", "a[[].md"),
            ("[", "[[]"),
            ("[!", "[[]!"),
            ("[é]\\[ü", "[é][\\][[]ü"),
        ] {
            assert_eq!(from_python_glob(pythons), ours);
            crate::checks::Globs::new(&[ours]).map(|_| ()).expect(ours);
        }
    }
}

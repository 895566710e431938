//! Globs: file paths with wildcards, relative to the workspace.

use ignore::overrides::{Override, OverrideBuilder};

use practicum_core::model::RelPath;

/// A set of globs. `*` and `?` match within one folder, `**` matches across folders.
pub struct Globs(Override);

impl Globs {
    /// Makes a set of globs, or gives a message if one of them is not valid.
    pub fn new<G: AsRef<str>>(globs: &[G]) -> Result<Self, String> {
        let mut builder = OverrideBuilder::new("/");
        for glob in globs.iter().map(AsRef::as_ref) {
            builder
                .add(&anchor_at_root(glob))
                .map_err(|error| format!("{glob:?} is no glob: {}", glob_error_reason(&error)))?;
        }
        builder.build().map(Self).map_err(|error| glob_error_reason(&error))
    }

    /// Says whether one of the patterns matches a path.
    pub fn match_path(&self, path: &RelPath) -> bool {
        self.0.matched(path.as_str(), false).is_whitelist()
    }
}

/// Gives the reason of an error without the glob, because the error shows a rewritten glob and not the user's.
fn glob_error_reason(error: &ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    }
}

/// Anchors a glob at the workspace's root and writes its folders as workspace paths are written.
fn anchor_at_root(glob: &str) -> String {
    let parts = glob.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.fold(String::new(), |path, part| format!("{path}/{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_begin_at_the_workspace_and_stars_stay_in_their_folder() {
        for (glob, path, expected) in [
            ("*.md", "a.md", true),
            ("*.md", "r/a.md", false),
            ("./a.md", "a.md", true),
            ("r//b.md", "r/b.md", true),
            ("/a", "a", true),
            (".h/*", ".h/x", true),
            ("**/a.md", "a.md", true),
            ("**/a.md", "r/s/a.md", true),
            ("r/**", "r/s/a.md", true),
            ("r", "r/a.md", false),
            ("!a.md", "!a.md", true),
            ("!a.md", "b.md", false),
            ("{a,b}.md", "b.md", true),
            ("[ab]?.md", "b1.md", true),
        ] {
            let globs = Globs::new(&[glob]).expect(glob);
            assert_eq!(globs.match_path(&RelPath::new(path).expect(path)), expected, "{glob} {path}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_in_the_users_words() {
        for (glob, expected) in [
            ("a[.md", "\"a[.md\" is no glob: unclosed character class; missing ']'"),
            ("{a", "\"{a\" is no glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"),
        ] {
            assert_eq!(Globs::new(&[glob]).err().as_deref(), Some(expected));
        }
    }
}

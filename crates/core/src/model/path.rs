//! Relative paths that cannot leave their folder.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A relative path that stays below whatever it is joined to: no root, no `..`, no NUL, not empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(String);

impl RelPath {
    /// Makes a relative path. `None` if it is absolute, empty or has `..` in it.
    pub fn new(text: &str) -> Option<Self> {
        if text.contains('\0') || text.contains('\\') {
            return None;
        }
        let mut parts = Vec::new();
        for component in Path::new(text).components() {
            match component {
                Component::Normal(part) => parts.push(part.to_str()?),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        (!parts.is_empty()).then(|| Self(parts.join("/")))
    }

    /// Gives the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Gives the path below a folder.
    pub fn join_to(&self, root: &Path) -> PathBuf {
        root.join(&self.0)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RelPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| format!("{text:?} is not a path inside its folder"))
    }
}

impl From<RelPath> for String {
    fn from(path: RelPath) -> String {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_escape_are_not_relative_paths() {
        for (text, expected) in [
            ("a/b.md", Some("a/b.md")),
            ("./a//b", Some("a/b")),
            ("a/./b", Some("a/b")),
            ("", None),
            (".", None),
            ("/etc/passwd", None),
            ("../x", None),
            ("a/../../x", None),
            ("a/../x", None),
            ("a\0b", None),
            ("..\\x", None),
        ] {
            assert_eq!(RelPath::new(text).as_ref().map(RelPath::as_str), expected, "{text:?}");
        }
    }
}

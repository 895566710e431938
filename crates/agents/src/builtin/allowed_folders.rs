//! The folders that file tools may use.

use std::path::{Component, Path, PathBuf};

/// The folders that file tools may use, as absolute paths with links followed.
pub struct AllowedFolders {
    workspace: PathBuf,
    roots: Vec<PathBuf>,
}

impl AllowedFolders {
    pub fn new(workspace: &Path, others: impl IntoIterator<Item = PathBuf>) -> std::io::Result<Self> {
        let workspace = workspace.canonicalize()?;
        let mut roots = vec![workspace.clone()];
        roots.extend(others.into_iter().filter_map(|other| other.canonicalize().ok()));
        Ok(Self { workspace, roots })
    }

    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Gives the real path of a path, which need not exist yet. Relative paths start in the workspace.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, String> {
        let asked = self.workspace.join(path);
        let real = real_path(&asked).map_err(|why| format!("{path}: {why}"))?;
        if self.roots.iter().any(|root| real.starts_with(root)) {
            Ok(real)
        } else {
            Err(format!("{path} is outside the workspace {}", self.workspace.display()))
        }
    }
}

/// Follows links in the part of a path that exists. The part that does not exist contains no links, and must not
/// go up.
fn real_path(path: &Path) -> Result<PathBuf, String> {
    let mut existing = path;
    let mut missing = Vec::new();
    // A dangling link counts as existing, because writing would follow it.
    while existing.symlink_metadata().is_err() {
        let (Some(parent), Some(last)) = (existing.parent(), existing.components().next_back()) else {
            return Err("no such place".to_owned());
        };
        match last {
            Component::Normal(name) => missing.push(name),
            Component::ParentDir | Component::CurDir | Component::RootDir | Component::Prefix(_) => {
                return Err("goes up from a folder that does not exist".to_owned());
            }
        }
        existing = parent;
    }
    let mut real = existing.canonicalize().map_err(|error| error.to_string())?;
    real.extend(missing.into_iter().rev());
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_stay_inside() {
        let outer = tempfile::tempdir().expect("a folder");
        let base = outer.path().canonicalize().expect("real");
        let (workspace, skills) = (base.join("work"), base.join("skills"));
        for folder in [&workspace.join("sub"), &skills, &base.join("workshop")] {
            fs::create_dir_all(folder).expect("a folder");
        }
        fs::write(base.join("secret"), "").expect("a file");
        for (target, link) in [("../secret", "out"), ("../nowhere", "dangling"), ("sub", "in"), ("..", "up")]
        {
            symlink(target, workspace.join(link)).expect("a link");
        }
        symlink("loop", workspace.join("loop")).expect("a link");
        let fence = AllowedFolders::new(&workspace, [skills.clone(), base.join("missing")]).expect("a fence");
        let absolute = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        for (path, expected) in [
            ("a.txt".to_owned(), Some(workspace.join("a.txt"))),
            ("./sub/../a/b.txt".to_owned(), Some(workspace.join("a/b.txt"))),
            (String::new(), Some(workspace.clone())),
            ("in/x".to_owned(), Some(workspace.join("sub/x"))),
            (absolute(&workspace.join("sub")), Some(workspace.join("sub"))),
            (absolute(&skills.join("s/SKILL.md")), Some(skills.join("s/SKILL.md"))),
            ("../skills/x".to_owned(), Some(skills.join("x"))),
            ("up/skills/x".to_owned(), Some(skills.join("x"))),
            ("../secret".to_owned(), None),
            ("out".to_owned(), None),
            ("up/secret".to_owned(), None),
            ("dangling".to_owned(), None),
            ("dangling/x".to_owned(), None),
            ("loop".to_owned(), None),
            ("new/../../secret".to_owned(), None),
            ("new/../x".to_owned(), None),
            ("../workshop/x".to_owned(), None),
            ("/etc/passwd".to_owned(), None),
            ("a\0b".to_owned(), Some(workspace.join("a\0b"))),
        ] {
            assert_eq!(fence.resolve(&path).ok(), expected, "{path:?}");
        }
    }
}

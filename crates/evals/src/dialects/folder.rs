//! A folder that is one eval, for formats that write an eval as several files.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::checks::Globs;
use practicum_core::model::{Digest, RelPath};
use practicum_core::tree::read_bounded;

/// A folder that may be one eval, with the names of what lies directly in it.
#[derive(Debug, Clone)]
pub struct EvalFolder {
    path: PathBuf,
    real: PathBuf,
    names: BTreeSet<String>,
}

/// The most entries of a folder that are looked at. A folder with more is no eval.
const MOST_FOLDER_ENTRIES: usize = 10_000;

/// The deepest folder in which a pattern finds files, below the one that it begins with.
const DEEPEST_FILES: usize = 4;

/// The largest file of an eval that is read.
const LARGEST_FOLDER_FILE: u64 = 16 * 1024 * 1024;

impl EvalFolder {
    /// Lists a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(path)? {
            names.extend(entry?.file_name().into_string().ok());
            if names.len() > MOST_FOLDER_ENTRIES {
                return Err(io::Error::other(format!("{} has too many entries", path.display())));
            }
        }
        Ok(Self { path: path.to_owned(), real: path.canonicalize()?, names })
    }

    /// Gives the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the names of the files and folders directly in the folder, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Says whether a file or folder of this name lies directly in the folder.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Lists a folder inside this one. A link that leads out of this folder is an error.
    pub fn open_inside(&self, path: &RelPath) -> io::Result<Self> {
        Self::open(&self.real_path(path)?)
    }

    /// Reads a text file inside the folder, up to a size limit. A link that leads out of the folder is an error.
    pub fn read_text(&self, path: &RelPath) -> io::Result<String> {
        let bytes = read_bounded(&self.real_path(path)?, LARGEST_FOLDER_FILE).map_err(io::Error::other)?;
        String::from_utf8(bytes).map_err(|_| io::Error::other(format!("{path} is not UTF-8 text")))
    }

    /// Finds the files in the folder that match a pattern, in order. Only the folder that the pattern begins with is
    /// listed. A pattern that leads out of the folder is an error.
    pub fn find_files(&self, pattern: &str) -> Result<Vec<RelPath>, String> {
        let plain = RelPath::new(pattern).ok_or_else(|| {
            format!("{pattern:?} leads out of the folder of the eval file; put the files below it")
        })?;
        let pattern = plain.as_str();
        let is_wild = |part: &str| part.contains(['*', '?', '[', '{']);
        if !is_wild(pattern) {
            return Ok(if plain.join_to(&self.path).is_file() { vec![plain] } else { Vec::new() });
        }
        let globs = Globs::new(&[pattern])?;
        let fixed: Vec<&str> = pattern.split('/').take_while(|part| !is_wild(part)).collect();
        let mut open = vec![(fixed.join("/"), 0)];
        let mut found = Vec::new();
        while let Some((path, depth)) = open.pop() {
            let inside = match RelPath::new(&path) {
                Some(path) => self.open_inside(&path),
                None => Self::open(&self.path),
            };
            let Ok(inside) = inside else { continue };
            for name in inside.names().filter(|name| !name.starts_with('.')) {
                let below = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
                let Some(below) = RelPath::new(&below) else { continue };
                let full = below.join_to(&self.path);
                if full.is_dir() && depth < DEEPEST_FILES && pattern.contains('/') {
                    open.push((below.as_str().to_owned(), depth + 1));
                } else if full.is_file() && globs.match_path(&below) {
                    found.push(below);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    fn real_path(&self, path: &RelPath) -> io::Result<PathBuf> {
        let real = path.join_to(&self.path).canonicalize()?;
        match real.starts_with(&self.real) {
            true => Ok(real),
            false => Err(io::Error::other(format!("{path} leads out of {}", self.path.display()))),
        }
    }

    /// Gives a digest of the names and texts of these files, for the origin of the suite. A file that cannot be read
    /// counts as missing.
    pub fn digest_of<'p>(&self, files: impl IntoIterator<Item = &'p RelPath>) -> Digest {
        let mut all = Vec::new();
        for path in files {
            let text = self.read_text(path).unwrap_or_default();
            all.extend(format!("{path}\0{}\0{text}", text.len()).into_bytes());
        }
        Digest::of_bytes(&all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_out_of_the_folder_is_not_read() {
        let tree = tempfile::tempdir().expect("a folder");
        let eval = tree.path().join("eval");
        std::fs::create_dir(&eval).expect("create");
        std::fs::write(tree.path().join("secret"), "x").expect("write");
        std::fs::write(eval.join("task.md"), "Hi").expect("write");
        std::os::unix::fs::symlink("../secret", eval.join("out.md")).expect("link");
        std::os::unix::fs::symlink("task.md", eval.join("in.md")).expect("link");
        let folder = EvalFolder::open(&eval).expect("open");
        let read = |name: &str| folder.read_text(&RelPath::new(name).expect("a path")).ok();
        assert_eq!(folder.names().collect::<Vec<_>>(), ["in.md", "out.md", "task.md"]);
        assert_eq!(read("task.md").as_deref(), Some("Hi"));
        assert_eq!(read("in.md").as_deref(), Some("Hi"));
        assert_eq!(read("out.md"), None);
        assert_eq!(read("missing.md"), None);
    }
}

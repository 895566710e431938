//! The list of files that this program wrote into a project, for formats that have no place for a mark:
//! `.practicum/written.jsonl`.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{FileId, file_digest, file_id, standard_streams};
use practicum_core::model::Digest;
use practicum_core::tree::{append_unlinked, open_regular, read_regular, write_unlinked};

const RECORDS_FOLDER: &str = ".practicum";
const LIST_FILE: &str = "written.jsonl";

/// The greatest size of the list. A longer list loses its older half.
const MAX_LIST_SIZE: u64 = 8 * 1024 * 1024;

/// One file that was written.
#[derive(Debug, Serialize, Deserialize)]
struct WrittenFileEntry {
    schema_version: u32,
    /// The path of the file.
    path: PathBuf,
    /// The length and digest of its content, so that a copy under another name is recognised too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<WrittenContent>,
    /// The identity of the file, if it was empty when it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<FileId>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WrittenContent {
    length: u64,
    digest: Digest,
}

/// The lists of some projects.
#[derive(Debug, Default)]
pub struct WrittenFiles {
    lists: Vec<Arc<WrittenList>>,
}

/// The list of one project.
#[derive(Debug, Default)]
struct WrittenList {
    lengths: HashSet<u64>,
    digests: HashSet<Digest>,
    streams: HashMap<PathBuf, HashSet<FileId>>,
}

/// A list as it was when this process last read it, and what tells whether it has changed since.
struct ListInMemory {
    state: ListState,
    list: Arc<WrittenList>,
}

/// The identity, length and time of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListState {
    file: FileId,
    length: u64,
    change_time: (i64, i64),
}

/// The lists that this process has read. A list has thousands of lines after some weeks, and is asked for with every
/// skill and version.
static LISTS_IN_MEMORY: LazyLock<Mutex<HashMap<PathBuf, ListInMemory>>> = LazyLock::new(Mutex::default);

impl WrittenFiles {
    pub fn read<'p>(projects: impl IntoIterator<Item = &'p Path>) -> Self {
        let paths = projects.into_iter().map(|project| project.join(RECORDS_FOLDER).join(LIST_FILE));
        Self { lists: paths.filter_map(read_list).collect() }
    }

    /// Says whether a file at this path was empty when it was recorded, and is still that file.
    pub fn has_stream(&self, path: &Path, file: FileId) -> bool {
        if self.lists.iter().all(|list| list.streams.is_empty()) {
            return false;
        }
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let has_stream =
            |list: &Arc<WrittenList>| list.streams.get(&path).is_some_and(|files| files.contains(&file));
        self.lists.iter().any(has_stream)
    }

    /// Says whether a file of this length was written.
    pub fn has_length(&self, length: u64) -> bool {
        self.lists.iter().any(|list| list.lengths.contains(&length))
    }

    /// Says whether a file with this digest was written.
    pub fn has_digest(&self, digest: &Digest) -> bool {
        self.lists.iter().any(|list| list.digests.contains(digest))
    }
}

/// Gives the list at this path, read again only if it has changed.
fn read_list(path: PathBuf) -> Option<Arc<WrittenList>> {
    let file = open_regular(&path).ok()?;
    let metadata = file.metadata().ok()?;
    let state = ListState {
        file: file_id(&metadata),
        length: metadata.len(),
        change_time: (metadata.mtime(), metadata.mtime_nsec()),
    };
    let mut in_memory = LISTS_IN_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = in_memory.get(&path).filter(|known| known.state == state) {
        return Some(known.list.clone());
    }
    let mut text = Vec::new();
    // A part of a list that cannot be read completely is better than nothing.
    let _ = file.take(2 * MAX_LIST_SIZE).read_to_end(&mut text);
    let list = Arc::new(WrittenList::parse(&text));
    in_memory.insert(path, ListInMemory { state, list: list.clone() });
    Some(list)
}

impl WrittenList {
    fn parse(text: &[u8]) -> Self {
        let mut list = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            let Ok(WrittenFileEntry { path, content, file, .. }) = serde_json::from_slice(line) else {
                continue;
            };
            if let Some(WrittenContent { length, digest }) = content {
                list.lengths.insert(length);
                list.digests.insert(digest);
            }
            if let Some(file) = file {
                list.streams.entry(path).or_default().insert(file);
            }
        }
        list
    }
}

/// Records files that were written, in every project around them that keeps records. An error while recording is
/// ignored, because the files themselves were written.
pub fn record_written_files(paths: &[PathBuf]) {
    for path in paths {
        let Ok(path) = path.canonicalize() else { continue };
        let Ok(metadata) = path.metadata() else { continue };
        if !metadata.is_file() {
            continue;
        }
        // All empty files are alike, so an empty file is recorded by its path and identity.
        let (content, file) = match metadata.len() {
            0 => (None, Some(file_id(&metadata))),
            length => (Some(WrittenContent { length, digest: file_digest(&path) }), None),
        };
        append_entry(WrittenFileEntry { schema_version: 1, path, content, file });
    }
}

/// Records the files that standard output and error go to before anything is written there: a run that is killed
/// leaves them empty or half written.
pub fn record_output_streams() {
    for (path, file) in stream_files() {
        append_entry(WrittenFileEntry { schema_version: 1, path, content: None, file: Some(file) });
    }
}

/// Records the final content of the files that standard output and error go to.
pub fn record_stream_contents() {
    let paths: Vec<PathBuf> = stream_files().into_iter().map(|(path, _)| path).collect();
    record_written_files(&paths);
}

/// Gives the files behind standard output and error, with their paths if the system knows them.
fn stream_files() -> Vec<(PathBuf, FileId)> {
    let named = standard_streams()
        .into_iter()
        .filter_map(|(number, metadata)| Some((path_of_stream(number)?, file_id(&metadata))));
    named.collect()
}

/// Gives the path of the file that standard output (1) or error (2) goes to.
#[cfg(not(target_os = "macos"))]
fn path_of_stream(number: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{number}")).ok()
}

/// Gives the path of the file that standard output (1) or error (2) goes to.
#[cfg(target_os = "macos")]
fn path_of_stream(number: u32) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = match number {
        1 => rustix::fs::getpath(std::io::stdout()),
        _ => rustix::fs::getpath(std::io::stderr()),
    };
    Some(std::ffi::OsString::from_vec(path.ok()?.into_bytes()).into())
}

fn append_entry(line: WrittenFileEntry) {
    // Files in the folder of records are recognised by their path.
    if line.path.components().any(|part| part.as_os_str() == RECORDS_FOLDER) {
        return;
    }
    let Ok(mut text) = serde_json::to_vec(&line) else { return };
    text.push(b'\n');
    let homes = line.path.ancestors().map(|above| above.join(RECORDS_FOLDER)).filter(|home| home.is_dir());
    for home in homes {
        let list = home.join(LIST_FILE);
        let _ = drop_older_half(&list);
        let opened = append_unlinked(&list);
        // Each line is written in one call, so that two processes do not mix their lines.
        let _ = opened.and_then(|mut file| file.write_all(&text));
    }
}

/// Drops the older half of a list that has become too long.
fn drop_older_half(list: &Path) -> std::io::Result<()> {
    if list.metadata().map_or(0, |metadata| metadata.len()) <= MAX_LIST_SIZE {
        return Ok(());
    }
    let text = read_regular(list)?;
    let half = text.len() / 2;
    let from = text[half..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| half + at + 1);
    let aside = list.with_extension("new");
    write_unlinked(&aside, &text[from..])?;
    std::fs::rename(aside, list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_files::OwnFiles;

    #[test]
    fn a_copy_under_another_name_is_known_and_an_edited_one_is_not() {
        let project = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(project.path().join(RECORDS_FOLDER)).expect("a folder");
        let write = |name: &str, text: &str| {
            let path = project.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        record_written_files(&[write("grading.json", "{\"expectations\": []}"), write("empty", "")]);
        write("copy.txt", "{\"expectations\": []}");
        write("other.json", "{\"expectations\": [1]}");
        write("other-of-same-length", "{\"expectations\": ()}");
        write("other-empty", "");
        let own = OwnFiles::near_paths([project.path()]);
        for (name, expected) in [
            ("grading.json", true),
            ("copy.txt", true),
            ("other.json", false),
            ("other-of-same-length", false),
            ("empty", true),
            ("other-empty", false),
        ] {
            assert_eq!(own.is_own_file(&project.path().join(name)), expected, "{name}");
        }
    }

    #[test]
    fn what_was_written_after_a_list_was_read_is_known_too() {
        let project = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(project.path().join(RECORDS_FOLDER)).expect("a folder");
        for (name, text) in [("a.json", "{\"a\": 1}"), ("b.json", "{\"b\": 1}"), ("c.json", "{\"c\": 1}")] {
            let path = project.path().join(name);
            std::fs::write(&path, text).expect("written");
            assert!(!OwnFiles::near_paths([project.path()]).is_own_file(&path), "{name}");
            record_written_files(std::slice::from_ref(&path));
            assert!(OwnFiles::near_paths([project.path()]).is_own_file(&path), "{name}");
        }
        std::fs::remove_file(project.path().join(RECORDS_FOLDER).join(LIST_FILE)).expect("removed");
        assert!(!OwnFiles::near_paths([project.path()]).is_own_file(&project.path().join("a.json")));
    }

    #[test]
    fn a_list_loses_its_older_half_when_it_is_too_long() {
        let project = tempfile::tempdir().expect("a folder");
        let list = project.path().join(LIST_FILE);
        let line = format!("{}\n", "x".repeat(1023));
        std::fs::write(&list, line.repeat(9 * 1024)).expect("written");
        drop_older_half(&list).expect("shortened");
        let text = std::fs::read_to_string(&list).expect("read");
        assert!(text.len() < 5 * 1024 * 1024 && text.starts_with('x') && text.len().is_multiple_of(1024));
    }
}

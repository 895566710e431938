//! Files that this program wrote: reports, summaries, exports, badges, cassettes, converted evals.
//!
//! In: a path. Out: whether this program wrote the file, by its content, because it is this process's own
//! output, or because the project's list of written files has it. Never: writes anything but that list.
//!
//! Such files hold what evals expect, so an agent must not see them, and they change with every run, so
//! they decide nothing.

mod activation_keys;
mod case_stream;
mod content;
mod eval_document;
mod eval_texts;
mod unpacked;
mod written_list;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub use activation_keys::{
    BOOLEAN_ACTIVATION_KEYS, OTHER_BOOLEAN_KEYS, SKILL_LIST_KEY, SKILL_NAME_KEYS, activation_keys,
};
pub use content::OWN_FILE_MARK;
pub use eval_texts::EvalTexts;
pub use unpacked::Unpacked;
pub use written_list::{record_output_streams, record_stream_contents, record_written_files};

use self::written_list::WrittenFiles;
use crate::skill::SKILL_FILE;
use practicum_core::model::Digest;

/// A larger file is not compared with the list of what was written.
const MAX_COMPARED_SIZE: u64 = 64 * 1024 * 1024;

/// What is known of the files that this program wrote.
#[derive(Debug, Default)]
pub struct OwnFiles {
    written_files: WrittenFiles,
    /// Where this process's own standard output and error go, if that is a file.
    streams: HashSet<FileId>,
    /// The evals that are run, of which there may be copies.
    evals: EvalTexts,
    kind_cache: Mutex<HashMap<PathBuf, CachedFileKind>>,
}

/// A file on this machine, whatever its name: device and inode.
type FileId = (u64, u64);

/// What a file was found to be, as long as its size and time stay the same.
#[derive(Debug, Clone, Copy)]
struct CachedFileKind {
    length: u64,
    change_time: (i64, i64),
    kind: ContentKind,
}

/// What a file holds that decides whether agents may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    /// Written by this program, and nobody's work.
    Written,
    /// Evals of any format, or a script of the gateway, which an agent must not see either.
    Evals,
    /// What came of evals, as other tools write it too.
    Results,
    Other,
}

impl OwnFiles {
    /// Reads the lists of written files of the projects that these paths lie in.
    pub fn near_paths<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let projects: BTreeSet<&Path> = paths.into_iter().flat_map(Path::ancestors).collect();
        let streams = standard_streams().into_iter().map(|(_, metadata)| file_id(&metadata)).collect();
        Self { written_files: WrittenFiles::read(projects), streams, ..Self::default() }
    }

    /// These files, and copies of evals of which the texts are known.
    #[must_use]
    pub fn and_copies_of(self, evals: EvalTexts) -> Self {
        Self { evals, ..self }
    }

    /// Whether this program wrote the file, or what lies in the folder.
    pub fn is_own_file(&self, path: &Path) -> bool {
        self.kind(path) == ContentKind::Written
    }

    /// What a file holds. Of folders only those are known that hold what this program wrote.
    pub fn kind(&self, path: &Path) -> ContentKind {
        let Ok(metadata) = path.symlink_metadata() else { return ContentKind::Other };
        if metadata.is_dir() {
            return if self.is_copied_outputs_folder(path) {
                ContentKind::Written
            } else {
                ContentKind::Other
            };
        }
        if !metadata.is_file() {
            return ContentKind::Other;
        }
        let (length, changed) = (metadata.len(), (metadata.mtime(), metadata.mtime_nsec()));
        let known = self.kind_cache.lock().ok().and_then(|seen| seen.get(path).copied());
        if let Some(known) = known.filter(|known| (known.length, known.change_time) == (length, changed)) {
            return known.kind;
        }
        let kind = self.classify(path, &metadata);
        if let Ok(mut seen) = self.kind_cache.lock() {
            seen.insert(path.to_owned(), CachedFileKind { length, change_time: changed, kind });
        }
        kind
    }

    fn classify(&self, path: &Path, metadata: &Metadata) -> ContentKind {
        let id = file_id(metadata);
        if self.streams.contains(&id) || self.written_files.has_stream(path, id) {
            return ContentKind::Written;
        }
        if metadata.len() == 0 {
            return ContentKind::Other;
        }
        let content = self.look_into(&Unpacked::new(path));
        let same_length =
            || metadata.len() <= MAX_COMPARED_SIZE && self.written_files.has_length(metadata.len());
        match content {
            ContentKind::Other | ContentKind::Evals | ContentKind::Results
                if same_length() && self.written_files.has_digest(&file_digest(path)) =>
            {
                ContentKind::Written
            }
            kind => kind,
        }
    }

    /// What the content of a file tells. A SKILL.md is a skill, whatever examples it gives.
    fn look_into(&self, file: &Unpacked<'_>) -> ContentKind {
        let kind = content::classify_by_content(file);
        let is_skill = file.path().file_name().is_some_and(|name| name == SKILL_FILE);
        match kind {
            ContentKind::Evals | ContentKind::Results if is_skill => ContentKind::Other,
            ContentKind::Other if !is_skill && self.is_copy_of_evals(file) => ContentKind::Evals,
            kind => kind,
        }
    }

    /// Whether a file holds a copy of the evals that are run, whatever its format is: a question of theirs, and
    /// either an answer or a block of code that is an eval file.
    fn is_copy_of_evals(&self, file: &Unpacked<'_>) -> bool {
        self.evals.has_question(file)
            && (self.evals.has_answer(file) || eval_document::is_in_code_block(file))
    }

    /// Whether a folder holds what agents made, copied there by a report: it is called `outputs`, and the
    /// file beside it is ours.
    fn is_copied_outputs_folder(&self, folder: &Path) -> bool {
        let named = folder.file_name().is_some_and(|name| name == "outputs");
        named && self.is_own_file(&folder.with_file_name("timing.json"))
    }
}

fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// The files that this process's standard output and error go to, by number.
fn standard_streams() -> Vec<(u32, Metadata)> {
    let (out, error) = (std::io::stdout(), std::io::stderr());
    let opened = [(1, out.as_fd().try_clone_to_owned()), (2, error.as_fd().try_clone_to_owned())];
    let files = opened.into_iter().filter_map(|(number, fd)| Some((number, File::from(fd.ok()?))));
    let known = files.filter_map(|(number, file)| Some((number, file.metadata().ok()?)));
    known.filter(|(_, metadata)| metadata.is_file()).collect()
}

fn file_digest(path: &Path) -> Digest {
    let mut bytes = Vec::new();
    // What cannot be read has the digest of nothing, which no written file has.
    let _ = File::open(path).and_then(|file| file.take(MAX_COMPARED_SIZE).read_to_end(&mut bytes));
    Digest::of_bytes(&bytes)
}

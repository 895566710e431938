//! Files that this program wrote: reports, summaries, exports, badges, cassettes, converted evals.
//!
//! In: a path. Out: whether this program wrote the file, by its content, because it is this process's own output,
//! or because the project's list of written files has it. Never: writes anything but that list.
//!
//! Such files contain what evals expect, so an agent must not see them. They change with every run, so they must
//! not influence a run either.

mod activation_keys;
mod case_stream;
mod contained;
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

use self::contained::UnpackLimit;
use self::written_list::WrittenFiles;
use crate::skill::{SKILL_FILE, is_eval_file};
use practicum_core::model::Digest;
use practicum_core::tree::open_regular;

/// The largest file that is compared with the list of written files.
const MAX_COMPARED_SIZE: u64 = 64 * 1024 * 1024;

/// The number of entries of a folder that are looked at to recognise the folder.
const MAX_ENTRIES: usize = 100;

/// A test for files that this program wrote.
#[derive(Debug, Default)]
pub struct OwnFiles {
    written_files: WrittenFiles,
    /// The files to which this process's standard output and error go, if they go to files.
    streams: HashSet<FileId>,
    /// The evals that are run, of which there may be copies.
    evals: EvalTexts,
    /// The folders of the skills and plugins that agents are given.
    skill_folders: Vec<PathBuf>,
    kind_cache: Mutex<HashMap<PathBuf, CachedFileKind>>,
}

/// The device and inode of a file, which identify it whatever its name is.
type FileId = (u64, u64);

/// The kind of a file, valid as long as its size and time stay the same.
#[derive(Debug, Clone, Copy)]
struct CachedFileKind {
    length: u64,
    change_time: (i64, i64),
    kind: ContentKind,
}

/// The kinds of content that decide whether agents may see a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    /// Written by this program.
    Written,
    /// Evals of any format, or a script of the gateway, which an agent must not see either.
    Evals,
    /// Results of evals, also as other tools write them.
    Results,
    /// An archive that cannot be looked into, and that may hold evals: some are beside it, or its name says so.
    ClosedArchive,
    Other,
}

impl OwnFiles {
    /// Reads the lists of written files of the projects that contain these paths.
    pub fn near_paths<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let projects: BTreeSet<&Path> = paths.into_iter().flat_map(Path::ancestors).collect();
        let streams = standard_streams().into_iter().map(|(_, metadata)| file_id(&metadata)).collect();
        Self { written_files: WrittenFiles::read(projects), streams, ..Self::default() }
    }

    /// Also treats copies of these evals as own files.
    #[must_use]
    pub fn and_copies_of(self, evals: EvalTexts) -> Self {
        Self { evals, ..self }
    }

    /// These files, where all in these folders of skills and plugins is their own material, even if it has the
    /// structure of evals, unless it is a copy of the evals that are run.
    #[must_use]
    pub fn with_skill_folders(self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let both = |path: PathBuf| path.canonicalize().ok().into_iter().chain([path]);
        Self { skill_folders: folders.into_iter().flat_map(both).collect(), ..self }
    }

    /// Whether a file lies in a skill or a plugin that agents are given.
    pub fn is_in_skill(&self, path: &Path) -> bool {
        self.skill_folders.iter().any(|folder| path.starts_with(folder))
    }

    /// Whether this program wrote the file, or what lies in the folder.
    pub fn is_own_file(&self, path: &Path) -> bool {
        self.kind(path) == ContentKind::Written
    }

    /// Gives the kind of a file's content. Folders are recognised only if they contain files that this program
    /// wrote.
    pub fn kind(&self, path: &Path) -> ContentKind {
        let Ok(metadata) = path.symlink_metadata() else { return ContentKind::Other };
        if metadata.is_dir() {
            return if self.is_copied_outputs_folder(path) || self.is_copied_record(path) {
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
        let limit = UnpackLimit::new();
        let content = match self.look_into(&Unpacked::new(path), &limit) {
            ContentKind::Other if limit.is_part_unread() && self.may_hold_evals(path) => {
                ContentKind::ClosedArchive
            }
            kind => kind,
        };
        let same_length =
            || metadata.len() <= MAX_COMPARED_SIZE && self.written_files.has_length(metadata.len());
        match content {
            ContentKind::Other | ContentKind::ClosedArchive | ContentKind::Evals | ContentKind::Results
                if same_length() && self.written_files.has_digest(&file_digest(path)) =>
            {
                ContentKind::Written
            }
            kind => kind,
        }
    }

    /// Classifies a file by its content, or by that of the files inside it.
    fn look_into(&self, file: &Unpacked<'_>, limit: &UnpackLimit) -> ContentKind {
        match self.look_at(file) {
            ContentKind::Other => self.find_inside(file, limit).unwrap_or(ContentKind::Other),
            kind => kind,
        }
    }

    fn find_inside(&self, file: &Unpacked<'_>, limit: &UnpackLimit) -> Option<ContentKind> {
        contained::find_in_contained_files(file, limit, &|inside| self.kind_inside(inside, limit))
    }

    /// Gives the kind of a file inside an archive or a patch, if an agent must not see it. Evals that are not run may
    /// be there, because the archive may be what a case is about.
    fn kind_inside(&self, file: &Unpacked<'_>, limit: &UnpackLimit) -> Option<ContentKind> {
        let kind = content::classify_by_content(file);
        let own_kind = match kind {
            ContentKind::Written => Some(kind),
            ContentKind::Evals | ContentKind::Results => self.evals.share_text_with(file).then_some(kind),
            ContentKind::ClosedArchive | ContentKind::Other => {
                self.evals.are_in(file).then_some(ContentKind::Evals)
            }
        };
        own_kind.or_else(|| self.find_inside(file, limit))
    }

    /// Says whether an archive that cannot be looked into may hold evals, reports or records, by its name and by the
    /// evals beside it. Reports and records beside it do not count: they come and go, and what is staged must not
    /// depend on them.
    fn may_hold_evals(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_named = name
            .split(|letter: char| !letter.is_alphanumeric())
            .any(|word| ["eval", "practicum", "report"].iter().any(|begin| word.starts_with(begin)));
        let beside = path.parent().map(std::fs::read_dir);
        let mut beside = beside.into_iter().flatten().flatten().flatten().take(MAX_ENTRIES);
        let has_evals = |beside: &Path| {
            let is_hidden = beside.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            let is_evals = || content::classify_by_content(&Unpacked::new(beside)) == ContentKind::Evals;
            !is_hidden && (is_eval_file(beside) || beside.is_file() && is_evals())
        };
        !self.is_in_skill(path) && (is_named || beside.any(|entry| has_evals(&entry.path())))
    }

    /// Classifies a file by its own content. A SKILL.md is a skill, whatever examples it gives.
    fn look_at(&self, file: &Unpacked<'_>) -> ContentKind {
        let kind = content::classify_by_content(file);
        let is_skill = file.path().file_name().is_some_and(|name| name == SKILL_FILE);
        match kind {
            ContentKind::Written => kind,
            _ if is_skill => ContentKind::Other,
            ContentKind::Evals | ContentKind::Results if !self.is_in_skill(&file.path()) => kind,
            ContentKind::Evals | ContentKind::Results if self.evals.share_text_with(file) => kind,
            ContentKind::Evals | ContentKind::Results => ContentKind::Other,
            ContentKind::ClosedArchive | ContentKind::Other if self.is_copy_of_evals(file) => {
                ContentKind::Evals
            }
            ContentKind::ClosedArchive | ContentKind::Other => kind,
        }
    }

    /// Whether a file that has not the structure of an eval file holds a copy of the evals that are run. The files
    /// of a skill may say what their cases ask and expect.
    fn is_copy_of_evals(&self, file: &Unpacked<'_>) -> bool {
        match self.is_in_skill(&file.path()) {
            true => self.evals.are_in_code_block(file),
            false => self.evals.are_in(file),
        }
    }

    /// Says whether a folder is a copy of the record of a trial, of a run, or of all runs of a project. Such a copy
    /// has the answers of earlier agents.
    fn is_copied_record(&self, folder: &Path) -> bool {
        let has_both = |folder: &Path, own: &str, other: &str| {
            folder.join(other).is_file() && self.is_own_file(&folder.join(own))
        };
        let is_run = |folder: &Path| has_both(folder, "run.json", "events.jsonl");
        let has_runs = || {
            let runs = std::fs::read_dir(folder.join("runs")).into_iter().flatten().flatten();
            runs.take(MAX_ENTRIES).any(|run| is_run(&run.path()))
        };
        is_run(folder)
            || has_both(folder, "facts.json", "output.txt")
            || folder.join("index.db").is_file() && has_runs()
    }

    /// Says whether a folder contains agents' files that a report copied there: it is called `outputs`, and this
    /// program wrote the file beside it.
    fn is_copied_outputs_folder(&self, folder: &Path) -> bool {
        let named = folder.file_name().is_some_and(|name| name == "outputs");
        named && self.is_own_file(&folder.with_file_name("timing.json"))
    }
}

fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Gives the files that this process's standard output and error go to, with the number of the stream.
fn standard_streams() -> Vec<(u32, Metadata)> {
    let (out, error) = (std::io::stdout(), std::io::stderr());
    let opened = [(1, out.as_fd().try_clone_to_owned()), (2, error.as_fd().try_clone_to_owned())];
    let files = opened.into_iter().filter_map(|(number, fd)| Some((number, File::from(fd.ok()?))));
    let known = files.filter_map(|(number, file)| Some((number, file.metadata().ok()?)));
    known.filter(|(_, metadata)| metadata.is_file()).collect()
}

fn file_digest(path: &Path) -> Digest {
    let mut bytes = Vec::new();
    // A file that cannot be read gets the digest of an empty file, which no written file has.
    let _ = open_regular(path).and_then(|file| file.take(MAX_COMPARED_SIZE).read_to_end(&mut bytes));
    Digest::of_bytes(&bytes)
}

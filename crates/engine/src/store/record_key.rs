//! The key with which a user's installation marks the records that it made.
//!
//! A repository may bring a `.practicum` folder along. What is in it can be looked at, but only a record with a mark of
//! the user's own key is reused in place of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use practicum_core::tree::{read_regular, write_private, write_unlinked};

use crate::plan::settings::user_config_folder;

/// The variable with the key of a project, for CI jobs that share records.
pub const RECORD_KEY_VARIABLE: &str = "PRACTICUM_RECORD_KEY";

/// The shortest key that the variable may have.
const SHORTEST_KEY: usize = 16;

/// The key of a user's installation, or the key that CI jobs of a project share.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordKey([u8; 32]);

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordKey(…)")
    }
}

/// What a mark is about. A mark of one kind is never valid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// A whole file.
    File,
    /// The files of a trial.
    Trial,
    /// A line of the event log.
    LogLine,
    /// Cached answers of a judge.
    JudgeAnswers,
    /// The name of the work of one key, so that workers of another key leave it alone.
    WorkQueue,
    /// A trial that a worker is asked to run.
    WorkerTask,
    /// The result of a worker.
    WorkerResult,
    /// What a worker tells while it works.
    WorkerNews,
    /// The login of an account.
    Account,
}

impl MarkKind {
    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Trial => "trial",
            Self::LogLine => "log line",
            Self::JudgeAnswers => "judge answers",
            Self::WorkQueue => "work queue",
            Self::WorkerTask => "worker task",
            Self::WorkerResult => "worker result",
            Self::WorkerNews => "worker news",
            Self::Account => "account",
        }
    }
}

impl RecordKey {
    /// Gives the key of the user whose environment this is: that of the variable, or the one in the user's settings
    /// folder, which is made when it is needed for the first time.
    pub fn of_user(environment: &BTreeMap<String, String>) -> Result<Self, String> {
        if let Some(text) = environment.get(RECORD_KEY_VARIABLE).filter(|text| !text.is_empty()) {
            return match text.len() {
                SHORTEST_KEY.. => Ok(Self(blake3::derive_key("practicum record key", text.as_bytes()))),
                _ => Err(format!("{RECORD_KEY_VARIABLE} must have at least {SHORTEST_KEY} characters")),
            };
        }
        let folder = user_config_folder(environment).ok_or(
            "records cannot be reused later, because HOME is not set and has no place for their key",
        )?;
        let path = folder.join("record.key");
        let told = |error: std::io::Error| format!("the key of records, {}: {error}", path.display());
        let bytes = match read_regular(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                make_key_file(&path).map_err(told)?;
                read_regular(&path).map_err(told)?
            }
            read => read.map_err(told)?,
        };
        let key = blake3::Hash::from_hex(bytes.trim_ascii())
            .map_err(|_| format!("{} is not a key; delete it, and a new one is made", path.display()))?;
        Ok(Self(*key.as_bytes()))
    }

    /// Makes a key that is not stored. What it marks is not reused by another process.
    pub fn temporary() -> Self {
        Self(random_key())
    }

    /// Computes the mark of some parts.
    pub fn mark<'p>(&self, kind: MarkKind, parts: impl IntoIterator<Item = &'p [u8]>) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in std::iter::once(kind.name().as_bytes()).chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Says whether a mark is the one of these parts. The comparison takes the same time for every mark.
    pub fn is_mark<'p>(&self, mark: &str, kind: MarkKind, parts: impl IntoIterator<Item = &'p [u8]>) -> bool {
        let hash = |text: &str| blake3::Hash::from_hex(text).ok();
        hash(mark).zip(hash(&self.mark(kind, parts))).is_some_and(|(given, right)| given == right)
    }

    /// Writes the mark of a file beside it.
    pub fn mark_file(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        write_unlinked(mark_path(path), self.mark(MarkKind::File, [content]))
    }

    /// Says whether a file with this content has a valid mark beside it.
    pub fn is_file_marked(&self, path: &Path, content: &[u8]) -> bool {
        let mark = read_regular(mark_path(path)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        mark.is_some_and(|mark| self.is_mark(mark.trim(), MarkKind::File, [content]))
    }
}

fn mark_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".mark");
    path.with_file_name(name)
}

/// Makes the file with a new key. If another process makes it at the same moment, one of the two keys stays.
fn make_key_file(path: &Path) -> std::io::Result<()> {
    let aside = path.with_extension(format!("key.{}", uuid::Uuid::new_v4().simple()));
    let text = blake3::Hash::from_bytes(random_key()).to_hex().to_string();
    write_private(&aside, text.as_bytes())?;
    let linked = std::fs::hard_link(&aside, path);
    let _ = std::fs::remove_file(&aside);
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn random_key() -> [u8; 32] {
    // Each of these has 122 random bits of the operating system.
    let random = [(); 4].map(|()| *uuid::Uuid::new_v4().as_bytes()).concat();
    blake3::derive_key("practicum new record key", &random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_key_is_made_once_and_only_the_user_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().expect("a folder");
        let home_text = home.path().display().to_string();
        let user = environment(&[("HOME", &home_text)]);
        let make = || RecordKey::of_user(&user).expect("a key");
        let keys = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a key")).collect::<Vec<RecordKey>>()
        });
        assert!(keys.windows(2).all(|two| two[0] == two[1]), "all processes get the same key");
        let folder = home.path().join(".config/practicum");
        let mode = |path: &Path| path.metadata().expect("made").permissions().mode() & 0o777;
        assert_eq!((mode(&folder.join("record.key")), mode(&folder)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing else is left");
        std::fs::write(folder.join("record.key"), "nonsense").expect("write");
        assert!(RecordKey::of_user(&environment(&[("HOME", &home_text)])).is_err());
        assert!(RecordKey::of_user(&environment(&[])).is_err());
        let by_variable = |text: &str| RecordKey::of_user(&environment(&[(RECORD_KEY_VARIABLE, text)]));
        assert!(by_variable("short").is_err());
        assert_eq!(by_variable("a long enough key").ok(), by_variable("a long enough key").ok());
        assert_ne!(by_variable("a long enough key").ok(), by_variable("another long key").ok());
    }

    #[test]
    fn a_mark_is_for_one_kind_and_one_list_of_parts() {
        let key = RecordKey::temporary();
        let mark = key.mark(MarkKind::Trial, [b"ab".as_slice(), b"c"]);
        assert!(key.is_mark(&mark, MarkKind::Trial, [b"ab".as_slice(), b"c"]));
        assert!(!key.is_mark(&mark, MarkKind::Trial, [b"a".as_slice(), b"bc"]));
        assert!(!key.is_mark(&mark, MarkKind::LogLine, [b"ab".as_slice(), b"c"]));
        assert!(!RecordKey::temporary().is_mark(&mark, MarkKind::Trial, [b"ab".as_slice(), b"c"]));
        assert!(!key.is_mark("", MarkKind::Trial, [b"ab".as_slice(), b"c"]));
    }
}

//! The directory of a run, and the files in it.

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::workspace::stage::remove_folder;

use super::records::read_logged_summary;
use super::{
    EventLog, LineMarker, RecordKey, RunInfo, Scrubber, TrialChecks, TrialDigest, TrialFacts, TrialOrigin,
};
use practicum_core::event::{EventSink, EventSinks};
use practicum_core::model::{Digest, Summary, TrialId, TrialRecord};
use practicum_core::tree::{
    create_private_folder, create_unlinked, open_regular, read_regular, write_unlinked,
};

/// The folder in a run's record with the skills that were graded, each below its digest.
pub const SKILLS_FOLDER: &str = "skills";

/// The folder of one run. Everything else that is known about a run is derived from it.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
    id: String,
    /// The key with which files and lines are marked; `None` for a run that is only read.
    key: Option<RecordKey>,
}

/// An error: the record of a run cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the record: {path}: {error}")]
pub struct StoreError {
    path: PathBuf,
    error: std::io::Error,
}

impl StoreError {
    /// Makes a function that adds a path to an I/O error.
    pub fn at_path(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self { path, error }
    }
}

impl RunDir {
    /// Makes an id for a new run. Ids sort by time.
    pub fn new_id(now: jiff::Timestamp) -> String {
        let tail = uuid::Uuid::new_v4().simple().to_string();
        // Milliseconds are included because two runs may start within one second and the later one must sort
        // later.
        let part = now.subsec_millisecond();
        format!("{}{part:03}-{}", now.strftime("%Y%m%d-%H%M%S"), &tail[..6])
    }

    /// Says whether a name is one that [`RunDir::new_id`] makes.
    pub fn is_id(name: &str) -> bool {
        let parts: Vec<&str> = name.split('-').collect();
        let all = |part: &str, length: usize, fits: fn(&u8) -> bool| {
            part.len() == length && part.as_bytes().iter().all(fits)
        };
        matches!(parts[..], [day, time, tail] if all(day, 8, u8::is_ascii_digit)
            && all(time, 9, u8::is_ascii_digit)
            && all(tail, 6, u8::is_ascii_hexdigit))
    }

    /// Makes the directory of a new run below a project's `.practicum` folder.
    pub fn create(project: &Path, id: String) -> Result<Self, StoreError> {
        let home = project.join(".practicum");
        let runs = home.join("runs");
        refuse_linked_records(project)?;
        create_private_folder(&runs).map_err(StoreError::at_path(&runs))?;
        let ignore = home.join(".gitignore");
        if !ignore.exists() {
            // Records contain the output of agents and should not be committed.
            let _ = write_unlinked(&ignore, "*\n");
        }
        let path = runs.join(&id);
        let trials = path.join("trials");
        create_private_folder(&trials).map_err(StoreError::at_path(&trials))?;
        Ok(Self { path, id, key: None })
    }

    /// Gives the project that contains the run's record now: three folders above it. `None` if that is unknown.
    pub fn project(&self) -> Option<PathBuf> {
        self.path.canonicalize().ok()?.ancestors().nth(3).map(Path::to_owned)
    }

    /// Finds an existing run by its id, a unique part of it, its path, or `latest`. The record of a newer program is
    /// refused.
    pub fn find(project: &Path, wanted: &str) -> Result<Self, String> {
        let found = Self::find_any(project, wanted)?;
        let path = found.path.join("run.json");
        let bytes = read_regular(&path).unwrap_or_default();
        refuse_newer_record(&bytes).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(found)
    }

    fn find_any(project: &Path, wanted: &str) -> Result<Self, String> {
        if let Some(run) = Self::at_path(Path::new(wanted)) {
            return Ok(run);
        }
        let runs = Self::all(project);
        if wanted == "latest" {
            return runs
                .into_iter()
                .next_back()
                .ok_or_else(|| "there are no runs yet; practicum run makes one".to_owned());
        }
        let mut fitting: Vec<Self> = runs.into_iter().filter(|run| run.id.contains(wanted)).collect();
        if let Some(exact) = fitting.iter().position(|run| run.id == wanted) {
            return Ok(fitting.swap_remove(exact));
        }
        match fitting.len() {
            0 => Err(format!("there is no run {wanted}; practicum runs lists them")),
            1 => Ok(fitting.swap_remove(0)),
            several => Err(format!("{several} runs fit {wanted}; give more of the id")),
        }
    }

    /// Finds a run like [`RunDir::find`], but `latest` skips runs that checked nothing.
    pub fn find_checked(project: &Path, wanted: &str) -> Result<Self, String> {
        if wanted != "latest" {
            return Self::find(project, wanted);
        }
        let has_checks = |run: &Self| run.info().is_ok_and(|info| info.not_in_history.is_none());
        let latest = Self::all(project).into_iter().rev().find(has_checks);
        latest.ok_or_else(|| "there are no runs of evals yet; practicum run makes one".to_owned())
    }

    /// Gives the run in this folder, if there is one.
    pub fn at_path(path: &Path) -> Option<Self> {
        let path = path.join("run.json").canonicalize().ok()?.parent()?.to_owned();
        Some(Self { id: path.file_name()?.to_string_lossy().into_owned(), path, key: None })
    }

    /// Lists all runs of a project, the oldest first.
    pub fn all(project: &Path) -> Vec<Self> {
        let folders = std::fs::read_dir(project.join(".practicum/runs")).into_iter().flatten().flatten();
        let mut runs: Vec<Self> = folders
            // A link may lead to anything, and this program makes none here.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| entry.path().join("run.json").is_file())
            .map(|entry| Self {
                id: entry.file_name().to_string_lossy().into_owned(),
                path: entry.path(),
                key: None,
            })
            .collect();
        runs.sort_by(|a, b| a.id.cmp(&b.id));
        runs
    }

    /// Reads the record of the run.
    ///
    /// The project may have been moved or copied since the run, so paths inside it are changed to its current
    /// folder.
    pub fn info(&self) -> Result<RunInfo, String> {
        let path = self.path.join("run.json");
        let bytes = read_regular(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        refuse_newer_record(&bytes).map_err(|why| format!("{}: {why}", path.display()))?;
        let mut info: RunInfo =
            serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        let now = self.project().filter(|now| info.project.is_absolute() && *now != info.project);
        if let Some(now) = now {
            let moved = |path: &mut PathBuf| {
                if let Ok(inside) = path.strip_prefix(&info.project) {
                    *path = now.join(inside);
                }
            };
            for suite in info.suites.iter_mut() {
                suite.suite.change_paths(moved);
                suite.skill.iter_mut().for_each(|skill| moved(&mut skill.path));
            }
            if let Some(code) = info.trusted_code.take() {
                let moved_file = |(mut file, digest)| {
                    moved(&mut file);
                    (file, digest)
                };
                info.trusted_code = Some(code.into_iter().map(moved_file).collect());
            }
        }
        Ok(info)
    }

    /// Reads the summary, if the run ended normally. `None` also if the file is not as the log of the run says, whose
    /// lines have checksums: `--resume` writes it again.
    pub fn summary(&self) -> Option<Summary> {
        let file = open_regular(self.path.join("summary.json")).ok()?;
        let stored: Summary = serde_json::from_reader(BufReader::new(file).take(LARGEST_SUMMARY)).ok()?;
        let Some(logged) = read_logged_summary(&self.path) else { return Some(stored) };
        // Almost always both are equal. Comparing them with each other takes far less memory than comparing documents.
        if logged == stored {
            return Some(stored);
        }
        let (logged, found) = (serde_json::to_value(&logged).ok()?, serde_json::to_value(&stored).ok()?);
        is_scrubbed_form(&logged, &found).then_some(stored)
    }

    /// Gives the id of the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Gives the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder of a trial.
    pub fn trial_folder(&self, trial: &TrialId) -> PathBuf {
        self.path.join("trials").join(trial.as_str())
    }

    /// Gives the duration of the run, from its start to the last line of its log.
    pub fn run_duration(&self) -> Duration {
        let written = |name: &str| self.path.join(name).metadata().and_then(|file| file.modified()).ok();
        let ends = written("events.jsonl").zip(written("run.json"));
        ends.and_then(|(last, first)| last.duration_since(first).ok()).unwrap_or_default()
    }

    /// Gives the folder of a probe.
    pub(crate) fn probe_folder(&self, probe: &TrialId) -> PathBuf {
        self.path.join("probes").join(probe.as_str())
    }

    /// Creates the log of the run's events. The other sinks get each event when it is on disk.
    pub fn open_log(
        &self,
        scrubber: Scrubber,
        others: Vec<Box<dyn EventSink>>,
    ) -> Result<EventSinks, StoreError> {
        let path = self.path.join("events.jsonl");
        let log = EventLog::create(&path, scrubber, self.line_marker(), EventSinks::new(others));
        Ok(EventSinks::new(vec![Box::new(log.map_err(StoreError::at_path(&path))?)]))
    }

    /// Writes how the run is made to `run.json`.
    pub fn write_info(&self, info: &RunInfo) -> Result<(), StoreError> {
        self.write_json("run.json", info)?;
        let Some(key) = &self.key else { return Ok(()) };
        let path = self.path.join("run.json");
        let marked = read_regular(&path).and_then(|bytes| key.mark_file(&path, &bytes));
        marked.map_err(StoreError::at_path(&path))
    }

    /// Says whether an installation with this key wrote `run.json`, with the options to resume the run with.
    pub fn is_made_with(&self, key: &RecordKey) -> bool {
        let path = self.path.join("run.json");
        read_regular(&path).is_ok_and(|bytes| key.is_file_marked(&path, &bytes))
    }

    /// Marks everything that is written from now on with a key.
    #[must_use]
    pub fn with_key(self, key: RecordKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Says whether the files of a trial are as this installation wrote them.
    pub fn has_whole_trial(&self, trial: &TrialId) -> bool {
        let folder = self.trial_folder(trial);
        self.key.as_ref().is_some_and(|key| TrialDigest::origin(&folder, key) == TrialOrigin::MadeHere)
    }

    /// Gives the marker of the lines of the log.
    pub fn line_marker(&self) -> LineMarker {
        LineMarker::new(&self.id, self.key.clone())
    }

    /// Writes the results of the run to `summary.json`.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), StoreError> {
        self.write_json("summary.json", summary)
    }

    /// Makes the folder of a trial. Files of an earlier failed run of the trial are deleted.
    pub(crate) fn create_trial_folder(&self, trial: &TrialId) -> Result<PathBuf, StoreError> {
        create_empty_folder(self.trial_folder(trial))
    }

    /// Makes the folder of a probe. Files of an earlier failed run of the probe are deleted.
    pub(crate) fn create_probe_folder(&self, probe: &TrialId) -> Result<PathBuf, StoreError> {
        let probes = self.path.join("probes");
        create_private_folder(&probes).map_err(StoreError::at_path(&probes))?;
        create_empty_folder(self.probe_folder(probe))
    }

    /// Moves the folder of a failed run of a trial aside, because nothing that was paid for is thrown away.
    pub(crate) fn set_aside_failed_try(&self, folder: &Path) -> std::io::Result<()> {
        let earlier = self.path.join("earlier");
        create_private_folder(&earlier)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let free = (1..).map(|n| earlier.join(format!("{name}.{n}"))).find(|path| !path.exists());
        free.map_or(Ok(()), |to| std::fs::rename(folder, to))
    }

    /// Completes a trial's folder: output, facts and checks, all without secrets.
    pub(crate) fn complete_trial(
        &self,
        folder: &Path,
        record: &TrialRecord,
        output: &str,
        facts: TrialFacts,
        scrubber: &Scrubber,
    ) -> Result<(), StoreError> {
        // Everything is scrubbed before it is written: a killed program leaves no secret on disk.
        let mut known = BTreeMap::new();
        let mut write_new = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            known.insert(name.to_owned(), Digest::of_bytes(bytes));
            write_unlinked(&path, bytes).map_err(StoreError::at_path(&path))
        };
        write_new("output.txt", scrubber.scrub_text(output).as_bytes())?;
        let path = folder.join("transcript.jsonl");
        let facts = facts.with_scrubbed_lengths(&path, scrubber).map_err(StoreError::at_path(&path))?;
        let path = folder.join("facts.json");
        let bytes = serde_json::to_vec(&facts).map_err(|error| StoreError::at_path(&path)(error.into()))?;
        let bytes = scrubber.scrub_bytes(&bytes).unwrap_or(bytes);
        write_new("facts.json", &bytes)?;
        known.insert("checks.json".to_owned(), write_checks(folder, record, scrubber)?);
        // A login that the agent renewed was not known while its output was written.
        if scrubber.scrub_folder(folder).map_err(StoreError::at_path(folder))? {
            known.clear();
        }
        TrialDigest::write_with_known(folder, self.key.as_ref(), &known).map_err(StoreError::at_path(folder))
    }

    fn write_digest(&self, folder: &Path) -> Result<(), StoreError> {
        TrialDigest::write(folder, self.key.as_ref()).map_err(StoreError::at_path(folder))
    }

    /// Writes a trial's record again.
    pub(crate) fn write_record(&self, record: &TrialRecord, scrubber: &Scrubber) -> Result<(), StoreError> {
        self.write_record_in(&self.trial_folder(&record.trial), record, scrubber)
    }

    /// Writes the record of a trial or a probe into its folder, and the digests of the files there.
    pub(crate) fn write_record_in(
        &self,
        folder: &Path,
        record: &TrialRecord,
        scrubber: &Scrubber,
    ) -> Result<(), StoreError> {
        write_checks(folder, record, scrubber)?;
        self.write_digest(folder)
    }

    /// Writes a JSON file in the folder, as a whole or not at all.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        let path = self.path.join(name);
        // The file is written under another name and then renamed, so that a reader never sees half of it.
        let aside = self.path.join(format!(".{name}.new"));
        // It is written in parts, because the whole text of a large run would take much memory.
        let written = create_unlinked(&aside).map(BufWriter::new).and_then(|mut file| {
            serde_json::to_writer_pretty(&mut file, value)?;
            file.flush()
        });
        written.map_err(StoreError::at_path(&aside))?;
        std::fs::rename(&aside, &path).map_err(StoreError::at_path(&path))
    }
}

/// The largest summary that is read. That of ten thousand cases has about twenty megabytes.
const LARGEST_SUMMARY: u64 = 1024 * 1024 * 1024;

/// The version of records that this program writes and reads.
const RECORD_VERSION: u32 = 1;

/// Refuses the record of a newer program: what it means may have changed, even if it can be read.
fn refuse_newer_record(bytes: &[u8]) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct RecordVersion {
        schema_version: u32,
    }
    match serde_json::from_slice(bytes) {
        Ok(RecordVersion { schema_version }) if schema_version > RECORD_VERSION => Err(format!(
            "the record has version {schema_version}, and this practicum reads version {RECORD_VERSION}; use a newer one"
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Says whether two documents are equal, but for secrets that were removed from texts of the first.
fn is_scrubbed_form(scrubbed: &Value, whole: &Value) -> bool {
    let is_same_text = |scrubbed: &str, whole: &str| scrubbed == whole || scrubbed.contains("[secret]");
    match (scrubbed, whole) {
        (Value::String(scrubbed), Value::String(whole)) => is_same_text(scrubbed, whole),
        (Value::Array(scrubbed), Value::Array(whole)) => {
            scrubbed.len() == whole.len() && scrubbed.iter().zip(whole).all(|(a, b)| is_scrubbed_form(a, b))
        }
        (Value::Object(scrubbed), Value::Object(whole)) => {
            let is_same = |(a, b): ((&String, &Value), (&String, &Value))| {
                is_same_text(a.0, b.0) && is_scrubbed_form(a.1, b.1)
            };
            scrubbed.len() == whole.len() && scrubbed.iter().zip(whole).all(is_same)
        }
        _ => scrubbed == whole,
    }
}

/// The folders of records below a project. All of them are made by this program.
const RECORD_PATHS: [&str; 4] =
    [".practicum", ".practicum/runs", ".practicum/cache", ".practicum/cache/trials"];

/// Refuses a folder of records that is a link: what is written or removed below it would be somewhere else.
pub fn refuse_linked_records(project: &Path) -> Result<(), StoreError> {
    let linked = RECORD_PATHS.iter().map(|path| project.join(path)).find(|path| path.is_symlink());
    let why = "it is a link, and records are only kept in a folder of the project itself; remove the link";
    linked.map_or(Ok(()), |path| Err(StoreError::at_path(&path)(std::io::Error::other(why))))
}

/// Makes an empty folder, deleting what is there.
fn create_empty_folder(path: PathBuf) -> Result<PathBuf, StoreError> {
    let create = || std::fs::DirBuilder::new().mode(0o700).create(&path);
    match create() {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            remove_folder(&path).map_err(StoreError::at_path(&path))?;
            create().map_err(StoreError::at_path(&path))?;
        }
        Err(error) => return Err(StoreError::at_path(&path)(error)),
    }
    Ok(path)
}

/// Writes the check results, and gives the digest of the file. The existing file may be a hard link to another run's, so it is replaced and not
/// overwritten.
fn write_checks(folder: &Path, record: &TrialRecord, scrubber: &Scrubber) -> Result<Digest, StoreError> {
    let (path, aside) = (folder.join("checks.json"), folder.join(".checks.json.new"));
    let bytes = serde_json::to_vec_pretty(&TrialChecks { schema_version: 1, record })
        .map_err(|error| StoreError::at_path(&path)(error.into()))?;
    let bytes = scrubber.scrub_bytes(&bytes).unwrap_or(bytes);
    write_unlinked(&aside, &bytes).map_err(StoreError::at_path(&aside))?;
    std::fs::rename(&aside, &path).map_err(StoreError::at_path(&path))?;
    Ok(Digest::of_bytes(&bytes))
}

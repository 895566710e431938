//! What coordinator and workers write to the server, and the names under which they do.

use std::collections::BTreeSet;

use practicum_core::model::TrialId;
use practicum_engine::store::{MarkKind, RecordKey};
use serde::{Deserialize, Serialize};

/// The stream of the trials that are to be run.
pub const TRIALS_STREAM: &str = "PRACTICUM_TRIALS";
/// The first part of the subjects of that stream.
pub const TRIALS_SUBJECT: &str = "practicum.trials";
/// The key-value bucket of accounts that must pause.
pub const PAUSES: &str = "practicum_pauses";
/// The object store of the files of runs. It is kept for later runs with the same files.
pub const BUNDLES: &str = "practicum_bundles";
/// The key of a run's state in its bucket.
pub const STATE_KEY: &str = "state";
/// The key of a run's budget in its bucket.
pub const BUDGET_KEY: &str = "budget";

/// How often a trial is delivered before it counts as lost.
pub const MOST_DELIVERIES: i64 = 3;

/// Gives the name of a run's key-value bucket and object store.
pub fn run_bucket(run: &str) -> String {
    format!("practicum_{run}")
}

/// Gives the subject on which workers tell the coordinator of a run what they do.
pub fn news_subject(run: &str) -> String {
    format!("practicum.news.{run}")
}

/// The trials that the same workers can run: those of one key, one agent and one set of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSet {
    /// The agent that runs the trials.
    pub agent: String,
    /// The labels that a worker must have.
    pub labels: BTreeSet<String>,
}

/// The key of a consumer's metadata with its labels.
pub const LABELS_METADATA: &str = "practicum-labels";
/// The key of a consumer's metadata with its agent.
pub const AGENT_METADATA: &str = "practicum-agent";

impl LabelSet {
    /// Gives the labels as one text.
    pub fn labels_text(&self) -> String {
        self.labels.iter().map(String::as_str).collect::<Vec<&str>>().join(",")
    }

    /// Gives the name of the consumer of these trials. Any agent and label may be part of it, so it is a digest.
    pub fn consumer(&self, key: &RecordKey) -> String {
        let parts = [self.agent.clone(), self.labels_text()];
        let digest = key.mark(MarkKind::WorkQueue, parts.iter().map(String::as_bytes));
        format!("{}-{}", queue_of(key), &digest[..16])
    }

    /// Gives the subject of the trials of a run. With `*` for the run it is that of the trials of all runs.
    pub fn subject(&self, key: &RecordKey, run: &str) -> String {
        format!("{TRIALS_SUBJECT}.{}.{run}", self.consumer(key))
    }
}

/// Gives the name of the work of one key. Workers with another key leave it alone.
pub fn queue_of(key: &RecordKey) -> String {
    key.mark(MarkKind::WorkQueue, [b"project".as_slice()])[..16].to_owned()
}

/// A trial that a worker is asked to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialTask {
    /// The id of the run.
    pub run: String,
    /// The digest of the bundle with the files of the run.
    pub bundle: String,
    /// The id of the trial.
    pub trial: TrialId,
    /// The position of the trial in the plan.
    pub index: usize,
    /// Whether the trial is a probe.
    pub is_probe: bool,
    /// The agent that runs the trial.
    pub agent: String,
    /// The digest of everything that the result depends on.
    pub key: String,
    /// The number of the try, from 1.
    pub attempt: u32,
    /// How long a worker may be silent before the trial is given to another, in milliseconds.
    pub lease_ms: u64,
}

/// A document with the mark of the key that it was written with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Marked<T> {
    document: T,
    mark: String,
}

impl TrialTask {
    /// Gives the key of the trial's result in the bucket of the run. Each try has its own.
    pub fn done_key(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [self.trial.as_str(), "\0", &self.key] {
            hasher.update(part.as_bytes());
        }
        let kind = if self.is_probe { "probe" } else { "trial" };
        format!("done.{kind}.{}.{}", &hasher.finalize().to_hex()[..32], self.attempt)
    }

    /// Gives the id by which the server recognises a message that was sent twice. `session` changes when a run is
    /// continued whose messages were taken back.
    pub fn message_id(&self, session: u64) -> String {
        format!("{}/{}/{session}.{}", self.run, self.done_key(), self.attempt)
    }
}

/// The result of a trial, under its own key in the bucket of the run. The first one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialDone {
    /// The id of the run.
    pub run: String,
    /// The key of this document, so that it is valid for one trial only.
    pub done_key: String,
    /// The name of the worker.
    pub worker: String,
    /// The name of the uploaded archive; unique for each upload.
    pub object: String,
    /// What became of the trial.
    pub end: TrialEnd,
}

/// What became of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialEnd {
    /// The trial ended, and its archive has this digest.
    Finished {
        /// The digest of the archive.
        digest: String,
    },
    /// The trial was delivered several times, and nobody ran it to its end.
    Lost {
        /// Why.
        why: String,
    },
}

impl<T: Serialize> Marked<T> {
    /// Marks a document.
    pub fn new(document: T, key: &RecordKey, kind: MarkKind) -> Self {
        let mark = key.mark(kind, [bytes_of(&document).as_slice()]);
        Self { document, mark }
    }

    /// Gives the document if this key marked it.
    pub fn verified(self, key: &RecordKey, kind: MarkKind) -> Option<T> {
        key.is_mark(&self.mark, kind, [bytes_of(&self.document).as_slice()]).then_some(self.document)
    }
}

fn bytes_of(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

/// The state of a shared run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// What workers may do.
    pub phase: RunPermission,
    /// The number of the coordinator's session: it grows when messages of an earlier one were taken back.
    pub session: u64,
}

/// What workers may do for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPermission {
    /// Trials may begin.
    Running,
    /// No trial may begin; running ones go on.
    Recalled,
    /// Running trials are ended.
    Cancelled,
}

/// What a worker tells the coordinator while it works. It is for people, so it may get lost.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerNews {
    /// The worker began a trial.
    Began {
        /// The key of the trial's result.
        done_key: String,
        /// The name of the worker.
        worker: String,
    },
    /// The worker cannot go on.
    Trouble {
        /// The name of the worker.
        worker: String,
        /// What it tries in vain, and why.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TrialTask {
        TrialTask {
            run: "r".to_owned(),
            bundle: "b".to_owned(),
            trial: serde_json::from_str("\"case-1\"").expect("an id"),
            index: 3,
            is_probe: false,
            agent: "builtin".to_owned(),
            key: "k".to_owned(),
            attempt: 1,
            lease_ms: 1,
        }
    }

    #[test]
    fn a_task_counts_only_with_the_mark_of_the_own_key_and_kind() {
        let (own, other) = (RecordKey::temporary(), RecordKey::temporary());
        let marked = || {
            let text = serde_json::to_vec(&Marked::new(task(), &own, MarkKind::WorkerTask)).expect("written");
            serde_json::from_slice::<Marked<TrialTask>>(&text).expect("read")
        };
        assert_eq!(marked().verified(&own, MarkKind::WorkerTask), Some(task()));
        assert_eq!(marked().verified(&other, MarkKind::WorkerTask), None);
        assert_eq!(marked().verified(&own, MarkKind::WorkerResult), None);
        let changed = Marked { document: TrialTask { bundle: "other".to_owned(), ..task() }, ..marked() };
        assert_eq!(changed.verified(&own, MarkKind::WorkerTask), None);
    }

    #[test]
    fn each_try_and_each_kind_has_its_own_result_and_label_sets_do_not_overlap() {
        let again = TrialTask { attempt: 2, ..task() };
        let probe = TrialTask { is_probe: true, ..task() };
        let keys: BTreeSet<String> = [&task(), &again, &probe].map(TrialTask::done_key).into();
        assert_eq!(keys.len(), 3);
        assert_ne!(task().message_id(1), task().message_id(2));
        let key = RecordKey::temporary();
        let set = |agent: &str, labels: &[&str]| LabelSet {
            agent: agent.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        let subjects: BTreeSet<String> =
            [set("a", &[]), set("b", &[]), set("a", &["x"]), set("a.*", &["> x"])]
                .map(|set| set.subject(&key, "*"))
                .into();
        assert_eq!(subjects.len(), 4);
        assert!(subjects.iter().all(|subject| !subject[..subject.len() - 1].contains(['*', '>', ' '])));
    }
}

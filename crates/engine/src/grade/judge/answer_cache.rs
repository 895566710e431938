//! A cache of judge answers on disk, keyed by the question, so that the same question is paid for only once.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::{MarkKind, RecordKey};
use practicum_core::model::Digest;
use practicum_core::tree::read_regular;

/// The largest answer, in bytes, that is stored or read.
const MAX_ANSWER_BYTES: u64 = 1024 * 1024;

/// A function that returns a text with its secrets removed.
pub type ScrubFn = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A folder with one file for each question that was answered completely.
#[derive(Clone)]
pub struct AnswerCache {
    folder: PathBuf,
    scrub: ScrubFn,
    key: RecordKey,
}

/// The content of one cache file.
#[derive(Serialize, Deserialize)]
struct CachedAnswers {
    schema_version: u32,
    /// All answers in the order in which they came. The judge was asked to correct all but the last.
    answers: Vec<Value>,
    /// The mark of the installation that asked. Answers of others are not used: they could say anything.
    #[serde(default)]
    mark: String,
}

impl AnswerCache {
    pub fn new(folder: PathBuf, scrub: ScrubFn, key: RecordKey) -> Self {
        Self { folder, scrub, key }
    }

    /// Reads the stored answers to a question; `None` if there are none that can be used.
    pub fn find(&self, key: &Digest) -> Option<Vec<Value>> {
        let path = self.path(key);
        if std::fs::metadata(&path).ok()?.len() > MAX_ANSWER_BYTES {
            return None;
        }
        let kept: CachedAnswers = serde_json::from_slice(&read_regular(path).ok()?).ok()?;
        let text = serde_json::to_string(&kept.answers).ok()?;
        let parts = [key.as_str().as_bytes(), text.as_bytes()];
        let is_own = self.key.is_mark(&kept.mark, MarkKind::JudgeAnswers, parts);
        (kept.schema_version == 1 && !kept.answers.is_empty() && is_own).then_some(kept.answers)
    }

    /// Stores the answers to a question. The file appears complete or not at all, so no reader sees half of it.
    /// Write errors are ignored: the next run only has to ask again. An answer that contains a secret is not
    /// stored.
    pub fn store(&self, key: &Digest, answers: &[Value]) {
        let Ok(text) = serde_json::to_string(answers) else { return };
        let mark = self.key.mark(MarkKind::JudgeAnswers, [key.as_str().as_bytes(), text.as_bytes()]);
        let kept = CachedAnswers { schema_version: 1, answers: answers.to_vec(), mark };
        let Ok(text) = serde_json::to_string(&kept) else { return };
        if text.len() as u64 > MAX_ANSWER_BYTES || (self.scrub)(&text) != text {
            return;
        }
        let written = || -> std::io::Result<()> {
            std::fs::create_dir_all(&self.folder)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.persist(self.path(key))?;
            Ok(())
        };
        let _ = written();
    }

    fn path(&self, key: &Digest) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_found_again_unless_they_are_too_large_broken_or_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let scrub: ScrubFn = Arc::new(|text| text.replace("sk-1", "***"));
        let cache = AnswerCache::new(folder.path().join("deep/judge"), scrub, RecordKey::temporary());
        let key = |name: &str| Digest::of_bytes(name.as_bytes());
        for (name, answer, kept) in [
            ("plain", json!({"a": 1}), true),
            ("secret", json!({"a": "sk-1"}), false),
            ("large", json!({"a": "x".repeat(2 * 1024 * 1024)}), false),
        ] {
            assert_eq!(cache.find(&key(name)), None);
            cache.store(&key(name), std::slice::from_ref(&answer));
            assert_eq!(cache.find(&key(name)), kept.then(|| vec![answer]), "{name}");
        }
        for broken in
            ["", "{", "{\"schema_version\":2,\"answers\":[{}]}", "{\"schema_version\":1,\"answers\":[]}"]
        {
            std::fs::write(cache.path(&key("plain")), broken).expect("written");
            assert_eq!(cache.find(&key("plain")), None, "{broken}");
        }
        let files = std::fs::read_dir(folder.path().join("deep/judge")).expect("a folder").count();
        assert_eq!(files, 1, "nothing half written is left");
    }
}

//! The labels that people give to judged checks: `labels.jsonl` of a run directory, append-only.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use practicum_core::model::TrialId;
use practicum_core::tree::{append_unlinked, read_bounded};

/// A person's word on one judged check: a line of `labels.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "LabelLine")]
#[schemars(title = "A person's word on a judged check (a line of labels.jsonl)")]
pub struct HumanLabel {
    /// The version of this document's form.
    #[schemars(extend("const" = 2))]
    pub schema_version: u32,
    /// When the person said it.
    pub at: String,
    /// The trial.
    pub trial: TrialId,
    /// The id of the check.
    pub check: String,
    /// The verdict of the judge.
    pub judge_passed: bool,
    /// Whether the check passes in the eyes of the person.
    pub passed: bool,
    /// Whether the person said it before the judge's verdict was shown.
    pub blind: bool,
}

/// A line as it is stored. The first version said whether the person agrees with a verdict that was shown.
#[derive(Deserialize, JsonSchema)]
struct LabelLine {
    at: String,
    trial: TrialId,
    check: String,
    judge_passed: bool,
    passed: Option<bool>,
    agrees: Option<bool>,
    #[serde(default)]
    blind: bool,
}

impl TryFrom<LabelLine> for HumanLabel {
    type Error = &'static str;

    fn try_from(line: LabelLine) -> Result<Self, Self::Error> {
        let LabelLine { at, trial, check, judge_passed, passed, agrees, blind } = line;
        let agreed = agrees.map(|agrees| agrees == judge_passed);
        let passed = passed.or(agreed).ok_or("it does not say whether the check passes")?;
        Ok(Self { schema_version: 2, at, trial, check, judge_passed, passed, blind })
    }
}

const LABELS_FILE: &str = "labels.jsonl";

/// The largest file of labels that is read. People do not write more.
pub(super) const LARGEST_LABELS_FILE: u64 = 64 * 1024 * 1024;

/// The stored labels of a run: what a person said of each check first, and whether that was blind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredLabels {
    /// The labels, by trial and check.
    pub labels: Vec<HumanLabel>,
    /// The number of lines that could not be read.
    pub unreadable: u64,
}

impl HumanLabel {
    /// Appends a line with a single write, so that two writers do not mix their lines.
    pub fn append(&self, run: &Path) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        append_unlinked(run.join(LABELS_FILE))?.write_all(&line)
    }

    /// Reads the labels of a run. Of several labels of one check the first blind one counts: what a person says after
    /// seeing the verdict would make every judge look right. Without a blind one the last counts.
    pub fn read_all(run: &Path) -> Result<StoredLabels, String> {
        let path = run.join(LABELS_FILE);
        if path.symlink_metadata().is_err() {
            return Ok(StoredLabels::default());
        }
        let bytes = read_bounded(&path, LARGEST_LABELS_FILE)
            .map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        let mut counted: BTreeMap<(TrialId, String), HumanLabel> = BTreeMap::new();
        let mut unreadable = 0;
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            let Ok(label) = serde_json::from_slice::<HumanLabel>(line) else {
                unreadable += 1;
                continue;
            };
            let key = (label.trial.clone(), label.check.clone());
            if !counted.get(&key).is_some_and(|known| known.blind) {
                counted.insert(key, label);
            }
        }
        Ok(StoredLabels { labels: counted.into_values().collect(), unreadable })
    }

    /// Counts how judge and people decided: rows are the judge's verdicts, columns those of people, a pass first.
    pub fn agreement_table(labels: &[HumanLabel]) -> [[u64; 2]; 2] {
        let mut table = [[0; 2]; 2];
        for label in labels {
            table[usize::from(!label.judge_passed)][usize::from(!label.passed)] += 1;
        }
        table
    }
}

/// What a label is about: the run that made the output, the trial and the check. A run that only graded the outputs of
/// another run again shares its labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelKey {
    /// The run that made the output.
    pub outputs_of: String,
    /// The trial.
    pub trial: TrialId,
    /// The id of the check.
    pub check: String,
}

/// Labels from several places, which must not contradict each other.
#[derive(Debug, Clone, Default)]
pub struct PersonLabels {
    labels: BTreeMap<LabelKey, (bool, String)>,
}

impl PersonLabels {
    /// Adds a label. The error names both places if an earlier label says the opposite.
    pub fn add(&mut self, key: LabelKey, passed: bool, place: &str) -> Result<(), String> {
        let word = |passed: bool| if passed { "pass" } else { "fail" };
        match self.labels.get(&key) {
            Some((known, _)) if *known == passed => Ok(()),
            Some((known, first)) => Err(format!(
                "{place}: check {} of trial {} is labelled {}, but {} in {first}",
                key.check,
                key.trial.as_str(),
                word(passed),
                word(*known)
            )),
            None => {
                self.labels.insert(key, (passed, place.to_owned()));
                Ok(())
            }
        }
    }

    /// Gives the label of an output, if it has one.
    pub fn get(&self, key: &LabelKey) -> Option<bool> {
        self.labels.get(key).map(|(passed, _)| *passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Arm, Condition, SkillUseMode};

    fn trial() -> TrialId {
        let condition =
            Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: SkillUseMode::Baseline };
        TrialId::new("s", "c", &condition, 1)
    }

    #[test]
    fn the_first_blind_word_counts_and_unreadable_lines_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let say = |check: &str, judge_passed: bool, passed: bool, blind: bool| {
            let label = HumanLabel {
                schema_version: 2,
                at: "now".into(),
                trial: trial(),
                check: check.into(),
                judge_passed,
                passed,
                blind,
            };
            label.append(folder.path()).expect("written");
        };
        assert_eq!(HumanLabel::read_all(folder.path()), Ok(StoredLabels::default()));
        say("a", true, true, true);
        say("b", true, false, true);
        // After the verdict was shown, the person gives in.
        say("b", true, true, false);
        say("c", false, false, false);
        say("c", false, true, false);
        say("d", false, true, false);
        say("d", false, false, true);
        let path = folder.path().join(LABELS_FILE);
        let mut file = std::fs::File::options().append(true).open(&path).expect("open");
        let earlier = format!(
            "{{\"schema_version\":1,\"at\":\"then\",\"trial\":{:?},\"check\":\"e\",\"judge_passed\":false,\"agrees\":false}}\ntorn",
            trial().as_str()
        );
        file.write_all(earlier.as_bytes()).expect("written");
        let StoredLabels { labels, unreadable } = HumanLabel::read_all(folder.path()).expect("labels");
        let found: Vec<(&str, bool, bool)> =
            labels.iter().map(|label| (label.check.as_str(), label.passed, label.blind)).collect();
        let expected = [
            ("a", true, true),
            ("b", false, true),
            ("c", true, false),
            ("d", false, true),
            ("e", true, false),
        ];
        assert_eq!(found, expected);
        assert_eq!(unreadable, 1);
        assert_eq!(HumanLabel::agreement_table(&labels), [[1, 1], [2, 1]]);
    }

    #[test]
    fn labels_that_contradict_each_other_are_refused_with_both_places() {
        let key = LabelKey { outputs_of: "r".into(), trial: trial(), check: "polite".into() };
        let mut labels = PersonLabels::default();
        assert_eq!(labels.add(key.clone(), true, "a.csv, line 2"), Ok(()));
        assert_eq!(labels.add(key.clone(), true, "a.csv, line 3"), Ok(()));
        let why = labels.add(key.clone(), false, "b.csv, line 9").expect_err("contradiction");
        assert!(why.starts_with("b.csv, line 9: check polite"), "{why}");
        assert!(why.ends_with("is labelled fail, but pass in a.csv, line 2"), "{why}");
        assert_eq!(labels.get(&key), Some(true));
    }
}

//! The labels that people give to judged checks: `labels.jsonl` of a run directory, append-only.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use practicum_core::model::TrialId;
use practicum_core::tree::{append_unlinked, open_regular};

/// A person's word on one judged check: a line of `labels.jsonl`. The last of a check counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "A person's word on a judged check (a line of labels.jsonl)")]
pub struct HumanLabel {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub at: String,
    pub trial: TrialId,
    pub check: String,
    /// The verdict of the judge.
    pub judge_passed: bool,
    /// Whether the person agrees; `None` takes an earlier word back.
    pub agrees: Option<bool>,
}

const LABELS_FILE: &str = "labels.jsonl";

/// The largest file of labels that is read. People do not write more.
const LARGEST_LABELS_FILE: u64 = 64 * 1024 * 1024;

impl HumanLabel {
    /// Appends a line with a single write, so that two writers do not mix their lines.
    pub fn append(&self, run: &Path) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        append_unlinked(run.join(LABELS_FILE))?.write_all(&line)
    }

    /// Reads the labels of a run: the last one of each check. Invalid lines are ignored.
    pub fn read_all(run: &Path) -> std::io::Result<Vec<HumanLabel>> {
        let file = match open_regular(run.join(LABELS_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut last = BTreeMap::new();
        for line in BufReader::new(file.take(LARGEST_LABELS_FILE)).split(b'\n') {
            if let Ok(label) = serde_json::from_slice::<HumanLabel>(&line?) {
                last.insert((label.trial.clone(), label.check.clone()), label);
            }
        }
        Ok(last.into_values().filter(|label| label.agrees.is_some()).collect())
    }

    /// Counts how judge and people decided: rows are the judge's verdicts, columns those of people, a pass first.
    pub fn agreement_table(labels: &[HumanLabel]) -> [[u64; 2]; 2] {
        let mut table = [[0; 2]; 2];
        for label in labels {
            let Some(agrees) = label.agrees else { continue };
            let person_passed = label.judge_passed == agrees;
            table[usize::from(!label.judge_passed)][usize::from(!person_passed)] += 1;
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Arm, Condition, SkillUseMode};

    #[test]
    fn the_last_word_counts_and_can_be_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let condition =
            Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: SkillUseMode::Baseline };
        let say = |check: &str, judge_passed: bool, agrees: Option<bool>| {
            let label = HumanLabel {
                schema_version: 1,
                at: "now".into(),
                trial: TrialId::new("s", "c", &condition, 1),
                check: check.into(),
                judge_passed,
                agrees,
            };
            label.append(folder.path()).expect("written");
        };
        assert_eq!(HumanLabel::read_all(folder.path()).expect("none"), []);
        say("a", true, Some(true));
        say("b", true, Some(true));
        say("b", true, Some(false));
        say("c", false, Some(true));
        say("d", false, Some(false));
        say("e", true, Some(true));
        say("e", true, None);
        let mut file =
            std::fs::File::options().append(true).open(folder.path().join(LABELS_FILE)).expect("open");
        file.write_all(b"torn").expect("written");
        let labels = HumanLabel::read_all(folder.path()).expect("labels");
        assert_eq!(labels.len(), 4);
        assert_eq!(HumanLabel::agreement_table(&labels), [[1, 1], [1, 1]]);
    }
}

//! What judges are calibrated with: the verdicts of stored runs, and labels from the viewer and from files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::label_file::{LabelRow, LabelToFill, read_label_file};
use super::labels::{HumanLabel, LabelKey, PersonLabels};
use super::{JudgedItem, JudgedRun, RunDir};
use practicum_core::aggregate::{Calibration, JudgeDrift, JudgedOutput, VerdictPair, calibrate, count_drift};
use practicum_core::model::count_with_noun;

/// The verdicts of judges and the labels of people.
#[derive(Debug, Clone)]
pub struct CalibrationInput {
    runs: Vec<JudgedRun>,
    /// The run with the verdicts of an earlier judge.
    earlier: Option<JudgedRun>,
    labels: PersonLabels,
    not_blind: u64,
    /// Remarks for the user, such as labels that do not count.
    pub notices: Vec<String>,
}

impl CalibrationInput {
    /// Reads runs with the labels that the viewer stored. `earlier` is a run in which another judge graded the same
    /// outputs as in the only other run.
    pub fn read(project: &Path, wanted: &[String], earlier: Option<&str>) -> Result<Self, String> {
        let find = |wanted: &str| JudgedRun::read(&RunDir::find(project, wanted)?);
        let mut runs: Vec<JudgedRun> = Vec::new();
        for wanted in wanted {
            let run = find(wanted)?;
            if runs.iter().all(|known| known.id != run.id) {
                runs.push(run);
            }
        }
        // A trial that was reused counts once, in its own run.
        let ids: BTreeSet<String> = runs.iter().map(|run| run.id.clone()).collect();
        for run in &mut runs {
            run.items.retain(|item| !item.reused_from.as_ref().is_some_and(|from| ids.contains(from)));
        }
        let earlier = earlier.map(find).transpose()?;
        if let Some(earlier) = &earlier {
            refuse_other_outputs(earlier, &runs)?;
        }
        let mut input =
            Self { runs, earlier, labels: PersonLabels::default(), not_blind: 0, notices: Vec::new() };
        input.add_stored_labels(project)?;
        Ok(input)
    }

    fn add_stored_labels(&mut self, project: &Path) -> Result<(), String> {
        let read = self.runs.iter().chain(&self.earlier);
        let places: BTreeSet<(String, String)> = read
            .flat_map(|run| [&run.outputs_of, &run.id].map(|id| (id.clone(), run.outputs_of.clone())))
            .collect();
        let (mut not_blind, mut unreadable) = (0, 0);
        for (id, outputs_of) in places {
            // The run that made the outputs may have been removed since.
            let Some(run) = RunDir::find(project, &id).ok().filter(|run| run.id() == id) else { continue };
            let stored = HumanLabel::read_all(run.path())?;
            unreadable += stored.unreadable;
            for label in stored.labels {
                if !label.blind {
                    not_blind += 1;
                    continue;
                }
                let key = LabelKey { outputs_of: outputs_of.clone(), trial: label.trial, check: label.check };
                self.labels.add(key, label.passed, &format!("labels.jsonl of run {id}"))?;
            }
        }
        self.not_blind = not_blind;
        if unreadable > 0 {
            let lines = count_with_noun(unreadable, "line");
            self.notices.push(format!("{lines} of labels.jsonl cannot be read, and do not count"));
        }
        Ok(())
    }

    /// Adds the labels of a file. The error lists every line that cannot be used; nothing is left out silently.
    pub fn add_label_file(&mut self, path: &Path) -> Result<(), Vec<String>> {
        let (mut problems, mut open, mut without_verdict) = (Vec::new(), 0, 0);
        let known = self.known_outputs();
        for row in read_label_file(path)? {
            let place = format!("{}, line {}", path.display(), row.line);
            let found = self.key_of(&row, &known);
            match (found, row.passed) {
                (Err(why), _) => problems.push(format!("{place}: {why}")),
                (Ok(_), None) => open += 1,
                (Ok((key, is_scored)), Some(passed)) => {
                    without_verdict += u64::from(!is_scored);
                    problems.extend(self.labels.add(key, passed, &place).err());
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut note = |count: u64, why: &str| {
            if count > 0 {
                let lines = count_with_noun(count, "line");
                self.notices.push(format!("{}: {lines} {why}", path.display()));
            }
        };
        note(open, "without a label");
        note(without_verdict, "with a label on what the judge gave no usable answer on");
        Ok(())
    }

    /// Gives every output that can have a label, and whether a judge decided it.
    fn known_outputs(&self) -> BTreeMap<LabelKey, bool> {
        let mut known = BTreeMap::new();
        for run in self.runs.iter().chain(&self.earlier) {
            for (trial, check) in &run.not_scored {
                let outputs_of = run.outputs_of.clone();
                known
                    .entry(LabelKey { outputs_of, trial: trial.clone(), check: check.clone() })
                    .or_insert(false);
            }
            known.extend(run.items.iter().map(|item| (run.label_key(item), true)));
        }
        known
    }

    fn key_of(&self, row: &LabelRow, known: &BTreeMap<LabelKey, bool>) -> Result<(LabelKey, bool), String> {
        let origins: BTreeSet<&str> = self.runs.iter().map(|run| run.outputs_of.as_str()).collect();
        let outputs_of = match &row.run {
            Some(id) => {
                let named =
                    self.runs.iter().chain(&self.earlier).find(|run| run.id == *id || run.outputs_of == *id);
                named
                    .map(|run| run.outputs_of.as_str())
                    .ok_or_else(|| format!("run \"{id}\" is not calibrated here"))?
            }
            None if origins.len() == 1 => origins.into_iter().next().unwrap_or_default(),
            None => return Err("it names no run, and several are calibrated".to_owned()),
        };
        let fits = |key: &&LabelKey| {
            key.outputs_of == outputs_of && key.trial.as_str() == row.trial && key.check == row.check
        };
        let found = known.keys().find(fits).ok_or_else(|| {
            format!("run {outputs_of} has no judged check \"{}\" of a trial \"{}\"", row.check, row.trial)
        })?;
        Ok((found.clone(), known[found]))
    }

    /// Gives the outputs without a label as lines to fill in, in random order.
    pub fn lines_to_fill(&self) -> Vec<LabelToFill> {
        let open = |run: &JudgedRun, item: &JudgedItem| self.labels.get(&run.label_key(item)).is_none();
        let mut found: Vec<(&JudgedRun, &JudgedItem)> =
            self.runs.iter().flat_map(|run| run.items.iter().map(move |item| (run, item))).collect();
        found.retain(|(run, item)| open(run, item));
        found.sort_by(|a, b| a.1.output.order.cmp(&b.1.output.order));
        found.dedup_by(|a, b| a.1.output.order == b.1.output.order);
        found.into_iter().map(|(run, item)| LabelToFill::new(run, item)).collect()
    }

    fn labelled_outputs(&self, run: &JudgedRun) -> Vec<JudgedOutput> {
        let label = |item: &JudgedItem| JudgedOutput {
            person_passed: self.labels.get(&run.label_key(item)),
            ..item.output.clone()
        };
        run.items.iter().map(label).collect()
    }

    /// Calibrates the judges. `is_sample` says that the labels are a random sample, whatever order they were given in.
    pub fn calibrate(&self, is_sample: bool) -> Calibration {
        let outputs: Vec<JudgedOutput> =
            self.runs.iter().chain(&self.earlier).flat_map(|run| self.labelled_outputs(run)).collect();
        Calibration {
            schema_version: 1,
            runs: self.runs.iter().chain(&self.earlier).map(|run| run.id.clone()).collect(),
            judged: outputs.len() as u64,
            labelled: outputs.iter().filter(|output| output.person_passed.is_some()).count() as u64,
            labels_not_blind: self.not_blind,
            judges: calibrate(&outputs, is_sample),
            drift: self.earlier.as_ref().zip(self.runs.first()).map(|(from, to)| self.drift(from, to)),
        }
    }

    fn drift(&self, from: &JudgedRun, to: &JudgedRun) -> JudgeDrift {
        let by_order = |run: &JudgedRun| -> BTreeMap<_, JudgedOutput> {
            self.labelled_outputs(run).into_iter().map(|output| (output.order.clone(), output)).collect()
        };
        let (before, after) = (by_order(from), by_order(to));
        let pairs: Vec<VerdictPair<'_>> = before
            .iter()
            .filter_map(|(order, before)| Some(VerdictPair { before, after: after.get(order)? }))
            .collect();
        let judges = |of: &BTreeMap<_, JudgedOutput>| -> Vec<String> {
            let names: BTreeSet<&String> = of.values().map(|output| &output.judge).collect();
            names.into_iter().cloned().collect()
        };
        JudgeDrift {
            from_run: from.id.clone(),
            to_run: to.id.clone(),
            from_judges: judges(&before),
            to_judges: judges(&after),
            only_in_one: (before.len() + after.len() - 2 * pairs.len()) as u64,
            changes: count_drift(&pairs),
        }
    }
}

/// Refuses to compare judges that saw different outputs: the difference could come from the agent.
fn refuse_other_outputs(earlier: &JudgedRun, runs: &[JudgedRun]) -> Result<(), String> {
    match runs {
        [one] if one.id == earlier.id => Err("a run cannot be compared with itself".to_owned()),
        [one] if one.outputs_of == earlier.outputs_of => Ok(()),
        [one] => Err(format!(
            "runs {} and {} judged different outputs; practicum grade {} --judge-model MODEL lets another judge grade the same",
            earlier.id, one.id, earlier.id
        )),
        _ => Err("only one run can be compared with an earlier one".to_owned()),
    }
}

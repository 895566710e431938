//! Calibration of judges: how often a judge is right, by what people said of the same outputs.
//!
//! In: judged outputs, some with a person's label. Out: error rates of each judge and criterion, corrected pass rates,
//! what the judge makes of the length of an answer, and changes between two judges.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{Arm, Digest, Estimate};
use crate::stats::{
    ALPHA, Cluster, WeighedShare, clopper_pearson_of_points, corrected_rate, kappa, mcnemar,
    prediction_powered_rate, stratified_test,
};

/// The fewest labels of passes, and of failures, from which error rates are used to correct a rate.
pub const FEWEST_LABELS: u64 = 5;

/// A judge's verdict on one check of one trial, with a person's label if there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedOutput {
    /// The model of the judge.
    pub judge: String,
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The id of the check.
    pub check: String,
    /// The arm of the trial.
    pub arm: Arm,
    /// Whether the judge passed it.
    pub judge_passed: bool,
    /// Whether a person passed it; `None` without a label.
    pub person_passed: Option<bool>,
    /// The place in the random order in which outputs are labelled: lower digests come first.
    pub order: Digest,
    /// The length of the answer in bytes; `None` if it is unknown.
    pub answer_bytes: Option<u64>,
}

/// How right judges are, by the labels of people.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "How right judges are (calibrate --json)")]
pub struct Calibration {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The runs whose verdicts were looked at.
    pub runs: Vec<String>,
    /// The number of verdicts of judges.
    pub judged: u64,
    /// The number of them that have a label.
    pub labelled: u64,
    /// Labels that do not count, because the person had seen the verdict.
    pub labels_not_blind: u64,
    /// Each judge over all criteria, and then by criterion if there are several.
    pub judges: Vec<JudgeCalibration>,
    /// The changes between the judges of two runs, if two were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<JudgeDrift>,
}

/// How right a judge is, over all criteria or on one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JudgeCalibration {
    /// The model of the judge.
    pub judge: String,
    /// The criterion; `None` for all criteria together.
    pub criterion: Option<JudgedCriterion>,
    /// How judge and people decided.
    pub table: AgreementCounts,
    /// The share of outputs that the judge passed, of those that people passed.
    pub sensitivity: Estimate,
    /// The share of outputs that the judge failed, of those that people failed.
    pub specificity: Estimate,
    /// The agreement beyond chance (Cohen's kappa).
    pub kappa: Estimate,
    /// The pass rates, by arm.
    pub rates: Vec<CalibratedRate>,
    /// Whether the verdict depends on the length of the answer; `None` if the labels cannot say.
    pub length: Option<LengthCheck>,
}

/// A criterion: a check of a suite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct JudgedCriterion {
    /// The name of the suite.
    pub suite: String,
    /// The id of the check.
    pub check: String,
}

/// How often judge and people passed and failed the same outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgreementCounts {
    /// Both passed it.
    pub both_passed: u64,
    /// Only the judge passed it.
    pub only_judge_passed: u64,
    /// Only the person passed it.
    pub only_person_passed: u64,
    /// Both failed it.
    pub both_failed: u64,
}

impl AgreementCounts {
    /// Counts the labelled outputs.
    pub fn of<'o>(outputs: impl IntoIterator<Item = &'o JudgedOutput>) -> Self {
        let mut counts = Self::default();
        for output in outputs {
            match (output.judge_passed, output.person_passed) {
                (_, None) => {}
                (true, Some(true)) => counts.both_passed += 1,
                (true, Some(false)) => counts.only_judge_passed += 1,
                (false, Some(true)) => counts.only_person_passed += 1,
                (false, Some(false)) => counts.both_failed += 1,
            }
        }
        counts
    }

    /// Gives the number of labels.
    pub fn labels(self) -> u64 {
        self.both_passed + self.only_judge_passed + self.only_person_passed + self.both_failed
    }

    /// Gives the agreement beyond chance.
    pub fn kappa(self) -> Estimate {
        let table = [[self.both_passed, self.only_judge_passed], [self.only_person_passed, self.both_failed]];
        let found = kappa(table, ALPHA);
        let interval = found.map(|found| (found.interval.low, found.interval.high));
        Estimate::new(found.map(|found| found.value), interval, self.labels())
    }
}

/// The pass rate of an arm: as the judge sees it, and as people would.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CalibratedRate {
    /// The arm.
    pub arm: Arm,
    /// The share that the judge passes.
    pub by_judge: Estimate,
    /// That share, corrected for the judge's error rates (Rogan and Gladen).
    pub corrected: Estimate,
    /// Why there is no corrected rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_corrected: Option<String>,
    /// The share that people would pass, from all verdicts and a random sample of labels (prediction-powered inference).
    pub prediction_powered: Estimate,
    /// Why there is no such share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_prediction_powered: Option<String>,
}

/// What the judge makes of short and long answers that people decided the same way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LengthCheck {
    /// The answers that people passed.
    pub people_passed: LengthSplit,
    /// The answers that people failed.
    pub people_failed: LengthSplit,
    /// The chance of a difference as great as this one or greater if the length did not matter (an exact test).
    pub chance: f64,
    /// Whether the judge prefers longer answers; `None` if it is not clear that the length matters.
    pub prefers_longer: Option<bool>,
}

/// The judge's passes among the shorter and the longer half of some answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LengthSplit {
    /// Passed by the judge, of the shorter answers.
    pub shorter_passed: u64,
    /// The number of shorter answers.
    pub shorter: u64,
    /// Passed by the judge, of the longer answers.
    pub longer_passed: u64,
    /// The number of longer answers.
    pub longer: u64,
}

/// The changes of verdicts on the same outputs from one judge to another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JudgeDrift {
    /// The run with the earlier verdicts.
    pub from_run: String,
    /// The run with the later verdicts.
    pub to_run: String,
    /// The judges of the earlier run.
    pub from_judges: Vec<String>,
    /// The judges of the later run.
    pub to_judges: Vec<String>,
    /// All criteria together, and then each criterion if there are several.
    pub changes: Vec<DriftRow>,
    /// Verdicts of one run that the other does not have.
    pub only_in_one: u64,
}

/// The changes on all criteria or on one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DriftRow {
    /// The criterion; `None` for all criteria together.
    pub criterion: Option<JudgedCriterion>,
    /// The number of outputs that both judged.
    pub outputs: u64,
    /// Failed by the first judge, passed by the second.
    pub now_passed: u64,
    /// Passed by the first judge, failed by the second.
    pub now_failed: u64,
    /// Changes that agree with the label of a person.
    pub corrected: u64,
    /// Changes that contradict the label of a person.
    pub made_wrong: u64,
    /// The chance that the changes are split at least so unevenly if both directions are equally likely (McNemar).
    pub chance: f64,
}

fn estimate(found: Option<WeighedShare>, n: u64) -> Estimate {
    let interval = found.and_then(|of| clopper_pearson_of_points(of.share, of.points, ALPHA));
    Estimate::new(found.map(|of| of.share), interval.map(|at| (at.low, at.high)), n)
}

/// Gives the share of some outputs that the judge or people decided in a way, with cases as clusters.
fn share_of(
    outputs: &[&JudgedOutput],
    counts: impl Fn(&JudgedOutput) -> bool,
    hits: impl Fn(&JudgedOutput) -> bool,
) -> Option<WeighedShare> {
    let mut cases: BTreeMap<(&str, &str), Cluster> = BTreeMap::new();
    for output in outputs.iter().filter(|output| counts(output)) {
        let cluster = cases.entry((&output.suite, &output.case)).or_default();
        cluster.runs += 1;
        cluster.passed += u64::from(hits(output));
    }
    WeighedShare::of_clusters(&cases.into_values().collect::<Vec<_>>())
}

/// Calibrates every judge, over all criteria and by criterion. `is_sample` says that the labels are a random sample
/// whatever order they were given in.
pub fn calibrate(outputs: &[JudgedOutput], is_sample: bool) -> Vec<JudgeCalibration> {
    let judges: BTreeSet<&str> = outputs.iter().map(|output| output.judge.as_str()).collect();
    let mut rows = Vec::new();
    for judge in judges {
        let own: Vec<&JudgedOutput> = outputs.iter().filter(|output| output.judge == judge).collect();
        rows.extend(
            by_criterion(&own)
                .into_iter()
                .map(|(criterion, of)| calibrate_row(judge, criterion, &of, is_sample)),
        );
    }
    rows
}

/// Gives all outputs, and then those of each criterion if there are several.
fn by_criterion<'o>(outputs: &[&'o JudgedOutput]) -> Vec<(Option<JudgedCriterion>, Vec<&'o JudgedOutput>)> {
    let mut criteria: BTreeMap<JudgedCriterion, Vec<&JudgedOutput>> = BTreeMap::new();
    for output in outputs {
        let criterion = JudgedCriterion { suite: output.suite.clone(), check: output.check.clone() };
        criteria.entry(criterion).or_default().push(output);
    }
    let several = criteria.into_iter().map(|(criterion, of)| (Some(criterion), of)).collect::<Vec<_>>();
    match several.len() {
        1 => several,
        _ => std::iter::once((None, outputs.to_vec())).chain(several).collect(),
    }
}

fn calibrate_row(
    judge: &str,
    criterion: Option<JudgedCriterion>,
    outputs: &[&JudgedOutput],
    is_sample: bool,
) -> JudgeCalibration {
    let table = AgreementCounts::of(outputs.iter().copied());
    let (people_passed, people_failed) =
        (table.both_passed + table.only_person_passed, table.both_failed + table.only_judge_passed);
    let sensitivity = share_of(outputs, |of| of.person_passed == Some(true), |of| of.judge_passed);
    let specificity = share_of(outputs, |of| of.person_passed == Some(false), |of| !of.judge_passed);
    let mut arms: BTreeMap<&Arm, Vec<&JudgedOutput>> = BTreeMap::new();
    outputs.iter().for_each(|output| arms.entry(&output.arm).or_default().push(output));
    let rates = arms.into_iter().map(|(arm, of)| {
        let judged = share_of(&of, |_| true, |of| of.judge_passed);
        let n = of.len() as u64;
        let corrected = if people_passed < FEWEST_LABELS || people_failed < FEWEST_LABELS {
            Err(format!(
                "too few labels: {people_passed} passes and {people_failed} failures, at least {FEWEST_LABELS} of each are needed"
            ))
        } else {
            correct_share(judged, specificity, sensitivity)
        };
        let powered = powered_share(&of, judged, is_sample);
        let from = |found: &Result<(f64, (f64, f64)), String>| match found {
            Ok((value, interval)) => Estimate::new(Some(*value), Some(*interval), n),
            Err(_) => Estimate::undefined(n),
        };
        CalibratedRate {
            arm: *arm,
            by_judge: estimate(judged, n),
            corrected: from(&corrected),
            not_corrected: corrected.err(),
            prediction_powered: from(&powered),
            not_prediction_powered: powered.err(),
        }
    });
    JudgeCalibration {
        judge: judge.to_owned(),
        criterion,
        table,
        sensitivity: estimate(sensitivity, people_passed),
        specificity: estimate(specificity, people_failed),
        kappa: table.kappa(),
        rates: rates.collect(),
        length: check_length(outputs),
    }
}

fn correct_share(
    judged: Option<WeighedShare>,
    specificity: Option<WeighedShare>,
    sensitivity: Option<WeighedShare>,
) -> Result<(f64, (f64, f64)), String> {
    let (Some(judged), Some(q0), Some(q1)) = (judged, specificity, sensitivity) else {
        return Err("too few labels".to_owned());
    };
    match corrected_rate(judged, q0, q1, ALPHA) {
        Some((value, at)) => Ok((value, (at.low, at.high))),
        None if q0.share + q1.share <= 1.0 => Err("the judge is no better than chance".to_owned()),
        None => Err("the judge's verdicts do not fit its error rates on the labels".to_owned()),
    }
}

/// Estimates the share that people would pass, if the labels are a random sample of the outputs: those that come first in
/// the random order.
fn powered_share(
    outputs: &[&JudgedOutput],
    judged: Option<WeighedShare>,
    is_sample: bool,
) -> Result<(f64, (f64, f64)), String> {
    let last_label = outputs.iter().filter(|of| of.person_passed.is_some()).map(|of| &of.order).max();
    let Some(last_label) = last_label else { return Err("no labels".to_owned()) };
    let first_gap = outputs.iter().filter(|of| of.person_passed.is_none()).map(|of| &of.order).min();
    if !is_sample && first_gap.is_some_and(|gap| gap < last_label) {
        return Err("the labels are not known to be a random sample".to_owned());
    }
    let people = |verdict: bool| {
        let counts = |of: &JudgedOutput| of.judge_passed == verdict && of.person_passed.is_some();
        share_of(outputs, counts, |of| of.person_passed == Some(true))
    };
    let found = judged.and_then(|judged| prediction_powered_rate(judged, people(true), people(false), ALPHA));
    let none = || "no label on an output that the judge passed, or on one that it failed".to_owned();
    found.map(|(value, at)| (value, (at.low, at.high))).ok_or_else(none)
}

/// Compares what the judge passes among shorter and longer answers, among those that people decided the same way.
fn check_length(outputs: &[&JudgedOutput]) -> Option<LengthCheck> {
    let split = |verdict: bool| {
        let own = outputs.iter().filter(|of| of.person_passed == Some(verdict));
        let answers: Vec<(u64, bool)> =
            own.filter_map(|of| Some((of.answer_bytes?, of.judge_passed))).collect();
        let mut lengths: Vec<u64> = answers.iter().map(|(length, _)| *length).collect();
        lengths.sort_unstable();
        let middle = lengths.get(lengths.len().saturating_sub(1) / 2).copied().unwrap_or_default();
        let mut found = LengthSplit::default();
        for (length, passed) in answers {
            let (count, passes) = if length > middle {
                (&mut found.longer, &mut found.longer_passed)
            } else {
                (&mut found.shorter, &mut found.shorter_passed)
            };
            *count += 1;
            *passes += u64::from(passed);
        }
        found
    };
    let (people_passed, people_failed) = (split(true), split(false));
    let halves = |of: LengthSplit| {
        (Cluster::new(of.shorter_passed, of.shorter), Cluster::new(of.longer_passed, of.longer))
    };
    let compared = [people_passed, people_failed].into_iter().filter(|of| of.shorter > 0 && of.longer > 0);
    let strata: Vec<(Cluster, Cluster)> = compared.map(halves).collect();
    if strata.is_empty() {
        return None;
    }
    let chance = stratified_test(&strata);
    // Within each of the two, passes of the longer half beyond what an even spread would give it.
    let surplus: f64 = strata
        .iter()
        .map(|(shorter, longer)| {
            let all = (shorter.runs + longer.runs) as f64;
            longer.passed as f64 - (shorter.passed + longer.passed) as f64 * longer.runs as f64 / all
        })
        .sum();
    let prefers_longer = (chance <= ALPHA).then_some(surplus > 0.0);
    Some(LengthCheck { people_passed, people_failed, chance, prefers_longer })
}

/// The verdicts of two judges on one output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerdictPair<'o> {
    /// The output with the first judge's verdict.
    pub before: &'o JudgedOutput,
    /// The output with the second judge's verdict.
    pub after: &'o JudgedOutput,
}

/// Counts the changes between two judges on the same outputs, over all criteria and by criterion.
pub fn count_drift(pairs: &[VerdictPair<'_>]) -> Vec<DriftRow> {
    let mut criteria: BTreeMap<JudgedCriterion, Vec<VerdictPair<'_>>> = BTreeMap::new();
    for pair in pairs {
        let criterion = JudgedCriterion { suite: pair.after.suite.clone(), check: pair.after.check.clone() };
        criteria.entry(criterion).or_default().push(*pair);
    }
    let rows: Vec<DriftRow> =
        criteria.into_iter().map(|(criterion, of)| drift_row(Some(criterion), &of)).collect();
    match rows.len() {
        0 | 1 => rows,
        _ => std::iter::once(drift_row(None, pairs)).chain(rows).collect(),
    }
}

fn drift_row(criterion: Option<JudgedCriterion>, pairs: &[VerdictPair<'_>]) -> DriftRow {
    let count =
        |fits: &dyn Fn(&VerdictPair<'_>) -> bool| pairs.iter().filter(|pair| fits(pair)).count() as u64;
    let changed_to =
        |pair: &VerdictPair<'_>, to: bool| pair.after.judge_passed == to && pair.before.judge_passed != to;
    let now_passed = count(&|pair| changed_to(pair, true));
    let now_failed = count(&|pair| changed_to(pair, false));
    let agrees = |pair: &VerdictPair<'_>, wanted: bool| {
        pair.before.judge_passed != pair.after.judge_passed
            && pair.after.person_passed.is_some_and(|person| (person == pair.after.judge_passed) == wanted)
    };
    DriftRow {
        criterion,
        outputs: pairs.len() as u64,
        now_passed,
        now_failed,
        corrected: count(&|pair| agrees(pair, true)),
        made_wrong: count(&|pair| agrees(pair, false)),
        chance: mcnemar(now_passed, now_failed),
    }
}

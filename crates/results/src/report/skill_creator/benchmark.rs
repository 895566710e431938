//! The benchmark document of skill-creator and agentskills.io.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::eval_numbers::EvalNumbers;
use super::grading::{GradedExpectation, TrialExpectations, TrialMetrics, round_to, total_tokens};
use super::{BenchmarkLayout, EvalLabel};
use crate::report::escaping::truncate_text;
use crate::report::run_results::RunResults;
use crate::report::{printable_text, timestamps};
use practicum_core::model::{CaseSummary, TrialRecord};

/// The graded runs of an iteration, and the figures of each configuration.
pub struct Benchmark {
    metadata: BenchmarkMetadata,
    /// The model of the agent: the requested name, until a run shows which model answered.
    executor: ModelNames,
    analyzer: ModelNames,
    runs: Vec<BenchmarkRun>,
    measures: BTreeMap<String, ConfigurationMeasures>,
    answers: ExpectationAnswers,
    notes: Vec<String>,
    /// The number of runs that were reused.
    reused: usize,
}

/// What is known of a benchmark before its runs.
#[derive(Serialize)]
struct BenchmarkMetadata {
    skill_name: String,
    skill_path: String,
    timestamp: String,
    evals_run: BTreeSet<u32>,
    runs_per_configuration: u64,
}

/// A graded run of an eval.
#[derive(Serialize)]
struct BenchmarkRun {
    eval_id: u32,
    eval_name: String,
    configuration: String,
    run_number: u32,
    result: BenchmarkRunResult,
    expectations: Vec<GradedExpectation>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct BenchmarkRunResult {
    pass_rate: f64,
    passed: usize,
    failed: usize,
    total: usize,
    time_seconds: f64,
    tokens: u64,
    tool_calls: u64,
    errors: usize,
}

/// The names of the models that answered, else of the one that was requested.
struct ModelNames {
    requested: String,
    observed: BTreeSet<String>,
}

impl ModelNames {
    fn describe(&self) -> String {
        let seen: Vec<&str> = self.observed.iter().map(String::as_str).collect();
        match (seen.is_empty(), self.requested.is_empty()) {
            (false, _) => printable_text(&seen.join(", ")),
            (true, false) => printable_text(&self.requested),
            (true, true) => "none".to_owned(),
        }
    }
}

/// The configuration under test, and those that it may be compared with.
const TESTED_CONFIGURATION: &str = "with_skill";
const BASELINE_CONFIGURATIONS: [&str; 2] = ["without_skill", "old_skill"];

/// How often each expectation passed, by configuration.
#[derive(Default)]
struct ExpectationAnswers {
    by_expectation: BTreeMap<(u32, String, String), BTreeMap<String, PassCounts>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PassCounts {
    passed: usize,
    runs: usize,
}

/// The greatest number of observations; the benchmark has all figures anyway.
const MAX_OBSERVATIONS: usize = 50;

impl ExpectationAnswers {
    fn add(&mut self, eval: EvalLabel<'_>, text: &str, configuration: &str, passed: bool) {
        let key = (eval.id, eval.name.to_owned(), text.to_owned());
        let passes = self.by_expectation.entry(key).or_default().entry(configuration.to_owned()).or_default();
        passes.passed += usize::from(passed);
        passes.runs += 1;
    }

    fn describe_observations(&self) -> Vec<String> {
        let notes = self.by_expectation.iter().flat_map(|((id, name, text), by_configuration)| {
            let about = format!("eval {id} ({name}): \"{}\"", truncate_text(text, 200));
            let examined = by_configuration.get(TESTED_CONFIGURATION).copied().unwrap_or_default();
            let before =
                BASELINE_CONFIGURATIONS.iter().find_map(|name| Some((name, by_configuration.get(*name)?)));
            let both = before.and_then(|(name, before)| match (examined, *before) {
                (PassCounts { runs: 0, .. }, _) => None,
                (one, other) if one.passed == one.runs && other.passed == other.runs => Some(format!(
                    "{about} passes in every run of {TESTED_CONFIGURATION} and of {name}, so it does not tell them apart"
                )),
                (PassCounts { passed: 0, .. }, PassCounts { passed: 0, .. }) => {
                    Some(format!("{about} fails in every run of {TESTED_CONFIGURATION} and of {name}"))
                }
                _ => None,
            });
            let varies = (0 < examined.passed && examined.passed < examined.runs).then(|| {
                let PassCounts { passed, runs } = examined;
                format!("{about} varies: it passes in {passed} of {runs} runs of {TESTED_CONFIGURATION}")
            });
            both.into_iter().chain(varies)
        });
        notes.take(MAX_OBSERVATIONS).collect()
    }
}

#[derive(Default)]
struct ConfigurationMeasures {
    pass_rate: Vec<f64>,
    time_seconds: Vec<f64>,
    tokens: Vec<f64>,
}

impl ConfigurationMeasures {
    fn document(&self, shape: BenchmarkLayout) -> Value {
        json!({
            "pass_rate": spread_document(&self.pass_rate, shape),
            "time_seconds": spread_document(&self.time_seconds, shape),
            "tokens": spread_document(&self.tokens, shape),
        })
    }
}

/// The differences between the means of two configurations.
struct MeasureDelta {
    pass_rate: f64,
    time_seconds: f64,
    tokens: f64,
}

impl MeasureDelta {
    fn between(before: &ConfigurationMeasures, after: &ConfigurationMeasures) -> Self {
        Self {
            pass_rate: mean(&after.pass_rate) - mean(&before.pass_rate),
            time_seconds: mean(&after.time_seconds) - mean(&before.time_seconds),
            tokens: mean(&after.tokens) - mean(&before.tokens),
        }
    }

    fn document(&self, shape: BenchmarkLayout) -> Value {
        let Self { pass_rate, time_seconds, tokens } = *self;
        match shape {
            BenchmarkLayout::Agentskills => json!({
                "pass_rate": round_to(pass_rate, 4),
                "time_seconds": round_to(time_seconds, 4),
                "tokens": round_to(tokens, 4),
            }),
            BenchmarkLayout::SkillCreator => json!({
                "pass_rate": format!("{pass_rate:+.2}"),
                "time_seconds": format!("{time_seconds:+.1}"),
                "tokens": format!("{tokens:+.0}"),
            }),
        }
    }
}

impl Benchmark {
    pub fn new(results: &RunResults, cases: &[&CaseSummary], numbers: &EvalNumbers) -> Self {
        let suite = cases.first().map_or("", |case| case.suite.as_str());
        let asked = results.info.suite(suite);
        let skill = asked.and_then(|of| of.suite.skills.first());
        let path = skill.and_then(|skill| skill.path.as_deref());
        let model = cases.first().and_then(|case| case.model.clone());
        let setting = |name: &str| asked.and_then(|of| of.setting(name)).map(str::to_owned);
        let evals: BTreeSet<u32> = cases.iter().map(|case| numbers.number_of_case(&case.id)).collect();
        let most = cases.iter().map(|case| case.trials()).max();
        let models = |asked: Option<String>| ModelNames {
            requested: asked.unwrap_or_default(),
            observed: BTreeSet::new(),
        };
        let metadata = BenchmarkMetadata {
            skill_name: printable_text(skill.map_or(suite, |skill| &skill.name)),
            skill_path: path.map(|path| printable_text(&path.display().to_string())).unwrap_or_default(),
            timestamp: timestamps::format_to_second(&results.info.started),
            evals_run: evals,
            runs_per_configuration: most.unwrap_or_default(),
        };
        let sample = results.summary.sample.iter();
        Self {
            metadata,
            executor: models(model.or_else(|| setting("model"))),
            analyzer: models(setting("judge.model")),
            runs: Vec::new(),
            measures: BTreeMap::new(),
            answers: ExpectationAnswers::default(),
            notes: sample.map(|sample| format!("not all cases were run: {}", sample.describe())).collect(),
            reused: 0,
        }
    }

    pub fn add(
        &mut self,
        eval: EvalLabel<'_>,
        configuration: String,
        record: &TrialRecord,
        graded: &TrialExpectations,
        metrics: &TrialMetrics,
    ) {
        let (EvalLabel { id, name }, attempt) = (eval, record.attempt);
        self.executor.observed.extend(record.model.clone());
        self.analyzer.observed.extend(record.judged_by.as_ref().map(|by| by.model.clone()));
        if let Some(why) = record.not_scored_reason() {
            let why = printable_text(&why);
            self.notes
                .push(format!("eval {id} ({name}), {configuration}, run {attempt} is not scored: {why}"));
        } else if graded.unanswered > 0 {
            let silent = graded.unanswered;
            self.notes.push(format!(
                "eval {id} ({name}), {configuration}, run {attempt} has no grading: {} without an answer",
                practicum_core::model::count_with_noun(silent, "expectation")
            ));
        }
        self.reused += usize::from(record.is_reused());
        let notes: Vec<String> = record.notes_with_origin().map(|note| printable_text(&note)).collect();
        let case_notes = record
            .notes
            .iter()
            .map(|note| printable_text(note))
            .map(|note| format!("eval {id} ({name}), {configuration}, run {attempt}: {note}"));
        self.notes.extend(case_notes);
        if !graded.is_complete() {
            return;
        }
        for expectation in &graded.expectations {
            self.answers.add(eval, &expectation.text, &configuration, expectation.passed);
        }
        let measures = self.measures.entry(configuration.clone()).or_default();
        measures.pass_rate.push(graded.pass_rate());
        measures.time_seconds.push(record.seconds);
        measures.tokens.push(total_tokens(record) as f64);
        self.runs.push(BenchmarkRun {
            eval_id: id,
            eval_name: name.to_owned(),
            configuration,
            run_number: attempt,
            result: BenchmarkRunResult {
                pass_rate: round_to(graded.pass_rate(), 2),
                passed: graded.passed,
                failed: graded.failed(),
                total: graded.expectations.len(),
                time_seconds: round_to(record.seconds, 3),
                tokens: total_tokens(record),
                tool_calls: metrics.tool_calls(),
                errors: metrics.errors,
            },
            expectations: graded.expectations.clone(),
            notes,
        });
    }

    pub fn document(&self, shape: BenchmarkLayout) -> Value {
        match shape {
            // Runs that no mean includes must be mentioned, and those that did not run now.
            BenchmarkLayout::Agentskills => match self.own_notes() {
                notes if notes.is_empty() => json!({"run_summary": self.run_summary(shape)}),
                notes => json!({"run_summary": self.run_summary(shape), "notes": notes}),
            },
            BenchmarkLayout::SkillCreator => json!({
                "metadata": self.metadata_document(),
                "runs": self.runs,
                "run_summary": self.run_summary(shape),
                "notes": self.all_notes(),
            }),
        }
    }

    /// Gives notes on what the figures alone do not show: how the arms differ, expectations that do not tell them
    /// apart or that vary, and runs without an answer.
    fn all_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((name, before, after)) = self.comparable_measures() {
            let MeasureDelta { time_seconds, tokens, .. } = MeasureDelta::between(&before, &after);
            let (rate, old_rate) = (mean(&after.pass_rate), mean(&before.pass_rate));
            notes.push(format!(
                "{TESTED_CONFIGURATION} meets {:.0} % of the expectations that both have, {name} {:.0} %; the difference for a run is {time_seconds:+.1} s and {tokens:+.0} tokens",
                rate * 100.0,
                old_rate * 100.0,
            ));
        }
        notes.extend(self.answers.describe_observations());
        notes.extend(self.own_notes());
        notes
    }

    /// Gives the notes on runs, with how many were reused.
    fn own_notes(&self) -> Vec<String> {
        let reused = (self.reused > 0).then(|| {
            let runs = practicum_core::model::count_with_noun(self.reused, "run");
            format!("{runs} reused from earlier runs, with the time and tokens of those")
        });
        reused.into_iter().chain(self.notes.iter().cloned()).collect()
    }

    fn metadata_document(&self) -> Value {
        let mut document = json!(self.metadata);
        document["executor_model"] = json!(self.executor.describe());
        document["analyzer_model"] = json!(self.analyzer.describe());
        document
    }

    fn run_summary(&self, shape: BenchmarkLayout) -> Value {
        let mut summary = Map::new();
        // The configuration under test comes first, because viewers treat the first as the main one.
        let after = self.measures.get_key_value(TESTED_CONFIGURATION);
        let others = self.measures.iter().filter(|(name, _)| *name != TESTED_CONFIGURATION);
        for (name, measures) in after.into_iter().chain(others) {
            summary.insert(name.clone(), measures.document(shape));
        }
        if let Some((_, before, after)) = self.comparable_measures() {
            summary.insert("delta".to_owned(), MeasureDelta::between(&before, &after).document(shape));
        }
        Value::Object(summary)
    }

    /// Gives the configuration to compare with, and the measures of both. The pass rates include only expectations
    /// that both have: whether the skill is activated is checked in one only, and is no difference between them.
    fn comparable_measures(&self) -> Option<(&'static str, ConfigurationMeasures, ConfigurationMeasures)> {
        let (name, before) =
            BASELINE_CONFIGURATIONS.iter().find_map(|name| Some((*name, self.measures.get(*name)?)))?;
        let after = self.measures.get(TESTED_CONFIGURATION)?;
        let shared: BTreeSet<(u32, &str)> = self
            .answers
            .by_expectation
            .iter()
            .filter(|(_, by)| by.contains_key(name) && by.contains_key(TESTED_CONFIGURATION))
            .map(|((id, _, text), _)| (*id, text.as_str()))
            .collect();
        let rates = |configuration: &str| {
            let runs = self.runs.iter().filter(|run| run.configuration == configuration);
            let rate = |run: &BenchmarkRun| {
                let of_run = run.expectations.iter();
                let of_run = of_run.filter(|of| shared.contains(&(run.eval_id, of.text.as_str())));
                let answers: Vec<bool> = of_run.map(|of| of.passed).collect();
                let passed = answers.iter().filter(|passed| **passed).count();
                (!answers.is_empty()).then(|| passed as f64 / answers.len() as f64)
            };
            runs.filter_map(rate).collect::<Vec<f64>>()
        };
        let with_rates = |of: &ConfigurationMeasures, configuration: &str| ConfigurationMeasures {
            pass_rate: rates(configuration),
            time_seconds: of.time_seconds.clone(),
            tokens: of.tokens.clone(),
        };
        Some((name, with_rates(before, name), with_rates(after, TESTED_CONFIGURATION)))
    }
}

fn spread_document(values: &[f64], shape: BenchmarkLayout) -> Value {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if values.len() > 1 { (squares / (values.len() - 1) as f64).sqrt() } else { 0.0 };
    let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(*value), most.max(*value))
    });
    match shape {
        BenchmarkLayout::Agentskills => json!({"mean": round_to(mean, 4), "stddev": round_to(deviation, 4)}),
        BenchmarkLayout::SkillCreator => json!({
            "mean": round_to(mean, 4),
            "stddev": round_to(deviation, 4),
            "min": round_to(least, 4),
            "max": round_to(most, 4),
        }),
    }
}

/// Gives the mean. There is always a value, because a configuration begins with its first.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_after_minus_before() {
        let measures = |rate: f64, seconds: f64, tokens: f64| ConfigurationMeasures {
            pass_rate: vec![rate],
            time_seconds: vec![seconds],
            tokens: vec![tokens],
        };
        let (before, after) = (measures(0.35, 32.0, 2100.0), measures(0.85, 45.0, 3800.0));
        let expected = json!({"pass_rate": "+0.50", "time_seconds": "+13.0", "tokens": "+1700"});
        let delta = MeasureDelta::between(&before, &after);
        assert_eq!(delta.document(BenchmarkLayout::SkillCreator), expected);
        let expected = json!({"pass_rate": 0.5, "time_seconds": 13.0, "tokens": 1700.0});
        assert_eq!(delta.document(BenchmarkLayout::Agentskills), expected);
        let delta = MeasureDelta::between(&after, &before);
        assert_eq!(delta.document(BenchmarkLayout::SkillCreator)["pass_rate"], "-0.50");
    }

    #[test]
    fn a_model_that_was_seen_is_told_before_what_was_asked_for() {
        for (seen, expected) in [
            (vec![], "(the provider's default)"),
            (vec!["claude-a"], "claude-a"),
            (vec!["claude-b", "claude-a", "claude-b"], "claude-a, claude-b"),
        ] {
            let seen = seen.into_iter().map(str::to_owned).collect();
            assert_eq!(
                ModelNames { requested: "(the provider's default)".to_owned(), observed: seen }.describe(),
                expected
            );
        }
    }

    #[test]
    fn the_spread_is_of_a_sample() {
        let expected = json!({"mean": 2.0, "stddev": 1.0, "min": 1.0, "max": 3.0});
        assert_eq!(spread_document(&[1.0, 2.0, 3.0], BenchmarkLayout::SkillCreator), expected);
        assert_eq!(
            spread_document(&[0.5], BenchmarkLayout::Agentskills),
            json!({"mean": 0.5, "stddev": 0.0})
        );
    }
}

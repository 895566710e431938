//! The benchmark document of skill-creator and agentskills.io.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::eval_numbers::EvalNumbers;
use super::grading::{TrialExpectations, TrialMetrics, round_to, total_tokens};
use super::{BenchmarkLayout, EvalLabel};
use crate::report::escaping::truncate_text;
use crate::report::run_results::RunResults;
use crate::report::{printable_text, timestamps};
use practicum_core::model::{CaseSummary, TrialRecord};

/// The graded runs of an iteration, and the figures of each configuration.
pub struct Benchmark {
    metadata: Map<String, Value>,
    /// The model of the agent: the requested name, until a run shows which model answered.
    executor: ModelNames,
    analyzer: ModelNames,
    runs: Vec<Value>,
    measures: BTreeMap<String, ConfigurationMeasures>,
    answers: ExpectationAnswers,
    notes: Vec<String>,
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
    fn by_name(&self) -> [(&'static str, &[f64]); 3] {
        [("pass_rate", &self.pass_rate), ("time_seconds", &self.time_seconds), ("tokens", &self.tokens)]
    }
}

impl Benchmark {
    pub fn new(results: &RunResults, cases: &[&CaseSummary], numbers: &EvalNumbers) -> Self {
        let suite = cases.first().map_or("", |case| case.suite.as_str());
        let asked = results.info.suites.iter().find(|of| of.suite["name"] == *suite);
        let skill = asked.map(|of| match &of.suite["skill"] {
            Value::Array(several) => several.first().unwrap_or(&Value::Null),
            one => one,
        });
        let name = skill.and_then(|skill| skill["name"].as_str()).unwrap_or(suite);
        let path = skill.and_then(|skill| skill["path"].as_str());
        let folder = asked.and_then(|of| of.origin.path.parent());
        let path = path
            .zip(folder)
            .map(|(path, folder)| practicum_skills::skill::normalise_path(&folder.join(path)));
        let model = cases.first().and_then(|case| case.model.clone());
        let setting = |name: &str| {
            let position = results.info.suites.iter().position(|of| of.suite["name"] == *suite)?;
            results.info.settings.get(position)?.get(name).map(|setting| setting.value.clone())
        };
        let evals: BTreeSet<u32> = cases.iter().map(|case| numbers.number_of_case(&case.id)).collect();
        let most = cases.iter().map(|case| case.trials()).max();
        let models = |asked: Option<String>| ModelNames {
            requested: asked.unwrap_or_default(),
            observed: BTreeSet::new(),
        };
        let metadata = [
            ("skill_name", json!(printable_text(name))),
            (
                "skill_path",
                json!(path.map(|path| printable_text(&path.display().to_string())).unwrap_or_default()),
            ),
            ("timestamp", json!(timestamps::format_to_second(&results.info.started))),
            ("evals_run", json!(evals)),
            ("runs_per_configuration", json!(most.unwrap_or_default())),
        ];
        let sample = results.summary.sample.iter();
        Self {
            metadata: metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            executor: models(model.or_else(|| setting("model"))),
            analyzer: models(setting("judge.model")),
            runs: Vec::new(),
            measures: BTreeMap::new(),
            answers: ExpectationAnswers::default(),
            notes: sample.map(|sample| format!("not all cases were run: {}", sample.describe())).collect(),
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
        let notes: Vec<String> = record.notes.iter().map(|note| printable_text(note)).collect();
        let told =
            notes.iter().map(|note| format!("eval {id} ({name}), {configuration}, run {attempt}: {note}"));
        self.notes.extend(told);
        if !graded.is_complete() {
            return;
        }
        for expectation in &graded.expectations {
            let (text, passed) = (expectation["text"].as_str(), expectation["passed"] == true);
            self.answers.add(eval, text.unwrap_or_default(), &configuration, passed);
        }
        let measures = self.measures.entry(configuration.clone()).or_default();
        measures.pass_rate.push(graded.pass_rate());
        measures.time_seconds.push(record.seconds);
        measures.tokens.push(total_tokens(record) as f64);
        self.runs.push(json!({
            "eval_id": id,
            "eval_name": name,
            "configuration": configuration,
            "run_number": attempt,
            "result": {
                "pass_rate": round_to(graded.pass_rate(), 2),
                "passed": graded.passed,
                "failed": graded.failed(),
                "total": graded.expectations.len(),
                "time_seconds": round_to(record.seconds, 3),
                "tokens": total_tokens(record),
                "tool_calls": metrics.tool_calls(),
                "errors": metrics.errors,
            },
            "expectations": graded.expectations,
            "notes": notes,
        }));
    }

    pub fn document(&self, shape: BenchmarkLayout) -> Value {
        match shape {
            BenchmarkLayout::Agentskills if self.notes.is_empty() => {
                json!({"run_summary": self.run_summary(shape)})
            }
            // Runs that no mean includes must be mentioned.
            BenchmarkLayout::Agentskills => {
                json!({"run_summary": self.run_summary(shape), "notes": self.notes})
            }
            BenchmarkLayout::SkillCreator => json!({
                "metadata": self.metadata(),
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
            let change = delta_document(&before, &after, BenchmarkLayout::SkillCreator);
            let (rate, old_rate) = (mean(&after.pass_rate), mean(&before.pass_rate));
            let (seconds, tokens) = (&change["time_seconds"], &change["tokens"]);
            notes.push(format!(
                "{TESTED_CONFIGURATION} meets {:.0} % of the expectations that both have, {name} {:.0} %; the difference for a run is {} s and {} tokens",
                rate * 100.0,
                old_rate * 100.0,
                seconds.as_str().unwrap_or_default(),
                tokens.as_str().unwrap_or_default(),
            ));
        }
        notes.extend(self.answers.describe_observations());
        notes.extend(self.notes.iter().cloned());
        notes
    }

    fn metadata(&self) -> Value {
        let mut metadata = self.metadata.clone();
        metadata.insert("executor_model".to_owned(), json!(self.executor.describe()));
        metadata.insert("analyzer_model".to_owned(), json!(self.analyzer.describe()));
        Value::Object(metadata)
    }

    fn run_summary(&self, shape: BenchmarkLayout) -> Value {
        let mut summary = Map::new();
        // The configuration under test comes first, because viewers treat the first as the main one.
        let after = self.measures.get_key_value(TESTED_CONFIGURATION);
        let others = self.measures.iter().filter(|(name, _)| *name != TESTED_CONFIGURATION);
        for (name, measures) in after.into_iter().chain(others) {
            let figures = measures
                .by_name()
                .map(|(measure, values)| (measure.to_owned(), spread_document(values, shape)));
            summary.insert(name.clone(), Value::Object(figures.into_iter().collect()));
        }
        if let Some((_, before, after)) = self.comparable_measures() {
            summary.insert("delta".to_owned(), delta_document(&before, &after, shape));
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
            let runs = self.runs.iter().filter(|run| run["configuration"] == *configuration);
            let rate = |run: &Value| {
                let id = run["eval_id"].as_u64().and_then(|id| u32::try_from(id).ok())?;
                let of_run = run["expectations"].as_array()?.iter();
                let of_run =
                    of_run.filter(|of| shared.contains(&(id, of["text"].as_str().unwrap_or_default())));
                let answers: Vec<bool> = of_run.map(|of| of["passed"] == true).collect();
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

fn delta_document(
    before: &ConfigurationMeasures,
    after: &ConfigurationMeasures,
    shape: BenchmarkLayout,
) -> Value {
    let mut delta = Map::new();
    for ((name, before), (_, after)) in before.by_name().into_iter().zip(after.by_name()) {
        let difference = mean(after) - mean(before);
        let value = match (shape, name) {
            (BenchmarkLayout::Agentskills, _) => json!(round_to(difference, 4)),
            (BenchmarkLayout::SkillCreator, "pass_rate") => json!(format!("{difference:+.2}")),
            (BenchmarkLayout::SkillCreator, "time_seconds") => json!(format!("{difference:+.1}")),
            (BenchmarkLayout::SkillCreator, _) => json!(format!("{difference:+.0}")),
        };
        delta.insert(name.to_owned(), value);
    }
    Value::Object(delta)
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
        assert_eq!(delta_document(&before, &after, BenchmarkLayout::SkillCreator), expected);
        let expected = json!({"pass_rate": 0.5, "time_seconds": 13.0, "tokens": 1700.0});
        assert_eq!(delta_document(&before, &after, BenchmarkLayout::Agentskills), expected);
        assert_eq!(delta_document(&after, &before, BenchmarkLayout::SkillCreator)["pass_rate"], "-0.50");
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

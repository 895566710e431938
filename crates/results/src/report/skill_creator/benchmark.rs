use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::grading::{Graded, Metrics, rounded, tokens};
use super::numbers::Numbers;
use super::{Eval, Shape};
use crate::report::markup::cut;
use crate::report::results::Results;
use crate::report::{printable, when};
use practicum_core::model::{CaseSummary, TrialRecord};

/// The graded runs of an iteration, and what they come to for each configuration.
pub struct Benchmark {
    metadata: Map<String, Value>,
    /// What was asked for, for as long as no run has told which model answered.
    executor: Models,
    analyzer: Models,
    runs: Vec<Value>,
    measures: BTreeMap<String, Measures>,
    answers: Answers,
    notes: Vec<String>,
}

/// The models that were seen at work, else the one that was asked for.
struct Models {
    asked: String,
    seen: BTreeSet<String>,
}

impl Models {
    fn in_words(&self) -> String {
        let seen: Vec<&str> = self.seen.iter().map(String::as_str).collect();
        match (seen.is_empty(), self.asked.is_empty()) {
            (false, _) => printable(&seen.join(", ")),
            (true, false) => printable(&self.asked),
            (true, true) => "none".to_owned(),
        }
    }
}

/// The configuration under test, and those it may be compared with.
const EXAMINED: &str = "with_skill";
const BASELINES: [&str; 2] = ["without_skill", "old_skill"];

/// How often each expectation passed, by configuration.
#[derive(Default)]
struct Answers {
    by_expectation: BTreeMap<(u32, String, String), BTreeMap<String, Passes>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Passes {
    passed: usize,
    runs: usize,
}

/// So many observations are told; the benchmark has all figures anyway.
const MOST_OBSERVATIONS: usize = 50;

impl Answers {
    fn add(&mut self, eval: Eval<'_>, text: &str, configuration: &str, passed: bool) {
        let key = (eval.id, eval.name.to_owned(), text.to_owned());
        let passes = self.by_expectation.entry(key).or_default().entry(configuration.to_owned()).or_default();
        passes.passed += usize::from(passed);
        passes.runs += 1;
    }

    fn notes(&self) -> Vec<String> {
        let notes = self.by_expectation.iter().flat_map(|((id, name, text), by_configuration)| {
            let about = format!("eval {id} ({name}): \"{}\"", cut(text, 200));
            let examined = by_configuration.get(EXAMINED).copied().unwrap_or_default();
            let before = BASELINES.iter().find_map(|name| Some((name, by_configuration.get(*name)?)));
            let both = before.and_then(|(name, before)| match (examined, *before) {
                (Passes { runs: 0, .. }, _) => None,
                (one, other) if one.passed == one.runs && other.passed == other.runs => Some(format!(
                    "{about} passes in every run of {EXAMINED} and of {name}, so it does not tell them apart"
                )),
                (Passes { passed: 0, .. }, Passes { passed: 0, .. }) => {
                    Some(format!("{about} fails in every run of {EXAMINED} and of {name}"))
                }
                _ => None,
            });
            let varies = (0 < examined.passed && examined.passed < examined.runs).then(|| {
                let Passes { passed, runs } = examined;
                format!("{about} varies: it passes in {passed} of {runs} runs of {EXAMINED}")
            });
            both.into_iter().chain(varies)
        });
        notes.take(MOST_OBSERVATIONS).collect()
    }
}

#[derive(Default)]
struct Measures {
    pass_rate: Vec<f64>,
    time_seconds: Vec<f64>,
    tokens: Vec<f64>,
}

impl Measures {
    fn all(&self) -> [(&'static str, &[f64]); 3] {
        [("pass_rate", &self.pass_rate), ("time_seconds", &self.time_seconds), ("tokens", &self.tokens)]
    }
}

impl Benchmark {
    pub fn new(results: &Results, cases: &[&CaseSummary], numbers: &Numbers) -> Self {
        let suite = cases.first().map_or("", |case| case.suite.as_str());
        let asked = results.info.suites.iter().find(|of| of.suite["name"] == *suite);
        let skill = asked.map(|of| match &of.suite["skill"] {
            Value::Array(several) => several.first().unwrap_or(&Value::Null),
            one => one,
        });
        let name = skill.and_then(|skill| skill["name"].as_str()).unwrap_or(suite);
        let path = skill.and_then(|skill| skill["path"].as_str());
        let folder = asked.and_then(|of| of.origin.path.parent());
        let path = path.zip(folder).map(|(path, folder)| practicum_skills::skill::tidy(&folder.join(path)));
        let model = cases.first().and_then(|case| case.model.clone());
        let setting = |name: &str| {
            let position = results.info.suites.iter().position(|of| of.suite["name"] == *suite)?;
            results.info.settings.get(position)?.get(name).map(|setting| setting.value.clone())
        };
        let evals: BTreeSet<u32> = cases.iter().map(|case| numbers.of_case(&case.id)).collect();
        let most = cases.iter().map(|case| case.trials()).max();
        let models =
            |asked: Option<String>| Models { asked: asked.unwrap_or_default(), seen: BTreeSet::new() };
        let metadata = [
            ("skill_name", json!(printable(name))),
            (
                "skill_path",
                json!(path.map(|path| printable(&path.display().to_string())).unwrap_or_default()),
            ),
            ("timestamp", json!(when::to_the_second(&results.info.started))),
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
            answers: Answers::default(),
            notes: sample.map(|sample| format!("not all cases were run: {}", sample.in_words())).collect(),
        }
    }

    pub fn add(
        &mut self,
        eval: Eval<'_>,
        configuration: String,
        record: &TrialRecord,
        graded: &Graded,
        metrics: &Metrics,
    ) {
        let (Eval { id, name }, attempt) = (eval, record.attempt);
        self.executor.seen.extend(record.model.clone());
        self.analyzer.seen.extend(record.judged_by.as_ref().map(|by| by.model.clone()));
        if let Some(why) = record.why_not_scored() {
            let why = printable(&why);
            self.notes
                .push(format!("eval {id} ({name}), {configuration}, run {attempt} is not scored: {why}"));
        } else if graded.silent > 0 {
            let silent = graded.silent;
            self.notes.push(format!(
                "eval {id} ({name}), {configuration}, run {attempt} has no grading: {} without an answer",
                practicum_core::model::counted(silent, "expectation")
            ));
        }
        let notes: Vec<String> = record.notes.iter().map(|note| printable(note)).collect();
        let told =
            notes.iter().map(|note| format!("eval {id} ({name}), {configuration}, run {attempt}: {note}"));
        self.notes.extend(told);
        if !graded.is_whole() {
            return;
        }
        for expectation in &graded.expectations {
            let (text, passed) = (expectation["text"].as_str(), expectation["passed"] == true);
            self.answers.add(eval, text.unwrap_or_default(), &configuration, passed);
        }
        let measures = self.measures.entry(configuration.clone()).or_default();
        measures.pass_rate.push(graded.pass_rate());
        measures.time_seconds.push(record.seconds);
        measures.tokens.push(tokens(record) as f64);
        self.runs.push(json!({
            "eval_id": id,
            "eval_name": name,
            "configuration": configuration,
            "run_number": attempt,
            "result": {
                "pass_rate": rounded(graded.pass_rate(), 2),
                "passed": graded.passed,
                "failed": graded.failed(),
                "total": graded.expectations.len(),
                "time_seconds": rounded(record.seconds, 3),
                "tokens": tokens(record),
                "tool_calls": metrics.tool_calls(),
                "errors": metrics.errors,
            },
            "expectations": graded.expectations,
            "notes": notes,
        }));
    }

    pub fn document(&self, shape: Shape) -> Value {
        match shape {
            Shape::Agentskills if self.notes.is_empty() => json!({"run_summary": self.run_summary(shape)}),
            // Runs that are in no mean must not go unnoticed.
            Shape::Agentskills => json!({"run_summary": self.run_summary(shape), "notes": self.notes}),
            Shape::SkillCreator => json!({
                "metadata": self.metadata(),
                "runs": self.runs,
                "run_summary": self.run_summary(shape),
                "notes": self.all_notes(),
            }),
        }
    }

    /// What the figures alone do not show: how the arms differ, expectations that do not tell them apart or
    /// that vary, and runs without an answer.
    fn all_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((name, before, after)) = self.compared() {
            let change = delta(&before, &after, Shape::SkillCreator);
            let (rate, old_rate) = (mean(&after.pass_rate), mean(&before.pass_rate));
            let (seconds, tokens) = (&change["time_seconds"], &change["tokens"]);
            notes.push(format!(
                "{EXAMINED} meets {:.0} % of the expectations that both have, {name} {:.0} %; the difference for a run is {} s and {} tokens",
                rate * 100.0,
                old_rate * 100.0,
                seconds.as_str().unwrap_or_default(),
                tokens.as_str().unwrap_or_default(),
            ));
        }
        notes.extend(self.answers.notes());
        notes.extend(self.notes.iter().cloned());
        notes
    }

    fn metadata(&self) -> Value {
        let mut metadata = self.metadata.clone();
        metadata.insert("executor_model".to_owned(), json!(self.executor.in_words()));
        metadata.insert("analyzer_model".to_owned(), json!(self.analyzer.in_words()));
        Value::Object(metadata)
    }

    fn run_summary(&self, shape: Shape) -> Value {
        let mut summary = Map::new();
        // What is examined comes first: viewers take the first for the one that counts.
        let after = self.measures.get_key_value(EXAMINED);
        let others = self.measures.iter().filter(|(name, _)| *name != EXAMINED);
        for (name, measures) in after.into_iter().chain(others) {
            let figures = measures.all().map(|(measure, values)| (measure.to_owned(), spread(values, shape)));
            summary.insert(name.clone(), Value::Object(figures.into_iter().collect()));
        }
        if let Some((_, before, after)) = self.compared() {
            summary.insert("delta".to_owned(), delta(&before, &after, shape));
        }
        Value::Object(summary)
    }

    /// The configuration to compare with, and what both measured, with the pass rates of the expectations that
    /// both have: whether the skill is activated is asked in one only, and is no difference between them.
    fn compared(&self) -> Option<(&'static str, Measures, Measures)> {
        let (name, before) = BASELINES.iter().find_map(|name| Some((*name, self.measures.get(*name)?)))?;
        let after = self.measures.get(EXAMINED)?;
        let shared: BTreeSet<(u32, &str)> = self
            .answers
            .by_expectation
            .iter()
            .filter(|(_, by)| by.contains_key(name) && by.contains_key(EXAMINED))
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
        let with_rates = |of: &Measures, configuration: &str| Measures {
            pass_rate: rates(configuration),
            time_seconds: of.time_seconds.clone(),
            tokens: of.tokens.clone(),
        };
        Some((name, with_rates(before, name), with_rates(after, EXAMINED)))
    }
}

fn spread(values: &[f64], shape: Shape) -> Value {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if values.len() > 1 { (squares / (values.len() - 1) as f64).sqrt() } else { 0.0 };
    let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(*value), most.max(*value))
    });
    match shape {
        Shape::Agentskills => json!({"mean": rounded(mean, 4), "stddev": rounded(deviation, 4)}),
        Shape::SkillCreator => json!({
            "mean": rounded(mean, 4),
            "stddev": rounded(deviation, 4),
            "min": rounded(least, 4),
            "max": rounded(most, 4),
        }),
    }
}

/// Configurations have values, because those without are never begun.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn delta(before: &Measures, after: &Measures, shape: Shape) -> Value {
    let mut delta = Map::new();
    for ((name, before), (_, after)) in before.all().into_iter().zip(after.all()) {
        let difference = mean(after) - mean(before);
        let value = match (shape, name) {
            (Shape::Agentskills, _) => json!(rounded(difference, 4)),
            (Shape::SkillCreator, "pass_rate") => json!(format!("{difference:+.2}")),
            (Shape::SkillCreator, "time_seconds") => json!(format!("{difference:+.1}")),
            (Shape::SkillCreator, _) => json!(format!("{difference:+.0}")),
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
        let measures = |rate: f64, seconds: f64, tokens: f64| Measures {
            pass_rate: vec![rate],
            time_seconds: vec![seconds],
            tokens: vec![tokens],
        };
        let (before, after) = (measures(0.35, 32.0, 2100.0), measures(0.85, 45.0, 3800.0));
        let expected = json!({"pass_rate": "+0.50", "time_seconds": "+13.0", "tokens": "+1700"});
        assert_eq!(delta(&before, &after, Shape::SkillCreator), expected);
        let expected = json!({"pass_rate": 0.5, "time_seconds": 13.0, "tokens": 1700.0});
        assert_eq!(delta(&before, &after, Shape::Agentskills), expected);
        assert_eq!(delta(&after, &before, Shape::SkillCreator)["pass_rate"], "-0.50");
    }

    #[test]
    fn a_model_that_was_seen_is_told_before_what_was_asked_for() {
        for (seen, expected) in [
            (vec![], "(the provider's default)"),
            (vec!["claude-a"], "claude-a"),
            (vec!["claude-b", "claude-a", "claude-b"], "claude-a, claude-b"),
        ] {
            let seen = seen.into_iter().map(str::to_owned).collect();
            assert_eq!(Models { asked: "(the provider's default)".to_owned(), seen }.in_words(), expected);
        }
    }

    #[test]
    fn the_spread_is_of_a_sample() {
        let expected = json!({"mean": 2.0, "stddev": 1.0, "min": 1.0, "max": 3.0});
        assert_eq!(spread(&[1.0, 2.0, 3.0], Shape::SkillCreator), expected);
        assert_eq!(spread(&[0.5], Shape::Agentskills), json!({"mean": 0.5, "stddev": 0.0}));
    }
}

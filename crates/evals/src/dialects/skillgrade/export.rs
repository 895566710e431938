//! Writes a suite as skillgrade's `eval.yaml`.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::native::relative_path;
use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::{DEFAULT_THRESHOLD, GRADER_TIMEOUT, PASSING_REWARD};
use practicum_core::model::{
    Arm, Case, Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, PassRule, RunPolicy, ScoreOf,
    ScoreScale, Suite, WorkspaceBase,
};
use practicum_core::tree::SourceSyntax;

/// Writes a suite. What skillgrade cannot express is listed.
pub fn export(suite: &Suite, folder: &Path) -> ExportedSuite {
    let mut losses = Losses::default();
    let suite = writing::cases_that_run(suite, &mut losses);
    let format = FormatCapabilities {
        features: &[
            FormatFeature::Skill,
            FormatFeature::Repeat,
            FormatFeature::CaseRepeat,
            FormatFeature::CaseTimeout,
            FormatFeature::Files,
            FormatFeature::MutableFiles,
            FormatFeature::Score,
            FormatFeature::Advisory,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy { arms: single_arm(&suite), ..RunPolicy::default() },
        gates: reading::all_cases_pass(),
    };
    losses.extend(Losses::from_suite(&suite, &format));
    let tasks: Vec<Value> =
        suite.cases.iter().filter_map(|case| task_value(case, &suite, folder, &mut losses)).collect();
    let mut files = Vec::new();
    if !tasks.is_empty() {
        let mut map = Map::from_iter([("version".to_owned(), json!("1"))]);
        if let Some(skill) = suite.skills.first() {
            map.insert("skill".to_owned(), json!(writing::skill_path(skill, folder)));
        }
        let mut defaults = Map::new();
        if let Some(trials) = writing::shared_repeat(&suite) {
            defaults.insert("trials".to_owned(), json!(trials.clamp(1, 1000)));
        }
        if let Some(seconds) = writing::shared_timeout(&suite) {
            defaults.insert("timeout".to_owned(), json!(seconds));
        }
        if !defaults.is_empty() {
            map.insert("defaults".to_owned(), Value::Object(defaults));
        }
        map.insert("tasks".to_owned(), Value::Array(tasks));
        let name = "eval.yaml".to_owned();
        files.push(ExportedFile { name, syntax: Some(SourceSyntax::Yaml), document: Value::Object(map) });
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

/// Gives the arms that mean the same as skillgrade's only one, as the suite says them.
fn single_arm(suite: &Suite) -> Vec<Arm> {
    let arms = writing::chosen_arms(suite);
    if arms == [Arm::WithSkill] { arms } else { Vec::new() }
}

fn task_value(case: &Case, suite: &Suite, folder: &Path, losses: &mut Losses) -> Option<Value> {
    let prompt = writing::join_prompts(case, suite);
    let graders = graders(case, losses);
    let names_file = !prompt.trim().contains('\n') && folder.join(prompt.trim()).is_file();
    let problem = match (prompt.trim().is_empty(), names_file, graders.is_empty()) {
        (true, _, _) => "its prompt is empty",
        (_, true, _) => "its prompt is the name of a file, which skillgrade would read",
        (_, _, true) => "nothing is left to expect of it",
        (false, false, false) => "",
    };
    if !problem.is_empty() {
        losses.add_whole_case(&case.id, problem);
        return None;
    }
    let mut task = json!({"name": case.id, "instruction": prompt});
    if !case.workspace.files.is_empty() {
        let files = case.workspace.files.iter();
        task["workspace"] = files
            .map(
                |file| json!({"src": relative_path(&file.source, folder), "dest": file.destination.as_str()}),
            )
            .collect();
    }
    task["graders"] = Value::Array(graders);
    let threshold = threshold(case, losses);
    if threshold != DEFAULT_THRESHOLD {
        task["threshold"] = writing::number_value(threshold);
    }
    if let Some(trials) = case.repeat {
        task["trials"] = json!(trials.clamp(1, 1000));
    }
    if let Some(timeout) = case.timeout {
        task["timeout"] = json!(writing::whole_seconds(timeout));
    }
    Some(task)
}

/// Gives the mean reward that a case must reach: the whole one if every check must pass.
fn threshold(case: &Case, losses: &mut Losses) -> f64 {
    let PassRule::Score(rule) = case.pass_rule else { return 1.0 };
    if rule.of == ScoreOf::EachTrial {
        losses.add_for_case(&case.id, "that each of its trials must reach the score, and not their mean");
    }
    if case.checks.iter().any(|check| check.need == CheckNeed::Required) {
        losses.add_for_case(&case.id, "that some checks must pass whatever the score is");
    }
    rule.at_least.get()
}

fn graders(case: &Case, losses: &mut Losses) -> Vec<Value> {
    let by_score = matches!(case.pass_rule, PassRule::Score(_));
    let mut made = Vec::new();
    for check in &case.checks {
        let Some(mut grader) = grader(check, &case.id, losses) else { continue };
        grader["name"] = json!(check.id);
        let weight = match (by_score, check.need) {
            (true, _) => check.weight,
            (false, CheckNeed::Required) => CheckWeight::ONE,
            (false, CheckNeed::Advisory) => CheckWeight::ZERO,
        };
        if weight != CheckWeight::ONE {
            grader["weight"] = writing::number_value(weight.get());
        }
        made.push(grader);
    }
    made
}

fn grader(check: &Check, case: &str, losses: &mut Losses) -> Option<Value> {
    if let Some(run) = script(check, case, losses) {
        return Some(json!({"type": "deterministic", "run": run}));
    }
    let rubric = writing::rubric_for(check, losses, case, ScoreScale::Unit, &CheckTarget::WholeRun)?;
    Some(json!({"type": "llm_rubric", "rubric": rubric}))
}

/// Gives the script of a check that is a command: as it is if it prints its score, otherwise with its exit code as the
/// score.
fn script(check: &Check, case: &str, losses: &mut Losses) -> Option<String> {
    let CheckKind::Rule(rule) = &check.kind else { return None };
    let value = rule.value();
    if rule.key() != "command" {
        return None;
    }
    let own = json!({"score": PASSING_REWARD, "timeout": GRADER_TIMEOUT});
    match &value {
        Value::String(run) => {
            losses.add_for_case(
                case,
                "that a command passes by its exit code; its script prints the score now",
            );
            Some(format!(
                "if (\n{run}\n) >/dev/null 2>&1\nthen echo '{{\"score\": 1}}'\nelse echo '{{\"score\": 0}}'\nfi"
            ))
        }
        Value::Object(map) => {
            let rest: Map<String, Value> = map
                .iter()
                .filter(|(key, _)| *key != "run")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let run = map.get("run")?.as_str()?;
            (Value::Object(rest) == own).then(|| run.to_owned())
        }
        _ => None,
    }
}

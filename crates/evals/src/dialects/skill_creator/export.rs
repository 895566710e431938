//! Writes a suite as `evals.json` with expectations or assertions, and its trigger cases as a set of queries.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::ASSERTIONS_META_KEY;
use practicum_core::model::{
    Arm, Case, Check, CheckKind, CheckNeed, Ratio, RunPolicy, ScoreScale, Suite, WorkspaceBase,
};
use practicum_core::tree::SourceSyntax;

pub fn export_suite(suite: &Suite, folder: &Path) -> ExportedSuite {
    let suite = &writing::require_counted_checks(suite);
    let (triggers, evals): (Vec<Case>, Vec<Case>) =
        suite.cases.iter().cloned().partition(|case| writing::trigger_query(case, suite).is_some());
    let mut losses = Losses::default();
    let mut files = Vec::new();
    let mut triggers = Suite { cases: triggers, ..suite.clone() };
    if !evals.is_empty() {
        let evals = Suite { cases: evals, ..suite.clone() };
        losses.extend(Losses::from_suite(&evals, &evals_capabilities()));
        files.extend(evals_file(&evals, folder, &mut losses));
        if !files.is_empty() {
            // A trigger set is a list and has no place for these. The evals file beside it has them.
            triggers.meta.clear();
        }
    }
    if !triggers.cases.is_empty() {
        losses.extend(Losses::from_suite(&triggers, &triggers_capabilities()));
        files.push(triggers_file(&triggers, &mut losses));
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

fn evals_capabilities() -> FormatCapabilities<'static> {
    FormatCapabilities {
        features: &[
            FormatFeature::Skill,
            FormatFeature::SuiteMeta,
            FormatFeature::CaseMeta,
            FormatFeature::Note,
            FormatFeature::Context,
            FormatFeature::Files,
            FormatFeature::Advisory,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            repeat: Some(1),
            arms: vec![Arm::WithSkill, Arm::WithoutSkill],
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    }
}

fn triggers_capabilities() -> FormatCapabilities<'static> {
    FormatCapabilities {
        features: &[FormatFeature::Skill, FormatFeature::CaseMeta, FormatFeature::ActivationRate],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            repeat: Some(reading::TRIGGER_RUNS),
            trigger_threshold: Ratio::new(reading::TRIGGER_THRESHOLD),
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    }
}

fn exported_file(name: &str, document: Value) -> ExportedFile {
    ExportedFile { name: name.to_owned(), syntax: Some(SourceSyntax::Json), document }
}

fn evals_file(suite: &Suite, folder: &Path, losses: &mut Losses) -> Option<ExportedFile> {
    let evals: Vec<Value> =
        suite.cases.iter().filter_map(|case| eval_value(case, suite, folder, losses)).collect();
    let mut map = Map::new();
    if let Some(skill) = suite.skills.first() {
        map.insert("skill_name".to_owned(), json!(skill.name));
    }
    let any = !evals.is_empty();
    map.insert("evals".to_owned(), Value::Array(evals));
    for key in writing::add_meta(&mut map, &suite.meta) {
        losses.add_for_suite(format!("the key \"{key}\", which means something else here"));
    }
    any.then(|| exported_file("evals.json", Value::Object(map)))
}

fn eval_value(case: &Case, suite: &Suite, folder: &Path, losses: &mut Losses) -> Option<Value> {
    let more = case.meta.get(ASSERTIONS_META_KEY).and_then(Value::as_object);
    let mut items = Vec::new();
    let (should_trigger, checks) = writing::split_activation(case, suite);
    for check in checks {
        let extra = more.and_then(|more| more.get(&check.id)).and_then(Value::as_object);
        items.extend(assertion_value(check, extra, &case.id, losses));
    }
    if items.is_empty() && should_trigger.is_none() {
        losses.add_whole_case(&case.id, "nothing is left to expect of it");
        return None;
    }
    let mut map = Map::new();
    map.insert("id".to_owned(), writing::id_value(&case.id));
    if let Some(note) = &case.note {
        map.insert("name".to_owned(), json!(note));
    }
    map.insert("prompt".to_owned(), json!(writing::join_prompts(case, suite)));
    if let Some(context) = &case.context {
        map.insert("expected_output".to_owned(), json!(context));
    }
    map.insert("files".to_owned(), Value::Array(writing::declared_files(case, folder, losses)));
    if let Some(should) = should_trigger {
        map.insert("should_trigger".to_owned(), json!(should));
    }
    // The key is not `expectations`: with text ids, that would be a BMad file.
    map.insert("assertions".to_owned(), Value::Array(items));
    let mut meta = case.meta.clone();
    meta.remove(ASSERTIONS_META_KEY);
    add_kept_meta(&case.id, &meta, &mut map, losses);
    Some(Value::Object(map))
}

fn add_kept_meta(
    case: &str,
    meta: &std::collections::BTreeMap<String, Value>,
    map: &mut Map<String, Value>,
    losses: &mut Losses,
) {
    for key in writing::add_meta(map, meta) {
        losses.add_for_case(case, format!("the key \"{key}\", which means something else here"));
    }
}

/// Writes a check as a sentence if that expresses everything, otherwise as an object.
fn assertion_value(
    check: &Check,
    extra: Option<&Map<String, Value>>,
    case: &str,
    losses: &mut Losses,
) -> Option<Value> {
    let mut map = match &check.kind {
        // The format has no way to name another target than the default one.
        CheckKind::Rule(rule) if rule.default_target() == check.target => {
            rule_object(rule.key(), &rule.value())
        }
        CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => {
            let statement = writing::judge_statement(check, losses, case, ScoreScale::PassFail)?;
            let derived = reading::slug(&statement, "assertion") == check.id;
            if derived && check.name.is_none() && check.need == CheckNeed::Required && extra.is_none() {
                return Some(json!(statement));
            }
            let mut map = Map::new();
            map.insert("text".to_owned(), json!(statement));
            map
        }
    };
    match &check.name {
        Some(name) => {
            map.insert("id".to_owned(), json!(check.id));
            map.insert("name".to_owned(), json!(name));
        }
        None => {
            map.insert("name".to_owned(), json!(check.id));
        }
    }
    if check.need == CheckNeed::Advisory {
        map.insert("required".to_owned(), json!(false));
    }
    for (key, value) in extra.into_iter().flatten() {
        map.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Some(Value::Object(map))
}

/// Gives the object that reads back as this rule: in a spelling that people use if there is one, otherwise with
/// the rule's own key and value.
fn rule_object(key: &str, value: &Value) -> Map<String, Value> {
    let fields = match (key, value) {
        ("contains" | "not_contains" | "starts_with" | "ends_with", Value::Object(needle)) => json!({
            "type": key,
            "value": needle.get("text"),
            "ignore_case": needle.get("ignore_case") == Some(&json!(true)),
        }),
        ("regex", pattern @ Value::String(_)) => json!({"type": "regex", "pattern": pattern}),
        ("file", Value::Object(file)) if file.len() == 1 => {
            json!({"type": "file_exists", "path": file.get("path")})
        }
        ("file", Value::Object(file)) if file.get("exists") == Some(&json!(false)) => {
            json!({"type": "file_exists", "path": file.get("path"), "expect": "not_exists"})
        }
        ("transcript", Value::Object(transcript)) => json!({
            "type": "transcript_regex",
            "pattern": transcript.get("pattern"),
            "expect": transcript.get("expect").cloned().unwrap_or_else(|| json!("present")),
        }),
        ("command", command @ Value::String(_)) => json!({"type": "script", "command": command}),
        (key, value) => json!({"type": key, "value": value}),
    };
    match fields {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn triggers_file(suite: &Suite, losses: &mut Losses) -> ExportedFile {
    let items = suite
        .cases
        .iter()
        .filter_map(|case| {
            let mut map = writing::trigger_query(case, suite)?;
            add_kept_meta(&case.id, &case.meta, &mut map, losses);
            Some(Value::Object(map))
        })
        .collect();
    exported_file("trigger-set.json", Value::Array(items))
}

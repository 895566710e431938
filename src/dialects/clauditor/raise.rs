//! A suite as a spec. It has one invocation of one skill; everything else is told as lost.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::native::relative;
use super::super::{Raised, RaisedFile};
use crate::model::{
    Access, Case, CheckKind, Expect, GateName, LooksAt, PassRule, Provider, Scale, Section, Stimulus, Suite,
    Transport,
};
use crate::tree::Syntax;

pub fn raise(suite: &Suite, folder: &Path) -> Raised {
    let mut losses = Vec::new();
    let mut spec = Map::new();
    let name = suite.skills.first().map_or(&suite.name, |skill| &skill.name);
    spec.insert("skill_name".to_owned(), json!(name));
    if let Some(description) = &suite.description {
        spec.insert("description".to_owned(), json!(description));
    }
    if suite.skills.len() > 1 {
        losses.push("all skills but the first".to_owned());
    }
    let mut triggers: (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut main = None;
    for case in &suite.cases {
        match trigger(case) {
            Some((query, Expect::Must)) => triggers.0.push(query),
            Some((query, Expect::MustNot)) => triggers.1.push(query),
            Some((_, Expect::Either)) => losses.push(format!("case {}: either outcome is fine", case.id)),
            None if main.is_none() => main = Some(case),
            None => losses.push(format!("case {}: a spec has one invocation", case.id)),
        }
    }
    if let Some(case) = main {
        invocation(case, folder, &mut spec, &mut losses);
    }
    if !triggers.0.is_empty() || !triggers.1.is_empty() {
        spec.insert(
            "trigger_tests".to_owned(),
            json!({"should_trigger": triggers.0, "should_not_trigger": triggers.1}),
        );
    }
    policies(suite, &mut spec);
    for (key, value) in &suite.meta {
        spec.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let file =
        RaisedFile { name: format!("{name}.eval.json"), syntax: Syntax::Json, document: Value::Object(spec) };
    Raised { files: vec![file], losses }
}

/// A case that only asks whether the skill fires.
fn trigger(case: &Case) -> Option<(&str, Expect)> {
    let Stimulus::Turns(turns) = &case.stimulus else { return None };
    match (turns.as_slice(), case.checks.as_slice()) {
        ([query], [check]) => match &check.kind {
            CheckKind::Activation(activation) => Some((query, activation.expect)),
            CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
        },
        _ => None,
    }
}

fn invocation(case: &Case, folder: &Path, spec: &mut Map<String, Value>, losses: &mut Vec<String>) {
    let mut lose = |what: String| losses.push(format!("case {}: {what}", case.id));
    match &case.stimulus {
        Stimulus::SkillCommand { args } => {
            spec.insert("test_args".to_owned(), json!(args));
        }
        Stimulus::Turns(turns) => {
            lose("the prompt became the arguments of the skill's command".to_owned());
            spec.insert("test_args".to_owned(), json!(turns.join("\n")));
        }
    }
    let room = &case.room;
    if !room.files.is_empty() {
        let inputs: Vec<String> = room.files.iter().map(|file| relative(&file.from, folder)).collect();
        if room.files.iter().any(|file| file.access == Access::ReadOnly) {
            lose("inputs are copies that the skill may change, not read-only files".to_owned());
        }
        spec.insert("input_files".to_owned(), json!(inputs));
    }
    if !room.overlays.is_empty() || room.setup.is_some() || room.teardown.is_some() {
        lose("its overlays and scripts".to_owned());
    }
    let mut assertions = Vec::new();
    let mut criteria = Vec::new();
    for check in &case.checks {
        match &check.looks_at {
            LooksAt::File(path) => {
                spec.insert("output_file".to_owned(), json!(path.as_str()));
            }
            LooksAt::Files(globs) => {
                spec.insert("output_files".to_owned(), json!(globs));
            }
            LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun => {}
        }
        match &check.kind {
            CheckKind::Exact(rule) => match assertion(rule.key(), &rule.value()) {
                Some(mut entry) => {
                    entry.insert("id".to_owned(), json!(check.id));
                    if let Some(name) = &check.name {
                        entry.insert("name".to_owned(), json!(name));
                    }
                    assertions.push(Value::Object(entry));
                }
                None => lose(format!("check {} ({})", check.id, rule.key())),
            },
            CheckKind::Judged(judged) => {
                if judged.scale != Scale::Unit {
                    lose(format!("check {}: criteria are scored from 0 to 1", check.id));
                }
                criteria.push(json!({"id": check.id, "criterion": judged.statement}));
            }
            CheckKind::Sections(sections) => {
                spec.insert("sections".to_owned(), sections.iter().map(section).collect());
            }
            CheckKind::Activation(_) => lose(format!("check {} (activation of an invoked skill)", check.id)),
        }
    }
    if !assertions.is_empty() {
        spec.insert("assertions".to_owned(), Value::Array(assertions));
    }
    if !criteria.is_empty() {
        spec.insert("grading_criteria".to_owned(), Value::Array(criteria));
    }
    if let PassRule::Graded { pass_rate, mean_score } = case.pass_when {
        let thresholds = json!({"min_pass_rate": pass_rate.get(), "min_mean_score": mean_score.get()});
        spec.insert("grade_thresholds".to_owned(), thresholds);
    }
}

/// The payload of an assertion, if there is one of this kind.
fn assertion(key: &str, value: &Value) -> Option<Map<String, Value>> {
    let payload = match (key, value) {
        ("contains" | "not_contains", Value::String(_)) => json!({"needle": value}),
        ("regex", Value::String(_)) => json!({"pattern": value}),
        ("min_length" | "max_length", Value::Number(_)) => json!({"length": value}),
        ("has_urls" | "has_entries" | "urls_reachable", Value::Number(_)) => json!({"count": value}),
        ("min_count" | "has_format", Value::Object(_)) => value.clone(),
        _ => return None,
    };
    let mut entry = Map::new();
    entry.insert("type".to_owned(), json!(key));
    entry.extend(payload.as_object().cloned().unwrap_or_default());
    Some(entry)
}

fn section(section: &Section) -> Value {
    let tiers: Vec<Value> = section
        .tiers
        .iter()
        .map(|tier| {
            let fields: Vec<Value> = tier
                .fields
                .iter()
                .map(|field| {
                    let mut map = Map::new();
                    map.insert("id".to_owned(), json!(field.id));
                    map.insert("name".to_owned(), json!(field.name));
                    map.insert("required".to_owned(), json!(field.required));
                    if let Some(format) = &field.format {
                        map.insert("format".to_owned(), json!(format));
                    }
                    Value::Object(map)
                })
                .collect();
            let mut map = Map::new();
            map.insert("label".to_owned(), json!(tier.label));
            if let Some(description) = &tier.description {
                map.insert("description".to_owned(), json!(description));
            }
            map.insert("min_entries".to_owned(), json!(tier.min_entries));
            if let Some(most) = tier.max_entries {
                map.insert("max_entries".to_owned(), json!(most));
            }
            map.insert("fields".to_owned(), Value::Array(fields));
            Value::Object(map)
        })
        .collect();
    json!({"name": section.name, "tiers": tiers})
}

/// Values that are the default are left out, as the original leaves them out.
fn policies(suite: &Suite, spec: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec.insert(key.to_owned(), value);
        }
    };
    let (run, judge) = (&suite.run, &suite.judge);
    put("grading_model", judge.model.as_ref().map(|model| json!(model)));
    put("grading_provider", judge.provider.filter(|it| *it != Provider::Auto).map(|it| json!(it.name())));
    put("transport", judge.transport.filter(|it| *it != Transport::Auto).map(|it| json!(it.name())));
    put("user_prompt", judge.user_prompt.as_ref().map(|prompt| json!(prompt)));
    put("system_prompt", run.system_prompt.as_ref().map(|prompt| json!(prompt)));
    put("timeout", run.timeout.map(|timeout| json!(timeout.as_secs().max(1))));
    put("sync_tasks", run.sync_tasks.map(|sync| json!(sync)));
    put("allow_hang_heuristic", run.detect_questions.map(|detect| json!(detect)));
    let harness = match run.agents.first().map(String::as_str) {
        Some("claude") => Some("claude-code"),
        Some("codex") => Some("codex"),
        Some(_) | None => None,
    };
    put("harness", harness.map(|harness| json!(harness)));
    let stability = suite.gates.iter().find(|gate| gate.name == GateName::Stability);
    put(
        "variance",
        stability
            .map(|gate| json!({"n_runs": run.repeat.unwrap_or(5), "min_stability": gate.threshold.get()})),
    );
}

//! Writes suites and cases as native documents.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{about_skill, case_checks, mocks, policy, user};
use practicum_core::model::{
    Case, CasePrompt, Fixture, FixtureAccess, Gate, JudgePolicy, PassRule, RunPolicy, ScoreOf, ScoreRule,
    SkillRef, StagedSkillName, Suite, WorkspaceBase, WorkspaceSpec, format_duration,
};

/// Writes a suite as a native document whose paths are relative to `folder`. Reading it back from there gives the
/// same suite, apart from its origin.
pub fn encode_suite(suite: &Suite, folder: &Path) -> Value {
    let Suite {
        name,
        origin: _,
        description,
        skills,
        rivals,
        plugins,
        skill_statements: about_skill,
        cases,
        run_policy: run,
        format_defaults: defaults,
        judge_policy: judge,
        gates,
        meta,
    } = suite;
    let mut map = Map::new();
    map.insert("practicum".to_owned(), json!(1));
    map.insert("name".to_owned(), json!(name));
    if let Some(description) = description {
        map.insert("description".to_owned(), json!(description));
    }
    match skills.as_slice() {
        [] => {}
        [one] => {
            map.insert("skill".to_owned(), skill_value(one, folder));
        }
        several => {
            map.insert("skill".to_owned(), several.iter().map(|skill| skill_value(skill, folder)).collect());
        }
    }
    if !rivals.is_empty() {
        map.insert("rivals".to_owned(), rivals.iter().map(|skill| skill_value(skill, folder)).collect());
    }
    if !plugins.is_empty() {
        map.insert(
            "plugins".to_owned(),
            plugins.iter().map(|path| json!(relative_path(path, folder))).collect(),
        );
    }
    if !about_skill.is_empty() {
        map.insert("about_skill".to_owned(), about_skill.iter().map(about_skill::encode).collect());
    }
    if *run != RunPolicy::default() {
        map.insert("run".to_owned(), policy::run_value(run, folder));
    }
    if *defaults != RunPolicy::default() {
        map.insert("defaults".to_owned(), policy::run_value(defaults, folder));
    }
    if *judge != JudgePolicy::default() {
        map.insert("judge".to_owned(), policy::judge_value(judge));
    }
    if *gates != [Gate::ALL_CASES_PASS] {
        let gates: Map<String, Value> =
            gates.iter().map(|gate| (gate.name.name().to_owned(), encode_gate(gate))).collect();
        map.insert("gates".to_owned(), Value::Object(gates));
    }
    if !meta.is_empty() {
        map.insert("meta".to_owned(), json!(meta));
    }
    let names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
    map.insert("cases".to_owned(), cases.iter().map(|case| case_value(case, &names, folder)).collect());
    Value::Object(map)
}

fn skill_value(skill: &SkillRef, folder: &Path) -> Value {
    let SkillRef { name, path, plugin } = skill;
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(name));
    if let Some(path) = path {
        map.insert("path".to_owned(), json!(relative_path(path, folder)));
    }
    if let Some(plugin) = plugin {
        map.insert("plugin".to_owned(), json!(plugin));
    }
    Value::Object(map)
}

/// Writes one case as a native file would have it.
pub fn case_value(case: &Case, skills: &[String], folder: &Path) -> Value {
    let Case {
        id,
        group,
        note,
        prompt: stimulus,
        user,
        workspace: room,
        mocks: mocked,
        checks,
        context,
        timeout,
        repeat,
        pass_rule: pass_when,
        known_good_output: oracle,
        unsupported,
        meta,
    } = case;
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(id));
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(key.to_owned(), value);
        }
    };
    put("group", group.as_ref().map(|group| json!(group)));
    put("note", note.as_ref().map(|note| json!(note)));
    match stimulus {
        CasePrompt::Turns(turns) => {
            put("prompt", Some(if let [one] = turns.as_slice() { json!(one) } else { json!(turns) }))
        }
        CasePrompt::SkillCommand { args } => put("command", Some(json!(args))),
    }
    put("user", user.as_ref().map(user::encode));
    let WorkspaceSpec { base, overlays, skill_name: skill, files, inline_files, setup, teardown } = room;
    put("workspace", (*base == WorkspaceBase::Empty).then(|| json!("empty")));
    put(
        "overlays",
        (!overlays.is_empty())
            .then(|| overlays.iter().map(|path| json!(relative_path(path, folder))).collect()),
    );
    put("skill_name", (*skill == StagedSkillName::Alias).then(|| json!("alias")));
    let inline = inline_files.iter().map(|file| json!({"to": file.path.as_str(), "content": file.content}));
    let files: Vec<Value> = files.iter().map(|file| fixture_value(file, folder)).chain(inline).collect();
    put("files", (!files.is_empty()).then_some(Value::Array(files)));
    put("setup", setup.as_ref().map(|script| json!(script)));
    put("teardown", teardown.as_ref().map(|script| json!(script)));
    put("mocks", mocks::encode_mocks(mocked, folder));
    put("context", context.as_ref().map(|context| json!(context)));
    put("timeout", timeout.map(|timeout| json!(format_duration(timeout))));
    put("repeat", repeat.map(|repeat| json!(repeat)));
    match pass_when {
        PassRule::EveryRequiredCheck => {}
        PassRule::ActivationRate(None) => put("pass_when", Some(json!("fire_rate"))),
        PassRule::ActivationRate(Some(rate)) => put("pass_when", Some(json!({"fire_rate": rate.get()}))),
        PassRule::JudgedThresholds { pass_rate, mean_score } => {
            put("pass_when", Some(json!({"pass_rate": pass_rate.get(), "mean_score": mean_score.get()})));
        }
        PassRule::Score(ScoreRule { at_least, of: ScoreOf::EachTrial }) => {
            put("pass_when", Some(json!({"score": at_least.get()})));
        }
        PassRule::Score(ScoreRule { at_least, of: ScoreOf::MeanOfTrials }) => {
            put("pass_when", Some(json!({"mean_of_scores": at_least.get()})));
        }
        PassRule::CountOnly => put("pass_when", Some(json!("tally"))),
    }
    put("oracle", oracle.as_ref().map(|path| json!(relative_path(path, folder))));
    put("unsupported", unsupported.as_ref().map(|why| json!(why)));
    put("meta", (!meta.is_empty()).then(|| json!(meta)));
    let (activation, list) = case_checks::encode_checks(checks, skills, *pass_when);
    let nothing_else = activation.is_none();
    put("activation", activation);
    put("checks", (!list.is_empty() || nothing_else).then_some(Value::Array(list)));
    Value::Object(map)
}

fn fixture_value(fixture: &Fixture, folder: &Path) -> Value {
    let Fixture { source: from, destination: to, access } = fixture;
    let from = relative_path(from, folder);
    if *access == FixtureAccess::ReadOnly && from == to.as_str() {
        return json!(from);
    }
    match access {
        FixtureAccess::ReadOnly => json!({"from": from, "to": to.as_str()}),
        FixtureAccess::Mutable => json!({"from": from, "to": to.as_str(), "mutable": true}),
    }
}

/// Gives the path from `folder` to `path`, both absolute, without looking at the disk.
pub fn relative_path(path: &Path, folder: &Path) -> String {
    let from: Vec<Component<'_>> = folder.components().collect();
    let to: Vec<Component<'_>> = path.components().collect();
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    // For two paths that share only the root, the absolute path is clearer.
    if shared <= 1 {
        return path.to_string_lossy().into_owned();
    }
    let up = std::iter::repeat_n(Component::ParentDir, from.len() - shared);
    let relative: PathBuf = up.chain(to.into_iter().skip(shared)).collect();
    match relative.to_string_lossy().into_owned() {
        empty if empty.is_empty() => ".".to_owned(),
        relative => relative,
    }
}

/// Writes a gate: its threshold, or both numbers if it must be sure.
fn encode_gate(gate: &Gate) -> Value {
    match gate.confidence {
        Some(sure) => json!({"at_least": gate.threshold.get(), "confidence": sure.get()}),
        None => json!(gate.threshold.get()),
    }
}

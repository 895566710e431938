//! Writes a suite as waza's `eval.yaml` with a file for each task, and its trigger tests.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::native::relative_path;
use super::super::writing::{
    self, FormatCapabilities, FormatFeature, Losses, PatternLanguage, PlainRule, first_same, foreign_pattern,
};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::graders::read_grader;
use super::{LONGEST_TIMEOUT, MOST_TRIALS, TRIGGER_FILE};
use practicum_core::model::{
    ActivationExpectation, Arm, Case, CasePrompt, Check, CheckKind, CheckTarget, Gate, GateName, PassRule,
    RunPolicy, ScoreScale, Suite, WorkspaceBase, WorkspaceSpec,
};
use practicum_core::tree::SourceSyntax;

const DEFAULT_TIMEOUT: u64 = 300;

/// Writes a suite. What waza cannot express is listed.
pub fn export(suite: &Suite, folder: &Path) -> ExportedSuite {
    let mut losses = Losses::default();
    let suite = writing::require_counted_checks(&writing::cases_that_run(suite, &mut losses));
    losses.extend(other_losses(&suite));
    let mut names = reading::UniqueIds::default();
    let (mut tasks, mut triggers) = (Vec::new(), Triggers::default());
    for case in &suite.cases {
        if triggers.add(case, &suite) {
            continue;
        }
        tasks.extend(task_file(case, &suite, folder, &mut names, &mut losses));
    }
    let mut files = Vec::new();
    if !tasks.is_empty() || !triggers.is_empty() {
        // The files are listed one by one, so that the tasks keep their order.
        let paths: Vec<&str> = tasks.iter().map(|task: &ExportedFile| task.name.as_str()).collect();
        files.push(yaml_file("eval.yaml", spec(&suite, folder, &paths)));
        files.extend(tasks);
        files.extend(triggers.document(&suite).map(|document| yaml_file(TRIGGER_FILE, document)));
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

fn yaml_file(name: &str, document: Value) -> ExportedFile {
    ExportedFile { name: name.to_owned(), syntax: Some(SourceSyntax::Yaml), document }
}

fn accuracy_gate(suite: &Suite) -> Option<&Gate> {
    suite.gates.iter().find(|gate| gate.name == GateName::Accuracy && gate.confidence.is_none())
}

/// Finds what is lost beside prompts and checks.
fn other_losses(suite: &Suite) -> Losses {
    let mut rest = suite.clone();
    for case in &mut rest.cases {
        for key in ["tags", "description"] {
            case.meta.remove(key);
        }
        // The threshold of the trigger tests says that they count together.
        if is_trigger_case(case, suite) {
            case.repeat = None;
            if accuracy_gate(suite).is_some() && case.pass_rule == PassRule::CountOnly {
                case.pass_rule = PassRule::EveryRequiredCheck;
            }
        }
        let folder =
            case.group.as_deref().map(|group| group.split('/').map(writing::file_stem).collect::<Vec<_>>());
        if folder.is_some_and(|parts| Some(parts.join("/")) == case.group) {
            case.group = None;
        }
    }
    let arms = writing::chosen_arms(suite);
    let both = arms == [Arm::WithSkill, Arm::WithoutSkill];
    let mut gates = reading::all_cases_pass();
    gates.extend(accuracy_gate(suite).cloned());
    let format = FormatCapabilities {
        features: &[
            FormatFeature::Description,
            FormatFeature::Skill,
            FormatFeature::Repeat,
            FormatFeature::CaseTimeout,
            FormatFeature::Note,
            FormatFeature::Turns,
            FormatFeature::Files,
            FormatFeature::InlineFiles,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            arms: if both || arms == [Arm::WithSkill] { arms } else { Vec::new() },
            ..RunPolicy::default()
        },
        gates,
    };
    Losses::from_suite(&rest, &format)
}

fn spec(suite: &Suite, folder: &Path, tasks: &[&str]) -> Value {
    let trials = writing::shared_repeat(suite).map_or(1, i64::from).clamp(1, MOST_TRIALS);
    let timeout = writing::shared_timeout(suite).unwrap_or(DEFAULT_TIMEOUT);
    let timeout = i64::try_from(timeout).map_or(LONGEST_TIMEOUT, |seconds| seconds.min(LONGEST_TIMEOUT));
    let mut config =
        json!({"trials_per_task": trials, "timeout_seconds": timeout, "executor": "copilot-sdk"});
    let skill = suite.skills.first();
    if let Some(around) = skill.and_then(|skill| skill.path.as_deref()?.parent()) {
        config["skill_directories"] = json!([relative_path(around, folder)]);
    }
    let mut map = Map::from_iter([("name".to_owned(), json!(suite.name))]);
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    if let Some(description) = &suite.description {
        put("description", json!(description));
    }
    if let Some(skill) = skill {
        // The skill is looked for by the name of its folder.
        let folder = skill.path.as_deref().and_then(|path| path.file_name()?.to_str());
        put("skill", json!(folder.unwrap_or(&skill.name)));
    }
    put("version", json!("1.0"));
    put("config", config);
    let metric = accuracy_gate(suite)
        .map(|gate| json!({"name": "trigger_accuracy", "weight": 1.0, "threshold": gate.threshold.get()}));
    put("metrics", metric.into_iter().collect());
    if writing::chosen_arms(suite) == [Arm::WithSkill, Arm::WithoutSkill] {
        put("baseline", json!(true));
    }
    put("tasks", json!(tasks));
    Value::Object(map)
}

/// Says whether a case is one of waza's trigger tests: a prompt, run once, and whether the skill is activated.
fn is_trigger_case(case: &Case, suite: &Suite) -> bool {
    let counts = matches!(case.pass_rule, PassRule::EveryRequiredCheck | PassRule::CountOnly);
    let CasePrompt::Turns(turns) = &case.prompt else { return false };
    counts
        && case.repeat == Some(1)
        && case.id == reading::slug(&turns.join(""), "trigger")
        && case.workspace == WorkspaceSpec::default()
        && writing::trigger_query(&Case { pass_rule: PassRule::EveryRequiredCheck, ..case.clone() }, suite)
            .is_some()
}

/// The trigger tests of a suite.
#[derive(Default)]
struct Triggers {
    should: Vec<Value>,
    should_not: Vec<Value>,
}

impl Triggers {
    /// Adds a case if it is a trigger test.
    fn add(&mut self, case: &Case, suite: &Suite) -> bool {
        if !is_trigger_case(case, suite) {
            return false;
        }
        let Some(query) =
            writing::trigger_query(&Case { pass_rule: PassRule::EveryRequiredCheck, ..case.clone() }, suite)
        else {
            return false;
        };
        let mut item = json!({"prompt": query["query"]});
        if let Some(reason) = &case.note {
            item["reason"] = json!(reason);
        }
        let list =
            if query["should_trigger"] == json!(true) { &mut self.should } else { &mut self.should_not };
        list.push(item);
        true
    }

    fn is_empty(&self) -> bool {
        self.should.is_empty() && self.should_not.is_empty()
    }

    fn document(self, suite: &Suite) -> Option<Value> {
        let skill = suite.skills.first().filter(|_| !self.is_empty())?;
        let mut map = Map::from_iter([("skill".to_owned(), json!(skill.name))]);
        for (key, list) in
            [("should_trigger_prompts", self.should), ("should_not_trigger_prompts", self.should_not)]
        {
            if !list.is_empty() {
                map.insert(key.to_owned(), Value::Array(list));
            }
        }
        Some(Value::Object(map))
    }
}

fn task_file(
    case: &Case,
    suite: &Suite,
    folder: &Path,
    names: &mut reading::UniqueIds,
    losses: &mut Losses,
) -> Option<ExportedFile> {
    let turns = match &case.prompt {
        CasePrompt::Turns(turns) => turns.clone(),
        CasePrompt::SkillCommand { .. } => vec![writing::join_prompts(case, suite)],
    };
    let mut graders = Vec::new();
    for check in &case.checks {
        graders.extend(grader(check, &case.id, losses));
    }
    let blank = turns.iter().any(|turn| turn.trim().is_empty());
    if blank || graders.is_empty() {
        let why = if blank { "its prompt is empty" } else { "nothing is left to expect of it" };
        losses.add_whole_case(&case.id, why);
        return None;
    }
    let mut inputs = json!({"prompt": turns[0]});
    if turns.len() > 1 {
        inputs["follow_up_prompts"] = json!(turns[1..]);
    }
    let inline = case.workspace.inline_files.iter();
    let inline = inline.map(|file| json!({"path": file.path.as_str(), "content": file.content}));
    let copied = case.workspace.files.iter().map(|file| {
        // Files that are copied lie in the folder "fixtures" beside the spec.
        if file.source != file.destination.join_to(&folder.join("fixtures")) {
            let from = relative_path(&file.source, folder);
            losses.add_for_case(
                &case.id,
                format!("where {} lies (copy {from} to fixtures/)", file.destination),
            );
        }
        json!({"path": file.destination.as_str()})
    });
    let files: Vec<Value> = inline.chain(copied).collect();
    if !files.is_empty() {
        inputs["files"] = Value::Array(files);
    }
    let name = case.note.as_deref().unwrap_or(&case.id);
    let mut task = json!({"id": case.id, "name": name, "inputs": inputs, "graders": graders});
    if let Some(timeout) = case.timeout {
        let seconds = i64::try_from(writing::whole_seconds(timeout)).unwrap_or(LONGEST_TIMEOUT);
        task["timeout_seconds"] = json!(seconds.min(LONGEST_TIMEOUT));
    }
    for key in ["tags", "description"] {
        if let Some(value) = case.meta.get(key) {
            task[key] = value.clone();
        }
    }
    let group = case.group.as_deref().unwrap_or_default();
    let stem = names.make_unique(&writing::file_stem(&case.id));
    let parts = group.split('/').filter(|part| !part.is_empty()).map(writing::file_stem);
    let path: Vec<String> =
        std::iter::once("tasks".to_owned()).chain(parts).chain([format!("{stem}.yaml")]).collect();
    Some(yaml_file(&path.join("/"), task))
}

/// Writes a check as a grader. What no grader can express is judged in words, or lost; both are recorded.
fn grader(check: &Check, case: &str, losses: &mut Losses) -> Option<Value> {
    let named = |mut grader: Value| {
        grader["name"] = json!(check.id);
        grader
    };
    if let Some(grader) = first_same(check, false, candidates(check), read_grader) {
        return Some(named(grader));
    }
    let rubric = writing::rubric_for(check, losses, case, ScoreScale::PassFail, &CheckTarget::WholeRun)?;
    // Without this, waza's judge does not see the answer.
    let config = json!({"prompt": rubric, "continue_session": true});
    Some(named(json!({"type": "prompt", "config": config})))
}

/// Gives the graders that may mean the same as a check.
fn candidates(check: &Check) -> Vec<Value> {
    if let CheckKind::Activation(activation) = &check.kind {
        let key = match activation.expect {
            ActivationExpectation::Must => "required_skills",
            ActivationExpectation::MustNot => "forbidden_skills",
            ActivationExpectation::Either => return Vec::new(),
        };
        let config = json!({key: activation.skills, "mode": "any_order"});
        return vec![json!({"type": "skill_invocation", "config": config})];
    }
    let Some(rule) = PlainRule::of(check, false) else { return Vec::new() };
    let parts = match (rule.key.as_str(), rule.value.as_array(), rule.negated) {
        ("all", Some(parts), false) => parts.clone(),
        _ => {
            let plain = json!({rule.key.as_str(): rule.value});
            vec![if rule.negated { json!({"not": plain}) } else { plain }]
        }
    };
    let mut made =
        vec![text_grader(&parts), file_grader(&parts), behavior_grader(&parts), call_grader(&parts)];
    if let ("tool_order", calls) = (rule.key.as_str(), &rule.value) {
        let (mode, actions) = match calls.get("calls") {
            Some(actions) => ("exact_match", actions),
            None => ("in_order_match", calls),
        };
        let config = json!({"matching_mode": mode, "expected_actions": actions});
        made.push(Some(json!({"type": "action_sequence", "config": config})));
    }
    if let ("min_length", Some(least)) = (rule.key.as_str(), rule.value.as_i64()) {
        made.push(Some(
            json!({"type": "code", "config": {"assertions": [format!("len(output) >= {least}")]}}),
        ));
    }
    made.into_iter().flatten().collect()
}

/// Splits a rule, given as in a native file, into whether it must not hold, its key and its value.
fn split_rule(rule: &Value) -> Option<(bool, &str, &Value)> {
    let (key, value) = rule.as_object()?.iter().next()?;
    if key == "not" {
        let (key, value) = value.as_object()?.iter().next()?;
        return Some((true, key, value));
    }
    Some((false, key, value))
}

fn go_pattern(value: &Value) -> Option<Value> {
    foreign_pattern(value.as_str()?, PatternLanguage::Go).map(|(pattern, _)| json!(pattern))
}

/// Adds a value to a list of a grader's config.
fn add(config: &mut Map<String, Value>, key: &str, value: Value) {
    if let Some(list) = config.entry(key).or_insert_with(|| json!([])).as_array_mut() {
        list.push(value);
    }
}

fn text_grader(rules: &[Value]) -> Option<Value> {
    let mut config = Map::new();
    for rule in rules {
        let (negated, key, value) = split_rule(rule)?;
        let not = if negated { "not_" } else { "" };
        match (key, value.as_str()) {
            ("contains", Some(text)) => add(&mut config, &format!("{not}contains_cs"), json!(text)),
            ("contains", None) => add(&mut config, &format!("{not}contains"), value.get("text")?.clone()),
            ("regex", _) => add(&mut config, &format!("regex_{not}match"), go_pattern(value)?),
            (_, _) => return None,
        }
    }
    Some(json!({"type": "text", "config": config}))
}

fn file_grader(rules: &[Value]) -> Option<Value> {
    let mut config = Map::new();
    let mut patterns: Vec<Value> = Vec::new();
    for rule in rules {
        let (negated, key, value) = split_rule(rule)?;
        let path = value.get("path").filter(|_| key == "file" || key == "files")?;
        match value.get("matches") {
            Some(pattern) => {
                let key = if negated { "must_not_match" } else { "must_match" };
                let last = patterns.last_mut().filter(|last| last["path"] == *path)?;
                let mut list = last.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
                list.push(go_pattern(pattern)?);
                last[key] = Value::Array(list);
            }
            None if value.get("exists") == Some(&json!(false)) => {
                add(&mut config, "must_not_exist", path.clone())
            }
            // A pattern for a file's text says too that the file is there.
            None if rules.len() > 1 && rules.iter().any(|other| has_pattern_for(other, path)) => {
                patterns.push(json!({"path": path}));
            }
            None => add(&mut config, "must_exist", path.clone()),
        }
    }
    if !patterns.is_empty() {
        config.insert("content_patterns".to_owned(), Value::Array(patterns));
    }
    Some(json!({"type": "file", "config": config}))
}

fn has_pattern_for(rule: &Value, path: &Value) -> bool {
    split_rule(rule).is_some_and(|(_, key, value)| {
        key == "file" && value["path"] == *path && value.get("matches").is_some()
    })
}

fn behavior_grader(rules: &[Value]) -> Option<Value> {
    let mut config = Map::new();
    for rule in rules {
        let (negated, key, value) = split_rule(rule)?;
        match (key, value.as_object()) {
            ("limit", Some(limit)) if limit.len() == 1 && !negated => {
                let (measure, most) = limit.iter().next()?;
                let (key, most) = match measure.as_str() {
                    "tool_calls" => ("max_tool_calls", most.clone()),
                    "tokens" => ("max_tokens", most.clone()),
                    "turns" => ("max_iterations", most.clone()),
                    "seconds" => ("max_duration_ms", writing::number_value(most.as_f64()? * 1000.0)),
                    _ => return None,
                };
                config.insert(key.to_owned(), most);
            }
            ("tool_used", Some(call)) if call.len() == 1 => {
                let key = if negated { "forbidden_tools" } else { "required_tools" };
                add(&mut config, key, call.get("name")?.clone());
            }
            (_, _) => return None,
        }
    }
    Some(json!({"type": "behavior", "config": config}))
}

fn call_grader(rules: &[Value]) -> Option<Value> {
    let mut config = Map::new();
    for rule in rules {
        let (negated, key, value) = split_rule(rule)?;
        let mut call = json!({"tool": value.get("name").filter(|_| key == "tool_used")?});
        if let Some(input) = value.get("input").and_then(Value::as_str) {
            // These patterns ignore case without saying so.
            call["command_pattern"] = json!(input.strip_prefix("(?i:")?.strip_suffix(')')?);
        }
        add(&mut config, if negated { "reject_tools" } else { "expect_tools" }, call);
    }
    Some(json!({"type": "tool_constraint", "config": config}))
}

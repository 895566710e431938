//! Writes a suite as cases of `claude plugin eval`: a folder for each case, with its `case.yaml`.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::native::relative_path;
use super::super::reading::graders::escape_pattern;
use super::super::writing::{
    self, FormatCapabilities, FormatFeature, Losses, PatternLanguage, PlainRule, first_same, foreign_pattern,
};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::graders::{ROLES, read_grader};
use super::{CASE_FILE, JUDGE_VOTES, LONGEST_TIMEOUT, MOST_RUNS, MOST_TURNS};
use practicum_core::model::{
    ActivationExpectation, Arm, Case, Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, Fixture,
    PassRule, Ratio, RunPolicy, ScoreScale, Suite, WorkspaceBase, WorkspaceSpec,
};
use practicum_core::tree::SourceSyntax;

const SCRIPT_FILE: &str = "scaffold.sh";

/// The keys that are kept, of the case and under `execution`.
const KEPT_KEYS: [&str; 2] = ["tags", "expected_outcome"];
const KEPT_EXECUTION_KEYS: [&str; 2] = ["allowed_tools", "model"];

/// Writes a suite. What `claude plugin eval` cannot express is listed.
pub fn export(suite: &Suite, folder: &Path) -> ExportedSuite {
    let mut losses = Losses::default();
    let suite = writing::cases_that_run(suite, &mut losses);
    let mut names = reading::UniqueIds::default();
    let names = suite.cases.iter().map(|case| names.make_unique(&writing::file_stem(&case.id)));
    let names: Vec<String> = names.collect();
    losses.extend(other_losses(&suite, folder, &names));
    let mut files = Vec::new();
    for (case, name) in suite.cases.iter().zip(&names) {
        let Some(document) = case_value(case, &suite, &folder.join(name), &mut losses) else { continue };
        files.push(ExportedFile {
            name: format!("{name}/{CASE_FILE}"),
            syntax: Some(SourceSyntax::Yaml),
            document,
        });
        if let Some(script) = scaffold(case) {
            let name = format!("{name}/{SCRIPT_FILE}");
            files.push(ExportedFile { name, syntax: None, document: json!(script) });
        }
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

/// Finds what is lost beside prompts and checks.
fn other_losses(suite: &Suite, folder: &Path, names: &[String]) -> Losses {
    let mut features = vec![
        FormatFeature::Repeat,
        FormatFeature::CaseRepeat,
        FormatFeature::CaseTimeout,
        FormatFeature::Note,
        FormatFeature::Score,
        FormatFeature::Advisory,
    ];
    let mut rest = suite.clone();
    if !suite.plugins.is_empty() {
        features.extend([FormatFeature::Skill, FormatFeature::SeveralSkills]);
        rest.plugins.clear();
    } else if writing::is_in_skill(suite, folder, 4) {
        features.push(FormatFeature::Skill);
    }
    if rest.judge_policy.votes == Some(JUDGE_VOTES) {
        rest.judge_policy.votes = None;
    }
    for (case, name) in rest.cases.iter_mut().zip(names) {
        case.meta.retain(|key, _| !KEPT_KEYS.iter().chain(&KEPT_EXECUTION_KEYS).any(|kept| kept == key));
        if scaffold(case).is_some() {
            case.workspace.setup = None;
        }
        case.workspace.files.retain(|file| !is_own_folder(file, &folder.join(name)));
    }
    let both = vec![Arm::WithSkill, Arm::WithoutSkill];
    let format = FormatCapabilities {
        features: &features,
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            arms: if suite.skills.is_empty() { Vec::new() } else { both },
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    };
    Losses::from_suite(&rest, &format)
}

/// Gives the script that prepares the workspace, unless it asks for its own path.
fn scaffold(case: &Case) -> Option<&str> {
    case.workspace.setup.as_deref().filter(|script| !super::needs_own_path(script))
}

/// Says whether a file of the workspace is a folder of the case, under the same path.
fn is_own_folder(file: &Fixture, case_folder: &Path) -> bool {
    file.source == file.destination.join_to(case_folder) && file.source.is_dir()
}

fn case_value(case: &Case, suite: &Suite, folder: &Path, losses: &mut Losses) -> Option<Value> {
    let prompt = writing::join_prompts(case, suite);
    let is_blank = prompt.trim().is_empty();
    let mut execution = json!({"prompt": prompt});
    let graders = graders(case, suite, &mut execution, losses);
    let counts = graders.iter().any(|grader| grader.get("arm") != Some(&json!("with-only")));
    if is_blank || !counts {
        let why = if is_blank { "its prompt is empty" } else { "nothing is left to expect of it" };
        losses.add_whole_case(&case.id, why);
        return None;
    }
    note_score_losses(case, losses);
    let mut document = json!({"schema_version": "1.1", "name": case.id});
    if !suite.plugins.is_empty() {
        document["plugins"] = suite.plugins.iter().map(|root| json!(relative_path(root, folder))).collect();
    }
    if let Some(note) = &case.note {
        document["description"] = json!(note);
    }
    for (keys, map) in [(KEPT_KEYS, &mut document), (KEPT_EXECUTION_KEYS, &mut execution)] {
        for key in keys {
            if let Some(value) = case.meta.get(key) {
                map[key] = value.clone();
            }
        }
    }
    if let Some(runs) = case.repeat.or(writing::shared_repeat(suite)) {
        document["runs"] = json!(i64::from(runs).clamp(1, MOST_RUNS));
    }
    let timeout = case.timeout.map(writing::whole_seconds).or(writing::shared_timeout(suite));
    if let Some(seconds) = timeout.and_then(|seconds| i64::try_from(seconds).ok()) {
        if seconds > LONGEST_TIMEOUT {
            losses.add_for_case(&case.id, format!("a time limit of more than {LONGEST_TIMEOUT} seconds"));
        }
        execution["timeout_seconds"] = json!(seconds.min(LONGEST_TIMEOUT));
    }
    document["execution"] = execution;
    let mut context = Map::new();
    if scaffold(case).is_some() {
        context.insert("scaffold_script".to_owned(), json!(SCRIPT_FILE));
    }
    let folders = case.workspace.files.iter().filter(|file| is_own_folder(file, folder));
    let folders: Vec<&str> = folders.map(|file| file.destination.as_str()).collect();
    if !folders.is_empty() {
        context.insert("add_dirs".to_owned(), json!(folders));
    }
    if !context.is_empty() {
        document["context"] = Value::Object(context);
    }
    document["graders"] = Value::Array(graders);
    Some(document)
}

fn note_score_losses(case: &Case, losses: &mut Losses) {
    let PassRule::Score(rule) = case.pass_rule else { return };
    if rule.at_least != Ratio::ONE {
        let score = rule.at_least.get();
        losses.add_for_case(
            &case.id,
            format!("the score {score} that it must reach (say --threshold {score})"),
        );
    }
    if case.checks.iter().any(|check| check.need == CheckNeed::Required) {
        losses.add_for_case(&case.id, "that some checks must pass whatever the score is");
    }
}

/// Writes the checks as graders. The limit of turns that is only shown goes to `execution`.
fn graders(case: &Case, suite: &Suite, execution: &mut Value, losses: &mut Losses) -> Vec<Value> {
    let by_score = matches!(case.pass_rule, PassRule::Score(_));
    let mut made = Vec::new();
    for check in &case.checks {
        let weight = match (by_score, check.need) {
            (true, _) => check.weight,
            (false, CheckNeed::Required) => CheckWeight::ONE,
            (false, CheckNeed::Advisory) => CheckWeight::ZERO,
        };
        let counts = weight != CheckWeight::ZERO;
        if let Some(turns) = shown_turns(check).filter(|_| !counts && execution.get("max_turns").is_none()) {
            execution["max_turns"] = json!(turns);
            continue;
        }
        if !counts && suite.skills.is_empty() {
            losses.add_for_case(&case.id, "the checks that are reported and do not count");
            continue;
        }
        let Some(mut grader) = grader(check, case, suite, by_score, losses) else { continue };
        grader["name"] = json!(check.id);
        if counts && weight != CheckWeight::ONE {
            grader["weight"] = writing::number_value(weight.get());
        }
        // Without this, a grader of the skill's activation does not count, and with it any other.
        let is_activation = matches!(check.kind, CheckKind::Activation(_));
        match (counts, is_activation) {
            (true, true) if !suite.skills.is_empty() => grader["arm"] = json!("both"),
            (false, _) => grader["arm"] = json!("with-only"),
            (true, _) => {}
        }
        made.push(grader);
    }
    made
}

fn shown_turns(check: &Check) -> Option<i64> {
    let rule = PlainRule::of(check, true).filter(|rule| rule.key == "limit" && !rule.negated)?;
    let limit = rule.value.as_object().filter(|limit| limit.len() == 1)?;
    limit.get("turns")?.as_i64().filter(|turns| (1..=MOST_TURNS).contains(turns))
}

fn grader(check: &Check, case: &Case, suite: &Suite, by_score: bool, losses: &mut Losses) -> Option<Value> {
    let exact =
        first_same(check, by_score, candidates(check, by_score), |grader| read_grader(grader, &suite.skills));
    if let Some(exact) = exact {
        return Some(exact);
    }
    if let Some(created) = created_file(check, case) {
        losses.add_for_case(
            &case.id,
            "that a file counts whoever made it; here the agent must have created it",
        );
        return Some(created);
    }
    let (focus, target) = match &check.target {
        CheckTarget::Output => (Value::Null, CheckTarget::Output),
        CheckTarget::File(path) => (json!({"source": "file", "path": path.as_str()}), check.target.clone()),
        CheckTarget::WholeRun
        | CheckTarget::LastTurn
        | CheckTarget::AllText
        | CheckTarget::Files(_)
        | CheckTarget::Pictures(_) => (json!("trace"), CheckTarget::WholeRun),
    };
    let rubric = writing::rubric_for(check, losses, &case.id, ScoreScale::PassFail, &target)?;
    let mut grader = json!({"type": "llm", "criteria": rubric});
    if !focus.is_null() {
        grader["focus"] = focus;
    }
    Some(grader)
}

/// Writes a check of whether a file exists, in a workspace that is empty at first.
fn created_file(check: &Check, case: &Case) -> Option<Value> {
    let rule = PlainRule::of(check, true)?;
    let map = rule.value.as_object().filter(|_| ["file", "files"].contains(&rule.key.as_str()))?;
    let path = map.get("path")?;
    let exists = map.get("exists") != Some(&json!(false));
    let asks_more = map.keys().any(|key| key != "path" && key != "exists");
    let is_empty = case.workspace == WorkspaceSpec::default();
    (is_empty && !asks_more)
        .then(|| json!({"type": "file_exists", "path": path, "exists": exists != rule.negated}))
}

/// Gives the graders that may mean the same as a check.
fn candidates(check: &Check, by_score: bool) -> Vec<Value> {
    if let CheckKind::Activation(activation) = &check.kind {
        let names: Vec<String> = activation.skills.iter().map(|name| escape_pattern(name)).collect();
        let input = format!(r#""skill"\s*:\s*"(?:[\w-]+:)?(?:{})""#, names.join("|"));
        let mut grader = json!({"type": "tool_used", "tool": "Skill", "input_match": input});
        if activation.expect == ActivationExpectation::MustNot {
            grader["min"] = json!(0);
            grader["max"] = json!(0);
        }
        return vec![grader];
    }
    let Some(rule) = PlainRule::of(check, by_score) else { return Vec::new() };
    let made = match rule.key.as_str() {
        "tool_used" => vec![call_grader(&rule)],
        "tool_order" => vec![order_grader(&rule.value)],
        "files" => {
            let exists = rule.value.get("exists") != Some(&json!(false));
            let path = rule.text("path").map(|path| match path.strip_prefix("**/") {
                Some(name) if !exists && !name.contains('/') => name.to_owned(),
                _ => path.to_owned(),
            });
            let listed =
                rule.text("matches").and_then(|pattern| regex_grader(pattern, !exists, json!("files")));
            vec![path.map(|path| json!({"type": "file_exists", "path": path, "exists": exists})), listed]
        }
        "file" => {
            let target = json!({"source": "file", "path": rule.value["path"]});
            let text = rule.only_text("contains").map(escape_pattern);
            let pattern = text.or_else(|| rule.text("matches").map(str::to_owned));
            vec![pattern.and_then(|pattern| regex_grader(&pattern, false, target))]
        }
        "all" | "any" => joined_graders(&rule, check),
        _ => vec![
            text_pattern(&rule).and_then(|pattern| regex_grader(&pattern, rule.negated, text_target(check)?)),
        ],
    };
    made.into_iter().flatten().collect()
}

/// Gives the pattern of a rule about a text.
fn text_pattern(rule: &PlainRule) -> Option<String> {
    match rule.needle() {
        Some((text, true)) => Some(format!("(?i){}", escape_pattern(text))),
        Some((text, false)) => Some(escape_pattern(text)),
        None => rule.value.as_str().filter(|_| rule.key == "regex").map(str::to_owned),
    }
}

fn text_target(check: &Check) -> Option<Value> {
    match &check.target {
        CheckTarget::Output => Some(json!("last_message")),
        CheckTarget::WholeRun => Some(json!("trace")),
        CheckTarget::File(path) => Some(json!({"source": "file", "path": path.as_str()})),
        CheckTarget::LastTurn | CheckTarget::AllText | CheckTarget::Files(_) | CheckTarget::Pictures(_) => {
            None
        }
    }
}

fn regex_grader(pattern: &str, negated: bool, target: Value) -> Option<Value> {
    let (pattern, flags) = foreign_pattern(pattern, PatternLanguage::JavaScript)?;
    let mut grader = json!({"type": "regex", "pattern": pattern});
    if !flags.is_empty() {
        grader["flags"] = json!(flags);
    }
    if negated {
        grader["match"] = json!("not_contains");
    }
    if target != json!("last_message") {
        grader["target"] = target;
    }
    Some(grader)
}

fn call_grader(rule: &PlainRule) -> Option<Value> {
    let mut grader = json!({"type": "tool_used", "tool": tool_name(rule.text("name")?)});
    if let Some(input) = rule.text("input") {
        grader["input_match"] = json!(foreign_pattern(input, PatternLanguage::JavaScript)?.0);
    }
    let (min, max) = match rule.negated {
        true => (Some(&Value::Null), Some(&Value::Null)),
        false => (rule.value.get("min"), rule.value.get("max")),
    };
    for (key, number) in [("min", min), ("max", max)] {
        if let Some(number) = number {
            grader[key] = if number.is_null() { json!(0) } else { number.clone() };
        }
    }
    Some(grader)
}

/// Gives the name of a tool of Claude Code for its role.
fn tool_name(role: &str) -> &str {
    ROLES.iter().find(|(_, known)| *known == role).map_or(role, |(name, _)| name)
}

fn order_grader(value: &Value) -> Option<Value> {
    let [before, after] = value.get("calls")?.as_array()?.as_slice() else { return None };
    let call = |call: &Value| match call.as_str() {
        Some(name) => Some(json!(tool_name(name))),
        None => {
            let mut written = json!({"tool": tool_name(call.get("name")?.as_str()?)});
            if let Some(input) = call.get("input").and_then(Value::as_str) {
                written["input_match"] = json!(foreign_pattern(input, PatternLanguage::JavaScript)?.0);
            }
            Some(written)
        }
    };
    Some(json!({"type": "tool_order", "before": call(before)?, "after": call(after)?}))
}

/// Gives graders for a file that is there without a text in it, and for a pattern that matches so often.
fn joined_graders(rule: &PlainRule, check: &Check) -> Vec<Option<Value>> {
    let list = if rule.key == "any" { rule.value[0].get("all").unwrap_or(&rule.value) } else { &rule.value };
    let content = &list[1]["not"]["file"];
    let text = content["contains"][0].as_str().map(escape_pattern);
    let pattern = text.or_else(|| content["matches"].as_str().map(str::to_owned));
    let file = json!({"source": "file", "path": content["path"]});
    let counted = &list[0]["min_count"];
    let count = counted["count"].as_u64();
    let counted = counted["pattern"].as_str().zip(count).and_then(|(pattern, count)| {
        let mut grader = regex_grader(pattern, false, text_target(check)?)?;
        grader["match"] = json!(format!("count:{count}"));
        Some(grader)
    });
    vec![pattern.and_then(|pattern| regex_grader(&pattern, true, file)), counted]
}

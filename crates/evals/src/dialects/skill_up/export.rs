//! Writes a suite as skill-up's `eval.yaml` with a file for each case.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::native::relative_path;
use super::super::reading::graders::Unsupported;
use super::super::writing::{
    self, FormatCapabilities, FormatFeature, Losses, PatternLanguage, PlainRule, first_same, foreign_pattern,
};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::{ENGINES, read_expect, read_judge};
use practicum_core::model::{
    Arm, Case, CasePrompt, Check, CheckNeed, CheckTarget, RunPolicy, ScoreScale, Span, Suite, WorkspaceBase,
};
use practicum_core::tree::{SourceSyntax, TreeNode};

/// Writes a suite. What skill-up cannot express is listed.
pub fn export(suite: &Suite, folder: &Path) -> ExportedSuite {
    let mut losses = Losses::default();
    let suite = writing::require_counted_checks(&writing::cases_that_run(suite, &mut losses));
    let arms = writing::chosen_arms(&suite);
    let engine = engine(&suite);
    let format = FormatCapabilities {
        features: &[
            FormatFeature::Skill,
            FormatFeature::CaseTimeout,
            FormatFeature::Note,
            FormatFeature::Turns,
            FormatFeature::InlineFiles,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            agents: if engine.is_some() { suite.run_policy.agents.clone() } else { Vec::new() },
            model: engine.and(suite.run_policy.model.clone()),
            repeat: Some(1),
            arms: if is_both(&arms) || arms == [Arm::WithSkill] { arms.clone() } else { Vec::new() },
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    };
    losses.extend(Losses::from_suite(&suite, &format));
    // Paths are relative to the skill, in whose folder "evals" lies.
    let is_evals = folder.file_name().is_some_and(|name| name == "evals");
    let root = folder.parent().filter(|_| is_evals).unwrap_or(folder);
    let mut names = reading::UniqueIds::default();
    let mut files = Vec::new();
    let mut paths = Vec::new();
    for case in &suite.cases {
        let Some(document) = case_value(case, &suite, &mut losses) else { continue };
        let name = format!("cases/{}.yaml", names.make_unique(&writing::file_stem(&case.id)));
        paths.push(if is_evals { format!("evals/{name}") } else { name.clone() });
        files.push(ExportedFile { name, syntax: Some(SourceSyntax::Yaml), document });
    }
    if !files.is_empty() {
        let document = eval_value(&suite, root, engine, &paths);
        let name = "eval.yaml".to_owned();
        files.insert(0, ExportedFile { name, syntax: Some(SourceSyntax::Yaml), document });
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

fn is_both(arms: &[Arm]) -> bool {
    *arms == [Arm::WithSkill, Arm::WithoutSkill]
}

/// Gives skill-up's name of the only agent, if it runs that agent.
fn engine(suite: &Suite) -> Option<&'static str> {
    let [agent] = suite.run_policy.agents.as_slice() else { return None };
    ENGINES.iter().find(|(_, known)| known == agent).map(|(engine, _)| *engine)
}

fn eval_value(suite: &Suite, root: &Path, engine: Option<&str>, paths: &[String]) -> Value {
    let mut map = Map::from_iter([("schema_version".to_owned(), json!("v1alpha1"))]);
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    put("environment", json!({"type": "none"}));
    if let Some(path) = suite.skills.first().and_then(|skill| skill.path.as_deref()) {
        put("skills", json!([{"source": "local_path", "path": relative_path(path, root)}]));
    }
    if let Some(engine) = engine {
        let model = suite.run_policy.model.as_deref();
        put(
            "engine",
            model.map_or_else(|| json!({"name": engine}), |model| json!({"name": engine, "model": model})),
        );
    }
    let mut cases = json!({"files": paths});
    if let Some(seconds) = writing::shared_timeout(suite) {
        cases["defaults"] = json!({"timeout_seconds": seconds});
    }
    put("cases", cases);
    if is_both(&writing::chosen_arms(suite)) {
        put("benchmark", json!({"enabled": true}));
    }
    Value::Object(map)
}

fn case_value(case: &Case, suite: &Suite, losses: &mut Losses) -> Option<Value> {
    let turns = match &case.prompt {
        CasePrompt::Turns(turns) => turns.clone(),
        CasePrompt::SkillCommand { .. } => vec![writing::join_prompts(case, suite)],
    };
    let (expect, judge) = expectations(case, losses);
    let is_blank = turns.iter().any(|turn| turn.trim().is_empty());
    if is_blank || expect.is_empty() && judge.is_none() {
        let why = if is_blank { "its prompt is empty" } else { "nothing is left to expect of it" };
        losses.add_whole_case(&case.id, why);
        return None;
    }
    let input = match turns.as_slice() {
        [one] => json!({"prompt": one}),
        several => json!({"turns": several}),
    };
    let mut map = Map::from_iter([("id".to_owned(), json!(case.id))]);
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    if let Some(note) = &case.note {
        put("title", json!(note));
    }
    put("input", input);
    let files = case.workspace.inline_files.iter();
    let files: Map<String, Value> =
        files.map(|file| (file.path.as_str().to_owned(), json!(file.content))).collect();
    if !files.is_empty() {
        put("context", json!({"files": files}));
    }
    if !expect.is_empty() {
        put("expect", Value::Object(expect));
    }
    if let Some(judge) = judge {
        put("judge", judge);
    }
    if let Some(timeout) = case.timeout {
        put("constraints", json!({"timeout_seconds": writing::whole_seconds(timeout)}));
    }
    Some(Value::Object(map))
}

/// Writes the checks: what the output must contain, and one judge for the rest. If rules of a judge cannot express a
/// check, a model decides all of the rest.
fn expectations(case: &Case, losses: &mut Losses) -> (Map<String, Value>, Option<Value>) {
    let mut expect = Map::new();
    let mut rest = Vec::new();
    for check in &case.checks {
        if !add_expectation(check, &mut expect, &case.id, losses) {
            rest.push(check);
        }
    }
    let rules: Option<Vec<(&str, Value)>> = rest.iter().map(|check| judge_rule(check)).collect();
    let judge = match rules {
        Some(rules) if rules.is_empty() => None,
        Some(rules) => {
            let of = |wanted: &str| -> Vec<Value> {
                rules.iter().filter(|(key, _)| *key == wanted).map(|(_, rule)| rule.clone()).collect()
            };
            let mut judge = json!({"type": "rule_based"});
            for key in ["success", "failure"].into_iter().filter(|key| !of(key).is_empty()) {
                judge[key] = Value::Array(of(key));
            }
            Some(judge)
        }
        None => {
            criteria(case, &rest, losses).map(|criteria| json!({"type": "agent_judge", "criteria": criteria}))
        }
    };
    (expect, judge)
}

fn criteria(case: &Case, checks: &[&Check], losses: &mut Losses) -> Option<String> {
    let statements = checks.iter().filter_map(|check| {
        writing::rubric_for(check, losses, &case.id, ScoreScale::PassFail, &CheckTarget::WholeRun)
    });
    let statements: Vec<String> = statements.collect();
    match statements.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => {
            losses.add_for_case(
                &case.id,
                "that its statements are judged one by one; one judge decides all of them",
            );
            let list: Vec<String> = several.iter().map(|statement| format!("- {statement}")).collect();
            Some(format!("All of this holds:\n{}", list.join("\n")))
        }
    }
}

/// Reads `expect` or a judge of one check by itself.
fn read_back(key: &str, value: &Value) -> Option<Check> {
    let node = TreeNode::from_value(value, Span::default());
    let (mut checks, mut unsupported) = (Vec::new(), Unsupported::default());
    match key {
        "expect" => read_expect(&node, &mut checks, &mut unsupported),
        _ => read_judge(&node, &mut checks, &mut unsupported),
    }
    match checks.as_slice() {
        [only] if unsupported.into_reason().is_none() => {
            Some(Check { need: CheckNeed::Required, ..only.clone() })
        }
        _ => None,
    }
}

/// Adds a check to what the output must and must not contain. Says whether it could be added.
fn add_expectation(check: &Check, expect: &mut Map<String, Value>, case: &str, losses: &mut Losses) -> bool {
    let Some(rule) = PlainRule::of(check, false) else { return false };
    let candidate = match (rule.needle(), rule.key.as_str(), rule.negated) {
        (Some((text, _)), _, false) => ("must_contain", json!([text])),
        (Some((text, _)), _, true) => ("must_not_contain", json!([text])),
        (None, "any", false) if !expect.contains_key("must_contain_any") => {
            let texts = rule.value.as_array().map(Vec::as_slice).unwrap_or_default().iter();
            let texts: Vec<&Value> = texts.filter_map(|rule| rule.get("contains")).collect();
            ("must_contain_any", json!(texts))
        }
        (None, _, _) => return false,
    };
    let read = |(key, value): &(&str, Value)| read_back("expect", &json!({*key: value}));
    let in_output = check.target == CheckTarget::Output && candidate.0 == "must_not_contain";
    let same = first_same(check, false, [candidate.clone()], read);
    if same.is_none() && in_output {
        losses.add_for_case(case, "that upper and lower case differ in what the output must not contain");
    }
    let Some((key, value)) = same.or(Some(candidate).filter(|_| in_output)) else { return false };
    let list = expect.entry(key).or_insert_with(|| json!([]));
    if let (Some(list), Value::Array(more)) = (list.as_array_mut(), value) {
        list.extend(more);
    }
    true
}

/// Gives a rule of a judge that means the same as a check: its list, and the rule.
fn judge_rule(check: &Check) -> Option<(&'static str, Value)> {
    let rule = PlainRule::of(check, false)?;
    let list = if rule.negated { "failure" } else { "success" };
    let (join, parts) = match (rule.key.as_str(), rule.value.as_array()) {
        ("all" | "any", Some(parts)) => (rule.key.as_str(), parts.clone()),
        (key, _) => ("all", vec![json!({key: rule.value})]),
    };
    let texts: Option<Vec<&Value>> = parts
        .iter()
        .map(|part| part.get("contains").map(|needle| needle.get("text").unwrap_or(needle)))
        .collect();
    let patterns: Option<Vec<String>> = parts
        .iter()
        .map(|part| Some(foreign_pattern(part.get("regex")?.as_str()?, PatternLanguage::Go)?.0))
        .collect();
    let made = [
        texts.map(|texts| json!({"output_contains": {join: texts}})),
        patterns.map(|patterns| json!({"output_matches": {join: patterns}})),
    ];
    let read = |rule: &Value| read_back("judge", &json!({"type": "rule_based", list: [rule]}));
    first_same(check, false, made.into_iter().flatten(), read).map(|rule| (list, rule))
}

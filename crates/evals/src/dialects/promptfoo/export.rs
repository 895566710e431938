//! Writes a suite as a promptfoo config.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::reading::{self, slug};
use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite};
use practicum_core::model::{
    ActivationCheck, ActivationExpectation, ActivationSource, Arm, Case, Check, CheckKind, CheckNeed,
    CheckTarget, PassRule, RunPolicy, ScoreOf, ScoreScale, Suite, WorkspaceBase,
};
use practicum_core::tree::SourceSyntax;

/// The agents that promptfoo can run, each with its provider.
const PROVIDERS: [(&str, &str); 3] =
    [("claude", "anthropic:claude-agent-sdk"), ("codex", "openai:codex-sdk"), ("opencode", "opencode:sdk")];

pub fn export(suite: &Suite, _folder: &Path) -> ExportedSuite {
    let RunPolicy { agents, model, arms, repeat, .. } = &suite.run_policy;
    let known =
        |agents: &[String]| agents.iter().all(|agent| PROVIDERS.iter().any(|(name, _)| name == agent));
    let agents = if known(agents) { agents.clone() } else { Vec::new() };
    let arms = if arms.is_empty() { &suite.format_defaults.arms } else { arms };
    let runs_both = *arms == [Arm::WithSkill, Arm::WithoutSkill];
    let format = FormatCapabilities {
        features: &[
            FormatFeature::Description,
            FormatFeature::Skill,
            FormatFeature::SeveralSkills,
            FormatFeature::Repeat,
            FormatFeature::Note,
            FormatFeature::Advisory,
            FormatFeature::Score,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            agents: agents.clone(),
            model: model.clone().filter(|_| agents.len() == 1),
            arms: if runs_both { arms.clone() } else { vec![Arm::WithSkill] },
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    };
    let mut losses = Losses::from_suite(suite, &format);
    if suite.skills.is_empty() {
        for case in &suite.cases {
            losses.add_whole_case(&case.id, "a config without a skill is refused");
        }
        let lost_cases = losses.lost_cases();
        return ExportedSuite { files: Vec::new(), lost_cases, losses: losses.into_sentences() };
    }
    let tests: Vec<Value> =
        suite.cases.iter().filter_map(|case| export_case(case, suite, &mut losses)).collect();
    let files = if tests.is_empty() {
        Vec::new()
    } else {
        let mut map = Map::new();
        if let Some(description) = &suite.description {
            map.insert("description".to_owned(), json!(description));
        }
        map.insert("prompts".to_owned(), json!(["{{prompt}}"]));
        map.insert("providers".to_owned(), providers(suite, &agents, model.as_deref(), runs_both));
        if let Some(repeat) = repeat.or(suite.format_defaults.repeat).filter(|repeat| *repeat > 1) {
            map.insert("evaluateOptions".to_owned(), json!({"repeat": repeat}));
        }
        map.insert("tests".to_owned(), json!(tests));
        let (name, syntax) = ("promptfooconfig.yaml".to_owned(), Some(SourceSyntax::Yaml));
        vec![ExportedFile { name, syntax, document: Value::Object(map) }]
    };
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

fn providers(suite: &Suite, agents: &[String], model: Option<&str>, runs_both: bool) -> Value {
    let names: Vec<&str> = suite.skills.iter().map(|skill| skill.name.as_str()).collect();
    let ids: Vec<&str> = match agents {
        [] => vec![PROVIDERS[0].1],
        agents => PROVIDERS
            .iter()
            .filter(|(name, _)| agents.iter().any(|agent| agent == name))
            .map(|(_, id)| *id)
            .collect(),
    };
    let mut providers = Vec::new();
    for id in &ids {
        let mut config = json!({"skills": names, "setting_sources": ["project"]});
        let mut bare = json!({"skills": [], "setting_sources": []});
        if let Some(model) = model.filter(|_| ids.len() == 1) {
            config["model"] = json!(model);
            bare["model"] = json!(model);
        }
        providers.push(json!({"id": id, "label": "with-skill", "config": config}));
        if runs_both {
            providers.push(json!({"id": id, "label": "without-skill", "config": bare}));
        }
    }
    Value::Array(providers)
}

fn export_case(case: &Case, suite: &Suite, losses: &mut Losses) -> Option<Value> {
    let prompt = writing::join_prompts(case, suite);
    if is_template(&prompt) {
        losses.add_whole_case(&case.id, "its prompt has signs that promptfoo takes for a template");
        return None;
    }
    let threshold = match case.pass_rule {
        PassRule::Score(rule) => {
            if rule.of == ScoreOf::MeanOfTrials {
                losses.add_for_case(&case.id, "that the mean of its trials decides, and not each");
            }
            if case.checks.iter().any(|check| check.need == CheckNeed::Required) {
                losses.add_for_case(&case.id, "that some checks must pass whatever the score is");
            }
            Some(rule.at_least.get())
        }
        PassRule::EveryRequiredCheck
        | PassRule::ActivationRate(_)
        | PassRule::JudgedThresholds { .. }
        | PassRule::CountOnly => None,
    };
    let mut assertions = Vec::new();
    for check in &case.checks {
        let Some(mut assertion) = assertion(check, &case.id, losses) else { continue };
        let weight = match (threshold.is_some(), check.need) {
            (true, _) => check.weight.get(),
            (false, CheckNeed::Advisory) => 0.0,
            (false, CheckNeed::Required) => 1.0,
        };
        if weight != 1.0 {
            assertion.insert("weight".to_owned(), json!(weight));
        }
        if let Some(name) = &check.name {
            assertion.insert("metric".to_owned(), json!(name));
        }
        assertions.push(Value::Object(assertion));
    }
    if assertions.is_empty() {
        losses.add_whole_case(&case.id, "nothing is left to expect of it");
        return None;
    }
    let description = case.note.as_deref().filter(|note| slug(note, "test") == case.id);
    if description.is_none() {
        if case.note.is_some() {
            losses.add_for_case(&case.id, "the note");
        }
        if slug(&case.id, "test") != case.id {
            losses.add_for_case(&case.id, "its id, which is made from its description here");
        }
    }
    let mut test = json!({
        "description": description.unwrap_or(&case.id),
        "vars": {"prompt": prompt},
        "assert": assertions,
    });
    if let Some(threshold) = threshold {
        test["threshold"] = json!(threshold);
    }
    Some(test)
}

/// Says whether promptfoo would take a text for a template.
fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|sign| text.contains(sign))
}

/// Writes a check as an assertion. What no assertion can express is judged in words, or lost; both are recorded.
fn assertion(check: &Check, case: &str, losses: &mut Losses) -> Option<Map<String, Value>> {
    if let CheckKind::Activation(activation) = &check.kind {
        let made = activation_assertion(activation);
        if made.is_none() {
            losses.add_for_case(case, "its activation");
        }
        return made;
    }
    if let CheckKind::Rule(rule) = &check.kind
        && (check.target == CheckTarget::Output || rule.key() == "limit")
        && let Some((kind, value)) = rule_assertion(rule.key(), &rule.value())
        && !is_template(&value.to_string())
    {
        let mut map = Map::from_iter([("type".to_owned(), json!(kind))]);
        let key = if matches!(kind.as_str(), "cost" | "latency") { "threshold" } else { "value" };
        if !value.is_null() {
            map.insert(key.to_owned(), value);
        }
        return Some(map);
    }
    let statement = writing::judge_statement(check, losses, case, ScoreScale::PassFail)?;
    if check.target != CheckTarget::Output {
        losses.add_for_case(case, "that a judge sees more than the last message");
    }
    if is_template(&statement) {
        losses.add_for_case(case, "a statement with signs that promptfoo takes for a template");
        return None;
    }
    Some(Map::from_iter([("type".to_owned(), json!("llm-rubric")), ("value".to_owned(), json!(statement))]))
}

fn activation_assertion(activation: &ActivationCheck) -> Option<Map<String, Value>> {
    let ActivationCheck { skills, expect, source } = activation;
    let kind = match (expect, source, skills.len()) {
        (ActivationExpectation::Must, ActivationSource::Observed, 1) => "skill-used",
        (ActivationExpectation::MustNot, ActivationSource::Observed, 1..) => "not-skill-used",
        // A list of skills means all of them there, and one of them here.
        (_, _, _) => return None,
    };
    let value = if skills.len() == 1 { json!(skills[0]) } else { json!(skills) };
    Some(Map::from_iter([("type".to_owned(), json!(kind)), ("value".to_owned(), value)]))
}

/// Gives the assertion with the meaning of a rule; `None` if there is none.
fn rule_assertion(key: &str, value: &Value) -> Option<(String, Value)> {
    let plain = |kind: &str, value: Value| Some((kind.to_owned(), value));
    match key {
        "not" => {
            let (key, value) = value
                .as_object()?
                .iter()
                .next()
                .filter(|_| value.as_object().is_some_and(|map| map.len() == 1))?;
            let (kind, value) = rule_assertion(key, value)?;
            let negated = match kind.strip_prefix("not-") {
                Some(kind) => kind.to_owned(),
                None => format!("not-{kind}"),
            };
            // promptfoo takes more for JSON than there is, so the opposites differ.
            (kind != "contains-json").then_some((negated, value))
        }
        "contains" | "not_contains" => {
            let (kind, text) = needle(value)?;
            let prefix = if key == "contains" { "" } else { "not-" };
            plain(&format!("{prefix}{kind}"), json!(text))
        }
        // One rule alone is joined with nothing; an importer writes it so that it has no partial score.
        "any" if value.as_array().is_some_and(|rules| rules.len() == 1 && rules[0].get("all").is_some()) => {
            rule_assertion("all", &value[0]["all"])
        }
        "all" | "any" => {
            let parts: Option<Vec<(&str, &str)>> =
                value.as_array()?.iter().map(|rule| needle(rule.get("contains")?)).collect();
            let parts = parts?;
            let kind = parts.first()?.0;
            let same = parts.iter().all(|(other, _)| *other == kind);
            let texts: Vec<&str> = parts.iter().map(|(_, text)| *text).collect();
            same.then(|| (format!("{kind}-{key}"), json!(texts)))
        }
        "regex" => regex_assertion(value.as_str()?),
        "json" => match value.as_object()? {
            map if map.get("path") != Some(&json!("$")) => None,
            map => match (map.len(), map.get("extent").and_then(Value::as_str), map.get("equals")) {
                (2, Some("whole"), _) => plain("is-json", Value::Null),
                (2, Some("part"), _) => plain("contains-json", Value::Null),
                (3, Some("whole"), Some(equals @ (Value::Array(_) | Value::Object(_)))) => {
                    plain("equals", equals.clone())
                }
                (_, _, _) => None,
            },
        },
        "limit" => match value
            .as_object()?
            .iter()
            .next()
            .filter(|_| value.as_object().is_some_and(|map| map.len() == 1))?
        {
            (measure, number) if measure == "cost_usd" => plain("cost", number.clone()),
            (measure, number) if measure == "seconds" => plain("latency", json!(number.as_f64()? * 1000.0)),
            (_, _) => None,
        },
        _ => None,
    }
}

/// Gives the type and the text of a needle. An empty text is no assertion.
fn needle(value: &Value) -> Option<(&'static str, &str)> {
    let (kind, text) = match value {
        Value::String(text) => ("contains", text.as_str()),
        Value::Object(map) => match map.get("ignore_case") {
            Some(Value::Bool(true)) => ("icontains", map.get("text")?.as_str()?),
            Some(_) | None => ("contains", map.get("text")?.as_str()?),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    (!text.is_empty()).then_some((kind, text))
}

/// Writes a pattern of Python's syntax as an assertion, if JavaScript means the same by it.
fn regex_assertion(pattern: &str) -> Option<(String, Value)> {
    if let Some(text) = pattern.strip_prefix(r"\A") {
        return match text.strip_suffix(r"\Z") {
            Some("") => Some(("equals".to_owned(), json!(""))),
            Some(text) => Some(("equals".to_owned(), json!(writing::literal_text(text)?))),
            None => Some(("starts-with".to_owned(), json!(writing::literal_text(text)?))),
        };
    }
    // At its end, a pattern of an importer has \Z where JavaScript has $.
    let body = pattern.strip_suffix(r"\Z").unwrap_or(pattern);
    let differs = ["(?", r"\A", r"\Z", "$", "{{", "{%", "{#"].iter().any(|sign| body.contains(sign));
    let written = if body.len() < pattern.len() { format!("{body}$") } else { body.to_owned() };
    (!differs && !written.is_empty()).then(|| ("regex".to_owned(), json!(written)))
}

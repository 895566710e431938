//! Writes a suite's activation cases as a skill-test suite.

use serde_json::{Map, Value, json};

use super::super::reading::{self, FORBIDDEN_SKILLS_KEY, UniqueIds, slug};
use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite};
use super::{BEHAVIOUR_KEY, DEFAULT_RUNS, MOST_RUNS, NEGATIVE_GROUP, SKILLS_META_KEY, TRUTH_KEY};
use practicum_core::model::{
    ActivationCheck, ActivationExpectation, ActivationSource, Case, CasePrompt, CheckKind, RunPolicy, Suite,
    WorkspaceBase,
};
use practicum_core::tree::SourceSyntax;

pub fn export_suite(suite: &Suite) -> ExportedSuite {
    let format = FormatCapabilities {
        features: &[
            FormatFeature::Description,
            FormatFeature::Skill,
            FormatFeature::SeveralSkills,
            FormatFeature::Rivals,
            FormatFeature::SuiteMeta,
            FormatFeature::CaseMeta,
            FormatFeature::Repeat,
            FormatFeature::Group,
            FormatFeature::Note,
            FormatFeature::Context,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy { repeat: Some(DEFAULT_RUNS), ..RunPolicy::default() },
        gates: Vec::new(),
    };
    let mut losses = Losses::from_suite(suite, &format);
    let mut by_skill: Vec<(String, Vec<Value>)> =
        suite.skills.iter().map(|skill| (skill.name.clone(), Vec::new())).collect();
    let mut negative = Vec::new();
    for case in &suite.cases {
        let Some(place) = export_case(case, suite, &mut losses) else {
            losses.add_whole_case(&case.id, "it is not about one skill being activated or not");
            continue;
        };
        match place {
            ExportedCase::Negative(value) => negative.push(value),
            ExportedCase::Skill(name, value) => match by_skill.iter_mut().find(|(known, _)| *known == name) {
                Some((_, cases)) => cases.push(value),
                None => by_skill.push((name, vec![value])),
            },
        }
    }
    let any =
        !by_skill.is_empty() && (!negative.is_empty() || by_skill.iter().any(|(_, cases)| !cases.is_empty()));
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(if suite.name.trim().is_empty() { "suite" } else { &suite.name }));
    if let Some(description) = &suite.description {
        map.insert("description".to_owned(), json!(description));
    }
    let runs = suite.run_policy.repeat.or(suite.format_defaults.repeat.filter(|runs| *runs != DEFAULT_RUNS));
    if let Some(runs) = runs {
        if runs > MOST_RUNS {
            losses.add_for_suite(format!("the setting \"repeat\" beyond {MOST_RUNS}"));
        }
        map.insert("runs_per_case".to_owned(), json!(runs.clamp(1, MOST_RUNS)));
    }
    let skills = by_skill.into_iter().map(|(name, cases)| skill_value(&name, cases, suite, &mut losses));
    let skills: Vec<Value> = skills.collect();
    map.insert("skills".to_owned(), Value::Array(skills));
    if !negative.is_empty() {
        map.insert("negative_cases".to_owned(), Value::Array(negative));
    }
    let mut meta = suite.meta.clone();
    meta.remove(SKILLS_META_KEY);
    for key in writing::add_meta(&mut map, &meta) {
        losses.add_for_suite(format!("the key \"{key}\", which means something else here"));
    }
    let file = ExportedFile {
        name: format!("{}.json", slug(&suite.name, "suite")),
        syntax: Some(SourceSyntax::Json),
        document: Value::Object(map),
    };
    ExportedSuite {
        files: any.then_some(file).into_iter().collect(),
        lost_cases: losses.lost_cases(),
        losses: losses.into_sentences(),
    }
}

fn skill_value(name: &str, cases: Vec<Value>, suite: &Suite, losses: &mut Losses) -> Value {
    let plugin = suite.skills.iter().find(|skill| skill.name == name).and_then(|skill| skill.plugin.clone());
    let plugin = plugin.unwrap_or_else(|| {
        losses.add_for_suite(format!("that \"{name}\" is in no plugin; here it gets one of its own name"));
        name.to_owned()
    });
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(name));
    map.insert("plugin".to_owned(), json!(plugin));
    map.insert("test_cases".to_owned(), Value::Array(cases));
    let more = suite.meta.get(SKILLS_META_KEY).and_then(|skills| skills.get(name)?.as_object());
    for (key, value) in more.into_iter().flatten() {
        map.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(map)
}

/// The part of the file that a case goes to.
enum ExportedCase {
    Skill(String, Value),
    Negative(Value),
}

/// Gives the statements of a case that this format can express for a judge, if their ids are the ones that it
/// would give them.
fn behaviour(case: &Case) -> Vec<&str> {
    let mut ids = UniqueIds::default();
    let mut statements = Vec::new();
    for check in &case.checks {
        if let CheckKind::Judged(judged) = &check.kind {
            let id = ids.make_unique(&slug(&judged.statement, "behaviour"));
            if *check == reading::judged_check(id, &judged.statement) {
                statements.push(judged.statement.as_str());
            }
        }
    }
    statements
}

fn export_case(case: &Case, suite: &Suite, losses: &mut Losses) -> Option<ExportedCase> {
    let mut activations = case.checks.iter().filter_map(|check| match &check.kind {
        CheckKind::Activation(activation) => Some(activation),
        CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    });
    let ActivationCheck { skills, expect, source: by } = activations.next()?;
    let behaviour = behaviour(case);
    if case.checks.len() > 1 + behaviour.len() {
        losses.add_for_case(&case.id, "every check but its activation and what is judged of the whole run");
    }
    if *by == ActivationSource::Predicted {
        losses.add_for_case(&case.id, "that its activation is predicted, not observed");
    }
    let names: Vec<&str> = suite.skills.iter().map(|skill| skill.name.as_str()).collect();
    let is_of_all = |several: &[String]| several.iter().map(String::as_str).eq(names.iter().copied());
    let is_of_more = |several: &[String]| names.iter().all(|name| several.iter().any(|known| known == name));
    let (label, negative) = match (expect, skills.as_slice()) {
        (ActivationExpectation::MustNot, several) if several.len() != 1 => {
            if !is_of_more(several) {
                losses.add_for_case(
                    &case.id,
                    "which skills must not be activated: in skill-test it is all of them",
                );
            }
            ("should_not_activate", true)
        }
        (ActivationExpectation::MustNot, _) => {
            ("should_not_activate", case.group.as_deref() == Some(NEGATIVE_GROUP))
        }
        (ActivationExpectation::Must, [_]) => ("must_activate", false),
        (ActivationExpectation::Either, [_]) => ("acceptable", false),
        (ActivationExpectation::Must | ActivationExpectation::Either, _) => return None,
    };
    let skill = if negative { None } else { skills.first() };
    let mut map = Map::new();
    let prompt = writing::join_prompts(case, suite);
    let group = skill.map_or(NEGATIVE_GROUP, String::as_str);
    if case.group.as_deref().is_some_and(|own| own != group) {
        losses.add_for_case(&case.id, "its group");
    }
    if case.id != format!("{group}/{}", slug(&prompt, "case"))
        || matches!(case.prompt, CasePrompt::SkillCommand { .. })
    {
        map.insert("id".to_owned(), json!(case.id));
    }
    map.insert("prompt".to_owned(), json!(prompt));
    map.insert("expectation".to_owned(), json!(label));
    if negative && is_of_more(skills) && !is_of_all(skills) {
        map.insert(FORBIDDEN_SKILLS_KEY.to_owned(), json!(skills));
    }
    if !behaviour.is_empty() {
        map.insert(BEHAVIOUR_KEY.to_owned(), json!(behaviour));
    }
    if let Some(context) = &case.context {
        map.insert(TRUTH_KEY.to_owned(), json!(context));
    }
    if let Some(note) = &case.note {
        map.insert("rationale".to_owned(), json!(note));
    }
    for key in writing::add_meta(&mut map, &case.meta) {
        losses.add_for_case(&case.id, format!("the key \"{key}\", which means something else here"));
    }
    let value = Value::Object(map);
    Some(match skill {
        Some(skill) => ExportedCase::Skill(skill.clone(), value),
        None => ExportedCase::Negative(value),
    })
}

//! A suite's activation cases as a skill-test suite.

use serde_json::{Map, Value, json};

use super::super::reading::{self, FORBIDDEN, Ids, slug};
use super::super::writing::{self, Losses, Said, Says};
use super::super::{Raised, RaisedFile};
use super::{BEHAVIOUR, MOST_RUNS, NEGATIVE, RUNS, SKILLS, TRUTH};
use practicum_core::model::{Activation, Base, By, Case, CheckKind, Expect, RunPolicy, Stimulus, Suite};
use practicum_core::tree::Syntax;

pub fn raise(suite: &Suite) -> Raised {
    let format = Said {
        says: &[
            Says::Description,
            Says::Skill,
            Says::SeveralSkills,
            Says::Rivals,
            Says::SuiteMeta,
            Says::CaseMeta,
            Says::Repeat,
            Says::Group,
            Says::Note,
            Says::Context,
        ],
        base: Base::Empty,
        defaults: RunPolicy { repeat: Some(RUNS), ..RunPolicy::default() },
        gates: Vec::new(),
    };
    let mut losses = Losses::of(suite, &format);
    let mut by_skill: Vec<(String, Vec<Value>)> =
        suite.skills.iter().map(|skill| (skill.name.clone(), Vec::new())).collect();
    let mut negative = Vec::new();
    for case in &suite.cases {
        let Some(place) = place(case, suite, &mut losses) else {
            losses.whole_case(&case.id, "it is not about one skill being activated or not");
            continue;
        };
        match place {
            Filed::Negative(value) => negative.push(value),
            Filed::Skill(name, value) => match by_skill.iter_mut().find(|(known, _)| *known == name) {
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
    let runs = suite.run.repeat.or(suite.defaults.repeat.filter(|runs| *runs != RUNS));
    if let Some(runs) = runs {
        if runs > MOST_RUNS {
            losses.suite(format!("the setting \"repeat\" beyond {MOST_RUNS}"));
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
    meta.remove(SKILLS);
    for key in writing::keep_meta(&mut map, &meta) {
        losses.suite(format!("the key \"{key}\", which means something else here"));
    }
    let file = RaisedFile {
        name: format!("{}.json", slug(&suite.name, "suite")),
        syntax: Syntax::Json,
        document: Value::Object(map),
    };
    Raised {
        files: any.then_some(file).into_iter().collect(),
        lost_cases: losses.lost_cases(),
        losses: losses.into_sentences(),
    }
}

fn skill_value(name: &str, cases: Vec<Value>, suite: &Suite, losses: &mut Losses) -> Value {
    let plugin = suite.skills.iter().find(|skill| skill.name == name).and_then(|skill| skill.plugin.clone());
    let plugin = plugin.unwrap_or_else(|| {
        losses.suite(format!("that \"{name}\" is in no plugin; here it gets one of its own name"));
        name.to_owned()
    });
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(name));
    map.insert("plugin".to_owned(), json!(plugin));
    map.insert("test_cases".to_owned(), Value::Array(cases));
    let more = suite.meta.get(SKILLS).and_then(|skills| skills.get(name)?.as_object());
    for (key, value) in more.into_iter().flatten() {
        map.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(map)
}

/// Under which part of the file a case goes.
enum Filed {
    Skill(String, Value),
    Negative(Value),
}

/// The statements of a case that are judged as this format would have it, by ids that it would give them.
fn behaviour(case: &Case) -> Vec<&str> {
    let mut ids = Ids::default();
    let mut statements = Vec::new();
    for check in &case.checks {
        if let CheckKind::Judged(judged) = &check.kind {
            let id = ids.derive(&slug(&judged.statement, "behaviour"));
            if *check == reading::judged(id, &judged.statement) {
                statements.push(judged.statement.as_str());
            }
        }
    }
    statements
}

fn place(case: &Case, suite: &Suite, losses: &mut Losses) -> Option<Filed> {
    let mut activations = case.checks.iter().filter_map(|check| match &check.kind {
        CheckKind::Activation(activation) => Some(activation),
        CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    });
    let Activation { skills, expect, by } = activations.next()?;
    let behaviour = behaviour(case);
    if case.checks.len() > 1 + behaviour.len() {
        losses.case(&case.id, "every check but its activation and what is judged of the whole run");
    }
    if *by == By::Predicted {
        losses.case(&case.id, "that its activation is predicted, not observed");
    }
    let names: Vec<&str> = suite.skills.iter().map(|skill| skill.name.as_str()).collect();
    let is_of_all = |several: &[String]| several.iter().map(String::as_str).eq(names.iter().copied());
    let is_of_more = |several: &[String]| names.iter().all(|name| several.iter().any(|known| known == name));
    let (label, negative) = match (expect, skills.as_slice()) {
        (Expect::MustNot, several) if several.len() != 1 => {
            if !is_of_more(several) {
                losses.case(&case.id, "which skills must not fire: here it is all of them");
            }
            ("should_not_activate", true)
        }
        (Expect::MustNot, _) => ("should_not_activate", case.group.as_deref() == Some(NEGATIVE)),
        (Expect::Must, [_]) => ("must_activate", false),
        (Expect::Either, [_]) => ("acceptable", false),
        (Expect::Must | Expect::Either, _) => return None,
    };
    let skill = if negative { None } else { skills.first() };
    let mut map = Map::new();
    let prompt = writing::one_prompt(case, suite);
    let group = skill.map_or(NEGATIVE, String::as_str);
    if case.group.as_deref().is_some_and(|own| own != group) {
        losses.case(&case.id, "its group");
    }
    if case.id != format!("{group}/{}", slug(&prompt, "case"))
        || matches!(case.stimulus, Stimulus::SkillCommand { .. })
    {
        map.insert("id".to_owned(), json!(case.id));
    }
    map.insert("prompt".to_owned(), json!(prompt));
    map.insert("expectation".to_owned(), json!(label));
    if negative && is_of_more(skills) && !is_of_all(skills) {
        map.insert(FORBIDDEN.to_owned(), json!(skills));
    }
    if !behaviour.is_empty() {
        map.insert(BEHAVIOUR.to_owned(), json!(behaviour));
    }
    if let Some(context) = &case.context {
        map.insert(TRUTH.to_owned(), json!(context));
    }
    if let Some(note) = &case.note {
        map.insert("rationale".to_owned(), json!(note));
    }
    for key in writing::keep_meta(&mut map, &case.meta) {
        losses.case(&case.id, format!("the key \"{key}\", which means something else here"));
    }
    let value = Value::Object(map);
    Some(match skill {
        Some(skill) => Filed::Skill(skill.clone(), value),
        None => Filed::Negative(value),
    })
}

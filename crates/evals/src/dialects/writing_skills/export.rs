//! Writes a suite as writing-skills' `evals.json` with criteria.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::writing::{self, ABOUT_SKILL_LOSS, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::skill_statements;
use practicum_core::model::{Case, CheckNeed, RunPolicy, ScoreScale, Suite, WorkspaceBase};
use practicum_core::tree::SourceSyntax;

pub fn export_suite(suite: &Suite, folder: &Path) -> ExportedSuite {
    let suite = &writing::require_counted_checks(suite);
    let format = FormatCapabilities {
        features: &[
            FormatFeature::Skill,
            FormatFeature::AboutSkill,
            FormatFeature::SuiteMeta,
            FormatFeature::CaseMeta,
            FormatFeature::Files,
            FormatFeature::Advisory,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy { repeat: Some(1), ..RunPolicy::default() },
        gates: reading::all_cases_pass(),
    };
    let mut losses = Losses::from_suite(suite, &format);
    if !suite.skill_statements.is_empty() && suite.skill_statements != skill_statements() {
        losses.add_for_suite(ABOUT_SKILL_LOSS);
    }
    let cases: Vec<Value> =
        suite.cases.iter().filter_map(|case| case_value(case, suite, folder, &mut losses)).collect();
    let mut meta = suite.meta.clone();
    // Only a version that came from a file of this format is a version of the format.
    let own = suite.origin.dialect == super::NAME;
    let version = meta.remove("version").filter(|_| own).unwrap_or_else(|| json!("1.0"));
    let mut map = Map::new();
    map.insert("version".to_owned(), version);
    if let Some(skill) = suite.skills.first() {
        map.insert("skill".to_owned(), json!(writing::skill_path(skill, folder)));
    }
    let any = !cases.is_empty();
    map.insert("cases".to_owned(), Value::Array(cases));
    for key in writing::add_meta(&mut map, &meta) {
        losses.add_for_suite(format!("the key \"{key}\", which means something else here"));
    }
    let file = ExportedFile {
        name: "evals.json".to_owned(),
        syntax: Some(SourceSyntax::Json),
        document: Value::Object(map),
    };
    ExportedSuite {
        files: any.then_some(file).into_iter().collect(),
        lost_cases: losses.lost_cases(),
        losses: losses.into_sentences(),
    }
}

fn case_value(case: &Case, suite: &Suite, folder: &Path, losses: &mut Losses) -> Option<Value> {
    let more = case.meta.get("expectations").and_then(Value::as_object);
    let mut expectations = Vec::new();
    let (should_trigger, checks) = writing::split_activation(case, suite);
    for check in checks {
        let Some(description) = writing::judge_statement(check, losses, &case.id, ScoreScale::OneToFive)
        else {
            continue;
        };
        let mut map = Map::new();
        let own = suite.origin.dialect == super::NAME;
        if check.name.is_some() && !own {
            losses.add_for_case(&case.id, format!("the name of check \"{}\"", check.id));
        }
        let label = check.name.as_ref().filter(|_| own).unwrap_or(&check.id);
        if label.trim().is_empty() {
            losses.add_for_case(&case.id, "an id that is blank; here it is made from the check's words");
            map.insert("criterion".to_owned(), json!(reading::slug(&description, "criterion")));
        } else {
            map.insert("criterion".to_owned(), json!(label));
        }
        map.insert("description".to_owned(), json!(description));
        map.insert("required".to_owned(), json!(check.need == CheckNeed::Required));
        let extra = more.and_then(|more| more.get(&check.id)).and_then(Value::as_object);
        for (key, value) in extra.into_iter().flatten() {
            map.entry(key.clone()).or_insert_with(|| value.clone());
        }
        expectations.push(map);
    }
    let required = expectations.iter().any(|expectation| expectation.get("required") == Some(&json!(true)));
    if !required && should_trigger.is_none() {
        losses.add_whole_case(&case.id, "nothing is left that it requires");
        return None;
    }
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(case.id));
    map.insert("prompt".to_owned(), json!(writing::join_prompts(case, suite)));
    map.insert("files".to_owned(), Value::Array(writing::declared_files(case, folder, losses)));
    if let Some(should) = should_trigger {
        map.insert("should_trigger".to_owned(), json!(should));
    }
    map.insert("expectations".to_owned(), expectations.into_iter().map(Value::Object).collect());
    let mut meta = case.meta.clone();
    meta.remove("expectations");
    for key in writing::add_meta(&mut map, &meta) {
        losses.add_for_case(&case.id, format!("the key \"{key}\", which means something else here"));
    }
    Some(Value::Object(map))
}

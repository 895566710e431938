//! A suite as `evals.json`, and its trigger cases as `triggers.json` beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::native::relative;
use super::super::reading::{self, Ids, slug};
use super::super::writing::{self, Losses, Said, Says};
use super::super::{Raised, RaisedFile};
use super::TIMEOUT;
use practicum_core::model::{Base, Case, Ratio, RelPath, RunPolicy, Scale, Suite};
use practicum_core::tree::Syntax;

pub fn raise(suite: &Suite, folder: &Path) -> Raised {
    let (triggers, evals): (Vec<Case>, Vec<Case>) =
        suite.cases.iter().cloned().partition(|case| writing::trigger(case, suite).is_some());
    let mut losses = Losses::default();
    let mut files = Vec::new();
    let mut triggers = Suite { cases: triggers, ..suite.clone() };
    if !evals.is_empty() {
        let evals = Suite { cases: evals, ..suite.clone() };
        losses.extend(Losses::of(&evals, &as_evals()));
        files.extend(evals_file(&evals, folder, &mut losses));
        if !files.is_empty() {
            // A list has no place for these, and now they stand in the file beside it.
            triggers.description = None;
            triggers.meta.clear();
        }
    }
    if !triggers.cases.is_empty() {
        losses.extend(Losses::of(&triggers, &as_triggers()));
        files.push(triggers_file(&triggers, folder, &mut losses));
    }
    Raised { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

/// Notes may stand anywhere under a key that begins with `_`, so none is lost.
fn as_evals() -> Said<'static> {
    Said {
        says: &[
            Says::Description,
            Says::Skill,
            Says::SuiteMeta,
            Says::CaseMeta,
            Says::CaseTimeout,
            Says::Group,
            Says::Note,
            Says::Context,
            Says::Overlays,
            Says::Files,
        ],
        base: Base::Project,
        defaults: RunPolicy { repeat: Some(1), timeout: Some(TIMEOUT), ..RunPolicy::default() },
        gates: reading::all_cases_pass(),
    }
}

fn as_triggers() -> Said<'static> {
    Said {
        says: &[
            Says::Skill,
            Says::CaseMeta,
            Says::Group,
            Says::Note,
            Says::Overlays,
            Says::Alias,
            Says::FireRate,
        ],
        base: Base::Empty,
        defaults: RunPolicy {
            repeat: Some(reading::TRIGGER_RUNS),
            timeout: Some(TIMEOUT),
            trigger_threshold: Ratio::new(reading::TRIGGER_THRESHOLD),
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    }
}

fn evals_file(suite: &Suite, folder: &Path, losses: &mut Losses) -> Option<RaisedFile> {
    let limit = suite.run.timeout.or(suite.defaults.timeout).filter(|limit| *limit != TIMEOUT);
    let evals: Vec<Value> =
        suite.cases.iter().filter_map(|case| eval(case, suite, limit, folder, losses)).collect();
    let mut map = Map::new();
    if let Some(skill) = suite.skills.first() {
        map.insert("skill_name".to_owned(), json!(skill.name));
    }
    if let Some(description) = &suite.description {
        map.insert("_design_notes".to_owned(), json!(description));
    }
    let any = !evals.is_empty();
    map.insert("evals".to_owned(), Value::Array(evals));
    for key in writing::keep_meta(&mut map, &suite.meta) {
        losses.suite(format!("the key \"{key}\", which means something else here"));
    }
    any.then(|| file("evals.json", Value::Object(map)))
}

fn file(name: &str, document: Value) -> RaisedFile {
    RaisedFile { name: name.to_owned(), syntax: Syntax::Json, document }
}

fn eval(
    case: &Case,
    suite: &Suite,
    limit: Option<Duration>,
    folder: &Path,
    losses: &mut Losses,
) -> Option<Value> {
    let mut statements = Vec::new();
    let mut ids = Ids::default();
    let mut renamed = false;
    let (should_trigger, checks) = writing::split_activation(case, suite);
    for check in checks {
        let Some(statement) = writing::statement(check, losses, &case.id, Scale::PassFail) else { continue };
        renamed |= check.name.is_some() || check.id != ids.derive(&slug(&statement, "expectation"));
        statements.push(statement);
    }
    if renamed {
        losses.case(&case.id, "the names of its checks, which here are made from their words");
    }
    if statements.is_empty() && should_trigger.is_none() {
        losses.whole_case(&case.id, "nothing is left to expect of it");
        return None;
    }
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(case.id));
    map.insert("prompt".to_owned(), json!(writing::one_prompt(case, suite)));
    if let Some(context) = &case.context {
        map.insert("expected_output".to_owned(), json!(context));
    }
    let files = writing::declared_files(case, folder, losses);
    if !files.is_empty() {
        map.insert("files".to_owned(), Value::Array(files));
    }
    if let Some(should) = should_trigger {
        map.insert("should_trigger".to_owned(), json!(should));
    }
    map.insert("expectations".to_owned(), json!(statements));
    if let Some(timeout) = case.timeout.or(limit) {
        if timeout.subsec_nanos() != 0 {
            losses.case(&case.id, "its time limit is rounded up to whole seconds");
        }
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() != 0);
        map.insert("timeout".to_owned(), json!(seconds));
    }
    let own = RelPath::new(&case.id).map(|id| id.under(folder).join("setup"));
    keep_notes(case, &mut map, losses);
    misplaced_overlays(case, folder, &[Some(folder.join("setup")), own], losses);
    Some(Value::Object(map))
}

fn triggers_file(suite: &Suite, folder: &Path, losses: &mut Losses) -> RaisedFile {
    let items = suite
        .cases
        .iter()
        .filter_map(|case| {
            let mut map = writing::trigger(case, suite)?;
            keep_notes(case, &mut map, losses);
            misplaced_overlays(case, folder, &[Some(folder.join("setup"))], losses);
            Some(Value::Object(map))
        })
        .collect();
    file("triggers.json", Value::Array(items))
}

/// Group, note and whatever else was kept.
fn keep_notes(case: &Case, map: &mut Map<String, Value>, losses: &mut Losses) {
    for (key, text) in [("_group", &case.group), ("_note", &case.note)] {
        if let Some(text) = text {
            map.insert(key.to_owned(), json!(text));
        }
    }
    for key in writing::keep_meta(map, &case.meta) {
        losses.case(&case.id, format!("the key \"{key}\", which means something else here"));
    }
}

/// Overlays are found by their place, so one that lies elsewhere has to be moved by hand.
fn misplaced_overlays(case: &Case, folder: &Path, places: &[Option<PathBuf>], losses: &mut Losses) {
    for overlay in &case.room.overlays {
        let found = places.iter().flatten().any(|place| place == overlay);
        if !found && !super::base_overlays(folder).contains(overlay) {
            let from = relative(overlay, folder);
            losses.case(&case.id, format!("where its overlay lies (copy {from} to a setup folder)"));
        }
    }
}

//! Writes a suite as `evals.json`, and its trigger cases as `triggers.json` beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::native::relative_path;
use super::super::reading::{self, UniqueIds, slug};
use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite};
use super::DEFAULT_TIMEOUT;
use super::{NO_NOTES, NOTES_KEY};
use practicum_core::model::{Case, Ratio, RelPath, RunPolicy, ScoreScale, Suite, WorkspaceBase};
use practicum_core::tree::SourceSyntax;

pub fn export_suite(suite: &Suite, folder: &Path) -> ExportedSuite {
    let suite = &writing::require_counted_checks(suite);
    let (triggers, evals): (Vec<Case>, Vec<Case>) =
        suite.cases.iter().cloned().partition(|case| writing::trigger_query(case, suite).is_some());
    let mut losses = Losses::default();
    let mut files = Vec::new();
    let mut triggers = Suite { cases: triggers, ..suite.clone() };
    if !evals.is_empty() {
        let evals = Suite { cases: evals, ..suite.clone() };
        losses.extend(Losses::from_suite(&evals, &evals_capabilities()));
        files.extend(evals_file(&evals, folder, &mut losses));
        if !files.is_empty() {
            // A trigger set is a list and has no place for these. The evals file beside it has them.
            triggers.description = None;
            triggers.meta.clear();
        }
    }
    if !triggers.cases.is_empty() {
        losses.extend(Losses::from_suite(&triggers, &triggers_capabilities()));
        files.push(triggers_file(&triggers, folder, &mut losses));
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

/// Gives what `evals.json` can express. Notes are allowed anywhere under a key that begins with `_`, so none is
/// lost.
fn evals_capabilities() -> FormatCapabilities<'static> {
    FormatCapabilities {
        features: &[
            FormatFeature::Description,
            FormatFeature::Skill,
            FormatFeature::SuiteMeta,
            FormatFeature::CaseMeta,
            FormatFeature::CaseTimeout,
            FormatFeature::Group,
            FormatFeature::Note,
            FormatFeature::Context,
            FormatFeature::Overlays,
            FormatFeature::Files,
        ],
        base: WorkspaceBase::Project,
        defaults: RunPolicy { repeat: Some(1), timeout: Some(DEFAULT_TIMEOUT), ..RunPolicy::default() },
        gates: reading::all_cases_pass(),
    }
}

fn triggers_capabilities() -> FormatCapabilities<'static> {
    FormatCapabilities {
        features: &[
            FormatFeature::Skill,
            FormatFeature::CaseMeta,
            FormatFeature::Group,
            FormatFeature::Note,
            FormatFeature::Overlays,
            FormatFeature::Alias,
            FormatFeature::ActivationRate,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            repeat: Some(reading::TRIGGER_RUNS),
            timeout: Some(DEFAULT_TIMEOUT),
            trigger_threshold: Ratio::new(reading::TRIGGER_THRESHOLD),
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    }
}

fn evals_file(suite: &Suite, folder: &Path, losses: &mut Losses) -> Option<ExportedFile> {
    let limit =
        suite.run_policy.timeout.or(suite.format_defaults.timeout).filter(|limit| *limit != DEFAULT_TIMEOUT);
    let evals: Vec<Value> =
        suite.cases.iter().filter_map(|case| eval_value(case, suite, limit, folder, losses)).collect();
    let mut map = Map::new();
    if let Some(skill) = suite.skills.first() {
        map.insert("skill_name".to_owned(), json!(skill.name));
    }
    // Without this key the file could not be told from one of skill-creator.
    let has_notes = suite.meta.contains_key(NOTES_KEY);
    if let Some(notes) = suite.description.as_deref().or((!has_notes).then_some(NO_NOTES)) {
        map.insert(NOTES_KEY.to_owned(), json!(notes));
    }
    let any = !evals.is_empty();
    map.insert("evals".to_owned(), Value::Array(evals));
    for key in writing::add_meta(&mut map, &suite.meta) {
        losses.add_for_suite(format!("the key \"{key}\", which means something else here"));
    }
    any.then(|| exported_file("evals.json", Value::Object(map)))
}

fn exported_file(name: &str, document: Value) -> ExportedFile {
    ExportedFile { name: name.to_owned(), syntax: Some(SourceSyntax::Json), document }
}

fn eval_value(
    case: &Case,
    suite: &Suite,
    limit: Option<Duration>,
    folder: &Path,
    losses: &mut Losses,
) -> Option<Value> {
    let mut statements = Vec::new();
    let mut ids = UniqueIds::default();
    let mut renamed = false;
    let (should_trigger, checks) = writing::split_activation(case, suite);
    for check in checks {
        let Some(statement) = writing::judge_statement(check, losses, &case.id, ScoreScale::PassFail) else {
            continue;
        };
        renamed |= check.name.is_some() || check.id != ids.make_unique(&slug(&statement, "expectation"));
        statements.push(statement);
    }
    if renamed {
        losses.add_for_case(&case.id, "the names of its checks, which here are made from their words");
    }
    if statements.is_empty() && should_trigger.is_none() {
        losses.add_whole_case(&case.id, "nothing is left to expect of it");
        return None;
    }
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(case.id));
    map.insert("prompt".to_owned(), json!(writing::join_prompts(case, suite)));
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
            losses.add_for_case(&case.id, "its time limit is rounded up to whole seconds");
        }
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() != 0);
        map.insert("timeout".to_owned(), json!(seconds));
    }
    let own = RelPath::new(&case.id).map(|id| id.join_to(folder).join("setup"));
    add_notes(case, &mut map, losses);
    report_misplaced_overlays(case, folder, &[Some(folder.join("setup")), own], losses);
    Some(Value::Object(map))
}

fn triggers_file(suite: &Suite, folder: &Path, losses: &mut Losses) -> ExportedFile {
    let items = suite
        .cases
        .iter()
        .filter_map(|case| {
            let mut map = writing::trigger_query(case, suite)?;
            add_notes(case, &mut map, losses);
            report_misplaced_overlays(case, folder, &[Some(folder.join("setup"))], losses);
            Some(Value::Object(map))
        })
        .collect();
    exported_file("triggers.json", Value::Array(items))
}

/// Adds the group, the note and other kept data.
fn add_notes(case: &Case, map: &mut Map<String, Value>, losses: &mut Losses) {
    for (key, text) in [("_group", &case.group), ("_note", &case.note)] {
        if let Some(text) = text {
            map.insert(key.to_owned(), json!(text));
        }
    }
    for key in writing::add_meta(map, &case.meta) {
        losses.add_for_case(&case.id, format!("the key \"{key}\", which means something else here"));
    }
}

/// Reports overlays in other folders. The format finds overlays by their place, so the user must move these by
/// hand.
fn report_misplaced_overlays(case: &Case, folder: &Path, places: &[Option<PathBuf>], losses: &mut Losses) {
    for overlay in &case.workspace.overlays {
        let found = places.iter().flatten().any(|place| place == overlay);
        if !found && !super::base_overlays(folder).contains(overlay) {
            let from = relative_path(overlay, folder);
            losses.add_for_case(&case.id, format!("where its overlay lies (copy {from} to a setup folder)"));
        }
    }
}

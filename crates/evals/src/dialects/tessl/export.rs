//! Writes a suite as scenarios of Tessl: a folder for each case, with its task and its checklist.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::{CRITERIA_FILE, SCENARIO_FILE, TASK_FILE};
use practicum_core::model::{
    Arm, Case, Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, PassRule, Ratio, RunPolicy, ScoreOf,
    ScoreScale, Suite, WorkspaceBase,
};
use practicum_core::tree::SourceSyntax;

/// The longest name of an item of a checklist.
const LONGEST_NAME: usize = 60;

/// Writes a suite. What Tessl cannot express is listed.
pub fn export(suite: &Suite, folder: &Path) -> ExportedSuite {
    let mut losses = Losses::default();
    let suite = writing::cases_that_run(suite, &mut losses);
    let mut features = vec![FormatFeature::Files, FormatFeature::MutableFiles, FormatFeature::Score];
    // A scenario is about the skill in whose folder it lies, two levels up at most.
    features.extend(writing::is_in_skill(&suite, folder, 2).then_some(FormatFeature::Skill));
    let format = FormatCapabilities {
        features: &features,
        base: WorkspaceBase::Empty,
        defaults: RunPolicy {
            repeat: Some(1),
            timeout: Some(super::TIMEOUT),
            arms: vec![Arm::WithSkill, Arm::WithoutSkill],
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
    };
    let mut rest = suite.clone();
    for case in &mut rest.cases {
        case.meta.remove("description");
        if case.context == shared_context(case) {
            case.context = None;
        }
    }
    losses.extend(Losses::from_suite(&rest, &format));
    let mut names = reading::UniqueIds::default();
    let files = suite.cases.iter().flat_map(|case| scenario(case, &suite, folder, &mut names, &mut losses));
    let files = files.collect();
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

fn scenario(
    case: &Case,
    suite: &Suite,
    folder: &Path,
    names: &mut reading::UniqueIds,
    losses: &mut Losses,
) -> Vec<ExportedFile> {
    let prompt = writing::join_prompts(case, suite);
    if prompt.trim().is_empty() {
        losses.add_whole_case(&case.id, "its prompt is empty");
        return Vec::new();
    }
    note_score_losses(case, losses);
    let context = shared_context(case);
    let checks = case.checks.iter().filter_map(|check| item(check, context.is_some(), &case.id, losses));
    let checklist: Vec<Value> = checks.collect();
    if checklist.is_empty() {
        losses.add_whole_case(&case.id, "nothing is left to expect of it");
        return Vec::new();
    }
    let name = names.make_unique(&writing::file_stem(&case.id));
    if name != case.id {
        losses.add_for_case(&case.id, format!("its id, which cannot be a folder's name; here it is {name}"));
    }
    let json = |file: &str, document: Value| ExportedFile {
        name: format!("{name}/{file}"),
        syntax: Some(SourceSyntax::Json),
        document,
    };
    let criteria =
        json!({"context": context.unwrap_or_default(), "type": "weighted_checklist", "checklist": checklist});
    let task = format!("{}\n", prompt.trim());
    let mut files = vec![
        ExportedFile { name: format!("{name}/{TASK_FILE}"), syntax: None, document: json!(task) },
        json(CRITERIA_FILE, criteria),
    ];
    let scenario = scenario_value(case, &folder.join(&name), losses);
    if !scenario.is_empty() {
        files.push(json(SCENARIO_FILE, Value::Object(scenario)));
    }
    files
}

fn note_score_losses(case: &Case, losses: &mut Losses) {
    let PassRule::Score(rule) = case.pass_rule else { return };
    if rule.at_least != Ratio::ONE {
        losses.add_for_case(&case.id, format!("the score {} that it must reach", rule.at_least.get()));
    }
    if rule.of == ScoreOf::EachTrial && rule.at_least != Ratio::ONE {
        losses.add_for_case(&case.id, "that each of its trials must reach the score, and not their mean");
    }
    if case.checks.iter().any(|check| check.need == CheckNeed::Required) {
        losses.add_for_case(&case.id, "that some checks must pass whatever the score is");
    }
}

/// Gives the background that the judge needs for every check: that of the case, or one that all of its judged checks
/// have.
fn shared_context(case: &Case) -> Option<String> {
    let own = case.checks.iter().filter_map(|check| match &check.kind {
        CheckKind::Judged(judged) => Some(judged.context.as_deref()),
        CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    });
    let own: Vec<Option<&str>> = own.collect();
    let first = own.first().copied().flatten();
    let shared = first.filter(|first| own.iter().all(|context| *context == Some(first)));
    let has_others = own.iter().any(Option::is_some);
    let context = shared.or(case.context.as_deref().filter(|_| !has_others))?;
    (!context.trim().is_empty()).then(|| context.to_owned())
}

/// Writes a check as an item: its points, and what a judge looks for in the files.
fn item(check: &Check, has_context: bool, case: &str, losses: &mut Losses) -> Option<Value> {
    if check.weight == CheckWeight::ZERO {
        losses.add_for_case(case, "the checks that are reported and do not count");
        return None;
    }
    let mut check = check.clone();
    if let CheckKind::Judged(judged) = &mut check.kind
        && has_context
    {
        judged.context = None;
    }
    let target = CheckTarget::Files(vec!["**".to_owned()]);
    let statement = writing::rubric_for(&check, losses, case, ScoreScale::Unit, &target)?;
    if matches!(check.kind, CheckKind::Rule(_)) && check.target != target {
        losses.add_for_case(case, "that a check looks at more than the files; the judge sees only them");
    }
    let own = check.name.as_deref().and_then(|name| {
        let description = statement.strip_prefix(name)?.strip_prefix(": ")?;
        (!name.is_empty() && !description.trim().is_empty()).then_some((name, description))
    });
    let (name, description) = match own {
        Some((name, description)) => (name.to_owned(), description.to_owned()),
        None => (short_name(&statement), statement),
    };
    let points = writing::number_value(check.weight.get());
    Some(json!({"name": name, "description": description, "max_score": points}))
}

/// Gives the beginning of a statement as the name of its item.
fn short_name(statement: &str) -> String {
    let line = statement.trim().lines().next().unwrap_or_default();
    line.chars().take(LONGEST_NAME).collect::<String>().trim_end().to_owned()
}

/// Writes which files the agent gets. Only files in the folder of the scenario can be named.
fn scenario_value(case: &Case, folder: &Path, losses: &mut Losses) -> Map<String, Value> {
    let mut map = Map::new();
    if let Some(description) = case.meta.get("description").filter(|description| description.is_string()) {
        map.insert("description".to_owned(), description.clone());
    }
    let mut included = Vec::new();
    for file in &case.workspace.files {
        let inside = file.source.strip_prefix(folder).ok().and_then(Path::to_str);
        let parent = inside.and_then(|inside| inside.strip_suffix(file.destination.as_str()));
        match parent.map(|parent| parent.trim_end_matches('/')) {
            Some("") => included.push(file.destination.as_str().to_owned()),
            // A folder is copied with all that is in it.
            Some(parent) if !included.iter().any(|known| known == parent) => included.push(parent.to_owned()),
            Some(_) => {}
            None => losses.add_for_case(
                &case.id,
                format!(
                    "where {} lies (copy it into the folder of the scenario, and include it)",
                    file.destination
                ),
            ),
        }
    }
    if !included.is_empty() {
        map.insert("include".to_owned(), json!(included));
    }
    map
}

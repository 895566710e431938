//! Writes a suite as Skillet files, one for each case.

use serde_json::{Map, Value, json};

use super::super::reading::{self, UniqueIds, slug};
use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{ExportedFile, ExportedSuite};
use super::{ASSERTIONS_META_KEY, DEFAULT_SAMPLES};
use practicum_core::model::{
    Case, CasePrompt, CheckKind, CheckTarget, RelPath, RunPolicy, ScoreScale, Suite, WorkspaceBase,
};
use practicum_core::tree::SourceSyntax;

pub fn export_suite(suite: &Suite) -> ExportedSuite {
    let suite = &writing::require_counted_checks(suite);
    let format = FormatCapabilities {
        features: &[
            FormatFeature::Group,
            FormatFeature::Turns,
            FormatFeature::Scripts,
            FormatFeature::Context,
            FormatFeature::CaseMeta,
        ],
        base: WorkspaceBase::Empty,
        defaults: RunPolicy { repeat: Some(DEFAULT_SAMPLES), ..RunPolicy::default() },
        gates: reading::all_cases_pass(),
    };
    let mut losses = Losses::from_suite(suite, &format);
    let mut names = UniqueIds::default();
    let files =
        suite.cases.iter().filter_map(|case| export_case(case, suite, &mut names, &mut losses)).collect();
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

fn export_case(
    case: &Case,
    suite: &Suite,
    names: &mut UniqueIds,
    losses: &mut Losses,
) -> Option<ExportedFile> {
    let mut map = Map::new();
    let mut meta = case.meta.clone();
    // The format requires a timestamp. A case from another format has none, so it gets the epoch: nobody mistakes
    // it for a real date, and it does not change from run to run.
    let timestamp = meta.remove("timestamp").filter(|value| value.as_str().is_some_and(super::is_timestamp));
    map.insert("timestamp".to_owned(), timestamp.unwrap_or_else(|| json!("1970-01-01T00:00:00Z")));
    let name = case.group.as_ref().unwrap_or(&suite.name);
    map.insert("name".to_owned(), json!(if name.trim().is_empty() { "evals" } else { name }));
    let prompt = match &case.prompt {
        CasePrompt::Turns(turns) if turns.len() > 1 => json!(turns),
        CasePrompt::Turns(_) | CasePrompt::SkillCommand { .. } => json!(writing::join_prompts(case, suite)),
    };
    map.insert("prompt".to_owned(), prompt);
    // In this format, assertions replace the judge. They are written only if they can express every check.
    let more = meta.remove(ASSERTIONS_META_KEY);
    let assertions: Option<Vec<Map<String, Value>>> =
        case.checks.iter().map(|check| assertion_value(&check.kind, &check.target)).collect();
    match assertions {
        Some(assertions) if !assertions.is_empty() => {
            let context = case.context.as_deref().filter(|context| !context.trim().is_empty());
            map.insert("expected".to_owned(), json!(context.unwrap_or("See the assertions.")));
            if case.checks.iter().any(|check| check.target == CheckTarget::Output) {
                losses.add_for_case(&case.id, "that its checks look at the last message alone");
            }
            let assertions = case.checks.iter().zip(assertions).map(|(check, assertion)| {
                let extra = more.as_ref().and_then(|more| more.get(&check.id)?.as_object());
                with_extra(assertion, extra)
            });
            map.insert(ASSERTIONS_META_KEY.to_owned(), assertions.collect());
        }
        Some(_) | None => {
            let statements: Vec<String> = case
                .checks
                .iter()
                .filter_map(|check| writing::judge_statement(check, losses, &case.id, ScoreScale::PassFail))
                .collect();
            if statements.is_empty() {
                losses.add_whole_case(&case.id, "nothing is left to expect of it");
                return None;
            }
            if statements.len() > 1 {
                losses.add_for_case(&case.id, "its checks became one, which is judged as a whole");
            }
            if case.context.is_some() {
                losses.add_for_case(&case.id, "what the judge should know");
            }
            if more.is_some() {
                losses.add_for_case(&case.id, "the extra keys of its checks");
            }
            map.insert("expected".to_owned(), json!(statements.join("\n")));
        }
    }
    for (key, script) in [("setup", &case.workspace.setup), ("teardown", &case.workspace.teardown)] {
        if let Some(script) = script {
            map.insert(key.to_owned(), json!(script));
        }
    }
    if let Some(actual) = meta.remove("actual").filter(Value::is_string) {
        map.insert("actual".to_owned(), actual);
    }
    for key in writing::add_meta(&mut map, &meta) {
        losses.add_for_case(&case.id, format!("the key \"{key}\", which means something else here"));
    }
    // The file's name is the case's id, if the id can be a file name.
    let wanted = RelPath::new(&case.id).filter(|path| path.as_str() == case.id);
    let name = names.make_unique(&wanted.map_or_else(|| slug(&case.id, "eval"), String::from));
    if name != case.id {
        losses.add_for_case(&case.id, format!("its id, which cannot be a file's name; here it is {name}"));
    }
    Some(ExportedFile {
        name: format!("{name}.yaml"),
        syntax: Some(SourceSyntax::Yaml),
        document: Value::Object(map),
    })
}

/// Skillet's assertions ignore case, except patterns, and look at all that was said in the last turn.
fn assertion_value(kind: &CheckKind, looks_at: &CheckTarget) -> Option<Map<String, Value>> {
    let rule = match kind {
        CheckKind::Rule(rule) => rule,
        CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => return None,
    };
    let tool = matches!(rule.key(), "tool_used" | "tool_not_used");
    if !tool && !matches!(looks_at, CheckTarget::LastTurn | CheckTarget::Output) {
        return None;
    }
    let value = rule.value();
    let (kind, text) = match (rule.key(), &value) {
        (key @ ("contains" | "not_contains" | "starts_with" | "ends_with"), Value::Object(needle))
            if needle.get("ignore_case") == Some(&json!(true)) =>
        {
            (key, needle.get("text")?.as_str()?)
        }
        ("regex", Value::String(pattern)) => ("regex", pattern.as_str()),
        ("tool_used", Value::String(tool)) => ("tool_called", tool.as_str()),
        ("tool_not_used", Value::String(tool)) => ("tool_not_called", tool.as_str()),
        _ => return None,
    };
    Some(Map::from_iter([("type".to_owned(), json!(kind)), ("value".to_owned(), json!(text))]))
}

/// Adds the unused keys of an assertion to it.
fn with_extra(mut assertion: Map<String, Value>, extra: Option<&Map<String, Value>>) -> Value {
    for (key, value) in extra.into_iter().flatten() {
        assertion.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(assertion)
}

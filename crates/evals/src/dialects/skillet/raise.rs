//! A suite as Skillet files, one a case.

use serde_json::{Map, Value, json};

use super::super::reading::{self, Ids, slug};
use super::super::writing::{self, Losses, Said, Says};
use super::super::{Raised, RaisedFile};
use super::{ASSERTIONS, SAMPLES};
use practicum_core::model::{Base, Case, CheckKind, LooksAt, RelPath, RunPolicy, Scale, Stimulus, Suite};
use practicum_core::tree::Syntax;

pub fn raise(suite: &Suite) -> Raised {
    let format = Said {
        says: &[Says::Group, Says::Turns, Says::Scripts, Says::Context, Says::CaseMeta],
        base: Base::Empty,
        defaults: RunPolicy { repeat: Some(SAMPLES), ..RunPolicy::default() },
        gates: reading::all_cases_pass(),
    };
    let mut losses = Losses::of(suite, &format);
    let mut names = Ids::default();
    let files = suite.cases.iter().filter_map(|case| file(case, suite, &mut names, &mut losses)).collect();
    Raised { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

fn file(case: &Case, suite: &Suite, names: &mut Ids, losses: &mut Losses) -> Option<RaisedFile> {
    let mut map = Map::new();
    let mut meta = case.meta.clone();
    // Required by the format. A case from elsewhere has no date of its own, so it gets the epoch,
    // which nobody takes for a real one and which does not change from run to run.
    let timestamp = meta.remove("timestamp").filter(|value| value.as_str().is_some_and(super::is_timestamp));
    map.insert("timestamp".to_owned(), timestamp.unwrap_or_else(|| json!("1970-01-01T00:00:00Z")));
    let name = case.group.as_ref().unwrap_or(&suite.name);
    map.insert("name".to_owned(), json!(if name.trim().is_empty() { "evals" } else { name }));
    let prompt = match &case.stimulus {
        Stimulus::Turns(turns) if turns.len() > 1 => json!(turns),
        Stimulus::Turns(_) | Stimulus::SkillCommand { .. } => json!(writing::one_prompt(case, suite)),
    };
    map.insert("prompt".to_owned(), prompt);
    // Assertions replace the judge, so they only do where they can say every check.
    let more = meta.remove(ASSERTIONS);
    let assertions: Option<Vec<Map<String, Value>>> =
        case.checks.iter().map(|check| assertion(&check.kind, &check.looks_at)).collect();
    match assertions {
        Some(assertions) if !assertions.is_empty() => {
            let context = case.context.as_deref().filter(|context| !context.trim().is_empty());
            map.insert("expected".to_owned(), json!(context.unwrap_or("See the assertions.")));
            let assertions = case.checks.iter().zip(assertions).map(|(check, assertion)| {
                let extra = more.as_ref().and_then(|more| more.get(&check.id)?.as_object());
                with_extra(assertion, extra)
            });
            map.insert(ASSERTIONS.to_owned(), assertions.collect());
        }
        Some(_) | None => {
            let statements: Vec<String> = case
                .checks
                .iter()
                .filter_map(|check| writing::statement(check, losses, &case.id, Scale::PassFail))
                .collect();
            if statements.is_empty() {
                losses.whole_case(&case.id, "nothing is left to expect of it");
                return None;
            }
            if statements.len() > 1 {
                losses.case(&case.id, "its checks became one, which is judged as a whole");
            }
            if case.context.is_some() {
                losses.case(&case.id, "what the judge should know");
            }
            if more.is_some() {
                losses.case(&case.id, "the extra keys of its checks");
            }
            map.insert("expected".to_owned(), json!(statements.join("\n")));
        }
    }
    for (key, script) in [("setup", &case.room.setup), ("teardown", &case.room.teardown)] {
        if let Some(script) = script {
            map.insert(key.to_owned(), json!(script));
        }
    }
    if let Some(actual) = meta.remove("actual").filter(Value::is_string) {
        map.insert("actual".to_owned(), actual);
    }
    for key in writing::keep_meta(&mut map, &meta) {
        losses.case(&case.id, format!("the key \"{key}\", which means something else here"));
    }
    // The file's name is the case's id, as far as an id can be one.
    let wanted = RelPath::new(&case.id).filter(|path| path.as_str() == case.id);
    let name = names.derive(&wanted.map_or_else(|| slug(&case.id, "eval"), String::from));
    if name != case.id {
        losses.case(&case.id, format!("its id, which cannot be a file's name; here it is {name}"));
    }
    Some(RaisedFile { name: format!("{name}.yaml"), syntax: Syntax::Yaml, document: Value::Object(map) })
}

/// Skillet's assertions ignore case, except patterns, and look at the response.
fn assertion(kind: &CheckKind, looks_at: &LooksAt) -> Option<Map<String, Value>> {
    let rule = match kind {
        CheckKind::Exact(rule) => rule,
        CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => return None,
    };
    let tool = matches!(rule.key(), "tool_used" | "tool_not_used");
    if !tool && *looks_at != LooksAt::Output {
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

/// An assertion with the keys of its own that nobody reads.
fn with_extra(mut assertion: Map<String, Value>, extra: Option<&Map<String, Value>>) -> Value {
    for (key, value) in extra.into_iter().flatten() {
        assertion.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(assertion)
}

//! The Skillet format: each YAML file is an eval, and a folder of them is a suite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::loading::id_below;
use super::reading::{self, UnusedKeys};
use super::recognition;
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch, rules};
use practicum_core::model::{
    Case, CasePrompt, Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, Diagnostics, RunPolicy, Suite,
    WorkspaceBase, WorkspaceSpec,
};
use practicum_core::tree::{MapEntry, NodeData, ObjectReader, SourceFile, TreeNode, closest_word, node_text};

mod export;
mod schema;

/// The adapter for the Skillet format.
pub struct Skillet;

const NAME: &str = "skillet";

/// Gives the folder in which Skillet keeps evals: the one that its variable names, or one in the user's home.
pub fn skillet_folder(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let named = env.get("SKILLET_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| env.get("HOME").map(|home| Path::new(home).join(".skillet")))
}

/// The number of runs of an eval that gives none.
const DEFAULT_SAMPLES: u32 = 3;

impl Dialect for Skillet {
    fn name(&self) -> &'static str {
        NAME
    }

    fn recognition_rule(&self) -> &'static str {
        "YAML with \"prompt\" or \"expected\"; one file for each eval"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let root = &source.root;
        let (prompt, expected) = (root.has("prompt"), root.has("expected"));
        if recognition::is_skillet(source) {
            FormatMatch::sure("it is YAML with \"prompt\" or \"expected\"")
        } else if prompt && expected {
            FormatMatch::possible("it has \"prompt\" and \"expected\"").and(
                root.has("timestamp"),
                60,
                "it has a \"timestamp\"",
            )
        } else {
            FormatMatch::NO
        }
    }

    fn folder_is_suite(&self) -> bool {
        true
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, _folder: &Path) -> ExportedSuite {
        export::export_suite(suite)
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut file = ObjectReader::new(&source.root, "an eval", diagnostics)?;
        check_version(&mut file, diagnostics);
        check_timestamp(&mut file, diagnostics);
        let group = file.required_text("name", diagnostics).map(str::to_owned);
        let stimulus = read_prompts(&mut file, diagnostics);
        let expected = file.required_text("expected", diagnostics);
        let setup = read_script(&mut file, "setup", diagnostics);
        let teardown = read_script(&mut file, "teardown", diagnostics);
        let assertions_span = file.get_non_null("assertions").map(|node| node.span);
        let assertions = file.list("assertions", diagnostics);
        if assertions.is_some_and(<[TreeNode]>::is_empty) {
            diagnostics.error_with_help(
                "no-assertions",
                assertions_span,
                "\"assertions\" replaces the judge, so it must not be empty",
                "add one, or remove the key so that \"expected\" is judged",
            );
        }
        // Both are kept for the author and have no effect.
        let said: Vec<(String, Value)> = ["timestamp", "actual"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), file.get_non_null(key)?.to_value())))
            .collect();
        // The user names the skill, which is not known here.
        let activation = reading::expected_activation(&mut file, &[], diagnostics);
        let mut kept = UnusedKeys::default();
        let mut meta = kept.collect_unused(&file, "an eval", diagnostics);
        meta.extend(said);
        let (mut checks, context) = match (assertions, expected) {
            (Some(nodes), expected) => {
                let (checks, more) = assertion_checks(nodes, &mut kept, diagnostics);
                meta.extend(
                    (!more.is_empty()).then(|| (ASSERTIONS_META_KEY.to_owned(), Value::Object(more))),
                );
                (checks, expected.map(str::to_owned))
            }
            (None, Some(expected)) => (vec![reading::judged_check("expected".to_owned(), expected)], None),
            (None, None) => return None,
        };
        checks.splice(0..0, activation.checks);
        let case = Case {
            group,
            prompt: stimulus?,
            workspace: WorkspaceSpec { setup, teardown, ..WorkspaceSpec::default() },
            checks,
            context,
            meta,
            ..reading::blank_case(id_below(&source.path, &place.root), String::new())
        };
        Some(Suite {
            cases: vec![case],
            format_defaults: RunPolicy {
                repeat: Some(DEFAULT_SAMPLES),
                workspace: Some(WorkspaceBase::Empty),
                ..RunPolicy::default()
            },
            gates: reading::all_cases_pass(),
            ..reading::blank_suite(NAME, source, folder_name(place))
        })
    }
}

fn folder_name(place: &EvalFileLocation) -> String {
    place.root.file_name().map_or_else(|| NAME.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn check_version(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) {
    let Some(node) = file.get_non_null("schema_version") else { return };
    match node.data {
        NodeData::Int(1) => {}
        NodeData::Int(version) => diagnostics.error(
            "unknown-version",
            node.span,
            format!("schema_version {version} is not known; version 1 is"),
        ),
        _ => practicum_core::tree::report_wrong_type(node, "schema_version", "a whole number", diagnostics),
    }
}

fn check_timestamp(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) {
    let span = file.get_non_null("timestamp").map(|node| node.span);
    let Some(text) = file.required_text("timestamp", diagnostics) else { return };
    if !is_timestamp(text) {
        diagnostics.error_with_help(
            "invalid-timestamp",
            span,
            format!("{text:?} is not an ISO 8601 timestamp"),
            "write it like 2025-01-15T10:30:00Z",
        );
    }
}

fn is_timestamp(text: &str) -> bool {
    let joined = to_iso_timestamp(text.trim()).unwrap_or_else(|| text.trim().to_owned());
    joined.parse::<jiff::Timestamp>().is_ok()
        || joined.parse::<jiff::civil::DateTime>().is_ok()
        || joined.parse::<jiff::civil::Date>().is_ok()
}

/// Rewrites a timestamp of YAML as ISO 8601. In YAML, months, days and hours, and the hours of the offset, may
/// have one digit, and blanks may precede the offset. Gives `None` if the text is not a timestamp with a time.
fn to_iso_timestamp(text: &str) -> Option<String> {
    let (date, time) = text.split_once(['T', 't', ' ', '\t'])?;
    let time = time.trim_start();
    let at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, offset) = (time[..at].trim_end(), &time[at..]);
    if clock.is_empty() {
        return None;
    }
    let padded = |text: &str, separator: &str| -> String {
        text.split(separator).map(|part| format!("{part:0>2}")).collect::<Vec<_>>().join(separator)
    };
    let offset = match offset.strip_prefix(['+', '-']) {
        Some(digits) => format!("{}{}", &offset[..1], padded(digits, ":")),
        None => offset.to_owned(),
    };
    Some(format!("{}T{}{offset}", padded(date, "-"), padded(clock, ":")))
}

/// Reads a script. A blank one counts as none, so it needs no trust from the user.
fn read_script(
    file: &mut ObjectReader<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<String> {
    file.text(key, diagnostics).filter(|script| !script.trim().is_empty()).map(str::to_owned)
}

fn read_prompts(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<CasePrompt> {
    let Some(node) = file.get_non_null("prompt") else {
        file.report_missing("prompt", diagnostics);
        return None;
    };
    let turns: Vec<String> = match &node.data {
        NodeData::Text(text) => vec![text.clone()],
        NodeData::List(items) => items
            .iter()
            .filter_map(|item| node_text(item, "prompt", diagnostics).map(str::to_owned))
            .collect(),
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) | NodeData::Map(_) => {
            practicum_core::tree::report_wrong_type(node, "prompt", "text or a list of texts", diagnostics);
            return None;
        }
    };
    let blank = |item: &&TreeNode| item.as_text().is_some_and(|turn| turn.trim().is_empty());
    let wrong = match node.as_list() {
        Some(items) => items.iter().find(blank).or(turns.is_empty().then_some(node)),
        None => Some(node).filter(blank),
    };
    if let Some(wrong) = wrong {
        diagnostics.error("empty-text", wrong.span, "\"prompt\" must not be blank");
        return None;
    }
    Some(CasePrompt::Turns(turns))
}

/// The key of a case's meta for the parts of its assertions that no check uses, by check.
const ASSERTIONS_META_KEY: &str = "assertions";

/// The types of assertion, each with the check that it becomes.
const ASSERTION_TYPES: [(&str, &str); 7] = [
    ("contains", "contains"),
    ("not_contains", "not_contains"),
    ("starts_with", "starts_with"),
    ("ends_with", "ends_with"),
    ("regex", "regex"),
    ("tool_called", "tool_used"),
    ("tool_not_called", "tool_not_used"),
];

/// Reads the checks, and the unused keys of each.
fn assertion_checks(
    assertions: &[TreeNode],
    kept: &mut UnusedKeys,
    diagnostics: &mut Diagnostics,
) -> (Vec<Check>, Map<String, Value>) {
    let mut checks = Vec::new();
    let mut more = Map::new();
    for (index, node) in assertions.iter().enumerate() {
        let Some(mut object) = ObjectReader::new(node, "an assertion", diagnostics) else { continue };
        let Some(check) = read_assertion(index, node, &mut object, diagnostics) else { continue };
        let rest = kept.collect_unused(&object, "an assertion", diagnostics);
        if !rest.is_empty() {
            more.insert(check.id.clone(), json!(rest));
        }
        checks.push(check);
    }
    (checks, more)
}

/// Finds the entry that gives a type as its key, as other formats do.
fn type_given_as_key(assertion: &TreeNode) -> Option<&MapEntry> {
    let mut entries = assertion.as_map()?.iter().filter(|_| !assertion.has("type"));
    entries.find(|entry| ASSERTION_TYPES.iter().any(|(known, _)| *known == entry.key))
}

fn read_assertion<'n>(
    index: usize,
    node: &'n TreeNode,
    assertion: &mut ObjectReader<'n>,
    diagnostics: &mut Diagnostics,
) -> Option<Check> {
    if let Some(entry) = type_given_as_key(node) {
        diagnostics.error_with_help(
            "missing-key",
            entry.key_span,
            format!("\"{}\" is a type of assertion, not a key", entry.key),
            format!("write {{type: {}, value: ...}}", entry.key),
        );
        return None;
    }
    let kind_span = assertion.get_non_null("type").map(|node| node.span);
    let kind = assertion.required_text("type", diagnostics);
    let value_node = assertion.get("value");
    let value = match value_node {
        Some(node) => node_text(node, "value", diagnostics),
        None => {
            assertion.report_missing("value", diagnostics);
            None
        }
    };
    let kind = kind?;
    let Some((_, key)) = ASSERTION_TYPES.iter().find(|(known, _)| *known == kind) else {
        let types = ASSERTION_TYPES.map(|(known, _)| known);
        let help = closest_word(kind, &types).map_or_else(
            || format!("the types are {}", types.join(", ")),
            |known| format!("did you mean \"{known}\"?"),
        );
        diagnostics.error_with_help(
            "unknown-assertion",
            kind_span,
            format!("unknown assertion type \"{kind}\""),
            help,
        );
        return None;
    };
    let value = match *key {
        "regex" | "tool_used" | "tool_not_used" => json!(value?),
        _ => json!({"text": value?, "ignore_case": true}),
    };
    let span = value_node.map_or(node.span, |node| node.span);
    match rules::build_rule(key, &value, span, diagnostics) {
        rules::BuiltRule::Rule(rule, looks_at) => Some(Check {
            id: format!("{kind}-{}", index + 1),
            name: None,
            need: CheckNeed::Required,
            weight: CheckWeight::ONE,
            target: if looks_at == CheckTarget::Output { CheckTarget::LastTurn } else { looks_at },
            kind: CheckKind::Rule(rule),
        }),
        rules::BuiltRule::Invalid => None,
        rules::BuiltRule::NoSuchKind => {
            diagnostics.error(
                "unknown-assertion",
                kind_span,
                format!("this version cannot check \"{kind}\""),
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::rule_kind;
    use crate::dialects::{testing, to_native};

    fn check(text: &str, expected: &[&str]) -> Option<Suite> {
        testing::check_diagnostics(&Skillet, "a/one.yaml", text, expected)
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        for (text, expected) in [
            (
                "a: 1",
                &[
                    "error missing-key 1:1",
                    "error missing-key 1:1",
                    "error missing-key 1:1",
                    "error missing-key 1:1",
                    "notice unknown-key 1:1",
                ] as &[&str],
            ),
            ("timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e", &[]),
            ("timestamp: 2025-01-15\nname: n\nprompt: []\nexpected: e", &["error empty-text 3:9"]),
            (
                "timestamp: 2025-01-15\nname: n\nprompt: [a, ' ']\nexpected: ' '",
                &["error empty-text 3:13", "error empty-text 4:11"],
            ),
            ("timestamp: 2025-01-15\nname: n\nprompt: {a: 1}\nexpected: e", &["error wrong-type 3:9"]),
            ("schema_version: 1\ntimestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e", &[]),
            (
                "schema_version: 2\ntimestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e",
                &["error unknown-version 1:17"],
            ),
            (
                "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\nsetup: [a]\nteardown: 3",
                &["error wrong-type 5:8", "error wrong-type 6:11"],
            ),
            (
                "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\nassertions: [{type: regex, value: x, why: y}]",
                &["notice unknown-key 5:38"],
            ),
            (
                "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\nassertions: [{type: regex, valeu: x}]",
                &["error missing-key 5:14"],
            ),
            (
                "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\nassertions: []",
                &["error no-assertions 5:13"],
            ),
            (
                "timestamp: 2025-01-15\nname: n\nprompt: [a, '']\nexpected: e\nassertions: [{contains: x}]",
                &["error empty-text 3:13", "error missing-key 5:15"],
            ),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn a_misspelt_key_leaves_it_an_eval() {
        let fit =
            |name: &str, text: &str| Skillet.recognise(&testing::parse_source(name.into(), text)).score();
        for (name, text, expected) in [
            ("a.yaml", "timestamp: t\nprompt: p\nexpected: e", FormatMatch::SURE),
            ("a.yml", "prompt: p\nexpected: e", FormatMatch::SURE),
            ("a.yaml", "timestamp: t\npromt: p\nexpected: e", FormatMatch::SURE),
            ("a.yaml", "timestamp: t\nprompt: p\nexpect: e", FormatMatch::SURE),
            ("a.yaml", "name: n\nprompt: p", FormatMatch::SURE),
            ("a.yaml", "timestamp: t\nname: n", 0),
            ("a.json", r#"{"prompt": "p", "expected": "e"}"#, FormatMatch::POSSIBLE),
            ("a.json", r#"{"timestamp": "t", "prompt": "p"}"#, 0),
        ] {
            assert_eq!(fit(name, text), expected, "{name} {text}");
        }
    }

    #[test]
    fn timestamps() {
        for (timestamp, good) in [
            ("2025-01-15T10:30:00Z", true),
            ("'2025-01-15T10:30:00Z'", true),
            ("2025-01-15T10:30:00.123456", true),
            ("2025-01-15T10:30:00.123456+00:00", true),
            ("2025-01-15T10:30:00+0100", true),
            ("2025-01-15T10:30:00+01", true),
            ("2025-01-15 10:30:00", true),
            ("2025-01-15 10:30:00Z", true),
            ("2025-01-15 10:30:00 +01:00", true),
            ("2025-01-15 10:30:00 Z", true),
            ("2025-1-5 1:30:00", true),
            ("2025-01-15 10:30:00 +2", true),
            ("2025-01-15\t10:30:00.5 -05:30", true),
            ("2025-01-15T10:30:00+01:00[Europe/Berlin]", true),
            ("2025-1-32 1:30:00", false),
            ("2025-01-15 10:30:00 o'clock", false),
            ("2025-01-15 Z", false),
            ("2025-01-15 ", true),
            ("2025-01-15t10:30:00z", true),
            ("2025-01-15T10:30Z", true),
            ("2025-01-15T10:30", true),
            ("20250115T103000Z", true),
            ("2025-01-15", true),
            ("2025-13-15", false),
            ("2025-02-30T10:30:00Z", false),
            ("15.1.2025", false),
            ("yesterday", false),
            ("''", false),
        ] {
            let text = format!("timestamp: {timestamp}\nname: n\nprompt: p\nexpected: e");
            let source = testing::parse_source("/nowhere/a.yaml".into(), &text);
            let (_, diagnostics) =
                testing::lower_source(&Skillet, &source, &testing::location_in(Path::new("/nowhere")));
            assert_eq!(!diagnostics.has_errors(), good, "{timestamp}");
        }
    }

    /// Tests one assertion: the check that it becomes, and the diagnostics.
    fn assertion(text: &str, checks: Value, expected: &[&str]) {
        let text = format!("timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\nassertions:\n- {text}");
        let suite = check(&text, expected).expect("a suite");
        assert_eq!(suite.cases[0].context.as_deref(), Some("e"));
        let native = to_native(&suite, Path::new("/nowhere/evals"));
        assert_eq!(native["cases"][0].get("checks").cloned().unwrap_or(json!([])), checks, "{text}");
    }

    #[test]
    fn assertions() {
        for kind in ["contains", "not_contains", "starts_with", "ends_with"] {
            if rule_kind(kind).is_some() {
                let check = json!([{kind: {"text": "V", "ignore_case": true}, "id": format!("{kind}-1"), "on": "turn"}]);
                assertion(&format!("{{type: {kind}, value: V}}"), check, &[]);
            }
        }
        for (kind, key) in [("tool_called", "tool_used"), ("tool_not_called", "tool_not_used")] {
            if rule_kind(key).is_some() {
                let text = format!("{{type: {kind}, value: Write}}");
                assertion(&text, json!([{key: "Write", "id": format!("{kind}-1")}]), &[]);
            }
        }
        assertion("{type: regex, value: a+}", json!([{"regex": "a+", "id": "regex-1", "on": "turn"}]), &[]);
        assertion("{type: regex, value: (}", json!([]), &["error invalid-pattern 6:24"]);
        assertion("{type: contain, value: a}", json!([]), &["error unknown-assertion 6:10"]);
        assertion("{type: contains, value: 3}", json!([]), &["error wrong-type 6:27"]);
        assertion("{type: contains, needle: a}", json!([]), &["error missing-key 6:3"]);
        assertion("text", json!([]), &["error wrong-type 6:3"]);
    }

    #[test]
    fn the_id_is_the_path_below_the_suite() {
        let suite = check("timestamp: 2025-01-15\nname: n\nprompt: [a, b]\nexpected: |\n  e\n", &[]);
        let suite = suite.expect("a suite");
        assert_eq!((suite.cases[0].id.as_str(), suite.name.as_str()), ("a/one", "evals"));
        assert_eq!(suite.cases[0].prompt, CasePrompt::Turns(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(suite.cases[0].checks, [reading::judged_check("expected".to_owned(), "e")]);
    }
}

//! Tests that the published schemas and the readers agree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::Value;

use super::mutate::{apply, changes};
use super::properties::{EXAMPLES, document, examples_of, source};
use super::schema_rows::{INVALID_DOCUMENTS, VALID_DOCUMENTS};
use super::{fixtures, location_in, lower_source, parse_source, suites};
use crate::checks::RULES;
use crate::dialects::writing::MEANINGFUL_KEYS;
use crate::dialects::{
    DIALECTS, EvalFileLocation, ExportedFile, dialect_names, find_dialect, trigger_schema,
};
use practicum_core::model::{Diagnostic, Diagnostics, GateName, Severity};
use practicum_core::tree::requested_keys;

static VALIDATORS: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let build = |name: &'static str| {
        let validator = jsonschema::draft202012::new(&schema(name));
        (name, validator.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    dialect_names().into_iter().chain(["triggers"]).map(build).collect()
});

fn schema(name: &str) -> Value {
    if name == "triggers" { trigger_schema() } else { find_dialect(name).expect("a dialect").schema() }
}

/// Gives the errors of a document by the schema of this name.
pub fn schema_errors(name: &str, document: &Value) -> Vec<String> {
    let errors = VALIDATORS[name].iter_errors(document);
    errors.map(|error| format!("{} at {}", error, error.instance_path())).collect()
}

/// Gives the schema for a document. Trigger sets have their own schema, whichever format they are from.
pub fn schema_of(dialect: &'static str, document: &Value) -> &'static str {
    let triggers =
        document.as_array().is_some_and(|items| items.iter().any(|item| item["query"].is_string()));
    if triggers && ["bmad", "skill-creator"].contains(&dialect) { "triggers" } else { dialect }
}

#[test]
fn every_fixture_is_valid() {
    for (name, path) in EXAMPLES {
        let document = document(name, path);
        assert_eq!(
            schema_errors(schema_of(name, &document), &document),
            Vec::<String>::new(),
            "{name} {path}"
        );
    }
}

fn dialect_of_schema(name: &str) -> &'static str {
    if name == "triggers" { "bmad" } else { find_dialect(name).expect("a dialect").name() }
}

fn valid_documents(name: &str) -> Vec<Value> {
    let rows = VALID_DOCUMENTS.iter().filter(|(of, _)| *of == name).map(|(_, text)| *text);
    rows.map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))).collect()
}

/// Reads a document and gives the diagnostics, except those about its surroundings.
fn read_diagnostics(name: &str, document: &Value) -> Vec<Diagnostic> {
    let folder = Path::new("/nowhere/evals");
    let file = if name == "triggers" { "triggers.json" } else { "evals.json" };
    let source = parse_source(folder.join(file), &document.to_string());
    let (_, diagnostics) = lower_source(
        find_dialect(dialect_of_schema(name)).expect("a dialect"),
        &source,
        &location_in(folder),
    );
    diagnostics.iter().cloned().collect()
}

#[test]
fn every_key_that_is_published_is_read_and_the_other_way_round() {
    for name in ["skillet", "skill-test", "bmad", "triggers", "clauditor", "writing-skills", "skill-creator"]
    {
        requested_keys::take();
        let mut used = BTreeSet::new();
        for document in valid_documents(name) {
            assert_eq!(schema_errors(name, &document), Vec::<String>::new(), "{name} {document}");
            let refused: Vec<Diagnostic> = read_diagnostics(name, &document)
                .into_iter()
                .filter(|said| said.severity == Severity::Error || said.code == "unknown-key")
                .collect();
            assert_eq!(refused, [], "{name} {document}");
            keys_in(&document, &mut used);
        }
        let published: BTreeSet<String> =
            published_keys(name).into_iter().flat_map(|(keys, _)| keys).collect();
        // A check that a format builds is read as a native one.
        let native: BTreeSet<BTreeSet<String>> =
            self::published_keys("native").into_iter().map(|(keys, _)| keys).collect();
        let asked: BTreeSet<String> =
            keys_read().into_iter().filter(|keys| !native.contains(keys)).flatten().collect();
        let unknown: Vec<&String> = asked.difference(&published).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "{name}: read, and not published");
        let unused: Vec<&String> = published.difference(&used).collect();
        assert_eq!(unused, Vec::<&String>::new(), "{name}: published, and in no good document");
    }
}

/// Tests each mapping against its own schema. This works because the native format refuses unknown keys.
#[test]
fn each_native_mapping_reads_the_keys_that_are_published_for_it() {
    let path = fixtures::fixtures_folder().join("native/every-key.practicum.yaml");
    let source = parse_source(path.clone(), &std::fs::read_to_string(&path).expect("a fixture"));
    let document = source.root.to_value();
    assert_eq!(schema_errors("native", &document), Vec::<String>::new());
    requested_keys::take();
    let place = EvalFileLocation::new(fixtures::fixtures_folder(), fixtures::fixtures_folder());
    let (_, diagnostics) = lower_source(find_dialect("native").expect("a dialect"), &source, &place);
    assert_eq!(diagnostics.iter().collect::<Vec<_>>(), Vec::<&Diagnostic>::new());
    let of_skills = BTreeSet::from(["name", "description"].map(str::to_owned));
    let asked: BTreeSet<BTreeSet<String>> =
        keys_read().into_iter().filter(|keys| *keys != of_skills).collect();

    // A check has one more key, for what it checks; gates are read as a whole.
    let kinds: BTreeSet<String> = RULES
        .iter()
        .map(|rule| rule.key)
        .chain(["judge", "sections", "activation"])
        .map(str::to_owned)
        .collect();
    let gates: BTreeSet<String> = GateName::ALL.map(|gate| gate.name().to_owned()).into();
    let gate = BTreeSet::from(["at_least", "confidence"].map(str::to_owned));
    let published: BTreeSet<BTreeSet<String>> = published_keys("native")
        .into_iter()
        .filter(|(_, closed)| *closed)
        .map(|(keys, _)| if keys.is_superset(&kinds) { &keys - &kinds } else { keys })
        .filter(|keys| *keys != gates && *keys != gate)
        .collect();
    assert_eq!(published, asked);

    let mut used = BTreeSet::new();
    keys_in(&document, &mut used);
    assert!(used.is_superset(&kinds), "the fixture has every check: {:?}", &kinds - &used);
}

/// Gives the keys of each mapping that was read since the last call.
fn keys_read() -> BTreeSet<BTreeSet<String>> {
    let owned = |keys: BTreeSet<&str>| keys.into_iter().map(str::to_owned).collect();
    requested_keys::take().into_iter().map(owned).collect()
}

/// Gives the keys of each mapping in a schema, and whether it refuses other keys.
fn published_keys(name: &str) -> BTreeSet<(BTreeSet<String>, bool)> {
    let mut found = BTreeSet::new();
    each_mapping(&schema(name), &mut |mapping| {
        let keys = mapping["properties"].as_object().expect("keys").keys().cloned().collect();
        found.insert((keys, mapping["additionalProperties"] == Value::Bool(false)));
    });
    found
}

/// Visits every mapping that a schema describes. Conditions on a mapping do not count as mappings.
fn each_mapping(schema: &Value, each: &mut dyn FnMut(&Value)) {
    match schema {
        Value::Object(map) => {
            let kinds = map.get("type").map(Value::to_string).unwrap_or_default();
            if map.contains_key("properties") && kinds.contains("object") {
                each(schema);
            }
            map.values().for_each(|inner| each_mapping(inner, each));
        }
        Value::Array(items) => items.iter().for_each(|inner| each_mapping(inner, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn keys_in(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            keys.extend(map.keys().cloned());
            map.values().for_each(|inner| keys_in(inner, keys));
        }
        Value::Array(items) => items.iter().for_each(|inner| keys_in(inner, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A key that no format reads needs no protection, and one that was renamed would lose it.
#[test]
fn keys_that_no_kept_value_may_have_are_published() {
    let names = dialect_names().into_iter().chain(["triggers"]);
    let published: BTreeSet<String> = names.flat_map(published_keys).flat_map(|(keys, _)| keys).collect();
    let unknown: Vec<&str> = MEANINGFUL_KEYS.into_iter().filter(|key| !published.contains(*key)).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

#[test]
fn what_is_wrong_is_wrong_by_both() {
    for (name, text) in INVALID_DOCUMENTS {
        let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_ne!(schema_errors(name, &document), Vec::<String>::new(), "the schema of {name} takes {text}");
        let errors =
            read_diagnostics(name, &document).iter().filter(|said| said.severity == Severity::Error).count();
        assert_ne!(errors, 0, "the reader of {name} takes {text}");
    }
}

/// The keys for which null has a meaning.
const KEYS_WITH_NULL: [&str; 7] = [
    "expected_skill",
    "expect_skill",
    "expected_activation",
    "has_urls",
    "has_entries",
    "urls_reachable",
    "json",
];

/// Removes nulls. Elsewhere null means "not given", and most schemas do not mention it.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept =
                map.iter().filter(|(key, value)| !value.is_null() || KEYS_WITH_NULL.contains(&key.as_str()));
            kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Tests that the schema does not forbid what the reader accepts.
fn no_false_alarm(name: &'static str, path: &str, document: &Value) {
    let (source, place) = source(name, path, document);
    let (_, diagnostics) = lower_source(find_dialect(name).expect("a dialect"), &source, &place);
    if !diagnostics.has_errors() {
        not_forbidden(schema_of(name, document), document);
    }
}

fn not_forbidden(schema: &str, document: &Value) {
    let problems = schema_errors(schema, document);
    let said_nothing = schema_errors(schema, &without_nulls(document));
    assert!(problems.is_empty() || said_nothing.is_empty(), "{schema}: {problems:#?}\n{document:#}");
}

/// The problems that a schema can detect.
const SCHEMA_VISIBLE_PROBLEMS: [&str; 12] = [
    "missing-key",
    "unknown-key",
    "unknown-check",
    "unknown-gate",
    "unknown-value",
    "unknown-format",
    "wrong-type",
    "out-of-range",
    "empty-text",
    "invalid-duration",
    "no-checks",
    "no-cases",
];

fn no_silence(diagnostics: &Diagnostics, document: &Value) {
    let mut errors = diagnostics.iter().filter(|said| said.severity == Severity::Error);
    let visible = errors.find(|said| SCHEMA_VISIBLE_PROBLEMS.contains(&said.code));
    if let Some(visible) = visible.filter(|_| !has_round_float(document)) {
        assert_ne!(schema_errors("native", document), Vec::<String>::new(), "{visible:?}\n{document:#}");
    }
}

/// Says whether a document has a number like 1.0, which is a whole number for JSON Schema but not for the readers.
fn has_round_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|x| x.fract() == 0.0),
        Value::Object(map) => map.values().any(has_round_float),
        Value::Array(items) => items.iter().any(has_round_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

macro_rules! agreeing {
    ($($test:ident: $name:literal),* $(,)?) => {
        proptest! {
            $(
                #[test]
                fn $test(path in prop::sample::select(examples_of($name)), changes in changes()) {
                    let mut document = document($name, path);
                    apply(&mut document, &changes);
                    no_false_alarm($name, path, &document);
                }
            )*
        }
    };
}

agreeing! {
    the_schema_takes_what_bmad_takes: "bmad",
    the_schema_takes_what_skill_creator_takes: "skill-creator",
    the_schema_takes_what_writing_skills_takes: "writing-skills",
    the_schema_takes_what_skill_test_takes: "skill-test",
    the_schema_takes_what_skillet_takes: "skillet",
    the_schema_takes_what_native_takes: "native",
}

proptest! {
    #[test]
    fn the_schema_takes_what_readers_take((name, text) in prop::sample::select(VALID_DOCUMENTS.to_vec()), changes in changes()) {
        let mut document: Value = serde_json::from_str(text).expect("JSON");
        apply(&mut document, &changes);
        // A change may turn one kind of list into another.
        let name = if name == "bmad" { schema_of("bmad", &document) } else { name };
        if read_diagnostics(name, &document).iter().all(|said| said.severity != Severity::Error) {
            not_forbidden(name, &document);
        }
    }

    #[test]
    fn the_schema_refuses_what_native_refuses(changes in changes()) {
        let mut document = document("native", "everything.json");
        apply(&mut document, &changes);
        let (source, place) = source("native", "everything.json", &document);
        let (_, diagnostics) = lower_source(find_dialect("native").expect("a dialect"), &source, &place);
        no_silence(&diagnostics, &document);
    }

    #[test]
    fn what_a_dialect_writes_fits_its_schema(suite in suites::suite()) {
        for dialect in DIALECTS {
            let files = dialect.export_suite(&suite, Path::new(suites::FOLDER)).files;
            // The schema of skill-up is that of eval.yaml, and not of its cases.
            let has_schema = |file: &ExportedFile| {
                file.syntax.is_some() && !(dialect.name() == "skill-up" && file.name != "eval.yaml")
            };
            for file in files.into_iter().filter(has_schema) {
                let problems = schema_errors(schema_of(dialect.name(), &file.document), &file.document);
                prop_assert!(problems.is_empty(), "{}: {problems:#?}\n{:#}", dialect.name(), file.document);
            }
        }
    }
}

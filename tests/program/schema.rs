//! The published schemas, held against what the program really reads and writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{Project, Ran};
use practicum::schema;
use serde_json::{Value, json};

const OUTPUTS: [&str; 34] = [
    "summary",
    "run",
    "checks",
    "facts",
    "digest",
    "events",
    "check",
    "list",
    "grade",
    "regrade",
    "runs",
    "trend",
    "audit",
    "labels",
    "labels-to-fill",
    "calibrate",
    "export-trials",
    "export-checks",
    "power",
    "compare",
    "compare-texts",
    "route",
    "diagnose",
    "ablate",
    "call",
    "noise",
    "baseline",
    "versions",
    "version-score",
    "blind",
    "suggest",
    "improve",
    "propose",
    "capture",
];

#[test]
fn every_schema_is_itself_valid() {
    for name in schema::names() {
        let schema = schema::schema(name).expect("a schema");
        if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
            panic!("{name}: {error} at {}", error.instance_path());
        }
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        assert!(schema["title"].as_str().is_some_and(|title| !title.is_empty()), "{name}");
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
    }
}

/// An editor shows these sentences to those who write the files.
#[test]
fn every_key_that_people_write_is_explained() {
    for name in schema::names().into_iter().filter(|name| !OUTPUTS.contains(name)) {
        explained(name, schema::schema(name).expect("a schema"));
    }
}

fn explained(name: &str, schema: &Value) {
    match schema {
        Value::Object(map) => {
            // Conditions on a mapping repeat its keys; only where it is said what it is, they are explained.
            let is_mapping = map.get("type").is_some_and(|kind| kind.to_string().contains("object"));
            let keys = map.get("properties").and_then(Value::as_object).filter(|_| is_mapping);
            for (key, shape) in keys.into_iter().flatten() {
                let doc = shape["description"].as_str().unwrap_or_default();
                assert!(doc.ends_with('.') && doc.len() > 8, "{name}: {key}: {doc:?}");
            }
            map.values().for_each(|inner| explained(name, inner));
        }
        Value::Array(items) => items.iter().for_each(|inner| explained(name, inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a reader of JSON is promised does not change by accident.
#[test]
fn every_output_says_its_version() {
    for name in OUTPUTS {
        let schema = schema::schema(name).expect("a schema");
        // Only the first line of the log says it, for all the others.
        let object = if name == "events" { &schema["oneOf"][0] } else { schema };
        let version = if name == "labels" { 2 } else { 1 };
        assert_eq!(object["properties"]["schema_version"]["const"], version, "{name}");
        let required = object["required"].as_array().expect("a list");
        assert!(required.contains(&json!("schema_version")), "{name}");
    }
}

#[test]
fn the_command_lists_and_prints_them() {
    let project = Project::new(&[]);
    let listed = project.run(&["schema"]).exits(0).stdout;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, schema::names());
    for name in names {
        let ran = project.run(&["schema", name]).exits(0);
        assert_eq!(Some(&ran.json()), schema::schema(name));
        assert_eq!(ran.stderr, "");
    }
    let ran = project.run(&["schema", "nativ"]).exits(2);
    assert!(ran.stderr.contains("'native'"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
}

/// Every eval file of the examples and fixtures that the program takes, and every script.
#[test]
fn the_files_that_are_read_fit_their_schemas() {
    let project = Project::new(&[]);
    for folder in ["examples", "tests/fixtures"] {
        let from = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
        let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(project.path()).status();
        assert!(copied.expect("cp").success());
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut fits = |name: &str, path: &Path| {
        let schema = schema::schema(name).expect("a schema");
        let document = data(path);
        if let Err(error) = jsonschema::draft202012::validate(schema, &document) {
            panic!("{}: {error} at {}", path.display(), error.instance_path());
        }
        *seen.entry(name.to_owned()).or_default() += 1;
    };
    let checked = project.run(&["check", ".", "--json"]).json();
    for file in checked["files"].as_array().expect("files").iter().filter(|file| file["ok"] == true) {
        let path = PathBuf::from(file["path"].as_str().expect("a path"));
        // Of an eval that is a folder, the schema describes one file.
        let inside = ["case.yaml", "criteria.json", "eval.yaml"].map(|name| path.join(name));
        let path = match path.is_dir() {
            true => inside.into_iter().find(|file| file.is_file()),
            false => Some(path),
        };
        let Some(path) = path else { continue };
        let triggers = data(&path)[0].get("should_trigger").is_some();
        fits(if triggers { "triggers" } else { file["dialect"].as_str().expect("a name") }, &path);
    }
    for entry in ignore::Walk::new(project.path()).flatten() {
        if entry.file_name() == "script.yaml" {
            fits("script", entry.path());
        }
    }
    let formats = practicum::dialects::dialect_names().into_iter().chain(["triggers", "script"]);
    // These two are recognised only to be refused.
    let formats = formats.filter(|name| !["harbor", "skill-validator"].contains(name));
    let missing: Vec<&str> = formats.filter(|name| !seen.contains_key(*name)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "{seen:?}");
}

/// A file's data, JSON or YAML.
fn data(path: &Path) -> Value {
    let mut diagnostics = practicum::model::Diagnostics::default();
    let (_, source) = practicum::tree::SourceFile::read(path, &mut diagnostics);
    source.unwrap_or_else(|| panic!("{}: {diagnostics:?}", path.display())).root.to_value()
}

/// A schema that takes only the keys it lists. The published ones take more, because later versions
/// of the program may say more; what it says today must all be listed.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut map: serde_json::Map<String, Value> =
                map.iter().map(|(key, inner)| (key.clone(), closed(inner))).collect();
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            Value::Object(map)
        }
        Value::Array(items) => items.iter().map(closed).collect(),
        other => other.clone(),
    }
}

struct Validators(BTreeMap<&'static str, jsonschema::Validator>);

impl Validators {
    fn new() -> Self {
        let build = |name| {
            let schema = closed(schema::schema(name).expect("a schema"));
            (name, jsonschema::draft202012::new(&schema).expect("a validator"))
        };
        Self(OUTPUTS.into_iter().map(build).collect())
    }

    #[track_caller]
    fn holds(&self, name: &str, document: &Value) {
        let errors: Vec<String> = self.0[name]
            .iter_errors(document)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}\n{document:#}");
    }

    /// Everything that a run wrote.
    fn hold(&self, ran: &Ran, folder: &Path) {
        self.holds("summary", &ran.json());
        assert_eq!(read(&folder.join("summary.json")), ran.json());
        self.holds("run", &read(&folder.join("run.json")));
        let log = std::fs::read_to_string(folder.join("events.jsonl")).expect("a log");
        for line in log.lines() {
            self.holds("events", &serde_json::from_str(line).expect("JSON"));
        }
        assert!(log.lines().next().is_some_and(|first| first.contains("\"schema_version\":1")), "{log}");
        let trials: Vec<PathBuf> = std::fs::read_dir(folder.join("trials"))
            .expect("trials")
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.join("checks.json").exists())
            .collect();
        assert!(!trials.is_empty());
        for trial in trials {
            self.holds("checks", &read(&trial.join("checks.json")));
            self.holds("facts", &read(&trial.join("facts.json")));
            self.holds("digest", &read(&trial.join("digest.json")));
        }
    }
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

const EVALS: &str = r#"
practicum: 1
run: { agents: [builtin], script: script.yaml, repeat: 2, timeout: 1m }
gates: { pass_rate: 0.1, mean_score: 0.1, f1: 0.5 }
cases:
  - id: passes
    prompt: Say hello.
    checks:
      - contains: hello
      - judge: { statement: It greets., scale: 1-5 }
  - id: fails
    prompt: Say goodbye.
    checks: [{ contains: goodbye }, { judge: It takes its leave. }]
  - id: breaks
    prompt: Say nothing.
    checks: [{ contains: nothing }]
  - id: skipped
    prompt: Say hello.
    setup: exit 3
    checks: [{ contains: hello }]
"#;

const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - { when: hello, steps: [hello] }
  - { when: goodbye, steps: [hello] }
  - { when: nothing, steps: [{ error: 401 }] }
  - to: judge
    when: It greets.
    steps:
      - tools: &marks
          - name: report_marks
            input: { results: [{ id: judge-it-greets, score: 4, evidence: [hello, moon], reasoning: It does., weak: Anyone would. }] }
      - tools: *marks
  - to: judge
    steps: [I cannot say.]
"#;

/// Trials that pass, fail, break and are skipped; verdicts with and without scores, flags and quotes.
#[test]
fn what_a_run_writes_is_as_published() {
    let validators = Validators::new();
    for args in [&["--trust"] as &[&str], &["--no-judge", "--trust", "--case", "passes"]] {
        let project = Project::new(&[("a.practicum.yaml", EVALS), ("script.yaml", SCRIPT)]);
        let ran = project.run(&[&["run", "a.practicum.yaml", "--json"], args].concat()).exits(3);
        validators.hold(&ran, &project.only_run());

        // Graded again, with one check gone, one new and one changed.
        let evals = EVALS
            .replace("contains: goodbye", "contains: hello")
            .replace("- contains: hello", "- contains: moon");
        project.write("a.practicum.yaml", &evals);
        let ran = project.run(&["grade", "latest", "--json"]).exits(1);
        let document = ran.json();
        validators.holds("regrade", &document);
        let folder = project.path().join(".practicum/runs").join(document["run"].as_str().expect("an id"));
        assert_eq!(read(&folder.join("changes.json")), document);
        let summary = Ran { stdout: document["summary"].to_string(), ..ran };
        validators.hold(&summary, &folder);
        let args = ["grade", "--output", "script.yaml", "--spec", "a.practicum.yaml", "--judge", "--json"];
        let scripted = ["--script", "script.yaml"];
        validators.holds("grade", &project.run(&[&args[..], &scripted].concat()).json());
    }
}

#[test]
fn what_check_and_list_print_is_as_published() {
    let validators = Validators::new();
    let project = Project::new(&[
        ("a.practicum.yaml", EVALS),
        ("script.yaml", SCRIPT),
        ("broken/evals.json", r#"{"evals": [{"id": 1, "prompt": 3}], "evil": true}"#),
        ("unknown/evals.json", r#"{"a": 1}"#),
        ("torn/evals.json", "{"),
    ]);
    validators.holds("check", &project.run(&["check", ".", "--json"]).exits(2).json());
    validators.holds("list", &project.run(&["list", ".", "--json"]).exits(2).json());
    validators.holds("list", &project.run(&["list", "a.practicum.yaml", "--json"]).exits(0).json());
}

#[test]
fn what_is_told_of_many_runs_is_as_published() {
    let validators = Validators::new();
    let project = Project::new(&[("a.practicum.yaml", EVALS), ("script.yaml", SCRIPT)]);
    project.run(&["run", "a.practicum.yaml", "--trust"]).exits(3);
    validators.holds("runs", &project.run(&["runs", "--json"]).exits(0).json());
    validators.holds("trend", &project.run(&["trend", "mean_score", "--json"]).exits(0).json());
    let audited = project.run(&["audit", "--least", "1", "--json"]).exits(0).json();
    assert_ne!(audited["doubts"], json!([]));
    validators.holds("audit", &audited);
    for table in ["trials", "checks"] {
        let lines = project.run(&["export", "--table", table]).exits(0).stdout;
        assert_ne!(lines, "");
        for line in lines.lines() {
            validators.holds(&format!("export-{table}"), &serde_json::from_str(line).expect("JSON"));
        }
    }
}

#[test]
fn what_power_prints_is_as_published() {
    let validators = Validators::new();
    let project = Project::new(&[]);
    for args in [&["--effect", "0.3"] as &[&str], &["--cases", "3", "--effect", "0.05", "--spread", "0.4"]] {
        let ran = project.run(&[&["power", "--baseline", "0.5", "--json"], args].concat()).exits(0);
        validators.holds("power", &ran.json());
    }
}

//! Which specs clauditor loads, case by case, against which ones the dialect here reads.
//!
//! The cases are not part of this repository. `PRACTICUM_CONFORMANCE` names a JSON file
//! `{"cases": [{"id", "kind": "load", "input", "expected"}]}`; without it this test says so and checks
//! nothing. The rules themselves are guarded by the rows in `crates/evals/src/dialects/clauditor/tests.rs`.
//!
//! Answers that differ on purpose:
//!
//! | case | here | why |
//! |---|---|---|
//! | none | | |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::Project;
use serde_json::Value;

/// The cases of the table above.
const DIFFERENT: &[&str] = &[];

#[test]
fn specs_load_as_they_do_in_clauditor() {
    let Ok(path) = std::env::var("PRACTICUM_CONFORMANCE") else {
        println!("PRACTICUM_CONFORMANCE names no file of cases; nothing is checked");
        return;
    };
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let all = document["cases"].as_array().unwrap_or_else(|| panic!("{path} has no cases"));
    let cases: Vec<&Value> = all.iter().filter(|case| case["kind"] == "load").collect();
    let project = Project::new(&[]);
    let specs: Vec<PathBuf> = cases.iter().map(|case| lay_out(case, project.path())).collect();
    let seen = check(&project, &specs);
    let mut wrong = Vec::new();
    for (case, spec) in cases.iter().zip(&specs) {
        let id = text_of(case, "id");
        let expected = &case["expected"];
        let here = seen.get(spec).unwrap_or_else(|| panic!("{id}: nothing is said about {}", spec.display()));
        // A name that is null is the default one here.
        let name = expected["skill_name"].as_str().filter(|_| expected["ok"] == true);
        let same = here["ok"] == expected["ok"] && name.is_none_or(|name| here["suite"] == name);
        if same == DIFFERENT.contains(&id) {
            wrong.push(format!("{id}: {here} here, {expected}; {}", case["input"]));
        }
    }
    println!("load: {} of {} agree", cases.len() - wrong.len() - DIFFERENT.len(), cases.len());
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

fn text_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Writes the files of a case into a folder of its own, and gives the place of its spec.
fn lay_out(case: &Value, root: &Path) -> PathBuf {
    let input = &case["input"];
    let spec = root.join(text_of(case, "id")).join(text_of(input, "filename"));
    let folder = spec.parent().expect("a folder");
    std::fs::create_dir_all(folder).expect("create");
    let text = input["raw"].as_str().map_or_else(|| input["spec"].to_string(), str::to_owned);
    std::fs::write(&spec, text).expect("write");
    let above = folder.parent().expect("a folder above");
    for (key, place) in [("files", folder), ("files_outside_spec_dir", above)] {
        for (name, content) in input[key].as_object().into_iter().flatten() {
            let path = place.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("create");
            std::fs::write(path, content.as_str().unwrap_or_default()).expect("write");
        }
    }
    for name in input["dirs"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        std::fs::create_dir_all(folder.join(name)).expect("create");
    }
    for (name, target) in input["symlinks"].as_object().into_iter().flatten() {
        std::os::unix::fs::symlink(target.as_str().unwrap_or_default(), folder.join(name)).expect("link");
    }
    spec
}

/// What the program says about each file.
fn check(project: &Project, specs: &[PathBuf]) -> BTreeMap<PathBuf, Value> {
    let mut seen = BTreeMap::new();
    for some in specs.chunks(100) {
        let paths = some.iter().map(|path| path.to_str().expect("a path"));
        let args: Vec<&str> =
            ["check", "--dialect", "clauditor", "--json"].into_iter().chain(paths).collect();
        let document = project.run(&args).json();
        for file in document["files"].as_array().expect("files") {
            seen.insert(PathBuf::from(text_of(file, "path")), file.clone());
        }
    }
    seen
}

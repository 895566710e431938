//! The arrows of ARCHITECTURE.md: a module uses only what it may.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Who may use whom. Tests inside modules are not asked.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("tree", &["model"]),
    ("skill", &["model", "tree"]),
    ("lint", &["model", "tree", "skill"]),
    ("event", &["model"]),
    ("system_prompt", &["model"]),
    ("llm", &["model"]),
    ("checks", &["model", "tree"]),
    ("dialects", &["model", "tree", "skill", "checks", "own_files"]),
    ("project_files", &["skill"]),
    ("discover", &["model", "dialects", "skill", "tree"]),
    ("git_ref", &["skill"]),
    ("versions", &["model", "git_ref", "own_files", "project_files", "skill"]),
    ("first_evals", &["skill", "tree"]),
    ("suite_quality", &["model", "tree", "agents", "skill"]),
    ("builtin", &["model", "tree", "skill", "llm"]),
    ("agents", &["model", "skill", "builtin"]),
    ("settings", &["model", "tree", "agents"]),
    ("probe_diagnosis", &["model"]),
    ("plan", &["model", "probe_diagnosis", "settings", "options"]),
    ("own_files", &["model", "skill", "tree"]),
    ("stage", &["model", "own_files", "project_files", "skill"]),
    ("observe", &["model", "agents"]),
    ("gateway", &["model", "tree", "llm"]),
    ("sandbox", &["model", "agents"]),
    ("run", &["model", "stage", "agents", "observe", "sandbox"]),
    ("judge", &["model", "agents", "llm", "observe", "run", "checks"]),
    ("stats", &["model"]),
    ("aggregate", &["model", "stats"]),
    ("compare", &["model", "stats", "aggregate"]),
    ("reload_trial", &["model", "agents", "observe", "run", "stage", "store"]),
    ("grading", &["model", "gateway", "judge", "checks", "skill", "run"]),
    ("url_check", &["model", "checks"]),
    ("self_test", &["model", "grade_text", "grading", "suite_quality", "stage"]),
    (
        "grade_text",
        &["model", "aggregate", "gateway", "judge", "grading", "pipeline", "plan", "run", "checks"],
    ),
    ("testing", &["model", "grade_text", "run_setup", "plan", "report", "run", "settings", "session"]),
    ("trial_key", &["model", "agents", "dialects", "plan", "project_files", "skill", "stage"]),
    ("store", &["model", "event", "options"]),
    ("transcript", &["model", "agents", "store"]),
    (
        "report",
        &[
            "model",
            "own_files",
            "event",
            "stats",
            "compare",
            "store",
            "transcript",
            "tree",
            "skill",
            "lint",
            "versions",
        ],
    ),
    ("history", &["model", "own_files", "store"]),
    ("serve", &["model", "history", "stats", "store", "transcript", "run"]),
    (
        "pipeline",
        &[
            "model",
            "agents",
            "aggregate",
            "event",
            "gateway",
            "judge",
            "grading",
            "observe",
            "plan",
            "probe_diagnosis",
            "reload_trial",
            "run",
            "sandbox",
            "settings",
            "skill",
            "stage",
            "store",
            "versions",
            "url_check",
        ],
    ),
    (
        "run_setup",
        &[
            "model",
            "agents",
            "dialects",
            "discover",
            "gateway",
            "judge",
            "llm",
            "system_prompt",
            "own_files",
            "options",
            "pipeline",
            "plan",
            "project_files",
            "suite_quality",
            "sandbox",
            "settings",
            "skill",
            "stage",
            "store",
            "tree",
        ],
    ),
    ("options", &["model"]),
    (
        "session",
        &[
            "model",
            "agents",
            "dialects",
            "event",
            "gateway",
            "run_setup",
            "judge",
            "trial_key",
            "options",
            "own_files",
            "pipeline",
            "plan",
            "project_files",
            "run",
            "sandbox",
            "settings",
            "skill",
            "stage",
            "store",
            "versions",
            "url_check",
        ],
    ),
    (
        "improve",
        &[
            "model",
            "compare",
            "dialects",
            "gateway",
            "judge",
            "lint",
            "llm",
            "suite_quality",
            "report",
            "run",
            "self_test",
            "skill",
            "stage",
            "stats",
            "store",
            "tree",
            "versions",
        ],
    ),
    (
        "schema",
        &[
            "model", "compare", "dialects", "event", "gateway", "history", "improve", "report", "settings",
            "store", "versions",
        ],
    ),
];

/// Uses everything, and is used by nobody.
const TOP: &str = "cli";

#[test]
fn no_module_uses_one_it_may_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = std::fs::read_dir(root.join("crates")).expect("the crates").flatten();
    let sources = crates.map(|entry| entry.path().join("src")).chain([root.join("src")]);
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    let mut modules = BTreeSet::new();
    for source in sources {
        visit(&source, &mut |path| {
            let below = path.strip_prefix(&source).expect("below src");
            let module =
                below.components().next().expect("a name").as_os_str().to_string_lossy().replace(".rs", "");
            if ["main", "lib", TOP].contains(&module.as_str()) {
                return;
            }
            let text = std::fs::read_to_string(path).expect("source");
            for used in uses(&production(&text)) {
                let may = allowed.get(module.as_str()).is_some_and(|list| list.contains(&used.as_str()));
                if used != module && !may {
                    wrong.push(format!("{} uses {used}", below.display()));
                }
            }
            modules.insert(module);
        });
    }
    assert_eq!(wrong, [""; 0], "arrows that ARCHITECTURE.md does not list");
    let listed: BTreeSet<String> = MAY_USE.iter().map(|(module, _)| (*module).to_owned()).collect();
    assert_eq!(modules, listed, "every module stands in the table, and nothing else does");
}

/// Without test modules, which may use what they need.
fn production(text: &str) -> String {
    let until_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    until_tests.to_owned()
}

/// The modules that are named after `crate::` or after one of our crates, also in lists.
fn uses(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let of_this = text.match_indices("crate::").map(|(at, word)| at + word.len());
    let of_others = text.match_indices("practicum_").filter_map(|(at, _)| {
        let end = at + name_of(&text[at..]).len();
        text[end..].starts_with("::").then_some(end + 2)
    });
    for after in of_this.chain(of_others).map(|at| &text[at..]) {
        match after.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                let names = list.split(',').map(|item| name_of(item.trim()));
                found.extend(names.filter(|name| !name.is_empty()));
            }
            None => {
                found.insert(name_of(after));
            }
        }
    }
    found
}

fn name_of(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

fn visit(folder: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            // Whole folders that only tests use.
            if entry.file_name() != "testing" {
                visit(&path, each);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !["tests.rs", "samples.rs"].contains(&entry.file_name().to_string_lossy().as_ref())
        {
            each(&path);
        }
    }
}

#[test]
fn the_reader_of_arrows_sees_them() {
    let text = "use crate::model::{A, B};\nuse practicum_engine::{judge, score::x};\nlet y = crate::run::z();\n#[cfg(test)]\nmod tests {\nuse crate::cli;";
    let seen: Vec<String> = uses(&production(text)).into_iter().collect();
    assert_eq!(seen, ["judge", "model", "run", "score"]);
}

//! The order of modules in ARCHITECTURE.md: a module uses only modules below it.
//!
//! The compiler decides which crate may use which. These tests decide about the modules inside a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The modules of each crate, from the bottom to the top. A module may use those before it. Test modules are not read.
const LAYERS: &[(&str, &[&str])] = &[
    ("core", &["model", "tree", "event", "stats", "aggregate", "compare", "studies"]),
    ("skills", &["skill", "git_ref", "project_files", "own_files", "lint", "versions"]),
    (
        "evals",
        &[
            "checks",
            "url_check",
            "mocks",
            "dialects",
            "discover",
            "first_evals",
            "routing_prompts",
            "rewordings",
        ],
    ),
    ("agents", &["llm", "builtin", "agents", "gateway"]),
    ("engine", &["workspace", "plan", "store", "grade", "pipeline", "session"]),
    ("results", &["report", "serve"]),
    ("improve", &["improve"]),
    (
        "workers",
        &[
            "archive",
            "bundle",
            "messages",
            "server",
            "objects",
            "budget",
            "pauses",
            "shared_trial",
            "open_run",
            "coordinator",
            "worker_options",
            "task",
            "worker",
        ],
    ),
];

/// Arrows between crates that compile and still must not be there: a module, and what it may not use.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("report", &["grade", "pipeline", "session", "workspace"]),
    ("serve", &["grade", "pipeline", "session"]),
];

#[test]
fn no_module_uses_one_above_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let forbidden: BTreeMap<&str, &[&str]> = FORBIDDEN.iter().copied().collect();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (name, layers) in LAYERS {
        let source = crates.join(name).join("src");
        let mut modules = BTreeSet::new();
        visit(&source, &mut |path| {
            let below = path.strip_prefix(&source).expect("below src");
            let module =
                below.components().next().expect("a name").as_os_str().to_string_lossy().replace(".rs", "");
            if module == "lib" {
                return;
            }
            let place = layers.iter().position(|layer| *layer == module);
            let never = forbidden.get(module.as_str()).copied().unwrap_or_default();
            for used in uses(&production(&std::fs::read_to_string(path).expect("source"))) {
                let above = layers.iter().position(|layer| *layer == used).is_some_and(|at| Some(at) > place);
                if above || never.contains(&used.as_str()) {
                    wrong.push(format!("{name}: {} uses {used}", below.display()));
                }
            }
            modules.insert(module);
        });
        let listed: BTreeSet<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
        assert_eq!(modules, listed, "the table lists every module of {name}, and nothing else");
        seen.insert((*name).to_owned());
    }
    assert_eq!(wrong, [""; 0], "arrows that ARCHITECTURE.md does not allow");
    let folders = std::fs::read_dir(crates).expect("the crates").flatten();
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(seen, folders, "the table lists every crate");
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

/// Ways to read a file that wait for a pipe, never come to the end of a device, or have no limit.
const UNBOUNDED_READS: [&str; 4] =
    ["fs::read(", "fs::read_to_string(", "File::open(", "File::options().read("];

/// Files that may use them, each with what it reads.
const ALLOWED_READERS: &[(&str, &str)] = &[
    ("crates/agents/src/agents/testing.rs", "recorded streams, in tests"),
    ("crates/evals/src/checks/rule_tests.rs", "files of tests"),
    ("crates/engine/src/store/run_lock.rs", "a folder, to lock it"),
    ("crates/engine/src/workspace/run/control_group.rs", "files of the kernel"),
    ("crates/engine/src/workspace/run/proc_fs.rs", "files of the kernel"),
    ("crates/engine/src/workspace/stage/workspace_root.rs", "a folder that this program made"),
    ("src/cli/grade/output.rs", "what the user names, with a limit; it may be a pipe"),
    ("src/cli/interrupts.rs", "a file of the kernel"),
];

/// Files come from strangers, so they are opened by `crates/core/src/tree/regular_file.rs`.
#[test]
fn files_are_read_by_the_bounded_reader() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut unbounded = BTreeSet::new();
    for folder in ["crates", "src"] {
        visit(&root.join(folder), &mut |path| {
            let name = path.strip_prefix(root).expect("below the root").display().to_string();
            if name.starts_with("crates/") && !name.contains("/src/") || name.contains("/tests/") {
                return;
            }
            let text = production(&std::fs::read_to_string(path).expect("source"));
            if UNBOUNDED_READS.iter().any(|read| text.contains(read)) {
                unbounded.insert(name);
            }
        });
    }
    let allowed: BTreeSet<String> = ALLOWED_READERS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(unbounded, allowed, "use read_bounded, read_regular or open_regular of practicum_core::tree");
}

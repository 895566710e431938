//! Every command of README and docs, run as a reader would run it: without a network, in a copy of
//! the example that its block names.
//!
//! A comment before each shell block says where it runs and how each of its lines ends:
//! `<!-- in: examples/skillet, exits: 0 -->`. What needs a model, a vendor's program or a CI machine
//! is no shell block.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::Ran;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// How many blocks run at once: trials wait more than they compute.
const AT_ONCE: usize = 4;

#[derive(Debug, PartialEq)]
struct Block {
    /// The file and line at which it begins.
    place: String,
    /// Relative to the repository.
    folder: String,
    exits: i32,
    lines: Vec<String>,
}

/// The README and the pages.
fn pages() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(Path::new(ROOT).join("docs")).expect("docs").flatten();
    let mut pages: Vec<PathBuf> = docs
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.push(Path::new(ROOT).join("README.md"));
    pages.sort();
    pages
}

/// The shell blocks of a page, or what is wrong with one.
fn blocks(page: &str, text: &str) -> Result<Vec<Block>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with("```sh")) {
        let place = format!("{page}:{}", at + 1);
        let comment = at.checked_sub(1).map_or("", |before| lines[before]);
        let (folder, exits) =
            message(comment).ok_or_else(|| format!("{place}: no comment says where it runs"))?;
        let inside = lines[at + 1..].iter().take_while(|line| !line.starts_with("```"));
        let inside: Vec<String> = inside.map(|line| (*line).to_owned()).collect();
        if let Some(line) = inside.iter().find(|line| command(line).is_none()) {
            return Err(format!("{place}: {line:?} is no command of ours"));
        }
        blocks.push(Block { place, folder, exits, lines: inside });
    }
    Ok(blocks)
}

/// What the comment before a block says.
fn message(comment: &str) -> Option<(String, i32)> {
    let (folder, exits) = comment.strip_prefix("<!-- in: ")?.strip_suffix(" -->")?.split_once(", exits: ")?;
    Some((folder.to_owned(), exits.parse().ok()?))
}

/// The line as a shell runs it that has `practicum` on its path.
fn command(line: &str) -> Option<String> {
    match line.strip_prefix("cargo run --release -- ") {
        Some(arguments) => Some(format!("practicum {arguments}")),
        None => line.starts_with("practicum ").then(|| line.to_owned()),
    }
}

/// Runs a block's lines in order, and gives what did not end as it says.
fn run(block: &Block) -> Vec<String> {
    let scratch = tempfile::tempdir().expect("a folder");
    let copied = Command::new("cp").arg("-r").arg(format!("{ROOT}/examples")).arg(scratch.path()).status();
    assert!(copied.expect("cp").success());
    let programs = Path::new(env!("CARGO_BIN_EXE_practicum")).parent().expect("a folder");
    let mut problems = Vec::new();
    for line in &block.lines {
        let output = Command::new("sh")
            .arg("-c")
            .arg(command(line).expect("a command of ours"))
            .current_dir(scratch.path().join(&block.folder))
            .env_clear()
            .env("HOME", scratch.path())
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .output();
        let ran = Ran::of(output.expect("sh starts"));
        if ran.code != block.exits {
            let (code, wanted) = (ran.code, block.exits);
            problems.push(format!(
                "{}: {line}\nexits {code}, not {wanted}\n{}{}",
                block.place, ran.stdout, ran.stderr
            ));
        }
    }
    problems
}

#[test]
fn every_command_does_what_its_page_says() {
    let all: Vec<Block> = pages()
        .iter()
        .flat_map(|page| {
            let text = std::fs::read_to_string(page).expect("a page");
            let name = page.strip_prefix(ROOT).expect("a page of ours").display().to_string();
            blocks(&name, &text).unwrap_or_else(|wrong| panic!("{wrong}"))
        })
        .collect();
    assert!(all.len() > pages().len(), "hardly a page has no command: {}", all.len());
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(block) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    problems.lock().expect("no panic").extend(run(block));
                }
            });
        }
    });
    let problems = problems.into_inner().expect("no panic");
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn every_format_has_its_page_and_every_page_is_in_the_index() {
    let index = std::fs::read_to_string(format!("{ROOT}/docs/README.md")).expect("the index");
    let book = std::fs::read_to_string(format!("{ROOT}/docs/SUMMARY.md")).expect("the contents of the book");
    let for_models = std::fs::read_to_string(format!("{ROOT}/docs/llms.txt")).expect("the index for models");
    for page in pages() {
        let name = page.file_name().expect("a name").to_string_lossy().into_owned();
        let is_contents = name == "README.md" || name == "SUMMARY.md";
        assert!(is_contents || index.contains(&format!("({name})")), "{name} is not in the index");
        assert!(is_contents || book.contains(&format!("({name})")), "{name} is not in the book");
        assert!(is_contents || for_models.contains(&format!("({name})")), "{name} is not in llms.txt");
    }
    for dialect in practicum::dialects::DIALECTS {
        assert!(Path::new(ROOT).join(format!("docs/{}.md", dialect.name())).is_file(), "{}", dialect.name());
    }
}

/// A link to a page or a file of this repository leads somewhere.
#[test]
fn every_link_leads_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().expect("a first part");
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let path = page.parent().expect("a folder").join(file);
            assert!(path.exists(), "{}: {target} is not there", page.display());
        }
    }
}

#[test]
fn a_block_that_cannot_be_run_is_refused() {
    for (text, message) in [
        ("```sh\npracticum run\n```", "a.md:1: no comment"),
        ("words\n```sh\npracticum run\n```", "a.md:2: no comment"),
        ("<!-- in: examples -->\n```sh\npracticum run\n```", "a.md:2: no comment"),
        ("<!-- in: examples, exits: no -->\n```sh\npracticum run\n```", "a.md:2: no comment"),
        ("<!-- in: examples, exits: 0 -->\n```sh\nrm -r x\n```", "\"rm -r x\" is no command of ours"),
    ] {
        let wrong = blocks("a.md", text).expect_err(text);
        assert!(wrong.contains(message), "{wrong}");
    }
    let text =
        "<!-- in: examples/bmad, exits: 3 -->\n```sh\npracticum run\ncargo run --release -- list\n```\nwords";
    let block = Block {
        place: "a.md:2".to_owned(),
        folder: "examples/bmad".to_owned(),
        exits: 3,
        lines: vec!["practicum run".to_owned(), "cargo run --release -- list".to_owned()],
    };
    assert_eq!(blocks("a.md", text), Ok(vec![block]));
}

#[test]
fn every_settings_file_that_is_shown_is_understood() {
    let mut shown = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for block in text.split("\n```toml\n").skip(1) {
            let toml = block.split("\n```").next().expect("its end");
            let project = crate::common::Project::new(&[("practicum.toml", toml)]);
            let ran = project.run(&["doctor"]).exits(0);
            assert!(ran.stdout.starts_with("✓ project "), "{}:\n{}", page.display(), ran.stdout);
            shown += 1;
        }
    }
    assert!(shown > 0);
}

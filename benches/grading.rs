//! Measures grading a long text, against clauditor on the same spec and text.
//!
//! Run with `cargo bench --bench grading`. Whole commands are measured: `practicum grade --output` and `clauditor
//! validate --output`, alternately, because machines are noisy; only the ratio means anything. clauditor is
//! installed once into a cache outside this tree (PRACTICUM_BENCH_CACHE gives the folder). If that is not
//! possible, this program is measured alone, and the output says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

const CLAUDITOR: &str = "clauditor-eval==0.1.3";
const ASSERTIONS: usize = 100;
const BYTES: usize = 5 * 1024 * 1024;
const ROUNDS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = folder.path().join(".claude/commands");
    std::fs::create_dir_all(&commands).expect("create");
    let (text, lines) = text();
    std::fs::write(folder.path().join("out.md"), &text).expect("write");
    std::fs::write(commands.join("venues.md"), "# Venues\n").expect("write");
    std::fs::write(commands.join("venues.eval.json"), spec(lines).to_string()).expect("write");

    let theirs = clauditor();
    let (mut alone, mut ratios) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let ours = measure(&mut grade(folder.path(), "out.md", ".claude/commands/venues.eval.json"));
        alone.push(ours * 1000.0);
        let Some(program) = &theirs else {
            println!("round {round}: practicum {ours:.3} s");
            continue;
        };
        let mut command = Command::new(program);
        command.args(["validate", ".claude/commands/venues.md", "--output", "out.md"]);
        let their = measure(command.current_dir(folder.path()));
        println!("round {round}: practicum {ours:.3} s, clauditor {their:.3} s, {:.1} times", their / ours);
        ratios.push(their / ours);
    }
    println!("{ASSERTIONS} assertions over {BYTES} bytes: median {:.0} ms", median(&mut alone));
    if !ratios.is_empty() {
        println!("clauditor takes {:.1} times as long (median)", median(&mut ratios));
    }
    catastrophic(folder.path());
}

/// Measures patterns that make a backtracking regex engine run almost forever.
fn catastrophic(folder: &Path) {
    for pattern in ["(a+)+$", "(?=a)(a+)+$"] {
        let spec = json!({"assertions": [{"id": "a", "type": "regex", "pattern": pattern}]});
        std::fs::write(folder.join("hard.eval.json"), spec.to_string()).expect("write");
        std::fs::write(folder.join("hard.txt"), "a".repeat(40) + "b").expect("write");
        let mut times: Vec<f64> =
            (0..ROUNDS).map(|_| measure(&mut grade(folder, "hard.txt", "hard.eval.json")) * 1000.0).collect();
        println!("{pattern} on 40 a's and a b: median {:.0} ms", median(&mut times));
    }
}

fn grade(folder: &Path, output: &str, spec: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_practicum"));
    command.args(["grade", "--output", output, "--spec", spec, "--json"]).current_dir(folder);
    command
}

/// Measures the seconds of a whole command, whatever its result.
fn measure(command: &mut Command) -> f64 {
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let took = started.elapsed().as_secs_f64();
    assert!(status.expect("starts").code().is_some());
    took
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Gives the program to compare with, and installs it if necessary.
fn clauditor() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let own = std::env::var_os("PRACTICUM_BENCH_CACHE").map(PathBuf::from);
    let venv = own.or_else(|| Some(cache?.join("practicum-bench")))?.join(CLAUDITOR.replace("==", "-"));
    let program = venv.join("bin/clauditor");
    let run = |program: &Path, args: &[&str]| {
        Command::new(program).args(args).status().is_ok_and(|status| status.success())
    };
    let folder = venv.to_string_lossy().into_owned();
    let there = program.exists()
        || run(Path::new("python3"), &["-m", "venv", &folder])
            && run(&venv.join("bin/pip"), &["install", "--quiet", CLAUDITOR]);
    if !there {
        println!("{CLAUDITOR} cannot be installed here: nothing to compare with");
    }
    there.then_some(program)
}

/// Writes lines like those of a skill that looks for venues. Gives the text and the number of lines.
fn text() -> (String, usize) {
    let words = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "release", "notes", "total"];
    let (mut text, mut line) = (String::new(), 0);
    while text.len() < BYTES {
        line += 1;
        text.push_str(&format!(
            "- **{line}. Venue {line}** at https://venue{line}.example.org/page, call (408) 555-{:04}, mail v{line}@example.org, ${}.50 on 2026-{:02}-{:02}:",
            line % 10_000,
            line % 900,
            line % 12 + 1,
            line % 28 + 1
        ));
        (0..12).for_each(|word| {
            text.push(' ');
            text.push_str(words[(line * 7 + word * word) % words.len()]);
        });
        text.push('\n');
    }
    (text, line)
}

/// Makes a spec with every kind of assertion that needs no network.
fn spec(lines: usize) -> Value {
    let formats = [
        "phone_us",
        "email",
        "url",
        "domain",
        "date_iso",
        "currency_usd",
        "zip_us",
        "percentage",
        "ipv4",
        "uuid",
    ];
    let assertions: Vec<Value> = (0..ASSERTIONS)
        .map(|number| {
            let (kind, turn) = (number % 10, number / 10);
            let late = lines - turn;
            let mut assertion = match kind {
                0 => json!({"type": "contains", "needle": format!("Venue {late}**")}),
                1 => json!({"type": "not_contains", "needle": format!("Traceback {turn}")}),
                2 => json!({"type": "regex", "pattern": format!(r"Venue {late}\*\* at https://\S+, call \(\d+\)")}),
                3 => json!({"type": "min_count", "pattern": r"\b(?:fox|dog|total)\b", "count": 1000 + turn}),
                4 => json!({"type": "min_length", "length": 500 + turn}),
                5 => json!({"type": "max_length", "length": 10_000_000 + turn}),
                6 => json!({"type": "has_urls", "count": 100 + turn}),
                7 => json!({"type": "has_entries", "count": 100 + turn}),
                8 => json!({"type": "has_format", "format": formats[turn], "count": 1}),
                _ => json!({"type": "regex", "pattern": format!(r"(?i)VENUE{late}\.example\.org(?=/page)")}),
            };
            assertion["id"] = json!(format!("a{number:03}"));
            assertion
        })
        .collect();
    json!({"skill_name": "venues", "test_args": "", "assertions": assertions})
}

//! The inputs that random changes begin with: files of this repository, and what once broke a reader.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file: its path below the place where it was found, and its content.
pub type Seed = (PathBuf, Vec<u8>);

/// The largest seed. Most of the fixtures are smaller, and small inputs are read more often.
const LARGEST_SEED: usize = 8 * 1024;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Gives the small files below a folder with one of these endings, in a fixed order, with their paths below `root`.
pub fn files_below(root: &Path, folder: &str, endings: &[&str]) -> Vec<Seed> {
    let mut found = all_files_below(root, folder, endings);
    found.retain(|(_, bytes)| bytes.len() <= LARGEST_SEED);
    found
}

fn all_files_below(root: &Path, folder: &str, endings: &[&str]) -> Vec<Seed> {
    let mut folders = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() && (endings.is_empty() || endings.contains(&ending)) => {
                    let name = path.strip_prefix(root).expect("below").to_owned();
                    if let Ok(bytes) = std::fs::read(&path) {
                        found.push((name, bytes));
                    }
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.sort();
    found
}

/// Gives the files of the repository's fixtures and examples with these endings.
pub fn of_repository(endings: &[&str]) -> Vec<Seed> {
    let folders = ["tests/fixtures", "examples"];
    folders.iter().flat_map(|folder| files_below(repository(), folder, endings)).collect()
}

/// Adds what once broke a reader. The first line of such a file is the path of its seed.
pub fn with_found(reader: &str, mut seeds: Vec<Seed>) -> Vec<Seed> {
    for (_, bytes) in all_files_below(repository(), &format!("fuzz/found/{reader}"), &[]) {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        let path = PathBuf::from(String::from_utf8_lossy(&bytes[..end]).into_owned());
        seeds.push((path, bytes.get(end + 1..).unwrap_or_default().to_vec()));
    }
    seeds
}

/// Copies the fixtures and examples into a folder, for readers that look at the files beside an input.
pub fn copy_of_repository(scratch: &Path) -> Vec<Seed> {
    let seeds = of_repository(&["json", "yaml", "jsonl", "md", "toml", "txt", "csv"]);
    for (path, bytes) in &seeds {
        put(scratch, path, bytes);
    }
    seeds
}

/// Writes a file with its folders.
pub fn put(scratch: &Path, path: &Path, bytes: &[u8]) {
    let path = scratch.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
    std::fs::write(path, bytes).expect("written");
}

/// Makes a run and gives all files of its record, below `scratch/.practicum/runs/RUN`.
pub fn record_of_run(scratch: &Path) -> Vec<Seed> {
    let evals = "practicum: 1\nworkspace: empty\nrun: { agents: [own] }\ncases:\n  - { id: a, prompt: p, checks: [{ contains: done }] }\n  - { id: b, prompt: q, checks: [{ contains: nothing }, { judge: It is polite. }] }\n";
    put(scratch, Path::new("evals/e.practicum.yaml"), evals.as_bytes());
    let agent = "echo '{\"type\":\"start\",\"schema_version\":1,\"skills\":[]}'; echo '{\"type\":\"text\",\"text\":\"done\"}'; echo x > made.txt; echo '{\"type\":\"end\",\"ending\":\"finished\"}'";
    let settings = format!(
        "sandbox = \"off\"\n[agents.own]\ndecoder = \"practicum-jsonl\"\ncommand = [\"/bin/sh\", \"-c\", {}]\n",
        serde_json::Value::from(agent)
    );
    put(scratch, Path::new("practicum.toml"), settings.as_bytes());
    let mut command = Command::new(env!("CARGO_BIN_EXE_practicum"));
    command.current_dir(scratch).env_clear().env("HOME", scratch).env("PATH", "/usr/bin:/bin");
    command.env("PRACTICUM_TRUST", "settings").args(["run", "evals", "--no-judge"]);
    let output = command.output().expect("practicum starts");
    assert!(scratch.join(".practicum/runs").is_dir(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut runs = std::fs::read_dir(scratch.join(".practicum/runs")).expect("runs").flatten();
    // A name that is the same in every run, so that inputs can be read again later.
    let run = scratch.join(".practicum/runs/20260101-000000000-abcdef");
    std::fs::rename(runs.next().expect("a run").path(), &run).expect("renamed");
    let label = r#"{"schema_version":1,"at":"2026-01-01T00:00:00Z","trial":"a-1","check":"c","judge_passed":true,"agrees":false}"#;
    std::fs::write(run.join("labels.jsonl"), label).expect("written");
    files_below(scratch, ".practicum/runs", &[])
}

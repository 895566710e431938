//! Reports of stored runs: what they count, what they are shaped like, and that no text breaks them.

#[path = "../common/mod.rs"]
mod common;

mod command;
mod counts;
mod findings;
mod foreign;
mod hostile;
mod versions;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::Project;
use serde_json::Value;

/// Says what its skill says, activates the skill if the prompt says fire or asks for it, and never ends if it
/// says hang.
const AGENT: &str = r#"
said=nothing
skill=$(ls .agents/skills 2>/dev/null | head -1)
if [ -n "$skill" ]; then said=$(tail -1 ".agents/skills/$skill/SKILL.md"); seen="\"$skill\""; fi
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[$seen]}"
case "$1" in
  *hang*) sleep 60 ;;
  *fire* | 'Use the skill'*) if [ -n "$skill" ]; then echo "{\"type\":\"skill\",\"name\":\"$skill\"}"; fi ;;
esac
echo "{\"type\":\"text\",\"text\":\"$said\"}"
echo '{"type":"end","ending":"finished"}'
"#;

/// Something of every kind: passed, failed, out of time, fired where it should not, silent where it
/// should not be, with the skill and without.
const EVALS: &str = "\
practicum: 1
skill: ../gull
workspace: empty
run: { agents: [own], repeat: 2, arms: [with, without] }
gates: { pass_rate: 0.7 }
cases:
  - { id: says, prompt: speak and fire, activation: must, checks: [{ contains: kee-ow }] }
  - { id: fails, prompt: speak, checks: [{ contains: never said }, { contains: kee, required: false }] }
  - { id: slow, prompt: hang, timeout: 500ms, checks: [{ contains: kee-ow }] }
  - { id: missed, prompt: quiet, note: It should have woken up., activation: must }
  - { id: noisy, prompt: fire, activation: must_not }
  - { id: left-alone, prompt: nothing, activation: must_not }
  - { id: whatever, prompt: perhaps fire, activation: either, checks: [{ contains: kee }] }
";

fn project() -> Project {
    let project = Project::new(&[
        ("gull/SKILL.md", "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\n\nkee-ow\n"),
        ("evals/mixed.practicum.yaml", EVALS),
        ("agent.sh", AGENT),
    ]);
    own_agent(&project, "practicum-jsonl");
    project
}

fn own_agent(project: &Project, decoder: &str) {
    let path = project.path().join("agent.sh");
    let agent = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"{decoder}\"\n",
        path.display()
    );
    project.write("practicum.toml", &agent);
}

fn read(project: &Project, path: &str) -> String {
    std::fs::read_to_string(project.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json(project: &Project, path: &str) -> Value {
    serde_json::from_str(&read(project, path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a folder whose names end so, in order.
fn files(project: &Project, folder: &str, ending: &str) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(project.path().join(folder)).standard_filters(false).build();
    let mut found: Vec<PathBuf> = walk
        .flatten()
        .map(ignore::DirEntry::into_path)
        .filter(|path| path.is_file() && path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    found
}

/// What Python, which shares no code with us, makes of a report.
fn by_python(program: &str, input: &str) -> Value {
    use std::io::Write;
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    python.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    let output = python.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "python3 could not read it");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const CSV_TO_JSON: &str = "\
import csv, io, json, sys
csv.field_size_limit(10**9)
text = sys.stdin.buffer.read().decode('utf-8')
print(json.dumps(list(csv.DictReader(io.StringIO(text, newline='')))))";

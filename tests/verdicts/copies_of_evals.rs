//! Copies of evals that another program packed or converted are not shown to an agent.

use std::process::Command;

use serde_json::json;

use crate::common::Project;

/// Lists the files of its workspace.
const AGENT: &str = r#"
echo '{"type":"start","schema_version":1,"skills":["brief"]}'
echo "{\"type\":\"text\",\"text\":\"$(find . -type f | sort | tr '\n' ' ')\"}"
echo '{"type":"end","ending":"finished"}'
"#;

const PROMPT: &str = "Run headless. Create a product brief for a bicycle shop in Lyon";
const EXPECTATION: &str = "The decision log captures the pricing decision with its rationale";

fn project() -> Project {
    let evals = json!({"evals": [{"id": "A1", "prompt": PROMPT, "expectations": [EXPECTATION]}]});
    let project = Project::new(&[
        ("skills/brief/SKILL.md", "---\nname: brief\ndescription: Writes briefs.\n---\nDo.\n"),
        ("evals/brief/evals.json", &evals.to_string()),
        ("evals/brief/triggers.json", r#"[{"query": "A brief, please", "should_trigger": true}]"#),
        ("docs/guide.md", "# Guide\n"),
        ("agent.sh", AGENT),
    ]);
    let agent = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            agent.display()
        ),
    );
    project
}

/// Makes files with Python, in the folder of the project.
fn python(project: &Project, program: &str) {
    let made = Command::new("python3").args(["-c", program]).current_dir(project.path()).status();
    assert!(made.is_ok_and(|made| made.success()), "{program}");
}

/// Runs the artifact eval; gives what the run said, and the files of the workspace.
fn run(project: &Project) -> (String, String) {
    let ran = project.run(&["run", "evals/brief/evals.json", "--agent", "own", "--no-judge", "--no-cache"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
    let latest = runs.map(|run| run.path()).max().expect("a run");
    let trial = std::fs::read_dir(latest.join("trials")).expect("trials").flatten().next().expect("a trial");
    let staged = std::fs::read_to_string(trial.path().join("output.txt")).expect("an output");
    assert!(staged.contains("./docs/guide.md"), "{staged}");
    (ran.stderr, staged)
}

#[test]
fn an_archive_in_an_archive_does_not_show_an_agent_its_answers() {
    let project = project();
    python(
        &project,
        "
import gzip, io, os, tarfile, zipfile
def zipped(name, content):
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return made.getvalue()
def tarred(name, content):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode='w:gz') as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()
def write(name, content):
    with open('docs/' + name, 'wb') as out:
        out.write(content)
evals = open('evals/brief/evals.json', 'rb').read()
write('copy-1.zip', zipped('in.zip', zipped('e.json', evals)))
write('copy-2.tgz', tarred('in.zip', zipped('in.tgz', tarred('e.json', evals))))
write('copy-3.gz', gzip.compress(gzip.compress(evals)))
write('copy-4.zip', zipped('e.json.gz', gzip.compress(gzip.compress(evals))))
write('other.zip', zipped('in.zip', zipped('w.txt', b'The weather.')))
",
    );
    let (_, staged) = run(&project);
    assert!(!staged.contains("copy"), "{staged}");
    assert!(staged.contains("./docs/other.zip"), "{staged}");
}

/// Such an archive is left out only if it may hold evals, and what is staged does not depend on reports beside it.
#[test]
fn an_archive_that_cannot_be_looked_into_does_not_show_an_agent_its_answers() {
    let project = project();
    python(
        &project,
        "
import bz2, lzma, os, tarfile, zipfile
os.mkdir('data')
def pack(name, kind):
    with tarfile.open(name, 'w:' + kind) as archive:
        archive.add('evals')
pack('beside.tar.bz2', 'bz2')
pack('data/my-evals.tar.xz', 'xz')
with zipfile.ZipFile('beside.zip', 'w', zipfile.ZIP_LZMA) as archive:
    archive.write('evals/brief/evals.json')
inner = bz2.compress(open('evals/brief/evals.json', 'rb').read())
with zipfile.ZipFile('data/practicum-runs.zip', 'w') as archive:
    archive.writestr('e.json.bz2', inner)
open('data/weather.bz2', 'wb').write(bz2.compress(b'Rain.'))
open('data/weather.xz', 'wb').write(lzma.compress(b'Rain.'))
",
    );
    let (said, staged) = run(&project);
    for hidden in ["beside.tar.bz2", "my-evals.tar.xz", "beside.zip", "practicum-runs.zip"] {
        assert!(!staged.contains(hidden), "{hidden}: {staged}");
        assert!(said.contains(hidden), "{hidden}: {said}");
    }
    assert!(
        said.contains("4 archives that may hold evals and cannot be looked into are not staged"),
        "{said}"
    );
    for other in ["./data/weather.bz2", "./data/weather.xz"] {
        assert!(staged.contains(other), "{other}: {staged}");
    }
    project.run(&["report", "--format", "md", "-o", "data/results.md"]).exits(0);
    let (_, again) = run(&project);
    assert_eq!(again, staged);
}

#[test]
fn a_converted_copy_does_not_show_an_agent_its_answers() {
    let project = project();
    let marked = |text: &str, word: &str| text.replace(word, &format!("<b>{word}</b>"));
    project.write(
        "copy.toml",
        &format!("[[evals]]\nid = \"A1\"\nprompt = \"{PROMPT}\"\nexpectations = [\"{EXPECTATION}\"]\n"),
    );
    project.write(
        "docs/copy.html",
        &format!(
            "<html><p>{}</p><p>{}</p></html>",
            marked(PROMPT, "bicycle"),
            marked(EXPECTATION, "pricing")
        ),
    );
    project.write("docs/copy.txt", &format!("A1\n   {PROMPT}\n\n   {EXPECTATION}\n"));
    // A document that only has the sentence of an expectation is no copy of the evals.
    project.write("docs/rules.md", &format!("# Rules\n\n{EXPECTATION}.\n"));
    let (_, staged) = run(&project);
    assert!(!staged.contains("copy."), "{staged}");
    assert!(staged.contains("./docs/rules.md"), "{staged}");
}

/// Short texts are known by the keys around them, also with the signs of TOML.
#[test]
fn a_short_case_in_toml_does_not_show_an_agent_its_answer() {
    let project = project();
    let evals = json!({"evals": [{"id": "A1", "prompt": "Write it", "expectations": ["It has a table"]}]});
    project.write("evals/brief/evals.json", &evals.to_string());
    project.write("copy.toml", "[[evals]]\nprompt = \"Write it\"\nexpectations = [\"It has a table\"]\n");
    project.write("other.toml", "[[notes]]\nprompt = \"Write on\"\nexpectations = [\"It has a roof\"]\n");
    let (_, staged) = run(&project);
    assert!(!staged.contains("copy.toml"), "{staged}");
    assert!(staged.contains("./other.toml"), "{staged}");
}

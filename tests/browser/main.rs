//! The viewer in a real browser.

mod artefacts;
#[path = "../common/mod.rs"]
mod common;
mod driver;
mod grid;
mod looks;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use common::Project;
use driver::{Browser, there_is_a_browser};
use serde_json::{Value, json};

const ENTER: &str = "\u{e007}";

const EVALS: &str = r#"
practicum: 1
skill: ../harbour
workspace: empty
run: { agents: [builtin], script: script.yaml, arms: [with, without], repeat: 2, timeout: 1m }
gates: { pass_rate: 0.9 }
cases:
  - id: tide-table
    prompt: Write the tide table for Tuesday.
    checks:
      - { file: { path: tides.md, contains: 04:12 }, id: low-water }
      - { contains: harbour rule, id: names-the-rule }
      - { judge: The answer warns of the sandbank., id: warns }
  - id: small-talk
    prompt: Say good morning.
    checks: [{ contains: Good morning, id: greets }, { max_length: 2000, id: short }]
  - id: storm
    prompt: What about the storm?
    checks: [{ contains: stay in port, id: stays }]
"#;

const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - when: tide table
    steps:
      - text: I will look up the harbour skill first.
        tools: [{ name: Skill, input: { skill: harbour } }]
      - tools: [{ name: Write, input: { file_path: "{{workspace}}/tides.md", content: "low water 04:12\nhigh water 10:25\n" } }]
      - text: |
          The table is in tides.md. By the harbour rule, low water is at 04:12.

          Mind the sandbank off the eastern mole: it dries out an hour before low water.
  - { when: good morning, steps: ["Good morning, and a calm sea."] }
  - { when: storm, steps: ["Sail out at once!"] }
  - to: judge
    steps:
      - tools:
          - name: report_marks
            input: { results: [{ id: warns, verdict: pass, evidence: ["Mind the sandbank off the eastern mole"], reasoning: It warns of the sandbank and says when it dries out. }] }
"#;

const SKILL: &str = "---\nname: harbour\ndescription: Reads tide tables. Use for tides and harbours.\n---\n\nUse the harbour rule.\n";

fn harbour() -> Project {
    let files =
        [("harbour/SKILL.md", SKILL), ("evals/harbour.practicum.yaml", EVALS), ("evals/script.yaml", SCRIPT)];
    let project = Project::new(&files);
    for _ in 0..2 {
        project.run(&["run", "evals", "--no-cache", "--json", "-j", "4"]).exits(1);
    }
    project
}

struct Viewer {
    child: Child,
    url: String,
}

impl Viewer {
    fn start(project: &Project) -> Self {
        let mut child = project.practicum(&["view"]).stdout(Stdio::piped()).spawn().expect("starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut url).expect("a line");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn runs(project: &Project) -> Vec<String> {
    let listed = project.run(&["runs", "--json"]).exits(0).json();
    let rows = listed["runs"].as_array().expect("runs");
    rows.iter().map(|run| run["run"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_stored_run_is_read_from_the_list_to_the_trial() {
    if !there_is_a_browser() {
        return;
    }
    let project = harbour();
    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 900, false);
    browser.open(&viewer.url);
    browser.settled();
    assert_eq!(browser.count(".row.run"), 2);
    assert_eq!(browser.count(".chart .dot"), 2, "the pass rate over runs");
    browser.picture("runs");

    // By keys alone: the first run, and then its first case.
    browser.press("j");
    browser.press(ENTER);
    browser.settled();
    browser.wait("return document.querySelectorAll('table.grid tbody tr').length === 3");
    assert_eq!(browser.count("table.grid thead th"), 3, "a column for each arm");
    let gate = browser.text("table.gates");
    assert!(gate.contains("pass rate") && gate.contains("needs 0.90") && gate.contains("fails"), "{gate}");
    let headline = browser.text(".headline");
    assert!(headline.contains("4/6 passed") && headline.contains("without the skill"), "{headline}");
    browser.picture("run");
    browser.click("#troubled");
    browser.wait("return document.querySelectorAll('table.grid tbody tr').length === 1");
    assert!(browser.text("table.grid tbody").contains("storm"));
    browser.click("#troubled");
    browser.wait("return document.querySelectorAll('table.grid tbody tr').length === 3");

    // A case, and a trial of it.
    browser.click("table.grid tbody tr:nth-child(1) th a");
    browser.settled();
    assert_eq!(browser.text("h1"), "tide-table");
    let trials = browser.script("return [...document.querySelectorAll('tr.trial')].map((row) => row.innerText.replace(/\\s+/g, ' ').split(' ').slice(1, 5).join(' '))", &[]);
    let expected = [
        "attempt 1 builtin with",
        "attempt 2 builtin with",
        "attempt 1 builtin without",
        "attempt 2 builtin without",
    ];
    assert_eq!(trials, json!(expected), "in the order of the plan, though four ran at once");
    assert_eq!(browser.count("tr.trial:nth-child(1) td .mark"), 3, "what each check found");
    browser.picture("case");
    browser.click("tr.trial:nth-child(1) a.name");
    browser.settled();
    assert_eq!(browser.count("details.step.call"), 2);
    assert_eq!(browser.count("details.step.call[open]"), 0, "tool calls are folded");
    browser.click("details.step.call:nth-of-type(2) summary");
    let unfolded = browser.text("details.step.call[open]");
    assert!(unfolded.contains("low water 04:12"), "{unfolded}");

    // What the judge quoted stands out where it was said.
    assert_eq!(browser.text("mark[data-quote]"), "Mind the sandbank off the eastern mole");
    browser.click("blockquote.found .quote");
    browser.wait("return document.querySelector('mark.now') !== null");
    browser.click("details.file summary");
    browser.wait("return document.querySelector('details.file pre')?.innerText.includes('high water 10:25')");
    browser.picture("trial");
    for _ in ["to the case", "to the run"] {
        browser.press("u");
        browser.settled();
    }
    assert_eq!(browser.count("table.grid"), 1, "the keys lead back to the run");

    // Search, filters and the keys that help.
    browser.write("#find input", "sandbank\u{e007}");
    browser.wait("return document.querySelectorAll('.row.trial').length === 8");
    browser.script(
        "const s = document.querySelector('#arm'); s.value = 'without'; s.dispatchEvent(new Event('change'))",
        &[],
    );
    browser.wait("return document.querySelectorAll('.row.trial').length === 4");
    browser.script("const s = document.querySelector('#verdict'); s.value = 'fail'; s.dispatchEvent(new Event('change'))", &[]);
    browser.wait("return document.querySelector('.empty')?.innerText === 'No trial fits.'");
    browser.press("?");
    browser.wait("return document.querySelector('#help').open");
    browser.picture("help");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn two_trials_are_compared_and_the_first_divergence_is_marked() {
    if !there_is_a_browser() {
        return;
    }
    let project = harbour();
    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 900, false);
    browser.open(&viewer.url);
    let run = runs(&project).pop().expect("a run");
    browser.go(&format!("#/run/{run}/case/harbour/tide-table"));
    // The first attempt with the skill and the first without it: selected with keys, they open.
    browser.press("jxjjx");
    browser.wait("return document.querySelectorAll('.halves .main').length === 2");
    browser.settled();
    assert_eq!(browser.count(".part-line"), 2);
    let same = browser.count(".halves .main:nth-child(1) .step.same");
    assert!(same >= 1, "they begin alike");
    assert!(!browser.text("main").contains("[object"), "only words are shown");
    let parting = browser.text(".halves .main:nth-child(2) .step.parting");
    assert!(parting.contains("Skill"), "without the skill its tool finds nothing: {parting}");
    browser.picture("compare");
    browser.go("#/trends");
    browser.wait("return document.querySelectorAll('.chart .dot').length === 2");
    browser.picture("trends");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn narrow_and_dark_pages_fit_their_window() {
    if !there_is_a_browser() {
        return;
    }
    let project = harbour();
    let viewer = Viewer::start(&project);
    let browser = Browser::start(400, 820, true);
    browser.open(&viewer.url);
    browser.settled();
    let run = runs(&project).pop().expect("a run");
    let trials =
        std::fs::read_dir(project.path().join(".practicum/runs").join(&run).join("trials")).expect("trials");
    let trial = trials.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let trial = trial.filter(|name| name.starts_with("tide")).min().expect("a trial");
    for (name, page) in [
        ("runs", "#/".to_owned()),
        ("run", format!("#/run/{run}")),
        ("case", format!("#/run/{run}/case/harbour/tide-table")),
        ("trial", format!("#/run/{run}/trial/{trial}")),
        ("search", "#/search?q=sandbank".to_owned()),
        ("trends", "#/trends".to_owned()),
    ] {
        browser.go("#/search");
        browser.go(&page);
        browser.picture(&format!("narrow-{name}"));
        let words = browser.text("main");
        for absent in ["null", "undefined", "[object", "NaN", "false"] {
            assert!(!words.contains(absent), "{name} says {absent}: {words}");
        }
        let wider = browser.script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
            &[],
        );
        assert!(wider.as_i64() <= Some(0), "{name} is {wider} pixels too wide");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_run_is_seen_while_it_goes_on() {
    if !there_is_a_browser() {
        return;
    }
    let cases: String =
        (0..4).map(|n| format!("  - {{id: case-{n}, prompt: p, checks: [{{contains: done}}]}}\n")).collect();
    let project = Project::new(&[(
        "e.practicum.yaml",
        &format!("practicum: 1\nworkspace: empty\nrun: {{agents: [slow]}}\ncases:\n{cases}"),
    )]);
    // Each trial waits for its turn to be given, so that the test decides when it ends.
    let gate = project.path().join("gate");
    std::fs::create_dir(&gate).expect("created");
    let script = format!("while ! rm {}/* 2>/dev/null; do sleep 0.05; done; echo done", gate.display());
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\njobs = 1\n[agents.slow]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n"
        ),
    );
    let mut running = project
        .practicum(&["run", ".", "--json"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 800, false);
    browser.open(&viewer.url);
    browser.wait("if (!document.querySelector('.state.running')) { location.hash = '#/search'; location.hash = '#/'; return false } return true");
    let run = runs(&project).pop().expect("a run");
    browser.go(&format!("#/run/{run}"));
    browser.wait("return document.querySelector('#progress')?.innerText === '0 of 4 done'");
    let give = |name: &str| std::fs::write(Path::new(&gate).join(name), "").expect("written");
    give("one");
    browser.wait("return document.querySelector('#progress')?.innerText === '1 of 4 done'");
    browser.wait("return document.querySelectorAll('table.grid tbody tr').length === 1");
    assert_eq!(browser.text(".underway"), "case-1");
    browser.picture("live");
    for name in ["two", "three", "four"] {
        give(name);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while gate.join(name).exists() && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    assert!(running.wait().expect("ends").success());
    browser.wait("return document.querySelector('.headline .state')?.innerText === 'passed'");
    browser.wait("return document.querySelectorAll('table.grid tbody tr').length === 4");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Everything that a hostile agent might say, and the page must only show.
#[test]
fn a_hostile_transcript_is_inert() {
    if !there_is_a_browser() {
        return;
    }
    let evil = [
        "</script><script>window.owned = 1</script>",
        "<img src=x onerror=\"window.owned = 2\"><svg onload=\"window.owned = 3\"><a href=\"javascript:window.owned=4\">x</a>",
        "[link](javascript:window.owned=5) \u{1b}[31mred\u{1b}]0;title\u{7} \u{202e}desrever\u{2066}",
        "<style>body { display: none }</style><meta http-equiv=refresh content=\"0;url=https://evil.example\">",
        "{{constructor.constructor('window.owned=6')()}} ${window.owned=7}",
    ];
    let mut lines = vec![json!({"type": "start", "schema_version": 1})];
    for text in evil {
        lines.push(json!({"type": "text", "text": text}));
    }
    lines.push(json!({"type": "tool", "id": "1", "name": evil[1], "input": {"command": evil[0]}}));
    lines.push(json!({"type": "tool_result", "id": "1", "ok": false, "content": evil[3]}));
    lines.push(json!({"type": "text", "text": "x".repeat(5 * 1024 * 1024)}));
    lines.push(json!({"type": "end", "ending": "finished"}));
    let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let case = "</title><script>window.owned=8</script>";
    let eval = json!({"practicum": 1, "workspace": "empty", "run": {"agents": ["evil"]},
        "cases": [{"id": case, "prompt": evil[1], "checks": [{"contains": "never said", "id": "<b>bold</b>"}]}]});
    let project = Project::new(&[("e.practicum.yaml", &eval.to_string()), ("stream.jsonl", &stream)]);
    let path = project.path().join("stream.jsonl");
    project.write(
        "practicum.toml",
        &format!("sandbox = \"off\"\n[agents.evil]\ncommand = [\"/bin/cat\", \"{}\"]\ndecoder = \"practicum-jsonl\"\n", path.display()),
    );
    project.run(&["run", ".", "--json"]).exits(1);
    let run = runs(&project).pop().expect("a run");
    let folder = project.path().join(".practicum/runs").join(&run).join("trials");
    let trial = std::fs::read_dir(&folder).expect("trials").flatten().next().expect("a trial");
    let files = trial.path().join("files");
    std::fs::create_dir_all(&files).expect("created");
    std::fs::write(files.join("<img src=x onerror=alert(1)>.html"), evil.concat()).expect("written");
    std::os::unix::fs::symlink("/etc/passwd", files.join("passwd")).expect("linked");

    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 900, false);
    browser.open(&viewer.url);
    browser.settled();
    let id = trial.file_name().to_string_lossy().into_owned();
    browser.go(&format!("#/run/{run}"));
    browser.go(&format!("#/run/{run}/trial/{id}"));
    assert_eq!(browser.count(".step"), 8, "the user, what was said, and a call");
    browser.click("details.step.call summary");
    browser.click("details.file summary");
    browser.wait("return document.querySelector('details.file pre')?.innerText.includes('window.owned')");
    assert_eq!(browser.count("details.file"), 1, "a link is no file of the agent's");
    let page = browser.text("main");
    for part in
        ["</script><script>window.owned = 1", "javascript:window.owned=5", "\\e[31mred", "\u{fffd}desrever"]
    {
        assert!(page.contains(part), "{part} is shown as it is");
    }
    browser.picture("hostile");
    // Of the long line only a piece is here; more comes when it is wanted.
    let long = "[...document.querySelectorAll('.step')].at(-1)";
    let length = browser.script(&format!("return {long}.querySelector('pre').textContent.length"), &[]);
    assert!(length.as_u64() < Some(20_000), "{length}");
    browser.script(&format!("{long}.querySelector('.more').click()"), &[]);
    browser.wait(&format!("return {long}.querySelector('pre').textContent.length > 30000"));
    assert_eq!(browser.count("main script, main img, main style, main meta, main a[href^=javascript]"), 0);
    assert_eq!(browser.script("return window.owned ?? null", &[]), Value::Null);
    assert!(browser.text("h1").contains(case));
    for escape in ["../checks.json", "../../../run.json", "passwd", "/etc/passwd"] {
        let status = browser.script(
            "const q = new URLSearchParams({path: arguments[2]}); const x = new XMLHttpRequest();
             x.open('GET', `api/run/${arguments[0]}/trial/${encodeURIComponent(arguments[1])}/file?${q}`, false); x.send(); return x.status",
            &[json!(run), json!(id), json!(escape)],
        );
        assert_eq!(status, json!(404), "{escape}");
    }
    assert_eq!(
        browser.complaints().iter().filter(|line| !line.contains("404")).count(),
        0,
        "{:?}",
        browser.complaints()
    );
}

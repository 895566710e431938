//! Images and pages of PDF files that an agent wrote: code compares them, and judges are shown them.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Project, Ran, codex, goose, path_with};
use practicum::gateway::{
    AnswerForm, AnswerFuture, Gateway, GatewayAnswer, GatewayCall, Responder, ScopeKind,
};
use practicum::grade::judge::{
    CaseQuestions, Judge, JudgeConnection, JudgeContext, JudgeLimits, TrialEvidence,
};
use practicum::llm::{ContentBlock, Endpoint, ModelApi, ModelClient, ModelReply, StopReason};
use practicum::model::{
    AgentEnding, Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, FileChange, FileChangeKind,
    JudgedStatement, Observation, RelPath, ScoreScale, TokenUsage, WorkspaceView,
};
use practicum::workspace::pictures::PictureRenderer;
use practicum::workspace::run::CancelToken;
use serde_json::{Value, json};

/// A chart of the example, in base64, and the one that its agent draws.
const EXPECTED: &[u8] = include_bytes!("../../examples/pictures/evals/expected-chart.png");

/// A picture of one dot.
const DOT_BYTES: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\x0aIDATx\xdac\xf8\x0f\x00\x01\x01\x01\x00\x1c\xb0\x8c\x99\x00\x00\x00\x00IEND\xaeB`\x82";

/// The same picture in base64.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==";

fn has_pdftoppm() -> bool {
    let there = Command::new("pdftoppm").arg("-v").output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("skipped: pdftoppm is not installed");
    }
    there
}

/// Writes a PDF file with this many pages, as plain text.
fn pdf(pages: usize) -> String {
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), String::new()];
    let mut kids = String::new();
    for page in 1..=pages {
        let text = format!("BT /F1 24 Tf 20 100 Td (Page {page}) Tj ET");
        let number = objects.len() + 1;
        kids.push_str(&format!("{number} 0 R "));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents {} 0 R /Resources << /Font << /F1 << \
             /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
            number + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {pages} >>");
    let mut out = "%PDF-1.4\n".to_owned();
    for (at, object) in objects.iter().enumerate() {
        out.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    format!("{out}trailer << /Size {} /Root 1 0 R >>\n%%EOF\n", objects.len() + 1)
}

/// A judge's answer that the statement `seen` is met, with this as its evidence.
fn answer(evidence: &str) -> Value {
    json!({"results": [{"id": "seen", "verdict": "pass", "score": null, "evidence": [evidence], "reasoning": "",
        "weak": null}], "uncovered": [], "claims": []})
}

/// A project in which the builtin agent writes a file and a judge answers only if it is shown exactly this many pictures.
fn project(file: &str, content: &str, pictures: usize) -> Project {
    let write = json!({"name": "Write", "input": {"file_path": format!("{{{{workspace}}}}/{file}"), "content": content}});
    let last = format!(r"Picture {pictures}:\s+\(picture: image/png, [0-9a-f]+\)\s*$");
    let script = json!({"practicum_script": 1, "scenarios": [
        {"when": "report", "steps": [{"tools": [write]}, "Done."]},
        {"to": "judge", "when": {"regex": last}, "steps": [
            {"tools": [{"name": "report_marks", "input": answer("picture 1: the words Page 1")}]}]},
    ]});
    let eval = "practicum: 1\nworkspace: empty\nrun: {agents: [builtin]}\ncases:\n  - id: c\n    prompt: Write a report.\n    checks:\n      - {id: seen, judge: The first page has its number., on: {pictures: [report.pdf]}}\n";
    Project::new(&[("evals/e.practicum.yaml", eval), ("script.json", &script.to_string())])
}

/// The verdict of the only check of the only trial, and its explanation.
fn only_check(project: &Project) -> (String, String) {
    let trial = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten().next();
    let record = std::fs::read(trial.expect("a trial").path().join("checks.json")).expect("a record");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    let check = &record["checks"][0];
    (check["verdict"].to_string(), check["rationale"].as_str().expect("a text").to_owned())
}

#[test]
fn a_judge_is_shown_every_page_of_a_pdf_or_the_check_is_not_scored() {
    if !has_pdftoppm() {
        return;
    }
    for (name, file, content, pictures, code, part) in [
        ("one page", "report.pdf", pdf(1), 1, 0, ""),
        ("three pages", "report.pdf", pdf(3), 3, 0, ""),
        ("too many pages", "report.pdf", pdf(21), 20, 3, "at most 20 pictures"),
        ("no page", "report.pdf", "%PDF-1.4\nnothing\n".to_owned(), 1, 3, "pdftoppm"),
        ("no PDF", "report.pdf", "# Report\n".to_owned(), 1, 3, "it is no PNG"),
        ("another file", "other.pdf", pdf(1), 1, 1, "report.pdf was not written"),
        ("fewer pages than asked for", "report.pdf", pdf(1), 2, 3, ""),
    ] {
        let project = project(file, &content, pictures);
        let ran = project.run(&["run", "evals", "--script", "script.json"]);
        assert_eq!(ran.code, code, "{name}\n{}\n{}", ran.stdout, ran.stderr);
        let (verdict, why) = only_check(&project);
        assert!(why.contains(part), "{name}: {verdict}, {why}");
    }
}

#[test]
fn without_the_program_that_shows_a_file_nothing_passes() {
    let project = project("report.pdf", &pdf(1), 1);
    let mut command = project.practicum(&["run", "evals", "--script", "script.json"]);
    Ran::of(command.env("PATH", "/nowhere").output().expect("practicum starts")).exits(3);
    let (_, why) = only_check(&project);
    assert!(why.contains("report.pdf: PDF files are shown with pdftoppm, which is not installed"), "{why}");
}

#[test]
fn an_agent_cli_is_no_judge_of_pictures() {
    let project = project("report.pdf", &pdf(1), 1);
    let ran = project.run(&["run", "evals", "--script", "script.json", "--transport", "cli"]).exits(2);
    assert!(ran.stderr.contains("an agent CLI cannot be shown pictures"), "{}", ran.stderr);
}

/// A stored file is shown again, and code compares it again.
#[test]
fn a_run_of_the_example_is_graded_again_from_its_record() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pictures");
    let project = Project::new(&[]);
    assert!(Command::new("cp").args(["-r", example]).arg(project.path()).status().expect("cp").success());
    let script = ["--script", "pictures/script.yaml"];
    project.run(&[&["run", "pictures", "--agent", "builtin"], &script[..]].concat()).exits(0);
    let again = project.run(&[&["grade", "latest", "--project", "pictures"], &script[..]].concat()).exits(0);
    assert!(!again.stdout.contains("not scored"), "{}", again.stdout);
    // The expected picture is part of the eval, also when only its content changes.
    let expected = project.path().join("pictures/evals/expected-chart.png");
    std::fs::write(expected, DOT_BYTES).expect("written");
    project.run(&[&["grade", "latest", "--project", "pictures"], &script[..]].concat()).exits(1);
}

/// The judge's model, which keeps the pictures that it is shown.
struct Onlooker {
    evidence: &'static str,
    seen: Mutex<Vec<(String, String)>>,
}

impl Responder for Onlooker {
    fn answer<'a>(&'a self, call: GatewayCall<'a>) -> AnswerFuture<'a> {
        let blocks = call.request.messages.iter().flat_map(|message| &message.blocks);
        let pictures = blocks.filter_map(|block| match block {
            ContentBlock::Image { media_type, data } => Some((media_type.clone(), data.clone())),
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::ToolResult { .. } => None,
        });
        *self.seen.lock().expect("not poisoned") = pictures.collect();
        let input = answer(self.evidence);
        let blocks = vec![ContentBlock::ToolUse { id: "t".into(), name: "report_marks".into(), input }];
        let (stop, usage) = (StopReason::ToolUse, TokenUsage::default());
        let reply = ModelReply { id: "m".into(), model: "m".into(), blocks, stop, usage };
        Box::pin(std::future::ready(GatewayAnswer { wait: Duration::ZERO, form: AnswerForm::Whole(reply) }))
    }
}

struct Dots;

impl WorkspaceView for Dots {
    fn read(&self, _path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Ok(Some(DOT_BYTES.to_vec()))
    }

    fn exists(&self, _path: &RelPath) -> std::io::Result<bool> {
        Ok(true)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_api_brings_the_pictures_and_a_pass_says_what_one_of_them_shows() {
    let judged = JudgedStatement { statement: "A dot.".into(), context: None, scale: ScoreScale::PassFail };
    let check = Check {
        id: "seen".to_owned(),
        name: None,
        need: CheckNeed::Required,
        weight: CheckWeight::ONE,
        target: CheckTarget::Pictures(vec!["*.png".to_owned()]),
        kind: CheckKind::Judged(judged),
    };
    let mut observation = Observation::with_ending(AgentEnding::Finished);
    let file = |name: &str| FileChange {
        path: RelPath::new(name).expect("a path"),
        change: FileChangeKind::Created,
        bytes: 1,
    };
    observation.files = vec![file("a.png"), file("b.png"), file("c.txt")];
    let exhibit =
        TrialEvidence { observation: &observation, context: None, workspace: &Dots, given_files: &[] };
    for (api, evidence, expected) in [
        (ModelApi::AnthropicMessages, "picture 1: a white dot", "pass"),
        (ModelApi::OpenAiResponses, "Picture 2: a white dot", "pass"),
        (ModelApi::OpenAiChat, "picture 1: a white dot", "pass"),
        (ModelApi::OpenAiChat, "picture 3: a white dot", "not_scored"),
        (ModelApi::OpenAiChat, "picture 1:", "not_scored"),
        (ModelApi::OpenAiChat, "picture 1: a.png", "pass"),
        (ModelApi::OpenAiChat, "a white dot", "not_scored"),
    ] {
        let onlooker = Arc::new(Onlooker { evidence, seen: Mutex::default() });
        let gateway = Gateway::start(Arc::clone(&onlooker) as Arc<dyn Responder>).await.expect("a gateway");
        let scope = gateway.register("t", ScopeKind::Judge, BTreeMap::new());
        let endpoint = Endpoint { api, base_url: "http://127.0.0.1:1".to_owned(), credential: None };
        let client = ModelClient::new(endpoint).expect("a client");
        let judge = Judge::new(JudgeConnection::api(client, JudgeLimits::new(1)), "m".to_owned());
        let judge = judge.with_renderer(PictureRenderer::new(&BTreeMap::new()));
        let judge = judge.at_address(|api| scope.base_url_for(api));
        let sitting = JudgeContext { marker: "picture-test", cancel: &CancelToken::default() };
        let result = judge.judge_trial(&CaseQuestions::from_checks([&check]), &exhibit, &sitting).await;
        let found = &result.verdicts[0].finding;
        let dot = || ("image/png".to_owned(), DOT.to_owned());
        assert_eq!(*onlooker.seen.lock().expect("not poisoned"), [dot(), dot()], "{api:?} {found:?}");
        assert_eq!(found.verdict.name(), expected, "{api:?} {evidence}");
    }
}

/// Two real agents write the chart of the example with their shells.
#[test]
fn real_agents_write_a_picture_that_is_compared_and_shown() {
    let script = include_str!("../../examples/pictures/script.yaml");
    let drawn = script.split('"').find(|part| part.starts_with("echo ")).expect("a command");
    for (agent, program, [shell, argument]) in
        [("goose", goose(), ["shell", "command"]), ("codex", codex(), ["exec_command", "cmd"])]
    {
        let script = script.replace("name: Bash", &format!("name: {shell}"));
        let script = script.replace("{ command: \"echo", &format!("{{ {argument}: \"echo"));
        let project = Project::new(&[
            (
                "skills/sales-chart/SKILL.md",
                include_str!("../../examples/pictures/skills/sales-chart/SKILL.md"),
            ),
            ("evals/e.practicum.yaml", include_str!("../../examples/pictures/evals/charts.practicum.yaml")),
            ("script.yaml", &script),
        ]);
        std::fs::write(project.path().join("evals/expected-chart.png"), EXPECTED).expect("written");
        let args = ["run", "evals", "--agent", agent, "--script", "script.yaml", "--arm", "with", "--json"];
        let mut command = project.practicum(&args);
        let ran = Ran::of(command.env("PATH", path_with(&program)).output().expect("practicum starts"));
        let summary = ran.exits(0).json();
        assert_eq!(summary["totals"]["passed"], 1, "{agent}: {drawn}\n{summary}");
    }
}

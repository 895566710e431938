//! What agents leave, as people see it: Markdown, images, pages of PDF files, and HTML that can do nothing.

use serde_json::json;

use super::common::Project;
use super::driver::{Browser, there_is_a_browser};
use super::{Viewer, runs};

const ANSWER: &str = "## The report\n\n- **Sales** grew.\n- See `report.pdf`, or [the site](javascript:window.owned=1).\n\n| month | sales |\n|---|---|\n| May | 60 |\n\n<img src=x onerror=\"window.owned = 2\">\n";

const PAGE: &str = "<!doctype html><style>body { background: #dfd }</style><h1 id=title>Sales</h1>\
    <script>document.title = 'owned'; parent.owned = 3</script><meta http-equiv=refresh content=\"0;url=/\">\
    <form action=/><input autofocus></form>";

const PDF: &str = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
    2 0 obj\n<< /Type /Pages /Kids [3 0 R 3 0 R] /Count 2 >>\nendobj\n\
    3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 4 0 R /Resources << /Font << /F1 << \
    /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>\nendobj\n\
    4 0 obj\n<< /Length 41 >>\nstream\nBT /F1 24 Tf 20 40 Td (Sales grew.) Tj ET\nendstream\nendobj\n\
    trailer << /Size 5 /Root 1 0 R >>\n%%EOF\n";

#[test]
fn what_an_agent_left_is_shown_as_people_see_it() {
    if !there_is_a_browser() {
        return;
    }
    let has_pdftoppm = std::process::Command::new("pdftoppm").arg("-v").output().is_ok();
    let script = include_str!("../../examples/pictures/script.yaml");
    let drawn = script.split('"').find(|part| part.starts_with("echo ")).expect("a command");
    let write = |name: &str, content: &str| json!({"name": "Write", "input": {"file_path": format!("{{{{workspace}}}}/{name}"), "content": content}});
    let calls = [
        json!({"name": "Bash", "input": {"command": drawn}}),
        write("page.html", PAGE),
        write("report.pdf", PDF),
    ];
    let script = json!({"practicum_script": 1, "scenarios": [{"when": "report", "steps": [{"tools": calls}, ANSWER]}]});
    let eval = "practicum: 1\nworkspace: empty\nrun: {agents: [builtin], repeat: 2}\ncases:\n  - {id: a, prompt: Write a report., checks: [{contains: Sales}]}\n";
    let project = Project::new(&[("evals/e.practicum.yaml", eval), ("script.json", &script.to_string())]);
    for _ in 0..2 {
        project.run(&["run", "evals", "--script", "script.json", "--no-cache"]).exits(0);
    }
    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 1400, false);
    browser.open(&viewer.url);
    browser.settled();

    let run = runs(&project).pop().expect("a run");
    let trials = project.path().join(".practicum/runs").join(&run).join("trials");
    let trial = std::fs::read_dir(trials).expect("trials").flatten().next().expect("a trial");
    browser.go(&format!("#/run/{run}/trial/{}", trial.file_name().to_string_lossy()));
    assert_eq!(browser.text(".rich h4"), "The report");
    assert_eq!(browser.text(".rich li strong"), "Sales");
    assert_eq!(browser.count(".rich th"), 2);
    assert_eq!(browser.count(".rich a, .rich img, main img"), 0, "no link and no image of the agent's own");
    let shown = browser.text(".rich");
    assert!(
        shown.contains("the site (javascript:window.owned=1)") && shown.contains("<img src=x"),
        "{shown}"
    );
    browser.click(".as-written");
    assert!(browser.text(".step.by-text pre.text").contains("## The report"));
    browser.click(".as-written");

    for (at, name) in ["chart.png", "page.html", "report.pdf"].iter().enumerate() {
        let file = format!("details.file:nth-of-type({})", at + 1);
        assert_eq!(browser.text(&format!("{file} summary .tool")), *name);
        browser.click(&format!("{file} summary"));
    }
    let loaded =
        "[...document.querySelectorAll('img.artefact')].filter((image) => image.naturalWidth > 0).length";
    let pictures = if has_pdftoppm { 3 } else { 1 };
    browser.script("document.querySelectorAll('img.artefact').forEach((each) => each.scrollIntoView())", &[]);
    browser.wait(&format!(
        "document.querySelectorAll('img.artefact').forEach((each) => each.scrollIntoView()); return {loaded} === {pictures}"
    ));
    assert_eq!(browser.count("iframe.artefact[sandbox='']"), 1);
    browser.script("document.querySelector('iframe.artefact').scrollIntoView({block: 'center'})", &[]);
    browser.wait("return document.querySelector('iframe.artefact').contentDocument === null");
    browser.picture("artefacts");
    assert_eq!(browser.script("return window.owned ?? null", &[]), json!(null));

    // Every dot of a line has its interval.
    browser.go("#/trends");
    browser.wait("return document.querySelectorAll('.chart .range').length === 2");
    let words =
        browser.script("return document.querySelector('.chart .dot').getAttribute('aria-label')", &[]);
    assert!(words.as_str().is_some_and(|words| words.contains("[0.") && words.contains("1.00]")), "{words}");
    browser.picture("trends-with-intervals");
}

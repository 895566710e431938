//! Hostile texts of agents and evals stay harmless in every report.

use std::process::Command;

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::{Value, json};

use super::common::Project;
use super::{CSV_TO_JSON, by_python, files, own_agent, read};

/// Everything that some reader takes for more than text.
const HOSTILE: &str = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)> \
    ]]> --> [a](javascript:alert(1)) | `b` @everyone octo/cat#7 https://evil.example ::error::x %0A \
    \u{202e}gnorw =1+1";

/// Says that and worse: colours, a character that is none, a line of five megabytes, a last line to find.
const AGENT: &str = r"
cat hostile.txt
printf '\033[31mred\033[0m\007 \357\277\276 broken\r\n::error file=a::b\n=cmd|calc\n'
head -c 5000000 /dev/zero | tr '\0' x
printf '\nat last\n'
";

/// In every place that a person or an agent can name something.
fn project() -> Project {
    let check = json!({"contains": "nowhere to be found", "id": HOSTILE, "name": HOSTILE});
    let evals = json!({
        "practicum": 1, "name": HOSTILE, "workspace": "empty", "run": {"agents": ["own"]},
        "cases": [
            {"id": HOSTILE, "prompt": HOSTILE, "note": HOSTILE, "files": ["hostile.txt"], "checks": [
                check, {"contains": "alert(1)"}, {"contains": "=cmd"}, {"regex": "x{50}.*"},
            ]},
            {"id": "=1+1", "prompt": "p", "files": ["hostile.txt"], "checks": [{"contains": "at last"}]},
        ],
    });
    let project = Project::new(&[("agent.sh", AGENT), ("evals/hostile.txt", HOSTILE)]);
    project.write("evals/e.practicum.yaml", &evals.to_string());
    own_agent(&project, "text");
    project
}

#[test]
fn a_report_never_breaks_on_script_in_output() {
    let project = project();
    let formats =
        ["text", "json", "md", "html", "junit", "csv", "github", "github-comment"].map(|name| (name, "txt"));
    let folders = ["skill-creator", "agentskills", "writing-skills"].map(|name| (name, "folder"));
    let orders: Vec<String> =
        formats.iter().chain(&folders).map(|(name, kind)| format!("{name}=out/{name}.{kind}")).collect();
    let mut args = vec!["run", "evals", "-q"];
    for order in &orders {
        args.extend(["--report", order]);
    }
    project.run(&args).exits(1);
    for (name, _) in formats {
        let report = read(&project, &format!("out/{name}.txt"));
        assert!(report.len() < 400_000, "{name} is bounded: {}", report.len());
        let steering = |c: char| (c.is_control() && !"\n\r\t".contains(c)) || c == '\u{202e}';
        assert!(!report.contains(steering) || name == "json", "{name} steers no terminal");
    }
    a_terminal_s_text_stays_text(&read(&project, "out/text.txt"));
    a_page_has_only_its_own_script(&read(&project, "out/html.txt"));
    for name in ["md", "github-comment"] {
        markdown_has_no_markup_but_ours(&read(&project, &format!("out/{name}.txt")));
    }
    xml_is_well_formed(&read(&project, "out/junit.txt"));
    no_cell_is_a_formula(&read(&project, "out/csv.txt"));
    no_line_is_a_command_of_the_agent(&read(&project, "out/github.txt"));
    for (folder, _) in folders {
        for path in files(&project, &format!("out/{folder}.folder"), ".json") {
            let text = std::fs::read_to_string(&path).expect("a file");
            assert!(text.len() < 100_000, "{}", path.display());
            serde_json::from_str::<Value>(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
    a_browser_runs_only_the_page_s_script(&project);
}

fn a_terminal_s_text_stays_text(text: &str) {
    assert!(text.contains("FAIL  1 of 2 trials passed, 1 failed"), "{text:.500}");
    assert!(text.lines().count() < 40, "however long the texts are");
}

/// As Python's parser sees it: the tags that we write, one script, and no attribute that runs or loads.
fn a_page_has_only_its_own_script(page: &str) {
    let program = "\
import html.parser, json, sys
tags, bad = {}, []
class Reader(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes):
        tags[tag] = tags.get(tag, 0) + 1
        bad.extend(name for name, _ in attributes if name.startswith('on') or name in ('src', 'href', 'style'))
Reader().feed(sys.stdin.buffer.read().decode('utf-8'))
print(json.dumps({'tags': tags, 'bad': bad}))";
    let seen = by_python(program, page);
    assert_eq!(seen["bad"], json!([]));
    assert_eq!(
        (&seen["tags"]["script"], &seen["tags"]["style"], &seen["tags"]["title"]["x"]),
        (&json!(1), &json!(1), &Value::Null)
    );
    for tag in ["img", "a", "iframe", "link", "object", "form", "base"] {
        assert_eq!(seen["tags"].get(tag), None, "{tag}");
    }
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline"));
}

fn markdown_has_no_markup_but_ours(page: &str) {
    for event in Parser::new_ext(page, Options::all()) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => {
                let ours = ["<br>", "<sub>", "</sub>", "<!-- written by practicum -->"]
                    .contains(&text.trim())
                    || text.starts_with("<!-- practicum:")
                        && text.trim().ends_with("-->")
                        && text.lines().count() == 1;
                assert!(ours, "{text}");
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => panic!("{dest_url}"),
            Event::Text(text) => assert!(!text.contains("@everyone"), "a mention: {text}"),
            _ => {}
        }
    }
    for link in ["https://evil", "cat#7"] {
        assert!(!page.contains(link), "{link}");
    }
}

fn xml_is_well_formed(report: &str) {
    let program = "\
import json, sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps([[case.get('name'), [kind.tag for kind in case]] for case in root.iter('testcase')]))";
    let cases = by_python(program, report);
    assert_eq!(cases.as_array().map(Vec::len), Some(2));
    assert_eq!(cases[0][1][0], "failure");
    assert!(cases[0][0].as_str().is_some_and(|name| name.starts_with("</script><script>")), "as text");
}

fn no_cell_is_a_formula(report: &str) {
    let table = by_python(CSV_TO_JSON, report);
    let rows = table.as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    for (name, cell) in rows.iter().flat_map(|row| row.as_object().expect("a row")) {
        let cell = cell.as_str().expect("text");
        assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{name}: {cell:.80}");
    }
    assert!(rows.iter().any(|row| row["case"] == "'=1+1"));
}

fn no_line_is_a_command_of_the_agent(report: &str) {
    for line in report.lines() {
        let rest = line.strip_prefix("::error ").unwrap_or_else(|| panic!("{line:.80}"));
        let (properties, _) = rest.split_once("::").expect("a message");
        let names: Vec<&str> =
            properties.split(',').map(|property| property.split('=').next().unwrap_or_default()).collect();
        assert_eq!(names, ["file", "line", "title"], "{properties}");
    }
}

/// The script ran, so that the policy names it: it opened the case. The other did not: the title is ours.
fn a_browser_runs_only_the_page_s_script(project: &Project) {
    let page = project.path().join("out/page.html");
    std::fs::copy(project.path().join("out/html.txt"), &page).expect("a copy");
    let profile = tempfile::tempdir().expect("a folder");
    let ran = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output();
    match ran {
        Ok(output) => {
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(!shown.contains("<title>broken</title>"), "a script of the agent ran");
            let opened = shown.contains("<details class=\"case\" data-stand=\"fail\" open=\"\">");
            assert!(opened, "the page's own script ran: {}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => eprintln!("no chromium ({error}): the page was not opened in a browser"),
    }
}

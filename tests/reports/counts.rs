//! The counts of trials in every report agree with the summary.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

use super::{CSV_TO_JSON, by_python, files, json, project, read};

/// Trials, passed, failed, not scored.
type Counts = [u64; 4];

fn counts(with_skill: bool, summary: &Value) -> Counts {
    let cases = summary["cases"].as_array().expect("cases").iter();
    let mut counts = [0; 4];
    for case in cases.filter(|case| (case["arm"] == "with") == with_skill) {
        for (count, key) in counts[1..].iter_mut().zip(["passed", "failed", "not_scored"]) {
            *count += case[key].as_u64().expect(key);
        }
    }
    counts[0] = counts[1..].iter().sum();
    counts
}

fn sum(a: Counts, b: Counts) -> Counts {
    std::array::from_fn(|index| a[index] + b[index])
}

/// The rows of all tables of a page, as a reader of GitHub's Markdown sees them.
fn rows(page: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    for event in Parser::new_ext(page, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::TableRow) => row.clear(),
            Event::Start(Tag::TableCell) => cell.clear(),
            Event::Text(text) => cell.push_str(&text),
            Event::End(TagEnd::TableCell) => row.push(cell.clone()),
            Event::End(TagEnd::TableRow) => rows.push(row.clone()),
            _ => {}
        }
    }
    rows
}

fn row(page: &str, first: &str) -> Vec<String> {
    let found = rows(page).into_iter().find(|row| row.first().is_some_and(|cell| cell == first));
    found.unwrap_or_else(|| panic!("no row {first} in {page}"))
}

fn numbers(cells: &[String]) -> Counts {
    std::array::from_fn(|index| cells[index].parse().unwrap_or_else(|_| panic!("{cells:?}")))
}

#[test]
fn all_reports_of_a_run_agree_on_every_count() {
    let project = project();
    let mut args = vec!["run", "evals", "-q", "-j", "4"];
    let orders = [
        "json=out/r.json",
        "md=out/r.md",
        "html=out/r.html",
        "junit=out/r.xml",
        "csv=out/r.csv",
        "github=out/annotations.txt",
        "github-comment=out/comment.md",
        "skill-creator=out/skill-creator",
        "agentskills=out/agentskills",
        "writing-skills=out/writing-skills",
    ];
    for order in &orders {
        args.extend(["--report", order]);
    }
    let ran = project.run(&args).exits(1);
    let summary = json(&project, "out/r.json");
    let (with, without) = (counts(true, &summary), counts(false, &summary));
    let all = sum(with, without);
    assert_eq!(with, [14, 6, 6, 2], "the run has something of every kind");
    assert_eq!(without, [8, 0, 6, 2]);

    // The text.
    let verdict = ran.stdout.lines().find(|line| line.contains("trials passed")).expect("a verdict");
    assert_eq!(
        verdict,
        "FAIL  6 of 14 trials passed, 6 failed, 2 not scored · without the skill 0 of 8, 2 not scored"
    );
    for order in orders {
        assert!(ran.stdout.contains(order.split_once('=').expect("a path").1), "{order} is pointed at");
    }

    // Markdown, with the activation of the summary.
    let page = read(&project, "out/r.md");
    assert_eq!(numbers(&row(&page, "with the skill")[1..]), with);
    assert_eq!(numbers(&row(&page, "without the skill")[1..]), without);
    assert_eq!(numbers(&row(&page, "all")[1..]), all);
    let found = &summary["activation"];
    let outcome = |key: &str| found[key].as_u64().expect("a count");
    assert_eq!(["tp", "fp", "tn", "fn", "acceptable", "error"].map(outcome), [2, 2, 2, 2, 2, 0]);
    assert_eq!(row(&page, "Should activate")[1..], ["2 (TP)", "2 (FN)"]);
    assert_eq!(row(&page, "Should not activate")[1..], ["2 (FP)", "2 (TN)"]);
    assert_eq!(row(&page, "gull")[5..], ["2", "2", "2", "2", "2", "0"]);
    assert!(page.contains("- **missed** (mixed): 2 of 2 runs") && page.contains("It should have woken up."));
    assert!(page.contains("- **noisy** (mixed): 2 of 2 runs"));

    // The comment, and what is added to the summary of a job.
    let mut step = project.practicum(&["report", "latest", "--format", "github", "-o", "again.txt"]);
    let summary_file = project.path().join("step.md");
    let status = step.env("GITHUB_STEP_SUMMARY", &summary_file).output().expect("runs").status;
    assert!(status.success());
    let step = read(&project, "step.md");
    assert_eq!(numbers(&row(&step, "with the skill")[1..]), with);
    assert_eq!(numbers(&row(&step, "without the skill")[1..]), without);
    assert_eq!(read(&project, "again.txt"), read(&project, "out/annotations.txt"), "now and later the same");
    let comment = read(&project, "out/comment.md");
    assert!(comment.starts_with("<!-- practicum:mixed -->\n"));
    assert_eq!(numbers(&row(&comment, "with the skill")[1..]), with);
    assert_eq!(numbers(&row(&comment, "without the skill")[1..]), without);

    // Annotations are about what should have passed and what has no answer, and stand at their cases.
    let annotations = read(&project, "out/annotations.txt");
    let level = |word: &str| annotations.lines().filter(|line| line.starts_with(word)).count() as u64;
    assert_eq!([level("::error "), level("::warning ")], [with[2], with[3] + without[3]]);
    assert!(annotations.contains("mixed.practicum.yaml,line=8,title=fails of mixed::"), "{annotations}");

    // The page: each trial once.
    let page = read(&project, "out/r.html");
    let trials = |verdict: &str| page.matches(&format!("data-verdict=\"{verdict}\"")).count() as u64;
    assert_eq!([trials("pass"), trials("fail"), trials("not_scored")], all[1..]);

    // JUnit, where what is only compared with turns nothing red.
    let junit = quick_junit::Report::deserialize_from_str(&read(&project, "out/r.xml")).expect("JUnit");
    let [of_with, of_without] = junit.test_suites.as_slice() else { panic!("two suites") };
    let seen = |suite: &quick_junit::TestSuite| [suite.tests, suite.failures, suite.errors, suite.skipped];
    assert_eq!(seen(of_with), [14, 6, 2, 0]);
    assert_eq!(seen(of_without), [8, 0, 2, 6]);
    for (suite, counts) in [(of_with, with), (of_without, without)] {
        let message = |name: &str| {
            let found = suite.properties.iter().find(|property| property.name.as_str() == name);
            found.expect(name).value.as_str().parse::<u64>().expect("a number")
        };
        let message = ["practicum.passed", "practicum.failed", "practicum.not_scored"].map(message);
        assert_eq!(message, counts[1..]);
    }

    // CSV: a trial is in it once, whatever the number of its checks.
    let table = by_python(CSV_TO_JSON, &read(&project, "out/r.csv"));
    let mut verdicts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in table.as_array().expect("rows") {
        let cell = |name: &str| row[name].as_str().expect("a cell");
        verdicts.entry(cell("trial_verdict")).or_default().insert(cell("trial"));
    }
    assert_eq!(["pass", "fail", "not_scored"].map(|word| verdicts[word].len() as u64), all[1..]);

    // What others read: every scored run is graded, every other is listed.
    let benchmark = json(&project, "out/skill-creator/benchmark.json");
    let (runs, notes) = (benchmark["runs"].as_array().expect("runs"), benchmark["notes"].as_array());
    let unscored = |note: &&Value| note.as_str().is_some_and(|note| note.contains(" is not scored: "));
    let unscored = notes.expect("notes").iter().filter(unscored).count();
    assert_eq!((runs.len() as u64, unscored as u64), (all[1] + all[2], all[3]));
    for folder in ["out/skill-creator", "out/agentskills"] {
        assert_eq!(files(&project, folder, "/grading.json").len() as u64, all[1] + all[2], "{folder}");
        assert_eq!(files(&project, folder, "/timing.json").len() as u64, all[0], "{folder}");
    }
    // Nothing here has criteria with scores, so nothing is graded the way of writing-skills.
    assert_eq!(files(&project, "out/writing-skills/grading", ".json").len(), 0);
    assert!(!project.path().join("out/writing-skills/history.json").exists(), "no version was graded");

    // The list of runs and the badge.
    let listed = project.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(listed["runs"][0]["totals"], summary["totals"]);
    let line = project.run(&["runs"]).exits(0).stdout;
    assert!(line.contains("failed  6/14 passed, 2 not scored"), "{line}");
    let badge = project.run(&["badge", "--format", "shields"]).exits(0).json();
    assert_eq!(badge["message"], "6 of 12 passed", "of those that have an answer");
}

/// The sections that skill-test has, by its names and in its order.
#[test]
fn activation_is_reported_in_the_sections_of_skill_test() {
    let project = project();
    let page = project.run(&["run", "evals", "-q", "-j", "4", "--report", "md=-"]).exits(1).stdout;
    let sections = [
        "## Overall Metrics",
        "## Confusion Matrix",
        "## Per-Skill Breakdown",
        "## Detailed Results",
        "### False Negatives (missed activations)",
        "### False Positives (incorrect activations)",
        "### Errors (test failures)",
        "### Success Summary",
        "## Methodology",
    ];
    let places: Vec<usize> = sections
        .iter()
        .map(|section| page.find(&format!("\n{section}\n")).unwrap_or_else(|| panic!("{section} in {page}")))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(row(&page, "Precision")[3], "Needs work - noisy");
    assert_eq!(row(&page, "Recall")[3], "Needs work - missing triggers");
    assert_eq!(row(&page, "F1 Score")[3], "Needs improvement");
    assert_eq!(row(&page, "Precision")[4], "4", "each rate says of how many runs it is");
    assert_eq!(row(&page, "Accuracy").len(), 5);
}

/// Activates the skill in as many of its first runs as the prompt says: `fire 2`.
const FICKLE: &str = r#"
skill=$(ls .agents/skills | head -1)
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
echo run >> "$0.$2"
if [ "$(wc -l < "$0.$2")" -le "$2" ]; then echo "{\"type\":\"skill\",\"name\":\"$skill\"}"; fi
echo '{"type":"text","text":"done"}'
echo '{"type":"end","ending":"finished"}'
"#;

/// Runs of which a rate is made may go either way; only the rate says how their case stands.
#[test]
fn a_case_that_a_rate_decides_stands_so_in_every_report() {
    // Thresholds, the exit code, and whether the first and the second case pass by them.
    for (first, second, exit, stand) in
        [("0.5", "0.5", 0, [true, true]), ("0.9", "0.5", 1, [false, true]), ("0.5", "0.0", 1, [true, false])]
    {
        let project = project();
        let evals = format!(
            "practicum: 1\nskill: ../gull\nworkspace: empty\nrun: {{ agents: [own], repeat: 3 }}\n\
             gates: {{ all_cases_pass: 1 }}\ncases:\n\
             \u{20} - {{ id: often, prompt: fire 2, activation: must, pass_when: {{ fire_rate: {first} }} }}\n\
             \u{20} - {{ id: never, prompt: fire 0, activation: must_not, pass_when: {{ fire_rate: {second} }} }}\n"
        );
        project.write("evals/mixed.practicum.yaml", &evals);
        project.write("agent.sh", &FICKLE.replace("$2", "${1#fire }"));
        let mut args = vec!["run", "evals", "-q", "-j", "1", "--no-probe"];
        let orders =
            ["junit=r.xml", "github=r.txt", "github-comment=r.cm", "html=r.html", "md=r.md", "json=r.json"];
        orders.iter().for_each(|order| args.extend(["--report", order]));
        let ran = project.run(&args).exits(exit);
        let summary = json(&project, "r.json");
        assert_eq!(counts(true, &summary), [6, 5, 1, 0], "trials are counted as what they are");

        let symbols = stand.map(|passes| if passes { "✓" } else { "✗" });
        for (symbol, id) in symbols.iter().zip(["often", "never"]) {
            assert!(ran.stdout.contains(&format!("\n  {symbol} {id} ")), "{symbol} {id}: {}", ran.stdout);
        }
        let passing = stand.iter().filter(|passes| **passes).count();
        let verdict = format!("5 of 6 trials passed, 1 failed · {passing} of 2 cases pass by their rates");
        assert!(ran.stdout.contains(&verdict), "{}", ran.stdout);

        let junit = quick_junit::Report::deserialize_from_str(&read(&project, "r.xml")).expect("JUnit");
        let failing = stand.iter().filter(|passes| !**passes).count();
        assert_eq!((junit.tests, junit.failures, junit.errors), (6, 3 * failing, 0));

        let annotations = read(&project, "r.txt");
        assert_eq!(annotations.matches("::error ").count(), failing, "{annotations}");
        let comment = read(&project, "r.cm");
        assert_eq!(comment.contains("Did not pass"), failing > 0, "{comment}");
        let page = read(&project, "r.html");
        for (passes, count) in [("pass", passing), ("fail", failing)] {
            assert_eq!(page.matches(&format!("data-stand=\"{passes}\"")).count(), count);
        }
        let word = if stand[0] { "passes" } else { "fails" };
        let page = read(&project, "r.md");
        let message = format!(
            "The case {word}: the skill was activated in 2 of 3 runs, and {first}0 or more is wanted."
        );
        assert!(page.contains(&message), "{page}");
        for (id, passes) in ["often", "never"].into_iter().zip(stand) {
            let words = format!("title={id} of mixed::the skill was activated in ");
            assert_eq!(annotations.contains(&words), !passes, "{annotations}");
        }
    }
}

//! The command `report`, run on stored runs.

use std::process::Command;

use super::common::{Project, Ran};
use super::{project, read};

const ONE: &str = "\
practicum: 1
workspace: empty
run: { agents: [own] }
cases:
  - { id: good, prompt: speak, checks: [{ max_length: 100 }] }
";

fn small() -> Project {
    let project = project();
    project.write("evals/mixed.practicum.yaml", ONE);
    project
}

#[test]
fn a_stored_run_is_reported_by_any_of_its_names() {
    let project = small();
    project.run(&["run", "evals", "-q"]).exits(0);
    let folder = project.only_run();
    let id = folder.file_name().expect("a name").to_string_lossy().into_owned();
    let path = folder.to_string_lossy().into_owned();
    let expected = std::fs::read_to_string(folder.join("summary.json")).expect("a summary");
    for name in ["latest", &id, &id[4..], &path] {
        let ran = project.run(&["report", name, "--format", "json"]).exits(0);
        assert_eq!(ran.stdout.trim(), expected.trim(), "{name}");
        assert_eq!(ran.stderr, "");
    }
    let ran = project.run(&["report"]).exits(0);
    assert!(ran.stdout.contains("PASS  1 of 1 trial passed"), "{}", ran.stdout);
    project.run(&["report", "latest", "--format", "html", "-o", "deep/er/page.html"]).exits(0);
    assert!(read(&project, "deep/er/page.html").ends_with("</html>\n"));
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_runs() {
    let project = small();
    for (args, complaint) in [
        (vec!["--report", "html"], "it must be like junit=results.xml"),
        (vec!["--report", "pdf=x"], "it may be text, json, md, html, junit, csv"),
        (vec!["--report", "skill-creator=-"], "name a folder"),
        (vec!["--report", "md=-", "--report", "csv=-"], "only one report"),
        (vec!["--report", "md=-", "--json"], "--json takes standard output"),
        (vec!["--report", "md="], "md needs a path"),
    ] {
        let ran = project.run(&[vec!["run", "evals"], args].concat()).exits(2);
        assert!(ran.stderr.contains(complaint), "{complaint}: {}", ran.stderr);
    }
    assert!(!project.path().join(".practicum").exists(), "nothing ran");
    let ran = project.run(&["report", "latest"]).exits(2);
    assert!(ran.stderr.contains("there are no runs yet"), "{}", ran.stderr);
}

#[test]
fn a_report_that_cannot_be_written_is_told_of_and_the_others_are_written() {
    let project = small();
    project.write("taken", "a file, no folder");
    let args = ["run", "evals", "-q", "--report", "md=taken/r.md", "--report", "csv=r.csv"];
    let ran = project.run(&args).exits(3);
    assert!(ran.stderr.contains("cannot write the report md to taken/r.md"), "{}", ran.stderr);
    assert!(ran.stdout.contains("reports: r.csv"), "{}", ran.stdout);
    assert_eq!(read(&project, "r.csv").lines().count(), 2);
}

#[test]
fn a_report_on_standard_output_is_alone_there() {
    let project = small();
    let ran = project.run(&["run", "evals", "-q", "--report", "csv=-"]).exits(0);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("PASS  1 of 1"), "the summary is beside it: {}", ran.stderr);
}

#[test]
fn the_step_s_summary_is_added_to_where_github_says() {
    let project = project();
    project.write("step.md", "before\n");
    project.run(&["run", "evals", "-q", "-j", "4"]).exits(1);
    let mut command = project.practicum(&["report", "latest", "--format", "github"]);
    command.env("GITHUB_STEP_SUMMARY", project.path().join("step.md"));
    let ran = Ran::of(command.output().expect("practicum starts")).exits(0);
    assert!(ran.stdout.starts_with("::error "), "{}", ran.stdout);
    let step = read(&project, "step.md");
    assert!(step.starts_with("before\n## ❌ mixed: failed\n"), "{step}");
    assert!(!step.contains("<!--"), "only a comment is looked for by a marker");
}

#[test]
fn places_are_seen_from_the_repository() {
    let project = project();
    std::fs::create_dir(project.path().join(".git")).expect("a folder");
    project.run(&["run", "evals", "-q", "-j", "4"]).exits(1);
    let annotations = || project.run(&["report", "--format", "github"]).exits(0).stdout;
    let shown = annotations();
    assert!(shown.contains("file=evals/mixed.practicum.yaml,line=8,"), "{shown}");
    project.write("evals/mixed.practicum.yaml", "# Everything moved.\n");
    let shown = annotations();
    assert!(!shown.contains("file="), "a file that has changed has other lines: {shown}");
}

#[test]
fn junit_fits_its_schema() {
    let project = project();
    project.run(&["run", "evals", "-q", "-j", "4", "--report", "junit=r.xml"]).exits(1);
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/junit.xsd");
    let report = project.path().join("r.xml");
    match Command::new("xmllint").args(["--noout", "--schema", schema]).arg(&report).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => eprintln!("no xmllint ({error}): the schema was not held against the report"),
    }
}

#[test]
fn trials_are_shown_by_the_id_of_their_case() {
    let project = small();
    project.write("evals/mixed.practicum.yaml", &ONE.replace("id: good", "id: birds/001"));
    project.run(&["run", "evals", "-q"]).exits(0);
    for wanted in ["birds/001", "birds_001", "birds/"] {
        let ran = project.run(&["show", "latest", wanted]).exits(0);
        assert!(ran.stdout.contains("case birds/001 of mixed"), "{wanted}: {}", ran.stdout);
    }
    let ran = project.run(&["show", "latest", "birds/002"]).exits(2);
    assert!(ran.stderr.contains("no case or trial fits \"birds/002\""), "{}", ran.stderr);
}

#[test]
fn a_plan_counts_only_what_is_left_of_it() {
    let project = project();
    let only_activation = "practicum: 1\nskill: ../gull\nworkspace: empty\nrun: { agents: [own] }\ncases:\n\
        \u{20} - { id: woken, prompt: fire, activation: must }\n";
    project.write("evals/triggers.practicum.yaml", only_activation);
    for (only, plan, suites) in [
        (&[][..], "plan: 23 trials of 8 cases in 2 suites with own", 2),
        (&["--only", "artifact"], "plan: 16 trials of 4 cases in 1 suite with own", 1),
        (&["--only", "activation"], "plan: 7 trials of 4 cases in 2 suites with own", 2),
    ] {
        let ran = project.run(&[&["run", "evals", "--dry-run"], only].concat()).exits(0);
        assert!(ran.stderr.contains(plan), "{plan}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches(", at most ").count(), suites, "{}", ran.stderr);
    }
}

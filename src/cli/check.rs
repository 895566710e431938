use std::collections::BTreeSet;

use super::evals::Evals;
use super::{colour, complain, counted, environment, print, print_json, tell_notices};
use crate::dialects::Loaded;
use crate::intake::{self, Reading};
use crate::model::{Diagnostic, Lowered, Severity};
use crate::report::{Checked, CheckedFile, Problem, render_diagnostics, shown_path};
use crate::self_test::self_test;
use crate::settings::project_root;

#[derive(clap::Args)]
#[command(after_help = "\
Errors make a file unusable, warnings are about exams that prove little, notices tell what was kept \
or ignored. Exit code 2 if any file has an error.

--self-test asks whether the exam can be failed and passed at all, without an agent or a model: a case \
that an agent which does nothing would pass is a warning, an oracle (an output that is known to be \
good) that fails is an error. Judges and commands are not asked, and cases that need them are named.

Examples:
  practicum check                  every eval file below this folder
  practicum check evals.json --json
  practicum check . --self-test
  practicum check old.json --dialect bmad")]
pub struct Args {
    #[command(flatten)]
    evals: Evals,
    /// Print the findings as JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// Mark an agent that does nothing, and each oracle: the one must fail, the other pass
    #[arg(long)]
    self_test: bool,
    /// Only errors and warnings
    #[arg(short, long)]
    quiet: bool,
}

pub fn main(args: Args) -> u8 {
    check(&args).unwrap_or_else(|error| complain(&error))
}

fn check(args: &Args) -> anyhow::Result<u8> {
    let mut reading = intake::read(&args.evals.inputs(), &environment())?;
    tell_notices(&reading.notices);
    let named = reading.names_skill();
    let mut told = BTreeSet::new();
    reading.files.iter_mut().for_each(|file| look_at_skills(file, named, &mut told));
    reading.refuse_missing_files();
    if args.self_test {
        reading.files.iter_mut().for_each(test_itself);
    }
    if args.json {
        print_json(&document(&reading))?;
    } else {
        print(&in_words(&reading, args.quiet))?;
    }
    Ok(if reading.has_errors() { 2 } else { 0 })
}

/// What is wrong with the skills that a file's suite stages. Only here, because a run tells it once for all
/// its suites. Where the user names the skill under test, the file's own is not staged. Warnings about a frontmatter
/// that were `told` of another file with the same skill are not repeated.
fn look_at_skills(file: &mut Loaded, named: bool, told: &mut BTreeSet<String>) {
    if let Lowered { suite: Some(suite), diagnostics } = &mut file.lowered {
        for told in intake::unreadable_skills(suite).into_iter().filter(|_| !named) {
            diagnostics.error("unreadable-skill", None, told);
        }
        for told in intake::leave_out_unfit_rivals(suite) {
            diagnostics.warning("rival-left-out", None, told);
        }
        for warning in intake::skill_warnings(suite) {
            if told.insert(warning.clone()) {
                diagnostics.warning("skill-frontmatter", None, warning);
            }
        }
        for told in intake::names_that_differ(suite).into_iter().filter(|_| !named) {
            diagnostics.warning_help("name-folder", None, told, "rename one of them");
        }
        for told in intake::hidden_from_model(suite).into_iter().filter(|_| !named) {
            diagnostics.warning("hidden-from-model", None, told);
        }
        for told in intake::skills_without_description(suite).into_iter().filter(|_| !named) {
            let help = "say in the frontmatter's description what the skill does and when to use it";
            diagnostics.warning_help("skill-not-listed", None, told, help);
        }
        for told in intake::left_behind(suite) {
            diagnostics.warning_help("link-not-staged", None, told, "copy what it leads to into the skill");
        }
        for told in intake::links_of_overlays(suite) {
            diagnostics.warning_help("link-not-staged", None, told, "copy what it leads to into the overlay");
        }
    }
}

fn test_itself(file: &mut Loaded) {
    if let Lowered { suite: Some(suite), diagnostics } = &mut file.lowered {
        self_test(suite, &file.text, &project_root(&file.path), diagnostics);
    }
}

fn document(reading: &Reading) -> Checked {
    Checked {
        schema_version: 1,
        files: reading.files.iter().map(file).collect(),
        skipped: reading.skipped.clone(),
        ok: !reading.has_errors(),
    }
}

fn file(file: &Loaded) -> CheckedFile {
    let suite = file.lowered.suite.as_ref();
    let diagnostics = &file.lowered.diagnostics;
    CheckedFile {
        path: file.path.clone(),
        dialect: file.dialect.map(str::to_owned),
        suite: suite.map(|suite| suite.name.clone()),
        cases: suite.map_or(0, |suite| suite.cases.len()),
        ok: !diagnostics.has_errors(),
        problems: diagnostics.iter().map(|diagnostic| problem(diagnostic, &file.text)).collect(),
    }
}

fn problem(diagnostic: &Diagnostic, text: &str) -> Problem {
    let position = diagnostic.span.map(|span| span.position(text));
    Problem {
        severity: diagnostic.severity,
        code: diagnostic.code.to_owned(),
        message: diagnostic.message.clone(),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
        help: diagnostic.help.clone(),
    }
}

fn in_words(reading: &Reading, quiet: bool) -> String {
    let mut out = String::new();
    let mut counts = [0; 3];
    let mut cases = 0;
    for file in &reading.files {
        let diagnostics = &file.lowered.diagnostics;
        for diagnostic in diagnostics.iter() {
            counts[diagnostic.severity as usize] += 1;
        }
        let worst = diagnostics.iter().map(|diagnostic| diagnostic.severity).min();
        if worst.is_some_and(|worst| !quiet || worst != Severity::Notice) {
            out.push_str(&render_diagnostics(diagnostics, &file.path, &file.text, colour()));
        }
        let Some(suite) = &file.lowered.suite else { continue };
        cases += suite.cases.len();
        if !quiet {
            let dialect = file.dialect.unwrap_or_default();
            let count = counted(suite.cases.len(), "case");
            let path = shown_path(&file.path);
            let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
            out.push_str(&match errors {
                0 => format!("ok {path} ({dialect}, {count})\n"),
                _ => format!("{path} ({dialect}, {count}): {}\n", counted(errors, "error")),
            });
        }
    }
    let [errors, warnings, notices] = counts;
    out.push_str(&format!(
        "{}, {}: {}, {}, {}\n",
        counted(reading.files.len(), "file"),
        counted(cases, "case"),
        counted(errors, "error"),
        counted(warnings, "warning"),
        counted(notices, "notice"),
    ));
    out
}

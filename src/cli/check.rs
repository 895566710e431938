//! The command `practicum check`: checks eval files and the skills that they name, without running anything.

use std::collections::BTreeSet;

use super::findings_args::{FindingsArgs, FindingsForm};
use super::shared_args::EvalsArgs;
use super::{count_with_noun, environment, has_colour, print, print_json, report_error, tell_notices};
use crate::dialects::{EvalFolder, EvalRegistry, LoadedFile};
use crate::grade::self_test::self_test;
use crate::model::{Diagnostic, Diagnostics, LoadedSuite, Outcome, Severity};
use crate::plan::CaseFilter;
use crate::plan::settings::project_root;
use crate::report::{
    CheckDocument, CheckedFile, FileFindings, FileProblem, FittingFormat, FormatPoints, display_path,
    render_diagnostics,
};
use crate::session::run_setup::{self, EvalFiles};
use crate::skill::SkillCache;
use crate::tree::{SourceFile, SourceSyntax};

#[derive(clap::Args)]
#[command(after_help = "\
Errors make a file unusable, warnings are about evals that prove little, notices say what was \
ignored. Exit code 2 if any file has an error.

--self-test shows whether each case can fail and pass at all, without an agent or a model: a case \
that an agent which does nothing would pass is a warning, an oracle (an output that is known to be \
good) that fails is an error. Judges and commands are not asked, and cases that need them are named.

Examples:
  practicum check                  every eval file below this folder
  practicum check evals.json --json
  practicum check . --format sarif > check.sarif
  practicum check . --self-test
  practicum check evals.json --explain-format
  practicum check old.json --dialect bmad")]
pub struct CheckArgs {
    #[command(flatten)]
    evals: EvalsArgs,
    #[command(flatten)]
    findings: FindingsArgs,
    /// Grade an agent that does nothing, which must fail, and each oracle, which must pass
    #[arg(long)]
    self_test: bool,
    /// Say for each file which formats fit it, and why
    #[arg(long)]
    explain_format: bool,
    /// Only errors and warnings
    #[arg(short, long)]
    quiet: bool,
}

pub fn main(args: CheckArgs) -> Outcome {
    check(&args).unwrap_or_else(|error| report_error(&error))
}

fn check(args: &CheckArgs) -> anyhow::Result<Outcome> {
    let mut reading =
        run_setup::read_eval_files(&args.evals.inputs(), &environment(), &EvalRegistry::default())?;
    tell_notices(&reading.notices);
    let named = reading.names_skill();
    let mut reported = BTreeSet::new();
    let skills = reading.skills.clone();
    reading.files.iter_mut().for_each(|file| check_skills(file, named, &skills, &mut reported));
    reading.refuse_missing_files(&CaseFilter::default());
    if args.self_test {
        reading.files.iter_mut().for_each(self_test_file);
    }
    let form = args.findings.form();
    let found: Vec<FileFindings> = reading.files.iter().map(findings_of).collect();
    if form.print_for_programs(&found)? {
        return Ok(outcome(&reading));
    }
    if form == FindingsForm::Json {
        print_json(&check_document(&reading, args.explain_format))?;
    } else {
        if args.explain_format {
            print(&describe_formats(&reading))?;
        }
        print(&describe_checked_files(&reading, args.quiet))?;
    }
    Ok(outcome(&reading))
}

fn outcome(reading: &EvalFiles) -> Outcome {
    if reading.has_errors() { Outcome::Invalid } else { Outcome::Passed }
}

fn findings_of(file: &LoadedFile) -> FileFindings<'_> {
    FileFindings { path: &file.path, text: &file.text, diagnostics: &file.lowered.diagnostics }
}

/// Adds the problems of the skills that a file's suite stages. Only this command does so for each file, because a
/// run reports them once for all its suites. With `named`, the user names the skill under test, so the file's own
/// skill is not staged. Warnings about a frontmatter that are in `reported` were already reported for another file,
/// and are not repeated.
fn check_skills(file: &mut LoadedFile, named: bool, cache: &SkillCache, reported: &mut BTreeSet<String>) {
    if let LoadedSuite { suite: Some(suite), diagnostics } = &mut file.lowered {
        for message in run_setup::unreadable_skills(suite, cache).into_iter().filter(|_| !named) {
            diagnostics.error("unreadable-skill", None, message);
        }
        for message in run_setup::leave_out_unfit_rivals(suite, cache) {
            diagnostics.warning("rival-left-out", None, message);
        }
        for warning in run_setup::skill_warnings(suite, cache) {
            if reported.insert(warning.clone()) {
                diagnostics.warning("skill-frontmatter", None, warning);
            }
        }
        for message in run_setup::mismatched_name_notices(suite, cache).into_iter().filter(|_| !named) {
            diagnostics.warning_with_help("name-folder", None, message, "rename one of them");
        }
        for message in run_setup::uncallable_skill_notices(suite, cache).into_iter().filter(|_| !named) {
            diagnostics.warning("hidden-from-model", None, message);
        }
        for message in run_setup::missing_description_notices(suite, cache).into_iter().filter(|_| !named) {
            let help = "say in the frontmatter's description what the skill does and when to use it";
            diagnostics.warning_with_help("skill-not-listed", None, message, help);
        }
        for message in run_setup::skill_link_notices(suite, cache) {
            diagnostics.warning_with_help(
                "link-not-staged",
                None,
                message,
                "copy what it leads to into the skill",
            );
        }
        for message in run_setup::overlay_link_notices(suite) {
            diagnostics.warning_with_help(
                "link-not-staged",
                None,
                message,
                "copy what it leads to into the overlay",
            );
        }
    }
}

fn self_test_file(file: &mut LoadedFile) {
    if let LoadedSuite { suite: Some(suite), diagnostics } = &mut file.lowered {
        self_test(suite, &file.text, &project_root(&file.path), diagnostics);
    }
}

/// Gives the formats that fit a file, the best first. A file that cannot be parsed fits none.
fn fitting_formats(file: &LoadedFile) -> Vec<FittingFormat> {
    let registry = EvalRegistry::default();
    let decision = match EvalFolder::open(&file.path) {
        Ok(folder) if file.path.is_dir() => registry.decide_folder_format(&folder),
        _ => {
            let syntax = SourceSyntax::detect(&file.path, &file.text);
            let mut errors = Diagnostics::default();
            let source = SourceFile::parse(&file.path, file.text.clone(), syntax, &mut errors);
            source.map(|source| registry.decide_format(&source)).unwrap_or_default()
        }
    };
    let formats = decision.candidates.iter().map(|candidate| FittingFormat {
        name: candidate.format.name().to_owned(),
        score: candidate.found.score(),
        reasons: candidate
            .found
            .reasons
            .iter()
            .map(|reason| FormatPoints { points: reason.points, reason: reason.text.to_string() })
            .collect(),
    });
    formats.collect()
}

/// Describes how the format of each file was recognised.
fn describe_formats(reading: &EvalFiles) -> String {
    let mut out = String::new();
    for file in &reading.files {
        let read_as = file.dialect.unwrap_or("no format");
        out.push_str(&format!("{}: read as {read_as}\n", display_path(&file.path)));
        for format in fitting_formats(file) {
            out.push_str(&format!("  {:>4} {}\n", format.score, format.name));
            for FormatPoints { points, reason } in &format.reasons {
                out.push_str(&format!("       {points:>4} {reason}\n"));
            }
        }
    }
    out
}

fn check_document(reading: &EvalFiles, explain: bool) -> CheckDocument {
    CheckDocument {
        schema_version: 1,
        files: reading.files.iter().map(|file| file_document(file, explain)).collect(),
        skipped: reading.skipped.clone(),
        ok: !reading.has_errors(),
    }
}

fn file_document(file: &LoadedFile, explain: bool) -> CheckedFile {
    let suite = file.lowered.suite.as_ref();
    let diagnostics = &file.lowered.diagnostics;
    CheckedFile {
        path: file.path.clone(),
        dialect: file.dialect.map(str::to_owned),
        suite: suite.map(|suite| suite.name.clone()),
        cases: suite.map_or(0, |suite| suite.cases.len()),
        ok: !diagnostics.has_errors(),
        problems: diagnostics.iter().map(|diagnostic| diagnostic_document(diagnostic, &file.text)).collect(),
        formats: explain.then(|| fitting_formats(file)),
    }
}

fn diagnostic_document(diagnostic: &Diagnostic, text: &str) -> FileProblem {
    let position = diagnostic.span.map(|span| span.position(text));
    FileProblem {
        severity: diagnostic.severity,
        code: diagnostic.code.to_owned(),
        message: diagnostic.message.clone(),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
        help: diagnostic.help.clone(),
    }
}

fn describe_checked_files(reading: &EvalFiles, quiet: bool) -> String {
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
            out.push_str(&render_diagnostics(diagnostics, &file.path, &file.text, has_colour()));
        }
        let Some(suite) = &file.lowered.suite else { continue };
        cases += suite.cases.len();
        if !quiet {
            let dialect = file.dialect.unwrap_or_default();
            let count = count_with_noun(suite.cases.len(), "case");
            let path = display_path(&file.path);
            let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
            out.push_str(&match errors {
                0 => format!("ok {path} ({dialect}, {count})\n"),
                _ => format!("{path} ({dialect}, {count}): {}\n", count_with_noun(errors, "error")),
            });
        }
    }
    let [errors, warnings, notices] = counts;
    out.push_str(&format!(
        "{}, {}: {}, {}, {}\n",
        count_with_noun(reading.files.len(), "file"),
        count_with_noun(cases, "case"),
        count_with_noun(errors, "error"),
        count_with_noun(warnings, "warning"),
        count_with_noun(notices, "notice"),
    ));
    out
}

//! The command `practicum diagnose`: why a skill does not help.

use std::collections::BTreeMap;

use anyhow::bail;

use super::run_flags::{RunFlags, parse_ratio, refuse_stopped};
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{command_words, environment, print, print_json, report_error};
use crate::model::{CasePrompt, Outcome, Ratio, TrialRecord, count_with_noun};
use crate::report::diagnosis;
use crate::session::run_setup::EvalFiles;
use crate::session::{CaseKind, RunOptions, Session, SessionError, SuitesToRun};
use crate::skill::Skill;
use crate::stats::Cluster;
use crate::store::read_records;
use crate::studies::{Blame, DiagnosisCells, DiagnosisDocument, VersionRuns, diagnose};

#[derive(clap::Args)]
#[command(after_help = "\
The cases run in four ways: without the skill (absent), with it (present), with a prompt that says to use it (named), and \
with its text in the system prompt in place of the skill (in prompt; other files of the skill are not there). Comparing \
them says which part is to blame:

  the skill helps               present is better than absent
  the description is not found  named or in prompt is better than present,
                                and the skill is rarely activated
  found and not followed        in prompt is better than present,
                                and the skill is usually activated
  followed and not helping      in prompt is the same as absent
  the skill makes results worse
  cannot tell                   more cases or runs are needed

The chance that any of the comparisons claims a difference where there is none is at most 5 %. If the command is \
interrupted, the same command continues.

Exit codes: 0 the skill helps, 1 something is to blame, 3 it cannot be told.

Examples:
  practicum diagnose skills/release-notes --repeat 5
  practicum diagnose evals --skill skills/release-notes --agent codex")]
pub struct DiagnoseArgs {
    #[command(flatten)]
    evals: EvalsArgs,
    /// Differences of the pass rate smaller than this do not matter
    #[arg(long, value_name = "RATIO", default_value = "0.1", value_parser = parse_ratio)]
    margin: Ratio,
    #[command(flatten)]
    choices: SettingArgs,
    #[command(flatten)]
    flags: RunFlags,
}

/// The default number of trials of each case.
const DEFAULT_RUNS: u32 = 5;

/// One of the four ways to run the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Absent,
    Present,
    Named,
    InPrompt,
}

pub fn main(args: &DiagnoseArgs) -> Outcome {
    run_diagnosis(args).unwrap_or_else(|error| report_error(&error))
}

fn run_diagnosis(args: &DiagnoseArgs) -> anyhow::Result<Outcome> {
    if !args.flags.gates_asked().is_empty() {
        bail!("--gate cannot be given to diagnose, which compares and has no gates");
    }
    if args.choices.flags().contains_key("arm") {
        bail!("--arm cannot be given to diagnose, which runs with the skill and without it");
    }
    let mut cells = DiagnosisCells::default();
    for cell in [Cell::Absent, Cell::Present, Cell::Named, Cell::InPrompt] {
        say!("{}", cell.describe());
        let Some(records) = run_cell(args, cell)? else { return Ok(Outcome::Passed) };
        let runs = VersionRuns::from_records(&records);
        match cell {
            Cell::Absent => cells.absent = runs,
            Cell::Present => {
                (cells.activated, cells.activation_unknown) = count_activations(&records);
                cells.present = runs;
            }
            Cell::Named => cells.named = runs,
            Cell::InPrompt => cells.in_prompt = runs,
        }
    }
    let found = diagnose(&cells, args.margin.get());
    let document = DiagnosisDocument { schema_version: 1, margin: args.margin.get(), diagnosis: found };
    if args.flags.json {
        print_json(&document)?;
    } else {
        print(&diagnosis::render_text(&document))?;
    }
    Ok(match document.diagnosis.blame {
        Blame::Helps => Outcome::Passed,
        Blame::Harms | Blame::NotFound | Blame::NotFollowed | Blame::NotHelping => Outcome::Failed,
        Blame::CannotTell => Outcome::Incomplete,
    })
}

/// Runs all cases in one way. `None` if nothing was to be run.
fn run_cell(args: &DiagnoseArgs, cell: Cell) -> anyhow::Result<Option<Vec<TrialRecord>>> {
    let session = Session::new(args.evals.project())
        .with_options(cell.options(args))
        .with_limits(args.flags.limits())
        .with_command(command_words())
        .with_environment(environment())
        .changing_reading(move |reading| cell.change_cases(reading));
    let mut observer = args.flags.observer();
    let mut suites = session.read_suites(&mut observer)?;
    if cell == Cell::InPrompt {
        put_skills_in_prompt(&mut suites)?;
    }
    let finished = args.flags.run_with(suites, &mut observer)?.map(refuse_stopped).transpose()?;
    let Some(finished) = finished else { return Ok(None) };
    Ok(Some(read_records(finished.run_dir.path())?.into_values().collect()))
}

impl Cell {
    fn describe(self) -> &'static str {
        match self {
            Cell::Absent => "without the skill",
            Cell::Present => "with the skill",
            Cell::Named => "with a prompt that names the skill",
            Cell::InPrompt => "with the skill's text in the system prompt",
        }
    }

    fn options(self, args: &DiagnoseArgs) -> RunOptions {
        let arm = match self {
            Cell::Absent | Cell::InPrompt => "without",
            Cell::Present | Cell::Named => "with",
        };
        let choices = args.choices.clone().with_repeat(DEFAULT_RUNS);
        let mut options = args.flags.options(&args.evals, &choices);
        options.settings.insert("arm".to_owned(), arm.to_owned());
        options.selection.only = Some(CaseKind::Artifact);
        if self != Cell::Present {
            options.not_in_history = Some("a cell of a diagnosis".to_owned());
        }
        options
    }

    /// Leaves out cases that call the skill by its command, and names the skill in the prompts of the cell for that.
    fn change_cases(self, reading: &mut EvalFiles) -> Result<(), SessionError> {
        let mut left_out = 0;
        for suite in reading.files.iter_mut().filter_map(|file| file.lowered.suite.as_mut()) {
            let all = suite.cases.len();
            suite.cases.retain(|case| matches!(case.prompt, CasePrompt::Turns(_)));
            left_out += all - suite.cases.len();
            let [skill] = suite.skills.as_slice() else {
                let problem = format!(
                    "{} is about {}; a diagnosis is about one",
                    suite.name,
                    count_with_noun(suite.skills.len(), "skill")
                );
                return Err(SessionError::Refused(problem));
            };
            let name = skill.name.clone();
            for case in suite.cases.iter_mut().filter(|_| self == Cell::Named) {
                if let CasePrompt::Turns(turns) = &mut case.prompt
                    && let Some(first) = turns.first_mut()
                {
                    *first = format!("Use the skill \"{name}\" for this.\n\n{first}");
                }
            }
        }
        if left_out > 0 && self == Cell::Absent {
            say!(
                "note: {} left out, because they call the skill by its command",
                count_with_noun(left_out, "case")
            );
        }
        Ok(())
    }
}

/// Adds the text of each suite's skill to the system prompt.
fn put_skills_in_prompt(suites: &mut SuitesToRun) -> anyhow::Result<()> {
    for planned in &mut suites.suites {
        for path in planned.suite.skills.iter().filter_map(|skill| skill.path.as_deref()) {
            let skill = Skill::read(path)?;
            let text = format!("Follow these instructions:\n\n{}", skill.body.trim());
            planned.mode_text = Some(match planned.mode_text.take() {
                Some(before) => format!("{before}\n\n{text}"),
                None => text,
            });
        }
    }
    Ok(())
}

/// Counts in how many runs of each case the skill was activated, and the runs that do not show it.
fn count_activations(records: &[TrialRecord]) -> (Vec<Cluster>, u64) {
    let mut cases: BTreeMap<(&str, &str, &str), Cluster> = BTreeMap::new();
    let mut unknown = 0;
    for record in records {
        match record.fired {
            Some(fired) => {
                let of = cases.entry((&record.suite, &record.case, &record.condition.agent)).or_default();
                *of = Cluster::new(of.passed + u64::from(fired), of.runs + 1);
            }
            None => unknown += 1,
        }
    }
    (cases.into_values().collect(), unknown)
}

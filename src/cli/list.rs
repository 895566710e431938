//! The command `practicum list`: shows what would run.

use super::shared_args::{EvalsArgs, SettingArgs};
use super::{count_with_noun, environment, print, print_json, report_error, tell_notices};
use crate::dialects::EvalRegistry;
use crate::model::{Fixture, Outcome};
use crate::plan::settings::SettingLayers;
use crate::plan::{CaseFilter, Plan, build_plan};
use crate::report::{ListedCase, ListedFile, ListedSuite, ListedTrials, PlanListing, terminal_safe};
use crate::session::run_setup::{self, RunSetupError};

#[derive(clap::Args)]
#[command(after_help = "\
Behind each case stands how often it would run with which agent, with the skill or without it. \
Exit code 2 if a file cannot be understood.

Examples:
  practicum list                             every eval below this folder
  practicum list skills/release-notes --arm with --arm without
  practicum list . --json | jq '.suites[].name'")]
pub struct ListArgs {
    #[command(flatten)]
    evals: EvalsArgs,
    #[command(flatten)]
    choices: SettingArgs,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: ListArgs) -> Outcome {
    list(&args).unwrap_or_else(|error| report_error(&error))
}

fn list(args: &ListArgs) -> anyhow::Result<Outcome> {
    let environment = environment();
    let ask = args.evals.inputs();
    let layers = SettingLayers::read(args.choices.flags(), environment.clone(), &args.evals.project())
        .map_err(RunSetupError::from)?;
    let reading = run_setup::read_eval_files(&ask, &environment, &EvalRegistry::default())?;
    tell_notices(&reading.notices);
    let invalid = reading.has_errors();
    let planned = run_setup::outline_eval_files(reading, &layers)?;
    let plan = build_plan(planned, &CaseFilter::default());
    if args.json {
        print_json(&list_document(&plan))?;
    } else {
        print(&terminal_safe(&describe_plan(&plan)))?;
    }
    if invalid {
        say!("error: some files cannot be understood and are not listed; practicum check says why");
        return Ok(Outcome::Invalid);
    }
    Ok(Outcome::Passed)
}

/// Counts the trials of a case, by agent and arm.
fn trials_of(plan: &Plan, suite: usize, case: usize) -> Vec<ListedTrials> {
    let mut counts: Vec<ListedTrials> = Vec::new();
    for trial in plan.trials.iter().filter(|trial| (trial.suite, trial.case) == (suite, case)) {
        let (agent, arm) = (trial.condition.agent.clone(), trial.condition.arm.name());
        match counts.iter_mut().find(|known| known.agent == agent && known.arm == arm) {
            Some(known) => known.count += 1,
            None => counts.push(ListedTrials { agent, arm, count: 1 }),
        }
    }
    counts
}

fn listed_file(Fixture { source: from, destination: to, access: _ }: &Fixture) -> ListedFile {
    ListedFile { from: std::path::absolute(from).unwrap_or_else(|_| from.clone()), to: to.to_string() }
}

/// Gives the plan as a JSON document.
pub fn list_document(plan: &Plan) -> PlanListing {
    let suites = plan.suites.iter().enumerate().map(|(index, planned)| {
        let suite = &planned.suite;
        let cases = suite.cases.iter().enumerate().map(|(case_index, case)| ListedCase {
            id: case.id.clone(),
            group: case.group.clone(),
            checks: case.checks.len(),
            files: case.workspace.files.iter().map(listed_file).collect(),
            trials: trials_of(plan, index, case_index),
        });
        ListedSuite {
            name: suite.name.clone(),
            dialect: suite.origin.dialect.clone(),
            path: suite.origin.path.clone(),
            skills: suite.skills.iter().map(|skill| skill.name.clone()).collect(),
            cases: cases.collect(),
        }
    });
    PlanListing { schema_version: 1, suites: suites.collect(), trials: plan.trials.len() }
}

fn describe_plan(plan: &Plan) -> String {
    let mut out = String::new();
    for (index, planned) in plan.suites.iter().enumerate() {
        let suite = &planned.suite;
        let skills: Vec<&str> = suite.skills.iter().map(|skill| skill.name.as_str()).collect();
        let about = if skills.is_empty() { "no skill named".to_owned() } else { skills.join(", ") };
        out.push_str(&format!(
            "{} ({}; {})\n",
            terminal_safe(&suite.name),
            suite.origin.dialect,
            terminal_safe(&about)
        ));
        for (case_index, case) in suite.cases.iter().enumerate() {
            let trials: Vec<String> = trials_of(plan, index, case_index)
                .into_iter()
                .map(|ListedTrials { agent, arm, count }| format!("{count} × {agent} {arm}"))
                .collect();
            out.push_str(&format!("  {}  {}\n", terminal_safe(&case.id), trials.join(", ")));
        }
    }
    let cases: usize = plan.suites.iter().map(|planned| planned.suite.cases.len()).sum();
    out.push_str(&format!(
        "{}, {}, {}\n",
        count_with_noun(plan.suites.len(), "suite"),
        count_with_noun(cases, "case"),
        count_with_noun(plan.trials.len(), "trial")
    ));
    out
}

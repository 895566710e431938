//! The command `practicum noise`: measures how much results vary without any change.

use anyhow::anyhow;

use super::resume::RunToResume;
use super::run_flags::{RunFlags, refuse_stopped};
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{print, print_json, record_key, report_error, run};
use crate::compare::measure_noise;
use crate::model::{Noise, Outcome, TrialRecord, count_with_noun};
use crate::report::terminal_safe;
use crate::session::{RunOptions, Session};
use crate::store::{read_records, save_noise};

#[derive(clap::Args)]
#[command(after_help = "\
Runs every case several times with nothing changed, and keeps how often two runs differ in \
.practicum/noise.json. Afterwards compare knows which differences are usual, and a case that is known to \
be flaky cannot fail a gate alone (run --count-flaky lets it). Measure again when the skill, the agent or \
the model changes much. Half a measurement is not kept; --resume continues it.

Examples:
  practicum noise skills/release-notes             ten runs of each case
  practicum noise evals.yaml --repeat 30 -j 4      thirty, four at a time")]
pub struct NoiseArgs {
    #[command(flatten)]
    evals: EvalsArgs,
    #[command(flatten)]
    choices: SettingArgs,
    #[command(flatten)]
    flags: RunFlags,
    /// Continue a measurement that did not finish, with the options it was started with; only missing trials are
    /// run. The same options as for run --resume may be given again
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest")]
    resume: Option<String>,
}

/// The default number of trials of each case.
const DEFAULT_RUNS: u32 = 10;

pub fn main(args: NoiseArgs) -> Outcome {
    noise(args).unwrap_or_else(|error| report_error(&error))
}

/// Gives the names of the arguments that may be given beside `--resume`.
pub fn resumable_arguments() -> Vec<&'static str> {
    [&RunFlags::RESUMABLE[..], &SettingArgs::RESUMABLE, &["resume"]].concat()
}

impl NoiseArgs {
    /// Gives the options that the arguments set. Reused results would hide the noise, so none are used.
    pub fn options(&self) -> RunOptions {
        let choices = self.choices.clone().with_repeat(DEFAULT_RUNS);
        RunOptions { no_reuse: true, ..self.flags.options(&self.evals, &choices) }
    }
}

fn noise(args: NoiseArgs) -> anyhow::Result<Outcome> {
    let json = args.flags.json;
    let mut project = args.evals.project();
    let session = match &args.resume {
        None => Session::new(&project).with_options(args.options()),
        Some(wanted) => {
            let now = args.options().made_absolute(&std::env::current_dir()?);
            let resumed = RunToResume::find(&project, wanted, "noise", now, &resumable_arguments())?;
            project = resumed.run_dir.project().unwrap_or(project);
            let session = Session::new(&project).with_options(resumed.options);
            session.resuming(resumed.run_dir, resumed.trusted_at_start)
        }
    };
    let session = session.with_limits(args.flags.limits()).showing_only(args.flags.dry_run);
    let finished = run::run_for_command(&args.flags, session)?;
    let Some(finished) = finished.map(refuse_stopped).transpose()? else { return Ok(Outcome::Passed) };
    let records: Vec<TrialRecord> = read_records(finished.run_dir.path())?.into_values().collect();
    let measured = measure_noise(&records.iter().collect::<Vec<_>>());
    if measured.cases.iter().all(|case| case.flip_rate.is_none()) {
        say!("error: no case has two runs with a verdict, so nothing is known of noise; see practicum show");
        return Ok(Outcome::Incomplete);
    }
    save_noise(&project, &measured, &record_key()).map_err(|why| anyhow!(why))?;
    if json {
        print_json(&measured)?;
    } else {
        print(&describe_noise(&measured))?;
    }
    Ok(Outcome::Passed)
}

fn describe_noise(noise: &Noise) -> String {
    let mut out = String::new();
    let flaky = || noise.cases.iter().filter(|case| case.is_flaky());
    for case in flaky() {
        out.push_str(&format!(
            "flaky: {} of {} ({}): {}/{} passed, two runs differ {:.0} % of the time\n",
            terminal_safe(&case.id),
            terminal_safe(&case.suite),
            terminal_safe(&case.agent),
            case.passed,
            case.runs,
            case.flip_rate.unwrap_or_default() * 100.0
        ));
    }
    out.push_str(&format!("flaky: {} of {}\n", flaky().count(), count_with_noun(noise.cases.len(), "case")));
    out
}

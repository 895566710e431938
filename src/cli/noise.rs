use anyhow::{anyhow, bail};

use super::evals::{Choices, Evals};
use super::exam::{Carrying, Held};
use super::going_on::Said;
use super::{Command, complain, print, print_json, run};
use crate::compare::noise_of;
use crate::model::{Noise, TrialRecord, counted};
use crate::report::safe;
use crate::store::{RunDir, keep_noise, records};

#[derive(clap::Args)]
#[command(after_help = "\
Runs every case several times with nothing changed, and keeps how often two runs differ in \
.practicum/noise.json. Afterwards compare knows which differences are usual, and a case that is known to \
be flaky cannot fail a gate alone (run --count-flaky lets it). Measure again when the skill, the agent or \
the model changes much. Half a measurement is not kept: --resume goes on with it.

Examples:
  practicum noise skills/release-notes             ten runs of each case
  practicum noise evals.yaml --repeat 30 -j 4      thirty, four at a time")]
pub struct Args {
    #[command(flatten)]
    evals: Evals,
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    carrying: Carrying,
    /// Go on with a measurement that did not come to its end, as it was begun: only what is missing is run.
    /// Limits and what is shown may be said anew, as with run --resume
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest")]
    resume: Option<String>,
}

/// How often each case runs unless told otherwise.
const RUNS: u32 = 10;

pub fn main(args: Args) -> u8 {
    noise(args).unwrap_or_else(|error| complain(&error))
}

/// What may be said beside `--resume`, by the names of the arguments.
pub fn may_be_said_anew() -> Vec<&'static str> {
    [&Carrying::SAID_ANEW[..], &Choices::SAID_ANEW, &["resume"]].concat()
}

/// The command that began a measurement, to be given again with what may be said anew.
fn as_begun(now: Args, wanted: &str) -> anyhow::Result<Args> {
    let run = RunDir::find(&now.evals.project(), wanted).map_err(|why| anyhow!(why))?;
    let said = Said::now()?;
    said.nothing_but(&may_be_said_anew())?;
    // Before it is read where the other was given.
    let carrying = now.carrying.with_absolute_paths()?;
    let begun = match super::given_before(&run)? {
        (Command::Noise(args), _) => *args,
        (_, info) => bail!("run {} is no measurement of noise; {}", run.id(), info.way_on()),
    };
    Ok(Args {
        choices: begun.choices.going_on(now.choices),
        carrying: begun.carrying.going_on(carrying, &said),
        resume: Some(run.id().to_owned()),
        ..begun
    })
}

fn noise(args: Args) -> anyhow::Result<u8> {
    let args = match args.resume.clone() {
        Some(wanted) => as_begun(args, &wanted)?,
        None => args,
    };
    let json = args.carrying.json;
    let project = args.evals.project();
    // What was kept from an earlier run would only repeat itself.
    let carrying = args.carrying.anew();
    let choices = args.choices.with_repeat(RUNS);
    let held = match args.resume {
        Some(run) => run::hold_on(run, args.evals, choices, carrying)?,
        None => run::hold(args.evals, choices, carrying, |_| Ok(()))?,
    };
    let Some(held) = held.map(Held::if_whole).transpose()? else { return Ok(0) };
    let records: Vec<TrialRecord> = records(held.run_dir.path())?.into_values().collect();
    let measured = noise_of(&records.iter().collect::<Vec<_>>());
    if measured.cases.iter().all(|case| case.flip_rate.is_none()) {
        say!("error: no case has two runs with a verdict, so nothing is known of noise; see practicum show");
        return Ok(3);
    }
    keep_noise(&project, &measured).map_err(|why| anyhow!(why))?;
    if json {
        print_json(&measured)?;
    } else {
        print(&in_words(&measured))?;
    }
    Ok(0)
}

fn in_words(noise: &Noise) -> String {
    let mut out = String::new();
    let flaky = || noise.cases.iter().filter(|case| case.is_flaky());
    for case in flaky() {
        out.push_str(&format!(
            "flaky: {} of {} ({}): {}/{} passed, two runs differ {:.0} % of the time\n",
            safe(&case.id),
            safe(&case.suite),
            safe(&case.agent),
            case.passed,
            case.runs,
            case.flip_rate.unwrap_or_default() * 100.0
        ));
    }
    out.push_str(&format!("flaky: {} of {}\n", flaky().count(), counted(noise.cases.len(), "case")));
    out
}

//! The blind half of `compare`.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

use super::evals::Choices;
use super::exam::Carrying;
use super::{environment, print, print_json, runtime};
use crate::improve::{self, Blind, Outcome, Outputs, StoredRun, Versions};
use crate::intake::IntakeError;
use crate::model::{Compared, Digest, Origin, Suite};
use crate::report::{figures, safe};
use crate::run::Cancel;
use crate::settings::Layers;
use crate::store::RunDir;

#[derive(Debug, Clone, clap::Args)]
pub struct Unseeing {
    /// The skill whose versions v0, v1, … are meant
    #[arg(long, value_name = "SKILL", requires = "blind")]
    of: Option<PathBuf>,
    /// What was asked for, where files are compared
    #[arg(long, value_name = "TEXT", requires = "blind", default_value = "")]
    request: String,
    /// Tosses the coins that deal the labels
    #[arg(long, value_name = "N", requires = "blind", default_value_t = 0)]
    seed: u64,
}

/// One side, and the suite that has a say in who judges it.
struct Found {
    outputs: Outputs,
    suite: Option<Suite>,
    /// The script that answered for the model when it was run.
    script: Option<PathBuf>,
}

impl Unseeing {
    pub fn compare(
        &self,
        first: &str,
        second: &str,
        project: &Path,
        choices: &Choices,
        carrying: &Carrying,
    ) -> anyhow::Result<u8> {
        let (one, other) = self.sides(first, second, project)?;
        let (pairings, unpaired) = improve::pair(&one.outputs, &other.outputs);
        if pairings.is_empty() {
            bail!("the two sides have no case in common, so there is nothing to compare");
        }
        let mut flags = choices.flags();
        flags.extend(carrying.flags());
        let layers = Layers::read(flags, environment(), project).map_err(IntakeError::from)?;
        let nobody = || Suite::silent("files", origin(project));
        let script = one.script.or(other.script);
        let suite = one.suite.or(other.suite).unwrap_or_else(nobody);
        eprintln!("{} cases, each judged in both orders", pairings.len());
        let judged = runtime().context("cannot start")?.block_on(async {
            let asking = carrying.asking();
            let adviser =
                asking.adviser(&layers, project, &suite, script.as_deref(), Cancel::default()).await?;
            anyhow::Ok(improve::judge_all(&adviser, &pairings, self.seed).await)
        })?;
        let folder = project.join(".practicum/comparisons").join(RunDir::new_id(jiff::Timestamp::now()));
        let (one, other) = (&one.outputs.name, &other.outputs.name);
        let blind = Blind::of(one, other, self.seed, judged, unpaired, &folder);
        let blind = blind.with_context(|| format!("cannot write to {}", folder.display()))?;
        if carrying.json {
            print_json(&blind)?;
        } else {
            print(&in_words(&blind, &folder))?;
        }
        Ok(match blind.verdict {
            Compared::Worse => 1,
            _ if blind.not_compared > 0 => 3,
            Compared::Better | Compared::Equivalent | Compared::Inconclusive => 0,
        })
    }

    fn sides(&self, first: &str, second: &str, project: &Path) -> anyhow::Result<(Found, Found)> {
        let numbers = number(first).zip(number(second));
        match (&self.of, numbers) {
            (Some(skill), Some((one, other))) => versions(skill, one, other, project),
            (Some(_), None) => bail!("with --of, name two versions, such as v0 and v1"),
            (None, Some(_)) => bail!("say with --of whose versions {first} and {second} are"),
            (None, None) => Ok((self.side(first, project)?, self.side(second, project)?)),
        }
    }

    /// A run by its id or folder; else a file or folder.
    fn side(&self, wanted: &str, project: &Path) -> anyhow::Result<Found> {
        let path = Path::new(wanted);
        if path.exists() && !path.join("run.json").is_file() {
            return Ok(Found { outputs: Outputs::of_path(path, &self.request)?, suite: None, script: None });
        }
        run(wanted, project)
    }
}

fn number(text: &str) -> Option<u32> {
    text.strip_prefix('v')?.parse().ok()
}

fn run(wanted: &str, project: &Path) -> anyhow::Result<Found> {
    let run = RunDir::find(project, wanted).map_err(|why| anyhow!(why))?;
    let stored = StoredRun::read(&run)?;
    let outputs = Outputs::of_run(&stored, &|_, _| true)?;
    let suite = stored.suites.into_iter().next();
    let script = suite.as_ref().and_then(|suite| suite.run.script.clone()).filter(|_| stored.scripted);
    Ok(Found { outputs, suite, script })
}

/// Versions by what their runs gave; where one has none, by the skills themselves.
fn versions(skill: &Path, one: u32, other: u32, project: &Path) -> anyhow::Result<(Found, Found)> {
    let versions = Versions::of(skill)?;
    let history = versions.history()?;
    let examined = |number: u32| {
        let score = versions.score(history.version(number)?)?;
        run(&score.run, project).ok()
    };
    let named =
        |found: Found, number: u32| Found { outputs: found.outputs.named(format!("v{number}")), ..found };
    if let Some((first, second)) = examined(one).zip(examined(other)) {
        return Ok((named(first, one), named(second, other)));
    }
    eprintln!("note: not both versions were run, so the skills themselves are compared");
    let itself = |number: u32| {
        let request = "Write an agent skill for this purpose.";
        let outputs = Outputs::of_path(&versions.files(number)?, request)?;
        anyhow::Ok(named(Found { outputs, suite: None, script: None }, number))
    };
    Ok((itself(one)?, itself(other)?))
}

/// Of what no eval file stands behind.
fn origin(project: &Path) -> Origin {
    Origin { dialect: "none".to_owned(), path: project.to_owned(), digest: Digest::of(b"") }
}

fn in_words(blind: &Blind, folder: &Path) -> String {
    let mut out = format!("{} → {}, judged blindly\n", safe(&blind.first), safe(&blind.second));
    for case in &blind.cases {
        let word = match case.outcome {
            Outcome::First => "worse",
            Outcome::Second => "better",
            Outcome::Tie => "tie: the two orders contradict each other",
            Outcome::NotCompared => "not compared",
        };
        out.push_str(&format!("  {}: {word}\n", safe(&case.case)));
        for why in case.orders.iter().filter_map(|order| order.why.as_deref()) {
            out.push_str(&format!("    {}\n", safe(why)));
        }
    }
    for case in &blind.unpaired {
        out.push_str(&format!("  {}: only one side has it\n", safe(case)));
    }
    out.push_str(&format!(
        "{} better, {} worse, {} ties, {} not compared; win rate {}, chance {:.3}: {}\n",
        blind.wins,
        blind.losses,
        blind.ties,
        blind.not_compared,
        figures::estimate(blind.win_rate),
        blind.chance,
        blind.verdict.name()
    ));
    out.push_str(&format!("details in {}\n", folder.display()));
    out
}

//! The command `practicum compare --blind`: has a judge compare outputs without knowing which side made them.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

use super::run_flags::RunFlags;
use super::shared_args::SettingArgs;
use super::{environment, print, print_json, runtime, tell_notices};
use crate::dialects::EvalRegistry;
use crate::improve::{self, BlindReport, JudgedPair, OutputTask, PairOutcome, SideOutputs, StoredRun};
use crate::model::{ComparisonVerdict, Digest, Origin, Outcome, Suite, count_with_noun};
use crate::plan::settings::SettingLayers;
use crate::report::{figures, terminal_safe};
use crate::session::RunInputs;
use crate::session::run_setup::{self, RunSetupError};
use crate::store::RunDir;
use crate::versions::SkillVersions;
use crate::workspace::run::CancelToken;

#[derive(Debug, Clone, clap::Args)]
pub struct BlindCompareArgs {
    /// The skill whose versions v0, v1, … are meant
    #[arg(long, value_name = "SKILL", requires = "blind")]
    of: Option<PathBuf>,
    /// The request that both files answer; by default the prompt of the spec
    #[arg(long, value_name = "TEXT", requires = "blind", default_value = "")]
    request: String,
    /// The eval file that two texts are compared by: by its exact checks, or with --blind by its request and
    /// judged statements
    #[arg(long, value_name = "FILE", conflicts_with_all = ["of", "by", "modes", "against"])]
    pub spec: Option<PathBuf>,
    /// The case of the spec, if several have an output
    #[arg(long, value_name = "ID", requires = "spec")]
    pub case: Option<String>,
    /// The seed with which the labels of the outputs are drawn
    #[arg(long, value_name = "N", requires = "blind", default_value_t = 0)]
    seed: u64,
}

/// One side of a blind comparison, and its suite, whose settings choose the judge.
struct BlindSide {
    outputs: SideOutputs,
    suite: Option<Suite>,
    /// The script that answered in place of the model when this side was run.
    script: Option<PathBuf>,
}

impl BlindCompareArgs {
    pub fn compare(
        &self,
        first: &str,
        second: &str,
        project: &Path,
        choices: &SettingArgs,
        run_flags: &RunFlags,
    ) -> anyhow::Result<Outcome> {
        let (one, other) = self.find_sides(first, second, project)?;
        let (pairings, unpaired) = improve::pair_outputs(&one.outputs, &other.outputs);
        if pairings.is_empty() {
            bail!("the two sides have no case in common, so there is nothing to compare");
        }
        let layers = SettingLayers::read(run_flags.settings(choices), environment(), project)
            .map_err(RunSetupError::from)?;
        let nobody = || Suite::empty("files", placeholder_origin(project));
        let script = one.script.or(other.script);
        let suite = one.suite.or(other.suite).unwrap_or_else(nobody);
        let differing = pairings.iter().filter(|pair| !pair.is_identical()).count();
        match pairings.len() - differing {
            0 => {}
            identical => {
                say!("{} with identical outputs: no judge is asked", count_with_noun(identical, "case"));
            }
        }
        match differing {
            0 => {}
            1 => say!("1 case, judged in both orders"),
            several => say!("{several} cases, each judged in both orders"),
        }
        let identical = || pairings.iter().map(JudgedPair::identical).collect();
        // Without a question, no judge is needed, nor its key.
        let judged = if differing == 0 {
            identical()
        } else {
            runtime().context("cannot start")?.block_on(async {
                let access = run_flags.model_access();
                let adviser = access
                    .adviser(&layers, project, &suite, script.as_deref(), CancelToken::default())
                    .await?;
                anyhow::Ok(improve::judge_pairs(&adviser, &pairings, self.seed).await)
            })?
        };
        let folder = project.join(".practicum/comparisons").join(RunDir::new_id(jiff::Timestamp::now()));
        let (one, other) = (&one.outputs.name, &other.outputs.name);
        let blind = BlindReport::write_new(one, other, self.seed, judged, unpaired, &folder);
        let blind = blind.with_context(|| format!("cannot write to {}", folder.display()))?;
        if run_flags.json {
            print_json(&blind)?;
        } else {
            print(&describe_blind_report(&blind, &folder))?;
        }
        Ok(match blind.verdict {
            ComparisonVerdict::Worse => Outcome::Failed,
            _ if blind.not_compared > 0 || blind.is_judge_broken() => Outcome::Incomplete,
            _ if blind.cannot_tell_a_loss() => Outcome::Incomplete,
            ComparisonVerdict::Better | ComparisonVerdict::Equivalent | ComparisonVerdict::Inconclusive => {
                Outcome::Passed
            }
        })
    }

    fn find_sides(
        &self,
        first: &str,
        second: &str,
        project: &Path,
    ) -> anyhow::Result<(BlindSide, BlindSide)> {
        let numbers = version_number(first).zip(version_number(second));
        match (&self.of, numbers) {
            (Some(skill), Some((one, other))) => sides_from_versions(skill, one, other, project),
            (Some(_), None) => bail!("with --of, name two versions, such as v0 and v1"),
            (None, Some(_)) => bail!("say with --of whose versions {first} and {second} are"),
            (None, None) => Ok((self.find_side(first, project)?, self.find_side(second, project)?)),
        }
    }

    /// Finds a side: a run by its id or folder, otherwise a file or folder.
    fn find_side(&self, wanted: &str, project: &Path) -> anyhow::Result<BlindSide> {
        let path = Path::new(wanted);
        if path.exists() && !path.join("run.json").is_file() {
            let (brief, suite) = match &self.spec {
                Some(spec) => self.task_from_spec(spec)?,
                None => (OutputTask::with_documented_criteria(&self.request), None),
            };
            return Ok(BlindSide { outputs: SideOutputs::from_path(path, &brief)?, suite, script: None });
        }
        if self.spec.is_some() {
            bail!(
                "--spec is for files; runs say themselves what their cases ask for, and {wanted} is no file"
            );
        }
        side_from_run(wanted, project)
    }

    /// Gives the task from the eval file's case.
    fn task_from_spec(&self, spec: &Path) -> anyhow::Result<(OutputTask, Option<Suite>)> {
        let ask = RunInputs { paths: vec![spec.to_owned()], ..RunInputs::default() };
        let reading = run_setup::read_eval_files(&ask, &environment(), &EvalRegistry::default())?;
        tell_notices(&reading.notices);
        if reading.has_errors() {
            bail!("{} cannot be understood; practicum check says why", spec.display());
        }
        let suites: Vec<Suite> = reading.into_suites()?.into_iter().map(|placed| placed.suite).collect();
        let cases = suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)));
        let with_output = cases.filter(|(_, case)| !improve::is_about_activation(case));
        let meant: Vec<_> =
            with_output.filter(|(_, case)| self.case.as_ref().is_none_or(|id| *id == case.id)).collect();
        match meant.as_slice() {
            [(suite, case)] => {
                let words = Some(self.request.as_str()).filter(|words| !words.is_empty());
                Ok((OutputTask::from_case(suite, case, words)?, Some((*suite).clone())))
            }
            [] => bail!("{} has no such case with an output to compare", spec.display()),
            several => {
                let ids: Vec<String> = several.iter().map(|(_, case)| terminal_safe(&case.id)).collect();
                bail!("say with --case which one is meant: {}", ids.join(", "))
            }
        }
    }
}

fn version_number(text: &str) -> Option<u32> {
    text.strip_prefix('v')?.parse().ok()
}

fn side_from_run(wanted: &str, project: &Path) -> anyhow::Result<BlindSide> {
    let run = RunDir::find(project, wanted).map_err(|why| anyhow!(why))?;
    let stored = StoredRun::read(&run)?;
    let outputs = SideOutputs::from_run(&stored, &|_, _| true)?;
    let suite = stored.suites.into_iter().next();
    let script = suite.as_ref().and_then(|suite| suite.run_policy.script.clone()).filter(|_| stored.scripted);
    Ok(BlindSide { outputs, suite, script })
}

/// Compares versions by the outputs of their runs. If one has no run, compares the skills themselves.
fn sides_from_versions(
    skill: &Path,
    one: u32,
    other: u32,
    project: &Path,
) -> anyhow::Result<(BlindSide, BlindSide)> {
    let versions = SkillVersions::for_skill(skill)?;
    let history = versions.history()?;
    let examined = |number: u32| {
        let score = versions.score(history.version(number)?)?;
        side_from_run(&score.run, project).ok()
    };
    let named = |found: BlindSide, number: u32| BlindSide {
        outputs: found.outputs.with_name(format!("v{number}")),
        ..found
    };
    if let Some((first, second)) = examined(one).zip(examined(other)) {
        return Ok((named(first, one), named(second, other)));
    }
    say!("note: not both versions were run, so the skills themselves are compared");
    let itself = |number: u32| {
        let request = "Write an agent skill for this purpose.";
        let outputs = SideOutputs::from_path(
            &versions.version_files(number)?,
            &OutputTask::with_documented_criteria(request),
        )?;
        anyhow::Ok(named(BlindSide { outputs, suite: None, script: None }, number))
    };
    Ok((itself(one)?, itself(other)?))
}

/// Gives an origin for a suite that has no eval file.
fn placeholder_origin(project: &Path) -> Origin {
    Origin { dialect: "none".to_owned(), path: project.to_owned(), digest: Digest::of_bytes(b"") }
}

fn describe_blind_report(blind: &BlindReport, folder: &Path) -> String {
    let mut out =
        format!("{} → {}, judged blindly\n", terminal_safe(&blind.first), terminal_safe(&blind.second));
    for case in &blind.cases {
        let word = match case.outcome {
            PairOutcome::First => "worse",
            PairOutcome::Second => "better",
            PairOutcome::Tie => "tie: the two orders contradict each other",
            PairOutcome::Identical => "tie: both outputs are identical, as far as a judge is shown them",
            PairOutcome::NotCompared => "not compared",
        };
        out.push_str(&format!("  {}: {word}\n", terminal_safe(&case.case)));
        for why in case.orders.iter().filter_map(|order| order.why.as_deref()) {
            out.push_str(&format!("    {}\n", terminal_safe(why)));
        }
    }
    for case in &blind.unpaired {
        out.push_str(&format!("  {}: only one side has it\n", terminal_safe(case)));
    }
    out.push_str(&format!(
        "{} better, {} worse, {} ties, {} not compared; win rate {}, chance {:.3}: {}\n",
        blind.wins,
        blind.losses,
        blind.ties,
        blind.not_compared,
        figures::format_estimate(blind.win_rate),
        blind.chance,
        blind.verdict.name()
    ));
    if blind.is_judge_broken() {
        let cases = if blind.wins + blind.losses == 0 { "every case" } else { "most cases" };
        out.push_str(&format!(
            "the judge is broken: in {cases} it chose by the order of the outputs and not by the outputs; use another \
             model with --judge-model\n"
        ));
    }
    if blind.cannot_tell_a_loss() {
        out.push_str(
            "cannot tell: the second side was worse more often than better, and so few cases cannot show whether that is \
             chance; add cases\n",
        );
    }
    out.push_str(&format!("details in {}\n", folder.display()));
    out
}

//! The command `practicum create`: drafts a first skill from existing evals.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::adviser::AdviserFlags;
use super::{count_with_noun, environment, print, report_error, runtime, tell_notices};
use crate::dialects::EvalRegistry;
use crate::improve;
use crate::lint::lint_skill_file;
use crate::model::{Outcome, RelPath, Severity, Suite};
use crate::plan::settings::{SettingLayers, project_root};
use crate::report::terminal_safe;
use crate::session::RunInputs;
use crate::session::run_setup::{self, RunSetupError};
use crate::skill::SKILL_FILE;
use crate::workspace::run::CancelToken;

#[derive(clap::Args)]
#[command(after_help = "\
The model is shown what the evals ask and expect, and drafts a skill that is written to \
DIR/.claude/skills/NAME/SKILL.md. What is there already is never overwritten. A draft is a beginning: read it, \
run the evals with it, and improve it by cases that it was not drafted from.

Exit codes: 0 the skill is written, 2 no evals or the skill is there, 3 the model gave no answer.

Examples:
  practicum create conventional-comments        from ~/.skillet/evals
  practicum create evals/release-notes --dir . --prompt \"At most 20 lines\"")]
pub struct CreateArgs {
    /// The evals: a folder, a file, or the name of a folder in ~/.skillet/evals
    evals: PathBuf,
    /// The skill's name, if not that of the evals' folder
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The folder whose .claude/skills gets the skill
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// More wishes for the skill, in words
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    #[command(flatten)]
    advising: AdviserFlags,
}

pub fn main(args: &CreateArgs) -> Outcome {
    create(args).unwrap_or_else(|error| report_error(&error))
}

fn create(args: &CreateArgs) -> anyhow::Result<Outcome> {
    let name = skill_name(args)?;
    let folder = args.dir.join(".claude/skills").join(name.as_str());
    if folder.symlink_metadata().is_ok() {
        bail!("{} is there already; choose another --name or --dir", folder.display());
    }
    let ask = RunInputs { paths: vec![args.evals.clone()], ..RunInputs::default() };
    let reading = run_setup::read_eval_files(&ask, &environment(), &EvalRegistry::default())?;
    tell_notices(&reading.notices);
    if reading.has_errors() {
        bail!("some eval files cannot be understood; practicum check says why");
    }
    let suites: Vec<Suite> = reading.into_suites()?.into_iter().map(|placed| placed.suite).collect();
    let cases: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    let Some(suite) = suites.first().filter(|_| cases > 0) else { bail!("there are no evals to draft from") };
    say!("drafting {name} from {}", count_with_noun(cases, "eval"));
    let project = project_root(&std::path::absolute(&args.dir)?);
    let layers =
        SettingLayers::read(args.advising.flags(), environment(), &project).map_err(RunSetupError::from)?;
    let advice = runtime().context("cannot start")?.block_on(async {
        let script = suite.run_policy.script.as_deref();
        let adviser = args
            .advising
            .model_access()
            .adviser(&layers, &project, suite, script, CancelToken::default())
            .await?;
        anyhow::Ok(improve::draft_skill(&adviser, name.as_str(), &suites, args.prompt.as_deref()).await)
    })?;
    let drafted = match advice.answer {
        Ok(drafted) => drafted,
        Err(why) => {
            say!("error: {}", terminal_safe(&why));
            return Ok(Outcome::Incomplete);
        }
    };
    let file = write(&folder, &drafted.skill_md(name.as_str()))?;
    let doubts =
        lint_skill_file(&file).diagnostics.iter().filter(|found| found.severity != Severity::Notice).count();
    if doubts > 0 {
        say!("note: practicum lint {} finds {} in it", file.display(), count_with_noun(doubts, "problem"));
    }
    let (evals, skill) = (args.evals.display(), folder.display());
    print(&format!(
        "{}\nnext: read it, then practicum run {evals} --skill {skill}, and practicum improve {skill} --evals {evals}\n",
        file.display()
    ))?;
    Ok(Outcome::Passed)
}

/// Gives the name of the skill, which becomes a folder name.
fn skill_name(args: &CreateArgs) -> anyhow::Result<RelPath> {
    let path = std::path::absolute(&args.evals)?;
    let of_evals = || path.with_extension("").file_name().map(|name| name.to_string_lossy().into_owned());
    let name = args.name.clone().or_else(of_evals).unwrap_or_default();
    let plain = RelPath::new(&name).filter(|path| path.as_str() == name && !name.contains('/'));
    plain.with_context(|| format!("{name:?} cannot be a skill's name; give one with --name"))
}

fn write(folder: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let cannot = || format!("cannot write {}", folder.display());
    if let Some(skills) = folder.parent() {
        std::fs::create_dir_all(skills).with_context(cannot)?;
    }
    // This fails if the folder exists, even if it was created a moment ago. Nothing is overwritten.
    std::fs::create_dir(folder).with_context(cannot)?;
    let file = folder.join(SKILL_FILE);
    std::fs::write(&file, text).with_context(cannot)?;
    Ok(file)
}

//! The command `practicum capture`: keeps trials of a run or a recorded session as examples for new eval cases.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

use super::candidate_files::{existing_suites, write_candidates};
use super::{environment, print, report_error};
use crate::agents::read_session;
use crate::dialects;
use crate::grade::captured_output::observe_session;
use crate::improve::{CapturedTrial, StoredRun, capture_of_session, case_from_session};
use crate::model::Outcome;
use crate::plan::CaseGlob;
use crate::plan::settings::project_root;
use crate::report::terminal_safe;
use crate::skill::{Skill, name_from_path};
use crate::store::{RunDir, Scrubber};
use crate::versions::SkillContents;

#[derive(clap::Args)]
#[command(after_help = "\
Captures are kept with the skill's evals, in evals/captured, and practicum propose shows them to the model as \
examples of what users ask and agents give.

With --session, the session that an agent recorded of real work (see practicum grade --session) is kept, and a case \
is written for review to evals/<skill>.candidates.yaml, which no run reads: the prompts of the user, whether the skill \
was activated, and the tools as checks that are not required. Add checks of what is right, and save it as \
<name>.practicum.yaml.

Examples:
  practicum capture skills/release-notes                        the latest run
  practicum capture skills/release-notes --run 20261114-09 --case \"breaking-*\"
  practicum capture skills/release-notes --session session.jsonl")]
pub struct CaptureArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// The run: its id, a part of it, or latest
    #[arg(long, default_value = "latest", conflicts_with = "session")]
    run: String,
    /// Only cases whose id matches (* and ? are wildcards)
    #[arg(long, value_name = "GLOB", default_value = "*", conflicts_with = "session")]
    case: String,
    /// A recorded session to keep instead of a run: a log of Claude Code or Codex, or an ATIF trajectory
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
    /// The format of the case; if nothing is said, that of the evals that the skill has, else native
    #[arg(long, requires = "session", value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
}

pub fn main(args: &CaptureArgs) -> Outcome {
    let captured = match &args.session {
        Some(session) => capture_session(args, session),
        None => capture_run(args),
    };
    captured.map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

/// Keeps a recorded session as an example, and writes a case with its prompts for review.
fn capture_session(args: &CaptureArgs, path: &Path) -> anyhow::Result<()> {
    let contents = SkillContents::scan(&args.skill)?;
    let skill = contents.skill_path();
    let session =
        read_session(path).map_err(|why| anyhow!("cannot keep {} as a session: {why}", path.display()))?;
    for note in &session.notes {
        say!("note: {}", terminal_safe(note));
    }
    let file_name = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (agent, id) = (session.agent.clone(), session.id.clone().unwrap_or_else(file_name));
    // A session may contain anything that the user has. What is known to be secret is not written to the project.
    let scrubber = Scrubber::new(&environment());
    let scrub = |text: &str| scrubber.scrub_text(text);
    let seen = observe_session(session);
    let captured = capture_of_session(&seen, &agent, &id, &scrub);
    let kept = captured.write(&skill, &captured.case)?;
    let read = Skill::read(&skill)?;
    let names = [name_from_path(&read.file, read.form), read.name];
    let known = existing_suites(&args.skill, None)?;
    let case = case_from_session(&seen, &id, &names, &scrub);
    let file = write_candidates(&skill, &[case], args.dialect.as_deref(), &known)?;
    print(&format!("{}\n{}\n", kept.display(), file.display()))
}

fn capture_run(args: &CaptureArgs) -> anyhow::Result<()> {
    let contents = SkillContents::scan(&args.skill)?;
    let project = project_root(contents.folder());
    let run = StoredRun::read(&RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?)?;
    let glob = CaseGlob::new(&args.case).ok_or_else(|| anyhow!("{} is not a valid pattern", args.case))?;
    let own = run.suites_about(&contents.skill_path());
    if own.is_empty() {
        bail!("run {} is not about {}; name another with --run", run.id, args.skill.display());
    }
    let fitting = run.trials_with_skill().filter(|record| {
        let is_own = own.iter().any(|suite| suite.name == record.suite);
        is_own && record.ended.can_be_graded() && glob.matches(&record.case)
    });
    let mut kept = 0;
    for record in fitting {
        let Some(capture) = CapturedTrial::from_record(&run, record) else { continue };
        print(&format!("{}\n", capture.write(&contents.skill_path(), record.trial.as_str())?.display()))?;
        kept += 1;
    }
    if kept == 0 {
        bail!("run {} has no finished trial of such a case", run.id);
    }
    Ok(())
}

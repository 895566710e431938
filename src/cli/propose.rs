//! The command `practicum propose`: asks a model for new eval cases and writes them for review.

use std::path::PathBuf;

use anyhow::Context;

use super::adviser::AdviserFlags;
use super::candidate_files::{existing_suites, write_candidates};
use super::{environment, print, print_json, report_error, runtime};
use crate::dialects;
use crate::improve::{self, Candidates, CapturedTrial};
use crate::model::{Digest, Origin, Outcome, Suite};
use crate::plan::settings::{SettingLayers, project_root};
use crate::report::terminal_safe;
use crate::session::run_setup::RunSetupError;
use crate::versions::SkillContents;
use crate::workspace::run::CancelToken;

#[derive(clap::Args)]
#[command(after_help = "\
The model is shown the skill, its evals and the captured runs (see practicum capture). What cannot be read, \
is there already, or would be passed by an agent that does nothing is dropped, with the reason. The rest is written \
to evals/<skill>.candidates.yaml, which no run reads: review it, keep what is good, and save that as \
<name>.practicum.yaml.

Exit codes: 0 there are candidates, 1 none was left, 3 the model gave no answer.

Examples:
  practicum propose skills/release-notes
  practicum propose skills/release-notes --each 5 --evals tests/evals")]
pub struct ProposeArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// Where the evals of the skill are, if not where they usually are
    #[arg(long, value_name = "PATH")]
    evals: Option<PathBuf>,
    /// The format to write; if nothing is said, that of the evals that the skill has, else native
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
    /// How many cases of each kind are asked for: positives, near misses, artifacts, edges
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    each: u32,
    #[command(flatten)]
    advising: AdviserFlags,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &ProposeArgs) -> Outcome {
    propose(args).unwrap_or_else(|error| report_error(&error))
}

fn propose(args: &ProposeArgs) -> anyhow::Result<Outcome> {
    let contents = SkillContents::scan(&args.skill)?;
    let skill = &contents.skill_path();
    let project = project_root(skill);
    let known = existing_suites(&args.skill, args.evals.as_deref())?;
    let layers =
        SettingLayers::read(args.advising.flags(), environment(), &project).map_err(RunSetupError::from)?;
    let origin = Origin { dialect: "none".to_owned(), path: project.clone(), digest: Digest::of_bytes(b"") };
    let silent = Suite::empty("candidates", origin);
    let captured = CapturedTrial::read_all(skill);
    let advice = runtime().context("cannot start")?.block_on(async {
        let suite = known.first().unwrap_or(&silent);
        let access = args.advising.model_access();
        let adviser = access.adviser(&layers, &project, suite, None, CancelToken::default()).await?;
        anyhow::Ok(improve::propose_cases(&adviser, &contents, &known, &captured, args.each).await?)
    })?;
    let proposed = match advice.answer {
        Ok(proposed) => proposed,
        Err(why) => {
            say!("error: {}", terminal_safe(&why));
            return Ok(Outcome::Incomplete);
        }
    };
    let (candidates, dropped) = improve::sift_candidates(proposed, skill, &known);
    let file = match candidates.is_empty() {
        true => None,
        false => Some(write_candidates(skill, &candidates, args.dialect.as_deref(), &known)?),
    };
    let found = Candidates { schema_version: 1, skill: skill.to_owned(), file, candidates, dropped };
    if args.json {
        print_json(&found)?;
    } else {
        print(&describe_candidates(&found))?;
    }
    Ok(Outcome::from_passed(!found.candidates.is_empty()))
}

fn describe_candidates(found: &Candidates) -> String {
    let mut out = String::new();
    for candidate in &found.candidates {
        let text = |key: &str| candidate.case[key].as_str().unwrap_or_default().to_owned();
        out.push_str(&format!("{}: {}\n", terminal_safe(&text("id")), terminal_safe(&text("prompt"))));
    }
    for dropped in &found.dropped {
        out.push_str(&format!("dropped, {}: {}\n", terminal_safe(&dropped.id), terminal_safe(&dropped.why)));
    }
    match &found.file {
        Some(path) => out.push_str(&format!("written to {} for you to judge\n", path.display())),
        None => out.push_str("no candidate was left\n"),
    }
    out
}

//! The command `practicum suggest`: asks a model for edits to a skill that failed checks.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};

use super::adviser::AdviserFlags;
use super::{environment, print, print_json, report_error, runtime};
use crate::improve::{self, EditsReport, FailedChecks, RefusedSuggestion, StoredRun, SuggestedEdits};
use crate::model::Outcome;
use crate::plan::settings::{SettingLayers, project_root};
use crate::report::terminal_safe;
use crate::session::run_setup::RunSetupError;
use crate::store::RunDir;
use crate::versions::{SkillContents, SkillVersions};
use crate::workspace::run::CancelToken;

#[derive(clap::Args)]
#[command(after_help = "\
The model is shown the skill, the checks that failed, and what happened. An edit counts only if it is for \
one of those checks, if the text it changes stands exactly once in the skill, and if name and frontmatter \
stay. Evals and everything outside of the skill are out of reach.

Exit codes: 0 there are edits or nothing failed, 1 no proposal can be followed, 3 the model gave no answer.

Examples:
  practicum suggest skills/release-notes                    from the latest run
  practicum suggest skills/release-notes --run 20261114-09 --apply")]
pub struct SuggestArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// The run with the failed checks: its id, a part of it, or latest
    #[arg(long, default_value = "latest")]
    run: String,
    /// Also change the skill; its current state is saved as a version
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    advising: AdviserFlags,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &SuggestArgs) -> Outcome {
    suggest(args).unwrap_or_else(|error| report_error(&error))
}

fn suggest(args: &SuggestArgs) -> anyhow::Result<Outcome> {
    let contents = SkillContents::scan(&args.skill)?;
    let project = project_root(contents.folder());
    let run = RunDir::find_checked(&project, &args.run).map_err(|why| anyhow!(why))?;
    let stored = StoredRun::read(&run)?;
    let own = stored.suites_about(&contents.skill_path());
    let Some(suite) = own.first() else {
        bail!("run {} is not about {}; name another with --run", run.id(), args.skill.display());
    };
    contents.check_no_evals(own.iter().copied())?;
    let failures = FailedChecks::from_run(&stored, &|suite, _| own.iter().any(|known| known.name == suite));
    if failures.is_empty() {
        say!("nothing failed in run {}, so there is nothing to mend", run.id());
        if args.json {
            print_json(&EditsReport::empty(&contents.skill_path(), &stored.id))?;
        }
        return Ok(Outcome::Passed);
    }
    let layers =
        SettingLayers::read(args.advising.flags(), environment(), &project).map_err(RunSetupError::from)?;
    let advice = runtime().context("cannot start")?.block_on(async {
        let access = args.advising.model_access();
        let script = suite.run_policy.script.as_deref().filter(|_| stored.scripted);
        let adviser = access.adviser(&layers, &project, suite, script, CancelToken::default()).await?;
        anyhow::Ok(improve::suggest_edits(&adviser, &contents, &failures, Vec::new(), 0).await?)
    })?;
    let suggested = match advice.answer {
        Ok(suggested) => suggested,
        Err(why) => {
            say!("error: {}", terminal_safe(&why));
            return Ok(Outcome::Incomplete);
        }
    };
    show_and_apply_edits(args, &contents, &stored.id, &failures, suggested)
}

/// Shows the proposed edits, and applies them if the user asks for that.
fn show_and_apply_edits(
    args: &SuggestArgs,
    contents: &SkillContents,
    run: &str,
    failures: &FailedChecks,
    suggested: SuggestedEdits,
) -> anyhow::Result<Outcome> {
    let SuggestedEdits { draft, accepted: followed, refused } = suggested;
    let mut edits = EditsReport {
        failed: failures.failed.iter().map(|failure| failure.name.clone()).collect(),
        edits: followed,
        refused,
        diff: draft.diff(),
        ..EditsReport::empty(&contents.skill_path(), run)
    };
    if !args.json {
        print(&describe_edits(&edits))?;
    }
    if args.apply && draft.is_changed() {
        let versions = SkillVersions::for_skill(&contents.skill_path())?;
        edits.kept_as = Some(versions.snapshot("as it was before edits were applied")?.version);
        draft.write_to(contents.folder()).context("cannot change the skill")?;
        edits.applied = true;
    }
    if args.json {
        print_json(&edits)?;
    } else if let Some(version) = edits.kept_as {
        let skill = args.skill.display();
        print(&format!("applied; practicum restore {skill} v{version} brings back what was there\n"))?;
    }
    if !args.apply && !edits.edits.is_empty() {
        say!("nothing was changed; --apply makes these edits");
    }
    Ok(Outcome::from_passed(!edits.edits.is_empty()))
}

fn describe_edits(edits: &EditsReport) -> String {
    let mut out = String::new();
    for edit in &edits.edits {
        let checks = edit.checks.join(", ");
        out.push_str(&format!(
            "{} (for {})\n",
            terminal_safe(&edit.suggestion.reasoning),
            terminal_safe(&checks)
        ));
    }
    for RefusedSuggestion { suggestion, why } in &edits.refused {
        out.push_str(&format!("refused, {}: {}\n", terminal_safe(&suggestion.area), terminal_safe(why)));
    }
    out.push_str(&terminal_safe(&edits.diff));
    out
}

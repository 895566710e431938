use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};

use super::adviser::AdviserFlags;
use super::{complain, environment, print, print_json, runtime};
use crate::improve::{self, Edits, Failures, Refused, StoredRun, Suggested};
use crate::intake::IntakeError;
use crate::report::safe;
use crate::run::Cancel;
use crate::settings::{Layers, project_root};
use crate::store::RunDir;
use crate::versions::{Contents, Versions};

#[derive(clap::Args)]
#[command(after_help = "\
The model is shown the skill, the checks that failed, and what happened. An edit counts only if it is for \
one of those checks, if the text it changes stands exactly once in the skill, and if name and frontmatter \
stay. Evals and everything outside of the skill are out of reach.

Exit codes: 0 there are edits or nothing failed, 1 no proposal can be followed, 3 the model gave no answer.

Examples:
  practicum suggest skills/release-notes                    from the latest run
  practicum suggest skills/release-notes --run 20261114-09 --apply")]
pub struct Args {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// The run whose failures are to be mended: its id, a part of it, or latest
    #[arg(long, default_value = "latest")]
    run: String,
    /// Change the skill, after showing how; what was there is kept as a version
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    advising: AdviserFlags,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> u8 {
    suggest(args).unwrap_or_else(|error| complain(&error))
}

fn suggest(args: &Args) -> anyhow::Result<u8> {
    let contents = Contents::of(&args.skill)?;
    let project = project_root(contents.folder());
    let run = RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?;
    let stored = StoredRun::read(&run)?;
    let own = stored.suites_about(&contents.skill());
    let Some(suite) = own.first() else {
        bail!("run {} is not about {}; name another with --run", run.id(), args.skill.display());
    };
    contents.hold_no_evals(own.iter().copied())?;
    let failures = Failures::of(&stored, &|suite, _| own.iter().any(|known| known.name == suite));
    if failures.is_empty() {
        say!("nothing failed in run {}, so there is nothing to mend", run.id());
        if args.json {
            print_json(&Edits::none(&contents.skill(), &stored.id))?;
        }
        return Ok(0);
    }
    let layers = Layers::read(args.advising.flags(), environment(), &project).map_err(IntakeError::from)?;
    let advice = runtime().context("cannot start")?.block_on(async {
        let access = args.advising.model_access();
        let script = suite.run.script.as_deref().filter(|_| stored.scripted);
        let adviser = access.adviser(&layers, &project, suite, script, Cancel::default()).await?;
        anyhow::Ok(improve::suggest(&adviser, &contents, &failures, Vec::new(), 0).await?)
    })?;
    let suggested = match advice.answer {
        Ok(suggested) => suggested,
        Err(why) => {
            say!("error: {}", safe(&why));
            return Ok(3);
        }
    };
    settle(args, &contents, &stored.id, &failures, suggested)
}

/// Shows what was proposed, and follows it if that is wanted.
fn settle(
    args: &Args,
    contents: &Contents,
    run: &str,
    failures: &Failures,
    suggested: Suggested,
) -> anyhow::Result<u8> {
    let Suggested { draft, followed, refused } = suggested;
    let mut edits = Edits {
        failed: failures.failed.iter().map(|failure| failure.name.clone()).collect(),
        edits: followed,
        refused,
        diff: draft.diff(),
        ..Edits::none(&contents.skill(), run)
    };
    if !args.json {
        print(&in_words(&edits))?;
    }
    if args.apply && draft.is_changed() {
        let versions = Versions::of(&contents.skill())?;
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
    Ok(u8::from(edits.edits.is_empty()))
}

fn in_words(edits: &Edits) -> String {
    let mut out = String::new();
    for edit in &edits.edits {
        let checks = edit.checks.join(", ");
        out.push_str(&format!("{} (for {})\n", safe(&edit.suggestion.reasoning), safe(&checks)));
    }
    for Refused { suggestion, why } in &edits.refused {
        out.push_str(&format!("refused, {}: {}\n", safe(&suggestion.area), safe(why)));
    }
    out.push_str(&safe(&edits.diff));
    out
}

//! The command `practicum versions`: lists the versions of a skill.

use std::path::PathBuf;

use super::{print, print_json, report_error};
use crate::model::Outcome;
use crate::report::terminal_safe;
use crate::versions::{ListedVersion, SkillVersions, VersionListing, VersionScore};

#[derive(clap::Args)]
#[command(after_help = "\
The best version has the highest pass rate, then the best required checks, then the best of all checks; \
of equals, the earlier. Only versions that practicum improve examined have a pass rate.

The mean score, from 1 to 5, is the mean over the cases: each counts with the mean over its runs of all its \
criteria, required or not. Cases without criteria from 1 to 5 have none.

Examples:
  practicum versions skills/release-notes
  practicum versions skills/release-notes --json")]
pub struct VersionsArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &VersionsArgs) -> Outcome {
    versions(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn versions(args: &VersionsArgs) -> anyhow::Result<()> {
    let versions = SkillVersions::for_skill(&args.skill)?;
    let listed = versions.list()?;
    versions.unknown_keys_notice().iter().for_each(|notice| say!("{}", terminal_safe(notice)));
    if args.json { print_json(&listed) } else { print(&describe_versions(&listed)) }
}

fn describe_versions(listed: &VersionListing) -> String {
    if listed.versions.is_empty() {
        return "no versions yet; practicum snapshot keeps the first\n".to_owned();
    }
    let mut out: String = listed.versions.iter().map(|version| line(version, listed)).collect();
    if listed.changed {
        out.push_str("the skill differs from every version; practicum snapshot keeps it\n");
    }
    out
}

fn line(ListedVersion { version, score }: &ListedVersion, listed: &VersionListing) -> String {
    let number = version.version;
    let current = if listed.current_version == Some(number) { "*" } else { " " };
    let passed = match score {
        Some(VersionScore { passed, failed, not_scored, .. }) if *not_scored > 0 => {
            format!("{passed} of {} passed, {not_scored} not scored", passed + failed + not_scored)
        }
        Some(VersionScore { pass_rate: Some(rate), .. }) => {
            format!("passed {:>5}", format!("{:.0} %", rate * 100.0))
        }
        Some(_) | None => "passed     –".to_owned(),
    };
    let mean = version.average_score.map_or_else(|| "–".to_owned(), |mean| format!("{mean:.1}"));
    let commit: String = version.git_hash.as_deref().unwrap_or("–").chars().take(9).collect();
    let best = if listed.best == Some(number) { " (best)" } else { "" };
    let rejected = score.as_ref().and_then(|score| score.rejected.as_deref());
    let rejected = rejected.map(|why| format!(" (rejected: {})", terminal_safe(why))).unwrap_or_default();
    format!(
        "{current} v{number:<3} {}  {:<9}  {passed}  mean score {mean:>3}  {}{best}{rejected}\n",
        terminal_safe(&version.timestamp),
        terminal_safe(&commit),
        terminal_safe(&version.description)
    )
}

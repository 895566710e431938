//! The command `practicum audit`: finds checks that never fail, say nothing about the skill, or are flaky.

use std::path::PathBuf;

use super::{count_with_noun, open_index, print, print_json, report_error};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::report::terminal_safe;
use crate::store::history::{AuditReport, audit};

#[derive(clap::Args)]
#[command(after_help = "\
A check is doubted if it never fails, if it finds the same with and without the skill (rates less than \
five points apart), or if it finds now this and now that where the same was asked several times in one \
run. A doubt is a reason to look, not a proof.

Exit codes:
  0  done, whatever was found
  1  with --strict: a check is doubted

Examples:
  practicum audit --last 50
  practicum audit --strict      for CI")]
pub struct AuditArgs {
    /// Only this suite
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// Look at so many of the newest runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: usize,
    /// Doubt no check that has fewer answers than this, in each arm where arms are compared
    #[arg(long, value_name = "N", default_value_t = 5)]
    least: u64,
    /// Exit with 1 if a check is doubted
    #[arg(long)]
    strict: bool,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

pub fn main(args: &AuditArgs) -> Outcome {
    run(args).unwrap_or_else(|error| report_error(&error))
}

fn run(args: &AuditArgs) -> anyhow::Result<Outcome> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let audited = audit(&open_index(&project)?, args.suite.as_deref(), args.last, args.least.max(1))?;
    match args.json {
        true => print_json(&audited)?,
        false => print(&describe_audit(&audited))?,
    }
    Ok(Outcome::from_passed(!args.strict || audited.doubts.is_empty()))
}

fn describe_audit(audited: &AuditReport) -> String {
    let mut out = String::new();
    let mut heading = None;
    for doubt in &audited.doubts {
        let place = (&doubt.suite, &doubt.case);
        if heading != Some(place) {
            out.push_str(&format!("{} of {}\n", terminal_safe(&doubt.case), terminal_safe(&doubt.suite)));
            heading = Some(place);
        }
        out.push_str(&format!(
            "  {}: {} ({})\n",
            terminal_safe(&doubt.check),
            doubt.concern.name(),
            doubt.evidence()
        ));
    }
    let too_few = match audited.too_few {
        0 => String::new(),
        few => format!(", {few} with too few answers to say"),
    };
    out.push_str(&format!(
        "{} about {}{too_few}\n",
        count_with_noun(audited.doubts.len(), "doubt"),
        count_with_noun(audited.checks, "check")
    ));
    out
}

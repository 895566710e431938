//! The command `practicum ablate`: which paragraphs of a skill its results depend on.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::improve::{copy_under_its_name, replace_skill_under_test};
use super::run_flags::{RunFlags, parse_ratio, refuse_stopped};
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{has_colour, print, print_json, report_error, run};
use crate::improve::ImproveGoal;
use crate::model::{ComparisonVerdict, Outcome, Ratio, TrialRecord, count_with_noun};
use crate::own_files;
use crate::report::ablation;
use crate::session::{CaseKind, RunOptions, Session, SessionError};
use crate::stats::{ALPHA, compare_pairs};
use crate::store::read_records;
use crate::studies::{
    AblationDocument, AblationProposal, GroupEffect, ParagraphRole, VersionRuns, first_groups,
    group_size_for, judge_group, split_group,
};
use crate::tree::read_regular_text;
use crate::versions::{SkillContents, SkillParagraphs};

#[derive(clap::Args)]
#[command(after_help = "\
The evals run with the whole skill, and with the skill without a part of its text: each paragraph, item of a list, block \
of code or table alone, or groups of them if --max-runs is too small for that. Groups that are needed are split further \
while the limit allows. Cases that only check activation are left out, because the description stays as it is.

A paragraph is called needed if the results are worse without it; the chance that any paragraph of a skill is called so \
wrongly is 5 %. It is called without effect only if a loss of --margin is ruled out. What can be cut is run once more, all \
of it together.

The skill is not changed: --write puts the shorter text into a file. If the command is interrupted, the same command \
continues.

Exit codes: 0 the study was made, 3 it shows nothing about any paragraph.

Examples:
  practicum ablate skills/release-notes --repeat 5
  practicum ablate skills/release-notes --max-runs 300 --output ablation.html
  practicum ablate skills/release-notes --write SHORTER.md")]
pub struct AblateArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// Where the evals of the skill are, if they are not in a usual place
    #[arg(long, value_name = "PATH")]
    evals: Option<PathBuf>,
    /// The most runs of the whole study
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_runs: Option<u64>,
    /// Differences of the pass rate smaller than this do not matter
    #[arg(long, value_name = "RATIO", default_value = "0.1", value_parser = parse_ratio)]
    margin: Ratio,
    /// Write the text with the effect of each paragraph to this file, as HTML
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the skill's text without what can be cut to this new file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    choices: SettingArgs,
    #[command(flatten)]
    flags: RunFlags,
}

/// The default number of trials of each case.
const DEFAULT_RUNS: u32 = 5;

pub fn main(args: &AblateArgs) -> Outcome {
    ablate(args).unwrap_or_else(|error| report_error(&error))
}

fn ablate(args: &AblateArgs) -> anyhow::Result<Outcome> {
    if args.choices.is_only_without_skill() {
        bail!("--arm without cannot be given to ablate, because the skill's text has no effect there");
    }
    let contents = SkillContents::scan(&args.skill)?;
    let skill = contents.skill_path();
    let text = read_regular_text(contents.main_file().join_to(contents.folder()))
        .with_context(|| format!("cannot read {}", args.skill.display()))?;
    let paragraphs = SkillParagraphs::new(&text);
    if paragraphs.count() < 2 {
        bail!(
            "{} has {}; there is nothing to compare",
            args.skill.display(),
            count_with_noun(paragraphs.count(), "paragraph")
        );
    }
    let aside = tempfile::tempdir().context("cannot make a folder for copies of the skill")?;
    let mut study =
        AblationStudy { args, skill, paragraphs, aside: aside.path().to_owned(), versions: 0, runs: 0 };
    let Some(document) = study.run()? else { return Ok(Outcome::Passed) };
    report(args, &document)
}

/// A study of the paragraphs of one skill.
struct AblationStudy<'a> {
    args: &'a AblateArgs,
    skill: PathBuf,
    paragraphs: SkillParagraphs,
    /// The folder for copies of the skill.
    aside: PathBuf,
    /// The number of copies so far.
    versions: usize,
    /// The number of runs so far.
    runs: u64,
}

impl AblationStudy<'_> {
    /// Makes the study. `None` if nothing was to be run.
    fn run(&mut self) -> anyhow::Result<Option<AblationDocument>> {
        let count = self.paragraphs.count();
        say!("the whole skill");
        let Some(whole) = self.run_without(&[])? else { return Ok(None) };
        let each = self.runs;
        // One version is kept for the test of what can be cut.
        let versions = self.args.max_runs.map_or(usize::MAX, |most| (most / each.max(1)) as usize);
        let versions = versions.saturating_sub(1);
        let Some(size) = group_size_for(count, versions) else {
            let (needed, each) = (3 * each, count_with_noun(each, "run"));
            bail!("one version of the skill takes {each}; --max-runs must be {needed} or more");
        };
        let mut open: Vec<(Range<usize>, f64)> =
            first_groups(count, size).into_iter().rev().map(|group| (group, 0.0)).collect();
        let mut groups: Vec<GroupEffect> = Vec::new();
        let mut not_split = 0;
        while let Some((group, parent)) = open.pop() {
            say!("without {}", describe_group(&group, count));
            let left_out: Vec<usize> = group.clone().collect();
            let Some(without) = self.run_without(&left_out)? else { return Ok(None) };
            let effect = judge_group(group.clone(), count, &whole, &without, self.args.margin.get(), parent);
            let halves = split_group(&group).filter(|_| effect.role == ParagraphRole::Needed);
            if let Some(halves) = halves {
                // The versions that are planned already come first.
                if self.versions + open.len() + halves.len() <= versions {
                    open.splice(0..0, halves.map(|half| (half, effect.chance)));
                } else {
                    not_split += 1;
                }
            }
            groups.push(effect);
        }
        let proposal = self.propose(&groups, &whole)?;
        Ok(Some(AblationDocument {
            schema_version: 1,
            skill: self.skill.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            pass_rate: whole.pass_rate(),
            margin: self.args.margin.get(),
            paragraphs: AblationDocument::describe_paragraphs(self.paragraphs.texts(), &groups),
            groups,
            proposal,
            runs: self.runs,
            not_split,
        }))
    }

    /// Runs the skill without everything that can be cut. `None` if nothing can be.
    fn propose(
        &mut self,
        groups: &[GroupEffect],
        whole: &VersionRuns,
    ) -> anyhow::Result<Option<AblationProposal>> {
        let is_useless = |group: &&GroupEffect| match group.role {
            ParagraphRole::WithoutEffect | ParagraphRole::Harmful => true,
            ParagraphRole::Needed | ParagraphRole::Unclear => false,
        };
        let mut cut: Vec<usize> =
            groups.iter().filter(is_useless).flat_map(GroupEffect::paragraphs).collect();
        cut.sort_unstable();
        if cut.is_empty() {
            return Ok(None);
        }
        say!("without all {} that can be cut", count_with_noun(cut.len(), "paragraph"));
        let Some(without) = self.run_without(&cut)? else { return Ok(None) };
        let found = compare_pairs(&whole.pairs_with(&without), self.args.margin.get(), ALPHA);
        let is_complete = whole.not_scored + without.not_scored == 0;
        let verdict = match found.verdict {
            ComparisonVerdict::Worse => ComparisonVerdict::Worse,
            verdict if is_complete => verdict,
            _ => ComparisonVerdict::Inconclusive,
        };
        let texts: Vec<&str> = self.paragraphs.texts().collect();
        let characters: usize = cut.iter().map(|at| texts[*at].chars().count()).sum();
        Ok(Some(AblationProposal {
            effect: found.difference,
            verdict,
            estimated_tokens: (characters as u64).div_ceil(4),
            text: self.paragraphs.without(&cut),
            cut,
        }))
    }

    /// Runs the evals with the skill without some paragraphs. `None` if nothing was to be run.
    fn run_without(&mut self, left_out: &[usize]) -> anyhow::Result<Option<VersionRuns>> {
        let folder = self.aside.join(self.versions.to_string());
        self.versions += 1;
        std::fs::create_dir(&folder)?;
        let copy = copy_under_its_name(&self.skill, &self.skill, &folder)?;
        let contents = SkillContents::scan(&copy)?;
        std::fs::write(contents.main_file().join_to(contents.folder()), self.paragraphs.without(left_out))?;
        let skill = self.skill.clone();
        let session = Session::new(&self.skill)
            .with_options(self.options(left_out))
            .with_limits(self.args.flags.limits())
            .showing_only(self.args.flags.dry_run)
            .changing_reading(move |reading| {
                replace_skill_under_test(reading, &skill, &copy, ImproveGoal::Skill)
                    .map_err(|error| SessionError::Refused(format!("{error:#}")))
            });
        let finished = run::run_for_command(&self.args.flags, session)?.map(refuse_stopped).transpose()?;
        let Some(finished) = finished else { return Ok(None) };
        let records: Vec<TrialRecord> = read_records(finished.run_dir.path())?.into_values().collect();
        self.runs += records.len() as u64;
        Ok(Some(VersionRuns::from_records(&records)))
    }

    fn options(&self, left_out: &[usize]) -> RunOptions {
        let evals = EvalsArgs::of_skill(self.skill.clone(), self.args.evals.clone());
        let choices = self.args.choices.clone().with_skill().with_repeat(DEFAULT_RUNS);
        let mut options = self.args.flags.options(&evals, &choices);
        options.selection.only = Some(CaseKind::Artifact);
        if !left_out.is_empty() {
            options.not_in_history = Some("a part of the skill was left out".to_owned());
        }
        options
    }
}

fn describe_group(group: &Range<usize>, count: usize) -> String {
    match group.len() {
        1 => format!("paragraph {} of {count}", group.start + 1),
        _ => format!("paragraphs {} to {} of {count}", group.start + 1, group.end),
    }
}

fn report(args: &AblateArgs, document: &AblationDocument) -> anyhow::Result<Outcome> {
    if args.flags.json {
        print_json(document)?;
    } else {
        print(&ablation::render_text(document, has_colour()))?;
    }
    if let Some(path) = &args.output {
        write_file(path, &ablation::render_html(document))?;
    }
    match (&args.write, &document.proposal) {
        (Some(path), Some(proposal)) => {
            let made = std::fs::File::create_new(path)
                .and_then(|mut file| std::io::Write::write_all(&mut file, proposal.text.as_bytes()));
            made.with_context(|| format!("cannot write {}", path.display()))?;
            say!("wrote {}", path.display());
        }
        (Some(path), None) => say!("note: nothing can be cut, so {} is not written", path.display()),
        (None, _) => {}
    }
    let is_silent = document.paragraphs.iter().all(|of| of.role == ParagraphRole::Unclear);
    Ok(if is_silent { Outcome::Incomplete } else { Outcome::Passed })
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    own_files::record_written_files(std::slice::from_ref(&path.to_owned()));
    say!("wrote {}", path.display());
    Ok(())
}

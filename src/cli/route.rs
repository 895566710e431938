//! The command `practicum route`: which skill of a catalogue is activated for which prompt.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};

use super::report::ReportOptions;
use super::run_flags::RunFlags;
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{
    command_words, environment, has_colour, print, print_json, print_to_stderr, report_error, runtime,
};
use crate::improve;
use crate::model::{
    Diagnostics, Digest, Origin, Outcome, Ratio, Suite, TrialId, TrialRecord, count_with_noun,
};
use crate::plan::settings::{PROBE, REPEAT, SettingLayers, project_root};
use crate::report::{RunResults, display_path, render_diagnostics, routing, terminal_safe};
use crate::routing_prompts::{RoutingPrompt, read_routing_prompts};
use crate::session::run_setup::{EvalFiles, RunSetupError, SkillCatalogue};
use crate::session::{FinishedRun, RunOptions, Session};
use crate::store::{TrialFacts, read_records};
use crate::studies::{
    CatalogueFacts, RoutingDocument, RoutingRules, SimilarDescriptions, find_similar_descriptions,
    rows_to_repeat,
};
use crate::tree::to_yaml;
use crate::workspace::run::CancelToken;

#[derive(clap::Args)]
#[command(after_help = "\
All skills are staged together, as a user has them. Each prompt runs once. Skills whose prompts did not all activate \
them, that were activated for prompts of others, or whose descriptions are similar, run again, up to --repeat times, \
until it is clear whether they reach the goal. The intervals allow for that.

The file of prompts is YAML, JSON, JSONL or CSV. Each prompt has the skill that it should activate, several that are \
all right, or null for none:
  - { prompt: Write the release notes for 2.0., expected: release-notes }
  - { prompt: What is a version?, expected: null }

If the command is interrupted, the same command continues: what finished is not run again.

--generate lets a model write a first file of prompts, which a person reviews before anything is measured with it.

Exit codes: 0 no skill is below the goal, 1 one is, 3 runs have no answer.

Examples:
  practicum route skills --prompts prompts.yaml
  practicum route ~/.claude/skills plugins/*/skills --prompts prompts.csv
  practicum route skills --prompts prompts.yaml --generate 5
  practicum route skills --prompts prompts.yaml --report html=route.html")]
pub struct RouteArgs {
    /// Skill folders, or folders with skills below them
    #[arg(required = true, value_name = "SKILLS")]
    skills: Vec<PathBuf>,
    /// The file of prompts
    #[arg(long, value_name = "FILE")]
    prompts: PathBuf,
    /// Run nothing: let a model write this many prompts for each skill into the file of prompts, for you to review. The
    /// file must not exist, and be YAML
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3", value_parser = clap::value_parser!(u32).range(1..=50))]
    generate: Option<u32>,
    /// The share of runs that should activate the expected skill and no other
    #[arg(long, value_name = "RATIO", default_value = "0.8", value_parser = parse_goal)]
    goal: Ratio,
    #[command(flatten)]
    choices: SettingArgs,
    #[command(flatten)]
    flags: RunFlags,
    #[command(flatten)]
    reports: ReportOptions,
}

/// The default of the greatest number of runs of a prompt.
const DEFAULT_REPEAT: u32 = 8;

fn parse_goal(text: &str) -> Result<Ratio, String> {
    let inside = |goal: &Ratio| goal.get() > 0.0 && goal.get() < 1.0;
    let goal = text.parse().ok().and_then(Ratio::new).filter(inside);
    goal.ok_or_else(|| "it must be between 0 and 1, and neither of them".to_owned())
}

pub fn main(args: &RouteArgs) -> Outcome {
    route(args).unwrap_or_else(|error| report_error(&error))
}

fn route(args: &RouteArgs) -> anyhow::Result<Outcome> {
    let options = options(args)?;
    args.reports.require_one_for_stdout(args.flags.json)?;
    let catalogue = SkillCatalogue::read(&args.skills)?;
    if let Some(count) = args.generate {
        return generate_prompts(args, &catalogue, count);
    }
    let Some(prompts) = read_prompts(&args.prompts, &catalogue) else { return Ok(Outcome::Invalid) };
    let most_rounds = args.choices.repeat(DEFAULT_REPEAT)?;
    let study = RoutingStudy {
        args,
        options,
        similar: find_similar_descriptions(&catalogue.descriptions()),
        rules: RoutingRules { goal: args.goal.get(), most_rounds },
        catalogue,
        prompts,
        project: project_root(&std::path::absolute(&args.prompts)?),
    };
    study.run()
}

fn options(args: &RouteArgs) -> anyhow::Result<RunOptions> {
    if !args.flags.gates_asked().is_empty() {
        bail!("--gate cannot be given to route; --goal says which share of the runs must be right");
    }
    let mut options = args.flags.options(&EvalsArgs::at_paths(Vec::new()), &args.choices);
    if options.fail_fast || options.stop_early {
        bail!(
            "--fail-fast and --stop-early cannot be given to route, which decides itself how often a prompt runs"
        );
    }
    options.settings.remove(REPEAT.name);
    // A probe of each skill would cost as much as the study. What no agent sees is reported at the end.
    options.settings.insert(PROBE.name.to_owned(), "false".to_owned());
    if options.no_reuse {
        // Every trial runs anew, but a later round reuses those of the rounds before it.
        options.no_reuse = false;
        options.sample = Some(format!("route {}", jiff::Timestamp::now()));
    }
    Ok(options)
}

/// Reads the prompts, and shows what is wrong with them. `None` if they cannot be used.
fn read_prompts(path: &Path, catalogue: &SkillCatalogue) -> Option<Vec<RoutingPrompt>> {
    let mut diagnostics = Diagnostics::default();
    let (text, prompts) = read_routing_prompts(path, &mut diagnostics);
    catalogue.report_unknown_skills(&prompts, &mut diagnostics);
    if diagnostics.has_errors() {
        print_to_stderr(&render_diagnostics(&diagnostics, path, &text, has_colour()));
        say!("error: {} cannot be used; nothing was run", display_path(path));
        return None;
    }
    Some(prompts)
}

/// Lets a model write prompts for each skill, and writes them to a new file.
fn generate_prompts(args: &RouteArgs, catalogue: &SkillCatalogue, count: u32) -> anyhow::Result<Outcome> {
    let path = &args.prompts;
    if path.exists() {
        bail!(
            "{} exists; --generate never overwrites prompts that somebody may have reviewed",
            path.display()
        );
    }
    if !path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") {
        bail!("--generate writes YAML; give --prompts a name that ends with .yaml");
    }
    let project = project_root(&std::path::absolute(path)?);
    let settings = args.flags.settings(&args.choices);
    let layers = SettingLayers::read(settings, environment(), &project).map_err(RunSetupError::from)?;
    let origin = Origin { dialect: "none".to_owned(), path: project.clone(), digest: Digest::of_bytes(b"") };
    let silent = Suite::empty("prompts", origin);
    let mut written = Vec::new();
    let mut unanswered = 0;
    runtime()?.block_on(async {
        let access = args.flags.model_access();
        let adviser = access.adviser(&layers, &project, &silent, None, CancelToken::default()).await?;
        for skill in &catalogue.skills {
            match improve::propose_skill_prompts(&adviser, skill, count).await.answer {
                Ok(prompts) => written.extend(
                    prompts.into_iter().map(|prompt| json!({"prompt": prompt, "expected": skill.name})),
                ),
                Err(why) => {
                    unanswered += 1;
                    say!("note: no prompts for {}: {}", terminal_safe(&skill.name), terminal_safe(&why));
                }
            }
        }
        anyhow::Ok(())
    })?;
    if written.is_empty() {
        say!("error: the model wrote no prompt");
        return Ok(Outcome::Incomplete);
    }
    let head = "# Written by a model. Review each prompt: would a user say it, and is the expected skill right?\n\
                # Add prompts that need no skill, with expected: null.\n";
    let number = written.len();
    let text = format!("{head}{}", to_yaml(&Value::Array(written)));
    let made = std::fs::File::create_new(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    made.with_context(|| format!("cannot write {}", path.display()))?;
    print(&format!(
        "{} written to {} for you to review\n",
        count_with_noun(number, "prompt"),
        display_path(path)
    ))?;
    Ok(if unanswered == 0 { Outcome::Passed } else { Outcome::Incomplete })
}

/// A study of a catalogue: rounds of runs until enough is known.
struct RoutingStudy<'a> {
    args: &'a RouteArgs,
    options: RunOptions,
    catalogue: SkillCatalogue,
    prompts: Vec<RoutingPrompt>,
    similar: Vec<SimilarDescriptions>,
    rules: RoutingRules,
    project: PathBuf,
}

impl RoutingStudy<'_> {
    fn run(&self) -> anyhow::Result<Outcome> {
        let mut rounds: BTreeMap<Vec<String>, u32> = BTreeMap::new();
        let mut records: BTreeMap<TrialId, (TrialRecord, PathBuf)> = BTreeMap::new();
        loop {
            let Some(finished) = self.run_rounds(&rounds)? else { return Ok(Outcome::Passed) };
            let trials = finished.run_dir.path().join("trials");
            for (id, record) in read_records(finished.run_dir.path())? {
                let folder = trials.join(id.as_str());
                records.insert(id, (record, folder));
            }
            let mut document = self.document(&finished, &records)?;
            let more = match finished.summary.exit {
                Outcome::OverBudget | Outcome::Interrupted => BTreeMap::new(),
                _ => self.rows_to_repeat(&document),
            };
            if more.is_empty() {
                document.exit = match finished.summary.exit {
                    stopped @ (Outcome::OverBudget | Outcome::Interrupted) => stopped,
                    _ => document.outcome(self.options.allow_unscored),
                };
                return self.report(finished, document);
            }
            say!(
                "{} run again, up to {} times",
                count_with_noun(more.len(), "row"),
                more.values().max().unwrap_or(&1)
            );
            rounds.extend(more);
        }
    }

    /// Runs each prompt as often as its row has rounds. What ran before is reused.
    fn run_rounds(&self, rounds: &BTreeMap<Vec<String>, u32>) -> anyhow::Result<Option<FinishedRun>> {
        let flags = &self.args.flags;
        let mut environment = environment();
        // It would win over the rounds of each prompt.
        REPEAT.env.iter().for_each(|name| drop(environment.remove(*name)));
        let mut observer = flags.observer();
        observer.quiet |= !rounds.is_empty();
        let reading = self.reading(rounds);
        if reading.has_errors() {
            let problems = reading.files.iter().flat_map(|file| file.lowered.diagnostics.iter());
            let problems: Vec<&str> = problems.map(|problem| problem.message.as_str()).collect();
            bail!("the prompts cannot be run: {}", problems.join("; "));
        }
        let session = Session::new(&self.project)
            .with_options(self.options.clone())
            .with_reading(reading)
            .with_limits(flags.limits())
            .with_command(command_words())
            .with_environment(environment);
        let suites = session.read_suites(&mut observer)?;
        flags.run_with(suites, &mut observer)
    }

    fn reading(&self, rounds: &BTreeMap<Vec<String>, u32>) -> EvalFiles {
        let folder = self.args.prompts.parent().unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let rounds = |prompt: &RoutingPrompt| rounds.get(&prompt.expected).copied().unwrap_or(1);
        self.catalogue.evals(&self.prompts, rounds, self.rules.goal, &folder)
    }

    fn document(
        &self,
        finished: &FinishedRun,
        records: &BTreeMap<TrialId, (TrialRecord, PathBuf)>,
    ) -> anyhow::Result<RoutingDocument> {
        let info = finished.run_dir.info().map_err(|why| anyhow!(why))?;
        let stored =
            info.suites.iter().find_map(|of| Some((&of.suite, CatalogueFacts::of_suite(&of.suite)?)));
        let (suite, facts) = stored.ok_or_else(|| anyhow!("the run has no suite of a catalogue"))?;
        let all: Vec<TrialRecord> = records.values().map(|(record, _)| record.clone()).collect();
        let listing = |record: &TrialRecord| {
            let (_, folder) = records.get(&record.trial)?;
            TrialFacts::read(folder).ok()?.listing
        };
        let document = RoutingDocument::from_records(finished.run_dir.id(), suite, facts, &all, listing);
        Ok(RoutingDocument { similar: self.similar.clone(), ..document })
    }

    /// Gives the rows that any agent needs more rounds of.
    fn rows_to_repeat(&self, document: &RoutingDocument) -> BTreeMap<Vec<String>, u32> {
        let parts = document.agents.iter();
        parts.flat_map(|part| rows_to_repeat(&part.analysis, &self.similar, &self.rules)).collect()
    }

    fn report(&self, finished: FinishedRun, document: RoutingDocument) -> anyhow::Result<Outcome> {
        let record = display_path(finished.run_dir.path());
        let mut results = RunResults::open(finished.run_dir).map_err(|why| anyhow!(why))?;
        let all_written = self.args.reports.write(&mut results, &environment());
        if self.args.flags.json {
            print_json(&document)?;
        } else {
            print(&routing::render_text(&document))?;
            say!("record: {record}");
        }
        Ok(if all_written || document.exit != Outcome::Passed { document.exit } else { Outcome::Incomplete })
    }
}

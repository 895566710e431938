//! The command line: one file for each command.
//!
//! In: arguments. Out: an exit code. Never: contains logic that a library user would want.

/// Prints a message as a line on standard error. A closed standard error must not end a run.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::cli::print_to_stderr(&format!("{}\n", format_args!($($words)*)))
    };
}

mod ablate;
mod adviser;
mod audit;
mod badge;
mod baseline;
mod blind;
mod builtin_agent;
mod calibrate;
mod candidate_files;
mod capture;
mod check;
mod clean;
mod compare;
mod compare_texts;
mod completions;
mod convert;
mod create;
mod demo;
mod diagnose;
mod doctor;
mod editor_schema;
mod export;
mod findings_args;
mod formats;
mod gates;
mod gateway;
mod grade;
mod headings;
mod import;
mod improve;
mod init;
mod install_skill;
mod interrupts;
mod lint;
mod list;
mod man;
mod mcp;
mod merge;
mod noise;
mod observer;
mod paraphrase;
mod plan_view;
mod power;
mod propose;
mod reindex;
mod relay;
mod report;
mod restore;
mod resume;
mod route;
mod run;
mod run_flags;
mod runs;
mod sandbox_inner;
mod schema;
mod shared_args;
mod show;
mod snapshot;
mod suggest;
mod trend;
mod trust;
mod trust_question;
mod try_prompt;
mod versions;
mod view;
mod worker;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::model::{Outcome, count_with_noun};
use crate::own_files;
use crate::plan::settings::{SettingDefinition, SettingLayers};
use crate::report::{render_diagnostics, terminal_safe, terminal_safe_json};
use crate::session::SessionError;
use crate::session::run_setup::RunSetupError;
use crate::store::{Index, RecordKey, StoreError};
use adviser::NoAdviser;
use run_flags::StoppedRun;

/// Tests AI-agent skills with real agents.
///
/// Reads your eval files, stages the skill in an isolated workspace, runs a real agent on each case,
/// and grades what it did.
#[derive(Parser)]
#[command(name = "practicum", version, propagate_version = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run evals: find them, stage each case, run the agent, grade the result
    Run(Box<run::RunArgs>),
    /// Run an example that is inside the program, without a network, a key or an agent
    Demo(demo::DemoArgs),
    /// Try one prompt on a skill, without an eval file
    Try(Box<try_prompt::TryArgs>),
    /// Grade a stored run again, or a captured text, without running an agent
    Grade(Box<grade::GradeArgs>),
    /// Compare runs, parts of a run, modes, or a skill with its earlier version
    Compare(Box<compare::CompareArgs>),
    /// Measure how much results vary when nothing changes
    Noise(Box<noise::NoiseArgs>),
    /// Measure which skill of a catalogue is activated for which prompt
    Route(Box<route::RouteArgs>),
    /// Say why a skill does not help: not found, not followed, or of no use
    Diagnose(Box<diagnose::DiagnoseArgs>),
    /// Measure which paragraphs of a skill its results depend on
    Ablate(Box<ablate::AblateArgs>),
    /// Measure whether results hold if users say the same in other words
    Paraphrase(Box<paraphrase::ParaphraseArgs>),
    /// Compute how many runs a comparison needs
    Power(power::PowerArgs),
    /// Improve a skill by its evals: propose edits, test them, keep what is better
    Improve(Box<improve::ImproveArgs>),
    /// Let a model propose new eval cases, for review
    Propose(propose::ProposeArgs),
    /// Save trials of a run as examples for new eval cases
    Capture(capture::CaptureArgs),
    /// Let a model suggest edits to a skill for the checks that failed
    Suggest(suggest::SuggestArgs),
    /// Save the skill as it is now as a version
    Snapshot(snapshot::SnapshotArgs),
    /// List the versions of a skill and name the best
    Versions(versions::VersionsArgs),
    /// Restore a version of a skill
    Restore(restore::RestoreArgs),
    /// List the runs of this project
    Runs(runs::RunsArgs),
    /// Show a run, or one of its trials
    Show(show::ShowArgs),
    /// Write a report of a stored run
    Report(report::ReportArgs),
    /// Show runs, cases and transcripts in a browser
    View(view::ViewArgs),
    /// Show a metric over the runs of this project
    Trend(trend::TrendArgs),
    /// Find checks that never fail, tell nothing about the skill, or are flaky
    Audit(audit::AuditArgs),
    /// Say how right judges are, by the labels of people, and correct pass rates
    Calibrate(calibrate::CalibrateArgs),
    /// Store the results of a run that later runs must not fall behind
    Baseline(baseline::BaselineArgs),
    /// Make a badge of a run for a README
    Badge(badge::BadgeArgs),
    /// Export trials or checks as a table
    Export(export::ExportArgs),
    /// Put the parts of a run together that were run with --shard
    Merge(merge::MergeArgs),
    /// Run trials of runs that other machines plan, from a NATS server
    Worker(worker::WorkerArgs),
    /// Rebuild the index of runs
    Reindex(reindex::ReindexArgs),
    /// Take over the results of a run that another installation made
    Import(import::ImportArgs),
    /// Remove old runs and what killed runs left behind
    Clean(clean::CleanArgs),
    /// Show what this project would run on your machine, and trust it
    Trust(Box<trust::TrustArgs>),
    /// Check eval files and the skills they name, without running anything
    Check(check::CheckArgs),
    /// Show what would run: suites, cases and trials
    List(Box<list::ListArgs>),
    /// Write an eval file in another format
    Convert(convert::ConvertArgs),
    /// Show what this machine has: agents, logins, sandbox, disk
    Doctor(doctor::DoctorArgs),
    /// Draft a skill from evals that were written first
    Create(create::CreateArgs),
    /// Write the first evals of a skill, to be completed by its author
    Init(init::InitArgs),
    /// List the eval formats that can be read, or the text formats that checks know
    Formats(formats::FormatsArgs),
    /// Check skills against the specification and conventions: frontmatter, links, scripts
    Lint(lint::LintArgs),
    /// Print the JSON Schema of a file that is read or written
    Schema(schema::SchemaArgs),
    /// Run only the model gateway: play a script, meter, record or replay
    Gateway(gateway::GatewayArgs),
    /// Serve the commands to an agent, by the Model Context Protocol
    Mcp(mcp::McpArgs),
    /// Give agents the skill that teaches them to write evals
    InstallSkill(install_skill::InstallSkillArgs),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(man::ManArgs),
    #[command(name = crate::agents::BUILTIN_SUBCOMMAND, hide = true)]
    BuiltinAgent(builtin_agent::BuiltinAgentArgs),
    #[command(name = crate::workspace::sandbox::SUBCOMMAND, hide = true)]
    Confined(sandbox_inner::SandboxInnerArgs),
    #[command(name = crate::workspace::mocks::RELAY_SUBCOMMAND, hide = true)]
    Relay(relay::RelayArgs),
}

const EXIT_CODES: &str = "\
Exit codes:
  0    every gate holds
  1    a gate failed, or a comparison found a loss
  2    bad usage, an eval file that cannot be understood, or an invalid skill
  3    the run could not be completed; its results are kept
  4    the budget was used up; the results so far are kept
  130  interrupted";

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        if let Some(hint) = hint_for(&error) {
            // Errors writing to stderr are ignored: there is nowhere left to report them.
            let _ = error.print();
            say!("hint: {hint}");
            std::process::exit(u8::from(Outcome::Invalid).into());
        }
        error.exit()
    });
    let tells_of_evals = cli.command.prints_eval_content();
    let outcome = match cli.command {
        Command::Run(args) => run::main(*args),
        Command::Demo(args) => demo::main(&args),
        Command::Try(args) => try_prompt::main(&args),
        Command::Grade(args) => grade::main(&args),
        Command::Compare(args) => compare::main(*args),
        Command::Noise(args) => noise::main(*args),
        Command::Route(args) => route::main(&args),
        Command::Diagnose(args) => diagnose::main(&args),
        Command::Ablate(args) => ablate::main(&args),
        Command::Paraphrase(args) => paraphrase::main(&args),
        Command::Power(args) => power::main(&args),
        Command::Runs(args) => runs::main(&args),
        Command::Improve(args) => improve::main(*args),
        Command::Propose(args) => propose::main(&args),
        Command::Capture(args) => capture::main(&args),
        Command::Suggest(args) => suggest::main(&args),
        Command::Snapshot(args) => snapshot::main(&args),
        Command::Versions(args) => versions::main(&args),
        Command::Restore(args) => restore::main(&args),
        Command::Show(args) => show::main(args),
        Command::Report(args) => report::main(&args),
        Command::View(args) => view::main(&args),
        Command::Trend(args) => trend::main(&args),
        Command::Audit(args) => audit::main(&args),
        Command::Calibrate(args) => calibrate::main(&args),
        Command::Badge(args) => badge::main(&args),
        Command::Baseline(args) => baseline::main(&args),
        Command::Export(args) => export::main(&args),
        Command::Merge(args) => merge::main(&args),
        Command::Worker(args) => worker::main(&args),
        Command::Reindex(args) => reindex::main(&args),
        Command::Import(args) => import::main(&args),
        Command::Clean(args) => clean::main(args),
        Command::Trust(args) => trust::main(&args),
        Command::Check(args) => check::main(args),
        Command::List(args) => list::main(*args),
        Command::Convert(args) => convert::main(args),
        Command::Doctor(args) => doctor::main(args),
        Command::Create(args) => create::main(&args),
        Command::Init(args) => init::main(args),
        Command::Formats(args) => formats::main(args),
        Command::Lint(args) => lint::main(&args),
        Command::Schema(args) => schema::main(&args),
        Command::Gateway(args) => gateway::main(&args),
        Command::Mcp(args) => mcp::main(&args),
        Command::InstallSkill(args) => install_skill::main(&args),
        Command::Completions(args) => completions::main(&args),
        Command::Man(args) => man::main(&args),
        // These three end as the process that they stand for.
        Command::BuiltinAgent(args) => return ExitCode::from(builtin_agent::main(args)),
        Command::Confined(args) => return ExitCode::from(sandbox_inner::main(args)),
        Command::Relay(args) => return ExitCode::from(relay::main(args)),
    };
    if tells_of_evals {
        own_files::record_stream_contents();
    }
    ExitCode::from(u8::from(outcome))
}

/// Runs one of the hidden commands that the program uses to start itself: the built-in agent, and the part of the
/// sandbox that runs inside it. Gives `None` if the first argument is neither. A program that embeds this library
/// must call this first, before it starts a runtime, because the library then starts that program for these
/// commands.
pub fn run_helper_command() -> Option<ExitCode> {
    let first = std::env::args().nth(1)?;
    let is_helper =
        [crate::agents::BUILTIN_SUBCOMMAND, crate::workspace::sandbox::SUBCOMMAND].contains(&first.as_str());
    is_helper.then(main)
}

/// Gives a hint for an option of skill-test's command line: what does the same here.
fn hint_for(error: &clap::Error) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue};
    let word =
        [ContextKind::InvalidSubcommand, ContextKind::InvalidArg].into_iter().find_map(|kind| match error
            .get(kind)
        {
            Some(ContextValue::String(word)) => Some(word.as_str()),
            _ => None,
        })?;
    match word.split(['=', ' ']).next()? {
        "test" => Some("practicum try \"PROMPT\" --skill NAME tries one prompt"),
        "suite" => Some("practicum run SUITE.json runs a suite"),
        "--json-output" => Some("--report activation=FILE writes the results as JSON"),
        "--output" => Some("--report md=FILE writes the report"),
        _ => None,
    }
}

impl Command {
    /// Says whether the output may contain what evals expect. No agent may find such output in its project.
    fn prints_eval_content(&self) -> bool {
        match self {
            Command::Run(_)
            | Command::Demo(_)
            | Command::Try(_)
            | Command::Grade(_)
            | Command::Compare(_)
            | Command::Noise(_)
            | Command::Route(_)
            | Command::Diagnose(_)
            | Command::Ablate(_)
            | Command::Paraphrase(_)
            | Command::Power(_)
            | Command::Improve(_)
            | Command::Propose(_)
            | Command::Capture(_)
            | Command::Suggest(_)
            | Command::Create(_)
            | Command::Versions(_)
            | Command::Runs(_)
            | Command::Show(_)
            | Command::Report(_)
            | Command::Trend(_)
            | Command::Audit(_)
            | Command::Calibrate(_)
            | Command::Badge(_)
            | Command::Baseline(_)
            | Command::Export(_)
            | Command::Merge(_)
            | Command::Trust(_)
            | Command::Check(_)
            | Command::List(_)
            | Command::Convert(_) => true,
            Command::Snapshot(_)
            | Command::Restore(_)
            | Command::View(_)
            | Command::Worker(_)
            | Command::Reindex(_)
            | Command::Import(_)
            | Command::Clean(_)
            | Command::Doctor(_)
            | Command::Init(_)
            | Command::Formats(_)
            | Command::Lint(_)
            | Command::Schema(_)
            | Command::Gateway(_)
            | Command::Mcp(_)
            | Command::InstallSkill(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::BuiltinAgent(_)
            | Command::Confined(_)
            | Command::Relay(_) => false,
        }
    }
}

/// Gives the whole command line, for completions and manual pages.
fn command_line() -> clap::Command {
    Cli::command()
}

/// Gives the words after the program's name, for the record of a run.
fn command_words() -> Vec<String> {
    std::env::args().skip(1).collect()
}

/// Gives the user's environment, without variables that are not UTF-8.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Gives the key of the records of this user, or one of this process alone if there is no place for a key.
fn record_key() -> RecordKey {
    RecordKey::of_user(&environment()).unwrap_or_else(|_| RecordKey::temporary())
}

/// Says whether standard error may have colours.
fn has_colour() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints an error with its cause, and gives the outcome: invalid for bad usage and bad files, incomplete if the
/// machine cannot do it.
fn report_error(error: &anyhow::Error) -> Outcome {
    let intake = match error.downcast_ref() {
        Some(SessionError::Intake(error)) => Some(error),
        _ => error.downcast_ref::<RunSetupError>(),
    };
    if let Some(RunSetupError::Script { path, text, diagnostics }) = intake {
        print_to_stderr(&render_diagnostics(diagnostics, path, text, has_colour()));
    }
    say!("error: {}", terminal_safe(&format!("{error:#}")));
    match intake {
        Some(
            RunSetupError::AgentNotInstalled(_)
            | RunSetupError::NoAgentInstalled
            | RunSetupError::NoAgentsHere(_)
            | RunSetupError::Gateway(_)
            | RunSetupError::Sandbox(_),
        ) => Outcome::Incomplete,
        Some(
            RunSetupError::Discover(_)
            | RunSetupError::Settings(_)
            | RunSetupError::Skill(_)
            | RunSetupError::Plugin(_)
            | RunSetupError::NoSkillNamed(_)
            | RunSetupError::SeveralSkillsNamed { .. }
            | RunSetupError::UnknownAgent { .. }
            | RunSetupError::SkillNotInSuite { .. }
            | RunSetupError::SkillIsOwnRival { .. }
            | RunSetupError::UnknownMode(_)
            | RunSetupError::Script { .. }
            | RunSetupError::Cassette(_)
            | RunSetupError::UnknownCriterion { .. }
            | RunSetupError::NoJudge(_)
            | RunSetupError::CannotRun(_),
        ) => Outcome::Invalid,
        None if cannot_be_done_here(error) => Outcome::Incomplete,
        None => error.downcast_ref::<StoppedRun>().map_or(Outcome::Invalid, |stopped| stopped.outcome),
    }
}

/// Says whether an error comes from the machine and not from what the user gave.
fn cannot_be_done_here(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(SessionError::Store(_) | SessionError::Io { .. }))
        || error.is::<StoreError>()
        || error.is::<run::NotReady>()
        || error.is::<NoAdviser>()
        || error.chain().filter_map(|cause| cause.downcast_ref()).any(is_disk_full)
}

/// Says whether an error means that nothing more can be written there: the disk is full, a quota is reached, or
/// the file system is read-only.
fn is_disk_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// Writes to standard error. Errors are ignored: there is nowhere left to report them.
fn print_to_stderr(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints notes for the user on standard error, such as which eval files were skipped.
fn tell_notices(notices: &[String]) {
    for notice in notices {
        say!("note: {}", terminal_safe(notice));
    }
}

/// Writes to standard output. It is no error if the reader closes the pipe early.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Opens the index of a project and brings it up to date. Prints what the user should know about it.
fn open_index(project: &Path) -> anyhow::Result<Index> {
    if Index::needs_first_build(project) {
        say!("note: the index of runs is made, which may take a while");
    }
    let index = Index::open_updated(project)?;
    if let Some(notice) = index.notice() {
        say!("note: {}", terminal_safe(notice));
    }
    Ok(index)
}

/// Writes one JSON document to standard output.
fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", terminal_safe_json(&serde_json::to_string_pretty(document)?)))
}

/// Gives the value of a setting that no suite can change.
fn global_setting<T>(layers: &SettingLayers, knob: &SettingDefinition<T>) -> Result<T, RunSetupError> {
    Ok(layers.resolve_global(knob)?.value)
}

/// Makes the async runtime, with a thread for each core.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::command_line;

    /// Tests the texts below the options. The terminal wraps paragraphs, so none has line breaks. Examples are not
    /// wrapped, so they must fit.
    #[test]
    fn what_stands_below_the_options_is_readable_in_eighty_columns() {
        for command in command_line().get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let is_prose =
                    |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
                assert!(!is_prose(pair[0]) || !is_prose(pair[1]), "{}: {pair:?}", command.get_name());
            }
            for line in lines.iter().filter(|line| line.starts_with(' ')) {
                let width = line.chars().count();
                assert!(width <= 80, "{}, {width} columns: {line}", command.get_name());
            }
        }
    }

    #[test]
    fn every_command_has_an_example() {
        for command in command_line().get_subcommands().filter(|command| !command.is_hide_set()) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            let shown = text.contains(&format!("practicum {name}"));
            assert!(shown || ["formats", "reindex"].contains(&name), "{name}:\n{text}");
        }
    }
}

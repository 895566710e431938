//! The option `--resume`: continues a run with its original options and the limits that are given now.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use clap::Parser;
use clap::parser::ValueSource;

use super::{Cli, Command, command_line, record_key};
use crate::session::RunOptions;
use crate::store::{RunDir, RunInfo};

/// A stored run to continue, with the options for the rest of it.
pub struct RunToResume {
    pub run_dir: RunDir,
    pub options: RunOptions,
    /// Whether the scripts are trusted only because the command that began the run trusted them.
    pub trusted_at_start: bool,
}

impl RunToResume {
    /// Finds the run, which a command must have begun, and joins its options with the current ones. `now` has
    /// absolute paths; `allowed` are the arguments that may be given beside `--resume`.
    pub fn find(
        project: &Path,
        wanted: &str,
        command: &str,
        now: RunOptions,
        allowed: &[&str],
    ) -> anyhow::Result<Self> {
        let run_dir = RunDir::find(project, wanted).map_err(|why| match Path::new(wanted).exists() {
            true => {
                anyhow!("--resume needs a run, and {wanted} is not one; the evals are those of the run")
            }
            false => anyhow!(why),
        })?;
        let given = GivenArguments::now()?;
        given.allow_only(allowed)?;
        if !run_dir.is_made_with(&record_key()) {
            // Its options may name files and commands of another person.
            bail!(
                "run {0} was not begun by this installation, so it is not resumed with what its record says; read \
                 {1}, then say practicum import {0}",
                run_dir.id(),
                run_dir.path().join("run.json").display()
            );
        }
        let info = run_dir.info().map_err(|why| anyhow!(why))?;
        if info.started_by() != Some(command) {
            bail!("run {} was not started by practicum {command}; {}", run_dir.id(), info.resume_hint());
        }
        let begun = stored_options(&run_dir, &info)?;
        let trusted_at_start = begun.inputs.trust && !now.inputs.trust;
        // The environment may name a file of prices both times. Then the original options apply, so only an
        // explicit `--prices` counts here.
        let prices = now.prices.clone().filter(|_| given.has("prices"));
        let options = begun.resumed_with(RunOptions { prices, ..now });
        Ok(Self { run_dir, options, trusted_at_start })
    }
}

/// Gives the options of a stored run. Records of earlier program versions have only the words of the command.
fn stored_options(run: &RunDir, info: &RunInfo) -> anyhow::Result<RunOptions> {
    let options = match &info.options {
        Some(options) => options.clone(),
        None => {
            let words = std::iter::once("practicum").chain(info.command.iter().map(String::as_str));
            let given =
                Cli::try_parse_from(words).context("the record does not say how the run was started")?;
            let options = match given.command {
                Command::Run(args) => args.options(),
                Command::Noise(args) => args.options(),
                _ => bail!("the record of run {} does not say how it was started", run.id()),
            };
            options.made_absolute(&info.folder)
        }
    };
    // The project may have been moved or copied since. Paths in it are changed to its current place.
    let now = run.project().filter(|_| info.project.is_absolute());
    Ok(options.map_paths(|path| match (&now, path.strip_prefix(&info.project)) {
        (Some(now), Ok(inside)) => now.join(inside),
        _ => path.to_owned(),
    }))
}

/// The arguments that were written on the command line, without defaults and environment variables.
struct GivenArguments {
    arguments: Vec<clap::Arg>,
}

impl GivenArguments {
    fn now() -> anyhow::Result<Self> {
        Self::parse(std::env::args_os())
    }

    fn parse(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> anyhow::Result<Self> {
        let mut program = command_line();
        let matches = program.try_get_matches_from_mut(words)?;
        let (name, given) = matches.subcommand().ok_or_else(|| anyhow!("no command is given"))?;
        let command = program.find_subcommand(name).ok_or_else(|| anyhow!("there is no {name}"))?;
        let is_said = |argument: &&clap::Arg| {
            given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        Ok(Self { arguments: command.get_arguments().filter(is_said).cloned().collect() })
    }

    fn has(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.get_id() == name)
    }

    /// Refuses all other arguments, because they would have no effect.
    fn allow_only(&self, allowed: &[&str]) -> anyhow::Result<()> {
        let others: Vec<String> = self
            .arguments
            .iter()
            .filter(|argument| !allowed.contains(&argument.get_id().as_str()))
            .map(|argument| {
                argument.get_long().map_or_else(|| "a path".to_owned(), |long| format!("--{long}"))
            })
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        bail!(
            "--resume continues a run with its own options, so {} cannot be given with it; --help lists the \
             options that can",
            others.join(" and ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{noise, run};

    #[test]
    fn resumable_arguments_exist() {
        for (command, names) in [("run", run::resumable_arguments()), ("noise", noise::resumable_arguments())]
        {
            let mut program = command_line();
            program.build();
            let command = program.find_subcommand(command).expect("a command");
            for name in names {
                assert!(command.get_arguments().any(|argument| argument.get_id() == name), "{name}");
            }
        }
    }

    #[test]
    fn only_what_is_written_is_said() {
        let said = |words: &[&str]| {
            GivenArguments::parse([&["practicum", "run"], words].concat()).expect("understood")
        };
        assert!(said(&[]).arguments.is_empty(), "defaults are not");
        assert!(said(&["-j", "2"]).has("jobs") && !said(&["-j", "2"]).has("quiet"));
        for (words, others) in [
            (&["--resume", "r", "-j", "2", "--max-cost", "5", "--prices", "p", "-q"][..], None),
            (&["--resume", "r", "--repeat", "2", "--case", "z"], Some("--repeat and --case")),
            (&["evals", "--resume"], Some("so a path cannot")),
            (&["--resume", "--gate", "f1=1"], Some("so --gate cannot")),
        ] {
            let found = said(words).allow_only(&run::resumable_arguments());
            match (found, others) {
                (Ok(()), None) => {}
                (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{words:?}: {error}"),
                (found, _) => panic!("{words:?}: {found:?}"),
            }
        }
    }
}

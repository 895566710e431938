//! Going on with a run: as it was begun, but for what may be said anew.

use std::ffi::OsString;

use anyhow::{anyhow, bail};
use clap::parser::ValueSource;

use super::program;

/// What the command that is given now says.
pub struct Said {
    arguments: Vec<clap::Arg>,
}

impl Said {
    pub fn now() -> anyhow::Result<Self> {
        Self::by(std::env::args_os())
    }

    fn by(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> anyhow::Result<Self> {
        let mut program = program();
        let matches = program.try_get_matches_from_mut(words)?;
        let (name, given) = matches.subcommand().ok_or_else(|| anyhow!("no command is given"))?;
        let command = program.find_subcommand(name).ok_or_else(|| anyhow!("there is no {name}"))?;
        let is_said = |argument: &&clap::Arg| {
            given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        Ok(Self { arguments: command.get_arguments().filter(is_said).cloned().collect() })
    }

    pub fn has(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.get_id() == name)
    }

    /// What else is said would be lost, so it is refused.
    pub fn nothing_but(&self, may_be_said: &[&str]) -> anyhow::Result<()> {
        let others: Vec<String> = self
            .arguments
            .iter()
            .filter(|argument| !may_be_said.contains(&argument.get_id().as_str()))
            .map(|argument| {
                argument.get_long().map_or_else(|| "a path".to_owned(), |long| format!("--{long}"))
            })
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        bail!(
            "--resume goes on with a run as it was begun, so {} cannot be given with it; only limits and \
             what is shown can, as --help says of --resume",
            others.join(" and ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{noise, run};

    #[test]
    fn what_may_be_said_anew_are_arguments() {
        for (command, names) in [("run", run::may_be_said_anew()), ("noise", noise::may_be_said_anew())] {
            let mut program = program();
            program.build();
            let command = program.find_subcommand(command).expect("a command");
            for name in names {
                assert!(command.get_arguments().any(|argument| argument.get_id() == name), "{name}");
            }
        }
    }

    #[test]
    fn only_what_is_written_is_said() {
        let said = |words: &[&str]| Said::by([&["practicum", "run"], words].concat()).expect("understood");
        assert!(said(&[]).arguments.is_empty(), "defaults are not");
        assert!(said(&["-j", "2"]).has("jobs") && !said(&["-j", "2"]).has("quiet"));
        for (words, others) in [
            (&["--resume", "r", "-j", "2", "--max-cost", "5", "--prices", "p", "-q"][..], None),
            (&["--resume", "r", "--repeat", "2", "--case", "z"], Some("--repeat and --case")),
            (&["evals", "--resume"], Some("so a path cannot")),
            (&["--resume", "--gate", "f1=1"], Some("so --gate cannot")),
        ] {
            let found = said(words).nothing_but(&run::may_be_said_anew());
            match (found, others) {
                (Ok(()), None) => {}
                (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{words:?}: {error}"),
                (found, _) => panic!("{words:?}: {found:?}"),
            }
        }
    }
}

//! The command `practicum trust`: shows what a project would run on this machine, and trusts it.

use anyhow::{anyhow, bail};

use super::observer::TerminalObserver;
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{count_with_noun, environment, print, report_error};
use crate::model::Outcome;
use crate::report::terminal_safe;
use crate::session::{RunInputs, RunOptions, Session, TrustItem, TrustStore};

#[derive(clap::Args)]
#[command(after_help = "\
Some things in a project take effect only if you trust them: commands of agents and a weaker sandbox in \
practicum.toml, setup, teardown and check scripts, hooks and servers of plugins, and files like \
.claude/settings.json that make an agent start programs. Trust is for this project and for the content that you \
saw: if an item changes, you are asked again. It is stored in your own settings folder, never in the project.

Examples:
  practicum trust --list          show what needs trust, and what is trusted
  practicum trust                 trust it as it is now
  practicum trust --revoke        trust nothing of this project any more")]
pub struct TrustArgs {
    #[command(flatten)]
    evals: EvalsArgs,
    #[command(flatten)]
    choices: SettingArgs,
    /// Show everything that needs trust, and trust nothing
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Remove the trust in this project
    #[arg(long)]
    revoke: bool,
    /// Also this whole plugin (repeatable)
    #[arg(long, value_name = "DIR")]
    plugin: Vec<std::path::PathBuf>,
}

pub fn main(args: &TrustArgs) -> Outcome {
    trust(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn trust(args: &TrustArgs) -> anyhow::Result<()> {
    let project = args.evals.project();
    let store = TrustStore::read(&environment()).map_err(|why| anyhow!(why))?;
    let Some(mut store) = store else { bail!("there is no folder for your settings: HOME is not set") };
    if args.revoke {
        let removed = store.revoke(&project).map_err(|why| anyhow!(why))?;
        return print(&format!("{} of this project no longer trusted\n", count_with_noun(removed, "item")));
    }
    let settings = args.choices.flags().into_iter().map(|(name, value)| (name.to_owned(), value));
    let options = RunOptions {
        inputs: RunInputs { plugins: args.plugin.clone(), ..args.evals.inputs() },
        settings: settings.collect(),
        ..RunOptions::default()
    };
    let session = Session::new(&project).with_options(options).showing_only(true);
    let mut observer = TerminalObserver { quiet: true, dry_run: false };
    let items = session.read_suites(&mut observer)?.trust_items(&mut observer)?;
    let open: Vec<TrustItem> =
        items.iter().filter(|(_, trusted)| !trusted).map(|(item, _)| item.clone()).collect();
    print(&terminal_safe(&describe(&items)))?;
    if args.list || open.is_empty() {
        return Ok(());
    }
    store.add(&project, &open).map_err(|why| anyhow!(why))?;
    print(&format!("{} trusted, until one changes\n", count_with_noun(open.len(), "item")))
}

fn describe(items: &[(TrustItem, bool)]) -> String {
    if items.is_empty() {
        return "nothing in this project needs trust\n".to_owned();
    }
    let mut text = String::new();
    for (item, trusted) in items {
        let state = if *trusted { "trusted" } else { "not trusted" };
        text.push_str(&format!("{state}: {}\n", item.what));
        item.text.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    text
}

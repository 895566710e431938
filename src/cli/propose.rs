use std::path::{Path, PathBuf};

use anyhow::Context;

use super::advising::Advising;
use super::{complain, environment, print, print_json, runtime};
use crate::discover::DiscoverError;
use crate::improve::{self, Candidates, Capture};
use crate::intake::{self, Ask, IntakeError};
use crate::model::{Digest, Origin, Suite};
use crate::report::safe;
use crate::run::Cancel;
use crate::settings::{Layers, project_root};
use crate::tree::to_yaml;
use crate::versions::Contents;

#[derive(clap::Args)]
#[command(after_help = "\
The model is shown the skill, its evals and the captured runs (see practicum capture). What cannot be read, \
is there already, or would be passed by an agent that does nothing is dropped and told. The rest is written \
to evals/<skill>.candidates.yaml, which no run takes up: read it, keep what is good, and save that as \
<name>.practicum.yaml.

Exit codes: 0 there are candidates, 1 none was left, 3 the model gave no answer.

Examples:
  practicum propose skills/release-notes
  practicum propose skills/release-notes --each 5 --evals tests/evals")]
pub struct Args {
    /// The skill's folder
    skill: PathBuf,
    /// Where the evals of the skill are, if not where they usually are
    #[arg(long, value_name = "PATH")]
    evals: Option<PathBuf>,
    /// How many cases of each kind are asked for: positives, near misses, artifacts, edges
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    each: u32,
    #[command(flatten)]
    advising: Advising,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> u8 {
    propose(args).unwrap_or_else(|error| complain(&error))
}

fn propose(args: &Args) -> anyhow::Result<u8> {
    let contents = Contents::of(&args.skill)?;
    let skill = contents.folder();
    let project = project_root(skill);
    let known = known(args)?;
    let layers = Layers::read(args.advising.flags(), environment(), &project).map_err(IntakeError::from)?;
    let origin = Origin { dialect: "none".to_owned(), path: project.clone(), digest: Digest::of(b"") };
    let silent = Suite::silent("candidates", origin);
    let captured = Capture::all(skill);
    let advice = runtime().context("cannot start")?.block_on(async {
        let suite = known.first().unwrap_or(&silent);
        let asking = args.advising.asking();
        let adviser = asking.adviser(&layers, &project, suite, None, Cancel::default()).await?;
        anyhow::Ok(improve::propose_cases(&adviser, &contents, &known, &captured, args.each).await?)
    })?;
    let proposed = match advice.answer {
        Ok(proposed) => proposed,
        Err(why) => {
            say!("error: {}", safe(&why));
            return Ok(3);
        }
    };
    let (candidates, dropped) = improve::sifted(proposed, skill, &known);
    let file = match candidates.is_empty() {
        true => None,
        false => Some(write(skill, &to_yaml(&improve::native_file(skill, &candidates)))?),
    };
    let found = Candidates { schema_version: 1, skill: skill.to_owned(), file, candidates, dropped };
    if args.json {
        print_json(&found)?;
    } else {
        print(&in_words(&found))?;
    }
    Ok(u8::from(found.candidates.is_empty()))
}

/// The suites that are there. Having none yet is the best reason to ask for some.
fn known(args: &Args) -> anyhow::Result<Vec<Suite>> {
    let ask = Ask { paths: vec![args.skill.clone()], evals: args.evals.clone(), ..Ask::default() };
    match intake::read(&ask, &environment()) {
        Ok(reading) => Ok(reading.into_suites()?.into_iter().map(|placed| placed.suite).collect()),
        Err(IntakeError::Discover(DiscoverError::Nothing(_) | DiscoverError::Ignored { .. })) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a new file; what someone may be editing is never overwritten.
fn write(skill: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let folder = skill.join("evals");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let name = skill.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = std::iter::once(format!("{name}.candidates.yaml"))
        .chain((2..1000).map(|n| format!("{name}.candidates-{n}.yaml")));
    for name in names {
        let path = folder.join(name);
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                let head = "# Proposed, and to be judged by a person: keep what is good in a .practicum.yaml file.\n";
                std::io::Write::write_all(&mut file, format!("{head}{text}").as_bytes())?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
    anyhow::bail!("there are too many files of candidates in {}; remove some", folder.display())
}

fn in_words(found: &Candidates) -> String {
    let mut out = String::new();
    for candidate in &found.candidates {
        let text = |key: &str| candidate.case[key].as_str().unwrap_or_default().to_owned();
        out.push_str(&format!("{}: {}\n", safe(&text("id")), safe(&text("prompt"))));
    }
    for dropped in &found.dropped {
        out.push_str(&format!("dropped, {}: {}\n", safe(&dropped.id), safe(&dropped.why)));
    }
    match &found.file {
        Some(path) => out.push_str(&format!("written to {} for you to judge\n", path.display())),
        None => out.push_str("no candidate was left\n"),
    }
    out
}

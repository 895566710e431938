//! The command `practicum propose`: asks a model for new eval cases and writes them for review.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::adviser::AdviserFlags;
use super::{convert, environment, print, print_json, report_error, runtime, tell_notices};
use crate::dialects::{self, EvalFileLocation, EvalRegistry};
use crate::discover::DiscoverError;
use crate::improve::{self, Candidate, Candidates, CapturedTrial};
use crate::model::{Digest, Origin, Outcome, RelPath, Suite};
use crate::plan::settings::{SettingLayers, project_root};
use crate::report::terminal_safe;
use crate::session::RunInputs;
use crate::session::run_setup::{self, RunSetupError};
use crate::skill::evals_folder;
use crate::tree::{SourceSyntax, to_yaml};
use crate::versions::SkillContents;
use crate::workspace::run::CancelToken;

#[derive(clap::Args)]
#[command(after_help = "\
The model is shown the skill, its evals and the captured runs (see practicum capture). What cannot be read, \
is there already, or would be passed by an agent that does nothing is dropped, with the reason. The rest is written \
to evals/<skill>.candidates.yaml, which no run reads: review it, keep what is good, and save that as \
<name>.practicum.yaml.

Exit codes: 0 there are candidates, 1 none was left, 3 the model gave no answer.

Examples:
  practicum propose skills/release-notes
  practicum propose skills/release-notes --each 5 --evals tests/evals")]
pub struct ProposeArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// Where the evals of the skill are, if not where they usually are
    #[arg(long, value_name = "PATH")]
    evals: Option<PathBuf>,
    /// The format to write; if nothing is said, that of the evals that the skill has, else native
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
    /// How many cases of each kind are asked for: positives, near misses, artifacts, edges
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    each: u32,
    #[command(flatten)]
    advising: AdviserFlags,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &ProposeArgs) -> Outcome {
    propose(args).unwrap_or_else(|error| report_error(&error))
}

fn propose(args: &ProposeArgs) -> anyhow::Result<Outcome> {
    let contents = SkillContents::scan(&args.skill)?;
    let skill = &contents.skill_path();
    let project = project_root(skill);
    let known = existing_suites(args)?;
    let layers =
        SettingLayers::read(args.advising.flags(), environment(), &project).map_err(RunSetupError::from)?;
    let origin = Origin { dialect: "none".to_owned(), path: project.clone(), digest: Digest::of_bytes(b"") };
    let silent = Suite::empty("candidates", origin);
    let captured = CapturedTrial::read_all(skill);
    let advice = runtime().context("cannot start")?.block_on(async {
        let suite = known.first().unwrap_or(&silent);
        let access = args.advising.model_access();
        let adviser = access.adviser(&layers, &project, suite, None, CancelToken::default()).await?;
        anyhow::Ok(improve::propose_cases(&adviser, &contents, &known, &captured, args.each).await?)
    })?;
    let proposed = match advice.answer {
        Ok(proposed) => proposed,
        Err(why) => {
            say!("error: {}", terminal_safe(&why));
            return Ok(Outcome::Incomplete);
        }
    };
    let (candidates, dropped) = improve::sift_candidates(proposed, skill, &known);
    let file = match candidates.is_empty() {
        true => None,
        false => {
            let CandidateFiles { files, native_rest: apart } =
                candidates_in_format(skill, &candidates, args, &known)?;
            let file = write(skill, &files)?;
            if let Some(native) = apart {
                let beside = write(skill, &[native])?;
                say!("note: the native file is {}", beside.display());
            }
            Some(file)
        }
    };
    let found = Candidates { schema_version: 1, skill: skill.to_owned(), file, candidates, dropped };
    if args.json {
        print_json(&found)?;
    } else {
        print(&describe_candidates(&found))?;
    }
    Ok(Outcome::from_passed(!found.candidates.is_empty()))
}

/// Reads the existing suites. It is no error if there are none: then proposals are most useful.
fn existing_suites(args: &ProposeArgs) -> anyhow::Result<Vec<Suite>> {
    let ask =
        RunInputs { paths: vec![args.skill.clone()], evals: args.evals.clone(), ..RunInputs::default() };
    match run_setup::read_eval_files(&ask, &environment(), &EvalRegistry::default()) {
        Ok(reading) => {
            tell_notices(&reading.notices);
            Ok(reading.into_suites()?.into_iter().map(|placed| placed.suite).collect())
        }
        Err(RunSetupError::Discover(DiscoverError::NoEvals { .. } | DiscoverError::AllSkipped { .. })) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// Candidates as files.
struct CandidateFiles {
    /// The files: name and text of each. If there is only one, the name is only its extension.
    files: Vec<(String, String)>,
    /// A native file with the candidates that the format cannot express.
    native_rest: Option<(String, String)>,
}

/// Writes the candidates as files: in the requested format, otherwise in the format of the existing evals. Reports
/// the losses. If the format can express none of them, they become a native file.
fn candidates_in_format(
    skill: &Path,
    candidates: &[Candidate],
    args: &ProposeArgs,
    known: &[Suite],
) -> anyhow::Result<CandidateFiles> {
    let document = improve::candidates_as_native(skill, candidates);
    let head = "# Proposed, and to be judged by a person: keep what is good in a .practicum.yaml file.\n";
    let as_native = |document: &Value| (".yaml".to_owned(), format!("{head}{}", to_yaml(document)));
    let native = CandidateFiles { files: vec![as_native(&document)], native_rest: None };
    let beside = known.first().map(|suite| suite.origin.dialect.clone());
    let Some(format) = args.dialect.clone().or(beside).filter(|format| format != "native") else {
        return Ok(native);
    };
    let folder = evals_folder(skill);
    let place = EvalFileLocation::new(folder.clone(), folder.clone());
    let loaded = dialects::load_text(&folder.join("candidates.practicum.yaml"), document.to_string(), &place);
    let (Some(suite), Some(dialect)) = (loaded.lowered.suite, dialects::find_dialect(&format)) else {
        return Ok(native);
    };
    let (files, apart) = convert::export_in_parts(dialect, &suite, &folder);
    let apart = apart.map(|suite| {
        let is_apart =
            |candidate: &&Candidate| suite.cases.iter().any(|case| candidate.case["id"] == case.id);
        let lost: Vec<Candidate> = candidates.iter().filter(is_apart).cloned().collect();
        as_native(&improve::candidates_as_native(skill, &lost))
    });
    let files = match files.as_slice() {
        [] => {
            say!("note: nothing of it can be said in {format}, so a native file is written");
            return Ok(native);
        }
        [file] => {
            let ending = match file.syntax {
                Some(SourceSyntax::Yaml) => ".yaml",
                Some(SourceSyntax::Json | SourceSyntax::JsonLines) => ".json",
                None => ".md",
            };
            vec![(ending.to_owned(), file.text())]
        }
        files => files.iter().map(|file| (file.name.clone(), file.text())).collect(),
    };
    Ok(CandidateFiles { files, native_rest: apart })
}

/// Writes a new file, or a new folder of several files, under a name that no run reads as evals. Never overwrites
/// a file, because someone may be editing it.
fn write(skill: &Path, files: &[(String, String)]) -> anyhow::Result<PathBuf> {
    let folder = evals_folder(skill);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let plain = if skill.is_file() { skill.with_extension("") } else { skill.to_owned() };
    let name = plain.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = std::iter::once(format!("{name}.candidates"))
        .chain((2..1000).map(|n| format!("{name}.candidates-{n}")));
    for name in names {
        let (path, made) = match files {
            [(ending, text)] => {
                let path = folder.join(format!("{name}{ending}"));
                let made = std::fs::File::create_new(&path)
                    .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
                (path, made)
            }
            files => {
                let path = folder.join(name);
                let made = std::fs::create_dir(&path).and_then(|()| write_below(&path, files));
                (path, made)
            }
        };
        match made {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
    anyhow::bail!("there are too many files of candidates in {}; remove some", folder.display())
}

fn write_below(folder: &Path, files: &[(String, String)]) -> std::io::Result<()> {
    for (name, text) in files {
        let name =
            RelPath::new(name).ok_or_else(|| std::io::Error::other("a case has no name for a file"))?;
        let path = name.join_to(folder);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

fn describe_candidates(found: &Candidates) -> String {
    let mut out = String::new();
    for candidate in &found.candidates {
        let text = |key: &str| candidate.case[key].as_str().unwrap_or_default().to_owned();
        out.push_str(&format!("{}: {}\n", terminal_safe(&text("id")), terminal_safe(&text("prompt"))));
    }
    for dropped in &found.dropped {
        out.push_str(&format!("dropped, {}: {}\n", terminal_safe(&dropped.id), terminal_safe(&dropped.why)));
    }
    match &found.file {
        Some(path) => out.push_str(&format!("written to {} for you to judge\n", path.display())),
        None => out.push_str("no candidate was left\n"),
    }
    out
}

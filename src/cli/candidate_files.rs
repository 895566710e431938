//! Files with proposed eval cases, which a person reviews before they count.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::{convert, environment, tell_notices};
use crate::dialects::{self, EvalFileLocation, EvalRegistry};
use crate::discover::DiscoverError;
use crate::improve::{self, Candidate};
use crate::model::{RelPath, Suite};
use crate::session::RunInputs;
use crate::session::run_setup::{self, RunSetupError};
use crate::skill::evals_folder;
use crate::tree::{SourceSyntax, to_yaml};

/// Reads the existing suites. It is no error if there are none: then proposals are most useful.
pub fn existing_suites(skill: &Path, evals: Option<&Path>) -> anyhow::Result<Vec<Suite>> {
    let ask =
        RunInputs { paths: vec![skill.to_owned()], evals: evals.map(Path::to_owned), ..RunInputs::default() };
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

/// Writes candidates in the requested format, otherwise in the format of the existing evals, under a name that no run
/// reads. What the format cannot express becomes a native file beside it. Gives the path of the first file.
pub fn write_candidates(
    skill: &Path,
    candidates: &[Candidate],
    dialect: Option<&str>,
    known: &[Suite],
) -> anyhow::Result<PathBuf> {
    let CandidateFiles { files, native_rest } = candidates_in_format(skill, candidates, dialect, known)?;
    let file = write_files(skill, &files)?;
    if let Some(native) = native_rest {
        let beside = write_files(skill, &[native])?;
        say!("note: the native file is {}", beside.display());
    }
    Ok(file)
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
    dialect: Option<&str>,
    known: &[Suite],
) -> anyhow::Result<CandidateFiles> {
    let document = improve::candidates_as_native(skill, candidates);
    let head = "# Proposed, and to be judged by a person: keep what is good in a .practicum.yaml file.\n";
    let as_native = |document: &Value| (".yaml".to_owned(), format!("{head}{}", to_yaml(document)));
    let native = CandidateFiles { files: vec![as_native(&document)], native_rest: None };
    let beside = known.first().map(|suite| suite.origin.dialect.clone());
    let Some(format) = dialect.map(str::to_owned).or(beside).filter(|format| format != "native") else {
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
fn write_files(skill: &Path, files: &[(String, String)]) -> anyhow::Result<PathBuf> {
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

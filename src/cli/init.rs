//! The command `practicum init`: writes the first evals of a skill.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::editor_schema::schema_comment;
use super::{convert, environment, report_error};
use crate::dialects::{self, EvalFileLocation, EvalRegistry, ExportedFile};
use crate::first_evals::{self, EvalFileDraft};
use crate::model::{Outcome, RelPath};
use crate::plan::settings::project_root;
use crate::report::terminal_safe;
use crate::session::RunInputs;
use crate::session::run_setup;
use crate::skill::{self, Skill};
use crate::tree::to_yaml;
use crate::versions::SkillVersions;

#[derive(clap::Args)]
#[command(after_help = "\
Writes three cases that are yours to fill in: one in which the skill must be activated, one in \
which it must not be, and one about its work. What is there already stays as it is.

Examples:
  practicum init skills/release-notes
  practicum init skills/release-notes --dialect writing-skills
  practicum init .claude/commands/release-notes.md --dialect clauditor
  practicum init --dialect skill-test suite.json")]
pub struct InitArgs {
    /// The skill's folder or command file; with `--dialect skill-test` also the file to write
    #[arg(default_value = ".")]
    path: PathBuf,
    /// The format to write; if nothing is said, that of the evals that the skill has, else native
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
}

pub fn main(args: InitArgs) -> Outcome {
    match init(&args) {
        Ok(()) => Outcome::Passed,
        Err(error) => report_error(&error),
    }
}

fn init(args: &InitArgs) -> anyhow::Result<()> {
    let path = skill::normalise_path(&std::path::absolute(&args.path)?);
    if args.dialect.as_deref() == Some("skill-test") && Skill::read(&path).is_err() {
        if args.path.is_dir() {
            bail!("name the file to write: practicum init --dialect skill-test suite.json");
        }
        return write(&[first_evals::skill_test_draft(None, &args.path)], None);
    }
    let skill = Skill::read(&path)?;
    let chosen =
        args.dialect.clone().or_else(|| existing_format(&path)).unwrap_or_else(|| "native".to_owned());
    let within = Some(skill.folder());
    match chosen.as_str() {
        "native" => write(&[first_evals::native_draft(&skill)], within),
        "writing-skills" => {
            let draft = first_evals::writing_skills_draft(&skill, &project_root(&path));
            write_with_first_version(&path, &draft, within)
        }
        "skill-test" => {
            let file = first_evals::eval_folder_for(&skill).join("suite.json");
            write(&[first_evals::skill_test_draft(Some(&skill), &file)], within)
        }
        other => write(&drafts_in_format(&skill, other)?, within),
    }
}

/// Gives the format of the evals that a skill already has.
fn existing_format(skill: &Path) -> Option<String> {
    let ask = RunInputs { paths: vec![skill.to_owned()], ..RunInputs::default() };
    let reading = run_setup::read_eval_files(&ask, &environment(), &EvalRegistry::default()).ok()?;
    reading.files.iter().find_map(|file| file.dialect).map(str::to_owned)
}

/// Drafts the first evals in a format that has no draft of its own, and reports what the format cannot express.
fn drafts_in_format(skill: &Skill, format: &str) -> anyhow::Result<Vec<EvalFileDraft>> {
    let native = first_evals::native_draft(skill);
    let root = native.path.parent().map(Path::to_owned).unwrap_or_default();
    let place = EvalFileLocation::new(root.clone(), root);
    let loaded = dialects::load_text(&native.path, native.content.clone(), &place);
    let mut suite = loaded.lowered.suite.context("the first evals cannot be understood")?;
    suite.name = first_evals::eval_file_stem(skill);
    // A spec is found by its file name. A command's full name, which contains its folders, cannot be a file name.
    suite.skills.iter_mut().for_each(|known| known.name = first_evals::eval_file_stem(skill));
    let dialect = dialects::find_dialect(format).with_context(|| format!("there is no format {format}"))?;
    // A clauditor spec lies beside its skill.
    let folder = match format {
        "clauditor" => skill.folder().to_owned(),
        _ => first_evals::eval_folder_for(skill),
    };
    let (files, apart) = convert::export_in_parts(dialect, &suite, &folder);
    if files.is_empty() {
        bail!(
            "{format} cannot express the first evals; practicum init without --dialect writes a native file"
        );
    }
    let draft = |file: &ExportedFile| {
        let name =
            RelPath::new(&file.name).with_context(|| format!("{:?} cannot be a file's name", file.name))?;
        anyhow::Ok(EvalFileDraft { path: name.join_to(&folder), content: file.text() })
    };
    let mut drafts = files.iter().map(draft).collect::<anyhow::Result<Vec<EvalFileDraft>>>()?;
    if let Some(suite) = apart {
        let beside = native.path.parent().map(Path::to_owned).unwrap_or_default();
        let content = to_yaml(&dialects::to_native(&suite, &beside));
        drafts.push(EvalFileDraft { path: native.path, content });
    }
    Ok(drafts)
}

/// Stores the skill as the first version, and writes its evals.
fn write_with_first_version(
    skill: &Path,
    evals: &EvalFileDraft,
    within: Option<&Path>,
) -> anyhow::Result<()> {
    let versions = SkillVersions::for_skill(skill)?;
    let evals = std::slice::from_ref(evals);
    versions.unknown_keys_notice().iter().for_each(|notice| say!("{}", terminal_safe(notice)));
    if !versions.history()?.versions.is_empty() {
        return write(evals, within);
    }
    versions.snapshot("baseline")?;
    say!("wrote {}", shown_path(&versions.folder().join("v0/skill")));
    write(evals, within)
}

/// Writes the files that do not exist. An existing file is what the command would have made, so it is no error if
/// nothing is written.
///
/// With `within`, nothing is written outside that folder.
fn write(drafts: &[EvalFileDraft], within: Option<&Path>) -> anyhow::Result<()> {
    let (there, missing): (Vec<&EvalFileDraft>, Vec<&EvalFileDraft>) =
        drafts.iter().partition(|draft| draft.path.exists());
    for draft in &there {
        say!("{} is there already and stays as it is", shown_path(&draft.path));
    }
    for draft in &missing {
        let path = &draft.path;
        let parent = path.parent().unwrap_or(path);
        if let Some(folder) = within {
            refuse_way_out(parent, folder)?;
        }
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let is_native = path.to_string_lossy().ends_with(".practicum.yaml");
        let first_line = is_native.then(|| schema_comment(parent, parent)).transpose()?.unwrap_or_default();
        // This fails if the file exists, even if it was created a moment ago. Nothing is overwritten.
        let mut file =
            std::fs::File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
        std::io::Write::write_all(&mut file, format!("{first_line}{}", draft.content).as_bytes())?;
        say!("wrote {}", shown_path(path));
    }
    if let Some(draft) = missing.first() {
        say!("next: make its cases yours, then practicum run {}", shown_path(&draft.path));
    }
    Ok(())
}

/// Refuses to write to `parent` if a link leads from there out of `folder`: a skill may come from an untrusted source.
fn refuse_way_out(parent: &Path, folder: &Path) -> anyhow::Result<()> {
    let there = parent.ancestors().find(|above| above.exists()).unwrap_or(parent);
    match there.canonicalize()?.starts_with(folder.canonicalize()?) {
        true => Ok(()),
        false => bail!("{} leads out of {}, so nothing is written", parent.display(), folder.display()),
    }
}

/// Gives a path for the terminal. Its names may come from an untrusted source and contain escape sequences.
fn shown_path(path: &Path) -> String {
    terminal_safe(&path.display().to_string())
}

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};

use super::complain;
use crate::first_evals::{self, Draft};
use crate::skill::{self, Form, Skill};
use crate::stage;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum init skills/release-notes
  practicum init skills/release-notes --dialect writing-skills
  practicum init --dialect skill-test suite.json")]
pub struct Args {
    /// The skill's folder or file; with `--dialect skill-test` the file to write
    #[arg(default_value = ".")]
    path: PathBuf,
    /// The format to write
    #[arg(long, default_value = "native", value_parser = ["native", "writing-skills", "skill-test"])]
    dialect: String,
}

pub fn main(args: Args) -> u8 {
    match init(&args) {
        Ok(()) => 0,
        Err(error) => complain(&error),
    }
}

fn init(args: &Args) -> anyhow::Result<()> {
    if args.dialect == "skill-test" {
        if args.path.is_dir() {
            bail!("name the file to write: practicum init --dialect skill-test suite.json");
        }
        return write(&[first_evals::skill_test(None, &args.path)]);
    }
    let path = skill::tidy(&std::path::absolute(&args.path)?);
    let skill = Skill::read(&path)?;
    if args.dialect == "native" {
        return write(&[first_evals::native(&skill)]);
    }
    if skill.form != Form::Folder {
        bail!("{} is a single file; versions are kept of skill folders", skill.file.display());
    }
    let hash = clean_commit(skill.folder());
    let drafts = first_evals::writing_skills(
        &skill,
        hash.as_deref(),
        &jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    );
    let baseline = first_evals::workspace_folder(&skill).join("v0/skill");
    if !baseline.exists() {
        stage::copy_skill(&skill, &baseline)?;
        eprintln!("wrote {}", baseline.display());
    }
    write(&drafts)
}

/// The commit that the skill is exactly, if it is one.
fn clean_commit(folder: &Path) -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changes = git(&["status", "--porcelain", "--", "."])?;
    if changes.is_empty() { git(&["rev-parse", "HEAD"]) } else { None }
}

/// Writes what is missing. Nothing new to write is an error: the user expected something.
fn write(drafts: &[Draft]) -> anyhow::Result<()> {
    let (there, missing): (Vec<&Draft>, Vec<&Draft>) = drafts.iter().partition(|draft| draft.path.exists());
    for draft in &there {
        eprintln!("{} is there already and stays as it is", draft.path.display());
    }
    if missing.is_empty() {
        return Err(anyhow!("there is nothing to write"));
    }
    for draft in missing {
        let path = &draft.path;
        let parent = path.parent().unwrap_or(path);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        // Not even a file that appeared a moment ago is overwritten.
        let mut file =
            std::fs::File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
        std::io::Write::write_all(&mut file, draft.content.as_bytes())?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

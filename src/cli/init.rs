use std::path::PathBuf;

use anyhow::{Context, bail};

use super::complain;
use crate::first_evals::{self, Draft};
use crate::skill::{self, Form, Skill};
use crate::versions::Versions;

#[derive(clap::Args)]
#[command(after_help = "\
Writes three cases that are yours to fill in: one in which the skill must fire, one in which it must \
not, and one about its work. What is there already stays as it is.

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
    let versions = Versions::of(skill.folder())?;
    let evals = first_evals::writing_skills(&skill);
    if !versions.history()?.versions.is_empty() {
        return write(&[evals]);
    }
    versions.snapshot("baseline")?;
    say!("wrote {}", versions.workspace().join("v0/skill").display());
    write(&[evals])
}

/// Writes what is missing. What is there is what the command would have made, so nothing to write is no error.
fn write(drafts: &[Draft]) -> anyhow::Result<()> {
    let (there, missing): (Vec<&Draft>, Vec<&Draft>) = drafts.iter().partition(|draft| draft.path.exists());
    for draft in &there {
        say!("{} is there already and stays as it is", draft.path.display());
    }
    for draft in &missing {
        let path = &draft.path;
        let parent = path.parent().unwrap_or(path);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        // Not even a file that appeared a moment ago is overwritten.
        let mut file =
            std::fs::File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
        std::io::Write::write_all(&mut file, draft.content.as_bytes())?;
        say!("wrote {}", path.display());
    }
    Ok(())
}

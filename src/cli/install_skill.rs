//! The command `practicum install-skill`: gives agents the skill that teaches them to write evals.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::{print, report_error};
use crate::model::Outcome;
use crate::report::display_path;
use crate::tree::read_bounded;

/// The name of the skill, and of its folder.
const NAME: &str = "writing-evals";

const SKILL_TEXT: &str = include_str!("../../plugins/practicum/skills/writing-evals/SKILL.md");

/// The folders in which agents look for skills: Claude Code in the first, most others in the second.
const SKILL_FOLDERS: [&str; 2] = [".claude/skills", ".agents/skills"];

#[derive(clap::Args)]
#[command(after_help = "\
Writes the skill writing-evals to .claude/skills (for Claude Code) and .agents/skills (for Codex, opencode, Gemini and \
others) of this folder, or of your home with --user. A skill of that name which was changed is not replaced without \
--force.

Examples:
  practicum install-skill            for the agents that work in this folder
  practicum install-skill --user     for all agents of yours
  practicum install-skill --print    only print it")]
pub struct InstallSkillArgs {
    /// The folder of the project
    #[arg(default_value = ".", conflicts_with = "user")]
    folder: PathBuf,
    /// Install it in your home, for all projects
    #[arg(long)]
    user: bool,
    /// Replace a skill of that name that was changed
    #[arg(long)]
    force: bool,
    /// Print the skill, and write nothing
    #[arg(long)]
    print: bool,
}

pub fn main(args: &InstallSkillArgs) -> Outcome {
    install(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn install(args: &InstallSkillArgs) -> anyhow::Result<()> {
    if args.print {
        return print(SKILL_TEXT);
    }
    let root = if args.user {
        std::env::home_dir().context("there is no home folder")?
    } else {
        args.folder.clone()
    };
    if !root.is_dir() {
        bail!("{} is not a folder", root.display());
    }
    let files = SKILL_FOLDERS.map(|folder| root.join(folder).join(NAME).join("SKILL.md"));
    if let Some(changed) = files.iter().find(|file| was_changed(file)).filter(|_| !args.force) {
        bail!("{} exists and says something else; --force replaces it", changed.display());
    }
    for file in files {
        write_skill(&file).with_context(|| format!("cannot write {}", file.display()))?;
        print(&format!("wrote {}\n", display_path(&file)))?;
    }
    Ok(())
}

/// Says whether something stands at the path that is not this skill.
fn was_changed(file: &Path) -> bool {
    match fs::symlink_metadata(file) {
        Err(error) => error.kind() != ErrorKind::NotFound,
        Ok(found) => {
            let text = read_bounded(file, SKILL_TEXT.len() as u64).ok();
            !found.is_file() || text.as_deref() != Some(SKILL_TEXT.as_bytes())
        }
    }
}

/// Writes the skill. What stood at the path is replaced, and not followed if it is a link.
fn write_skill(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let new = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(new.path(), SKILL_TEXT)?;
    let mut permissions = new.as_file().metadata()?.permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    fs::set_permissions(new.path(), permissions)?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

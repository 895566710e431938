//! The system prompt that replaces a skill command for agents without skill commands.

use std::path::Path;

use practicum_agents::agents::AgentCli;
use practicum_core::model::{CasePrompt, Suite};
use practicum_core::tree::read_regular_text;
use practicum_skills::skill::Skill;

const AGENTS_FILE: &str = "AGENTS.md";

/// Gives the text that replaces a skill command if the suite has none of its own: AGENTS.md beside the skill or at
/// the root of the project, or else the skill's own text. `None` if it is not needed.
pub fn derive_system_prompt<'a>(
    suite: &Suite,
    project: &Path,
    agents: impl IntoIterator<Item = &'a AgentCli>,
) -> Result<Option<String>, String> {
    let by_command = |stimulus: &CasePrompt| matches!(stimulus, CasePrompt::SkillCommand { .. });
    let needed = suite.run_policy.system_prompt.is_none()
        && suite.cases.iter().any(|case| by_command(&case.prompt))
        && agents.into_iter().any(|agent| agent.skill_command.is_none());
    let skill = suite.skills.first().filter(|_| needed);
    let Some((skill, path)) = skill.and_then(|skill| Some((skill, skill.path.as_ref()?))) else {
        return Ok(None);
    };
    let read = Skill::read(path)
        .map_err(|error| format!("the skill {} at {}: {error}", skill.name, path.display()))?;
    let agents_file = [read.folder(), project].into_iter().find_map(agents_file);
    Ok(Some(agents_file.unwrap_or(read.body)))
}

/// Reads a folder's AGENTS.md. A link that leads out of the folder is ignored.
fn agents_file(folder: &Path) -> Option<String> {
    let file = folder.join(AGENTS_FILE).canonicalize().ok()?;
    let inside = file.starts_with(folder.canonicalize().ok()?);
    inside.then(|| read_regular_text(file).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_agents::agents::find_agent;
    use practicum_evals::dialects::{EvalFileLocation, load_text};

    fn derive(files: &[(&str, &str)], spec: &str, agent_name: &str) -> Result<Option<String>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, content) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, content).expect("written");
        }
        let file = folder.path().join("evals/e.practicum.yaml");
        let place = EvalFileLocation::new(folder.path().join("evals"), folder.path().to_owned());
        let suite = load_text(&file, spec.to_owned(), &place).lowered.suite.expect("a suite");
        let agent = find_agent(agent_name).expect("known");
        derive_system_prompt(&suite, folder.path(), [&agent])
    }

    const BY_COMMAND: &str =
        "practicum: 1\nskill: ../tide\ncases:\n  - { id: c, command: now, checks: [{ contains: x }] }\n";
    const SKILL: (&str, &str) =
        ("tide/SKILL.md", "---\nname: tide\ndescription: d\n---\nRead the tide table.\n");

    #[test]
    fn the_nearest_text_is_used() {
        let beside = ("tide/AGENTS.md", "beside");
        let root = ("AGENTS.md", "root");
        let explicit =
            BY_COMMAND.replace("skill: ../tide\n", "skill: ../tide\nrun: { system_prompt: own }\n");
        let bodiless = ("tide/SKILL.md", "---\nname: tide\ndescription: d\n---\n");
        for (files, spec, agent, expected) in [
            (vec![SKILL, beside, root], BY_COMMAND, "codex", Some("beside")),
            (vec![SKILL, root], BY_COMMAND, "codex", Some("root")),
            (vec![SKILL], BY_COMMAND, "codex", Some("Read the tide table.\n")),
            (vec![bodiless], BY_COMMAND, "codex", Some("")),
            (vec![SKILL, root], BY_COMMAND, "claude", None),
            (vec![SKILL, root], explicit.as_str(), "codex", None),
        ] {
            assert_eq!(
                derive(&files, spec, agent).expect("a text"),
                expected.map(str::to_owned),
                "{files:?} {agent}"
            );
        }
    }

    #[test]
    fn a_skill_that_cannot_be_read_stops_before_anything_is_spent() {
        let why =
            derive(&[("tide/SKILL.md", "---\nname: \"\n---\n")], BY_COMMAND, "codex").expect_err("broken");
        assert!(why.contains("tide"), "{why}");
    }

    #[test]
    fn a_file_that_leads_out_of_its_folder_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (folder.path().join("in"), folder.path().join("secret.md"));
        std::fs::create_dir(&inside).expect("made");
        std::fs::write(&outside, "secret").expect("written");
        std::os::unix::fs::symlink(&outside, inside.join(AGENTS_FILE)).expect("linked");
        assert_eq!(agents_file(&inside), None);
    }
}

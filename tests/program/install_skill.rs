//! The skill that teaches agents to write evals.

use std::path::Path;

use crate::common::Project;

const FILES: [&str; 2] = [".claude/skills/writing-evals/SKILL.md", ".agents/skills/writing-evals/SKILL.md"];

#[test]
fn the_skill_is_installed_for_all_agents_and_a_changed_one_is_kept() {
    let project = Project::new(&[]);
    let printed = project.run(&["install-skill", "--print"]).exits(0).stdout;
    project.run(&["install-skill"]).exits(0);
    for file in FILES {
        assert_eq!(std::fs::read_to_string(project.path().join(file)).expect("a skill"), printed);
    }
    project.run(&["lint", ".claude/skills/writing-evals"]).exits(0);
    // A second time changes nothing.
    project.run(&["install-skill"]).exits(0);

    project.write(FILES[1], "Mine.");
    let refused = project.run(&["install-skill"]).exits(2);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(project.path().join(FILES[1])).expect("a skill"), "Mine.");
    project.run(&["install-skill", "--force"]).exits(0);
    assert_eq!(std::fs::read_to_string(project.path().join(FILES[1])).expect("a skill"), printed);
}

#[test]
fn the_home_is_used_on_request_and_links_are_not_followed() {
    let project = Project::new(&[("mine.md", "Mine.")]);
    let file = project.path().join(FILES[0]);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("created");
    std::os::unix::fs::symlink(project.path().join("mine.md"), &file).expect("a link");
    project.run(&["install-skill", "--user"]).exits(2);
    project.run(&["install-skill", "--user", "--force"]).exits(0);
    assert_eq!(std::fs::read_to_string(project.path().join("mine.md")).expect("a file"), "Mine.");
    assert!(std::fs::read_to_string(&file).expect("a skill").contains("name: writing-evals"));
}

/// The evals of the skill hold, with a script in place of the model.
#[test]
fn our_own_skill_passes_its_own_evals() {
    let project = Project::new(&[]);
    let skill = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/practicum/skills/writing-evals");
    let skill = skill.to_str().expect("a path");
    project.run(&["check", skill, "--self-test"]).exits(0);
    let copied = project.path().join("skill");
    let copy = std::process::Command::new("cp").args(["-r", skill]).arg(&copied).status();
    assert!(copy.expect("cp starts").success());
    let ran = project.run(&["run", "skill"]).exits(0);
    assert!(ran.stdout.contains("PASS  2 of 2"), "{}", ran.stdout);
}

/// The version is written once, in Cargo.toml. What other tools read must say the same.
#[test]
fn the_plugins_have_the_version_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let version = env!("CARGO_PKG_VERSION");
    let plugin = std::fs::read(root.join("plugins/practicum/.claude-plugin/plugin.json")).expect("a file");
    let plugin: serde_json::Value = serde_json::from_slice(&plugin).expect("JSON");
    assert_eq!(plugin["version"], version);
    let python = std::fs::read_to_string(root.join("python/pyproject.toml")).expect("a file");
    assert!(python.contains(&format!("version = \"{version}\"")), "{python}");
    assert!(python.contains(&format!("\"practicum=={version}\"")), "{python}");
}

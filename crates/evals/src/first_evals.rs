//! Drafts the first eval file of a skill, for its author to continue.
//!
//! In: a skill. Out: documents to write, and their paths. Never: overwrites a file; invents what a skill does.

use std::path::{Path, PathBuf};

use serde_json::json;

use practicum_core::tree::to_yaml;
use practicum_skills::skill::{Skill, SkillForm};

/// A file to write, if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalFileDraft {
    /// The path to write the file to.
    pub path: PathBuf,
    /// The content of the file.
    pub content: String,
}

/// Drafts a native file with one case in which the skill must be activated, one in which it must not, and one
/// about the work itself.
pub fn native_draft(skill: &Skill) -> EvalFileDraft {
    let folder = skill.folder().join("evals");
    let about = first_sentence(skill.description.as_deref().unwrap_or("what this skill is for"));
    let name = &skill.name;
    let document = json!({
        "practicum": 1,
        "skill": match skill.form {
            SkillForm::Folder => "..".to_owned(),
            SkillForm::Command => format!("../{}", file_name(&skill.file)),
        },
        "workspace": "empty",
        "run": {"repeat": 3},
        "cases": [
            {
                "id": "must-activate",
                "note": "Say what a user would say who needs the skill and has never heard of it.",
                "prompt": format!("I need help with this: {about}"),
                "activation": "must",
            },
            {
                "id": "must-not-activate",
                "note": "Something that sounds related and is not what the skill is for.",
                "prompt": "What is the capital of France?",
                "activation": "must_not",
            },
            {
                "id": "does-its-work",
                "note": "Give it real input with \"files\", and check what it leaves behind.",
                "prompt": format!("Use the skill {name} on a small example of your own and write the result to RESULT.md."),
                "checks": [
                    {"file": "RESULT.md"},
                    {"judge": {"statement": format!("RESULT.md shows, on a concrete example, what the skill promises: {about}"), "scale": "1-5"}},
                ],
            },
        ],
    });
    let head = "# The first evals of this skill: make them yours, then run `practicum run`.\n";
    EvalFileDraft {
        path: folder.join(format!("{}.practicum.yaml", eval_file_stem(skill))),
        content: format!("{head}{}", to_yaml(&document)),
    }
}

/// Drafts a suite in the skill-test format.
pub fn skill_test_draft(skill: Option<&Skill>, output: &Path) -> EvalFileDraft {
    let name = skill.map_or("my-skill", |skill| skill.name.as_str());
    let document = json!({
        "name": format!("{name}-activation"),
        "description": format!("Is {name} activated when it should be, and only then?"),
        "runs_per_case": 5,
        "skills": [{
            "name": name,
            "plugin": skill.and_then(plugin_of).unwrap_or("my-plugin"),
            "test_cases": [
                {"prompt": "Ask for exactly what the skill does.", "expectation": "must_activate", "rationale": "A direct request"},
                {"prompt": "Ask for something next to it.", "expectation": "acceptable", "rationale": "Either is reasonable"},
                {"prompt": "Ask for something that only sounds like it.", "expectation": "should_not_activate", "rationale": "A near miss"},
            ],
        }],
        "negative_cases": [
            {"prompt": "What is the capital of France?", "expectation": "should_not_activate", "rationale": "Nothing to do with any skill here"},
        ],
    });
    EvalFileDraft { path: output.to_owned(), content: format!("{document:#}\n") }
}

/// Gives the name of the plugin whose `skills` folder holds a skill.
fn plugin_of(skill: &Skill) -> Option<&str> {
    let plugin = skill.folder().parent().filter(|parent| parent.ends_with("skills"))?.parent()?;
    let is_plugin = plugin.parent().is_some_and(|above| above.ends_with("plugins"))
        || plugin.join(".claude-plugin").is_dir();
    plugin.file_name()?.to_str().filter(|_| is_plugin)
}

/// Drafts the cases of the writing-skills format. They name the skill by its path in the project, which is the
/// same in a copy of the project on another machine.
pub fn writing_skills_draft(skill: &Skill, project: &Path) -> EvalFileDraft {
    let about = first_sentence(skill.description.as_deref().unwrap_or("what this skill is for"));
    let path = match skill.form {
        SkillForm::Folder => skill.folder(),
        SkillForm::Command => skill.file.as_path(),
    };
    let relative = path.strip_prefix(project).unwrap_or(path);
    let evals = json!({
        "version": "1.0",
        "skill": if relative.as_os_str().is_empty() { Path::new(".") } else { relative },
        "cases": [{
            "id": "case-01",
            "prompt": format!("Do a small, concrete piece of this work: {about}"),
            "files": [],
            "expectations": [
                {
                    "criterion": "result",
                    "description": "The answer contains a finished result for the concrete example, not a plan or a question",
                    "required": true,
                },
                {
                    "criterion": "brevity",
                    "description": "The answer is under 40 lines",
                    "required": false,
                },
            ],
        }],
    });
    EvalFileDraft { path: eval_folder_for(skill).join("evals.json"), content: format!("{evals:#}\n") }
}

/// Gives the folder for evals of a skill that need their own folder. Command files share one folder.
pub fn eval_folder_for(skill: &Skill) -> PathBuf {
    let evals = skill.folder().join("evals");
    match skill.form {
        SkillForm::Folder => evals,
        SkillForm::Command => evals.join(eval_file_stem(skill)),
    }
}

/// Gives the skill's name as part of a file name. The name of a command has colons, which a file name must not
/// have. A name that cannot be a file name, such as one with `..`, is replaced by that of the folder.
pub fn eval_file_stem(skill: &Skill) -> String {
    match skill.form {
        SkillForm::Folder if skill.describe_unusable_name().is_some() => file_name(skill.folder()),
        SkillForm::Folder => skill.name.clone(),
        SkillForm::Command => file_name(&skill.file.with_extension("")),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn first_sentence(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = flat.find(". ").map_or(flat.len(), |at| at + 1);
    flat[..end].chars().take(200).collect()
}

//! The tools of the builtin agent: their definitions for the model, and their execution.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::allowed_folders::AllowedFolders;
use super::skills::{self, AvailableSkill};
use super::{files, shell};
use crate::llm::ToolDefinition;

const DEFAULT_COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
const LONGEST_COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

pub const TOOL_NAMES: [&str; 5] = ["Skill", "Read", "Write", "Edit", "Bash"];

/// The result of a call. The model also gets failures, so that it can correct itself.
pub struct ToolOutcome {
    pub result: Result<String, String>,
    /// The skill that the call activated.
    pub skill: Option<String>,
}

impl From<Result<String, String>> for ToolOutcome {
    fn from(result: Result<String, String>) -> Self {
        Self { result, skill: None }
    }
}

/// The tools of the built-in agent.
pub struct Toolbox {
    pub skills: Vec<AvailableSkill>,
    pub allowed_folders: AllowedFolders,
}

#[derive(Deserialize)]
struct SkillCall {
    skill: String,
    #[serde(default)]
    args: Option<String>,
}

#[derive(Deserialize)]
struct ReadCall {
    file_path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
struct WriteCall {
    file_path: String,
    content: String,
}

#[derive(Deserialize)]
struct EditCall {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Deserialize)]
struct BashCall {
    command: String,
    /// The time limit in milliseconds.
    timeout: Option<u64>,
}

impl Toolbox {
    pub async fn call_tool(&self, name: &str, input: &Value) -> ToolOutcome {
        match name {
            "Skill" => match parse_arguments::<SkillCall>(input) {
                Ok(call) => self.use_skill(&call),
                Err(why) => Err(why).into(),
            },
            "Read" => self.read_file(input).into(),
            "Write" => self.write_file(input).into(),
            "Edit" => self.edit_file(input).into(),
            "Bash" => self.run_bash(input).await.into(),
            other => Err(format!("there is no tool {other:?}; there are {}", TOOL_NAMES.join(", "))).into(),
        }
    }

    fn use_skill(&self, call: &SkillCall) -> ToolOutcome {
        match skills::find_by_name(&self.skills, &call.skill) {
            Some(skill) if skill.model_may_use => ToolOutcome {
                result: Ok(skill.instructions(call.args.as_deref().unwrap_or_default())),
                skill: Some(skill.name.clone()),
            },
            Some(skill) => Err(format!("only the user can invoke the skill {:?}", skill.name)).into(),
            None => Err(format!("Unknown skill: {}", call.skill)).into(),
        }
    }

    fn read_file(&self, input: &Value) -> Result<String, String> {
        let call: ReadCall = parse_arguments(input)?;
        files::read(&self.resolve_path(&call.file_path)?, call.offset, call.limit)
    }

    fn write_file(&self, input: &Value) -> Result<String, String> {
        let call: WriteCall = parse_arguments(input)?;
        files::write(&self.resolve_path(&call.file_path)?, &call.content)
    }

    fn edit_file(&self, input: &Value) -> Result<String, String> {
        let call: EditCall = parse_arguments(input)?;
        files::edit(
            &self.resolve_path(&call.file_path)?,
            &call.old_string,
            &call.new_string,
            call.replace_all,
        )
    }

    async fn run_bash(&self, input: &Value) -> Result<String, String> {
        let call: BashCall = parse_arguments(input)?;
        let limit =
            call.timeout.map_or(DEFAULT_COMMAND_TIMEOUT, Duration::from_millis).min(LONGEST_COMMAND_TIMEOUT);
        shell::run_command(&call.command, self.allowed_folders.workspace(), limit).await
    }

    fn resolve_path(&self, path: &str) -> Result<PathBuf, String> {
        self.allowed_folders.resolve(path)
    }
}

fn parse_arguments<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    T::deserialize(input).map_err(|error| format!("the tool's input is wrong: {error}"))
}

pub fn tool_definitions() -> Vec<ToolDefinition> {
    let text = |what: &str| json!({"type": "string", "description": what});
    let number = |what: &str| json!({"type": "integer", "minimum": 0, "description": what});
    let path = || text("Absolute, or relative to the workspace");
    let tool = |name: &str, description: &str, properties: Value, required: &[&str]| ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
    };
    vec![
        tool(
            "Skill",
            "Takes up a skill: its instructions come back, to be followed from then on.",
            json!({"skill": text("The skill's name"), "args": text("What the skill is to work on")}),
            &["skill"],
        ),
        tool(
            "Read",
            "Reads a text file. Lines come back numbered.",
            json!({
                "file_path": path(),
                "offset": number("The first line to read, from 1"),
                "limit": number("How many lines"),
            }),
            &["file_path"],
        ),
        tool(
            "Write",
            "Writes a file, replacing what was there. Folders are made as needed.",
            json!({"file_path": path(), "content": text("The whole content")}),
            &["file_path", "content"],
        ),
        tool(
            "Edit",
            "Replaces a piece of a file. The piece must occur exactly once, or replace_all be true.",
            json!({
                "file_path": path(),
                "old_string": text("The piece as it stands in the file, without line numbers"),
                "new_string": text("What takes its place"),
                "replace_all": {"type": "boolean", "description": "Replace every occurrence"},
            }),
            &["file_path", "old_string", "new_string"],
        ),
        tool(
            "Bash",
            "Runs a shell command in the workspace and gives back what it printed.",
            json!({
                "command": text("The command"),
                "timeout": number("Time limit in milliseconds; two minutes if not given"),
            }),
            &["command"],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_defined() {
        let defined: Vec<String> = tool_definitions().into_iter().map(|tool| tool.name).collect();
        assert_eq!(defined, TOOL_NAMES);
    }
}

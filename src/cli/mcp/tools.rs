//! The tools of the MCP server: what an agent may say to each, and the command that it becomes.

use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A tool: its name, its documentation, and how its parameters become the arguments of a command.
pub struct McpTool {
    /// The name that agents call.
    pub name: &'static str,
    description: &'static str,
    /// Whether the command may take minutes. Clients that can wait for tasks get a task.
    pub is_long: bool,
    /// Whether the command changes no file.
    is_read_only: bool,
    schema: fn() -> JsonObject,
    /// Makes the arguments of the command, or says what is wrong with the parameters.
    pub arguments: fn(JsonObject) -> Result<Vec<String>, String>,
}

/// The tools. A new one is a type of parameters and a line here.
pub const TOOLS: &[McpTool] = &[
    McpTool::reading::<CheckParameters>(
        "check",
        "Check eval files and the skills they name, without running anything. Names the line of each problem.",
    ),
    McpTool::writing::<InitParameters>(
        "init",
        "Write the first evals of a skill in evals/, to be completed. An existing file is never replaced.",
    ),
    McpTool::reading::<SelectionParameters>("list", "List suites, cases and the trials that would run."),
    McpTool::reading::<EstimateParameters>(
        "estimate",
        "Show what a run would do: trials, expected cost and time, what is reused. Nothing runs.",
    ),
    McpTool::writing::<RunParameters>(
        "run",
        "Run evals with a real agent, within a budget in US dollars. Answers with the verdict, the results of each \
         case and the intervals of all rates.",
    )
    .long(),
    McpTool::reading::<ShowParameters>(
        "show",
        "Show a run, or one of its cases or trials: which check failed, what the agent did, what the judge said.",
    ),
    McpTool::reading::<CompareParameters>(
        "compare",
        "Compare two stored runs. Says whether the second is better, worse, equivalent, or that this cannot be told.",
    )
    .long(),
    McpTool::writing::<ProposeParameters>(
        "propose",
        "Let a model propose new eval cases for a skill. They are written apart, for review by a person.",
    )
    .long(),
    McpTool::reading::<LintParameters>(
        "lint",
        "Check skills against the specification and conventions: frontmatter, links, scripts.",
    ),
];

/// Parameters that become the arguments of a command.
trait ToolParameters: DeserializeOwned + JsonSchema + 'static {
    /// Gives the arguments, the command's name first.
    fn arguments(self) -> CommandLineParts;
}

impl McpTool {
    const fn reading<P: ToolParameters>(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            is_long: false,
            is_read_only: true,
            schema: schema_of::<P>,
            arguments: arguments_of::<P>,
        }
    }

    const fn writing<P: ToolParameters>(name: &'static str, description: &'static str) -> Self {
        Self { is_read_only: false, ..Self::reading::<P>(name, description) }
    }

    const fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    /// Gives the description that clients list.
    pub fn describe(&self) -> Tool {
        let hints = ToolAnnotations::new().read_only(self.is_read_only).destructive(false);
        Tool::new(self.name, self.description, (self.schema)()).with_annotations(hints)
    }
}

fn schema_of<P: ToolParameters>() -> JsonObject {
    schema_for_input::<P>().map_or_else(|_| JsonObject::new(), |schema| (*schema).clone())
}

fn arguments_of<P: ToolParameters>(parameters: JsonObject) -> Result<Vec<String>, String> {
    let parameters: P = serde_json::from_value(parameters.into()).map_err(|error| error.to_string())?;
    parameters.arguments().finish()
}

/// The arguments of a command. Values can never be taken for options.
struct CommandLineParts {
    options: Vec<String>,
    operands: Vec<String>,
    problem: Option<String>,
}

impl CommandLineParts {
    fn new(command: &str) -> Self {
        Self { options: vec![command.to_owned()], operands: Vec::new(), problem: None }
    }

    fn option(mut self, name: &str, value: Option<impl ToString>) -> Self {
        self.options.extend(value.map(|value| format!("--{name}={}", value.to_string())));
        self
    }

    fn options(self, name: &str, values: Vec<String>) -> Self {
        values.into_iter().fold(self, |arguments, value| arguments.option(name, Some(value)))
    }

    fn flag(mut self, name: &str, is_set: bool) -> Self {
        self.options.extend(is_set.then(|| format!("--{name}")));
        self
    }

    fn operands(mut self, operands: impl IntoIterator<Item = String>) -> Self {
        self.operands.extend(operands);
        self
    }

    fn finish(self) -> Result<Vec<String>, String> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(self.options.into_iter().chain(["--".to_owned()]).chain(self.operands).collect()),
        }
    }
}

/// What is tested.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckParameters {
    /// Skill folders, eval folders or eval files; the whole project if empty.
    #[serde(default)]
    paths: Vec<String>,
    /// The skill to test, if the eval files do not name it.
    skill: Option<String>,
    /// Also grade an agent that does nothing, which must fail, and known good outputs, which must pass.
    #[serde(default)]
    self_test: bool,
}

impl ToolParameters for CheckParameters {
    fn arguments(self) -> CommandLineParts {
        let Self { paths, skill, self_test } = self;
        CommandLineParts::new("check").option("skill", skill).flag("self-test", self_test).operands(paths)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InitParameters {
    /// The folder of the skill.
    skill: String,
}

impl ToolParameters for InitParameters {
    fn arguments(self) -> CommandLineParts {
        CommandLineParts::new("init").operands([self.skill])
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SelectionParameters {
    /// Skill folders, eval folders or eval files; the whole project if empty.
    #[serde(default)]
    paths: Vec<String>,
    /// The skill to test, if the eval files do not name it.
    skill: Option<String>,
}

impl ToolParameters for SelectionParameters {
    fn arguments(self) -> CommandLineParts {
        CommandLineParts::new("list").option("skill", self.skill).operands(self.paths)
    }
}

/// What runs, and how. `run` adds a budget.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EstimateParameters {
    /// Skill folders, eval folders or eval files; the whole project if empty.
    #[serde(default)]
    paths: Vec<String>,
    /// The skill to test, if the eval files do not name it.
    skill: Option<String>,
    /// The agent: claude, codex, gemini, opencode, copilot, goose, qwen, builtin, all, or one of the settings.
    agent: Option<String>,
    /// The model of the agent.
    model: Option<String>,
    /// Only cases whose id matches one of these patterns.
    #[serde(default)]
    cases: Vec<String>,
    /// How many trials to run of each case.
    repeat: Option<u32>,
    /// `with` and `without`: run with the skill, without it, or both.
    #[serde(default)]
    arms: Vec<String>,
    /// A script that answers in place of the model, for a run without cost.
    script: Option<String>,
}

impl EstimateParameters {
    fn run_arguments(self) -> CommandLineParts {
        let Self { paths, skill, agent, model, cases, repeat, arms, script } = self;
        CommandLineParts::new("run")
            .option("skill", skill)
            .option("agent", agent)
            .option("model", model)
            .options("case", cases)
            .option("repeat", repeat)
            .options("arm", arms)
            .option("script", script)
            .operands(paths)
    }
}

impl ToolParameters for EstimateParameters {
    fn arguments(self) -> CommandLineParts {
        self.run_arguments().flag("dry-run", true)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunParameters {
    /// The most that the run may cost, in US dollars. The run ends when it is used up.
    max_cost_usd: f64,
    /// Skill folders, eval folders or eval files; the whole project if empty.
    #[serde(default)]
    paths: Vec<String>,
    /// The skill to test, if the eval files do not name it.
    skill: Option<String>,
    /// The agent: claude, codex, gemini, opencode, copilot, goose, qwen, builtin, all, or one of the settings.
    agent: Option<String>,
    /// The model of the agent.
    model: Option<String>,
    /// Only cases whose id matches one of these patterns.
    #[serde(default)]
    cases: Vec<String>,
    /// How many trials to run of each case.
    repeat: Option<u32>,
    /// `with` and `without`: run with the skill, without it, or both.
    #[serde(default)]
    arms: Vec<String>,
    /// A script that answers in place of the model, for a run without cost.
    script: Option<String>,
}

impl ToolParameters for RunParameters {
    fn arguments(self) -> CommandLineParts {
        let Self { max_cost_usd, paths, skill, agent, model, cases, repeat, arms, script } = self;
        let what = EstimateParameters { paths, skill, agent, model, cases, repeat, arms, script };
        let mut arguments = what.run_arguments().option("max-cost", Some(max_cost_usd));
        if !max_cost_usd.is_finite() || max_cost_usd <= 0.0 {
            arguments.problem = Some("max_cost_usd must be more than 0".to_owned());
        }
        arguments
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShowParameters {
    /// The run: its id, a part of it, or latest.
    #[serde(default = "latest")]
    run: String,
    /// A case or a trial of the run; without it the whole run is shown.
    trial: Option<String>,
}

fn latest() -> String {
    "latest".to_owned()
}

impl ToolParameters for ShowParameters {
    fn arguments(self) -> CommandLineParts {
        CommandLineParts::new("show").operands([self.run]).operands(self.trial)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareParameters {
    /// The run to compare with: its id or a part of it.
    before: String,
    /// The run that is compared.
    #[serde(default = "latest")]
    after: String,
}

impl ToolParameters for CompareParameters {
    fn arguments(self) -> CommandLineParts {
        CommandLineParts::new("compare").operands([self.before, self.after])
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProposeParameters {
    /// The folder of the skill.
    skill: String,
    /// How many cases of each kind are asked for.
    each: Option<u32>,
    /// A script that answers in place of the model.
    script: Option<String>,
}

impl ToolParameters for ProposeParameters {
    fn arguments(self) -> CommandLineParts {
        let Self { skill, each, script } = self;
        CommandLineParts::new("propose").option("each", each).option("script", script).operands([skill])
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LintParameters {
    /// Skill folders, SKILL.md files, or folders to search for skills; the whole project if empty.
    #[serde(default)]
    paths: Vec<String>,
}

impl ToolParameters for LintParameters {
    fn arguments(self) -> CommandLineParts {
        CommandLineParts::new("lint").operands(self.paths)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(tool: &str, parameters: serde_json::Value) -> Result<Vec<String>, String> {
        let tool = TOOLS.iter().find(|known| known.name == tool).expect("it is there");
        (tool.arguments)(parameters.as_object().cloned().expect("it is there"))
    }

    #[test]
    fn a_run_without_a_budget_is_refused() {
        assert!(arguments("run", json!({})).expect_err("a problem").contains("max_cost_usd"));
        for bad in [0.0, -1.0] {
            assert!(arguments("run", json!({"max_cost_usd": bad})).is_err());
        }
        let good =
            arguments("run", json!({"max_cost_usd": 0.5, "paths": ["skills/x"]})).expect("it is there");
        assert_eq!(good, ["run", "--max-cost=0.5", "--", "skills/x"]);
    }

    #[test]
    fn a_value_is_never_an_option() {
        let made = arguments("check", json!({"paths": ["--json"], "skill": "--trust"})).expect("it is there");
        assert_eq!(made, ["check", "--skill=--trust", "--", "--json"]);
        assert!(arguments("run", json!({"max_cost_usd": 1, "trust": true})).is_err());
    }

    #[test]
    fn every_tool_describes_its_parameters() {
        for tool in TOOLS {
            let described = tool.describe();
            assert_eq!(described.input_schema.get("type"), Some(&json!("object")), "{}", tool.name);
            assert!(described.input_schema.contains_key("properties"), "{}", tool.name);
        }
    }
}

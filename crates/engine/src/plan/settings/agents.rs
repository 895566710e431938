//! The agents that users describe in their settings files.

use serde_json::{Value, json};

use super::SettingLayers;
use super::definitions::SettingDescription;
use super::layers::SettingsError;
use practicum_agents::agents::{AgentCli, AgentCredentials, AgentRegistry, GatewayRoute, ModelAddress};
use practicum_core::model::RelPath;
use practicum_core::tree::json_schema;

/// Gives the agents that project and user files describe. A user's agent wins over a project's agent of the same
/// name, because an agent is a command that runs on the user's machine.
pub fn own_agents(layers: &SettingLayers, known: &AgentRegistry) -> Result<Vec<AgentCli>, SettingsError> {
    let mut agents: Vec<AgentCli> = Vec::new();
    for (name, value, path) in layers.table("agents") {
        let agent = own_agent(name, value, known).map_err(|why| SettingsError::BadFile {
            path: path.to_owned(),
            why: format!("[agents.{name}]: {why}"),
        })?;
        // The user's file comes first.
        if agents.iter().all(|known| known.name != agent.name) {
            agents.push(agent);
        }
    }
    Ok(agents)
}

/// The keys with which a settings file describes an agent.
pub static AGENT_KEYS: &[SettingDescription] = &[
    SettingDescription {
        env: &[],
        name: "command",
        doc: "The program and its arguments, with placeholders like {prompt}, which is on standard input \
              where no argument holds it; an inner list is left out when its placeholder is empty.",
        schema: command_schema,
    },
    SettingDescription {
        env: &[],
        name: "resume",
        doc: "The command of later turns; its first word is the program.",
        schema: command_schema,
    },
    SettingDescription { env: &[], name: "decoder", doc: "How its output is read.", schema: decoder_schema },
    SettingDescription {
        env: &[],
        name: "skills_dir",
        doc: "Where it looks for skills, inside the workspace.",
        schema: skills_dir_schema,
    },
    SettingDescription {
        env: &[],
        name: "env",
        doc: "Variables it is given, with placeholders; one whose placeholder is empty is left out. \
              Where {gateway} is used, the agent can be pointed at the model gateway.",
        schema: env_schema,
    },
    SettingDescription {
        env: &[],
        name: "pass_env",
        doc: "Variables of yours that it may see.",
        schema: texts_schema,
    },
    SettingDescription {
        env: &[],
        name: "credentials",
        doc: "Variables of yours that can log it in; the first that is set is passed.",
        schema: texts_schema,
    },
    SettingDescription {
        env: &[],
        name: "models",
        doc: "Where its models answer: the only addresses it can reach in a strict sandbox.",
        schema: texts_schema,
    },
];

fn command_schema() -> Value {
    json_schema::nonempty_list(json_schema::any_of([json_schema::text(), texts_schema()]))
}

fn decoder_schema() -> Value {
    json_schema::with_default(json_schema::one_of_words(&AgentRegistry::default().decoder_names()), "text")
}

fn skills_dir_schema() -> Value {
    json_schema::with_default(json_schema::nonempty_text(), ".agents/skills")
}

fn env_schema() -> Value {
    json!({"type": "object", "additionalProperties": json_schema::text()})
}

fn texts_schema() -> Value {
    json_schema::list(json_schema::text())
}

fn own_agent(name: &str, value: &toml::Value, registry: &AgentRegistry) -> Result<AgentCli, String> {
    let table = value.as_table().ok_or("it must be a table")?;
    if let Some(unknown) = table.keys().find(|key| !AGENT_KEYS.iter().any(|known| known.name == *key)) {
        let known: Vec<&str> = AGENT_KEYS.iter().map(|key| key.name).collect();
        return Err(format!("unknown key \"{unknown}\"; the keys are {}", known.join(", ")));
    }
    let command = argument_groups(table.get("command").ok_or("\"command\" is missing")?)?;
    let (program, first) = command.split_first().ok_or("\"command\" is empty")?;
    let program = program.first().ok_or("\"command\" is empty")?;
    let later = match table.get("resume") {
        Some(resume) => argument_groups(resume)?.into_iter().skip(1).collect(),
        None => Vec::new(),
    };
    let decoder_name =
        table.get("decoder").map_or(Ok("text"), |value| value.as_str().ok_or("\"decoder\" must be text"))?;
    let decoder = registry.decoder(decoder_name).ok_or_else(|| {
        let known = registry.decoder_names().join(", ");
        format!("there is no decoder \"{decoder_name}\"; there are {known}")
    })?;
    let skills_dir = table
        .get("skills_dir")
        .map_or(Ok(".agents/skills"), |value| value.as_str().ok_or("\"skills_dir\" must be text"))?;
    let env = pairs(table.get("env"))?;
    let credentials = texts(table.get("credentials"))?;
    let route = gateway_route(first, &env, &credentials);
    Ok(AgentCli {
        route,
        first_turn_args: first.to_vec(),
        later_turn_args: later,
        skills_dir: RelPath::new(skills_dir).ok_or("\"skills_dir\" must be a path inside the workspace")?,
        env,
        pass_env: texts(table.get("pass_env"))?,
        credentials: AgentCredentials::from_variables(credentials),
        // These are the only addresses that the agent can reach in a strict sandbox.
        models: texts(table.get("models"))?
            .into_iter()
            .map(|default| ModelAddress { variable: None, default })
            .collect(),
        // Whoever replaces a known agent does not change what `auto` stands for.
        auto: registry.agent(name).and_then(|known| known.auto),
        ..AgentCli::new(name, program, decoder)
    })
}

/// Gives the route of an agent that has the gateway's address in an argument or a variable; `None` if it has it nowhere.
fn gateway_route(
    args: &[Vec<String>],
    env: &[(String, String)],
    credentials: &[String],
) -> Option<GatewayRoute> {
    let texts = args.iter().flatten().chain(env.iter().map(|(_, value)| value));
    texts.clone().any(|text| text.contains("{gateway}")).then(|| GatewayRoute {
        base_url_variable: "PRACTICUM_GATEWAY".to_owned(),
        suffix: "",
        key_variable: credentials.first().cloned().unwrap_or_else(|| "PRACTICUM_GATEWAY_KEY".to_owned()),
        model_prefixes: &[],
        also_set: &[],
    })
}

/// Reads a list of arguments. An inner list is a group that is left out if a placeholder in it is empty.
fn argument_groups(value: &toml::Value) -> Result<Vec<Vec<String>>, String> {
    let items = value.as_array().ok_or("a command is a list")?;
    items
        .iter()
        .map(|item| match item {
            toml::Value::Array(_) => texts(Some(item)),
            _ => Ok(vec![item.as_str().ok_or("an argument must be text")?.to_owned()]),
        })
        .collect()
}

fn texts(value: Option<&toml::Value>) -> Result<Vec<String>, String> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let items = value.as_array().ok_or("it must be a list of texts")?;
    items
        .iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| "it must be a list of texts".to_owned()))
        .collect()
}

fn pairs(value: Option<&toml::Value>) -> Result<Vec<(String, String)>, String> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let table = value.as_table().ok_or("\"env\" must be a table")?;
    table
        .iter()
        .map(|(name, value)| Ok((name.clone(), value.as_str().ok_or("a variable must be text")?.to_owned())))
        .collect()
}

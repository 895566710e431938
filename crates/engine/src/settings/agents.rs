use serde_json::{Value, json};

use super::Layers;
use super::knobs::Described;
use super::layers::SettingsError;
use practicum_agents::agents::{Agent, Credentials, DECODERS, ModelAddress, Program, decoder};
use practicum_core::model::RelPath;
use practicum_core::tree::shape;

/// The agents that project and user files describe. A project's wins over a user's of one name.
pub fn own_agents(layers: &Layers) -> Result<Vec<Agent>, SettingsError> {
    let mut agents: Vec<Agent> = Vec::new();
    for (name, value, path) in layers.table("agents") {
        let agent = own_agent(name, value).map_err(|why| SettingsError::BadFile {
            path: path.to_owned(),
            why: format!("[agents.{name}]: {why}"),
        })?;
        agents.retain(|known| known.name != agent.name);
        agents.push(agent);
    }
    Ok(agents)
}

/// What an agent of one's own may say.
pub static KEYS: &[Described] = &[
    Described {
        name: "command",
        doc: "The program and its arguments, with placeholders like {prompt}, which is on standard input \
              where no argument holds it; an inner list is left out when its placeholder is empty.",
        shape: command_shape,
    },
    Described {
        name: "resume",
        doc: "The command of later turns; its first word is the program.",
        shape: command_shape,
    },
    Described { name: "decoder", doc: "How its output is read.", shape: decoder_shape },
    Described {
        name: "skills_dir",
        doc: "Where it looks for skills, inside the workspace.",
        shape: skills_dir_shape,
    },
    Described { name: "env", doc: "Variables it is given.", shape: env_shape },
    Described { name: "pass_env", doc: "Variables of yours that it may see.", shape: texts_shape },
    Described {
        name: "credentials",
        doc: "Variables of yours that can log it in; the first that is set is passed.",
        shape: texts_shape,
    },
    Described {
        name: "models",
        doc: "Where its models answer: the only addresses it can reach in a strict sandbox.",
        shape: texts_shape,
    },
];

fn command_shape() -> Value {
    shape::some(shape::either([shape::text(), texts_shape()]))
}

fn decoder_shape() -> Value {
    let known: Vec<&str> = DECODERS.iter().map(|kind| kind.name).collect();
    shape::default(shape::words(&known), "text")
}

fn skills_dir_shape() -> Value {
    shape::default(shape::filled(), ".agents/skills")
}

fn env_shape() -> Value {
    json!({"type": "object", "additionalProperties": shape::text()})
}

fn texts_shape() -> Value {
    shape::list(shape::text())
}

fn own_agent(name: &str, value: &toml::Value) -> Result<Agent, String> {
    let table = value.as_table().ok_or("it must be a table")?;
    if let Some(unknown) = table.keys().find(|key| !KEYS.iter().any(|known| known.name == *key)) {
        let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        return Err(format!("unknown key \"{unknown}\"; the keys are {}", known.join(", ")));
    }
    let command = groups(table.get("command").ok_or("\"command\" is missing")?)?;
    let (program, first) = command.split_first().ok_or("\"command\" is empty")?;
    let program = program.first().ok_or("\"command\" is empty")?;
    let later = match table.get("resume") {
        Some(resume) => groups(resume)?.into_iter().skip(1).collect(),
        None => Vec::new(),
    };
    let decoder_name =
        table.get("decoder").map_or(Ok("text"), |value| value.as_str().ok_or("\"decoder\" must be text"))?;
    let decoder = decoder(decoder_name).ok_or_else(|| {
        let known: Vec<&str> = DECODERS.iter().map(|kind| kind.name).collect();
        format!("there is no decoder \"{decoder_name}\"; there are {}", known.join(", "))
    })?;
    let skills_dir = table
        .get("skills_dir")
        .map_or(Ok(".agents/skills"), |value| value.as_str().ok_or("\"skills_dir\" must be text"))?;
    Ok(Agent {
        name: name.to_owned(),
        program: Program::OnPath(program.clone()),
        first: first.to_vec(),
        later,
        decoder,
        skills_dir: RelPath::new(skills_dir).ok_or("\"skills_dir\" must be a path inside the workspace")?,
        env: pairs(table.get("env"))?,
        pass_env: texts(table.get("pass_env"))?,
        credentials: Credentials::of(texts(table.get("credentials"))?),
        route: None,
        // The only addresses that it can reach in a strict sandbox.
        models: texts(table.get("models"))?
            .into_iter()
            .map(|default| ModelAddress { variable: None, default })
            .collect(),
        skill_command: None,
        home_files: None,
        own_skills: &[],
        auto: false,
    })
}

/// A list of arguments; an inner list is a group that is left out when a placeholder is empty.
fn groups(value: &toml::Value) -> Result<Vec<Vec<String>>, String> {
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

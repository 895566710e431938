//! The JSON Schema of the project file, for editors.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::agents::AGENT_KEYS;
use super::definitions::SETTING_DESCRIPTIONS;
use practicum_core::tree::json_schema::{self, MappingSchema};

/// Gives the JSON Schema of practicum.toml.
pub fn schema() -> Value {
    let mut top = MappingSchema::closed();
    let mut tables: BTreeMap<&str, MappingSchema> = BTreeMap::new();
    for knob in SETTING_DESCRIPTIONS {
        match knob.name.split_once('.') {
            Some((table, key)) => {
                let known = tables.remove(table).unwrap_or_else(MappingSchema::closed);
                tables.insert(table, add_key_spellings(known, key, knob.doc, knob.schema));
            }
            None => top = add_key_spellings(top, knob.name, knob.doc, knob.schema),
        }
    }
    for (table, keys) in tables {
        top = top.optional(table, &format!("Settings of the {table}."), keys);
    }
    let agents = json!({"type": "object", "additionalProperties": agent_schema()});
    let modes = json!({"type": "object", "additionalProperties": json_schema::text()});
    let top = top.optional("agents", "Agents of your own, by name.", agents).optional(
        "modes",
        "System prompts of your own, by the mode's name.",
        modes,
    );
    json_schema::document(
        "Project settings (practicum.toml)",
        "Settings of a project. An eval file, a variable or a flag says more.",
        top,
        [],
    )
}

/// Adds a key with dashes, and the same key with underscores.
fn add_key_spellings(mapping: MappingSchema, key: &str, doc: &str, shape: fn() -> Value) -> MappingSchema {
    let mapping = mapping.optional(key, doc, shape());
    let other = key.replace('-', "_");
    if other == key { mapping } else { mapping.optional(&other, &format!("The same as {key}."), shape()) }
}

fn agent_schema() -> Value {
    let agent = AGENT_KEYS
        .iter()
        .fold(MappingSchema::closed(), |agent, key| agent.optional(key.name, key.doc, (key.schema)()));
    agent.with_keyword("required", json!(["command"])).into()
}

#[cfg(test)]
mod tests {
    use super::super::{SettingLayers, own_agents};
    use super::*;
    use practicum_agents::agents::AgentRegistry;

    /// Says whether the schema accepts a project file, and whether the reader does. The reader examines a value
    /// only when it is used, so it accepts wrong values here.
    fn taken(text: &str) -> (bool, bool) {
        let project = tempfile::tempdir().expect("a folder");
        std::fs::write(project.path().join("practicum.toml"), text).expect("write");
        let read = SettingLayers::without_flags(BTreeMap::new(), project.path());
        let table: toml::Table = text.parse().expect("TOML");
        let data = serde_json::to_value(table).expect("data");
        let valid = jsonschema::draft202012::is_valid(&schema(), &data);
        (valid, read.is_ok_and(|layers| own_agents(&layers, &AgentRegistry::default()).is_ok()))
    }

    #[test]
    fn a_project_file_is_right_or_wrong_by_both() {
        for (text, expected) in [
            ("", true),
            ("agent = \"claude\"\nrepeat = 3\ntimeout = \"5m\"\njobs = 2", true),
            (
                "agent = [\"claude\", \"builtin\"]\narm = [\"with\", \"without\"]\nmode = \"smart\"\nmodel = \"m\"",
                true,
            ),
            ("trigger_threshold = 0.5\nsync-tasks = true\ndetect_questions = false", true),
            ("[judge]\nmodel = \"m\"\nprovider = \"openai\"\ntransport = \"api\"\nvotes = 3", true),
            ("[modes]\npolite = \"Say please.\"", true),
            (
                "[agents.mine]\ncommand = [\"mine\", [\"--model\", \"{model}\"], \"{prompt}\"]\nresume = [\"mine\"]\n\
                 decoder = \"text\"\nskills_dir = \"skills\"\nenv = { A = \"b\" }\npass_env = [\"C\"]\ncredentials = [\"D\"]",
                true,
            ),
            ("agents = { mine = { decoder = \"text\" } }", false),
            ("agents = { mine = { command = [] } }", false),
            ("agents = { mine = { command = \"mine\" } }", false),
            ("agents = { mine = { command = [\"mine\"], decoder = \"xml\" } }", false),
            ("agents = { mine = { command = [\"mine\"], colour = \"red\" } }", false),
            ("repeats = 3", false),
            ("judge = { name = \"m\" }", false),
        ] {
            assert_eq!(taken(text), (expected, expected), "{text}");
        }
        for text in ["repeat = 0", "timeout = \"soon\"", "judge = { votes = 2 }", "trigger-threshold = 50"] {
            assert_eq!(taken(text), (false, true), "{text}");
        }
    }
}

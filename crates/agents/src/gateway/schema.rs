//! The JSON Schema of script files, for editors.

use serde_json::{Value, json};

use super::script::{MOST_TIMES, MOST_TOKENS, STOP_REASONS};
use practicum_core::tree::json_schema::{self, MappingSchema, reference};

/// Gives the JSON Schema of a script.
pub fn schema() -> Value {
    let answers = json!({"required": ["scenarios"], "properties": {"scenarios": {"minItems": 1}}});
    let script = MappingSchema::closed()
        .required("practicum_script", "The version of the format.", json!({"const": 1}))
        .optional(
            "default",
            "The answer where no scenario fits; without it, that is an error.",
            default_step_schema(),
        )
        .optional(
            "scenarios",
            "What is answered, and when. The latest message that fits any scenario decides, and the \
             first scenario that fits it.",
            json_schema::list(reference("scenario")),
        )
        .with_keyword("anyOf", json!([answers, {"required": ["default"]}]));
    json_schema::document(
        "Gateway script (script.yaml)",
        "Answers in place of a model: real agents, real tools, scripted words.",
        script,
        [("scenario", scenario_schema().into()), ("step", step_schema()), ("tool", tool_schema().into())],
    )
}

/// Gives the schema of the default step. It answers every time, so it can neither call tools nor fail a number of
/// times.
fn default_step_schema() -> Value {
    let barred = |key: &str| json!({"type": "object", "required": [key]});
    json!({"allOf": [reference("step"), {"not": {"anyOf": [barred("tools"), barred("times")]}}]})
}

fn scenario_schema() -> MappingSchema {
    MappingSchema::closed()
        .optional("name", "A name for messages.", json_schema::text())
        .optional(
            "to",
            "Whom it answers: agents, judges, the model that plays the user, or the probes before activation is measured.",
            json_schema::with_default(json_schema::one_of_words(&["agent", "judge", "user", "mock", "probe"]), "agent"),
        )
        .optional("when", "The message it answers; without this, every message.", condition_schema())
        .required(
            "steps",
            "The answers, one for each time the model is asked.",
            json_schema::nonempty_list(reference("step")),
        )
}

fn condition_schema() -> Value {
    let mapping = MappingSchema::closed()
        .optional("text", "Text that the message contains, in any case.", json_schema::nonempty_text())
        .optional("regex", "A regular expression that the message matches.", json_schema::text())
        .optional("marker", "A name that stands as [[name]] in the message.", json_schema::text())
        .with_keyword("minProperties", json!(1))
        .with_keyword("maxProperties", json!(1));
    json_schema::any_of([json_schema::nonempty_text(), mapping.into()])
}

fn step_schema() -> Value {
    let step = add_fault_schemas(
        MappingSchema::closed()
            .optional("text", "What the model says.", json_schema::text())
            .optional("thinking", "What the model thinks.", json_schema::text())
            .optional("tools", "The tools it calls.", json_schema::list(reference("tool")))
            .optional(
                "stop",
                "Why it stops, if not because it is done or calls a tool.",
                json_schema::one_of_words(&STOP_REASONS),
            )
            .optional("usage", "The tokens it reports.", usage_schema())
            .optional("delay", "How long it takes to answer.", json_schema::duration()),
    );
    let said = "What the model says, or a step with its parts. {{workspace}} is the agent's folder, {{skill}} \
                the name of the skill under test there.";
    json_schema::with_description(said, json_schema::any_of([json_schema::text(), step.into()]))
}

/// Adds the ways to fail: at most one, and how often.
fn add_fault_schemas(step: MappingSchema) -> MappingSchema {
    let needs = |keys: &[&str]| keys.iter().map(|key| json!({"required": [key]})).collect::<Vec<_>>();
    let fails = needs(&["error", "hang", "hang_before_headers", "truncate", "sse_error"]);
    let at_most_one = [fails.clone(), vec![json!({"not": {"anyOf": fails}})]].concat();
    let calls = json!({"required": ["tools"], "properties": {"tools": {"minItems": 1}}});
    let does = [needs(&["text", "thinking", "stop"]), vec![calls], fails.clone()].concat();
    let header = json!({"type": ["string", "number"]});
    let headers = json!({"type": "object", "additionalProperties": header});
    step.optional("error", "An HTTP status to fail with.", json_schema::integer_between(400, 599))
        .optional("type", "The error's type; by default what the status usually means.", json_schema::text())
        .optional("message", "The error's message.", json_schema::text())
        .optional(
            "headers",
            "The error's headers.",
            json_schema::with_examples(headers, json!([{"retry-after": 1}])),
        )
        .optional(
            "hang",
            "Headers, then silence for so long, then the connection drops.",
            json_schema::duration(),
        )
        .optional(
            "hang_before_headers",
            "Silence for so long, then the connection drops.",
            json_schema::duration(),
        )
        .optional("truncate", "Half of the reply, then the connection drops.", json_schema::boolean())
        .optional("sse_error", "The stream opens and reports an error of this type.", json_schema::text())
        .optional(
            "times",
            "How often the step fails before it gives way to the next; without this, each time.",
            json_schema::integer_between(1, MOST_TIMES),
        )
        .optional("then", "The step that it gives way to.", reference("step"))
        .with_keyword("anyOf", json!(does))
        .with_keyword("oneOf", json!(at_most_one))
        .with_keyword(
            "dependentRequired",
            json!({"type": ["error"], "headers": ["error"], "then": ["times"]}),
        )
        .with_keyword("dependentSchemas", json!({"times": {"anyOf": fails}}))
}

fn usage_schema() -> MappingSchema {
    let tokens = || json_schema::integer_between(0, MOST_TOKENS);
    MappingSchema::closed()
        .optional("input", "Tokens read.", tokens())
        .optional("output", "Tokens written.", tokens())
        .optional("cache_read", "Tokens read from a cache.", tokens())
        .optional("cache_write", "Tokens written to a cache.", tokens())
}

fn tool_schema() -> MappingSchema {
    MappingSchema::closed()
        .required(
            "name",
            "The tool, as the agent calls it; `namespace.name` where its API has namespaces.",
            json_schema::nonempty_text(),
        )
        .optional(
            "input",
            "Its arguments; text for a tool that takes text.",
            json!({"type": ["object", "string"]}),
        )
        .optional("id", "The call's id, if it matters.", json_schema::text())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::ModelScript;
    use super::*;
    use practicum_core::model::Diagnostics;
    use practicum_core::tree::{SourceFile, SourceSyntax, requested_keys};

    const EVERY_KEY: &str = r#"
practicum_script: 1
default: { text: t, usage: { input: 1, output: 2, cache_read: 3, cache_write: 4 } }
scenarios:
  - name: n
    to: judge
    when: words
    steps:
      - said
      - { thinking: h, tools: [{ name: Read, input: { a: 1 }, id: i }], stop: refusal, delay: 20ms }
      - { error: 529, type: overloaded_error, message: m, headers: { retry-after: 1 }, times: 2, then: said }
      - { hang: 5s }
      - { hang_before_headers: 1 }
      - { truncate: true, text: half }
      - { sse_error: overloaded_error }
  - { when: { text: words }, steps: [said] }
  - { when: { regex: "^w" }, steps: [said] }
  - { when: { marker: m }, steps: [said] }
"#;

    /// Says whether the schema and the reader accept a script.
    fn taken(text: &str) -> (bool, bool) {
        let mut diagnostics = Diagnostics::default();
        let path = Path::new("script.yaml");
        let source =
            SourceFile::parse(path, text.to_owned(), SourceSyntax::Yaml, &mut diagnostics).expect("YAML");
        let valid = jsonschema::draft202012::is_valid(&schema(), &source.root.to_value());
        (valid, ModelScript::from_source(&source, &mut diagnostics).is_some())
    }

    #[test]
    fn a_script_is_right_or_wrong_by_both() {
        assert_eq!(taken(EVERY_KEY), (true, true));
        for (rest, expected) in [
            ("scenarios: [{ steps: [hello] }]", true),
            ("default: hello", true),
            ("default: { error: 500 }", true),
            ("", false),
            ("scenarios: []", false),
            ("default: { tools: [{ name: Read }] }", false),
            ("default: { error: 500, times: 1 }", false),
            ("scenarios: [{ steps: [] }]", false),
            ("scenarios: [{ when: hello }]", false),
            ("scenarios: [{ when: ' ', steps: [hello] }]", false),
            ("scenarios: [{ when: { text: a, marker: b }, steps: [hello] }]", false),
            ("scenarios: [{ to: nobody, steps: [hello] }]", false),
            ("scenarios: [{ steps: [{ delay: 1s }] }]", false),
            ("scenarios: [{ steps: [{ tools: [] }] }]", false),
            ("scenarios: [{ steps: [{ text: a, times: 2 }] }]", false),
            ("scenarios: [{ steps: [{ error: 500, then: a }] }]", false),
            ("scenarios: [{ steps: [{ error: 200 }] }]", false),
            ("scenarios: [{ steps: [{ error: 500, hang: 1s }] }]", false),
            ("scenarios: [{ steps: [{ text: a, type: b }] }]", false),
            ("scenarios: [{ steps: [{ text: a, stop: later }] }]", false),
            ("scenarios: [{ steps: [{ tool: [] }] }]", false),
        ] {
            assert_eq!(taken(&format!("practicum_script: 1\n{rest}")), (expected, expected), "{rest}");
        }
        assert_eq!(taken("practicum_script: 2\ndefault: a"), (false, false));
    }

    #[test]
    fn each_mapping_reads_the_keys_that_are_published_for_it() {
        requested_keys::take();
        taken(EVERY_KEY);
        let mut published = BTreeSet::new();
        collect(&schema(), &mut published);
        let owned = |keys: BTreeSet<&str>| keys.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(published, requested_keys::take().into_iter().map(owned).collect());
    }

    fn collect(schema: &Value, found: &mut BTreeSet<BTreeSet<String>>) {
        match schema {
            Value::Object(map) => {
                if let (Some(Value::Object(keys)), Some(_)) =
                    (map.get("properties"), map.get("additionalProperties"))
                {
                    found.insert(keys.keys().cloned().collect());
                }
                map.values().for_each(|inner| collect(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| collect(inner, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

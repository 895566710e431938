//! The script file for editors.

use serde_json::{Value, json};

use super::script::{MOST_TIMES, MOST_TOKENS, STOPS};
use practicum_core::tree::shape::{self, Mapping, named};

/// What a script may hold, as JSON Schema.
pub fn schema() -> Value {
    let answers = json!({"required": ["scenarios"], "properties": {"scenarios": {"minItems": 1}}});
    let script = Mapping::closed()
        .must("practicum_script", "The version of the format.", json!({"const": 1}))
        .may("default", "The answer where no scenario fits; without it, that is an error.", default_step())
        .may(
            "scenarios",
            "What is answered, and when. The latest message that fits any scenario decides, and the \
             first scenario that fits it.",
            shape::list(named("scenario")),
        )
        .with("anyOf", json!([answers, {"required": ["default"]}]));
    shape::document(
        "Gateway script (script.yaml)",
        "Answers in place of a model: real agents, real tools, scripted words.",
        script,
        [("scenario", scenario().into()), ("step", step()), ("tool", tool().into())],
    )
}

/// The default answers every time, so it can neither call tools nor fail a number of times.
fn default_step() -> Value {
    let barred = |key: &str| json!({"type": "object", "required": [key]});
    json!({"allOf": [named("step"), {"not": {"anyOf": [barred("tools"), barred("times")]}}]})
}

fn scenario() -> Mapping {
    Mapping::closed()
        .may("name", "A name for messages.", shape::text())
        .may(
            "to",
            "Whom it answers: agents, judges, or the probes before activation is measured.",
            shape::default(shape::words(&["agent", "judge", "probe"]), "agent"),
        )
        .may("when", "The message it answers; without this, every message.", when())
        .must("steps", "The answers, one for each time the model is asked.", shape::some(named("step")))
}

fn when() -> Value {
    let mapping = Mapping::closed()
        .may("text", "Text that the message contains, in any case.", shape::filled())
        .may("regex", "A regular expression that the message matches.", shape::text())
        .may("marker", "A name that stands as [[name]] in the message.", shape::text())
        .with("minProperties", json!(1))
        .with("maxProperties", json!(1));
    shape::either([shape::filled(), mapping.into()])
}

fn step() -> Value {
    let step = faults(
        Mapping::closed()
            .may("text", "What the model says.", shape::text())
            .may("thinking", "What the model thinks.", shape::text())
            .may("tools", "The tools it calls.", shape::list(named("tool")))
            .may("stop", "Why it stops, if not because it is done or calls a tool.", shape::words(&STOPS))
            .may("usage", "The tokens it reports.", usage())
            .may("delay", "How long it takes to answer.", shape::duration()),
    );
    let said = "What the model says, or a step with its parts. {{workspace}} is the agent's folder, {{skill}} \
                the name of the skill under test there.";
    shape::described(said, shape::either([shape::text(), step.into()]))
}

/// At most one way to fail, and how often.
fn faults(step: Mapping) -> Mapping {
    let needs = |keys: &[&str]| keys.iter().map(|key| json!({"required": [key]})).collect::<Vec<_>>();
    let fails = needs(&["error", "hang", "hang_before_headers", "truncate", "sse_error"]);
    let at_most_one = [fails.clone(), vec![json!({"not": {"anyOf": fails}})]].concat();
    let calls = json!({"required": ["tools"], "properties": {"tools": {"minItems": 1}}});
    let does = [needs(&["text", "thinking", "stop"]), vec![calls], fails.clone()].concat();
    let header = json!({"type": ["string", "number"]});
    let headers = json!({"type": "object", "additionalProperties": header});
    step.may("error", "An HTTP status to fail with.", shape::whole(400, 599))
        .may("type", "The error's type; by default what the status usually means.", shape::text())
        .may("message", "The error's message.", shape::text())
        .may("headers", "The error's headers.", shape::such_as(headers, json!([{"retry-after": 1}])))
        .may("hang", "Headers, then silence for so long, then the connection drops.", shape::duration())
        .may("hang_before_headers", "Silence for so long, then the connection drops.", shape::duration())
        .may("truncate", "Half of the reply, then the connection drops.", shape::yes_or_no())
        .may("sse_error", "The stream opens and reports an error of this type.", shape::text())
        .may(
            "times",
            "How often the step fails before it gives way to the next; without this, each time.",
            shape::whole(1, MOST_TIMES),
        )
        .may("then", "The step that it gives way to.", named("step"))
        .with("anyOf", json!(does))
        .with("oneOf", json!(at_most_one))
        .with("dependentRequired", json!({"type": ["error"], "headers": ["error"], "then": ["times"]}))
        .with("dependentSchemas", json!({"times": {"anyOf": fails}}))
}

fn usage() -> Mapping {
    let tokens = || shape::whole(0, MOST_TOKENS);
    Mapping::closed()
        .may("input", "Tokens read.", tokens())
        .may("output", "Tokens written.", tokens())
        .may("cache_read", "Tokens read from a cache.", tokens())
        .may("cache_write", "Tokens written to a cache.", tokens())
}

fn tool() -> Mapping {
    Mapping::closed()
        .must(
            "name",
            "The tool, as the agent calls it; `namespace.name` where its API has namespaces.",
            shape::filled(),
        )
        .may(
            "input",
            "Its arguments; text for a tool that takes text.",
            json!({"type": ["object", "string"]}),
        )
        .may("id", "The call's id, if it matters.", shape::text())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::Script;
    use super::*;
    use practicum_core::model::Diagnostics;
    use practicum_core::tree::{Source, Syntax, asked};

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

    /// Whether the schema and the reader take a script.
    fn taken(text: &str) -> (bool, bool) {
        let mut diagnostics = Diagnostics::default();
        let path = Path::new("script.yaml");
        let source = Source::parse(path, text.to_owned(), Syntax::Yaml, &mut diagnostics).expect("YAML");
        let valid = jsonschema::draft202012::is_valid(&schema(), &source.root.to_value());
        (valid, Script::from_source(&source, &mut diagnostics).is_some())
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
            ("scenarios: [{ to: user, steps: [hello] }]", false),
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
        asked::take();
        taken(EVERY_KEY);
        let mut published = BTreeSet::new();
        collect(&schema(), &mut published);
        let owned = |keys: BTreeSet<&str>| keys.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(published, asked::take().into_iter().map(owned).collect());
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

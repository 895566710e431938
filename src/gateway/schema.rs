//! The script file for editors.

use serde_json::{Value, json};

use super::script::{MOST_TIMES, MOST_TOKENS, STOPS};
use crate::tree::shape::{self, Mapping, named};

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
            "Whom it answers: agents, or judges.",
            shape::default(shape::words(&["agent", "judge"]), "agent"),
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
    let said = "What the model says, or a step with its parts. {{workspace}} is the agent's folder.";
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
        .must("name", "The tool, as the agent calls it.", shape::filled())
        .may(
            "input",
            "Its arguments; text for a tool that takes text.",
            json!({"type": ["object", "string"]}),
        )
        .may("id", "The call's id, if it matters.", shape::text())
}

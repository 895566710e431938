//! Builds JSON Schemas of documents. Each schema is written beside the code that reads the document, so that
//! editors can complete and explain a file with the program's own words.

use serde_json::{Map, Value, json};

use crate::model::MAX_DURATION;

/// The schema of a mapping, key by key. Every key has a sentence that an editor can show.
#[derive(Debug, Clone)]
pub struct MappingSchema {
    keys: Map<String, Value>,
    required_keys: Vec<Value>,
    allows_other_keys: bool,
    keywords: Map<String, Value>,
}

impl MappingSchema {
    /// Starts a mapping in which any other key is an error.
    pub fn closed() -> Self {
        Self { keys: Map::new(), required_keys: Vec::new(), allows_other_keys: false, keywords: Map::new() }
    }

    /// Starts a mapping whose other keys are kept and mean nothing.
    pub fn open() -> Self {
        Self { allows_other_keys: true, ..Self::closed() }
    }

    /// Adds a key that must be there.
    #[must_use]
    pub fn required(mut self, key: &str, doc: &str, shape: impl Into<Value>) -> Self {
        self.required_keys.push(json!(key));
        self.optional(key, doc, shape)
    }

    /// Adds a key that may be there.
    #[must_use]
    pub fn optional(mut self, key: &str, doc: &str, shape: impl Into<Value>) -> Self {
        self.keys.insert(key.to_owned(), with_description(doc, shape));
        self
    }

    /// Adds a JSON Schema keyword about the mapping as a whole.
    #[must_use]
    pub fn with_keyword(mut self, keyword: &str, value: Value) -> Self {
        self.keywords.insert(keyword.to_owned(), value);
        self
    }
}

impl From<MappingSchema> for Value {
    fn from(mapping: MappingSchema) -> Value {
        let MappingSchema { keys, required_keys: required, allows_other_keys: open, keywords: more } =
            mapping;
        let mut map = Map::new();
        map.insert("type".to_owned(), json!("object"));
        map.insert("properties".to_owned(), Value::Object(keys));
        if !required.is_empty() {
            map.insert("required".to_owned(), Value::Array(required));
        }
        if !open {
            map.insert("additionalProperties".to_owned(), json!(false));
        }
        map.extend(more);
        Value::Object(map)
    }
}

/// Builds the schema of a whole file: its title, its purpose, and the shapes that it refers to by name.
pub fn document(
    title: &str,
    about: &str,
    shape: impl Into<Value>,
    named: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let mut map = Map::new();
    map.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    map.insert("title".to_owned(), json!(title));
    map.insert("description".to_owned(), json!(about));
    map.extend(into_map(shape.into()));
    let named: Map<String, Value> = named.into_iter().map(|(name, shape)| (name.to_owned(), shape)).collect();
    if !named.is_empty() {
        map.insert("$defs".to_owned(), Value::Object(named));
    }
    Value::Object(map)
}

/// Adds a description to a shape.
pub fn with_description(doc: &str, shape: impl Into<Value>) -> Value {
    let mut map = Map::new();
    map.insert("description".to_owned(), json!(doc));
    map.extend(into_map(shape.into()));
    Value::Object(map)
}

/// Adds examples that an editor can offer to a shape.
pub fn with_examples(shape: impl Into<Value>, examples: Value) -> Value {
    let mut map = into_map(shape.into());
    map.insert("examples".to_owned(), examples);
    Value::Object(map)
}

/// Adds a default value to a shape.
pub fn with_default(shape: impl Into<Value>, value: impl Into<Value>) -> Value {
    let mut map = into_map(shape.into());
    map.insert("default".to_owned(), value.into());
    Value::Object(map)
}

/// Turns a shape into a mapping. The two shapes that are not mappings are `true` (anything) and `false` (nothing).
fn into_map(shape: Value) -> Map<String, Value> {
    match shape {
        Value::Object(map) => map,
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// Makes a reference to a definition of the same schema.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// Makes the schema of a text.
pub fn text() -> Value {
    json!({"type": "string"})
}

/// The schema of a text that is not blank.
pub fn nonempty_text() -> Value {
    json!({"type": "string", "pattern": "\\S"})
}

/// Makes the schema of one of several words.
pub fn one_of_words(words: &[&str]) -> Value {
    json!({"enum": words})
}

/// Makes the schema of a boolean.
pub fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// Makes the schema of a whole number between two limits, both included.
pub fn integer_between(least: i64, most: i64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

/// Makes the schema of a whole number that is not less than a limit.
pub fn integer_from(least: i64) -> Value {
    json!({"type": "integer", "minimum": least})
}

/// The schema of a number from 0 to 1.
pub fn ratio() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1})
}

/// Makes the schema of a list.
pub fn list(item: impl Into<Value>) -> Value {
    json!({"type": "array", "items": item.into()})
}

/// Makes the schema of a list with at least one item.
pub fn nonempty_list(item: impl Into<Value>) -> Value {
    json!({"type": "array", "items": item.into(), "minItems": 1})
}

/// The schema of a list of texts; a single text stands for a list of one.
pub fn text_or_texts() -> Value {
    any_of([text(), list(text())])
}

/// The schema of a non-empty list of non-blank texts; a single text stands for a list of one.
pub fn nonempty_text_or_texts() -> Value {
    any_of([nonempty_text(), nonempty_list(nonempty_text())])
}

/// Makes the schema of a value that fits at least one of several schemas.
pub fn any_of(shapes: impl IntoIterator<Item = Value>) -> Value {
    json!({"anyOf": shapes.into_iter().collect::<Vec<_>>()})
}

/// The schema of a time limit that is a whole number of seconds.
pub fn whole_seconds() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MAX_DURATION.as_secs()})
}

/// The schema of a duration: a number of seconds, or a number with a unit.
pub fn duration() -> Value {
    let week = MAX_DURATION.as_secs();
    let shape = any_of([
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": week}),
        json!({"type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]*)?\\s*(ms|s|m|h)?\\s*$"}),
    ]);
    with_examples(shape, json!([90, "500ms", "20s", "5m", "1h"]))
}

/// Makes the schema of a value that may also be null.
pub fn or_null(shape: impl Into<Value>) -> Value {
    let mut map = into_map(shape.into());
    let doc = map.shift_remove("description");
    let default = map.shift_remove("default");
    let mut out = match map.get("type") {
        Some(Value::String(kind)) if !map.contains_key("enum") => {
            let kind = json!([kind, "null"]);
            map.insert("type".to_owned(), kind);
            map
        }
        _ => into_map(any_of([Value::Object(map), json!({"type": "null"})])),
    };
    out.extend(doc.map(|doc| ("description".to_owned(), doc)));
    out.extend(default.map(|value| ("default".to_owned(), value)));
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let mapping = MappingSchema::closed().required("a", "What a is.", text()).optional(
            "b",
            "What b is.",
            or_null(ratio()),
        );
        assert_eq!(
            Value::from(mapping),
            json!({
                "type": "object",
                "properties": {
                    "a": {"description": "What a is.", "type": "string"},
                    "b": {"description": "What b is.", "type": ["number", "null"], "minimum": 0, "maximum": 1},
                },
                "required": ["a"],
                "additionalProperties": false,
            })
        );
        assert_eq!(
            or_null(with_default(one_of_words(&["x"]), "x")),
            json!({"anyOf": [{"enum": ["x"]}, {"type": "null"}], "default": "x"})
        );
        assert_eq!(Value::from(MappingSchema::open()), json!({"type": "object", "properties": {}}));
    }
}

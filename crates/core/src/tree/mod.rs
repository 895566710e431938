//! Text files as a tree in which every node knows where it stood.
//!
//! In: bytes of YAML or JSON. Out: `Source` with a `Node` tree, or a diagnostic with a position.
//! Never: what a key means.

mod emit;
mod json;
mod object;
mod read;
pub mod shape;
mod yaml;
mod yaml_problem;

use serde_json::Value;

pub use emit::to_yaml;
#[cfg(any(test, feature = "test-helpers"))]
pub use object::asked;
pub use object::{Object, closest, int_of, text_of, wrong_type};
pub use read::{Source, Syntax, read_bounded};

use crate::model::Span;

/// How deep a document may nest. People's files stay below a dozen.
const DEEPEST: usize = 128;

/// How many nodes a document may have, aliases followed. Bounds alias bombs.
const MOST_NODES: usize = 2_000_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub span: Span,
    pub data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&[Entry]> {
        match &self.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// What this is, for messages.
    pub fn what(&self) -> &'static str {
        match self.data {
            Data::Null => "null",
            Data::Bool(_) => "true or false",
            Data::Int(_) => "a whole number",
            Data::Float(_) => "a decimal number",
            Data::Text(_) => "text",
            Data::List(_) => "a list",
            Data::Map(_) => "a mapping",
        }
    }

    /// Data that stands nowhere of its own, taken to stand at `span`.
    pub fn from_value(value: &Value, span: Span) -> Self {
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(b) => Data::Bool(*b),
            Value::Number(number) => match number.as_i64() {
                Some(int) => Data::Int(int),
                None => number.as_f64().map_or(Data::Null, Data::Float),
            },
            Value::String(text) => Data::Text(text.clone()),
            Value::Array(items) => {
                Data::List(items.iter().map(|item| Node::from_value(item, span)).collect())
            }
            Value::Object(map) => Data::Map(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_span: span,
                        value: Node::from_value(value, span),
                    })
                    .collect(),
            ),
        };
        Node { span, data }
    }

    /// The same data without positions.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(b) => Value::Bool(*b),
            Data::Int(n) => Value::from(*n),
            Data::Float(x) => serde_json::Number::from_f64(*x).map_or(Value::Null, Value::Number),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Data::Map(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect(),
            ),
        }
    }
}

//! Text files as a tree in which every node knows its position.
//!
//! In: bytes of YAML or JSON. Out: `SourceFile` with a tree of `TreeNode`, or a diagnostic with a position. Never:
//! the meaning of a key.

#![warn(missing_docs)]

mod emit;
mod json;
pub mod json_schema;
mod object;
mod regular_file;
mod source;
mod yaml;
mod yaml_error;

use serde_json::Value;

pub use emit::to_yaml;
#[cfg(any(test, feature = "test-helpers"))]
pub use object::requested_keys;
pub use object::{ObjectReader, closest_word, node_int, node_text, report_wrong_type};
pub use regular_file::{
    append_unlinked, create_private_folder, create_unlinked, open_regular, read_bounded, read_regular,
    read_regular_text, write_private, write_unlinked,
};
pub use source::{SourceFile, SourceSyntax};

use crate::model::Span;

/// The greatest depth of a document. Files that people write stay below a dozen levels.
const MAX_DEPTH: usize = 128;

/// The greatest number of nodes in a document, with aliases expanded. Limits alias bombs.
const MAX_NODES: usize = 2_000_000;

/// A value of a source file, with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeNode {
    /// The position of the value in the text.
    pub span: Span,
    /// The value itself.
    pub data: NodeData,
}

/// The content of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeData {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// A list of values.
    List(Vec<TreeNode>),
    /// A mapping, with its entries in order.
    Map(Vec<MapEntry>),
}

/// A key of a mapping, with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct MapEntry {
    /// The key.
    pub key: String,
    /// The position of the key in the text.
    pub key_span: Span,
    /// The value of the key.
    pub value: TreeNode,
}

impl TreeNode {
    /// Gives the value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&TreeNode> {
        match &self.data {
            NodeData::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// Says whether this is a mapping with a key.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Gives the text, if this is a text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            NodeData::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Gives the items, if this is a list.
    pub fn as_list(&self) -> Option<&[TreeNode]> {
        match &self.data {
            NodeData::List(items) => Some(items),
            _ => None,
        }
    }

    /// Gives the entries, if this is a mapping.
    pub fn as_map(&self) -> Option<&[MapEntry]> {
        match &self.data {
            NodeData::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Says whether this is no value.
    pub fn is_null(&self) -> bool {
        matches!(self.data, NodeData::Null)
    }

    /// Gives the kind of the node, for messages.
    pub fn kind_name(&self) -> &'static str {
        match self.data {
            NodeData::Null => "null",
            NodeData::Bool(_) => "true or false",
            NodeData::Int(_) => "a whole number",
            NodeData::Float(_) => "a decimal number",
            NodeData::Text(_) => "text",
            NodeData::List(_) => "a list",
            NodeData::Map(_) => "a mapping",
        }
    }

    /// Makes a node from data without positions. Everything in it gets the position `span`.
    pub fn from_value(value: &Value, span: Span) -> Self {
        let data = match value {
            Value::Null => NodeData::Null,
            Value::Bool(b) => NodeData::Bool(*b),
            Value::Number(number) => match number.as_i64() {
                Some(int) => NodeData::Int(int),
                None => number.as_f64().map_or(NodeData::Null, NodeData::Float),
            },
            Value::String(text) => NodeData::Text(text.clone()),
            Value::Array(items) => {
                NodeData::List(items.iter().map(|item| TreeNode::from_value(item, span)).collect())
            }
            Value::Object(map) => NodeData::Map(
                map.iter()
                    .map(|(key, value)| MapEntry {
                        key: key.clone(),
                        key_span: span,
                        value: TreeNode::from_value(value, span),
                    })
                    .collect(),
            ),
        };
        TreeNode { span, data }
    }

    /// Gives the data without positions.
    pub fn to_value(&self) -> Value {
        match &self.data {
            NodeData::Null => Value::Null,
            NodeData::Bool(b) => Value::Bool(*b),
            NodeData::Int(n) => Value::from(*n),
            NodeData::Float(x) => serde_json::Number::from_f64(*x).map_or(Value::Null, Value::Number),
            NodeData::Text(text) => Value::String(text.clone()),
            NodeData::List(items) => Value::Array(items.iter().map(TreeNode::to_value).collect()),
            NodeData::Map(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect(),
            ),
        }
    }
}

//! The keys that a frontmatter may have.

use practicum_core::tree::{NodeData, TreeNode};

/// The kind of value that a key must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrontmatterValueKind {
    Text,
    TextOrTexts,
    Boolean,
    Mapping,
    Anything,
}

/// The known keys: first those of the specification, then those that Claude Code documents beyond them.
pub(super) const KNOWN_KEYS: &[(&str, FrontmatterValueKind)] = &[
    ("name", FrontmatterValueKind::Text),
    ("description", FrontmatterValueKind::Text),
    ("license", FrontmatterValueKind::Text),
    ("compatibility", FrontmatterValueKind::Text),
    ("metadata", FrontmatterValueKind::Mapping),
    ("allowed-tools", FrontmatterValueKind::TextOrTexts),
    ("when_to_use", FrontmatterValueKind::Text),
    ("argument-hint", FrontmatterValueKind::Anything),
    ("arguments", FrontmatterValueKind::TextOrTexts),
    ("disable-model-invocation", FrontmatterValueKind::Boolean),
    ("user-invocable", FrontmatterValueKind::Boolean),
    ("disallowed-tools", FrontmatterValueKind::TextOrTexts),
    ("model", FrontmatterValueKind::Text),
    ("effort", FrontmatterValueKind::Text),
    ("context", FrontmatterValueKind::Text),
    ("agent", FrontmatterValueKind::Text),
    ("hooks", FrontmatterValueKind::Mapping),
    ("paths", FrontmatterValueKind::TextOrTexts),
    ("shell", FrontmatterValueKind::Text),
    // People write a number without quotes, and no agent reads the value, so any value is accepted.
    ("version", FrontmatterValueKind::Anything),
];

pub(super) fn value_kind(key: &str) -> Option<FrontmatterValueKind> {
    KNOWN_KEYS.iter().find(|(known, _)| *known == key).map(|(_, kind)| *kind)
}

impl FrontmatterValueKind {
    /// Says whether a value is of this kind. A null counts as not given.
    pub fn accepts(self, node: &TreeNode) -> bool {
        let is_text = |node: &TreeNode| matches!(node.data, NodeData::Text(_));
        match (self, &node.data) {
            (_, NodeData::Null) | (FrontmatterValueKind::Anything, _) => true,
            (FrontmatterValueKind::Text | FrontmatterValueKind::TextOrTexts, NodeData::Text(_)) => true,
            (FrontmatterValueKind::TextOrTexts, NodeData::List(items)) => items.iter().all(is_text),
            (FrontmatterValueKind::Boolean, NodeData::Bool(_))
            | (FrontmatterValueKind::Mapping, NodeData::Map(_)) => true,
            (
                FrontmatterValueKind::Text
                | FrontmatterValueKind::TextOrTexts
                | FrontmatterValueKind::Boolean
                | FrontmatterValueKind::Mapping,
                NodeData::Bool(_)
                | NodeData::Int(_)
                | NodeData::Float(_)
                | NodeData::Text(_)
                | NodeData::List(_)
                | NodeData::Map(_),
            ) => false,
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            FrontmatterValueKind::Text => "text",
            FrontmatterValueKind::TextOrTexts => "text or a list of texts",
            FrontmatterValueKind::Boolean => "true or false",
            FrontmatterValueKind::Mapping => "a mapping",
            FrontmatterValueKind::Anything => "anything",
        }
    }
}

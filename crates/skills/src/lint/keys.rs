//! The keys a frontmatter may have.

use practicum_core::tree::{Data, Node};

/// What a key's value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    TextOrTexts,
    YesOrNo,
    Mapping,
    Anything,
}

/// The specification's keys first, then those that Claude Code documents beyond them.
pub(super) const KEYS: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("description", Kind::Text),
    ("license", Kind::Text),
    ("compatibility", Kind::Text),
    ("metadata", Kind::Mapping),
    ("allowed-tools", Kind::TextOrTexts),
    ("when_to_use", Kind::Text),
    ("argument-hint", Kind::Anything),
    ("arguments", Kind::TextOrTexts),
    ("disable-model-invocation", Kind::YesOrNo),
    ("user-invocable", Kind::YesOrNo),
    ("disallowed-tools", Kind::TextOrTexts),
    ("model", Kind::Text),
    ("effort", Kind::Text),
    ("context", Kind::Text),
    ("agent", Kind::Text),
    ("hooks", Kind::Mapping),
    ("paths", Kind::TextOrTexts),
    ("shell", Kind::Text),
    // A number without quotes is what people write, and nobody reads it.
    ("version", Kind::Anything),
];

pub(super) fn kind(key: &str) -> Option<Kind> {
    KEYS.iter().find(|(known, _)| *known == key).map(|(_, kind)| *kind)
}

impl Kind {
    /// A value that is null counts as not given.
    pub fn fits(self, node: &Node) -> bool {
        let is_text = |node: &Node| matches!(node.data, Data::Text(_));
        match (self, &node.data) {
            (_, Data::Null) | (Kind::Anything, _) => true,
            (Kind::Text | Kind::TextOrTexts, Data::Text(_)) => true,
            (Kind::TextOrTexts, Data::List(items)) => items.iter().all(is_text),
            (Kind::YesOrNo, Data::Bool(_)) | (Kind::Mapping, Data::Map(_)) => true,
            (
                Kind::Text | Kind::TextOrTexts | Kind::YesOrNo | Kind::Mapping,
                Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::Text(_) | Data::List(_) | Data::Map(_),
            ) => false,
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::TextOrTexts => "text or a list of texts",
            Kind::YesOrNo => "true or false",
            Kind::Mapping => "a mapping",
            Kind::Anything => "anything",
        }
    }
}

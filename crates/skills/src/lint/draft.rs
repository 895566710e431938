//! A skill file as its author wrote it, valid or not.

use std::path::{Path, PathBuf};

use super::skill_markdown::SkillMarkdown;
use crate::skill::{
    SkillForm, end_of_opening_fence, is_command_file, name_from_path, read_frontmatter, split_frontmatter,
};
use practicum_core::model::{Diagnostics, Span};
use practicum_core::tree::{MapEntry, NodeData, TreeNode, read_bounded};

/// The largest SKILL.md that is read. No agent would load a larger one: the recommended budget is a fiftieth of
/// this.
pub(super) const MAX_SKILL_FILE_SIZE: u64 = 1024 * 1024;

/// A skill file as its author wrote it, valid or not.
#[derive(Debug, Clone)]
pub struct SkillFileDraft {
    /// The SKILL.md.
    pub file: PathBuf,
    /// The whole text of the file.
    pub text: String,
    /// The frontmatter, as far as it can be read.
    pub frontmatter: DraftFrontmatter,
    /// The parts of the frontmatter that are not valid YAML although agents read them.
    pub warnings: Diagnostics,
    body_start: usize,
    pub(super) markdown: SkillMarkdown,
}

/// The part of the file above the body.
#[derive(Debug, Clone)]
pub enum DraftFrontmatter {
    /// The file cannot be read as text, so nothing is known of it.
    Unreadable {
        /// The reason why it cannot be parsed.
        why: String,
        /// The position of the error.
        span: Option<Span>,
    },
    /// The file has no frontmatter.
    Missing,
    /// The frontmatter has no closing line.
    Unclosed,
    /// The frontmatter is not YAML; the problems point into the whole file.
    InvalidYaml(Diagnostics),
    /// The frontmatter is this value, which is not a mapping.
    NotAMapping(TreeNode),
    /// The frontmatter is this mapping.
    Mapping(TreeNode),
}

impl SkillFileDraft {
    /// Reads a skill file. Never fails: a file that cannot be read is a finding to report.
    pub fn read(file: &Path) -> Self {
        let unread = |text: String, why: String, at: Option<Span>| Self {
            file: file.to_owned(),
            body_start: text.len(),
            text,
            frontmatter: DraftFrontmatter::Unreadable { why, span: at },
            warnings: Diagnostics::default(),
            markdown: SkillMarkdown::default(),
        };
        let bytes = match read_bounded(file, MAX_SKILL_FILE_SIZE) {
            Ok(bytes) => bytes,
            Err(why) => return unread(String::new(), why, None),
        };
        match String::from_utf8(bytes) {
            Ok(text) => Self::from_text(file, &text),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let valid = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
                unread(valid, "it is not UTF-8 text from here on".to_owned(), Some(Span::new(at, at)))
            }
        }
    }

    /// Makes a draft from a text; its other files are looked for beside `file`.
    pub fn from_text(file: &Path, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let (front_text, body) = split_frontmatter(&text);
        let mut warnings = Diagnostics::default();
        let (front, body_start) = match front_text {
            Some(front_text) => {
                let front_end = end_of_opening_fence(&text).unwrap_or_default() + front_text.len();
                (read_draft_frontmatter(file, &text[..front_end], &mut warnings), text.len() - body.len())
            }
            None if end_of_opening_fence(&text).is_some() => (DraftFrontmatter::Unclosed, text.len()),
            None => (DraftFrontmatter::Missing, 0),
        };
        let page = SkillMarkdown::parse(&text, body_start);
        Self { file: file.to_owned(), frontmatter: front, warnings, body_start, markdown: page, text }
    }

    /// Gives the folder that belongs to the skill.
    pub fn folder(&self) -> &Path {
        match self.file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// Says whether this is a command file, to which the specification of skills does not apply.
    pub fn is_command(&self) -> bool {
        is_command_file(&self.file)
    }

    /// Gives the name in the frontmatter, else the name that follows from the path.
    pub fn name(&self) -> String {
        if self.is_command() {
            return name_from_path(&self.file, SkillForm::Command);
        }
        let said = self.nonblank_text("name").map(|(name, _)| name.to_owned());
        said.unwrap_or_else(|| name_from_path(&self.file, SkillForm::Folder))
    }

    /// Gives the text after the frontmatter.
    pub fn body(&self) -> &str {
        &self.text[self.body_start..]
    }

    /// Gives the position in the file of the byte at this offset of the body.
    pub(super) fn body_span_at(&self, offset: usize) -> Span {
        Span::new(self.body_start + offset, self.body_start + offset)
    }

    /// Gives the first line of the body that is not blank.
    pub(super) fn first_body_line(&self) -> Span {
        let blank = self.body().len() - self.body().trim_start().len();
        let start = self.body_start + blank;
        let length = self.text[start..].find('\n').unwrap_or(self.text.len() - start);
        Span::new(start, start + length)
    }

    /// Gives the entries of a frontmatter that can be read.
    pub fn frontmatter_entries(&self) -> Option<&[MapEntry]> {
        match &self.frontmatter {
            DraftFrontmatter::Mapping(node) => node.as_map(),
            DraftFrontmatter::Unreadable { .. }
            | DraftFrontmatter::Missing
            | DraftFrontmatter::Unclosed
            | DraftFrontmatter::InvalidYaml(_)
            | DraftFrontmatter::NotAMapping(_) => None,
        }
    }

    /// Gives the value of a key of the frontmatter.
    pub fn frontmatter_value(&self, key: &str) -> Option<&TreeNode> {
        self.frontmatter_entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Gives the text of a key, if the value is text and not blank.
    pub fn nonblank_text(&self, key: &str) -> Option<(&str, Span)> {
        let node = self.frontmatter_value(key)?;
        node.as_text().filter(|text| !text.trim().is_empty()).map(|text| (text, node.span))
    }

    /// Says whether an agent may activate the skill by itself, so that its description decides.
    pub(super) fn is_model_invocable(&self) -> bool {
        !self
            .frontmatter_value("disable-model-invocation")
            .is_some_and(|node| node.data == NodeData::Bool(true))
    }

    /// Gives the opening fence, where problems about missing keys are shown.
    pub(super) fn opening_fence(&self) -> Span {
        Span::new(0, 3.min(self.text.len()))
    }

    /// Finds a phrase within a span. Gives the span itself if the phrase is spelt differently in YAML.
    pub(super) fn find_phrase(&self, within: Span, phrase: &str) -> Span {
        let source = self.text.get(within.start..within.end).unwrap_or_default();
        match source.find(phrase) {
            Some(at) => Span::new(within.start + at, within.start + at + phrase.len()),
            None => within,
        }
    }
}

/// Reads the frontmatter. The opening fence is also YAML's mark for the start of a document. So the text up to the
/// closing fence is parsed as it is, and every span is right for the whole file.
fn read_draft_frontmatter(file: &Path, text: &str, warnings: &mut Diagnostics) -> DraftFrontmatter {
    let mut diagnostics = Diagnostics::default();
    match read_frontmatter(file, text, &mut diagnostics) {
        Some(root) => {
            warnings.extend(diagnostics);
            match root.data {
                NodeData::Map(_) => DraftFrontmatter::Mapping(root),
                NodeData::Null => {
                    DraftFrontmatter::Mapping(TreeNode { span: root.span, data: NodeData::Map(Vec::new()) })
                }
                NodeData::Bool(_)
                | NodeData::Int(_)
                | NodeData::Float(_)
                | NodeData::Text(_)
                | NodeData::List(_) => DraftFrontmatter::NotAMapping(root),
            }
        }
        None => DraftFrontmatter::InvalidYaml(diagnostics),
    }
}

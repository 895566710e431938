//! Reads YAML 1.2 with merge keys, with limits against alias bombs and deep nesting.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span as YamlSpan};

use super::yaml_error::{describe_error, is_tab, is_unclosed_quote};
use super::{MAX_DEPTH, MAX_NODES, MapEntry, NodeData, TreeNode};
use crate::model::{Diagnostics, Span};

pub fn parse(text: &str, diagnostics: &mut Diagnostics) -> Option<TreeNode> {
    let mut builder = YamlTreeBuilder {
        text,
        anchors: HashMap::new(),
        open_nodes: Vec::new(),
        node_count: 0,
        root: None,
        diagnostics,
    };
    let mut documents = 0;
    let mut read = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(pair) => pair,
            Err(error) => {
                let gave_up = error.marker().byte_offset().unwrap_or(0).min(text.len());
                let (what, help) = describe_error(error.kind());
                // The parser reports where it gave up; the message should point to the mistake that caused it.
                let (what, help, at) = match (builder.find_unclosed_bracket(gave_up), error.kind()) {
                    (Some((bracket, at)), _) => {
                        let help = "close it, or put text that begins with a bracket in quotes";
                        (format!("the \"{bracket}\" is not closed"), Some(help), at)
                    }
                    (None, kind) if is_unclosed_quote(kind) => {
                        (what, help, opening_quote(text, read, gave_up).unwrap_or(gave_up))
                    }
                    (None, kind) if is_tab(kind) => {
                        (what, help, indenting_tab(text, gave_up).unwrap_or(gave_up))
                    }
                    (None, _) => (what, help, gave_up),
                };
                let message = format!("not valid YAML: {what}");
                match help {
                    Some(help) => {
                        builder.diagnostics.error_with_help("invalid-yaml", Span::new(at, at), message, help)
                    }
                    None => builder.diagnostics.error("invalid-yaml", Span::new(at, at), message),
                }
                return None;
            }
        };
        read = to_span(&span, text).end.max(read);
        if matches!(event, Event::DocumentStart(..)) {
            documents += 1;
            if documents > 1 {
                builder.diagnostics.error(
                    "several-documents",
                    to_span(&span, text),
                    "one file holds one document; a second begins here",
                );
                return None;
            }
        }
        if let Err(YamlBuildError) = builder.handle_event(event, to_span(&span, text)) {
            return None;
        }
    }
    match builder.root {
        Some(root) => Some(root),
        None => {
            diagnostics.error("empty-file", None, "the file is empty");
            None
        }
    }
}

/// Finds the quote that is still open where the parser gave up: the first one after the text that was read,
/// outside of comments.
fn opening_quote(text: &str, read: usize, gave_up: usize) -> Option<usize> {
    let mut before = text.get(..read)?.chars().next_back();
    let mut in_comment = false;
    for (at, c) in text.get(read..gave_up)?.char_indices() {
        match c {
            '\n' => in_comment = false,
            '#' if before.is_none_or(char::is_whitespace) => in_comment = true,
            '"' | '\'' if !in_comment => return Some(read + at),
            _ => {}
        }
        before = Some(c);
    }
    None
}

/// Finds the first tab that indents a line, from the line of `from` on.
fn indenting_tab(text: &str, from: usize) -> Option<usize> {
    let mut start = text.get(..from)?.rfind('\n').map_or(0, |at| at + 1);
    for line in text[start..].split_inclusive('\n') {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        if line[spaces..].starts_with('\t') {
            return Some(start + spaces);
        }
        start += line.len();
    }
    None
}

fn to_span(span: &YamlSpan, text: &str) -> Span {
    let range = span.byte_range().unwrap_or(0..0);
    Span::new(range.start.min(text.len()), range.end.clamp(range.start, text.len().max(range.start)))
}

struct YamlTreeBuilder<'t, 'd> {
    text: &'t str,
    anchors: HashMap<usize, TreeNode>,
    open_nodes: Vec<OpenNode>,
    node_count: usize,
    root: Option<TreeNode>,
    diagnostics: &'d mut Diagnostics,
}

struct OpenNode {
    anchor: usize,
    start: Span,
    content: OpenNodeContent,
}

enum OpenNodeContent {
    List(Vec<TreeNode>),
    Map { entries: Vec<MapEntry>, key: Option<(String, Span)> },
}

/// The error after which building stops. Its diagnostic has already been added.
struct YamlBuildError;

impl YamlTreeBuilder<'_, '_> {
    /// Finds the bracket of an earlier line that is still open where the parser gave up, and its position. This is
    /// the most likely mistake.
    fn find_unclosed_bracket(&self, gave_up: usize) -> Option<(char, usize)> {
        let start = self.open_nodes.last()?.start.start;
        let bracket = self.text[start..].chars().next().filter(|first| ['[', '{'].contains(first))?;
        let between = self.text.get(start..gave_up)?;
        between.contains('\n').then_some((bracket, start))
    }

    fn handle_event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlBuildError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let forced_text = tag.as_ref().is_some_and(|tag| tag.core_suffix() == Some("str"));
                let data = if style == ScalarStyle::Plain && !forced_text {
                    plain_scalar(&text)
                } else {
                    NodeData::Text(text.into_owned())
                };
                self.attach_node(TreeNode { span, data }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open_node(anchor, span, OpenNodeContent::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                self.open_node(anchor, span, OpenNodeContent::Map { entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_node(span),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    self.diagnostics.error("invalid-yaml", span, "this alias refers to itself");
                    return Err(YamlBuildError);
                };
                self.node_count += count_nodes(&node);
                self.attach_node(TreeNode { span, data: node.data }, 0)
            }
            _ => Ok(()),
        }
    }

    fn open_node(
        &mut self,
        anchor: usize,
        start: Span,
        inside: OpenNodeContent,
    ) -> Result<(), YamlBuildError> {
        if self.open_nodes.len() >= MAX_DEPTH {
            self.diagnostics.error(
                "nested-too-deep",
                start,
                format!("nested deeper than {MAX_DEPTH} levels"),
            );
            return Err(YamlBuildError);
        }
        self.open_nodes.push(OpenNode { anchor, start, content: inside });
        Ok(())
    }

    fn close_node(&mut self, end: Span) -> Result<(), YamlBuildError> {
        let Some(open) = self.open_nodes.pop() else { return Ok(()) };
        let data = match open.content {
            OpenNodeContent::List(items) => NodeData::List(items),
            OpenNodeContent::Map { entries, .. } => NodeData::Map(self.resolve_merge_keys(entries)?),
        };
        let trimmed = self.text[open.start.start..end.end.max(open.start.start)].trim_end().len();
        let span = Span::new(open.start.start, open.start.start + trimmed);
        self.attach_node(TreeNode { span, data }, open.anchor)
    }

    /// Adds a finished node to the list or mapping that is open, or to the document itself.
    fn attach_node(&mut self, node: TreeNode, anchor: usize) -> Result<(), YamlBuildError> {
        self.node_count += 1;
        if self.node_count > MAX_NODES {
            self.diagnostics.error_with_help(
                "too-many-nodes",
                node.span,
                "the document has too many values once its aliases are followed",
                "write the repeated parts out, or use fewer aliases",
            );
            return Err(YamlBuildError);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open_nodes.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(OpenNodeContent::List(items)) => items.push(node),
            Some(OpenNodeContent::Map { entries, key }) => match key.take() {
                Some((name, key_span)) => entries.push(MapEntry { key: name, key_span, value: node }),
                None => match key_text(&node) {
                    Some(name) => {
                        let twice = name != "<<" && entries.iter().any(|entry| entry.key == name);
                        *key = Some((name.clone(), node.span));
                        if twice {
                            self.diagnostics.error_with_help(
                                "duplicate-key",
                                node.span,
                                format!("the key \"{name}\" stands here twice"),
                                "keep one of them",
                            );
                        }
                    }
                    None => {
                        self.diagnostics.error_with_help(
                            "invalid-key",
                            node.span,
                            format!("a key cannot be {}", node.kind_name()),
                            "put text that begins with a bracket in quotes",
                        );
                        return Err(YamlBuildError);
                    }
                },
            },
        }
        Ok(())
    }

    /// Resolves merge keys: `<<: *base` adds the entries of the base that are not given here.
    fn resolve_merge_keys(&mut self, entries: Vec<MapEntry>) -> Result<Vec<MapEntry>, YamlBuildError> {
        if !entries.iter().any(|entry| entry.key == "<<") {
            return Ok(entries);
        }
        let (merges, mut own): (Vec<MapEntry>, Vec<MapEntry>) =
            entries.into_iter().partition(|entry| entry.key == "<<");
        for merge in merges {
            let bases = match merge.value.data {
                NodeData::Map(_) => vec![merge.value],
                NodeData::List(items) => items,
                _ => vec![merge.value],
            };
            for base in bases {
                let NodeData::Map(inherited) = base.data else {
                    self.diagnostics.error(
                        "invalid-merge",
                        base.span,
                        "a merge key takes a mapping or a list of mappings",
                    );
                    return Err(YamlBuildError);
                };
                for entry in inherited {
                    if !own.iter().any(|given| given.key == entry.key) {
                        own.push(entry);
                    }
                }
            }
        }
        Ok(own)
    }
}

fn count_nodes(node: &TreeNode) -> usize {
    1 + match &node.data {
        NodeData::List(items) => items.iter().map(count_nodes).sum(),
        NodeData::Map(entries) => entries.iter().map(|entry| count_nodes(&entry.value)).sum(),
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) | NodeData::Text(_) => 0,
    }
}

fn key_text(node: &TreeNode) -> Option<String> {
    match &node.data {
        NodeData::Text(text) => Some(text.clone()),
        NodeData::Int(n) => Some(n.to_string()),
        NodeData::Float(x) => Some(x.to_string()),
        NodeData::Bool(b) => Some(b.to_string()),
        NodeData::Null => Some("null".to_owned()),
        NodeData::List(_) | NodeData::Map(_) => None,
    }
}

/// Reads a plain scalar by the core schema of YAML 1.2. Timestamps stay text. So do `.nan` and `.inf`, so that
/// every later number is finite.
fn plain_scalar(text: &str) -> NodeData {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeData::Null,
        "true" | "True" | "TRUE" => return NodeData::Bool(true),
        "false" | "False" | "FALSE" => return NodeData::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse::<i64>() {
            Ok(int) => NodeData::Int(int),
            Err(_) => text.parse().map_or_else(|_| NodeData::Text(text.to_owned()), NodeData::Float),
        };
    }
    let radix = [("0x", 16), ("0o", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| i64::from_str_radix(text.strip_prefix(prefix)?, radix).ok());
    if let Some(int) = radix {
        return NodeData::Int(int);
    }
    let float_like = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
        && digits.bytes().any(|b| b.is_ascii_digit());
    match text.parse::<f64>() {
        Ok(float) if float_like && float.is_finite() => NodeData::Float(float),
        _ => NodeData::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Result<Value, String> {
        let mut diagnostics = Diagnostics::default();
        let node = parse(text, &mut diagnostics);
        match diagnostics.iter().next() {
            Some(problem) => Err(problem.code.to_owned()),
            None => Ok(node.expect("a tree or a diagnostic").to_value()),
        }
    }

    #[test]
    fn scalars_and_structure() {
        for (text, expected) in [
            ("a: 1\nb: [x, 'y', \"z\"]", json!({"a": 1, "b": ["x", "y", "z"]})),
            ("t: 2025-01-15T10:30:00Z", json!({"t": "2025-01-15T10:30:00Z"})),
            (
                "v: [1.5, 1e3, .inf, 0x10, 0o7, 007, 1.2.3, -4]",
                json!({"v": [1.5, 1000.0, ".inf", 16, 7, 7, "1.2.3", -4]}),
            ),
            ("p: |\n  a\n  b\n", json!({"p": "a\nb\n"})),
            (
                "base: &b {x: 1, y: 2}\nc:\n  <<: *b\n  y: 3",
                json!({"base": {"x": 1, "y": 2}, "c": {"y": 3, "x": 1}}),
            ),
            ("a: !!str 12", json!({"a": "12"})),
            ("a: yes", json!({"a": "yes"})),
            ("1: x", json!({"1": "x"})),
            ("a:\r\n  - 1\r\n", json!({"a": [1]})),
        ] {
            assert_eq!(read(text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let bomb = (0..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
            format!("{text}a{}: &a{} [*a{i}, *a{i}, *a{i}, *a{i}]\n", i + 1, i + 1)
        });
        let deep_flow = "[".repeat(10_000);
        let deep_block = (0..10_000).map(|_| "- ").collect::<String>();
        for (text, code) in [
            ("", "empty-file"),
            ("# only a comment", "empty-file"),
            ("a: 1\na: 2", "duplicate-key"),
            ("a: 1\n---\nb: 2", "several-documents"),
            ("a:\n\t- 1", "invalid-yaml"),
            ("a: [1", "invalid-yaml"),
            ("? [x]\n: 1", "invalid-key"),
            ("a: &a [*a]", "invalid-yaml"),
            ("<<: 3", "invalid-merge"),
            (bomb.as_str(), "too-many-nodes"),
        ] {
            assert_eq!(read(text), Err(code.to_owned()), "{text:.60}");
        }
        assert!(read(&deep_flow).is_err());
        assert!(read(&deep_block).is_err());
    }

    #[test]
    fn mistakes_are_told_in_words_and_with_a_hint() {
        for (text, line, words) in [
            ("a: [x\nb: 1", 1, "the \"[\" is not closed"),
            ("a: {x: 1\nb: 1", 1, "the \"{\" is not closed"),
            ("a: [x", 1, "the \"[\" is not closed"),
            ("a: [x}", 1, "cannot end with \"}\""),
            ("a: x]\nb: ]", 2, "closes nothing"),
            ("a: \"x\nb: 1", 1, "the quote is not closed"),
            ("a: 'x\n\n\nb: 1", 1, "the quote is not closed"),
            ("a: 'b'\n# it's\nc: 'x\nd: 1", 3, "the quote is not closed"),
            ("'a': \"b\"\nc:\n  - \"d\"\n  - \"e\nf: 1\n", 4, "the quote is not closed"),
            ("a: {b: 'c', d: 'e}\nf: 1", 1, "the quote is not closed"),
            ("a: x # it's\nb: \"y\n---\n", 2, "the quote is not closed"),
            ("a: it's\n\"b: 1\n", 2, "the quote is not closed"),
            ("a: \"x\n  y\n  z", 1, "the quote is not closed"),
            ("a: 'it's'", 1, "more after the closing quote"),
            ("a: \"C:\\path\"", 1, "no such escape"),
            ("a: b: c", 1, "a colon is not allowed here"),
            ("a: x\ny", 2, "expected a key with a colon"),
            ("a:\n  b: 1\n c: 2", 3, "expected a key with a colon"),
            ("a:\n\t- 1", 2, "the indentation has a tab"),
            ("a: x\n\tb: 1", 2, "the indentation has a tab"),
            ("a:\n  - b: x\n  \tc: 1", 3, "the indentation has a tab"),
            ("a: @x", 1, "text cannot begin with '@'"),
            ("a: *x", 1, "is not defined above"),
            ("a: | x\n  y", 1, "text after the | or >"),
            ("a: - x", 1, "a list cannot begin on the line of its key"),
        ] {
            let mut diagnostics = Diagnostics::default();
            assert!(parse(text, &mut diagnostics).is_none(), "{text}");
            let problem = diagnostics.iter().next().expect("a problem");
            assert!(problem.message.contains(words), "{text:?}: {}", problem.message);
            assert!(problem.help.is_some(), "{text:?}");
            let at = problem.span.expect("a place").position(text);
            assert_eq!(at.line, line, "{text:?}");
        }
    }

    #[test]
    fn spans_are_byte_ranges_of_the_source() {
        let text = "ä: 1\nlist:\n  - ünï: \"x\"\n";
        let mut diagnostics = Diagnostics::default();
        let root = parse(text, &mut diagnostics).expect("valid");
        let item = &root.get("list").and_then(TreeNode::as_list).expect("a list")[0];
        let value = item.get("ünï").expect("the value");
        assert_eq!(&text[value.span.start..value.span.end], "\"x\"");
        assert_eq!(value.span.position(text), crate::model::TextPosition { line: 3, column: 10 });
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-c:\\-\\[\\]{}&*!|>'\"#%@` \n\t0-9.<,?é]{0,100}") {
            let _ = read(&text);
        }
    }
}

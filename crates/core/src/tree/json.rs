//! Reads strict JSON (RFC 8259), as every other tool would.

use super::{MAX_DEPTH, MAX_NODES, MapEntry, NodeData, TreeNode};
use crate::model::{Diagnostics, Span};

pub fn parse(text: &str, diagnostics: &mut Diagnostics) -> Option<TreeNode> {
    parse_document(text, JsonParser::parse_document, diagnostics)
}

/// Reads one JSON value in each line, blank lines left out, as a list.
pub fn parse_lines(text: &str, diagnostics: &mut Diagnostics) -> Option<TreeNode> {
    parse_document(text, JsonParser::parse_lines, diagnostics)
}

fn parse_document<'t, 'd>(
    text: &'t str,
    read: impl FnOnce(&mut JsonParser<'t, 'd>) -> Result<TreeNode, JsonError>,
    diagnostics: &'d mut Diagnostics,
) -> Option<TreeNode> {
    let mut parser = JsonParser { text, position: 0, nodes: 0, diagnostics };
    match read(&mut parser) {
        Ok(root) => Some(root),
        Err(JsonError { position: at, message: what, help }) => {
            let diagnostics = parser.diagnostics;
            let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
            match help {
                Some(help) => diagnostics.error_with_help("invalid-json", Span::new(at, end), what, help),
                None => diagnostics.error("invalid-json", Span::new(at, end), what),
            }
            None
        }
    }
}

struct JsonParser<'t, 'd> {
    text: &'t str,
    position: usize,
    nodes: usize,
    diagnostics: &'d mut Diagnostics,
}

struct JsonError {
    position: usize,
    message: String,
    help: Option<&'static str>,
}

impl JsonParser<'_, '_> {
    fn parse_document(&mut self) -> Result<TreeNode, JsonError> {
        self.skip_whitespace();
        if self.position == self.text.len() {
            return Err(self.error("the file is empty"));
        }
        let root = self.parse_value(0)?;
        self.skip_whitespace();
        if self.position < self.text.len() {
            return Err(self.error("there is more after the end of the document"));
        }
        Ok(root)
    }

    /// Reads values until the text ends. A value ends its line, so that two in one line are an error.
    fn parse_lines(&mut self) -> Result<TreeNode, JsonError> {
        let mut items = Vec::new();
        self.skip_whitespace();
        while self.position < self.text.len() {
            items.push(self.parse_value(1)?);
            let rest = &self.text[self.position..];
            let line = rest.split('\n').next().unwrap_or_default();
            if !line.trim().is_empty() {
                self.position += line.len() - line.trim_start().len();
                return Err(self.error("there is more in this line after its value"));
            }
            self.skip_whitespace();
        }
        if items.is_empty() {
            return Err(self.error("the file is empty"));
        }
        Ok(TreeNode { data: NodeData::List(items), span: Span::new(0, self.text.len()) })
    }

    fn error(&self, what: impl Into<String>) -> JsonError {
        JsonError { position: self.position, message: what.into(), help: None }
    }

    fn error_with_help(&self, what: impl Into<String>, help: &'static str) -> JsonError {
        JsonError { position: self.position, message: what.into(), help: Some(help) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    fn parse_value(&mut self, depth: usize) -> Result<TreeNode, JsonError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.error("the document has too many values"));
        }
        if depth > MAX_DEPTH {
            return Err(self.error(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let start = self.position;
        let data = match self.peek() {
            Some(b'{') => self.parse_map(depth)?,
            Some(b'[') => self.parse_list(depth)?,
            Some(b'"') => NodeData::Text(self.parse_string()?),
            Some(b'-' | b'0'..=b'9') => self.parse_number()?,
            Some(b't') => self.parse_literal("true", NodeData::Bool(true))?,
            Some(b'f') => self.parse_literal("false", NodeData::Bool(false))?,
            Some(b'n') => self.parse_literal("null", NodeData::Null)?,
            Some(b'\'') => {
                return Err(
                    self.error_with_help("JSON text stands in double quotes", "write \"…\" instead of '…'")
                );
            }
            Some(b'/' | b'#') => return Err(self.error_with_help("JSON has no comments", "remove it")),
            Some(b'T' | b'F' | b'N') => {
                return Err(self.error_with_help("expected a value", "JSON writes true, false and null so"));
            }
            Some(_) => return Err(self.error("expected a value")),
            None => return Err(self.error("the document ends where a value should be")),
        };
        Ok(TreeNode { span: Span::new(start, self.position), data })
    }

    fn parse_literal(&mut self, word: &str, data: NodeData) -> Result<NodeData, JsonError> {
        if !self.text[self.position..].starts_with(word) {
            return Err(self.error("expected a value"));
        }
        self.position += word.len();
        Ok(data)
    }

    fn parse_map(&mut self, depth: usize) -> Result<NodeData, JsonError> {
        let mut entries: Vec<MapEntry> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        self.position += 1;
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(NodeData::Map(entries));
        }
        loop {
            self.skip_whitespace();
            if self.peek() != Some(b'"') {
                return Err(match self.peek() {
                    Some(b'}') => {
                        self.error_with_help("a comma before the closing brace", "remove the comma")
                    }
                    Some(b'\'') => {
                        self.error_with_help("JSON keys stand in double quotes", "write \"…\" instead of '…'")
                    }
                    Some(b'/' | b'#') => self.error_with_help("JSON has no comments", "remove it"),
                    Some(_) => self.error("expected a key in double quotes"),
                    None => self.error("the document ends inside a mapping"),
                });
            }
            let key_start = self.position;
            let key = self.parse_string()?;
            let key_span = Span::new(key_start, self.position);
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.error("expected a colon after the key"));
            }
            self.position += 1;
            self.skip_whitespace();
            let value = self.parse_value(depth + 1)?;
            if !seen.insert(key.clone()) {
                self.diagnostics.error_with_help(
                    "duplicate-key",
                    key_span,
                    format!("the key \"{key}\" stands here twice"),
                    "keep one of them",
                );
            }
            entries.push(MapEntry { key, key_span, value });
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b'}') => {
                    self.position += 1;
                    return Ok(NodeData::Map(entries));
                }
                Some(_) => return Err(self.error("expected a comma or the closing brace")),
                None => return Err(self.error("the document ends inside a mapping")),
            }
        }
    }

    fn parse_list(&mut self, depth: usize) -> Result<NodeData, JsonError> {
        let mut items = Vec::new();
        self.position += 1;
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(NodeData::List(items));
        }
        loop {
            self.skip_whitespace();
            if self.peek() == Some(b']') {
                return Err(self.error_with_help("a comma before the closing bracket", "remove the comma"));
            }
            items.push(self.parse_value(depth + 1)?);
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b']') => {
                    self.position += 1;
                    return Ok(NodeData::List(items));
                }
                Some(_) => return Err(self.error("expected a comma or the closing bracket")),
                None => return Err(self.error("the document ends inside a list")),
            }
        }
    }

    fn parse_number(&mut self) -> Result<NodeData, JsonError> {
        let start = self.position;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while end < bytes.len() && matches!(bytes[end], b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') {
            end += 1;
        }
        let text = &self.text[start..end];
        // serde_json knows the number grammar exactly.
        let Ok(number) = serde_json::from_str::<serde_json::Number>(text) else {
            return Err(self.error(format!("{text:?} is not a JSON number")));
        };
        self.position = end;
        // The standard library reads the nearest float; serde_json may be off by the last bit.
        Ok(match (number.as_i64(), text.parse::<f64>()) {
            (None, _) if text == "-0" => NodeData::Int(0),
            (Some(int), _) => NodeData::Int(int),
            (None, Ok(float)) if float.is_finite() => NodeData::Float(float),
            (None, _) => return Err(self.error(format!("{text} is too large"))),
        })
    }

    fn parse_string(&mut self) -> Result<String, JsonError> {
        self.position += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.position..];
            let plain = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.position += plain;
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.parse_escape(&mut out)?,
                Some(b'\n' | b'\r') => {
                    return Err(self
                        .error_with_help("the text is not closed on its line", "write a line break as \\n"));
                }
                Some(_) => return Err(self.error("a control character inside text; write it as an escape")),
                None => return Err(self.error("the document ends inside text")),
            }
        }
    }

    fn parse_escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let escaped = self.text.as_bytes().get(self.position + 1).copied();
        let plain = match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.parse_unicode_escape(out),
            _ => {
                return Err(
                    self.error_with_help("no such escape in JSON", "a backslash itself is written \\\\")
                );
            }
        };
        out.push(plain);
        self.position += 2;
        Ok(())
    }

    fn parse_unicode_escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let first = self
            .parse_hex4(self.position + 2)
            .ok_or_else(|| self.error("\\u is followed by four hex digits"))?;
        self.position += 6;
        let code = if (0xD800..0xDC00).contains(&first) {
            let paired = self.text[self.position..]
                .starts_with("\\u")
                .then(|| self.parse_hex4(self.position + 2))
                .flatten();
            match paired {
                Some(second) if (0xDC00..0xE000).contains(&second) => {
                    self.position += 6;
                    0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                }
                _ => 0xFFFD,
            }
        } else {
            first
        };
        out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
        Ok(())
    }

    fn parse_hex4(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<serde_json::Value> {
        let mut diagnostics = Diagnostics::default();
        let node = parse(text, &mut diagnostics)?;
        (!diagnostics.has_errors()).then(|| node.to_value())
    }

    #[test]
    fn strict_where_others_are_lax() {
        for bad in [
            "",
            " ",
            "{'a':1}",
            "{\"a\":1,}",
            "[1,]",
            "{a:1}",
            "// x\n1",
            "NaN",
            "[Infinity]",
            "01",
            "1.",
            "+1",
            "\"a\nb\"",
            "\"\\x\"",
            "{\"a\":1} x",
            "[1",
            "{\"a\"",
            "\"\\u12\"",
            "tru",
            "{\"a\":1,\"a\":2}",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn numbers() {
        let data = |text: &str| parse(text, &mut Diagnostics::default()).map(|node| node.data);
        for (text, expected) in [
            ("0", NodeData::Int(0)),
            ("-0", NodeData::Int(0)),
            ("-7", NodeData::Int(-7)),
            ("1.0", NodeData::Float(1.0)),
            ("1e2", NodeData::Float(100.0)),
            ("9223372036854775807", NodeData::Int(i64::MAX)),
            ("9223372036854775808", NodeData::Float(9_223_372_036_854_775_808.0)),
        ] {
            assert_eq!(data(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn ten_thousand_levels_are_an_error_not_a_crash() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert_eq!(read(&deep), None);
    }

    #[test]
    fn positions_point_at_the_problem() {
        let mut diagnostics = Diagnostics::default();
        let text = "{\n  \"a\": [1, 2,]\n}";
        assert!(parse(text, &mut diagnostics).is_none());
        let span = diagnostics.iter().next().and_then(|d| d.span).expect("a span");
        let position = span.position(text);
        assert_eq!((position.line, position.column), (2, 14));
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(value in any_json()) {
            let text = serde_json::to_string(&value).expect("serialisable");
            prop_assert_eq!(read(&text), Some(value));
        }

        #[test]
        fn never_panics(text in "[\\[\\]{}\",:\\\\u0-9a-f\\-.etrunls \n\u{e9}]{0,80}") {
            let ours = read(&text);
            if let Some(value) = ours {
                prop_assert_eq!(Some(value), serde_json::from_str::<serde_json::Value>(&text).ok());
            }
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            "\\PC{0,12}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                prop::collection::btree_map("\\PC{0,6}", inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }
}

//! Strict JSON (RFC 8259): what every other tool would also accept.

use super::{DEEPEST, Data, Entry, MOST_NODES, Node};
use crate::model::{Diagnostics, Span};

pub fn parse(text: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    let mut parser = Parser { text, at: 0, nodes: 0, diagnostics };
    let root = parser.document();
    match root {
        Ok(root) => Some(root),
        Err(Wrong { at, what, help }) => {
            let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
            match help {
                Some(help) => diagnostics.error_help("invalid-json", Span::new(at, end), what, help),
                None => diagnostics.error("invalid-json", Span::new(at, end), what),
            }
            None
        }
    }
}

struct Parser<'t, 'd> {
    text: &'t str,
    at: usize,
    nodes: usize,
    diagnostics: &'d mut Diagnostics,
}

struct Wrong {
    at: usize,
    what: String,
    help: Option<&'static str>,
}

impl Parser<'_, '_> {
    fn document(&mut self) -> Result<Node, Wrong> {
        self.space();
        if self.at == self.text.len() {
            return Err(self.wrong("the file is empty"));
        }
        let root = self.value(0)?;
        self.space();
        if self.at < self.text.len() {
            return Err(self.wrong("there is more after the end of the document"));
        }
        Ok(root)
    }

    fn wrong(&self, what: impl Into<String>) -> Wrong {
        Wrong { at: self.at, what: what.into(), help: None }
    }

    fn wrong_help(&self, what: impl Into<String>, help: &'static str) -> Wrong {
        Wrong { at: self.at, what: what.into(), help: Some(help) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Wrong> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Err(self.wrong("the document has too many values"));
        }
        if depth > DEEPEST {
            return Err(self.wrong(format!("nested deeper than {DEEPEST} levels")));
        }
        let start = self.at;
        let data = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Data::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Data::Bool(true))?,
            Some(b'f') => self.word("false", Data::Bool(false))?,
            Some(b'n') => self.word("null", Data::Null)?,
            Some(b'\'') => {
                return Err(
                    self.wrong_help("JSON text stands in double quotes", "write \"…\" instead of '…'")
                );
            }
            Some(b'/' | b'#') => return Err(self.wrong_help("JSON has no comments", "remove it")),
            Some(b'T' | b'F' | b'N') => {
                return Err(self.wrong_help("expected a value", "JSON writes true, false and null so"));
            }
            Some(_) => return Err(self.wrong("expected a value")),
            None => return Err(self.wrong("the document ends where a value should be")),
        };
        Ok(Node { span: Span::new(start, self.at), data })
    }

    fn word(&mut self, word: &str, data: Data) -> Result<Data, Wrong> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong("expected a value"));
        }
        self.at += word.len();
        Ok(data)
    }

    fn map(&mut self, depth: usize) -> Result<Data, Wrong> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Data::Map(entries));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(match self.peek() {
                    Some(b'}') => self.wrong_help("a comma before the closing brace", "remove the comma"),
                    Some(b'\'') => {
                        self.wrong_help("JSON keys stand in double quotes", "write \"…\" instead of '…'")
                    }
                    Some(b'/' | b'#') => self.wrong_help("JSON has no comments", "remove it"),
                    Some(_) => self.wrong("expected a key in double quotes"),
                    None => self.wrong("the document ends inside a mapping"),
                });
            }
            let key_start = self.at;
            let key = self.string()?;
            let key_span = Span::new(key_start, self.at);
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.wrong("expected a colon after the key"));
            }
            self.at += 1;
            self.space();
            let value = self.value(depth + 1)?;
            if !seen.insert(key.clone()) {
                self.diagnostics.error_help(
                    "duplicate-key",
                    key_span,
                    format!("the key \"{key}\" stands here twice"),
                    "keep one of them",
                );
            }
            entries.push(Entry { key, key_span, value });
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Data::Map(entries));
                }
                Some(_) => return Err(self.wrong("expected a comma or the closing brace")),
                None => return Err(self.wrong("the document ends inside a mapping")),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Data, Wrong> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Data::List(items));
        }
        loop {
            self.space();
            if self.peek() == Some(b']') {
                return Err(self.wrong_help("a comma before the closing bracket", "remove the comma"));
            }
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Data::List(items));
                }
                Some(_) => return Err(self.wrong("expected a comma or the closing bracket")),
                None => return Err(self.wrong("the document ends inside a list")),
            }
        }
    }

    fn number(&mut self) -> Result<Data, Wrong> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while end < bytes.len() && matches!(bytes[end], b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') {
            end += 1;
        }
        let text = &self.text[start..end];
        // serde_json knows the number grammar exactly.
        let Ok(number) = serde_json::from_str::<serde_json::Number>(text) else {
            return Err(self.wrong(format!("{text:?} is not a JSON number")));
        };
        self.at = end;
        // The standard library reads the nearest float; serde_json may be off by the last bit.
        Ok(match (number.as_i64(), text.parse::<f64>()) {
            (None, _) if text == "-0" => Data::Int(0),
            (Some(int), _) => Data::Int(int),
            (None, Ok(float)) if float.is_finite() => Data::Float(float),
            (None, _) => return Err(self.wrong(format!("{text} is too large"))),
        })
    }

    fn string(&mut self) -> Result<String, Wrong> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(b'\n' | b'\r') => {
                    return Err(
                        self.wrong_help("the text is not closed on its line", "write a line break as \\n")
                    );
                }
                Some(_) => return Err(self.wrong("a control character inside text; write it as an escape")),
                None => return Err(self.wrong("the document ends inside text")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), Wrong> {
        let escaped = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(out),
            _ => return Err(self.wrong_help("no such escape in JSON", "a backslash itself is written \\\\")),
        };
        out.push(plain);
        self.at += 2;
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut String) -> Result<(), Wrong> {
        let first = self.hex4(self.at + 2).ok_or_else(|| self.wrong("\\u is followed by four hex digits"))?;
        self.at += 6;
        let code = if (0xD800..0xDC00).contains(&first) {
            let paired = self.text[self.at..].starts_with("\\u").then(|| self.hex4(self.at + 2)).flatten();
            match paired {
                Some(second) if (0xDC00..0xE000).contains(&second) => {
                    self.at += 6;
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

    fn hex4(&self, at: usize) -> Option<u32> {
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
            ("0", Data::Int(0)),
            ("-0", Data::Int(0)),
            ("-7", Data::Int(-7)),
            ("1.0", Data::Float(1.0)),
            ("1e2", Data::Float(100.0)),
            ("9223372036854775807", Data::Int(i64::MAX)),
            ("9223372036854775808", Data::Float(9_223_372_036_854_775_808.0)),
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

//! Paths in a JSON document: `$.items[0].name`, `$['odd key']`. A path names one place; there are no wildcards and
//! no filters.

use std::fmt;

use serde_json::Value;

/// A path to one place in a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonPath(Vec<JsonPathPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum JsonPathPart {
    Key(String),
    /// A position in a list; a negative one counts from the end.
    Index(i64),
}

/// The largest number of parts in a path. No real document nests deeper.
const MOST_PARTS: usize = 128;

impl JsonPath {
    /// Parses a path. The leading `$` is optional.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let (part, after) = if let Some(inside) = rest.strip_prefix('[') {
                parse_bracket(inside)?
            } else {
                let key = match rest.strip_prefix('.') {
                    Some(key) => key,
                    None if parts.is_empty() && !text.starts_with('$') => rest,
                    None => return Err(format!("\"{rest}\" should begin with . or [")),
                };
                let end = key.find(['.', '[']).unwrap_or(key.len());
                if end == 0 {
                    return Err("a key is missing after \".\"".to_owned());
                }
                (JsonPathPart::Key(key[..end].to_owned()), &key[end..])
            };
            if matches!(&part, JsonPathPart::Key(key) if key == "*") {
                return Err("a path names one place; \"*\" would be many".to_owned());
            }
            parts.push(part);
            if parts.len() > MOST_PARTS {
                return Err(format!("longer than {MOST_PARTS} steps"));
            }
            rest = after;
        }
        Ok(Self(parts))
    }

    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, part| match part {
            JsonPathPart::Key(key) => value.as_object()?.get(key),
            JsonPathPart::Index(index) => {
                let items = value.as_array()?;
                let at = if *index < 0 {
                    items.len().checked_add_signed(*index as isize)?
                } else {
                    *index as usize
                };
                items.get(at)
            }
        })
    }
}

/// Parses the content of a pair of brackets. Gives it and the text after the brackets.
fn parse_bracket(inside: &str) -> Result<(JsonPathPart, &str), String> {
    if let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let text = &inside[1..];
        let close = format!("{quote}]");
        let end = text.find(&close).ok_or_else(|| format!("{close} is missing"))?;
        return Ok((JsonPathPart::Key(text[..end].to_owned()), &text[end + 2..]));
    }
    let end = inside.find(']').ok_or_else(|| "] is missing".to_owned())?;
    let index = &inside[..end];
    match index.parse::<i64>() {
        Ok(number) if isize::try_from(number).is_ok() => {
            Ok((JsonPathPart::Index(number), &inside[end + 1..]))
        }
        Ok(_) | Err(_) => Err(format!("\"{index}\" is not an index; put a key in quotes")),
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for part in &self.0 {
            match part {
                JsonPathPart::Index(index) => write!(f, "[{index}]")?,
                JsonPathPart::Key(key) if key.is_empty() || key.contains(['.', '[', ']', '\'', '"', '*']) => {
                    let quote = if key.contains("']") { '"' } else { '\'' };
                    write!(f, "[{quote}{key}{quote}]")?;
                }
                JsonPathPart::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows() {
        let document = json!({"a": {"b": [10, {"c d": null}]}, "x.y": true, "": 1, "é": "e"});
        for (path, expected) in [
            ("$", Some(document.clone())),
            ("", Some(document.clone())),
            ("$.a.b[0]", Some(json!(10))),
            ("a.b[0]", Some(json!(10))),
            ("$.a.b[-1]", Some(json!({"c d": null}))),
            ("$.a.b[-3]", None),
            ("$.a.b[1].c d", Some(json!(null))),
            ("$['x.y']", Some(json!(true))),
            ("$[\"a\"]['b'][0]", Some(json!(10))),
            ("$['']", Some(json!(1))),
            ("$.é", Some(json!("e"))),
            ("$.a.b[2]", None),
            ("$.a.b.c", None),
            ("$.a[0]", None),
            ("$.nope", None),
        ] {
            let found = JsonPath::new(path).unwrap_or_else(|problem| panic!("{path}: {problem}"));
            assert_eq!(found.find(&document), expected.as_ref(), "{path}");
            assert_eq!(JsonPath::new(&found.to_string()), Ok(found), "{path}");
        }
        for path in [
            "$a",
            "$.",
            "$..a",
            "$.a[",
            "$.a[x]",
            "$.a['b]",
            "$.a[*]",
            "$.*",
            "$.a[0]b",
            "$[99999999999999999999]",
        ] {
            assert!(JsonPath::new(path).is_err(), "{path}");
        }
    }
}

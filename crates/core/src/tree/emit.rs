//! Writes data as YAML that a person would write and that `tree` reads back unchanged.

use serde_json::Value;

/// Gives the document as YAML text.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_mapping(map, 0, &mut out),
        Value::Array(items) if !items.is_empty() => write_sequence(items, 0, &mut out),
        _ => {
            write_scalar(value, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

fn write_indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn write_mapping(map: &serde_json::Map<String, Value>, depth: usize, out: &mut String) {
    for (position, (key, value)) in map.iter().enumerate() {
        if position > 0 {
            write_indent(depth, out);
        }
        out.push_str(&inline_scalar(key));
        out.push(':');
        write_mapping_value(value, depth, out);
    }
}

/// Writes the value after a key.
fn write_mapping_value(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            write_indent(depth + 1, out);
            write_mapping(map, depth + 1, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_indent(depth + 1, out);
            write_sequence(items, depth + 1, out);
        }
        _ => {
            out.push(' ');
            write_scalar(value, depth + 1, out);
            out.push('\n');
        }
    }
}

fn write_sequence(items: &[Value], depth: usize, out: &mut String) {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            write_indent(depth, out);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => write_mapping(map, depth + 1, out),
            Value::Array(inner) if !inner.is_empty() => write_sequence(inner, depth + 1, out),
            _ => {
                write_scalar(item, depth + 1, out);
                out.push('\n');
            }
        }
    }
}

fn write_scalar(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::String(text) => match literal_block(text, depth) {
            Some(block) => out.push_str(&block),
            None => out.push_str(&inline_scalar(text)),
        },
        // Empty lists and mappings, numbers, `true` and `null`: JSON is also YAML.
        other => out.push_str(&other.to_string()),
    }
}

/// Writes several lines as a literal block. `None` if that would not keep every character.
fn literal_block(text: &str, depth: usize) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let fits = body.contains('\n')
        && !body.ends_with('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || is_printable(c))
        && !text.contains("\t\n")
        && body.lines().all(|line| !line.ends_with([' ', '\t']));
    if !fits {
        return None;
    }
    let mut out = String::from(if text.ends_with('\n') { "|" } else { "|-" });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            write_indent(depth, &mut out);
            out.push_str(line);
        }
    }
    Some(out)
}

/// Writes a text without quotes if it cannot be mistaken for something else, otherwise in double quotes.
fn inline_scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quote(text) }
}

fn is_plain(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let allowed = |c: char| c.is_alphanumeric() || " _-./()+,;=%@*?!$'\"<>^~|".contains(c);
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    starts_well
        && !text.ends_with(' ')
        && text.chars().all(|c| allowed(c) && is_printable(c))
        && !words.contains(&text.to_lowercase().as_str())
}

fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if !is_printable(c) && u32::from(c) <= 0xffff => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::Diagnostics;

    fn read(text: &str) -> Option<Value> {
        let mut diagnostics = Diagnostics::default();
        let node = super::super::yaml::parse(text, &mut diagnostics)?;
        (!diagnostics.has_errors()).then(|| node.to_value())
    }

    #[test]
    fn yaml_as_a_person_would_write_it() {
        let value = json!({
            "practicum": 1,
            "run": {"agents": ["claude"], "timeout": "5m"},
            "cases": [{"id": "a", "prompt": "Say: hi", "checks": [{"contains": "**x**"}, {"file": {"path": "a.md"}}]},
                      {"id": "b", "prompt": "one\ntwo\n", "meta": {}}],
        });
        let text = to_yaml(&value);
        let expected = "\
practicum: 1
run:
  agents:
    - claude
  timeout: \"5m\"
cases:
  - id: a
    prompt: \"Say: hi\"
    checks:
      - contains: \"**x**\"
      - file:
          path: a.md
  - id: b
    prompt: |
      one
      two
    meta: {}
";
        assert_eq!(text, expected);
        assert_eq!(read(&text), Some(value));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in any_value()) {
            let text = to_yaml(&value);
            prop_assert_eq!(read(&text), Some(value), "{}", text);
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[ -~]{0,20}",
            "\\PC{0,12}",
            "[a-z \n\t:#-]{0,30}",
            "([a-z ]{1,8}\n){1,4}",
            Just("null".to_owned()),
            Just("~".to_owned()),
            Just("1.5".to_owned()),
            Just("0x1f".to_owned()),
            Just("a\u{2028}b\u{85}\u{7f}\r".to_owned()),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e6..1e6f64).prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..5).prop_map(|pairs| Value::Object(
                    pairs.into_iter().filter(|(key, _)| key != "<<").collect()
                )),
            ]
        })
    }
}

//! Converts JSON values from a model to text, as Python does.
//!
//! A model may report `95110` or `true` as a number or boolean where the document has text. Checks compare the
//! text that Python's `str` makes of the value, because the formats of eval files were designed for that.

use serde_json::Value;

/// Converts a JSON value to the text that Python's `str` gives. A string stays as it is.
pub fn python_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => repr(value),
    }
}

fn repr(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => float_text(float),
            None => number.to_string(),
        },
        Value::String(text) => quote_python(text),
        Value::Array(items) => format!("[{}]", list(items.iter().map(repr).collect())),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", quote_python(key), repr(value));
            format!("{{{}}}", list(fields.iter().map(field).collect()))
        }
    }
}

/// Writes a number as Python does. Rust and Python choose the same digits but write exponents differently: `1e16`
/// and `1e+16`.
fn float_text(float: f64) -> String {
    let text = format!("{float:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, size) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
            format!("{digits}e{sign}{size:0>2}")
        }
    }
}

/// Puts a text in single quotes, or in double quotes if only these need no escape.
fn quote_python(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::python_text;

    #[test]
    fn values_are_written_as_python_does() {
        for (json, expected) in [
            (r#""95110""#, "95110"),
            ("95110", "95110"),
            ("-3", "-3"),
            ("95110.0", "95110.0"),
            ("0.1", "0.1"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("0.00001", "1e-05"),
            ("1e100", "1e+100"),
            ("true", "True"),
            ("false", "False"),
            ("null", "None"),
            (r#"["a", 1, null, true]"#, "['a', 1, None, True]"),
            (r#"{"b": "it's", "a": []}"#, r#"{'b': "it's", 'a': []}"#),
            (r#"["a\nb\\", "'\""]"#, r#"['a\nb\\', '\'"']"#),
        ] {
            let value = serde_json::from_str(json).expect("JSON");
            assert_eq!(python_text(&value), expected, "{json}");
        }
    }
}

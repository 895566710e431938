//! The forms that advisers fill in, and the limits of their fields.

use serde_json::{Value, json};

/// Gives the schema of an object in which every key is required and no other key is allowed. Strict providers
/// accept nothing else.
pub fn closed_object(properties: Value) -> Value {
    let required: Vec<String> =
        properties.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Gives the schema of a list.
pub fn list_of(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// The limits of an answer.
const LONGEST_TEXT: usize = 50_000;
const MOST_ITEMS: usize = 50;

/// Reads a text from an answer. A text that is too long is an error.
pub fn text_of(answer: &Value, key: &str) -> Result<String, String> {
    let text = answer[key].as_str().ok_or_else(|| format!("\"{key}\" must be text"))?;
    if text.len() > LONGEST_TEXT {
        return Err(format!("\"{key}\" is too long"));
    }
    Ok(text.to_owned())
}

/// Reads a list of texts from an answer.
pub fn texts_of(answer: &Value, key: &str) -> Result<Vec<String>, String> {
    let not_texts = || format!("\"{key}\" must be a list of texts");
    let texts: Option<Vec<String>> =
        items_of(answer, key)?.iter().map(|text| text.as_str().map(str::to_owned)).collect();
    texts.ok_or_else(not_texts)
}

/// Reads a list from an answer. Too many items are an error.
pub fn items_of<'a>(answer: &'a Value, key: &str) -> Result<&'a [Value], String> {
    let items = answer[key].as_array().ok_or_else(|| format!("\"{key}\" must be a list"))?;
    if items.len() > MOST_ITEMS {
        return Err(format!("\"{key}\" has more than {MOST_ITEMS} items"));
    }
    Ok(items)
}

/// Reads a word from an answer that must be one of these.
pub fn one_of<'a>(answer: &'a Value, key: &str, words: &[&str]) -> Result<&'a str, String> {
    let word = answer[key].as_str().filter(|word| words.contains(word));
    word.ok_or_else(|| format!("\"{key}\" must be one of {}", words.join(", ")))
}

//! Keys as this format has them: where null is not said to be the same as nothing, it is an error.

use practicum_core::model::Diagnostics;
use practicum_core::tree::{Data, Node, Object, closest, int_of, text_of, wrong_type};

/// Text that must say something where it is given.
pub fn filled_text<'n>(
    object: &mut Object<'n>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let node = object.given(key)?;
    let text = text_of(node, key, diagnostics)?;
    if text.trim().is_empty() {
        diagnostics.error("empty-text", node.span, format!("\"{key}\" must not be blank"));
        return None;
    }
    Some(text)
}

pub fn list<'n>(
    object: &mut Object<'n>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<&'n [Node]> {
    let node = object.get(key)?;
    let list = node.as_list();
    if list.is_none() {
        wrong_type(node, key, "a list", diagnostics);
    }
    list
}

/// A whole number of any size, as JSON has them; beyond what a machine holds, the nearest that it does.
pub fn whole(node: &Node) -> Option<i64> {
    // Where the reader of JSON gives up on whole numbers.
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    match node.data {
        Data::Int(number) => Some(number),
        Data::Float(number) if number.abs() >= TOO_LARGE => Some(number as i64),
        Data::Null | Data::Bool(_) | Data::Float(_) | Data::Text(_) | Data::List(_) | Data::Map(_) => None,
    }
}

/// A whole number within bounds, both included.
pub fn int(
    object: &mut Object<'_>,
    key: &'static str,
    least: u32,
    most: u32,
    diagnostics: &mut Diagnostics,
) -> Option<u32> {
    let node = object.get(key)?;
    let number = int_of(node, key, i64::from(least), i64::from(most), diagnostics)?;
    u32::try_from(number).ok()
}

pub fn flag(object: &mut Object<'_>, key: &'static str, diagnostics: &mut Diagnostics) -> Option<bool> {
    let node = object.get(key)?;
    match node.data {
        Data::Bool(value) => Some(value),
        _ => {
            wrong_type(node, key, "true or false", diagnostics);
            None
        }
    }
}

/// One of a few words.
pub fn word<'n>(
    object: &mut Object<'n>,
    key: &'static str,
    words: &[&str],
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let node = object.get(key)?;
    let text = text_of(node, key, diagnostics)?;
    if words.contains(&text) {
        return Some(text);
    }
    let help = closest(text, words).map_or_else(
        || format!("it may be {}", words.join(", ")),
        |known| format!("did you mean \"{known}\"?"),
    );
    diagnostics.error_help("unknown-value", node.span, format!("\"{key}\" cannot be \"{text}\""), help);
    None
}

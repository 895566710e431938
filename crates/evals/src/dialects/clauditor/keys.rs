//! Readers for the keys of a clauditor spec. In this format, null is an error where it is not said to mean "not
//! given".

use practicum_core::model::Diagnostics;
use practicum_core::tree::{
    NodeData, ObjectReader, TreeNode, closest_word, node_int, node_text, report_wrong_type,
};

/// Reads a text that must not be blank if it is given.
pub fn read_filled_text<'n>(
    object: &mut ObjectReader<'n>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let node = object.get_non_null(key)?;
    let text = node_text(node, key, diagnostics)?;
    if text.trim().is_empty() {
        diagnostics.error("empty-text", node.span, format!("\"{key}\" must not be blank"));
        return None;
    }
    Some(text)
}

pub fn read_list<'n>(
    object: &mut ObjectReader<'n>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<&'n [TreeNode]> {
    let node = object.get(key)?;
    let list = node.as_list();
    if list.is_none() {
        report_wrong_type(node, key, "a list", diagnostics);
    }
    list
}

/// Gives a whole number of any size, as JSON allows. A number that is too large becomes the nearest that fits.
pub fn whole_number(node: &TreeNode) -> Option<i64> {
    // The number from which on the JSON reader no longer gives whole numbers.
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    match node.data {
        NodeData::Int(number) => Some(number),
        NodeData::Float(number) if number.abs() >= TOO_LARGE => Some(number as i64),
        NodeData::Null
        | NodeData::Bool(_)
        | NodeData::Float(_)
        | NodeData::Text(_)
        | NodeData::List(_)
        | NodeData::Map(_) => None,
    }
}

/// Reads a whole number within bounds, both included.
pub fn read_int(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    least: u32,
    most: u32,
    diagnostics: &mut Diagnostics,
) -> Option<u32> {
    let node = object.get(key)?;
    let number = node_int(node, key, i64::from(least), i64::from(most), diagnostics)?;
    u32::try_from(number).ok()
}

pub fn read_flag(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<bool> {
    let node = object.get(key)?;
    match node.data {
        NodeData::Bool(value) => Some(value),
        _ => {
            report_wrong_type(node, key, "true or false", diagnostics);
            None
        }
    }
}

/// Reads a text that must be one of a few words.
pub fn read_word<'n>(
    object: &mut ObjectReader<'n>,
    key: &'static str,
    words: &[&str],
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let node = object.get(key)?;
    let text = node_text(node, key, diagnostics)?;
    if words.contains(&text) {
        return Some(text);
    }
    let help = closest_word(text, words).map_or_else(
        || format!("it may be {}", words.join(", ")),
        |known| format!("did you mean \"{known}\"?"),
    );
    diagnostics.error_with_help("unknown-value", node.span, format!("\"{key}\" cannot be \"{text}\""), help);
    None
}

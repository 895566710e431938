//! Finds what every match of a pattern begins with, so that the backtracking engine starts only at positions where
//! a match is possible.

use regex::Regex;

use super::linear::sets_regex;
use super::syntax::{CharacterClass, CharacterSet, PatternNode, SetItem};

/// The largest number of first characters to use. More would not narrow the search further.
const MOST_CHARACTERS: usize = 16;

/// Makes a regex for the positions where a match can begin. Gives `None` if that is almost everywhere.
pub fn start_regex(node: &PatternNode) -> Option<Regex> {
    let mut sets = Vec::new();
    collect_first_sets(node, &mut sets);
    sets.truncate(MOST_CHARACTERS);
    if sets.iter().any(|set| is_selective(set)) { sets_regex(&sets) } else { None }
}

/// Adds the characters that a piece begins with. Gives `true` if they are the whole piece, so that the characters
/// of the next piece follow.
fn collect_first_sets<'n>(node: &'n PatternNode, sets: &mut Vec<&'n CharacterSet>) -> bool {
    if sets.len() >= MOST_CHARACTERS {
        return false;
    }
    match node {
        PatternNode::OneCharacter(set) => {
            sets.push(set);
            true
        }
        // These take no characters; the engine tests their conditions.
        PatternNode::Anchor(_) | PatternNode::LookAround { .. } => true,
        PatternNode::Sequence(nodes) => nodes.iter().all(|node| collect_first_sets(node, sets)),
        PatternNode::Capture(_, node) | PatternNode::Atomic(node) => collect_first_sets(node, sets),
        PatternNode::Repeat { node, min, max, .. } => {
            let times = (*min).min(MOST_CHARACTERS as u32);
            (0..times).all(|_| collect_first_sets(node, sets)) && *max == Some(times)
        }
        PatternNode::Alternatives(_) | PatternNode::BackReference { .. } | PatternNode::IfMatched { .. } => {
            false
        }
    }
}

/// Says whether a set has only few characters.
fn is_selective(set: &CharacterSet) -> bool {
    let few = |item: &SetItem| match item {
        SetItem::Range(low, high) => high.saturating_sub(*low) < 26,
        SetItem::Class { class, negated, .. } => *class == CharacterClass::Digit && !negated,
    };
    !set.negated && set.items.iter().all(few)
}

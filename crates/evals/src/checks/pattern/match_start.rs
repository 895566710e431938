//! What every match of a pattern begins with, so that the backtracking engine starts only where one
//! can be.

use regex::Regex;

use super::linear::sets_regex;
use super::syntax::{CharacterClass, CharacterSet, PatternNode, SetItem};

/// More characters than this tell no more.
const MOST_CHARACTERS: usize = 16;

/// A search for the places where a match can begin; `None` where that would be almost everywhere.
pub fn start_regex(node: &PatternNode) -> Option<Regex> {
    let mut sets = Vec::new();
    collect_first_sets(node, &mut sets);
    sets.truncate(MOST_CHARACTERS);
    if sets.iter().any(|set| is_selective(set)) { sets_regex(&sets) } else { None }
}

/// Adds the characters that a piece begins with. Gives whether they are all of it, so that those of the
/// next piece follow.
fn collect_first_sets<'n>(node: &'n PatternNode, sets: &mut Vec<&'n CharacterSet>) -> bool {
    if sets.len() >= MOST_CHARACTERS {
        return false;
    }
    match node {
        PatternNode::OneCharacter(set) => {
            sets.push(set);
            true
        }
        // They take no characters; what they ask is left to the engine.
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

/// Whether few characters are in a set.
fn is_selective(set: &CharacterSet) -> bool {
    let few = |item: &SetItem| match item {
        SetItem::Range(low, high) => high.saturating_sub(*low) < 26,
        SetItem::Class { class, negated, .. } => *class == CharacterClass::Digit && !negated,
    };
    !set.negated && set.items.iter().all(few)
}

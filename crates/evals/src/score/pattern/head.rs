//! What every match of a pattern begins with, so that the backtracking engine starts only where one
//! can be.

use regex::Regex;

use super::linear::row;
use super::syntax::{Class, Item, Node, Set};

/// More characters than this tell no more.
const LONGEST: usize = 16;

/// A search for the places where a match can begin; `None` where that would be almost everywhere.
pub fn head(node: &Node) -> Option<Regex> {
    let mut sets = Vec::new();
    collect(node, &mut sets);
    sets.truncate(LONGEST);
    if sets.iter().any(|set| is_telling(set)) { row(&sets) } else { None }
}

/// Adds the characters that a piece begins with. Gives whether they are all of it, so that those of the
/// next piece follow.
fn collect<'n>(node: &'n Node, sets: &mut Vec<&'n Set>) -> bool {
    if sets.len() >= LONGEST {
        return false;
    }
    match node {
        Node::One(set) => {
            sets.push(set);
            true
        }
        // They take no characters; what they ask is left to the engine.
        Node::At(_) | Node::Look { .. } => true,
        Node::All(nodes) => nodes.iter().all(|node| collect(node, sets)),
        Node::Capture(_, node) | Node::Atomic(node) => collect(node, sets),
        Node::Repeat { node, min, max, .. } => {
            let times = (*min).min(LONGEST as u32);
            (0..times).all(|_| collect(node, sets)) && *max == Some(times)
        }
        Node::Either(_) | Node::Same { .. } | Node::IfMatched { .. } => false,
    }
}

/// Whether few characters are in a set.
fn is_telling(set: &Set) -> bool {
    let few = |item: &Item| match item {
        Item::Range(low, high) => high.saturating_sub(*low) < 26,
        Item::Class { class, negated, .. } => *class == Class::Digit && !negated,
    };
    !set.negated && set.items.iter().all(few)
}

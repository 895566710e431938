//! Reads router sets: which of many skills must answer each prompt.

use super::super::reading;
use practicum_core::model::{ActivationExpectation, Check};
use practicum_core::tree::{ObjectReader, TreeNode};

/// The key of a router set for all skills that may answer a prompt, and the word for none of them.
const ACCEPT_KEY: &str = "accept";

fn accepted_names(item: &TreeNode) -> impl Iterator<Item = &str> {
    let listed = item.get(ACCEPT_KEY).and_then(TreeNode::as_list).unwrap_or_default();
    listed.iter().filter_map(TreeNode::as_text).map(str::trim).filter(|name| !name.is_empty())
}

fn is_none_of_them(name: &str) -> bool {
    name.eq_ignore_ascii_case("none")
}

/// Gives the skills that a listed case names.
pub fn skills_named_in(item: &TreeNode) -> impl Iterator<Item = &str> {
    let one = ["expected_skill", "skill"].into_iter().filter_map(|key| item.get(key)?.as_text());
    one.map(str::trim).chain(accepted_names(item)).filter(|name| !name.is_empty() && !is_none_of_them(name))
}

/// Reads which of many skills must answer a prompt: `skill`, where null is none, and `accept` with all that may. If
/// none of them may answer too, only the skills that may not are checked.
pub fn read_route(item: &mut ObjectReader<'_>, staged: &[String]) -> Option<Check> {
    let node = item.peek("skill")?;
    item.get("skill");
    let accept = item.peek(ACCEPT_KEY).and_then(TreeNode::as_list).unwrap_or_default();
    if item.peek(ACCEPT_KEY).is_some() {
        item.get(ACCEPT_KEY);
    }
    let own = node.as_text().map(str::trim).filter(|name| !name.is_empty());
    let listed = accept.iter().filter_map(TreeNode::as_text).map(str::trim);
    let mut accepted: Vec<String> = Vec::new();
    for name in own.into_iter().chain(listed) {
        if !accepted.iter().any(|known| known == name) {
            accepted.push(name.to_owned());
        }
    }
    let none_may = accepted.is_empty() || accepted.iter().any(|name| is_none_of_them(name));
    accepted.retain(|name| !is_none_of_them(name));
    Some(match none_may {
        false => reading::activation_check(accepted, ActivationExpectation::Must),
        true => {
            let others = staged.iter().filter(|name| !accepted.contains(name)).cloned().collect();
            reading::activation_check(others, ActivationExpectation::MustNot)
        }
    })
}

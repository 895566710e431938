//! Finds skills whose descriptions have much in common, so that an agent may confuse them.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two skills whose descriptions have much in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimilarDescriptions {
    /// The names of the two skills.
    pub skills: [String; 2],
    /// The share of their words that both have, from 0 to 1. Words that few skills have count more.
    pub likeness: f64,
}

/// The share of common words from which on two descriptions are similar.
const LEAST_LIKENESS: f64 = 0.5;
/// A word with fewer letters says too little.
const SHORTEST_WORD: usize = 3;

/// Finds the pairs of skills with similar descriptions, the most similar first. `skills` are pairs of a name and a
/// description.
pub fn find_similar_descriptions(skills: &[(String, String)]) -> Vec<SimilarDescriptions> {
    let words: Vec<BTreeSet<String>> = skills.iter().map(|(_, description)| words_of(description)).collect();
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for word in words.iter().flatten() {
        *owners.entry(word).or_default() += 1;
    }
    // A word of every skill distinguishes none of them.
    let weight = |word: &str| (skills.len() as f64 / owners.get(word).copied().unwrap_or(1) as f64).ln();
    let total = |words: &BTreeSet<String>| words.iter().map(|word| weight(word)).sum::<f64>();
    let totals: Vec<f64> = words.iter().map(total).collect();
    let mut found = Vec::new();
    for (at, one) in words.iter().enumerate() {
        for (other_at, other) in words.iter().enumerate().skip(at + 1) {
            let common: f64 = one.intersection(other).map(|word| weight(word)).sum();
            let all = totals[at] + totals[other_at] - common;
            if all > 0.0 && common / all >= LEAST_LIKENESS {
                let names = [skills[at].0.clone(), skills[other_at].0.clone()];
                found.push(SimilarDescriptions { skills: names, likeness: common / all });
            }
        }
    }
    found.sort_by(|a, b| b.likeness.total_cmp(&a.likeness));
    found
}

fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !char.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.chars().count() >= SHORTEST_WORD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_that_share_rare_words_are_similar() {
        let skill = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let skills = [
            skill("a", "Use when the user wants release notes from commits."),
            skill("b", "Use when the user wants release notes from tags."),
            skill("c", "Use when the user wants a recipe for bread."),
            skill("d", "Use when the user wants a map of rivers."),
            skill("e", ""),
        ];
        let found = find_similar_descriptions(&skills);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].skills, ["a", "b"]);
        assert_eq!(find_similar_descriptions(&[]), []);
    }
}

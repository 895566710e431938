//! Ids of cases and checks: reading them, and making unique ones.

use std::collections::{HashMap, HashSet};

use practicum_core::model::Diagnostics;
use practicum_core::tree::{NodeData, ObjectReader};

/// Ids that are unique within their file or their case.
#[derive(Debug, Default)]
pub struct UniqueIds {
    taken: HashSet<String>,
    /// The next number to try for an id that is wanted again.
    next_number: HashMap<String, u32>,
}

impl UniqueIds {
    /// Reads the id that an object gives itself: text, or a whole number, which becomes text.
    pub fn read_id(
        &mut self,
        object: &mut ObjectReader<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        let node = object.get_non_null("id");
        let id = match node.map(|node| &node.data) {
            Some(NodeData::Int(number)) => number.to_string(),
            _ => object.required_text("id", diagnostics)?.trim().to_owned(),
        };
        if !self.taken.insert(id.clone()) {
            diagnostics.error_with_help(
                "duplicate-id",
                node.map(|node| node.span),
                format!("another one is already called \"{id}\""),
                "results are compared by id, so each needs its own",
            );
        }
        Some(id)
    }

    /// Gives the wanted id, with a number after it if it is taken.
    pub fn make_unique(&mut self, wanted: &str) -> String {
        if self.taken.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let next = self.next_number.entry(wanted.to_owned()).or_insert(2);
        loop {
            let id = format!("{wanted}-{next}");
            *next += 1;
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Gives all ids in use.
    pub fn into_taken(self) -> HashSet<String> {
        self.taken
    }

    pub fn contains(&self, id: &str) -> bool {
        self.taken.contains(id)
    }
}

/// The length limit of a derived id: long enough to distinguish statements, short enough for a table.
const LONGEST_ID: usize = 48;

/// Makes an id from the first words of a text, so that adding a sibling does not rename the others. A text without
/// letters and digits gives `otherwise`.
pub fn slug(text: &str, otherwise: &str) -> String {
    let mut slug = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        if slug.is_empty() {
            // Languages without spaces write a sentence as one word.
            slug = word
                .chars()
                .scan(0, |bytes, c| {
                    *bytes += c.len_utf8();
                    (*bytes <= LONGEST_ID).then_some(c)
                })
                .collect();
        } else if slug.len() + 1 + word.len() > LONGEST_ID {
            break;
        } else {
            slug.push('-');
            slug.push_str(&word);
        }
    }
    if slug.is_empty() { otherwise.to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        for (text, expected) in [
            ("Write a haiku!", "write-a-haiku"),
            ("  brief.md exists — at last ", "brief-md-exists-at-last"),
            ("Ünïcode ok", "ünïcode-ok"),
            ("?!", "x"),
            ("", "x"),
            (
                "a statement that goes on and on for much longer than any table could ever show",
                "a-statement-that-goes-on-and-on-for-much-longer",
            ),
            ("帮我整理一下今天的笔记和昨天的笔记以及前天的笔记", "帮我整理一下今天的笔记和昨天的笔"),
        ] {
            let slug = slug(text, "x");
            assert_eq!(slug, expected);
            assert!(slug.len() <= LONGEST_ID);
        }
    }

    #[test]
    fn a_taken_id_gets_a_number() {
        let mut ids = UniqueIds::default();
        let derived: Vec<String> = ["a", "a", "a-2", "a", "b"].iter().map(|id| ids.make_unique(id)).collect();
        assert_eq!(derived, ["a", "a-2", "a-2-2", "a-3", "b"]);
    }
}

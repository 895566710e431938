//! The paragraphs of a skill's text, and the text without some of them.

use std::collections::HashSet;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::skill::split_frontmatter;

/// The text of a SKILL.md with the places of its paragraphs: paragraphs, items of lists, blocks of code, tables and
/// quotes outside of each other. Headings and the frontmatter belong to none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillParagraphs {
    text: String,
    places: Vec<Range<usize>>,
}

impl SkillParagraphs {
    /// Finds the paragraphs of a text.
    pub fn new(text: &str) -> Self {
        let (_, body) = split_frontmatter(text);
        // The body is the end of the text.
        let start = text.len() - body.len();
        let mut places = Vec::new();
        // How deep the parser is in blocks, and whether the outermost of them is a list, whose items count.
        let (mut depth, mut in_list) = (0_usize, false);
        for (event, place) in Parser::new_ext(body, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    let counts = match (&tag, depth) {
                        (Tag::List(_), 0) => {
                            in_list = true;
                            false
                        }
                        (Tag::Item, 1) => in_list,
                        (Tag::Heading { .. }, 0) => false,
                        (_, 0) => true,
                        (_, _) => false,
                    };
                    if counts {
                        places.push(start + place.start..start + place.end);
                    }
                    depth += 1;
                }
                Event::End(tag) => {
                    depth = depth.saturating_sub(1);
                    in_list &= !(depth == 0 && matches!(tag, TagEnd::List(_)));
                }
                _ => {}
            }
        }
        Self { text: text.to_owned(), places }
    }

    /// Gives the number of paragraphs.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Gives the text of each paragraph.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|place| self.text[place.clone()].trim_end())
    }

    /// Gives the whole text without some paragraphs, given by their numbers from 0.
    pub fn without(&self, left_out: &[usize]) -> String {
        let left_out: HashSet<usize> = left_out.iter().copied().collect();
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for (number, place) in self.places.iter().enumerate() {
            if left_out.contains(&number) {
                out.push_str(&self.text[at..place.start]);
                at = place.end;
            }
        }
        out.push_str(&self.text[at..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\nname: x\ndescription: y\n---\n# Title\n\nFirst paragraph\nover two lines.\n\n- one\n  - nested\n- two\n\n```sh\nls\n\npwd\n```\n\n> quoted\n\n| a | b |\n|---|---|\n| c | d |\n";

    #[test]
    fn blocks_and_items_are_paragraphs_and_headings_are_not() {
        let found = SkillParagraphs::new(TEXT);
        let texts: Vec<&str> = found.texts().collect();
        let beginnings = ["First", "- one", "- two", "```sh", "> quoted", "| a"];
        assert_eq!(texts.len(), beginnings.len(), "{texts:?}");
        for (text, beginning) in texts.iter().zip(beginnings) {
            assert!(text.starts_with(beginning), "{text}");
        }
        assert!(texts[1].contains("nested") && texts[3].contains("pwd"));
    }

    /// With a search through a list for each paragraph, this would take hours.
    #[test]
    fn many_paragraphs_are_left_out_at_once() {
        let text = "a\n\n".repeat(200_000);
        let found = SkillParagraphs::new(&text);
        assert_eq!(found.count(), 200_000);
        assert_eq!(found.without(&(0..found.count()).collect::<Vec<_>>()).trim(), "");
    }

    #[test]
    fn what_is_left_out_is_gone_and_the_rest_stays() {
        let found = SkillParagraphs::new(TEXT);
        assert_eq!(found.without(&[]), TEXT);
        let cut = found.without(&[0, 1, 3]);
        for gone in ["First paragraph", "nested", "pwd"] {
            assert!(!cut.contains(gone), "{cut}");
        }
        for kept in ["name: x", "# Title", "- two", "> quoted", "| c | d |"] {
            assert!(cut.contains(kept), "{cut}");
        }
        assert_eq!(SkillParagraphs::new("---\nname: x\n---\n").count(), 0);
        assert_eq!(SkillParagraphs::new("\u{feff}Only text.\n").count(), 1);
        // Letters of several bytes do not shift the places.
        assert_eq!(SkillParagraphs::new("Größe ä.\n\nZweiter ö.\n").without(&[0]).trim(), "Zweiter ö.");
    }
}

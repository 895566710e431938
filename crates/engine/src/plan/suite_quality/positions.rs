//! Finds the position of cases and texts in an eval file. This is a best effort, because a suite stores no
//! positions.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use practicum_core::model::{Case, CasePrompt, Span};

/// A key `id` and its value: quoted, or up to the end of a plain value.
static ID_KEY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)(?:^|[\s{,"'])id["']?[ \t]*:\s*("[^"\n]*"|'[^'\n]*'|[^\s,}"'][^\n,}]*)"#)
        .expect("a pattern")
});

/// Finds positions in one file. Texts are usually looked for in the order of the file, so each search begins where
/// the last one ended.
pub struct SuitePositions<'t> {
    text: &'t str,
    ids: OnceCell<HashMap<&'t str, Span>>,
    last: Cell<usize>,
    /// How often a text was not found further on in the file.
    misses: Cell<usize>,
}

/// The most misses. After that many, the file is probably written differently, and each miss searches the whole
/// file.
const MOST_MISSES: usize = 1000;

impl<'t> SuitePositions<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, ids: OnceCell::new(), last: Cell::new(0), misses: Cell::new(0) }
    }

    /// Finds a position of a text, quoted or not.
    pub(crate) fn find_text(&self, said: &str) -> Option<Span> {
        let line = said.lines().next().unwrap_or(said).trim();
        if line.is_empty() {
            return None;
        }
        let quoted = serde_json::to_string(line).unwrap_or_default();
        let escaped = quoted.get(1..quoted.len().saturating_sub(1)).filter(|escaped| *escaped != line);
        let (start, form) = [escaped, Some(line)]
            .into_iter()
            .flatten()
            .find_map(|form| Some((self.find_next(form)?, form)))?;
        let end = start + form.len();
        let is_quoted = self.text[..start].ends_with('"') && self.text[end..].starts_with('"');
        self.last.set(end);
        Some(if is_quoted { Span::new(start - 1, end + 1) } else { Span::new(start, end) })
    }

    /// Finds the next position of a text, or else the first.
    fn find_next(&self, form: &str) -> Option<usize> {
        let (missed, last) = (self.misses.get(), self.last.get());
        if missed > MOST_MISSES {
            return None;
        }
        let further = self.text[last..].find(form).map(|further| last + further);
        let found = further.or_else(|| self.text.find(form));
        self.misses.set(missed + usize::from(further.is_none()));
        found
    }

    /// Finds the position of a case: its id, or else its prompt.
    pub(crate) fn case_span(&self, case: &Case) -> Option<Span> {
        let asked = || match &case.prompt {
            CasePrompt::Turns(turns) => turns.first().and_then(|turn| self.find_text(turn)),
            CasePrompt::SkillCommand { args } => self.find_text(args),
        };
        self.ids().get(case.id.as_str()).copied().or_else(asked).or_else(|| self.find_text(&case.id))
    }

    fn ids(&self) -> &HashMap<&'t str, Span> {
        self.ids.get_or_init(|| {
            let mut ids = HashMap::new();
            for found in ID_KEY.captures_iter(self.text).filter_map(|found| found.get(1)) {
                let value = found.as_str().split(" #").next().unwrap_or_default().trim_end();
                let span = Span::new(found.start(), found.start() + value.len());
                ids.entry(value.trim_matches(['"', '\''])).or_insert(span);
            }
            ids
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Option<Span>) -> Option<&str> {
        span.map(|span| &text[span.start..span.end])
    }

    #[test]
    fn what_is_said_is_found_as_it_is_written() {
        let text = "{\"id\": \"a\", \"x\": \"say \\\"hi\\\"\"}";
        let places = SuitePositions::new(text);
        assert_eq!(shown(text, places.find_text("say \"hi\"")), Some("\"say \\\"hi\\\"\""));
        assert_eq!(places.find_text("absent"), None);
    }

    #[test]
    fn a_search_goes_on_from_the_last_and_then_round() {
        let text = "one two one two";
        let places = SuitePositions::new(text);
        let starts = ["two", "one", "two", "one"].map(|word| places.find_text(word).map(|span| span.start));
        assert_eq!(starts, [Some(4), Some(8), Some(12), Some(0)]);
    }

    #[test]
    fn ids_in_every_way_of_writing_them() {
        for (text, id, written) in [
            ("- id: a\n  prompt: p", "a", "a"),
            ("- id: a b # why\n", "a b", "a b"),
            ("- {id: a, prompt: p}", "a", "a"),
            ("[{\"id\": \"a\"}, {\"id\": \"ab\"}]", "ab", "\"ab\""),
            ("- 'id' : 'a'\n", "a", "'a'"),
            ("- id: 7\n", "7", "7"),
            ("{\n  \"id\":\n    \"a\"\n}", "a", "\"a\""),
            ("- valid: a\n- id: a\n", "a", "a"),
        ] {
            let places = SuitePositions::new(text);
            let span = places.ids().get(id).copied();
            assert_eq!(shown(text, span), Some(written), "{text}");
        }
        let text = "- valid: a\n- id: a\n";
        assert_eq!(SuitePositions::new(text).ids()["a"].start, 17);
    }
}

//! Values that are recognised by their form: phone numbers, dates, colours.
//!
//! One pattern serves both to test a whole value and to find such values in a text.

use std::sync::OnceLock;

use super::{InvalidPattern, PythonPattern, TooMuchBacktracking};
use practicum_core::tree::closest_word;

/// A format with a name and a pattern.
pub struct NamedFormat {
    /// The name of the format.
    pub name: &'static str,
    /// The pattern, in Python's `re` syntax.
    pub pattern: &'static str,
    /// A value that has the format.
    pub example: &'static str,
    compiled: OnceLock<PythonPattern>,
}

const fn named_format(name: &'static str, pattern: &'static str, example: &'static str) -> NamedFormat {
    NamedFormat { name, pattern, example, compiled: OnceLock::new() }
}

const URL_PATTERN: &str = r#"https?://[^\s\)\"'>]+"#;

/// The format of a web address, which several checks use.
pub static URL_FORMAT: NamedFormat = named_format("url", URL_PATTERN, "https://example.org/");

/// All named formats. Eval files refer to these names, so no name may change its meaning.
pub static FORMATS: [NamedFormat; 20] = [
    named_format("phone_us", r"\(?\d{3}\)?[\s.-]?\d{3}[\s.-]?\d{4}", "(415) 555-0132"),
    named_format("phone_intl", r"\+\d{1,3}[\s.-]?\d{4,14}", "+44 2079460958"),
    named_format("email", r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}", "ada@example.org"),
    named_format("url", URL_PATTERN, "https://example.org/a?b=1"),
    named_format(
        "domain",
        r"(?i)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\.[a-z]{2,}",
        "docs.example.org",
    ),
    named_format("date_iso", r"\d{4}-\d{2}-\d{2}", "2026-02-28"),
    named_format("date_us", r"\d{1,2}/\d{1,2}/\d{2,4}", "2/28/2026"),
    named_format("time_24h", r"\d{1,2}:\d{2}(?::\d{2})?", "18:30"),
    named_format("time_12h", r"\d{1,2}:\d{2}\s?[AaPp][Mm]", "6:30 PM"),
    named_format("currency_usd", r"\$(?=[\d,]*\d)[\d,]+(?:\.\d{2})?", "$1,299.00"),
    named_format("currency_eur", r"€(?=[\d.,]*\d)[\d.,]+", "€1.299,00"),
    named_format("zip_us", r"\d{5}(?:-\d{4})?", "94103-1234"),
    named_format("zip_uk", r"[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}", "SW1A 1AA"),
    named_format("percentage", r"\d+(?:\.\d+)?%", "12.5%"),
    named_format("ipv4", r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}", "192.0.2.7"),
    named_format(
        "uuid",
        r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
        "123e4567-e89b-12d3-a456-426614174000",
    ),
    named_format("hex_color", r"#[0-9a-fA-F]{6}", "#ff8800"),
    named_format("latitude", r"-?\d{1,2}\.\d+", "37.7749"),
    named_format("longitude", r"-?\d{1,3}\.\d+", "-122.4194"),
    named_format("star_rating", r"\d(?:\.\d)?\s?(?:stars?|★|⭐)", "4.5 stars"),
];

impl NamedFormat {
    /// Gives the format of this name.
    pub fn find_format(name: &str) -> Option<&'static NamedFormat> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Gives the format name that is most similar to a name that is not a format.
    pub fn near_miss(name: &str) -> Option<&'static str> {
        let names: Vec<&'static str> = FORMATS.iter().map(|format| format.name).collect();
        closest_word(name, &names)
    }

    /// Says whether the whole value has this format.
    pub fn matches_value(&self, value: &str) -> Result<bool, TooMuchBacktracking> {
        self.compiled().is_full_match(value)
    }

    /// Counts the values of this format in a text.
    pub fn count(&self, text: &str) -> Result<usize, TooMuchBacktracking> {
        self.compiled().count(text)
    }

    /// Gives the different values of this format in a text, in order, at most `most`.
    pub fn find_all(&self, text: &str, most: usize) -> Result<Vec<String>, TooMuchBacktracking> {
        let mut found: Vec<String> = Vec::new();
        let mut from = 0;
        while found.len() < most {
            let Some(range) = self.compiled().find(&text[from..])? else { break };
            let value = &text[from + range.start..from + range.end];
            if !found.iter().any(|earlier| earlier == value) {
                found.push(value.to_owned());
            }
            // No format matches the empty text, so the loop ends.
            from += range.end.max(1);
        }
        Ok(found)
    }

    /// Gives the pattern of the format, compiled once.
    pub fn compiled(&self) -> &PythonPattern {
        self.compiled.get_or_init(|| {
            PythonPattern::new(self.pattern)
                .expect("the patterns above are constants, and a test compiles them")
        })
    }
}

/// The format that a field's value must have: a named format, or a pattern of the author's own.
#[derive(Clone)]
pub enum ValueFormat {
    /// A format that has a name.
    Named(&'static NamedFormat),
    /// A pattern for the whole value.
    Inline(PythonPattern),
}

impl ValueFormat {
    /// Makes a named format if the text is a format's name, and a pattern otherwise. The caller may want to warn
    /// if the text is nearly a format's name.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        match NamedFormat::find_format(text) {
            Some(format) => Ok(ValueFormat::Named(format)),
            None => Ok(ValueFormat::Inline(PythonPattern::new(text)?)),
        }
    }

    /// Says whether a value has the format.
    pub fn matches_value(&self, value: &str) -> Result<bool, TooMuchBacktracking> {
        match self {
            ValueFormat::Named(format) => format.matches_value(value),
            ValueFormat::Inline(pattern) => pattern.is_full_match(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_knows_its_example() {
        for format in &FORMATS {
            assert_eq!(format.matches_value(format.example), Ok(true), "{}", format.name);
            assert_eq!(format.count(&format!("see {} ok", format.example)), Ok(1), "{}", format.name);
            assert_eq!(format.matches_value(""), Ok(false), "{}", format.name);
        }
    }

    #[test]
    fn values_and_scans() {
        for (name, text, whole, count) in [
            ("phone_us", "4155550132", true, 1),
            ("phone_us", "415-555-0132\n", false, 1),
            ("phone_us", "١٢٣-456-7890", true, 1),
            ("email", "a@b", false, 0),
            ("email", "a@b.co, c@d.org", false, 2),
            ("url", "(https://a.org) <http://b.org>", false, 2),
            ("url", "https://a.org/b\"c", false, 1),
            ("domain", "Example.ORG", true, 1),
            ("domain", "-a.org", false, 1),
            ("date_iso", "2026-02-30", true, 1),
            ("time_24h", "99:99", true, 1),
            ("currency_usd", "$,", false, 0),
            ("currency_usd", "$,1", true, 1),
            ("currency_usd", "$5.5", false, 1),
            ("currency_eur", "€.,", false, 0),
            ("zip_us", "941031234", false, 1),
            ("hex_color", "#ff88001", false, 1),
            ("star_rating", "5★ 4⭐ 3 star", false, 3),
            ("ipv4", "999.1.1.1", true, 1),
        ] {
            let format = NamedFormat::find_format(name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(format.matches_value(text), Ok(whole), "{name} {text:?}");
            assert_eq!(format.count(text), Ok(count), "{name} in {text:?}");
        }
    }

    #[test]
    fn names() {
        for (name, known, near) in [
            ("email", true, Some("email")),
            ("EMAIL", false, Some("email")),
            ("emial", false, Some("email")),
            ("phone-us", false, Some("phone_us")),
            (r"\d{3}", false, None),
        ] {
            assert_eq!(NamedFormat::find_format(name).is_some(), known, "{name}");
            assert_eq!(NamedFormat::near_miss(name), near, "{name}");
        }
    }

    #[test]
    fn a_field_may_bring_its_own_pattern() {
        for (format, value, expected) in [
            ("zip_us", "94103", Some(true)),
            (r"\d{3}", "123", Some(true)),
            (r"\d{3}", "1234", Some(false)),
            ("[", "[", None),
        ] {
            let found = ValueFormat::new(format).ok().map(|format| format.matches_value(value));
            assert_eq!(found, expected.map(Ok), "{format} {value}");
        }
    }
}

//! Looks up a judge's quotes in the text that the judge was shown.
//!
//! In: a text, a quote. Out: whether the quote is in the text, and whether it can support a pass. A quote may
//! differ in case, white space, Markdown marks, kinds of quotation marks and dashes, composed letters, and JSON escapes, and
//! may skip a part with an ellipsis. Never: accepts words that are not there.

use std::borrow::Cow;
use std::sync::Arc;

use icu_normalizer::ComposingNormalizerBorrowed;

use super::prompt::make_visible;
use crate::workspace::pictures::JudgePicture;

/// The fewest letters and digits that a quote needs to support a verdict, unless it is a whole line.
const FEWEST_LETTERS: usize = 3;

/// The most parts that ellipses may join in one quote.
const MOST_PARTS: usize = 8;

/// The longest address of a Markdown link.
const LONGEST_LINK: usize = 2_000;

/// The result of looking up a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteCheck {
    /// The quote is in the evidence.
    Supports,
    /// The quote is in the shown text but supports nothing: it is too short, or only the task, the background or
    /// one of our headings contains it.
    SupportsNothing,
    Invented,
}

/// Says whether a quote is in a text that a model was shown, and is long enough to support its answer.
pub fn supports(text: &str, quote: &str) -> bool {
    QuotableText::new(make_visible(text)).check_quote(quote) == QuoteCheck::Supports
}

/// A text in which quotes are looked up.
pub struct QuotableText {
    /// The text that the judge is shown.
    pub text: String,
    /// Background that the judge is shown beside the text; may be empty.
    pub background: String,
    evidence: NormalisedText,
    /// All shown texts, including those that are no evidence.
    shown: Vec<NormalisedText>,
    headings: &'static [&'static str],
    /// Lines that count as evidence only as a whole, normalised.
    whole_lines: Vec<String>,
    /// Pictures that the judge is shown; may be empty. If there are any, only they are evidence.
    pub pictures: Arc<Vec<JudgePicture>>,
}

impl QuotableText {
    /// Makes a text that is evidence from beginning to end.
    pub fn new(text: String) -> Self {
        let evidence = text.clone();
        Self::with_partial_evidence(text, &evidence)
    }

    /// Makes a text of which only a part is evidence.
    pub fn with_partial_evidence(text: String, evidence: &str) -> Self {
        let shown = if text == evidence { Vec::new() } else { vec![NormalisedText::from_text(&text)] };
        Self {
            text,
            background: String::new(),
            evidence: NormalisedText::from_text(evidence),
            shown,
            headings: &[],
            whole_lines: Vec::new(),
            pictures: Arc::default(),
        }
    }

    /// Adds background that is no evidence.
    #[must_use]
    pub fn with_background(mut self, background: String) -> Self {
        if !background.is_empty() {
            self.shown.push(NormalisedText::from_text(&background));
        }
        Self { background, ..self }
    }

    /// Sets the headings that this program wrote into the evidence. They support nothing.
    #[must_use]
    pub fn with_headings(self, headings: &'static [&'static str]) -> Self {
        Self { headings, ..self }
    }

    /// Sets the lines that support a verdict only if they are quoted as a whole.
    #[must_use]
    pub fn with_whole_lines(self, lines: impl Iterator<Item = String>) -> Self {
        Self { whole_lines: lines.map(|line| remove_markup(&line)).collect(), ..self }
    }

    /// Sets the pictures that the judge is shown.
    #[must_use]
    pub fn with_pictures(self, pictures: Arc<Vec<JudgePicture>>) -> Self {
        Self { pictures, ..self }
    }

    /// Says whether a quote describes one of the pictures: `picture 2: three blue bars`.
    fn describes_picture(&self, quote: &str) -> bool {
        let quote = quote.trim().to_lowercase();
        let described = quote.strip_prefix("picture").and_then(|rest| rest.split_once(':'));
        let Some((number, seen)) = described else { return false };
        let is_shown = |number: usize| (1..=self.pictures.len()).contains(&number);
        number.trim().parse().is_ok_and(is_shown) && count_letters(seen) >= FEWEST_LETTERS
    }

    /// Says whether any shown text contains the quote.
    pub fn has(&self, quote: &str) -> bool {
        self.check_quote(quote) != QuoteCheck::Invented
    }

    /// Counts how often the letters and digits of a value occur in the evidence as whole words, whatever is between them.
    /// A number is also counted where it is written in another way: 1000.0 is `1,000`, and 4.5 is `4.50`.
    pub fn count_value(&self, value: &str) -> usize {
        let number: Option<f64> = value.trim().parse().ok();
        let value = letters_of(&make_visible(value));
        let count = |text: &str| count_whole_words(text, &value);
        let counted = count(&self.evidence.plain).max(count(&self.evidence.unmarked));
        let equal = |number: f64| numbers_in(&self.evidence.plain).filter(|found| *found == number).count();
        counted.max(number.map_or(0, equal))
    }

    /// Whether the evidence has a value: its words, or the value itself where it has no letters or leaves a part out.
    pub fn has_value(&self, value: &str) -> bool {
        let has_words = !letters_of(value).is_empty();
        let is_cut = value.contains('…') || value.contains("...");
        self.count_value(value) > 0 || (!has_words || is_cut) && self.has(value)
    }

    /// Looks up a quote in the evidence, and then in everything else that was shown.
    pub fn check_quote(&self, quote: &str) -> QuoteCheck {
        let quote = make_visible(quote);
        let bare = quote.trim().trim_matches(|c| matches!(straighten(c), '"' | '\'' | '`'));
        let candidates = [quote.as_str(), bare];
        if !self.pictures.is_empty() {
            return match self.describes_picture(bare) {
                true => QuoteCheck::Supports,
                false => QuoteCheck::SupportsNothing,
            };
        }
        if candidates.iter().any(|quote| self.evidence.has(quote)) {
            let is_ours = self.headings.iter().any(|heading| remove_markup(heading) == remove_markup(bare));
            return match self.evidence.is_substantial(bare) && !is_ours {
                true => QuoteCheck::Supports,
                false => QuoteCheck::SupportsNothing,
            };
        }
        let whole = remove_markup(bare);
        if self.whole_lines.contains(&whole) {
            return QuoteCheck::Supports;
        }
        let is_shown = |quote: &&str| self.shown.iter().any(|text| text.has(quote));
        let says_nothing = !quote.chars().any(char::is_alphanumeric);
        match says_nothing || candidates.iter().any(is_shown) {
            true => QuoteCheck::SupportsNothing,
            false => QuoteCheck::Invented,
        }
    }
}

/// A text in the two forms with which quotes are compared.
struct NormalisedText {
    /// The text with uniform white space, case and typography.
    plain: String,
    /// The text without JSON escapes and Markdown marks as well.
    unmarked: String,
    /// The lines that are too short to support a verdict otherwise, for quotes of the whole line.
    short_lines: Vec<String>,
}

impl NormalisedText {
    fn from_text(text: &str) -> Self {
        let lines = text.lines().map(normalise_plain).filter(|line| count_letters(line) < FEWEST_LETTERS);
        let mut short_lines: Vec<String> = lines.filter(|line| count_letters(line) > 0).collect();
        short_lines.sort_unstable();
        short_lines.dedup();
        Self { plain: normalise_plain(text), unmarked: remove_markup(text), short_lines }
    }

    fn has(&self, quote: &str) -> bool {
        contains(&self.plain, &normalise_plain(quote))
            || contains(&self.unmarked, &remove_markup(quote))
            || contains_parts(&self.plain, quote, normalise_plain)
            || contains_parts(&self.unmarked, quote, remove_markup)
    }

    /// Says whether a quote that was found is long enough to mean something: "a" is in every text.
    fn is_substantial(&self, quote: &str) -> bool {
        count_letters(quote) >= FEWEST_LETTERS
            || self.short_lines.binary_search(&normalise_plain(quote)).is_ok()
    }
}

/// Gives the numbers in a text. Commas in them separate thousands.
fn numbers_in(text: &str) -> impl Iterator<Item = f64> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    parts.filter_map(|part| part.trim_matches(['.', ',']).replace(',', "").parse().ok())
}

/// Composes letters and their accents, because `é` may be written as one character or as two.
fn compose_letters(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// The letters and digits of a text, in lower case.
pub fn letters_of(text: &str) -> String {
    compose_letters(text).chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// How often a text has these letters and digits, from the start of a word to the end of one. Scripts that write no
/// spaces have a word at every character.
fn count_whole_words(text: &str, letters: &str) -> usize {
    let is_kind = |a: char, b: char| a.is_numeric() == b.is_numeric() && a < '\u{2e80}' && b < '\u{2e80}';
    let continues = |a: Option<char>, b: char| a.is_some_and(|a| a.is_alphanumeric() && is_kind(a, b));
    let (mut joined, mut starts) = (String::new(), Vec::new());
    let mut before = None;
    for c in text.chars() {
        if c.is_alphanumeric() {
            if !continues(before, c) {
                starts.push(joined.len());
            }
            joined.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    // A word ends where the next one starts, and the last one at the end.
    starts.push(joined.len());
    if letters.is_empty() {
        return 0;
    }
    let is_edge = |at: usize| starts.binary_search(&at).is_ok();
    let is_whole = |at: usize| is_edge(at) && is_edge(at + letters.len());
    joined.match_indices(letters).filter(|(at, _)| is_whole(*at)).count()
}

fn count_letters(text: &str) -> usize {
    // In a script without spaces between words, one character is about a word.
    text.chars().filter(|c| c.is_alphanumeric()).map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum()
}

fn contains(text: &str, quote: &str) -> bool {
    !quote.is_empty() && text.contains(quote)
}

/// Says whether the text contains all parts between the ellipses, in their order.
fn contains_parts(text: &str, quote: &str, normalise: fn(&str) -> String) -> bool {
    let quote = quote.replace("[...]", "…").replace("(...)", "…").replace("[…]", "…").replace("(…)", "…");
    let quote = quote.replace("...", "…");
    let parts: Vec<String> = quote.split('…').map(normalise).filter(|part| !part.is_empty()).collect();
    let is_word = |part: &String| count_letters(part) >= FEWEST_LETTERS;
    if !quote.contains('…') || parts.is_empty() || parts.len() > MOST_PARTS || !parts.iter().all(is_word) {
        return false;
    }
    let mut rest = text;
    parts.iter().all(|part| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Changes a text to lower case, single spaces, and straight quotation marks and dashes.
fn normalise_plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in compose_letters(text).split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().map(straighten).flat_map(char::to_lowercase));
    }
    out
}

fn straighten(c: char) -> char {
    match c {
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        c => c,
    }
}

/// Resolves JSON escapes and removes Markdown marks.
fn remove_markup(text: &str) -> String {
    let text = remove_links(&unescape(text));
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`' | '~'))
        .map(|c| if c == '|' { ' ' } else { c })
        .collect();
    let is_mark =
        |word: &&str| word.chars().all(|c| matches!(straighten(c), '-' | '+' | '>' | '#' | ':' | '•'));
    normalise_plain(&text.split_whitespace().filter(|word| !is_mark(word)).collect::<Vec<_>>().join(" "))
}

/// Resolves the escapes of JSON strings, however often the text was escaped.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        while rest.next_if_eq(&'\\').is_some() {}
        match rest.peek() {
            Some('n' | 't' | 'r') => {
                rest.next();
                out.push(' ');
            }
            Some('u') => out.extend(code_point(&mut rest)),
            Some(_) | None => {}
        }
    }
    out
}

/// Reads the character that four hexadecimal digits after a `u` stand for, or the `u` itself if there are none.
fn code_point(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    let mut ahead = rest.clone();
    ahead.next();
    let digits: String = ahead.by_ref().take(4).collect();
    let escaped =
        u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4).and_then(char::from_u32);
    if escaped.is_some() {
        *rest = ahead;
        return escaped;
    }
    rest.next()
}

/// Replaces `[text](address)` by its text.
fn remove_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, link) = rest.split_at(at);
        let ends = |c: char| matches!(c, ')' | '[' | ']') || c.is_whitespace();
        let end = link.char_indices().skip(1).take(LONGEST_LINK).find(|(_, c)| ends(*c));
        match (end, before.rfind('[')) {
            (Some((end, ')')), Some(open)) => {
                out.push_str(&before[..open]);
                out.push_str(&before[open + 1..]);
                rest = &link[end + 1..];
            }
            _ => {
                out.push_str(before);
                out.push_str("](");
                rest = &link[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use QuoteCheck::{Invented, Supports, SupportsNothing};

    #[test]
    fn a_quote_is_found_as_people_quote_and_nothing_else_is() {
        let record = "\
user: Write the report.
agent: I’ll **quickly** write it — see [the guide](https://example.org/a_b) for more.
tool Write with {\"path\":\"report.md\",\"content\":\"# Report\\n\\nSays \\\"hello\\\" to C:\\\\new\\u00e9.\"}
  gave: ok
### report.md (created, 40 bytes)
# Report
| name | count |
|---|---|
| snake_case | 3 |
- first item
- second item
> quoted words
The answer:
4
done \u{1b}[1mhello
[… 812 bytes left out …]
Schluß. 你好
";
        let record = QuotableText::new(make_visible(record));
        for (quote, expected) in [
            ("Write the report.", Supports),
            ("write   THE\nreport", Supports),
            ("I'll quickly write it - see the guide for more", Supports),
            ("I'll **quickly** write it", Supports),
            ("“I’ll quickly write it”", Supports),
            ("\"path\":\"report.md\"", Supports),
            ("https://example.org/a_b", Supports),
            ("Report\n\nSays \"hello\" to", Supports),
            ("# Report\\n\\nSays \\\"hello\\\"", Supports),
            ("name count snake_case 3", Supports),
            ("| snake_case | 3 |", Supports),
            ("first item\nsecond item", Supports),
            ("quoted words", Supports),
            ("done \u{1b}[1mhello", Supports),
            ("done \\u{1b}[1mhello", Supports),
            ("… 812 bytes left out …", Supports),
            ("Write the … created, 40 bytes", Supports),
            ("Write the [...] created, 40 bytes...", Supports),
            ("...quickly write it", Supports),
            ("你好", Supports),
            // A whole line may be short.
            ("4", Supports),
            ("first third", Invented),
            ("created, 40 bytes … Write the", Invented),
            ("Write the … nothing like it", Invented),
            ("I'll slowly write it", Invented),
            ("wrote it", Invented),
            ("a … e … i", Invented),
            ("done hello", Invented),
            ("a", SupportsNothing),
            ("3", SupportsNothing),
            (".", SupportsNothing),
            ("…", SupportsNothing),
            ("**", SupportsNothing),
            ("", SupportsNothing),
            (" \n", SupportsNothing),
        ] {
            assert_eq!(record.check_quote(quote), expected, "{quote:?}");
        }
    }

    #[test]
    fn context_and_our_own_headings_support_nothing() {
        let evidence = "## What happened\nagent: Ahoy!\n";
        let shown = format!("## To know\nIt should say ahoy.\nuser: Greet me.\n{evidence}in/a: changed\n");
        let record = QuotableText::with_partial_evidence(shown, evidence)
            .with_background("agent: Beside it.\n".to_owned())
            .with_headings(&["## What happened"])
            .with_whole_lines(std::iter::once("in/a: changed\n".to_owned()));
        for (quote, expected) in [
            ("agent: Ahoy!", Supports),
            ("It should say ahoy", SupportsNothing),
            ("Greet me.", SupportsNothing),
            ("Beside it.", SupportsNothing),
            ("in/a", SupportsNothing),
            ("`in/a: changed`", Supports),
            ("What happened", SupportsNothing),
            ("## What happened agent: Ahoy!", Supports),
            ("It says ahoy", Invented),
        ] {
            assert_eq!(record.check_quote(quote), expected, "{quote:?}");
        }
    }

    #[test]
    fn long_and_hostile_texts_are_looked_up_quickly() {
        for text in
            ["](".repeat(100_000), "\\".repeat(200_000), "[".repeat(100_000) + "](", "… ".repeat(60_000)]
        {
            let record = QuotableText::new(text.clone());
            assert!(record.check_quote(&text) != Invented);
            assert_eq!(record.check_quote("not there"), Invented);
        }
    }
}

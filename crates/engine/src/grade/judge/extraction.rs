//! Reads lists out of a text: a model finds the entries, and a check decides whether there are enough.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::python_text::python_text;
use super::question::{AnswerProblem, AnswerReader};
use super::quotes::{QuotableText, letters_of};
use practicum_core::model::{OutputSection, SectionTier, UnsupportedPassPolicy};
use practicum_evals::checks::{ExtractedSections, SectionEntry};

/// The most entries that are accepted for one tier. No text that a person would read has more.
const MOST_ENTRIES: usize = 10_000;

/// The most doubtful values that are reported.
const MOST_FLAGS: usize = 10;

pub fn schema(sections: &[OutputSection]) -> Value {
    let closed = |properties: Map<String, Value>| {
        let required: Vec<&String> = properties.keys().collect();
        json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties})
    };
    let tier = |tier: &SectionTier| {
        let fields =
            tier.fields.iter().map(|field| (field.name.clone(), json!({"type": ["string", "null"]})));
        (tier.label.clone(), json!({"type": "array", "items": closed(fields.collect())}))
    };
    let section =
        |section: &OutputSection| (section.name.clone(), closed(section.tiers.iter().map(tier).collect()));
    closed(sections.iter().map(section).collect())
}

/// Collects the entries that a model found in a text.
pub struct ExtractionReader<'e> {
    sections: &'e [OutputSection],
    text: &'e QuotableText,
    unsupported: UnsupportedPassPolicy,
    pub extracted: ExtractedSections,
    pub flags: Vec<String>,
}

impl<'e> ExtractionReader<'e> {
    pub fn new(
        sections: &'e [OutputSection],
        text: &'e QuotableText,
        unsupported: UnsupportedPassPolicy,
    ) -> Self {
        Self { sections, text, unsupported, extracted: ExtractedSections::default(), flags: Vec::new() }
    }

    /// Describes the first entry none of whose values is in the text. An entry with at least one value in the text
    /// is accepted, because the model may only have written the others differently.
    fn invented_entry(&self, entries: &[SectionEntry]) -> Option<String> {
        let is_invented = |entry: &SectionEntry| {
            let mut values = entry.values().flatten().filter(|value| !value.trim().is_empty()).peekable();
            values.peek().is_some() && !values.any(|value| self.text.has_value(value))
        };
        let at = entries.iter().position(is_invented)?;
        Some(format!("has an entry {} of which nothing is in the text", at + 1))
    }

    /// Says whether the text has a value, perhaps with other separators. A yes or no is always accepted, because
    /// it may stand for other words.
    fn has_value(&self, value: &str) -> bool {
        let is_answer = ["true", "false", "yes", "no"].contains(&value.trim().to_lowercase().as_str());
        value.trim().is_empty() || is_answer || self.text.has_value(value)
    }

    /// Gives the values that are not in the text, each with its field.
    fn unsupported_values<'v>(&self, entries: &'v [SectionEntry]) -> Vec<(&'v str, &'v str)> {
        let values = entries.iter().flatten();
        let values = values.filter_map(|(field, value)| Some((field.as_str(), value.as_deref()?)));
        values.filter(|(_, value)| !self.has_value(value)).collect()
    }

    fn flag(&mut self, flag: String) {
        if self.flags.len() < MOST_FLAGS {
            self.flags.push(flag);
        }
    }

    /// Leaves out entries without any value, and those that repeat an earlier one more often than the text has it.
    fn without_uncounted(&mut self, entries: Vec<SectionEntry>) -> Vec<SectionEntry> {
        let mut counts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        let mut kept = Vec::new();
        for (at, entry) in entries.into_iter().enumerate() {
            // An entry without fields is all that was asked for.
            if !entry.is_empty() && entry.values().flatten().all(|value| value.trim().is_empty()) {
                self.flag(format!("entry {} has no value and is not counted", at + 1));
                continue;
            }
            let count = counts.entry(entry.values().map(comparable_value).collect()).or_default();
            *count += 1;
            if *count > 1 && *count > self.occurrences(&entry) {
                self.flag(format!("entry {} repeats an earlier one and is not counted", at + 1));
            } else {
                kept.push(entry);
            }
        }
        kept
    }

    /// Counts how often the text contains an entry: as often as its rarest value.
    fn occurrences(&self, entry: &SectionEntry) -> usize {
        let values = entry.values().flatten().map(|value| self.text.count_value(value));
        values.filter(|count| *count > 0).min().unwrap_or_default()
    }

    /// Stores the entries of a tier, and the fields with values that are not in the text.
    fn keep_entries(&mut self, section: &OutputSection, tier: &SectionTier, entries: Vec<SectionEntry>) {
        let entries = self.without_uncounted(entries);
        let unsupported = self.unsupported_values(&entries);
        let fields: BTreeSet<String> = unsupported.iter().map(|(field, _)| (*field).to_owned()).collect();
        let flags: Vec<String> =
            unsupported.iter().map(|(_, value)| format!("read, but not in the text: {value}")).collect();
        flags.into_iter().for_each(|flag| self.flag(flag));
        if self.unsupported == UnsupportedPassPolicy::NotScored {
            self.extracted.add_doubtful(section, tier, fields);
        }
        self.extracted.insert(section, tier, entries);
    }
}

impl AnswerReader for ExtractionReader<'_> {
    /// An empty object is an answer too: it says that there is nothing to read.
    fn looks_like_answer(&self, answer: &Value) -> bool {
        answer.as_object().is_some_and(Map::is_empty)
            || self.sections.iter().any(|section| answer.get(&section.name).is_some())
    }

    fn read_answer(&mut self, answer: &Value, round: usize) -> Result<(), AnswerProblem> {
        let last = round > 0;
        let mut problems = Vec::new();
        for section in self.sections {
            for tier in &section.tiers {
                if self.extracted.get(section, tier).is_some() {
                    continue;
                }
                let given = answer.get(&section.name).and_then(|section| section.get(&tier.label));
                let read = read_entries(tier, given, last, &self.text.text);
                let invented = read.as_deref().ok().and_then(|entries| {
                    let doubtful = || {
                        let (field, _) = *self.unsupported_values(entries).first().filter(|_| !last)?;
                        Some(format!("has an entry whose \"{field}\" is not in the text"))
                    };
                    self.invented_entry(entries).or_else(doubtful)
                });
                let accepted = last && self.unsupported == UnsupportedPassPolicy::Accept;
                match read.and_then(|read| invented.filter(|_| !accepted).map_or(Ok(read), Err)) {
                    Ok(entries) => {
                        self.keep_entries(section, tier, entries);
                    }
                    Err(problem) => {
                        problems.push(format!("\"{}\" of \"{}\" {problem}", tier.label, section.name));
                    }
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(AnswerProblem::broken_form(problems.join("; "), round)) }
    }

    fn reset(&mut self) {
        *self = Self::new(self.sections, self.text, self.unsupported);
    }
}

/// Reads the entries of a tier. In the first round, anything missing is an error, because the model may have
/// forgotten it. In the last round, a missing value counts as absent, and a missing tier that needs entries counts
/// as empty. A missing tier that needs no entries stays an error: silence must not pass.
fn read_entries(
    tier: &SectionTier,
    given: Option<&Value>,
    last: bool,
    text: &str,
) -> Result<Vec<SectionEntry>, String> {
    let given = match given.filter(|given| !given.is_null()) {
        Some(given) => given.as_array().ok_or("must be a list")?,
        None if last && tier.min_entries > 0 => return Ok(Vec::new()),
        None => return Err("is missing, and must be an empty list if there are no entries".to_owned()),
    };
    if given.len() > MOST_ENTRIES {
        return Err(format!("has more than {MOST_ENTRIES} entries"));
    }
    let mut entries = Vec::new();
    for (at, entry) in given.iter().enumerate() {
        let fields = entry.as_object().ok_or_else(|| format!("has an entry {} that is no object", at + 1))?;
        let mut read = SectionEntry::new();
        for field in &tier.fields {
            let value = match fields.get(&field.name) {
                Some(Value::Null) => None,
                Some(value) => Some(long_number_in(text, value).unwrap_or_else(|| python_text(value))),
                None if last => None,
                None => {
                    return Err(entry_error(
                        at,
                        &field.name,
                        "is missing, and must be null if there is none",
                    ));
                }
            };
            read.insert(field.name.clone(), value);
        }
        entries.push(read);
    }
    Ok(entries)
}

/// Gives a whole number of the text that a model reported as a number with more digits than are kept. `None` if the
/// value is no such number, or the text does not have it.
fn long_number_in(text: &str, value: &Value) -> Option<String> {
    let rounded = value.as_f64().filter(|_| value.is_f64())?;
    // Smaller whole numbers are kept exactly.
    if rounded.fract() != 0.0 || rounded.abs() < i64::MAX as f64 {
        return None;
    }
    let digits = text.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let sign = if rounded < 0.0 { "-" } else { "" };
    let found =
        digits.map(|digits| format!("{sign}{digits}")).find(|digits| digits.parse() == Ok(rounded))?;
    Some(found)
}

/// Gives a value without case and separators, the form in which entries are compared.
fn comparable_value(value: &Option<String>) -> String {
    let value = value.as_deref().unwrap_or_default();
    let letters = letters_of(value);
    if letters.is_empty() { value.trim().to_owned() } else { letters }
}

fn entry_error(at: usize, field: &str, what: &str) -> String {
    format!("has an entry {} whose \"{field}\" {what}", at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::SectionField;

    fn sections() -> Vec<OutputSection> {
        let field =
            |name: &str| SectionField { id: name.into(), name: name.into(), required: true, format: None };
        let tier = |label: &str, min_entries: u32| SectionTier {
            label: label.into(),
            description: None,
            min_entries,
            max_entries: None,
            fields: vec![field("name"), field("zip")],
        };
        vec![OutputSection { name: "V".into(), tiers: vec![tier("near", 1), tier("far", 0)] }]
    }

    /// Gives the number of entries of each tier (`None` if the tier was not read), whether the answer was
    /// complete, and the number of flags.
    fn check(answers: &[Value], unsupported: UnsupportedPassPolicy) -> (Vec<Option<usize>>, bool, usize) {
        let sections = sections();
        let text = QuotableText::new("Park 94103 Zoo".to_owned());
        let mut extraction = ExtractionReader::new(&sections, &text, unsupported);
        let mut complete = false;
        for (at, answer) in answers.iter().enumerate() {
            complete = extraction.read_answer(answer, at).is_ok();
        }
        let counts = sections[0]
            .tiers
            .iter()
            .map(|tier| extraction.extracted.get(&sections[0], tier).map(<[SectionEntry]>::len));
        (counts.collect(), complete, extraction.flags.len())
    }

    #[test]
    fn what_is_left_out_is_asked_for_once_more() {
        let park = json!({"name": "Park", "zip": "94103"});
        let (both, far) = (json!({"V": {"near": [park], "far": []}}), json!({"V": {"far": [park]}}));
        let no_zip = json!({"V": {"near": [{"name": "Park"}], "far": []}});
        let number = json!({"V": {"near": [{"name": "Park", "zip": 94103}], "far": []}});
        for (answers, expected) in [
            (vec![both.clone()], (vec![Some(1), Some(0)], true, 0)),
            (vec![far.clone()], (vec![None, Some(1)], false, 0)),
            (vec![far.clone(), both.clone()], (vec![Some(1), Some(1)], true, 0)),
            (vec![far.clone(), far], (vec![Some(0), Some(1)], true, 0)),
            (vec![no_zip.clone()], (vec![None, Some(0)], false, 0)),
            (vec![no_zip.clone(), no_zip], (vec![Some(1), Some(0)], true, 0)),
            (vec![number], (vec![Some(1), Some(0)], true, 0)),
            (vec![json!({"V": {"near": {}, "far": ["x"]}})], (vec![None, None], false, 0)),
            (vec![json!({})], (vec![None, None], false, 0)),
            (vec![json!({}), json!({})], (vec![Some(0), None], false, 0)),
            (vec![json!({}), json!({"V": {"near": null, "far": []}})], (vec![Some(0), Some(0)], true, 0)),
            // One value is in the text, the other is not.
            (
                vec![json!({"V": {"near": [{"name": "Park", "zip": "99999"}], "far": []}})],
                (vec![None, Some(0)], false, 0),
            ),
            (
                vec![json!({"V": {"near": [{"name": "Park", "zip": "99999"}], "far": []}}); 2],
                (vec![Some(1), Some(0)], true, 1),
            ),
            // The answer repeats an entry that the text has once.
            (
                vec![json!({"V": {"near": [park.clone(), park.clone(), park], "far": []}})],
                (vec![Some(1), Some(0)], true, 2),
            ),
        ] {
            assert_eq!(check(&answers, UnsupportedPassPolicy::NotScored), expected, "{answers:?}");
        }
    }

    #[test]
    fn an_entry_that_is_not_in_the_text_is_not_counted() {
        let invented = json!({"V": {"near": [{"name": "Sea", "zip": null}], "far": []}});
        let park = json!({"V": {"near": [{"name": "Park", "zip": null}], "far": []}});
        let unread = (vec![None, Some(0)], false, 0);
        for (answers, strict, accepting) in [
            (vec![invented.clone()], unread.clone(), unread.clone()),
            (
                vec![invented.clone(), park],
                (vec![Some(1), Some(0)], true, 0),
                (vec![Some(1), Some(0)], true, 0),
            ),
            (vec![invented.clone(), invented], unread, (vec![Some(1), Some(0)], true, 1)),
        ] {
            assert_eq!(check(&answers, UnsupportedPassPolicy::NotScored), strict, "{answers:?}");
            assert_eq!(check(&answers, UnsupportedPassPolicy::Accept), accepting, "{answers:?}");
        }
    }
}

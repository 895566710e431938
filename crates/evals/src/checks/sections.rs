//! Checks what a model extracted from a text against what the sections require.
//!
//! The model only extracts entries; this code decides whether they are enough.

use std::collections::{BTreeMap, BTreeSet};

use super::{NamedFormat, ValueFormat, excerpt};
use practicum_core::model::{
    CheckFinding, NotScoredReason, OutputSection, SectionField, SectionTier, Verdict, count_with_noun,
};

/// One entry of a list: the value of each field by its name, `None` if the text has no value.
pub type SectionEntry = BTreeMap<String, Option<String>>;

/// The extracted entries of every section's tiers. A tier that is not in it was not extracted, which is not the
/// same as a tier without entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractedSections {
    tiers: BTreeMap<(String, String), Vec<SectionEntry>>,
    /// The fields that have values which are not in the text.
    doubtful_fields: BTreeMap<(String, String), BTreeSet<String>>,
}

impl ExtractedSections {
    /// Adds the entries that were extracted for a tier of a section.
    pub fn insert(&mut self, section: &OutputSection, tier: &SectionTier, entries: Vec<SectionEntry>) {
        self.tiers.insert((section.name.clone(), tier.label.clone()), entries);
    }

    /// Records fields that have values which are not in the text.
    pub fn add_doubtful(&mut self, section: &OutputSection, tier: &SectionTier, fields: BTreeSet<String>) {
        self.doubtful_fields.insert((section.name.clone(), tier.label.clone()), fields);
    }

    fn is_doubtful(&self, section: &OutputSection, tier: &SectionTier, field: &SectionField) -> bool {
        let fields = self.doubtful_fields.get(&(section.name.clone(), tier.label.clone()));
        fields.is_some_and(|fields| fields.contains(&field.name))
    }

    /// Gives the entries of a tier of a section; `None` if none were extracted.
    pub fn get(&self, section: &OutputSection, tier: &SectionTier) -> Option<&[SectionEntry]> {
        self.tiers.get(&(section.name.clone(), tier.label.clone())).map(Vec::as_slice)
    }
}

const UNSUPPORTED_VALUE: &str = "a value was read that is not in the text, also when asked once more";

/// The largest number of entries that a finding shows.
const MOST_SHOWN: usize = 5;

/// Checks everything that the sections of a check require, each under its own id: the counts of a tier, and each
/// field over all entries. A tier that was not extracted is not scored, for the given reason. A tier or field that
/// requires nothing has no result, because it could not fail. If a field's id is empty or taken, which some
/// formats allow, the id is made from its position.
pub fn check_sections(
    check: &str,
    sections: &[OutputSection],
    extracted: &ExtractedSections,
    unread: &NotScoredReason,
    taken: &BTreeSet<&str>,
) -> Vec<(String, CheckFinding)> {
    let mut findings: Vec<(String, CheckFinding)> = Vec::new();
    for section in sections {
        for tier in &section.tiers {
            let entries = extracted.get(section, tier);
            let place = format!("{} ({})", excerpt(&section.name, 80), excerpt(&tier.label, 80));
            let bounded = |holds: fn(usize, u32) -> bool, wanted: u32, word: &str| match entries {
                None => CheckFinding::not_scored(unread.clone()),
                Some(entries) => {
                    let count = entries.len();
                    let why =
                        format!("{place} has {}, {word} {wanted} wanted", count_with_noun(count, "entry"));
                    CheckFinding::new(holds(count, wanted), why)
                }
            };
            let id = |what: &str| format!("{check}/{}/{}/{what}", section.name, tier.label);
            let demands_fields = tier.fields.iter().any(has_demands);
            if entries.is_some_and(<[SectionEntry]>::is_empty) && tier.min_entries == 0 && demands_fields {
                let why = format!("{place} has no entries, and none is required");
                findings.push((id("count"), CheckFinding::new(true, why)));
            }
            if tier.min_entries > 0 {
                let least = bounded(|count, wanted| count >= wanted as usize, tier.min_entries, "at least");
                findings.push((id("count"), least));
            }
            if let Some(most) = tier.max_entries {
                let most = bounded(|count, wanted| count <= wanted as usize, most, "at most");
                findings.push((id("count_max"), most));
            }
            for field in tier.fields.iter().filter(|field| has_demands(field)) {
                let finding = match entries {
                    None => Some(CheckFinding::not_scored(unread.clone())),
                    Some([]) => None,
                    Some(entries) => {
                        let finding = check_field(field, entries, &place);
                        let unsupported = || {
                            CheckFinding::not_scored(NotScoredReason::JudgeFailed(
                                UNSUPPORTED_VALUE.to_owned(),
                            ))
                        };
                        // A field with an invented value must not pass, but it may still fail because of other
                        // values.
                        let doubtful = extracted.is_doubtful(section, tier, field);
                        Some(if doubtful && finding.verdict == Verdict::Pass {
                            unsupported()
                        } else {
                            finding
                        })
                    }
                };
                let own = field.id.as_str();
                let is_free = !own.is_empty()
                    && !taken.contains(own)
                    && !findings.iter().any(|(earlier, _)| earlier == own);
                let id = if is_free { own.to_owned() } else { id(&field.name) };
                findings.extend(finding.map(|finding| (id, finding)));
            }
        }
    }
    findings
}

/// Says whether this field can make an entry wrong.
fn has_demands(field: &SectionField) -> bool {
    field.required || field.format.is_some()
}

fn check_field(field: &SectionField, entries: &[SectionEntry], place: &str) -> CheckFinding {
    let format = match field.format.as_deref().map(ValueFormat::new).transpose() {
        Ok(format) => format,
        Err(problem) => return CheckFinding::not_scored(NotScoredReason::CheckFailed(problem.to_string())),
    };
    let name = excerpt(&field.name, 80);
    let mut wrong = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let value = entry.get(&field.name).and_then(Option::as_deref);
        match (value.filter(|value| !value.is_empty()), &format) {
            (None, _) if field.required => wrong.push(format!("entry {} has no {name}", at + 1)),
            (Some(value), _) if field.required && value.trim().is_empty() => {
                wrong.push(format!("entry {} has only blanks as {name}", at + 1));
            }
            (None, _) | (Some(_), None) => {}
            (Some(value), Some(format)) => match format.matches_value(value) {
                Ok(true) => {}
                Ok(false) => wrong.push(format!("entry {}: {}", at + 1, excerpt(value, 120))),
                Err(problem) => {
                    return CheckFinding::not_scored(NotScoredReason::CheckFailed(problem.to_string()));
                }
            },
        }
    }
    let wanted = match (field.format.as_deref().map(describe_format), field.required) {
        (Some(shape), true) => format!("{name} in the format {shape}"),
        (Some(shape), false) => format!("{name} in the format {shape}, where there is one"),
        (None, _) => name,
    };
    let (count, good) = (entries.len(), entries.len() - wrong.len());
    let why = format!("{good} of {} of {place} with {wanted}", count_with_noun(count, "entry"));
    let mut finding = CheckFinding::new(wrong.is_empty(), why);
    finding.evidence = wrong.into_iter().take(MOST_SHOWN).collect();
    finding
}

/// Describes a format; a named one with an example.
fn describe_format(format: &str) -> String {
    match NamedFormat::find_format(format) {
        Some(NamedFormat { name, example, .. }) => format!("{name} (like {example})"),
        None => excerpt(format, 80),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn field(id: &str, required: bool, format: Option<&str>) -> SectionField {
        SectionField { id: id.into(), name: format!("the {id}"), required, format: format.map(str::to_owned) }
    }

    fn section(min_entries: u32, max_entries: Option<u32>, fields: Vec<SectionField>) -> OutputSection {
        let tier = SectionTier { label: "t".into(), description: None, min_entries, max_entries, fields };
        OutputSection { name: "S".into(), tiers: vec![tier] }
    }

    /// Gives the verdicts by id. `entries` are the fields of each entry; `null` means a tier that was not
    /// extracted.
    fn check(section: &OutputSection, entries: Value) -> Vec<(String, &'static str)> {
        let mut extracted = ExtractedSections::default();
        if let Some(entries) = entries.as_array() {
            let entries = entries.iter().map(|entry| {
                let fields = entry.as_object().expect("an object").iter();
                fields
                    .map(|(name, value)| (format!("the {name}"), value.as_str().map(str::to_owned)))
                    .collect()
            });
            extracted.insert(section, &section.tiers[0], entries.collect());
        }
        let unread = NotScoredReason::JudgeFailed("gone".into());
        let taken = BTreeSet::from(["c", "taken"]);
        let findings = check_sections("c", std::slice::from_ref(section), &extracted, &unread, &taken);
        findings.into_iter().map(|(id, finding)| (id, finding.verdict.name())).collect()
    }

    #[test]
    fn counts_fields_and_formats() {
        let (min, max) = ("c/S/t/count", "c/S/t/count_max");
        let counted = section(2, Some(2), vec![]);
        let plain = section(0, None, vec![field("a", true, None), field("b", false, None)]);
        let formats =
            section(0, None, vec![field("a", true, Some("zip_us")), field("b", false, Some(r"\d"))]);
        for (section, entries, expected) in [
            (&counted, json!([]), vec![(min, "fail"), (max, "pass")]),
            (&counted, json!([{}, {}]), vec![(min, "pass"), (max, "pass")]),
            (&counted, json!([{}, {}, {}]), vec![(min, "pass"), (max, "fail")]),
            (&counted, json!(null), vec![(min, "not_scored"), (max, "not_scored")]),
            // A field that is optional and has no format has no result.
            (&plain, json!([{"a": "x", "b": null}]), vec![("a", "pass")]),
            (&plain, json!([{"a": "x"}, {"a": null}]), vec![("a", "fail")]),
            (&plain, json!([{"a": " "}]), vec![("a", "fail")]),
            (&plain, json!([{"a": "x"}, {}]), vec![("a", "fail")]),
            (&plain, json!([{"a": null}, {}]), vec![("a", "fail")]),
            (&plain, json!([]), vec![(min, "pass")]),
            (&plain, json!(null), vec![("a", "not_scored")]),
            (&formats, json!([{"a": "94103", "b": "1"}]), vec![("a", "pass"), ("b", "pass")]),
            (&formats, json!([{"a": " 94103 ", "b": " "}]), vec![("a", "fail"), ("b", "fail")]),
            (&formats, json!([{"a": "x94103", "b": null}]), vec![("a", "fail"), ("b", "pass")]),
            (&formats, json!([{"a": null, "b": "11"}]), vec![("a", "fail"), ("b", "fail")]),
        ] {
            let expected: Vec<(String, &str)> =
                expected.into_iter().map(|(id, verdict)| (id.to_owned(), verdict)).collect();
            assert_eq!(check(section, entries.clone()), expected, "{entries}");
        }
    }

    #[test]
    fn fields_are_checked_also_where_there_are_too_many_entries() {
        let section = section(0, Some(1), vec![field("a", true, Some("email"))]);
        let findings = check(&section, json!([{"a": "a@b.co"}, {"a": "nobody"}]));
        assert_eq!(findings, [("c/S/t/count_max".to_owned(), "fail"), ("a".to_owned(), "fail")]);
    }

    #[test]
    fn a_result_never_takes_the_id_of_another() {
        let fields = ["taken", "", "a", "a"].map(|id| field(id, true, None)).to_vec();
        let findings = check(&section(0, None, fields), json!([{"taken": "x", "": "x", "a": "x"}]));
        let ids: Vec<&str> = findings.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["c/S/t/the taken", "c/S/t/the ", "a", "c/S/t/the a"]);
    }

    #[test]
    fn a_pattern_without_end_is_no_answer() {
        let section = section(0, None, vec![field("a", true, Some(r"(a|aa)+\1b"))]);
        let findings = check(&section, json!([{"a": "a".repeat(4000)}]));
        assert_eq!(findings, [("a".to_owned(), "not_scored")]);
    }
}

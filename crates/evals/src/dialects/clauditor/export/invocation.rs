//! Writes the checks of a case as assertions, sections and criteria of a clauditor spec.

use serde_json::{Map, Value, json};

use super::super::super::reading::UniqueIds;
use super::super::super::writing::{self, Losses};
use super::super::files::stays_in_folder;
use super::super::grading::{ClauditorThresholds, to_ratio};
use super::super::sections_id;
use super::sections;
use practicum_core::model::{
    Case, Check, CheckKind, CheckNeed, CheckTarget, OutputSection, PassRule, ScoreScale,
};

/// The part of a spec that says what an invocation must produce.
pub struct ExportedInvocation {
    /// The one text that all checks look at.
    pub looks_at: CheckTarget,
    assertions: Vec<Value>,
    sections: Vec<Value>,
    criteria: Vec<Value>,
    /// The thresholds, if there are criteria.
    pub thresholds: Option<ClauditorThresholds>,
}

/// A check as an entry of the format.
enum ExportedEntry<'c> {
    Assertion(Map<String, Value>),
    Criterion(String),
    Sections(&'c [OutputSection]),
}

impl ExportedInvocation {
    /// Exports the checks of a case. Gives `None` if there are checks but the format can express none of them.
    pub fn from_case(case: &Case, losses: &mut Losses) -> Option<Self> {
        let mut entries: Vec<(&Check, CheckTarget, ExportedEntry<'_>)> = Vec::new();
        for check in &case.checks {
            let Some(entry) = export_check(check, &case.id, losses) else { continue };
            match single_text(&check.target) {
                Some(text) => entries.push((check, text, entry)),
                None => losses.add_for_case(&case.id, "checks that look at nothing that can be named here"),
            }
        }
        if entries.is_empty() && !case.checks.is_empty() {
            return None;
        }
        let looks_at = most_common_text(entries.iter().map(|(_, text, _)| text));
        entries.retain(|(_, text, _)| {
            let same = *text == looks_at;
            if !same {
                let (theirs, here) = (describe_text(text), describe_text(&looks_at));
                losses.add_for_case(
                    &case.id,
                    format!("its checks of {theirs}, because here all are of {here}"),
                );
            }
            same
        });
        for (check, _, entry) in &entries {
            report_narrowing(check, entry, &case.id, losses);
        }
        let kept: Vec<(&Check, ExportedEntry<'_>)> =
            entries.into_iter().map(|(check, _, entry)| (check, entry)).collect();
        let thresholds = thresholds_of_case(case, &kept, losses);
        let written = build_invocation(case, looks_at, kept, thresholds, losses);
        (written.has_entries() || case.checks.is_empty()).then_some(written)
    }

    fn has_entries(&self) -> bool {
        [&self.assertions, &self.sections, &self.criteria].iter().any(|entries| !entries.is_empty())
    }

    pub fn write(&self, map: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Value| {
            map.insert(key.to_owned(), value);
        };
        for (key, entries) in [("assertions", &self.assertions), ("sections", &self.sections)] {
            if !entries.is_empty() {
                put(key, json!(entries));
            }
        }
        match &self.looks_at {
            CheckTarget::File(path) => put("output_file", json!(path.as_str())),
            CheckTarget::Files(globs) => put("output_files", json!(globs)),
            // No check that looks at pictures is written.
            CheckTarget::Output
            | CheckTarget::LastTurn
            | CheckTarget::AllText
            | CheckTarget::WholeRun
            | CheckTarget::Pictures(_) => {}
        }
        if !self.criteria.is_empty() {
            put("grading_criteria", json!(self.criteria));
        }
        if let Some(thresholds) =
            self.thresholds.filter(|thresholds| *thresholds != ClauditorThresholds::default())
        {
            let ClauditorThresholds { pass_rate, mean_score } = thresholds;
            let value = json!({"min_pass_rate": pass_rate.get(), "min_mean_score": mean_score.get()});
            put("grade_thresholds", value);
        }
    }
}

fn export_check<'c>(check: &'c Check, case: &str, losses: &mut Losses) -> Option<ExportedEntry<'c>> {
    match &check.kind {
        CheckKind::Rule(rule) => {
            let assertion = assertion_for_rule(rule.key(), &rule.value());
            if assertion.is_none() {
                losses.add_for_case(case, format!("its checks of the kind \"{}\"", rule.key()));
            }
            assertion.map(ExportedEntry::Assertion)
        }
        CheckKind::Judged(judged) if judged.statement.trim().is_empty() => {
            losses.add_for_case(case, "a judged check that states nothing");
            None
        }
        CheckKind::Sections(sections) if sections.is_empty() => {
            losses.add_for_case(case, "its check of no sections");
            None
        }
        CheckKind::Sections(sections) => Some(ExportedEntry::Sections(sections)),
        // A spec's invocation cannot check activation; this is reported here too.
        CheckKind::Judged(_) | CheckKind::Activation(_) => {
            writing::judge_statement(check, losses, case, ScoreScale::Unit).map(ExportedEntry::Criterion)
        }
    }
}

/// Gives the assertion for a rule. A rule that ignores case or looks at the start or end becomes a pattern.
fn assertion_for_rule(key: &str, value: &Value) -> Option<Map<String, Value>> {
    let needle = value.as_str().or_else(|| value.get("text")?.as_str());
    let ignore_case = value.get("ignore_case") == Some(&Value::Bool(true));
    let (kind, payload) = match (key, value) {
        ("contains" | "not_contains", Value::String(_)) => (key, json!({"needle": value})),
        ("contains" | "not_contains" | "starts_with" | "ends_with", _) => {
            ("regex", json!({"pattern": needle_pattern(key, needle?, ignore_case)}))
        }
        ("regex", Value::String(_)) => (key, json!({"pattern": value})),
        ("min_length" | "max_length", Value::Number(_)) => (key, json!({"length": value})),
        ("has_urls" | "has_entries" | "urls_reachable", Value::Number(_)) => (key, json!({"count": value})),
        ("min_count" | "has_format", Value::Object(_)) => (key, value.clone()),
        _ => return None,
    };
    let mut entry = Map::new();
    entry.insert("type".to_owned(), json!(kind));
    entry.extend(payload.as_object().cloned().unwrap_or_default());
    Some(entry)
}

/// Gives a pattern that finds a text. Blanks at the start or end count only if the text to find has them there.
fn needle_pattern(key: &str, needle: &str, ignore_case: bool) -> String {
    let mut escaped = String::new();
    for c in needle.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    let case = if ignore_case { "(?i)" } else { "" };
    let (before, after) = (needle.starts_with(char::is_whitespace), needle.ends_with(char::is_whitespace));
    match key {
        "starts_with" => format!(r"{case}\A{}{escaped}", if before { "" } else { r"\s*" }),
        "ends_with" => format!(r"{case}{escaped}{}\Z", if after { "" } else { r"\s*" }),
        "not_contains" => format!(r"{case}\A(?![\s\S]*{escaped})"),
        _ => format!("{case}{escaped}"),
    }
}

/// Gives the text that all checks of a spec could look at: the agent's output, or files.
fn single_text(looks_at: &CheckTarget) -> Option<CheckTarget> {
    match looks_at {
        CheckTarget::Output | CheckTarget::LastTurn | CheckTarget::AllText | CheckTarget::WholeRun => {
            Some(CheckTarget::Output)
        }
        CheckTarget::File(path) => Some(CheckTarget::File(path.clone())),
        CheckTarget::Files(globs) => {
            let fine = !globs.is_empty() && globs.iter().all(|glob| stays_in_folder(glob));
            fine.then(|| CheckTarget::Files(globs.clone()))
        }
        CheckTarget::Pictures(_) => None,
    }
}

/// Gives the text that most checks look at; the first of several with the same count.
fn most_common_text<'t>(texts: impl Iterator<Item = &'t CheckTarget>) -> CheckTarget {
    let mut counts: Vec<(&CheckTarget, usize)> = Vec::new();
    for text in texts {
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max();
    let first = counts.iter().find(|(_, count)| Some(*count) == most);
    first.map_or(CheckTarget::Output, |(text, _)| (*text).clone())
}

fn describe_text(text: &CheckTarget) -> String {
    match text {
        CheckTarget::Output | CheckTarget::LastTurn | CheckTarget::AllText | CheckTarget::WholeRun => {
            "the response".to_owned()
        }
        CheckTarget::File(path) => format!("the file {path}"),
        CheckTarget::Files(globs) | CheckTarget::Pictures(globs) => {
            format!("the files {}", globs.join(", "))
        }
    }
}

/// Reports a check that looked at more than the response and no longer does. (A deterministic check of the whole
/// run reads only the response anyway.)
fn report_narrowing(check: &Check, entry: &ExportedEntry<'_>, case: &str, losses: &mut Losses) {
    match (&check.target, entry) {
        (CheckTarget::LastTurn | CheckTarget::AllText, _) => {
            losses.add_for_case(case, "that its checks look at all that was said, not only at the response");
        }
        (CheckTarget::WholeRun, ExportedEntry::Criterion(_) | ExportedEntry::Sections(_)) => {
            losses.add_for_case(case, "that its judge sees the whole run, not only the response");
        }
        (
            CheckTarget::WholeRun
            | CheckTarget::Output
            | CheckTarget::File(_)
            | CheckTarget::Files(_)
            | CheckTarget::Pictures(_),
            _,
        ) => {}
    }
}

/// Gives the share of the criteria that must hold so that the case passes in the same situations as before.
fn thresholds_of_case(
    case: &Case,
    kept: &[(&Check, ExportedEntry<'_>)],
    losses: &mut Losses,
) -> Option<ClauditorThresholds> {
    let judged = |need| {
        move |(check, entry): &(&Check, ExportedEntry<'_>)| {
            matches!(entry, ExportedEntry::Criterion(_)) && check.need == need
        }
    };
    let required = kept.iter().any(judged(CheckNeed::Required));
    let advisory = kept.iter().any(judged(CheckNeed::Advisory));
    let mut only_advice = kept.iter().any(|(check, entry)| {
        !matches!(entry, ExportedEntry::Criterion(_)) && check.need == CheckNeed::Advisory
    });
    let others_required = kept.iter().any(|(check, entry)| {
        !matches!(entry, ExportedEntry::Criterion(_)) && check.need == CheckNeed::Required
    });
    let all = ClauditorThresholds { pass_rate: to_ratio(1.0), mean_score: to_ratio(0.0) };
    let none = ClauditorThresholds { pass_rate: to_ratio(0.0), mean_score: to_ratio(0.0) };
    let thresholds = match case.pass_rule {
        PassRule::JudgedThresholds { pass_rate, mean_score } => {
            if required {
                losses.add_for_case(&case.id, "that some judged checks must hold each on its own");
            }
            ClauditorThresholds { pass_rate, mean_score }
        }
        PassRule::EveryRequiredCheck
        | PassRule::ActivationRate(_)
        | PassRule::Score(_)
        | PassRule::CountOnly => {
            match (required, advisory, others_required) {
                (true, advice, _) => {
                    only_advice |= advice;
                    all
                }
                (false, _, true) => none,
                // With thresholds of zero, nothing would be required and everything would pass.
                (false, advice, false) => {
                    only_advice |= advice;
                    ClauditorThresholds::default()
                }
            }
        }
    };
    if only_advice {
        losses.add_for_case(&case.id, "that some checks are only advice");
    }
    (required || advisory).then_some(thresholds)
}

fn build_invocation(
    case: &Case,
    looks_at: CheckTarget,
    kept: Vec<(&Check, ExportedEntry<'_>)>,
    thresholds: Option<ClauditorThresholds>,
    losses: &mut Losses,
) -> ExportedInvocation {
    let mut ids = UniqueIds::default();
    // Reports compare checks by their ids, so the checks get their ids before the fields do.
    let own_ids: Vec<Option<String>> = kept
        .iter()
        .map(|(check, entry)| {
            let id = match entry {
                ExportedEntry::Assertion(_) | ExportedEntry::Criterion(_) if check.id.is_empty() => {
                    ids.make_unique("check")
                }
                ExportedEntry::Assertion(_) | ExportedEntry::Criterion(_) => ids.make_unique(&check.id),
                ExportedEntry::Sections(_) => return None,
            };
            if id != check.id {
                losses.add_for_case(
                    &case.id,
                    format!("the id \"{}\" of a check, which here is \"{id}\"", check.id),
                );
            }
            Some(id)
        })
        .collect();
    let mut invocation = ExportedInvocation {
        looks_at,
        assertions: Vec::new(),
        sections: Vec::new(),
        criteria: Vec::new(),
        thresholds,
    };
    let mut of_sections = Vec::new();
    for ((check, entry), id) in kept.into_iter().zip(own_ids) {
        match entry {
            ExportedEntry::Assertion(rule) => {
                let mut map = Map::new();
                map.insert("id".to_owned(), json!(id));
                if let Some(name) = &check.name {
                    map.insert("name".to_owned(), json!(name));
                }
                map.extend(rule);
                invocation.assertions.push(Value::Object(map));
            }
            ExportedEntry::Criterion(statement) => {
                if check.name.is_some() {
                    losses.add_for_case(&case.id, "the names of its judged checks");
                }
                invocation.criteria.push(json!({"id": id, "criterion": statement}));
            }
            ExportedEntry::Sections(sections) => {
                of_sections.push(check);
                invocation.sections.extend(sections::write_sections(sections, &mut ids, &case.id, losses));
            }
        }
    }
    let id = sections_id(&ids.into_taken());
    if of_sections.len() > 1 || of_sections.iter().any(|check| check.id != id || check.name.is_some()) {
        losses.add_for_case(
            &case.id,
            format!("the names of its checks of sections, which here are one, \"{id}\""),
        );
    }
    invocation
}

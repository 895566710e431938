use serde_json::{Map, Value, json};

use super::super::super::reading::Ids;
use super::super::super::writing::{self, Losses};
use super::super::files::stays_inside;
use super::super::grading::{Thresholds, share};
use super::super::sections_id;
use super::sections;
use practicum_core::model::{Case, Check, CheckKind, LooksAt, Need, PassRule, Scale, Section};

/// The part of a spec that says what an invocation must give.
pub struct Invocation {
    /// The one thing that all its checks look at.
    pub looks_at: LooksAt,
    assertions: Vec<Value>,
    sections: Vec<Value>,
    criteria: Vec<Value>,
    /// Only where there are criteria.
    pub thresholds: Option<Thresholds>,
}

/// A check in the words of the format.
enum Entry<'c> {
    Assertion(Map<String, Value>),
    Criterion(String),
    Sections(&'c [Section]),
}

impl Invocation {
    /// `None` if there are checks and the format can say none of them.
    pub fn of(case: &Case, losses: &mut Losses) -> Option<Self> {
        let mut entries: Vec<(&Check, LooksAt, Entry<'_>)> = Vec::new();
        for check in &case.checks {
            let Some(entry) = entry(check, &case.id, losses) else { continue };
            match one_text(&check.looks_at) {
                Some(text) => entries.push((check, text, entry)),
                None => losses.case(&case.id, "checks that look at nothing that can be named here"),
            }
        }
        if entries.is_empty() && !case.checks.is_empty() {
            return None;
        }
        let looks_at = most_looked_at(entries.iter().map(|(_, text, _)| text));
        entries.retain(|(_, text, _)| {
            let same = *text == looks_at;
            if !same {
                let (theirs, here) = (named(text), named(&looks_at));
                losses.case(&case.id, format!("its checks of {theirs}, because here all are of {here}"));
            }
            same
        });
        for (check, _, entry) in &entries {
            narrowed(check, entry, &case.id, losses);
        }
        let kept: Vec<(&Check, Entry<'_>)> =
            entries.into_iter().map(|(check, _, entry)| (check, entry)).collect();
        let thresholds = thresholds(case, &kept, losses);
        let written = written(case, looks_at, kept, thresholds, losses);
        (written.says_something() || case.checks.is_empty()).then_some(written)
    }

    fn says_something(&self) -> bool {
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
            LooksAt::File(path) => put("output_file", json!(path.as_str())),
            LooksAt::Files(globs) => put("output_files", json!(globs)),
            LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun => {}
        }
        if !self.criteria.is_empty() {
            put("grading_criteria", json!(self.criteria));
        }
        if let Some(thresholds) = self.thresholds.filter(|thresholds| *thresholds != Thresholds::default()) {
            let Thresholds { pass_rate, mean_score } = thresholds;
            let value = json!({"min_pass_rate": pass_rate.get(), "min_mean_score": mean_score.get()});
            put("grade_thresholds", value);
        }
    }
}

fn entry<'c>(check: &'c Check, case: &str, losses: &mut Losses) -> Option<Entry<'c>> {
    match &check.kind {
        CheckKind::Exact(rule) => {
            let assertion = assertion(rule.key(), &rule.value());
            if assertion.is_none() {
                losses.case(case, format!("its checks of the kind \"{}\"", rule.key()));
            }
            assertion.map(Entry::Assertion)
        }
        CheckKind::Judged(judged) if judged.statement.trim().is_empty() => {
            losses.case(case, "a judged check that states nothing");
            None
        }
        CheckKind::Sections(sections) if sections.is_empty() => {
            losses.case(case, "its check of no sections");
            None
        }
        CheckKind::Sections(sections) => Some(Entry::Sections(sections)),
        // There is no place for an activation, which is told here too.
        CheckKind::Judged(_) | CheckKind::Activation(_) => {
            writing::statement(check, losses, case, Scale::Unit).map(Entry::Criterion)
        }
    }
}

/// The assertion that is this rule. What ignores case or looks at an end is a pattern here.
fn assertion(key: &str, value: &Value) -> Option<Map<String, Value>> {
    let needle = value.as_str().or_else(|| value.get("text")?.as_str());
    let ignore_case = value.get("ignore_case") == Some(&Value::Bool(true));
    let (kind, payload) = match (key, value) {
        ("contains" | "not_contains", Value::String(_)) => (key, json!({"needle": value})),
        ("contains" | "not_contains" | "starts_with" | "ends_with", _) => {
            ("regex", json!({"pattern": pattern(key, needle?, ignore_case)}))
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

/// A needle as a pattern. Blanks at an end of the text count only if the needle has one there.
fn pattern(key: &str, needle: &str, ignore_case: bool) -> String {
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

/// The text that a spec could have its checks look at: what the agent said, or files.
fn one_text(looks_at: &LooksAt) -> Option<LooksAt> {
    match looks_at {
        LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun => Some(LooksAt::Output),
        LooksAt::File(path) => Some(LooksAt::File(path.clone())),
        LooksAt::Files(globs) => {
            let fine = !globs.is_empty() && globs.iter().all(|glob| stays_inside(glob));
            fine.then(|| LooksAt::Files(globs.clone()))
        }
    }
}

/// What most look at; the first of those that are equally many.
fn most_looked_at<'t>(texts: impl Iterator<Item = &'t LooksAt>) -> LooksAt {
    let mut counts: Vec<(&LooksAt, usize)> = Vec::new();
    for text in texts {
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max();
    let first = counts.iter().find(|(_, count)| Some(*count) == most);
    first.map_or(LooksAt::Output, |(text, _)| (*text).clone())
}

fn named(text: &LooksAt) -> String {
    match text {
        LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun => "the response".to_owned(),
        LooksAt::File(path) => format!("the file {path}"),
        LooksAt::Files(globs) => format!("the files {}", globs.join(", ")),
    }
}

/// Tells where a check saw more than the response. (An exact one sees no more of a whole run.)
fn narrowed(check: &Check, entry: &Entry<'_>, case: &str, losses: &mut Losses) {
    match (&check.looks_at, entry) {
        (LooksAt::AllText, _) => {
            losses.case(case, "that its checks look at all that was said, not only at the response");
        }
        (LooksAt::WholeRun, Entry::Criterion(_) | Entry::Sections(_)) => {
            losses.case(case, "that its judge sees the whole run, not only the response");
        }
        (LooksAt::WholeRun | LooksAt::Output | LooksAt::File(_) | LooksAt::Files(_), _) => {}
    }
}

/// Which share of the criteria must hold, so that the case passes when it did before.
fn thresholds(case: &Case, kept: &[(&Check, Entry<'_>)], losses: &mut Losses) -> Option<Thresholds> {
    let judged = |need| {
        move |(check, entry): &(&Check, Entry<'_>)| matches!(entry, Entry::Criterion(_)) && check.need == need
    };
    let required = kept.iter().any(judged(Need::Required));
    let advisory = kept.iter().any(judged(Need::Advisory));
    let mut only_advice = kept
        .iter()
        .any(|(check, entry)| !matches!(entry, Entry::Criterion(_)) && check.need == Need::Advisory);
    let others_required = kept
        .iter()
        .any(|(check, entry)| !matches!(entry, Entry::Criterion(_)) && check.need == Need::Required);
    let all = Thresholds { pass_rate: share(1.0), mean_score: share(0.0) };
    let none = Thresholds { pass_rate: share(0.0), mean_score: share(0.0) };
    let thresholds = match case.pass_when {
        PassRule::Graded { pass_rate, mean_score } => {
            if required {
                losses.case(&case.id, "that some judged checks must hold each on its own");
            }
            Thresholds { pass_rate, mean_score }
        }
        PassRule::EveryRequiredCheck | PassRule::FireRate(_) | PassRule::Tally => {
            match (required, advisory, others_required) {
                (true, advice, _) => {
                    only_advice |= advice;
                    all
                }
                (false, _, true) => none,
                // Nothing would be required at all, and then everything would pass.
                (false, advice, false) => {
                    only_advice |= advice;
                    Thresholds::default()
                }
            }
        }
    };
    if only_advice {
        losses.case(&case.id, "that some checks are only advice");
    }
    (required || advisory).then_some(thresholds)
}

fn written(
    case: &Case,
    looks_at: LooksAt,
    kept: Vec<(&Check, Entry<'_>)>,
    thresholds: Option<Thresholds>,
    losses: &mut Losses,
) -> Invocation {
    let mut ids = Ids::default();
    // Reports compare by the ids of checks, so these come before those of fields.
    let own_ids: Vec<Option<String>> = kept
        .iter()
        .map(|(check, entry)| {
            let id = match entry {
                Entry::Assertion(_) | Entry::Criterion(_) if check.id.is_empty() => ids.derive("check"),
                Entry::Assertion(_) | Entry::Criterion(_) => ids.derive(&check.id),
                Entry::Sections(_) => return None,
            };
            if id != check.id {
                losses.case(&case.id, format!("the id \"{}\" of a check, which here is \"{id}\"", check.id));
            }
            Some(id)
        })
        .collect();
    let mut invocation = Invocation {
        looks_at,
        assertions: Vec::new(),
        sections: Vec::new(),
        criteria: Vec::new(),
        thresholds,
    };
    let mut of_sections = Vec::new();
    for ((check, entry), id) in kept.into_iter().zip(own_ids) {
        match entry {
            Entry::Assertion(rule) => {
                let mut map = Map::new();
                map.insert("id".to_owned(), json!(id));
                if let Some(name) = &check.name {
                    map.insert("name".to_owned(), json!(name));
                }
                map.extend(rule);
                invocation.assertions.push(Value::Object(map));
            }
            Entry::Criterion(statement) => {
                if check.name.is_some() {
                    losses.case(&case.id, "the names of its judged checks");
                }
                invocation.criteria.push(json!({"id": id, "criterion": statement}));
            }
            Entry::Sections(sections) => {
                of_sections.push(check);
                invocation.sections.extend(sections::write(sections, &mut ids, &case.id, losses));
            }
        }
    }
    let id = sections_id(&ids.into_taken());
    if of_sections.len() > 1 || of_sections.iter().any(|check| check.id != id || check.name.is_some()) {
        losses.case(&case.id, format!("the names of its checks of sections, which here are one, \"{id}\""));
    }
    invocation
}

use super::Entries;
use super::keys::{int, list};
use super::unused::{At, Unused};
use crate::score::{Format, Pattern};
use practicum_core::model::{Check, CheckKind, Diagnostics, Field, Judged, Ratio, Scale, Section, Tier};
use practicum_core::tree::{Node, Object, text_of, wrong_type};

pub fn sections(
    spec: &mut Object<'_>,
    entries: &mut Entries<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Section> {
    let nodes = list(spec, "sections", diagnostics).unwrap_or_default();
    let read = |(n, node)| section(node, &["sections", &usize::to_string(&n)], entries, diagnostics);
    nodes.iter().enumerate().filter_map(read).collect()
}

fn section(
    node: &Node,
    at: At<'_>,
    entries: &mut Entries<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Section> {
    let mut section = Object::new(node, "a section", diagnostics)?;
    let name = section.required_text("name", diagnostics).map(str::to_owned);
    if section.get("tiers").is_none() {
        match section.get("fields") {
            Some(fields) => diagnostics.error_help(
                "missing-key",
                fields.span,
                "a section has its fields inside \"tiers\"",
                "wrap them: \"tiers\": [{\"label\": \"default\", \"fields\": […]}]",
            ),
            None => section.missing("tiers", diagnostics),
        }
        return None;
    }
    let nodes = list(&mut section, "tiers", diagnostics)?;
    let mut tiers = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        let n = n.to_string();
        tiers.extend(tier(node, &[at, &["tiers", &n]].concat(), entries, diagnostics));
    }
    entries.unused.rest(&section, "a section", at, diagnostics);
    if nodes.is_empty() {
        let name = name.as_deref().unwrap_or_default();
        let message = format!("section {name} has no tiers, so nothing in it is checked");
        diagnostics.warning("no-checks", node.span, message);
    }
    Some(Section { name: name?, tiers })
}

fn tier(node: &Node, at: At<'_>, entries: &mut Entries<'_>, diagnostics: &mut Diagnostics) -> Option<Tier> {
    let mut tier = Object::new(node, "a tier", diagnostics)?;
    let label = tier.required_text("label", diagnostics).map(str::to_owned);
    let description = tier.text("description", diagnostics).map(str::to_owned);
    let min_entries = int(&mut tier, "min_entries", 0, u32::MAX, diagnostics).unwrap_or(0);
    // Null is how the original writes that there is no limit.
    let max_entries = match tier.given("max_entries") {
        Some(_) => int(&mut tier, "max_entries", 0, u32::MAX, diagnostics),
        None => None,
    };
    if let Some(most) = max_entries.filter(|most| *most < min_entries) {
        let message = format!("at least {min_entries} and at most {most} entries can never be found");
        diagnostics.error("out-of-range", node.span, message);
    }
    let nodes = list(&mut tier, "fields", diagnostics).unwrap_or_default();
    let mut fields = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        let n = n.to_string();
        fields.extend(field(node, &[at, &["fields", &n]].concat(), entries, diagnostics));
    }
    entries.unused.rest(&tier, "a tier", at, diagnostics);
    Some(Tier { label: label?, description, min_entries, max_entries, fields })
}

fn field(node: &Node, at: At<'_>, entries: &mut Entries<'_>, diagnostics: &mut Diagnostics) -> Option<Field> {
    let mut field = Object::new(node, "a field", diagnostics)?;
    let id = entries.id(&mut field, "a field", diagnostics);
    let name = field.required_text("name", diagnostics).map(str::to_owned);
    let required = field.bool("required", diagnostics).unwrap_or(true);
    let format = field.given("format").and_then(|node| format(node, diagnostics));
    if let Some(node) = field.get("pattern") {
        let help = "write \"format\"; it takes a pattern too";
        diagnostics.error_help("unknown-key", node.span, "a field has no \"pattern\"", help);
    }
    entries.unused.rest(&field, "a field", at, diagnostics);
    Some(Field { id: id?.to_owned(), name: name?, required, format })
}

/// A registered name, or a pattern for the whole value.
fn format(node: &Node, diagnostics: &mut Diagnostics) -> Option<String> {
    let text = text_of(node, "format", diagnostics)?;
    if text.is_empty() {
        diagnostics.error("empty-text", node.span, "\"format\" must not be empty");
        return None;
    }
    if Format::named(text).is_some() {
        return Some(text.to_owned());
    }
    if let Err(problem) = Pattern::new(text) {
        let message =
            format!("\"{text}\" is neither a registered format nor a pattern that compiles: {problem}");
        diagnostics.error("invalid-pattern", node.span, message);
        return None;
    }
    let word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if word && let Some(known) = Format::near_miss(text) {
        let message = format!(
            "\"{text}\" is no registered format and is read as a pattern (did you mean \"{known}\"?)"
        );
        diagnostics.notice("unregistered-format", node.span, message);
    }
    Some(text.to_owned())
}

pub fn criteria(
    spec: &mut Object<'_>,
    entries: &mut Entries<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Check> {
    let mut checks = Vec::new();
    for (n, node) in list(spec, "grading_criteria", diagnostics).unwrap_or_default().iter().enumerate() {
        if node.as_text().is_some() {
            let help = "write {\"id\": \"…\", \"criterion\": \"…\"}";
            diagnostics.error_help("wrong-type", node.span, "a criterion has an id beside its text", help);
            continue;
        }
        let Some(mut entry) = Object::new(node, "a criterion", diagnostics) else { continue };
        let id = entries.id(&mut entry, "a criterion", diagnostics);
        let statement = entry.required_text("criterion", diagnostics);
        entries.unused.rest(&entry, "a criterion", &["grading_criteria", &n.to_string()], diagnostics);
        let (Some(id), Some(statement)) = (id, statement) else { continue };
        let judged = Judged { statement: statement.to_owned(), context: None, scale: Scale::Unit };
        checks.push(entries.check(id.to_owned(), None, CheckKind::Judged(judged)));
    }
    checks
}

/// What the criteria of a run must reach together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    pub pass_rate: Ratio,
    pub mean_score: Ratio,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { pass_rate: share(0.7), mean_score: share(0.5) }
    }
}

/// What the criteria must reach, if there are any.
pub fn thresholds(
    spec: &mut Object<'_>,
    criteria: bool,
    unused: &mut Unused,
    diagnostics: &mut Diagnostics,
) -> Option<Thresholds> {
    let mut thresholds = Thresholds::default();
    if let Some(node) = spec.given("grade_thresholds")
        && let Some(mut given) = Object::new(node, "grade_thresholds", diagnostics)
    {
        let mut share =
            |key, default| given.number(key, 0.0, 1.0, diagnostics).and_then(Ratio::new).unwrap_or(default);
        thresholds.pass_rate = share("min_pass_rate", thresholds.pass_rate);
        thresholds.mean_score = share("min_mean_score", thresholds.mean_score);
        unused.rest(&given, "grade_thresholds", &["grade_thresholds"], diagnostics);
    }
    if !criteria {
        unused.key(spec, "grade_thresholds", "there are no grading_criteria", diagnostics);
    }
    criteria.then_some(thresholds)
}

pub struct Variance {
    pub runs: u32,
    pub stability: Ratio,
}

/// How often anything may be run.
const MOST_RUNS: u32 = 1000;

pub fn variance(
    spec: &mut Object<'_>,
    unused: &mut Unused,
    diagnostics: &mut Diagnostics,
) -> Option<Variance> {
    let node = spec.given("variance")?;
    let mut given = Object::new(node, "variance", diagnostics)?;
    let runs = int(&mut given, "n_runs", 1, MOST_RUNS, diagnostics);
    if let Some(node) = given.get("min_stability").filter(|node| node.is_null()) {
        wrong_type(node, "min_stability", "a number", diagnostics);
    }
    let stability = given.number("min_stability", 0.0, 1.0, diagnostics).and_then(Ratio::new);
    unused.rest(&given, "variance", &["variance"], diagnostics);
    Some(Variance { runs: runs.unwrap_or(5), stability: stability.unwrap_or_else(|| share(0.8)) })
}

pub fn share(value: f64) -> Ratio {
    Ratio::new(value).expect("written here as a share")
}

use super::EntryIds;
use crate::model::{
    Check, CheckKind, Diagnostics, Field, Judged, LooksAt, Need, Ratio, Scale, Section, Tier,
};
use crate::score::{Format, Pattern};
use crate::tree::{Node, Object, text_of};

pub fn sections(
    spec: &mut Object<'_>,
    looks_at: &LooksAt,
    ids: &mut EntryIds,
    diagnostics: &mut Diagnostics,
) -> Option<Check> {
    let nodes = spec.list("sections", diagnostics)?;
    let sections: Vec<Section> = nodes.iter().filter_map(|node| section(node, ids, diagnostics)).collect();
    if sections.is_empty() {
        return None;
    }
    Some(Check {
        id: "sections".to_owned(),
        name: None,
        need: Need::Required,
        looks_at: looks_at.clone(),
        kind: CheckKind::Sections(sections),
    })
}

fn section(node: &Node, ids: &mut EntryIds, diagnostics: &mut Diagnostics) -> Option<Section> {
    let mut section = Object::new(node, "a section", diagnostics)?;
    let name = section.required_text("name", diagnostics).map(str::to_owned);
    let tiers = match section.get("tiers") {
        Some(node) => match node.as_list() {
            Some(tiers) => tiers,
            None => {
                crate::tree::wrong_type(node, "tiers", "a list", diagnostics);
                return None;
            }
        },
        None if section.get("fields").is_some() => {
            let help = "wrap the fields in \"tiers\": [{\"label\": \"default\", \"fields\": […]}]";
            diagnostics.error_help(
                "missing-key",
                node.span,
                "a section has its fields inside \"tiers\"",
                help,
            );
            return None;
        }
        None => {
            section.missing("tiers", diagnostics);
            return None;
        }
    };
    section.note_rest("a section", diagnostics);
    let tiers = tiers.iter().filter_map(|node| tier(node, ids, diagnostics)).collect();
    Some(Section { name: name?, tiers })
}

fn tier(node: &Node, ids: &mut EntryIds, diagnostics: &mut Diagnostics) -> Option<Tier> {
    let mut tier = Object::new(node, "a tier", diagnostics)?;
    let label = tier.required_text("label", diagnostics).map(str::to_owned);
    let description = tier.text("description", diagnostics).map(str::to_owned);
    let most = i64::from(u32::MAX);
    let min_entries = tier.int("min_entries", 0, most, diagnostics).and_then(|n| u32::try_from(n).ok());
    let max_entries = tier.int("max_entries", 0, most, diagnostics).and_then(|n| u32::try_from(n).ok());
    let fields = tier.list("fields", diagnostics).unwrap_or_default();
    tier.note_rest("a tier", diagnostics);
    let fields = fields.iter().filter_map(|node| field(node, ids, diagnostics)).collect();
    Some(Tier { label: label?, description, min_entries: min_entries.unwrap_or(0), max_entries, fields })
}

fn field(node: &Node, ids: &mut EntryIds, diagnostics: &mut Diagnostics) -> Option<Field> {
    let mut field = Object::new(node, "a field", diagnostics)?;
    let id = ids.take(&mut field, "a field", diagnostics);
    let name = field.required_text("name", diagnostics).map(str::to_owned);
    let required = field.bool("required", diagnostics).unwrap_or(true);
    let format = field.given("format").and_then(|node| format(node, diagnostics));
    if let Some(node) = field.get("pattern") {
        let help = "write \"format\"; it takes a pattern too";
        diagnostics.error_help("unknown-key", node.span, "a field has no \"pattern\"", help);
    }
    field.note_rest("a field", diagnostics);
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
    looks_at: &LooksAt,
    ids: &mut EntryIds,
    diagnostics: &mut Diagnostics,
) -> Vec<Check> {
    let Some(node) = spec.get("grading_criteria") else { return Vec::new() };
    let Some(nodes) = node.as_list() else {
        crate::tree::wrong_type(node, "grading_criteria", "a list", diagnostics);
        return Vec::new();
    };
    let mut checks = Vec::new();
    for node in nodes {
        let Some(mut entry) = Object::new(node, "a criterion", diagnostics) else { continue };
        let id = ids.take(&mut entry, "a criterion", diagnostics);
        let statement = entry.required_text("criterion", diagnostics);
        entry.note_rest("a criterion", diagnostics);
        let (Some(id), Some(statement)) = (id, statement) else { continue };
        checks.push(Check {
            id: id.to_owned(),
            name: None,
            // One criterion may fail as long as the share and the mean hold.
            need: Need::Advisory,
            looks_at: looks_at.clone(),
            kind: CheckKind::Judged(Judged {
                statement: statement.to_owned(),
                context: None,
                scale: Scale::Unit,
            }),
        });
    }
    checks
}

pub struct Thresholds {
    pub pass_rate: Ratio,
    pub mean_score: Ratio,
}

pub fn thresholds(spec: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Thresholds {
    let mut thresholds = Thresholds { pass_rate: share(0.7), mean_score: share(0.5) };
    let Some(mut given) =
        spec.given("grade_thresholds").and_then(|node| Object::new(node, "grade_thresholds", diagnostics))
    else {
        return thresholds;
    };
    if let Some(rate) = given.number("min_pass_rate", 0.0, 1.0, diagnostics).and_then(Ratio::new) {
        thresholds.pass_rate = rate;
    }
    if let Some(mean) = given.number("min_mean_score", 0.0, 1.0, diagnostics).and_then(Ratio::new) {
        thresholds.mean_score = mean;
    }
    given.note_rest("grade_thresholds", diagnostics);
    thresholds
}

#[derive(Clone, Copy)]
pub struct Variance {
    pub runs: u32,
    pub stability: Ratio,
}

pub fn variance(spec: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<Variance> {
    let node = spec.given("variance")?;
    let mut given = Object::new(node, "variance", diagnostics)?;
    let runs = given.int("n_runs", 1, 1000, diagnostics).and_then(|n| u32::try_from(n).ok());
    let stability = given.number("min_stability", 0.0, 1.0, diagnostics).and_then(Ratio::new);
    given.note_rest("variance", diagnostics);
    Some(Variance { runs: runs.unwrap_or(5), stability: stability.unwrap_or_else(|| share(0.8)) })
}

pub fn whole() -> Ratio {
    share(1.0)
}

fn share(value: f64) -> Ratio {
    Ratio::new(value).expect("the documented defaults are shares")
}

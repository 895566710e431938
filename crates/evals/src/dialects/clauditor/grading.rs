//! Reads the sections, criteria, thresholds and variance settings of a clauditor spec.

use super::SpecEntries;
use super::keys::{read_int, read_list};
use super::unused_spec_keys::{SpecPath, UnusedSpecKeys};
use crate::checks::{NamedFormat, PythonPattern};
use practicum_core::model::{
    Check, CheckKind, Diagnostics, JudgedStatement, OutputSection, Ratio, ScoreScale, SectionField,
    SectionTier,
};
use practicum_core::tree::{ObjectReader, TreeNode, node_text, report_wrong_type};

pub fn read_sections(
    spec: &mut ObjectReader<'_>,
    entries: &mut SpecEntries<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<OutputSection> {
    let nodes = read_list(spec, "sections", diagnostics).unwrap_or_default();
    let read = |(n, node)| read_section(node, &["sections", &usize::to_string(&n)], entries, diagnostics);
    nodes.iter().enumerate().filter_map(read).collect()
}

fn read_section(
    node: &TreeNode,
    at: SpecPath<'_>,
    entries: &mut SpecEntries<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<OutputSection> {
    let mut section = ObjectReader::new(node, "a section", diagnostics)?;
    let name = section.required_text("name", diagnostics).map(str::to_owned);
    if section.get("tiers").is_none() {
        match section.get("fields") {
            Some(fields) => diagnostics.error_with_help(
                "missing-key",
                fields.span,
                "a section has its fields inside \"tiers\"",
                "wrap them: \"tiers\": [{\"label\": \"default\", \"fields\": […]}]",
            ),
            None => section.report_missing("tiers", diagnostics),
        }
        return None;
    }
    let nodes = read_list(&mut section, "tiers", diagnostics)?;
    let mut tiers = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        let n = n.to_string();
        tiers.extend(read_tier(node, &[at, &["tiers", &n]].concat(), entries, diagnostics));
    }
    entries.unused_keys.keep_rest(&section, "a section", at, diagnostics);
    if nodes.is_empty() {
        let name = name.as_deref().unwrap_or_default();
        let message = format!("section {name} has no tiers, so nothing in it is checked");
        diagnostics.warning("no-checks", node.span, message);
    }
    Some(OutputSection { name: name?, tiers })
}

fn read_tier(
    node: &TreeNode,
    at: SpecPath<'_>,
    entries: &mut SpecEntries<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<SectionTier> {
    let mut tier = ObjectReader::new(node, "a tier", diagnostics)?;
    let label = tier.required_text("label", diagnostics).map(str::to_owned);
    let description = tier.text("description", diagnostics).map(str::to_owned);
    let min_entries = read_int(&mut tier, "min_entries", 0, u32::MAX, diagnostics).unwrap_or(0);
    // The original tool writes null for "no limit".
    let max_entries = match tier.get_non_null("max_entries") {
        Some(_) => read_int(&mut tier, "max_entries", 0, u32::MAX, diagnostics),
        None => None,
    };
    if let Some(most) = max_entries.filter(|most| *most < min_entries) {
        let message = format!("at least {min_entries} and at most {most} entries can never be found");
        diagnostics.error("out-of-range", node.span, message);
    }
    let nodes = read_list(&mut tier, "fields", diagnostics).unwrap_or_default();
    let mut fields = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        let n = n.to_string();
        fields.extend(read_field(node, &[at, &["fields", &n]].concat(), entries, diagnostics));
    }
    entries.unused_keys.keep_rest(&tier, "a tier", at, diagnostics);
    Some(SectionTier { label: label?, description, min_entries, max_entries, fields })
}

fn read_field(
    node: &TreeNode,
    at: SpecPath<'_>,
    entries: &mut SpecEntries<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<SectionField> {
    let mut field = ObjectReader::new(node, "a field", diagnostics)?;
    let id = entries.read_id(&mut field, "a field", diagnostics);
    let name = field.required_text("name", diagnostics).map(str::to_owned);
    let required = field.bool("required", diagnostics).unwrap_or(true);
    let format = field.get_non_null("format").and_then(|node| read_format(node, diagnostics));
    if let Some(node) = field.get("pattern") {
        let help = "write \"format\"; it takes a pattern too";
        diagnostics.error_with_help("unknown-key", node.span, "a field has no \"pattern\"", help);
    }
    entries.unused_keys.keep_rest(&field, "a field", at, diagnostics);
    Some(SectionField { id: id?.to_owned(), name: name?, required, format })
}

/// Reads a named format, or a pattern for the whole value.
fn read_format(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<String> {
    let text = node_text(node, "format", diagnostics)?;
    if text.is_empty() {
        diagnostics.error("empty-text", node.span, "\"format\" must not be empty");
        return None;
    }
    if NamedFormat::find_format(text).is_some() {
        return Some(text.to_owned());
    }
    if let Err(problem) = PythonPattern::new(text) {
        let message =
            format!("\"{text}\" is neither a registered format nor a pattern that compiles: {problem}");
        diagnostics.error("invalid-pattern", node.span, message);
        return None;
    }
    let word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if word && let Some(known) = NamedFormat::near_miss(text) {
        let message = format!(
            "\"{text}\" is no registered format and is read as a pattern (did you mean \"{known}\"?)"
        );
        diagnostics.notice("unregistered-format", node.span, message);
    }
    Some(text.to_owned())
}

pub fn read_criteria(
    spec: &mut ObjectReader<'_>,
    entries: &mut SpecEntries<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Check> {
    let mut checks = Vec::new();
    for (n, node) in read_list(spec, "grading_criteria", diagnostics).unwrap_or_default().iter().enumerate() {
        if node.as_text().is_some() {
            let help = "write {\"id\": \"…\", \"criterion\": \"…\"}";
            diagnostics.error_with_help(
                "wrong-type",
                node.span,
                "a criterion has an id beside its text",
                help,
            );
            continue;
        }
        let Some(mut entry) = ObjectReader::new(node, "a criterion", diagnostics) else { continue };
        let id = entries.read_id(&mut entry, "a criterion", diagnostics);
        let statement = entry.required_text("criterion", diagnostics);
        entries.unused_keys.keep_rest(
            &entry,
            "a criterion",
            &["grading_criteria", &n.to_string()],
            diagnostics,
        );
        let (Some(id), Some(statement)) = (id, statement) else { continue };
        let judged =
            JudgedStatement { statement: statement.to_owned(), context: None, scale: ScoreScale::Unit };
        checks.push(entries.build_check(id.to_owned(), None, CheckKind::Judged(judged)));
    }
    checks
}

/// The thresholds that the criteria of a run must reach together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClauditorThresholds {
    pub pass_rate: Ratio,
    pub mean_score: Ratio,
}

impl Default for ClauditorThresholds {
    fn default() -> Self {
        Self { pass_rate: to_ratio(0.7), mean_score: to_ratio(0.5) }
    }
}

/// Reads the thresholds, if there are criteria.
pub fn read_thresholds(
    spec: &mut ObjectReader<'_>,
    criteria: bool,
    unused: &mut UnusedSpecKeys,
    diagnostics: &mut Diagnostics,
) -> Option<ClauditorThresholds> {
    let mut thresholds = ClauditorThresholds::default();
    if let Some(node) = spec.get_non_null("grade_thresholds")
        && let Some(mut given) = ObjectReader::new(node, "grade_thresholds", diagnostics)
    {
        let mut share =
            |key, default| given.number(key, 0.0, 1.0, diagnostics).and_then(Ratio::new).unwrap_or(default);
        thresholds.pass_rate = share("min_pass_rate", thresholds.pass_rate);
        thresholds.mean_score = share("min_mean_score", thresholds.mean_score);
        unused.keep_rest(&given, "grade_thresholds", &["grade_thresholds"], diagnostics);
    }
    if !criteria {
        unused.keep_key(spec, "grade_thresholds", "there are no grading_criteria", diagnostics);
    }
    criteria.then_some(thresholds)
}

/// The number of runs of a spec, and the stability that they must reach.
pub struct VarianceSettings {
    pub runs: u32,
    pub stability: Ratio,
}

/// The largest number of runs.
pub const MOST_RUNS: u32 = 1000;

pub fn read_variance(
    spec: &mut ObjectReader<'_>,
    unused: &mut UnusedSpecKeys,
    diagnostics: &mut Diagnostics,
) -> Option<VarianceSettings> {
    let node = spec.get_non_null("variance")?;
    let mut given = ObjectReader::new(node, "variance", diagnostics)?;
    let runs = read_int(&mut given, "n_runs", 1, MOST_RUNS, diagnostics);
    if let Some(node) = given.get("min_stability").filter(|node| node.is_null()) {
        report_wrong_type(node, "min_stability", "a number", diagnostics);
    }
    let stability = given.number("min_stability", 0.0, 1.0, diagnostics).and_then(Ratio::new);
    unused.keep_rest(&given, "variance", &["variance"], diagnostics);
    Some(VarianceSettings { runs: runs.unwrap_or(5), stability: stability.unwrap_or_else(|| to_ratio(0.8)) })
}

/// Makes a ratio from a constant. Panics if it is not between 0 and 1.
pub fn to_ratio(value: f64) -> Ratio {
    Ratio::new(value).expect("written here as a share")
}

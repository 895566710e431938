//! Writes output sections into a clauditor spec.

use serde_json::{Map, Value, json};

use super::super::super::reading::UniqueIds;
use super::super::super::writing::Losses;
use crate::checks::{NamedFormat, PythonPattern};
use practicum_core::model::{OutputSection, SectionField, SectionTier};

/// Gives sections in the form of the format. A section without a name cannot be written.
pub fn write_sections(
    sections: &[OutputSection],
    ids: &mut UniqueIds,
    case: &str,
    losses: &mut Losses,
) -> Vec<Value> {
    let mut written = Vec::new();
    for OutputSection { name, tiers } in sections {
        if report_unnamed(name, case, losses) {
            continue;
        }
        let tiers: Vec<Value> = tiers.iter().filter_map(|tier| write_tier(tier, ids, case, losses)).collect();
        written.push(json!({"name": name, "tiers": tiers}));
    }
    written
}

fn report_unnamed(name: &str, case: &str, losses: &mut Losses) -> bool {
    let unnamed = name.trim().is_empty();
    if unnamed {
        losses.add_for_case(case, "sections, tiers and fields without a name");
    }
    unnamed
}

fn write_tier(tier: &SectionTier, ids: &mut UniqueIds, case: &str, losses: &mut Losses) -> Option<Value> {
    let SectionTier { label, description, min_entries, max_entries, fields } = tier;
    if report_unnamed(label, case, losses) {
        return None;
    }
    let mut map = Map::new();
    map.insert("label".to_owned(), json!(label));
    if let Some(description) = description {
        map.insert("description".to_owned(), json!(description));
    }
    map.insert("min_entries".to_owned(), json!(min_entries));
    if let Some(most) = max_entries {
        map.insert("max_entries".to_owned(), json!(most));
    }
    let fields: Vec<Value> =
        fields.iter().filter_map(|field| write_field(field, ids, case, losses)).collect();
    map.insert("fields".to_owned(), Value::Array(fields));
    Some(Value::Object(map))
}

fn write_field(field: &SectionField, ids: &mut UniqueIds, case: &str, losses: &mut Losses) -> Option<Value> {
    let SectionField { id, name, required, format } = field;
    if report_unnamed(name, case, losses) {
        return None;
    }
    let own = ids.make_unique(if id.is_empty() { "field" } else { id });
    if own != *id {
        losses.add_for_case(case, format!("the id \"{id}\" of a field, which here is \"{own}\""));
    }
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(own));
    map.insert("name".to_owned(), json!(name));
    map.insert("required".to_owned(), json!(required));
    if let Some(format) = format {
        let known = NamedFormat::find_format(format).is_some()
            || !format.is_empty() && PythonPattern::new(format).is_ok();
        if known {
            map.insert("format".to_owned(), json!(format));
        } else {
            losses.add_for_case(case, format!("the format \"{format}\", which is no pattern"));
        }
    }
    Some(Value::Object(map))
}

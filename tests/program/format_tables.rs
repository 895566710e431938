//! The tables of fields in the pages of formats: what a page does not explain itself comes from the schema of the format.
//!
//! `PRACTICUM_UPDATE_DOCS=1 cargo test --test program format_tables` writes the generated parts.

use std::path::Path;

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The line that begins the generated part of a page. It is the last part.
const BEGIN: &str = "<!-- The fields below come from the schema of the format; a test writes them. -->";

/// The native format has a table by sections, and refused formats have no fields.
const WITHOUT_TABLE: [&str; 3] = ["native", "harbor", "skill-validator"];

/// Collects the keys of a schema with their descriptions, each key once.
fn collect_fields(schema: &Value, fields: &mut Vec<(String, String)>) {
    match schema {
        Value::Object(map) => {
            for (key, part) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if let Some(text) = part.get("description").and_then(Value::as_str)
                    && fields.iter().all(|(known, _)| known != key)
                {
                    fields.push((key.clone(), text.trim_end_matches('.').to_owned()));
                }
            }
            map.values().for_each(|part| collect_fields(part, fields));
        }
        Value::Array(parts) => parts.iter().for_each(|part| collect_fields(part, fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Says whether a page names a field as code.
fn names_field(page: &str, field: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    page.split('`')
        .skip(1)
        .step_by(2)
        .any(|code| code.split(|letter| !is_part(letter)).any(|word| word == field))
}

/// Gives a page with its generated part: a table of the fields that the rest of the page does not name.
fn with_table(page: &str, schema: &Value) -> String {
    let own = page.split(BEGIN).next().unwrap_or(page).trim_end();
    let mut fields = Vec::new();
    collect_fields(schema, &mut fields);
    fields.retain(|(field, _)| !names_field(own, field));
    if fields.is_empty() {
        return format!("{own}\n");
    }
    let rows: Vec<String> = fields
        .iter()
        .map(|(field, meaning)| {
            format!("| `{field}` | {} | |", meaning.replace('|', "\\|").replace('\n', " "))
        })
        .collect();
    let head = "| field | meaning here | differs from the original in |\n|---|---|---|";
    format!("{own}\n\n{BEGIN}\n\n{head}\n{}\n", rows.join("\n"))
}

#[test]
fn every_field_of_a_format_is_in_its_page() {
    let mut wrong = Vec::new();
    for dialect in
        practicum::dialects::DIALECTS.iter().filter(|format| !WITHOUT_TABLE.contains(&format.name()))
    {
        let path = Path::new(ROOT).join(format!("docs/{}.md", dialect.name()));
        let page = std::fs::read_to_string(&path).expect("a page");
        let right = with_table(&page, &dialect.schema());
        if page != right {
            match std::env::var_os("PRACTICUM_UPDATE_DOCS") {
                Some(_) => std::fs::write(&path, right).expect("write"),
                None => wrong.push(dialect.name()),
            }
        }
    }
    assert_eq!(wrong, Vec::<&str>::new(), "run this test with PRACTICUM_UPDATE_DOCS=1");
}

#[test]
fn a_field_that_a_page_explains_is_not_repeated() {
    let schema = serde_json::json!({"properties": {
        "runs": {"description": "How often."}, "weight": {"description": "How much."},
        "list": {"items": {"properties": {"deep": {"description": "A | b."}}}}}});
    let page = "# Page\n\n| `a.runs` | x | |\n";
    let made = with_table(page, &schema);
    assert!(made.ends_with("| `weight` | How much | |\n| `deep` | A \\| b | |\n"), "{made}");
    assert!(!made.contains("`runs`"), "{made}");
    assert_eq!(with_table(&made, &schema), made);
}

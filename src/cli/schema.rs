//! The command `practicum schema`: prints the JSON Schema of a file.

use super::{print, print_json, report_error};
use crate::model::Outcome;
use crate::schema;

#[derive(clap::Args)]
#[command(after_help = "\
Editors complete and explain a file that names its schema. For YAML, as the first line:

  # yaml-language-server: $schema=./practicum.schema.json

Examples:
  practicum schema                         every name, and what it describes
  practicum schema native > practicum.schema.json
  practicum run . --json | jq .totals      as practicum schema summary says")]
pub struct SchemaArgs {
    /// The file's format, or the output; all names if absent
    #[arg(hide_possible_values = true, value_parser = clap::builder::PossibleValuesParser::new(schema::names()))]
    name: Option<String>,
}

pub fn main(args: &SchemaArgs) -> Outcome {
    let printed = match args.name.as_deref().and_then(schema::schema) {
        Some(schema) => print_json(&schema),
        None => print(&list_schemas()),
    };
    printed.map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn list_schemas() -> String {
    schema::SCHEMAS
        .iter()
        .map(|published| format!("{:<16} {}\n", published.name, published.title()))
        .collect()
}

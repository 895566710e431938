use super::{complain, print, print_json};
use crate::schema;

#[derive(clap::Args)]
#[command(after_help = "\
Editors complete and explain a file that names its schema. For YAML, as the first line:

  # yaml-language-server: $schema=./practicum.schema.json

Examples:
  practicum schema                         every name, with what it is of
  practicum schema native > practicum.schema.json
  practicum run . --json | jq .totals      as practicum schema summary says")]
pub struct Args {
    /// The file's format, or the output; all names if absent
    #[arg(hide_possible_values = true, value_parser = clap::builder::PossibleValuesParser::new(schema::names()))]
    name: Option<String>,
}

pub fn main(args: &Args) -> u8 {
    let printed = match args.name.as_deref().and_then(schema::schema) {
        Some(schema) => print_json(&schema),
        None => print(&in_words()),
    };
    printed.map_or_else(|error| complain(&error), |()| 0)
}

fn in_words() -> String {
    schema::SCHEMAS
        .iter()
        .map(|published| format!("{:<16} {}\n", published.name, published.title()))
        .collect()
}

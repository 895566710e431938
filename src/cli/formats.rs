//! The command `practicum formats`: lists the named formats of values.

use super::{print, report_error};
use crate::checks::FORMATS;
use crate::model::Outcome;

#[derive(clap::Args)]
#[command(after_help = "\
Each line is a name, an example of it, and the regular expression that decides. In an eval file:

  checks:
    - has_format: { format: email, count: 2 }")]
pub struct FormatsArgs {
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: FormatsArgs) -> Outcome {
    let text = if args.json {
        let formats: Vec<serde_json::Value> = FORMATS
            .iter()
            .map(|format| serde_json::json!({"name": format.name, "pattern": format.pattern, "example": format.example}))
            .collect();
        format!("{:#}\n", serde_json::json!({"schema_version": 1, "formats": formats}))
    } else {
        FORMATS
            .iter()
            .map(|format| format!("{:<14} {:<38} {}\n", format.name, format.example, format.pattern))
            .collect()
    };
    match print(&text) {
        Ok(()) => Outcome::Passed,
        Err(error) => report_error(&error),
    }
}

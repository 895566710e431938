//! The command `practicum formats`: lists the eval formats, or the named formats of values.

use serde_json::json;

use super::{print, report_error};
use crate::checks::FORMATS;
use crate::dialects::DIALECTS;
use crate::model::Outcome;

#[derive(clap::Args)]
#[command(after_help = "\
Without --text, each line is an eval format and how its files are recognised. practicum check \
--explain-format says how a file was recognised; --dialect NAME chooses a format.

With --text, each line is the name of a format of values, an example of it, and the regular expression \
that decides. In an eval file:

  checks:
    - has_format: { format: email, count: 2 }")]
pub struct FormatsArgs {
    /// List the named formats of values, such as email and date_iso
    #[arg(long)]
    text: bool,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: FormatsArgs) -> Outcome {
    let text = match (args.text, args.json) {
        (true, true) => {
            let formats: Vec<serde_json::Value> = FORMATS
                .iter()
                .map(|format| json!({"name": format.name, "pattern": format.pattern, "example": format.example}))
                .collect();
            format!("{:#}\n", json!({"schema_version": 1, "formats": formats}))
        }
        (true, false) => FORMATS
            .iter()
            .map(|format| format!("{:<14} {:<38} {}\n", format.name, format.example, format.pattern))
            .collect(),
        (false, true) => {
            let formats: Vec<serde_json::Value> = DIALECTS
                .iter()
                .map(|format| {
                    let (name, files) = (format.name(), format.file_names());
                    json!({"name": name, "recognised_by": format.recognition_rule(), "file_names": files})
                })
                .collect();
            format!("{:#}\n", json!({"schema_version": 1, "eval_formats": formats}))
        }
        (false, false) => DIALECTS
            .iter()
            .map(|format| format!("{:<15} {}\n", format.name(), format.recognition_rule()))
            .collect(),
    };
    match print(&text) {
        Ok(()) => Outcome::Passed,
        Err(error) => report_error(&error),
    }
}

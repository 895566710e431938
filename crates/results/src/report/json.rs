use std::io::Write;

use super::{Form, Report, Results};

/// The summary document.
pub static REPORT: Report =
    Report { name: "json", about: "the summary document", form: Form::File(write), adds: None };

fn write(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &results.summary)?;
    out.write_all(b"\n")
}

use std::io::Write;

use super::{Report, Results};

/// The summary document.
pub struct Json;

impl Report for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn write(&self, results: &Results<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, results.summary)?;
        out.write_all(b"\n")
    }
}

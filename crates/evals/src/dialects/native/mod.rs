//! The native format: a `Suite` as a person would write it. It can express everything that any other format can.

mod about_skill;
mod case_checks;
mod decode;
mod encode;
mod gates;
mod inline_files;
mod mocks;
mod policy;
mod recording;
#[cfg(test)]
pub mod round_trip;
mod schema;
mod server_role;
mod stored;
mod user;

pub use encode::{case_value, encode_suite, relative_path};
pub use mocks::add_inputs_check;
#[cfg(test)]
pub use mocks::report_unknown_mocks;
pub use recording::{decode_file as decode_recording, encode_file as encode_recording};
pub use stored::{decode_stored_suite, encode_stored_suite};

use std::path::Path;

use serde_json::Value;

use self::decode::DocumentSource;
use super::{Dialect, EvalFileLocation, ExportedFile, ExportedSuite, FormatMatch, writing};
use practicum_core::model::{Diagnostics, Suite};
use practicum_core::tree::{SourceFile, SourceSyntax};

/// The native format.
pub struct Native;

impl Dialect for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["*.practicum.yaml", "*.practicum.yml", "*.practicum.json"]
    }

    fn recognition_rule(&self) -> &'static str {
        "the key \"practicum\""
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let name = source.path.file_name().unwrap_or_default().to_string_lossy();
        let is_called_so = [".practicum.yaml", ".practicum.yml", ".practicum.json"]
            .iter()
            .any(|ending| name.ends_with(ending));
        match (source.root.has("practicum"), source.root.has("cases")) {
            (true, _) => FormatMatch::sure("it has the key \"practicum\""),
            // The file is named like a native file but lacks the key. Reading it as native tells the author about
            // the key.
            (false, true) if is_called_so => FormatMatch::with_points(120, "its name, and the key \"cases\""),
            (false, _) => FormatMatch::NO,
        }
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        decode::decode_suite(source, place, DocumentSource::EvalFile, diagnostics)
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        let document = encode_suite(suite, folder);
        let name = format!("{}.practicum.yaml", writing::file_stem(&suite.name));
        ExportedSuite {
            files: vec![ExportedFile { name, syntax: Some(SourceSyntax::Yaml), document }],
            losses: Vec::new(),
            lost_cases: Vec::new(),
        }
    }
}

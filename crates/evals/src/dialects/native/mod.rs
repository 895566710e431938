//! The native format: a `Suite` as a person would write it. It can say all that any dialect can.

mod about_skill;
mod checks;
mod decode;
mod encode;
mod policy;
#[cfg(test)]
pub mod round_trip;
mod schema;

pub use encode::{case_value, encode, relative};

use std::path::Path;

use serde_json::Value;

use super::{Dialect, Fit, Place, Raised, RaisedFile, writing};
use practicum_core::model::{Diagnostics, Suite};
use practicum_core::tree::{Source, Syntax};

pub struct Native;

impl Dialect for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn recognise(&self, source: &Source) -> Fit {
        let name = source.path.file_name().unwrap_or_default().to_string_lossy();
        let is_called_so = name.ends_with(".practicum.yaml") || name.ends_with(".practicum.yml");
        match (source.root.has("practicum"), source.root.has("cases")) {
            (true, _) => Fit::Sure,
            // Whoever calls it so and forgets the key wants to hear of the key.
            (false, true) if is_called_so => Fit::Possible,
            (false, _) => Fit::No,
        }
    }

    fn lower(&self, source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Option<Suite> {
        decode::suite(source, place, diagnostics)
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn raise(&self, suite: &Suite, folder: &Path) -> Raised {
        let document = encode(suite, folder);
        let name = format!("{}.practicum.yaml", writing::file_stem(&suite.name));
        Raised {
            files: vec![RaisedFile { name, syntax: Syntax::Yaml, document }],
            losses: Vec::new(),
            lost_cases: Vec::new(),
        }
    }
}

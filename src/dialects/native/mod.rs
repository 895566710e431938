//! The native format: a `Suite` as a person would write it. It can say all that any dialect can.

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
use crate::model::{Diagnostics, Suite};
use crate::tree::{Source, Syntax};

pub struct Native;

impl Dialect for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn recognise(&self, source: &Source) -> Fit {
        if source.root.has("practicum") { Fit::Sure } else { Fit::No }
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
        Raised { files: vec![RaisedFile { name, syntax: Syntax::Yaml, document }], losses: Vec::new() }
    }
}

//! Tests that the native format expresses everything: a suite that is written and read back is the same suite.

use std::path::Path;

use proptest::prelude::*;

use super::{Native, encode_suite};
use crate::dialects::EvalFileLocation;
use crate::dialects::testing::{location_in, lower_source, parse_source, suites};
use practicum_core::model::Suite;

/// Writes a suite in the native format and reads it back. The result gets the origin of the original.
pub fn through_native(suite: &Suite, folder: &Path) -> Suite {
    let text = encode_suite(suite, folder).to_string();
    let source = parse_source(folder.join("a.practicum.json"), &text);
    // The files of the formats lie anywhere above the evals, so the project is the topmost folder.
    let project = folder.ancestors().last().unwrap_or(folder).to_owned();
    let place = EvalFileLocation { project, ..location_in(folder) };
    let (read, diagnostics) = lower_source(&Native, &source, &place);
    assert!(!diagnostics.has_errors(), "{diagnostics:#?}\n{text}");
    Suite { origin: suite.origin.clone(), ..read.expect("a suite") }
}

proptest! {
    #[test]
    fn a_suite_written_as_native_reads_back_the_same(suite in suites::suite()) {
        prop_assert_eq!(through_native(&suite, Path::new(suites::FOLDER)), suite);
    }
}

//! The shape of every file that is read or written, as JSON Schema (draft 2020-12).
//!
//! In: a name. Out: a schema. Never: says what a format is; that stands beside what reads or
//! writes it.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::compare::Comparisons;
use crate::dialects::{self, DIALECTS};
use crate::event::RunEvent;
use crate::gateway;
use crate::history::{Audited, ExportedCheck, ExportedTrial, Trend};
use crate::improve::{Analysis, Blind, Candidates, Capture, Comparison, Edits, Improved};
use crate::model::{Noise, Summary};
use crate::report::{Called, Checked, ComparedTexts, Graded, Grading, Listed, ListedRuns, Needed, Regraded};
use crate::settings;
use crate::store::{Label, RunInfo, TrialChecks, TrialFacts};
use crate::versions::{self, History, Score};

/// A schema under its name.
pub struct Published {
    pub name: &'static str,
    schema: Value,
}

impl Published {
    /// What the schema is of, in a few words.
    pub fn title(&self) -> &str {
        self.schema["title"].as_str().unwrap_or_default()
    }
}

/// The eval formats, the other files that people write, then what the program writes.
pub static SCHEMAS: LazyLock<Vec<Published>> = LazyLock::new(|| {
    let formats = DIALECTS.iter().map(|dialect| Published { name: dialect.name(), schema: dialect.schema() });
    let others = [
        ("triggers", dialects::trigger_schema()),
        ("script", gateway::script_schema()),
        ("project", settings::project_schema()),
        ("summary", written::<Summary>()),
        ("run", written::<RunInfo>()),
        ("checks", written::<TrialChecks<'static>>()),
        ("facts", written::<TrialFacts>()),
        ("events", written::<RunEvent>()),
        ("check", written::<Checked>()),
        ("list", written::<Listed>()),
        ("grade", written::<Graded>()),
        ("regrade", written::<Regraded>()),
        ("power", written::<Needed>()),
        ("compare", written::<Comparisons>()),
        ("compare-texts", written::<ComparedTexts>()),
        ("call", written::<Called>()),
        ("noise", written::<Noise>()),
        ("runs", written::<ListedRuns>()),
        ("trend", written::<Trend>()),
        ("audit", written::<Audited>()),
        ("labels", written::<Label>()),
        ("export-trials", written::<ExportedTrial>()),
        ("export-checks", written::<ExportedCheck>()),
        ("versions", written::<versions::Listed>()),
        ("version-score", written::<Score>()),
        ("blind", written::<Blind>()),
        ("suggest", written::<Edits>()),
        ("improve", written::<Improved>()),
        ("propose", written::<Candidates>()),
        ("capture", written::<Capture>()),
        ("history", written::<History>()),
        ("grading", written::<Grading>()),
        ("comparison", written::<Comparison>()),
        ("analysis", written::<Analysis>()),
    ];
    formats.chain(others.into_iter().map(|(name, schema)| Published { name, schema })).collect()
});

pub fn names() -> Vec<&'static str> {
    SCHEMAS.iter().map(|published| published.name).collect()
}

pub fn schema(name: &str) -> Option<&'static Value> {
    SCHEMAS.iter().find(|published| published.name == name).map(|published| &published.schema)
}

/// What is written of a type. Other keys may come in later versions of the program, so that none
/// are ruled out.
fn written<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema: Value = SchemaGenerator::new(settings).into_root_schema_for::<T>().into();
    let Value::Object(mut rest) = schema else { return schema };
    // What it is comes first, for people who read it.
    let first = ["$schema", "title", "description"];
    let first: Vec<_> = first.iter().filter_map(|key| rest.shift_remove_entry(*key)).collect();
    Value::Object(first.into_iter().chain(rest).collect())
}

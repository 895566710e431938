//! The JSON Schema (draft 2020-12) of every file that the program reads or writes.
//!
//! In: a name. Out: a schema. Never: defines a format; the definition is beside the code that reads or writes it.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::aggregate::Calibration;
use crate::compare::ComparisonDocument;
use crate::dialects::{self, DIALECTS};
use crate::event::RunEvent;
use crate::gateway;
use crate::improve::{
    Analysis, BlindComparison, BlindReport, Candidates, CapturedTrial, EditsReport, ImproveReport,
};
use crate::model::{Baseline, Noise, Summary};
use crate::plan::settings;
use crate::report::{
    CheckDocument, GradingDocument, PlanListing, PowerDocument, RegradeDocument, RunListing,
    SkillCallDocument, TextComparisonDocument, TextGradingDocument,
};
use crate::store::history::{AuditReport, ExportedCheck, ExportedTrial, Trend};
use crate::store::{HumanLabel, LabelToFill, RunInfo, TrialChecks, TrialDigest, TrialFacts};
use crate::studies::{AblationDocument, DiagnosisDocument, ParaphraseDocument, RoutingDocument};
use crate::versions::{self, VersionHistory, VersionScore};

/// A schema with its name.
pub struct PublishedSchema {
    /// The name of the schema.
    pub name: &'static str,
    schema: Value,
}

impl PublishedSchema {
    /// Gives the title: what the schema describes, in a few words.
    pub fn title(&self) -> &str {
        self.schema["title"].as_str().unwrap_or_default()
    }
}

/// All schemas: the eval formats, the other files that people write, then the files that the program writes.
pub static SCHEMAS: LazyLock<Vec<PublishedSchema>> = LazyLock::new(|| {
    let formats =
        DIALECTS.iter().map(|dialect| PublishedSchema { name: dialect.name(), schema: dialect.schema() });
    let others = [
        ("triggers", dialects::trigger_schema()),
        ("script", gateway::script_schema()),
        ("project", settings::project_schema()),
        ("summary", output_schema::<Summary>()),
        ("run", output_schema::<RunInfo>()),
        ("checks", output_schema::<TrialChecks<'static>>()),
        ("facts", output_schema::<TrialFacts>()),
        ("digest", output_schema::<TrialDigest>()),
        ("events", with_line_marks(output_schema::<RunEvent>())),
        ("check", output_schema::<CheckDocument>()),
        ("list", output_schema::<PlanListing>()),
        ("grade", output_schema::<TextGradingDocument>()),
        ("regrade", output_schema::<RegradeDocument>()),
        ("power", output_schema::<PowerDocument>()),
        ("compare", output_schema::<ComparisonDocument>()),
        ("route", output_schema::<RoutingDocument>()),
        ("diagnose", output_schema::<DiagnosisDocument>()),
        ("ablate", output_schema::<AblationDocument>()),
        ("paraphrase", output_schema::<ParaphraseDocument>()),
        ("compare-texts", output_schema::<TextComparisonDocument>()),
        ("call", output_schema::<SkillCallDocument>()),
        ("noise", output_schema::<Noise>()),
        ("baseline", output_schema::<Baseline>()),
        ("runs", output_schema::<RunListing>()),
        ("trend", output_schema::<Trend>()),
        ("audit", output_schema::<AuditReport>()),
        ("labels", output_schema::<HumanLabel>()),
        ("labels-to-fill", output_schema::<LabelToFill>()),
        ("calibrate", output_schema::<Calibration>()),
        ("export-trials", output_schema::<ExportedTrial>()),
        ("export-checks", output_schema::<ExportedCheck>()),
        ("versions", output_schema::<versions::VersionListing>()),
        ("version-score", output_schema::<VersionScore>()),
        ("blind", output_schema::<BlindReport>()),
        ("suggest", output_schema::<EditsReport>()),
        ("improve", output_schema::<ImproveReport>()),
        ("propose", output_schema::<Candidates>()),
        ("capture", output_schema::<CapturedTrial>()),
        ("history", output_schema::<VersionHistory>()),
        ("grading", output_schema::<GradingDocument>()),
        ("comparison", output_schema::<BlindComparison>()),
        ("analysis", output_schema::<Analysis>()),
    ];
    formats.chain(others.into_iter().map(|(name, schema)| PublishedSchema { name, schema })).collect()
});

/// Adds to the schema of each event what every line of the log has at its end.
fn with_line_marks(mut schema: Value) -> Value {
    let events = schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten();
    for properties in events.filter_map(|event| event.get_mut("properties")?.as_object_mut()) {
        let checksum = "Shows whether the line is as it was written.";
        let mark = "The mark of the installation that wrote the line, if it has a key.";
        properties.insert("checksum".to_owned(), json!({"description": checksum, "type": "string"}));
        properties.insert("mark".to_owned(), json!({"description": mark, "type": "string"}));
    }
    schema
}

/// Lists the names of all schemas.
pub fn names() -> Vec<&'static str> {
    SCHEMAS.iter().map(|published| published.name).collect()
}

/// Gives the schema of this name.
pub fn schema(name: &str) -> Option<&'static Value> {
    SCHEMAS.iter().find(|published| published.name == name).map(|published| &published.schema)
}

/// Gives the schema of a type that the program writes. Later versions may add keys, so it allows other keys.
fn output_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema: Value = SchemaGenerator::new(settings).into_root_schema_for::<T>().into();
    let Value::Object(mut rest) = schema else { return schema };
    // The keys that say what the schema describes come first, for people who read it.
    let first = ["$schema", "title", "description"];
    let first: Vec<_> = first.iter().filter_map(|key| rest.shift_remove_entry(*key)).collect();
    Value::Object(first.into_iter().chain(rest).collect())
}

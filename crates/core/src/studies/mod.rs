//! Studies: what many runs together show about a catalogue of skills or about one skill.
//!
//! In: the records of trials. Out: estimates with intervals, and which runs would tell more. Never: runs anything.

mod ablation;
mod diagnosis;
mod paraphrases;
mod routing;
mod routing_document;
mod similar_descriptions;
mod skill_listing;

pub use ablation::{
    AblationDocument, AblationParagraph, AblationProposal, GroupEffect, ParagraphRole, VersionRuns,
    first_groups, group_size_for, judge_group, split_group,
};
pub use diagnosis::{
    Blame, CellComparison, Diagnosis, DiagnosisCells, DiagnosisDocument, NamedRate, diagnose,
};
pub use paraphrases::{BrokenPart, ParaphraseDocument, ParaphrasedCase, WordedCase, WordingResult};
pub use routing::{
    RoutedRun, RoutedShare, RoutingAnalysis, RoutingRow, RoutingRules, RowStanding, SkillCollision,
    analyse_routing, rows_to_repeat,
};
pub use routing_document::{CatalogueFacts, RoutingDocument, RoutingPart};
pub use similar_descriptions::{SimilarDescriptions, find_similar_descriptions};
pub use skill_listing::{CutDescription, ListingMeasurement, SkillListing};

//! The document about the routing of a catalogue, made from the records of its trials.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::routing::{RoutedRun, RoutingAnalysis, RoutingRules, RowStanding, analyse_routing};
use super::{ListingMeasurement, SimilarDescriptions, SkillListing};
use crate::model::{Case, Outcome, Ratio, Suite, TrialRecord};

/// What the runs of a catalogue show: the output of `practicum route --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Routing of prompts in a catalogue of skills (route --json)")]
pub struct RoutingDocument {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The id of the run that has all trials, or of the last one if the command was stopped.
    pub run: String,
    /// The number of skills that were staged together.
    pub skills: u64,
    /// The share of runs that should be right.
    pub goal: f64,
    /// What each agent did.
    pub agents: Vec<RoutingPart>,
    /// Skills whose descriptions have much in common. Only the descriptions were compared.
    #[serde(default)]
    pub similar: Vec<SimilarDescriptions>,
    /// The exit code of the command.
    #[schemars(with = "u8")]
    pub exit: Outcome,
}

/// What one agent did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoutingPart {
    /// The name of the agent.
    pub agent: String,
    /// What its runs show.
    #[serde(flatten)]
    pub analysis: RoutingAnalysis,
    /// What the agent tells its model about the skills.
    pub listing: ListingMeasurement,
}

/// Facts about a catalogue that are stored in its suite, so that a report can be made from the run alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CatalogueFacts {
    /// The share of runs that should be right.
    pub goal: f64,
    /// The characters of all names and descriptions.
    pub characters: u64,
}

/// The key of the facts in a suite.
const FACTS_KEY: &str = "catalogue";

impl CatalogueFacts {
    /// Reads the facts from a suite. `None` if the suite is not one of a catalogue.
    pub fn of_suite(suite: &Suite) -> Option<Self> {
        let facts = suite.meta.get(FACTS_KEY)?;
        Some(Self { goal: facts["goal"].as_f64()?, characters: facts["characters"].as_u64()? })
    }

    /// Gives the facts as the value of `meta` in a native eval file.
    pub fn to_meta(self) -> Value {
        json!({FACTS_KEY: {"goal": self.goal, "characters": self.characters}})
    }
}

impl RoutingDocument {
    /// Makes the document from the records of a catalogue's suite. `listing_of` reads what a trial shows of the agent's
    /// listing. Records of other suites are left out.
    pub fn from_records(
        run: &str,
        suite: &Suite,
        facts: CatalogueFacts,
        records: &[TrialRecord],
        listing_of: impl Fn(&TrialRecord) -> Option<SkillListing>,
    ) -> Self {
        let cases: BTreeMap<&str, &Case> = suite.cases.iter().map(|case| (case.id.as_str(), case)).collect();
        let mut by_agent: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
        for record in records.iter().filter(|record| record.suite == suite.name) {
            by_agent.entry(&record.condition.agent).or_default().push(record);
        }
        let rules = RoutingRules { goal: facts.goal, most_rounds: 0 };
        let agents = by_agent.into_iter().map(|(agent, records)| {
            let runs = records
                .iter()
                .filter_map(|record| RoutedRun::from_record(record, cases.get(record.case.as_str())?));
            let listing = match records.iter().find_map(|record| listing_of(record)) {
                Some(listing) => ListingMeasurement::measured(listing),
                None => ListingMeasurement::unknown(
                    "no request of the agent was seen at a model gateway",
                    facts.characters,
                ),
            };
            let analysis = analyse_routing(&runs.collect::<Vec<_>>(), &rules);
            RoutingPart { agent: agent.to_owned(), analysis, listing }
        });
        let mut document = Self {
            schema_version: 1,
            run: run.to_owned(),
            skills: suite.skills.len() as u64,
            goal: facts.goal,
            agents: agents.collect(),
            similar: Vec::new(),
            exit: Outcome::Passed,
        };
        document.exit = document.outcome(Ratio::ZERO);
        document
    }

    /// Gives the outcome: failed if a row is below the goal, incomplete if more than this share of an agent's runs has no
    /// answer.
    pub fn outcome(&self, allow_unknown: Ratio) -> Outcome {
        let is_incomplete = |part: &RoutingPart| {
            let RoutingAnalysis { runs, unknown, rows, .. } = &part.analysis;
            rows.iter().any(|row| row.rounds == 0) || *unknown as f64 > allow_unknown.get() * *runs as f64
        };
        let mut rows = self.agents.iter().flat_map(|part| &part.analysis.rows);
        if rows.any(|row| row.standing == RowStanding::Below) {
            Outcome::Failed
        } else if self.agents.is_empty() || self.agents.iter().any(is_incomplete) {
            Outcome::Incomplete
        } else {
            Outcome::Passed
        }
    }
}

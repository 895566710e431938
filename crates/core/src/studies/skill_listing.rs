//! What an agent tells its model about the skills that are there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of the descriptions of the staged skills is in the first request of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillListing {
    /// The number of skills that were staged.
    pub skills: u64,
    /// The number of skills whose description is there as a whole.
    pub whole: u64,
    /// The skills of whose description only the beginning is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<CutDescription>,
    /// The skills of which the name is there and the description is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_description: Vec<String>,
    /// The skills of which nothing is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The characters of the names and descriptions that are there.
    pub characters: u64,
}

/// A description of which only the beginning is in the listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutDescription {
    /// The name of the skill.
    pub skill: String,
    /// The number of letters and digits that are there.
    pub shown: u64,
    /// The number of letters and digits of the description.
    pub of: u64,
}

/// The number of characters that one token has on average. Models count differently.
const CHARACTERS_PER_TOKEN: u64 = 4;

impl SkillListing {
    /// Estimates the tokens of the listing in every request.
    pub fn estimated_tokens(&self) -> u64 {
        self.characters.div_ceil(CHARACTERS_PER_TOKEN)
    }
}

/// The listing of an agent, or why it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListingMeasurement {
    /// The listing was measured in a request at the model gateway.
    Measured {
        /// What the request contains.
        listing: SkillListing,
        /// An estimate of its tokens: one for four characters.
        estimated_tokens: u64,
    },
    /// The listing is not known.
    Unknown {
        /// Why it is not known.
        why: String,
        /// An estimate of its tokens if every name and description is listed as a whole.
        estimated_tokens_if_whole: u64,
    },
}

impl ListingMeasurement {
    /// Makes the measurement of a listing that was seen.
    pub fn measured(listing: SkillListing) -> Self {
        let estimated_tokens = listing.estimated_tokens();
        Self::Measured { listing, estimated_tokens }
    }

    /// Makes the measurement of a listing that nobody saw, of skills with so many characters.
    pub fn unknown(why: impl Into<String>, characters: u64) -> Self {
        let estimated_tokens_if_whole = characters.div_ceil(CHARACTERS_PER_TOKEN);
        Self::Unknown { why: why.into(), estimated_tokens_if_whole }
    }
}

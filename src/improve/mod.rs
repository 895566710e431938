//! From a measured skill to a better one, with proof.
//!
//! In: a skill, its evals, a model that advises. Out: versions, blind comparisons, analyses, edits,
//! and the loop over them. Never: changes an eval; changes a skill that the user did not give away
//! for it; believes a model's proposal before it was checked.

mod adviser;
mod analysis;
mod blind;
mod contents;
mod diff;
mod edits;
mod failures;
mod files;
mod forms;
mod history;
mod score;
mod stored;
mod suggest;
mod swap;
mod versions;

pub use adviser::{Advice, Adviser};
pub use analysis::Analysis;
pub use blind::{
    Blind, BlindCase, Comparison, Judged, Outcome, Outputs, OutputsError, judge_all, pair, tally,
};
pub use contents::{Contents, ContentsError};
pub use edits::{Draft, Refused, Suggestion};
pub use failures::Failures;
pub use history::{History, Version};
pub use score::Score;
pub use stored::{StoredError, StoredRun};
pub use suggest::{Followed, Suggested, suggest};
pub use versions::{Listed, ListedVersion, Restored, Taken, Versions, VersionsError, workspace_of};

//! From a measured skill to a better one, with proof.
//!
//! In: a skill, its evals, a model that advises. Out: versions, blind comparisons, analyses, edits,
//! and the loop over them. Never: changes an eval; changes a skill that the user did not give away
//! for it; believes a model's proposal before it was checked.

mod advised;
mod adviser;
mod analysis;
mod blind;
mod candidates;
mod capture;
mod contents;
mod decide;
mod description;
mod diff;
mod edits;
mod failures;
mod files;
mod forms;
mod gradings;
mod history;
mod journal;
mod rounds;
mod score;
mod split;
mod stored;
mod suggest;
mod swap;
#[cfg(test)]
mod testing;
mod versions;

pub use advised::{explain, look, propose};
pub use adviser::{Advice, Adviser};
pub use analysis::Analysis;
pub use blind::{
    Blind, BlindCase, Brief, Comparison, Judged, Outcome, Outputs, OutputsError, is_about_activation,
    judge_all, pair, tally,
};
pub use candidates::{Candidate, Candidates, Dropped, native_file, propose_cases, sifted};
pub use capture::Capture;
pub use contents::{Contents, ContentsError, difference};
pub use decide::{Decision, Goal};
pub use edits::{Draft, Refused, Suggestion};
pub use failures::Failures;
pub use history::{History, Version};
pub use journal::{Begun, Journal, Spent};
pub use rounds::{
    Analysed, Examined, Halt, Improved, Left, Looks, Loop, Means, Options, Proposal, Round, Stopped,
};
pub use score::Score;
pub use split::{CaseId, Split};
pub use stored::{StoredError, StoredRun};
pub use suggest::{Edits, Followed, Suggested, suggest};
pub use versions::{Listed, ListedVersion, Restored, Taken, Versions, VersionsError};

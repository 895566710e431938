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
mod create;
mod decide;
mod description;
mod edits;
mod failures;
mod forms;
mod gradings;
mod journal;
mod rounds;
mod skill_creator;
mod split;
mod stored;
mod suggest;
#[cfg(test)]
mod testing;

pub use advised::{explain, look, propose};
pub use adviser::{Advice, Adviser};
pub use analysis::Analysis;
pub use blind::{
    Blind, BlindCase, Brief, Comparison, Judged, Outcome, Outputs, OutputsError, is_about_activation,
    judge_all, pair, tally,
};
pub use candidates::{Candidate, Candidates, Dropped, native_file, propose_cases, sifted};
pub use capture::Capture;
pub use create::{DraftedSkill, draft_skill};
pub use decide::{Decision, Goal};
pub use edits::{Draft, Refused, Suggestion};
pub use failures::Failures;
pub use journal::{Begun, Journal, Spent};
pub use rounds::{
    Analysed, Examined, Halt, Improved, Left, Looks, Loop, Means, Options, Proposal, Round, Stopped,
};
pub use split::{CaseId, Split};
pub use stored::{StoredError, StoredRun};
pub use suggest::{Edits, Followed, Suggested, suggest};

use practicum_skills::versions::{
    Contents, ContentsError, Score, Versions, VersionsError, diff, difference, files,
};

//! Improves a skill by measuring its versions.
//!
//! In: a skill, its evals, an adviser model. Out: versions, blind comparisons, analyses, edits, and the loop over
//! them. Never: changes an eval; changes a skill without the user's permission; uses a model's proposal before
//! checking it.

mod adviser;
mod analysis;
mod answer_forms;
mod blind;
mod candidates;
mod capture;
mod create;
mod description;
mod edit_suggestions;
mod edits;
mod failures;
mod improve_loop;
mod journal;
mod model_steps;
mod rewordings;
mod session_case;
mod skill_creator;
mod skill_prompts;
mod split;
mod stored_run;
#[cfg(test)]
mod testing;
mod version_decision;

pub use adviser::{Adviser, AdviserAnswer};
pub use analysis::Analysis;
pub use blind::{
    BlindCase, BlindComparison, BlindReport, JudgedPair, OutputTask, OutputsError, PairOutcome, SideOutputs,
    is_about_activation, judge_pairs, pair_outputs, tally_cases,
};
pub use candidates::{
    Candidate, Candidates, DroppedCandidate, candidates_as_native, propose_cases, sift_candidates,
};
pub use capture::CapturedTrial;
pub use create::{DraftedSkill, draft_skill};
pub use edit_suggestions::{AcceptedEdit, EditsReport, SuggestedEdits, suggest_edits};
pub use edits::{EditSuggestion, RefusedSuggestion, SkillEditDraft};
pub use failures::FailedChecks;
pub use improve_loop::{
    BlindOpinions, EditProposal, ImproveLoop, ImproveReport, ImproveRound, LoopEnd, LoopOptions,
    LoopServices, LoopStop, RemainingBudget, StepAnalysis, TestedVersion,
};
pub use journal::{LoopJournal, LoopStart, StepResult};
pub use model_steps::{compare_blindly, explain_winner, propose_edits};
pub use rewordings::propose_rewordings;
pub use session_case::{capture_of_session, case_from_session};
pub use skill_prompts::propose_skill_prompts;
pub use split::{CaseId, CaseSplit};
pub use stored_run::{StoredRun, StoredRunError};
pub use version_decision::{
    Confirmation, ImproveGoal, VersionDecision, VersionPair, confirm_candidate, decide_candidate,
};

use practicum_skills::versions::{
    SkillContents, SkillContentsError, SkillVersions, VersionScore, VersionsError, atomic_files, diff,
    diff_versions,
};

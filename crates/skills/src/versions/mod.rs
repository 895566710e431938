//! The versions of a skill.
//!
//! In: a skill's folder, or what a run says of the skill that it graded. Out: snapshots beside the skill,
//! and the history that lists them. Never: runs anything; takes away a version's files; gives one number to
//! two versions.

mod contents;
pub mod diff;
pub mod files;
mod graded;
mod history;
mod kept;
mod score;
mod skill_creator;
mod swap;
mod workspace;

pub use contents::{Contents, ContentsError, difference};
pub use graded::{GradedSkill, Ledger};
pub use history::{History, Version};
pub use kept::{Listed, ListedVersion, Restored, Taken, Versions};
pub use score::Score;
pub use workspace::{VersionsError, Workspace};

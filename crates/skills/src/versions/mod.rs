//! The versions of a skill.
//!
//! In: a skill's folder, or the skill that a run graded. Out: snapshots beside the skill, and the history that
//! lists them.
//! Never: runs anything; deletes a version's files; gives one number to two versions.

pub mod atomic_files;
pub mod diff;
mod grading_history;
mod history;
mod paragraphs;
mod skill_contents;
mod skill_creator;
mod skill_versions;
mod swap;
mod version_score;
mod versions_folder;

pub use grading_history::{GradedSkill, GradingHistory};
pub use history::{SkillVersion, VersionHistory};
pub use paragraphs::SkillParagraphs;
pub use skill_contents::{SkillContents, SkillContentsError, diff_versions};
pub use skill_versions::{ListedVersion, RestoreResult, SkillVersions, SnapshotResult, VersionListing};
pub use version_score::VersionScore;
pub use versions_folder::{VersionsError, VersionsFolder};

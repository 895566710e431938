//! One test for each wrong verdict that was ever seen, named after what the program wrongly said.
//!
//! A test here runs the program as a user would and reads what it printed, wrote and returned.

#[path = "../common/mod.rs"]
mod common;

mod activation_in_metadata;
mod arms;
mod bmad;
mod bmad_folders;
mod clauditor;
mod clauditor_commands;
mod clauditor_gates;
mod command_files;
mod copies_of_evals;
mod extraction;
mod frontmatter;
mod gates;
mod grade_again;
mod improving;
mod interrupted_runs;
mod judge_evidence;
mod lost_evals;
mod messages;
mod missing_files;
mod modes;
mod own_files;
mod plugins;
mod reuse;
mod setup;
mod silent_agents;
mod skill_creator;
mod skill_material;
mod skill_test;
mod skillet;
mod slips;
mod unreadable_text;
mod writing_skills;

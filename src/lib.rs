//! Tests AI-agent skills with real agents. `ARCHITECTURE.md` describes how the program is built.
//!
//! - [`session::Session`] runs evals and gives their results.
//! - [`Registry`] adds eval formats, checks, agents and reports from outside.
//! - [`testing::Spec`] grades texts in your own Rust tests.
//! - [`dialects::load_eval_file`] reads one eval file.
//! - [`stats`] has the estimates, tests and sample sizes.

#![warn(missing_docs)]
// The print macros panic if nobody reads the output any more, and a run must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[doc(hidden)]
pub mod cli;
mod registry;
pub mod schema;
pub mod testing;

pub use cli::run_helper_command;
pub use registry::Registry;

pub use practicum_agents::agents;
pub use practicum_core::{aggregate, compare, event, model, stats, studies, tree};
pub use practicum_engine::{session, store};
pub use practicum_evals::{checks, dialects, discover};
pub use practicum_results::report;
pub use practicum_skills::{lint, skill};

// Parts of the program that are not meant for other programs. They may change without notice.
#[doc(hidden)]
pub use practicum_agents::{builtin, gateway, llm};
#[doc(hidden)]
pub use practicum_engine::{grade, pipeline, plan, workspace};
#[doc(hidden)]
pub use practicum_evals::{first_evals, rewordings, routing_prompts, url_check};
#[doc(hidden)]
pub use practicum_improve::improve;
#[doc(hidden)]
pub use practicum_results::serve;
#[doc(hidden)]
pub use practicum_skills::{git_ref, own_files, project_files, versions};

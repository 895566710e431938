//! Tests AI-agent skills with real agents. `ARCHITECTURE.md` describes how the program is built.

// The print macros panic if nobody reads the output any more, and a run must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod cli;
pub mod schema;
pub mod testing;

pub use practicum_agents::{agents, builtin, gateway, llm};
pub use practicum_core::{aggregate, compare, event, model, stats, tree};
pub use practicum_engine::{
    grade_text, grading, history, judge, observe, options, pipeline, plan, probe_diagnosis, reload_trial,
    run, run_setup, sandbox, self_test, session, settings, stage, store, suite_quality, system_prompt,
    transcript, trial_key,
};
pub use practicum_evals::{checks, dialects, discover, first_evals, url_check};
pub use practicum_improve::improve;
pub use practicum_results::{report, serve};
pub use practicum_skills::{git_ref, lint, own_files, project_files, skill, versions};

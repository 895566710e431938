//! Eval files of other tools, held against what those tools do.

#[path = "../common/mod.rs"]
mod common;

mod clauditor_conformance;
mod clauditor_load;
mod clauditor_run;
mod peer_verdicts;

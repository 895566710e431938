//! Eval files of other tools, held against what those tools do, and eval files as people write them.

#[path = "../common/mod.rs"]
mod common;

mod assertion_types;
mod clauditor_conformance;
mod clauditor_load;
mod clauditor_run;
mod convert_matrix;
mod convert_round_trip;
mod peer_verdicts;
mod plugin_eval_side_by_side;
mod wild_forms;

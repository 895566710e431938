//! Activation: modes, negative cases, outcomes of each run.

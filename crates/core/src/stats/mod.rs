//! Statistics: estimates, tests and sample sizes.
//!
//! In: counts and scores. Out: estimates with their intervals, tests, sample sizes. Never: I/O; a NaN; a number
//! for what is undefined.

#![warn(missing_docs)]

mod advice;
mod bounded_mean;
mod case_tests;
mod clustered;
mod confusion;
mod correction;
mod direction;
mod exact;
mod gate_chance;
mod improvement;
mod judge_error;
mod kappa;
mod paired;
mod pass_prediction;
mod passing;
mod power;
mod proportion;
mod quantile;
mod random;
mod sequential;
mod sign_flip;
#[cfg(test)]
mod testing;
mod variance_shares;

pub use advice::{
    Advice, VarianceSplit, advise, comparison_outlook, smallest_detectable_loss, split_variance,
};
pub use bounded_mean::mean_bounds;
pub use case_tests::{
    CaseTest, CaseToTest, bound_of_cases, fewest_runs_to_confirm, smallest_loss_of_case, test_cases,
};
pub use clustered::{Cluster, StandardErrors, clustered_rate, mean_of_cases, standard_errors};
pub use confusion::{Confusion, ConfusionRates, TOO_FEW_CASES, describe_f1, describe_rate, rates};
pub use correction::{claims_by_evidence, holm, tarone};
pub use direction::{DirectionChances, direction_chances};
pub use exact::{fisher, mcnemar, sign_test, stratified_test};
pub use gate_chance::chance_to_pass_gate;
pub use improvement::{
    CANDIDATE_ALPHA, ImprovementDesign, MOST_ROUNDS_WITHOUT_CANDIDATE, confirmation_alpha,
    improvement_chance, is_significant,
};
pub use judge_error::{WeighedShare, corrected_rate, prediction_powered_rate};
pub use kappa::{Kappa, kappa};
pub use paired::{
    CasePair, DEFAULT_MARGIN, PairedComparison, compare_pairs, correct_comparisons, is_no_difference,
    mean_difference, rate_difference,
};
pub(crate) use pass_prediction::chance_of_so_few;
pub use passing::{pass_at_k, pass_hat_k};
pub use power::{
    ComparisonDesign, PowerQuestion, PowerUnknown, Variances, answer_power_question, detectable_loss,
    fewest_cases, needed_cases, simulate_pairs, simulated_power,
};
pub use proportion::{Interval, clopper_pearson, clopper_pearson_of_points, wilson};
pub use random::SeededRandom;
pub use sequential::{
    Sprt, SprtDecision, StoppedCase, confidence_sequence, evaluate_stopped_case, evidence_of_lower_rate,
};
pub use sign_flip::{SignFlipChances, sign_flip_test};
pub use variance_shares::share_variance;

/// The chance of a false alarm that tests and intervals allow by default.
pub const ALPHA: f64 = 0.05;

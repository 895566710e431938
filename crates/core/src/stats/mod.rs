//! Statistics: estimates, tests and sample sizes.
//!
//! In: counts and scores. Out: estimates with their intervals, tests, sample sizes. Never: I/O; a NaN; a number
//! for what is undefined.

mod bootstrap;
mod clustered;
mod confusion;
mod correction;
mod exact;
mod kappa;
mod paired;
mod pass_prediction;
mod passing;
mod power;
mod proportion;
mod quantile;
mod random;
mod sequential;
#[cfg(test)]
mod testing;

pub use bootstrap::bootstrap_ratio;
pub use clustered::{Cluster, StandardErrors, clustered_rate, standard_errors};
pub use confusion::{Confusion, ConfusionRates, describe_f1, describe_rate, rates};
pub use correction::{holm, tarone};
pub use exact::{fisher, mcnemar, sign_test, stratified_test};
pub use kappa::{Kappa, kappa};
pub use paired::{
    CasePair, DEFAULT_MARGIN, PairedComparison, compare_pairs, correct_comparisons, is_no_difference,
    mean_difference, rate_difference,
};
pub use pass_prediction::chance_of_so_few;
pub use passing::{pass_at_k, pass_hat_k};
pub use power::{
    ComparisonDesign, PowerQuestion, PowerUnknown, Variances, answer_power_question, detectable_effect,
    fewest_cases, fewest_repeats, needed_cases, simulate_pairs, simulated_power,
};
pub use proportion::{Interval, clopper_pearson, wilson, wilson_effective};
pub use random::SeededRandom;
pub use sequential::{Sprt, SprtDecision};

/// The chance of a false alarm that tests and intervals allow by default.
pub const ALPHA: f64 = 0.05;

//! What numbers allow to be said.
//!
//! In: counts and scores. Out: estimates with their intervals, tests, sample sizes. Never: I/O; a
//! NaN; a number for what is undefined.

mod bootstrap;
mod clustered;
mod confusion;
mod correction;
mod exact;
mod foretold;
mod kappa;
mod paired;
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
pub use confusion::{Confusion, Rates, f1_band, rate_band, rates};
pub use correction::{holm, tarone};
pub use exact::{fisher, mcnemar, sign_test, stratified};
pub use foretold::as_few;
pub use kappa::{Kappa, kappa};
pub use paired::{
    Comparison, MARGIN, Pair, compare, is_no_difference, mean_difference, rate_difference, together,
};
pub use passing::{pass_at_k, pass_hat_k};
pub use power::{
    Design, Question, Sought, Variances, answer, cases_for, detectable, needed_cases, repeats_for, simulated,
    simulated_power,
};
pub use proportion::{Interval, clopper_pearson, wilson, wilson_effective};
pub use random::Random;
pub use sequential::{Decision, Sprt};

/// The chance of a false alarm that everything here allows unless told otherwise.
pub const ALPHA: f64 = 0.05;

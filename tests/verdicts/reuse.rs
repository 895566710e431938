//! Reused trials count as the trials of the current plan.

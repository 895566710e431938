//! Code that the counting checks share.

use super::{TooMuchBacktracking, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Diagnostics, NotScoredReason, count_with_noun};
use practicum_core::tree::{TreeNode, node_int};

/// The count that a check requires if the eval file gives none.
pub const DEFAULT_COUNT: i64 = 1;

/// Reads the number under a key; a key without a value means one.
pub fn decode_count(key: &str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<i64> {
    if node.is_null() {
        return Some(DEFAULT_COUNT);
    }
    // Numbers below one are useless but no error: other tools write them by default.
    let count = node_int(node, key, i64::MIN, i64::MAX, diagnostics)?;
    if count < 1 {
        let message = format!("at least {count} is always there: this check cannot fail");
        diagnostics.warning("cannot-fail", node.span, message);
    }
    Some(count)
}

/// Checks whether the texts together have as many as required. `what` is the name of one counted thing.
pub fn check_count(
    evidence: &CheckEvidence<'_>,
    count: impl Fn(&str) -> Result<usize, TooMuchBacktracking>,
    wanted: i64,
    what: &str,
) -> CheckFinding {
    match evidence
        .texts
        .iter()
        .map(|checked| count(&checked.text))
        .sum::<Result<usize, TooMuchBacktracking>>()
    {
        Ok(found) => {
            let enough = found as i128 >= i128::from(wanted);
            CheckFinding::new(
                enough,
                format!("{} of {what}, at least {wanted} wanted", count_with_noun(found, "occurrence")),
            )
        }
        Err(too_hard) => CheckFinding::not_scored(NotScoredReason::CheckFailed(format!(
            "{} {too_hard}",
            excerpt(what, 90)
        ))),
    }
}

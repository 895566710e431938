//! What the checks that count have in common.

use super::{TooHard, excerpt};
use practicum_core::model::{Diagnostics, Evidence, Finding, Why, counted};
use practicum_core::tree::{Node, int_of};

/// How many are wanted when nobody says.
pub const DEFAULT: i64 = 1;

/// The number behind a key; nothing behind it means one.
pub fn decode_count(key: &str, node: &Node, diagnostics: &mut Diagnostics) -> Option<i64> {
    if node.is_null() {
        return Some(DEFAULT);
    }
    // Numbers below one are useless, not wrong: other tools write them and mean nothing by it.
    let count = int_of(node, key, i64::MIN, i64::MAX, diagnostics)?;
    if count < 1 {
        let message = format!("at least {count} is always there: this check cannot fail");
        diagnostics.warning("cannot-fail", node.span, message);
    }
    Some(count)
}

/// Whether the texts together have as many as wanted. `what` names one of them.
pub fn finding(
    evidence: &Evidence<'_>,
    count: impl Fn(&str) -> Result<usize, TooHard>,
    wanted: i64,
    what: &str,
) -> Finding {
    match evidence.texts.iter().map(|checked| count(&checked.text)).sum::<Result<usize, TooHard>>() {
        Ok(found) => {
            let enough = found as i128 >= i128::from(wanted);
            Finding::new(
                enough,
                format!("{} of {what}, at least {wanted} wanted", counted(found, "occurrence")),
            )
        }
        Err(too_hard) => Finding::not_scored(Why::CheckFailed(format!("{} {too_hard}", excerpt(what, 90)))),
    }
}

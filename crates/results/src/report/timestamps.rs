//! Timestamps in the precision that readers need.

/// Writes a timestamp for people: `2026-11-14 09:30 UTC`.
pub fn format_for_people(moment: &str) -> String {
    format_moment(moment, "%Y-%m-%d %H:%M UTC")
}

/// Writes a timestamp as the other formats do: `2026-11-14T09:30:00Z`.
pub fn format_to_second(moment: &str) -> String {
    format_moment(moment, "%Y-%m-%dT%H:%M:%SZ")
}

/// Formats a timestamp. A text that is not a timestamp stays as it is.
fn format_moment(moment: &str, how: &str) -> String {
    match moment.parse::<jiff::Timestamp>() {
        Ok(at) => at.strftime(how).to_string(),
        Err(_) => moment.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_lose_what_nobody_reads() {
        let moment = "2026-11-16T09:10:51.199446636Z";
        assert_eq!(format_for_people(moment), "2026-11-16 09:10 UTC");
        assert_eq!(format_to_second(moment), "2026-11-16T09:10:51Z");
        assert_eq!((format_for_people("soon"), format_to_second("")), ("soon".to_owned(), String::new()));
    }
}

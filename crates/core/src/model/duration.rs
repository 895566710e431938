//! Durations as people write them.

use std::time::Duration;

/// The longest duration that a user may ask for. A longer one is a mistake, and sums stay far from overflow.
pub const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Reads `90`, `1.5`, `500ms`, `20s`, `5m` or `1h`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds_per_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let number = number.trim();
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    duration_from_seconds(number.parse::<f64>().ok()? * seconds_per_unit)
}

/// Gives a duration of so many seconds; `None` if it is not one that a user may ask for.
pub fn duration_from_seconds(seconds: f64) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    (duration > Duration::ZERO && duration <= MAX_DURATION).then_some(duration)
}

/// Writes the shortest spelling that `parse_duration` reads back to the same value.
pub fn format_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        _ if ms.is_multiple_of(3_600_000) && ms > 0 => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) && ms > 0 => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in [
            ("90", Some(90_000)),
            ("1.5", Some(1500)),
            ("500ms", Some(500)),
            ("20s", Some(20_000)),
            ("5m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("0", None),
            ("-1", None),
            ("1e99", None),
            ("nan", None),
            ("inf", None),
            ("5 minutes", None),
            ("9000h", None),
            ("", None),
        ] {
            let parsed = parse_duration(text);
            assert_eq!(parsed.map(|d| d.as_millis()), ms, "{text:?}");
            if let Some(duration) = parsed {
                assert_eq!(parse_duration(&format_duration(duration)), Some(duration));
            }
        }
    }
}

//! Which values of a project's settings file protect the user less than another value.

use crate::workspace::limits::parse_bytes;
use practicum_core::model::{SandboxMode, UnsupportedPassPolicy, parse_duration};

/// A function that says whether the first value of a setting protects less than the second.
type Weakens = fn(&str, &str) -> bool;

/// The settings that protect the user, each with the order of its values. The user's own file wins over a project that
/// says less.
const PROTECTIVE_SETTINGS: [(&str, Weakens); 11] = [
    ("sandbox", |new, old| sandbox_strength(new) < sandbox_strength(old)),
    ("max-cost", is_larger_amount),
    ("max-tokens", is_larger_amount),
    ("tools", |new, old| !tool_names(new).all(|tool| tool_names(old).any(|known| known == tool))),
    ("judge.unsupported", |new, old| {
        let accepts = |text: &str| UnsupportedPassPolicy::parse(text) == Some(UnsupportedPassPolicy::Accept);
        accepts(new) && !accepts(old)
    }),
    ("limits.memory", |new, old| is_larger(parse_bytes(new), parse_bytes(old))),
    ("limits.processes", is_larger_amount),
    ("limits.cpu", |new, old| is_larger(parse_duration(new).ok_or(()), parse_duration(old).ok_or(()))),
    ("limits.open-files", is_larger_amount),
    ("limits.disk", |new, old| is_larger(parse_bytes(new), parse_bytes(old))),
    ("limits.files", is_larger_amount),
];

/// Says whether a value of this setting protects the user less than another value. No value of other settings does.
pub fn weakens(name: &str, new: &str, old: &str) -> bool {
    PROTECTIVE_SETTINGS.iter().any(|(protective, weakens)| *protective == name && weakens(new, old))
}

/// Gives the strength of a sandbox. A value that cannot be read is refused later and weakens nothing.
fn sandbox_strength(text: &str) -> u8 {
    match SandboxMode::parse(text) {
        Some(SandboxMode::Off) => 0,
        Some(SandboxMode::Auto) => 1,
        Some(SandboxMode::Strict) | None => 2,
    }
}

fn is_larger_amount(new: &str, old: &str) -> bool {
    let amount = |text: &str| text.trim().trim_start_matches('$').parse::<f64>();
    is_larger(amount(new), amount(old))
}

/// Compares two values. One that cannot be read is refused later and weakens nothing.
fn is_larger<T: PartialOrd, E>(new: Result<T, E>, old: Result<T, E>) -> bool {
    new.ok().zip(old.ok()).is_some_and(|(new, old)| new > old)
}

fn tool_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|tool| !tool.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_protects_less_weakens() {
        for (name, new, old, expected) in [
            ("sandbox", "off", "auto", true),
            ("sandbox", "auto", "strict", true),
            ("sandbox", "strict", "auto", false),
            ("sandbox", "auto", "auto", false),
            ("sandbox", "nonsense", "strict", false),
            ("max-cost", "$100", "2.50", true),
            ("max-cost", "1", "2.50", false),
            ("max-tokens", "2000", "1000", true),
            ("tools", "Read, Bash", "Read", true),
            ("tools", "Read", "Read,Bash", false),
            ("judge.unsupported", "accept", "not-scored", true),
            ("judge.unsupported", "not-scored", "accept", false),
            ("limits.memory", "8GB", "2147483648", true),
            ("limits.memory", "512MB", "2147483648", false),
            ("limits.disk", "4 GB", "4294967296", false),
            ("limits.cpu", "2h", "3600s", true),
            ("limits.cpu", "5m", "3600s", false),
            ("limits.processes", "5000", "1024", true),
            ("limits.open-files", "16", "4096", false),
            ("limits.files", "many", "75000", false),
            ("repeat", "1000", "1", false),
        ] {
            assert_eq!(weakens(name, new, old), expected, "{name}: {new} after {old}");
        }
    }
}

//! Counts with their nouns.

/// Writes a count with its noun: `1 case`, `2 cases`, `0 entries`.
pub fn count_with_noun(count: impl TryInto<u64>, word: &str) -> String {
    match (count.try_into().unwrap_or(u64::MAX), word.strip_suffix('y')) {
        (1, _) => format!("1 {word}"),
        (count, Some(stem)) => format!("{count} {stem}ies"),
        (count, None) => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        for (count, word, expected) in [
            (0, "case", "0 cases"),
            (1, "case", "1 case"),
            (2, "more case", "2 more cases"),
            (0, "entry", "0 entries"),
            (1, "entry", "1 entry"),
        ] {
            assert_eq!(count_with_noun(count, word), expected);
        }
    }
}

//! Characters that Python treats as equal when case is ignored.
//!
//! This is not quite Unicode's case folding. Python lowers a character of the text. The result must then be the
//! lowered character of the pattern, or a small letter with the same capital. So `i` also matches `İ` and `ı`,
//! which case folding would not.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::syntax::CaseFolding;

/// The letters that have a case, and the relations between them.
struct CaseTable {
    /// Every character that lowering or a shared capital relates to another.
    cased_letters: Vec<u32>,
    /// For each character, the characters that lower to it, itself included.
    lowered_to: HashMap<u32, Vec<u32>>,
    /// For each small letter, the small letters with the same capital, itself included.
    same_capital: HashMap<u32, Vec<u32>>,
}

static CASES: LazyLock<CaseTable> = LazyLock::new(CaseTable::build);

impl CaseTable {
    fn build() -> Self {
        let mut lowered_to: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut by_capital: HashMap<String, Vec<u32>> = HashMap::new();
        let cased = |c: &char| lowercase(*c) != *c || c.to_uppercase().ne([*c]);
        for c in ('\0'..=char::MAX).filter(cased) {
            lowered_to.entry(lowercase(c).into()).or_default().push(c.into());
            let small = by_capital.entry(c.to_uppercase().collect()).or_default();
            if !small.contains(&lowercase(c).into()) {
                small.push(lowercase(c).into());
            }
        }
        let mut same_capital = HashMap::new();
        for small in by_capital.into_values().filter(|small| small.len() > 1) {
            for &letter in &small {
                same_capital.insert(letter, small.clone());
            }
        }
        let mut all: Vec<u32> = lowered_to.values().flatten().copied().collect();
        all.sort_unstable();
        Self { cased_letters: all, lowered_to, same_capital }
    }
}

/// Gives the first character of the lower case. Only `İ` has a second one.
fn lowercase(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Says whether two characters of a text are the same for a back-reference that ignores case.
pub fn is_same_letter(a: char, b: char, fold: CaseFolding) -> bool {
    match fold {
        CaseFolding::Unicode => a == b || lowercase(a) == lowercase(b),
        CaseFolding::Ascii => a.eq_ignore_ascii_case(&b),
    }
}

/// Gives the characters that match one of these when case is ignored, as sorted ranges.
pub fn fold_ranges(ranges: &[(u32, u32)], fold: CaseFolding) -> Vec<(u32, u32)> {
    let mut found = ranges.to_vec();
    for &(low, high) in ranges {
        match fold {
            CaseFolding::Ascii => {
                for (first, last, other) in [('A', 'Z', 'a'), ('a', 'z', 'A')] {
                    let (start, end) = (low.max(first.into()), high.min(last.into()));
                    if start <= end {
                        let shifted = |code: u32| code - u32::from(first) + u32::from(other);
                        found.push((shifted(start), shifted(end)));
                    }
                }
            }
            CaseFolding::Unicode => add_cases(low, high, &mut found),
        }
    }
    merge_ranges(found)
}

fn add_cases(low: u32, high: u32, found: &mut Vec<(u32, u32)>) {
    let cases = &*CASES;
    let from = cases.cased_letters.partition_point(|&code| code < low);
    for &code in cases.cased_letters[from..].iter().take_while(|&&code| code <= high) {
        let Some(c) = char::from_u32(code) else { continue };
        let small = u32::from(lowercase(c));
        let alone = vec![small];
        for letter in cases.same_capital.get(&small).unwrap_or(&alone) {
            found.push((*letter, *letter));
            let capitals = cases.lowered_to.get(letter).into_iter().flatten();
            found.extend(capitals.map(|&capital| (capital, capital)));
        }
    }
}

/// Sorts ranges and merges those that overlap.
fn merge_ranges(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match merged.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
            Some(_) | None => merged.push((low, high)),
        }
    }
    merged
}

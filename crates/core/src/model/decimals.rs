//! The number of decimals that a figure beside its limit needs.

/// Gives the number of decimals with which to print numbers beside their limit: at least two, and enough that each
/// rounded number is on the same side of the rounded limit as the exact number is of the exact limit.
pub fn decimals_to_compare(numbers: impl IntoIterator<Item = f64>, limit: f64) -> usize {
    // Rounding never reverses two numbers, so they look alike or are on the right sides.
    let is_distinct = |number: f64, digits: usize| {
        number >= limit || format!("{number:.digits$}") != format!("{limit:.digits$}")
    };
    let needed = |number: f64| {
        (MIN_DECIMALS..MAX_DECIMALS).find(|digits| is_distinct(number, *digits)).unwrap_or(MAX_DECIMALS)
    };
    numbers.into_iter().map(needed).max().unwrap_or(MIN_DECIMALS)
}

const MIN_DECIMALS: usize = 2;

/// Enough digits to tell any two different 64-bit numbers apart.
const MAX_DECIMALS: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_misses_its_limit_never_looks_as_if_it_met_it() {
        for (number, limit, digits) in [
            (0.5, 0.8, 2),
            (0.8, 0.8, 2),
            (0.996, 1.0, 3),
            (0.99996, 1.0, 5),
            (0.665, 2.0 / 3.0, 3),
            (0.7999, 0.8, 4),
            (1.0, 1.0, 2),
        ] {
            assert_eq!(decimals_to_compare([number], limit), digits, "{number} beside {limit}");
        }
        assert_eq!(decimals_to_compare([0.5, 0.996], 1.0), 3);
        assert_eq!(decimals_to_compare([], 1.0), 2);
    }
}

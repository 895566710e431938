//! The numbers of evals, which skill-creator uses as ids.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::run_results::RunResults;
use practicum_core::model::CaseSummary;

/// The numbers of a suite's evals, which are the same whatever part of the suite was run.
pub struct EvalNumbers {
    by_id: BTreeMap<String, u32>,
}

impl EvalNumbers {
    pub fn for_cases(results: &RunResults, cases: &[&CaseSummary]) -> Self {
        let suite = cases.first().map_or("", |case| case.suite.as_str());
        let asked = results.info.suite(suite).into_iter().flat_map(|of| &of.suite.cases);
        Self::from_ids(asked.map(|case| case.id.as_str()).chain(cases.iter().map(|case| case.id.as_str())))
    }

    /// Numbers the evals. An eval whose id is a number keeps it. The others get, in their order, the lowest number
    /// that no eval of the suite has.
    fn from_ids<'i>(ids: impl Iterator<Item = &'i str>) -> Self {
        let mut seen = BTreeSet::new();
        let ids: Vec<&str> = ids.filter(|id| seen.insert(*id)).collect();
        let mut by_id: BTreeMap<String, u32> =
            ids.iter().filter_map(|id| Some(((*id).to_owned(), numeric_id(id)?))).collect();
        let taken: BTreeSet<u32> = by_id.values().copied().collect();
        let free = (1..=u32::MAX).filter(|number| !taken.contains(number));
        let others = ids.iter().filter(|id| numeric_id(id).is_none()).map(|id| (*id).to_owned());
        by_id.extend(others.zip(free));
        Self { by_id }
    }

    pub fn number_of_case(&self, id: &str) -> u32 {
        self.by_id.get(id).copied().unwrap_or_default()
    }
}

/// Gives the number that an id is. `01` is not a number, because it and `1` are two evals.
fn numeric_id(id: &str) -> Option<u32> {
    id.parse().ok().filter(|number: &u32| number.to_string() == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evals_keep_their_numbers_and_texts_get_free_ones() {
        for (ids, expected) in [
            (vec!["7", "3"], vec![7, 3]),
            (vec!["5", "7", "leap-year"], vec![5, 7, 1]),
            (vec!["leap-year", "1", "easter", "3"], vec![2, 1, 4, 3]),
            (vec!["1", "01"], vec![1, 2]),
            (vec!["a", "b"], vec![1, 2]),
        ] {
            let numbers = EvalNumbers::from_ids(ids.iter().copied());
            assert_eq!(ids.iter().map(|id| numbers.number_of_case(id)).collect::<Vec<u32>>(), expected);
        }
    }
}

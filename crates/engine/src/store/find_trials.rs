//! Finds trials by what a user types: a case's id, a trial's id, or a part of one of them.

use std::collections::{BTreeMap, BTreeSet};

use practicum_core::model::{TrialId, TrialRecord};

/// The fewest characters of a trial's hash that identify it.
const SHORTEST_HASH: usize = 4;

/// The most candidates that are listed.
const MOST_LISTED: usize = 10;

/// Finds the trials that `wanted` names. It is tried in this order: the id of a case (also in the form that folder
/// names have), the id or hash of a trial, the beginning of a trial's id or hash, a part of the id of only one
/// case. `Err` lists the candidates.
pub fn find_trials<'r>(
    records: &'r BTreeMap<TrialId, TrialRecord>,
    wanted: &str,
) -> Result<Vec<&'r TrialRecord>, String> {
    let of = |fits: &dyn Fn(&TrialRecord) -> bool| -> Vec<&'r TrialRecord> {
        records.values().filter(|record| fits(record)).collect()
    };
    let of_case = of(&|record| record.case == wanted);
    let of_case =
        if of_case.is_empty() { of(&|record| case_folder_name(&record.trial) == wanted) } else { of_case };
    if !of_case.is_empty() {
        return Ok(of_case);
    }
    let exact = of(&|record| record.trial.as_str() == wanted || hash_of(&record.trial) == wanted);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let by_hash = of(&|record| is_hash_prefix(&record.trial, wanted));
    match by_hash.len() {
        0 => {}
        1 => return Ok(by_hash),
        several => {
            return Err(ambiguous_message(
                wanted,
                several,
                "trials",
                by_hash.iter().map(|of| of.trial.as_str()),
            ));
        }
    }
    let parts =
        of(&|record| record.case.contains(wanted) || case_folder_name(&record.trial).contains(wanted));
    let cases: BTreeSet<&str> = parts.iter().map(|record| record.case.as_str()).collect();
    match cases.len() {
        0 => Err(unknown_trial_message(records, wanted)),
        1 => Ok(parts),
        several => Err(ambiguous_message(wanted, several, "cases", cases.into_iter())),
    }
}

/// Gives the end of a trial's id, which no other trial has.
fn hash_of(trial: &TrialId) -> &str {
    trial.as_str().rsplit_once('-').map_or(trial.as_str(), |(_, hash)| hash)
}

/// Gives the id of a trial's case in the form that the name of the trial's folder begins with.
fn case_folder_name(trial: &TrialId) -> &str {
    trial.as_str().rsplit_once('-').map_or("", |(case, _)| case)
}

/// Says whether `wanted` begins the hash of a trial, alone or with its case before it.
fn is_hash_prefix(trial: &TrialId, wanted: &str) -> bool {
    let hash = hash_of(trial);
    let case = trial.as_str().len() - hash.len();
    let alone = wanted.len() >= SHORTEST_HASH && hash.starts_with(wanted);
    alone || (wanted.len() > case && trial.as_str().starts_with(wanted))
}

fn ambiguous_message<'c>(
    wanted: &str,
    count: usize,
    what: &str,
    candidates: impl Iterator<Item = &'c str>,
) -> String {
    format!("{count} {what} fit \"{wanted}\": {}; name one of them", list_names(candidates, count))
}

fn unknown_trial_message(records: &BTreeMap<TrialId, TrialRecord>, wanted: &str) -> String {
    let cases: BTreeSet<&str> = records.values().map(|record| record.case.as_str()).collect();
    let count = cases.len();
    let known = match count {
        0 => "it has no finished trials".to_owned(),
        _ => format!("its cases are {}", list_names(cases.into_iter(), count)),
    };
    format!("no case or trial fits \"{wanted}\"; {known}")
}

fn list_names<'c>(names: impl Iterator<Item = &'c str>, count: usize) -> String {
    let shown: Vec<&str> = names.take(MOST_LISTED).collect();
    let more = match count.saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Verdict, testing};

    #[test]
    fn a_case_is_found_before_any_hash_and_a_part_of_one_only_alone() {
        let names = ["a", "greet-alice", "greet-bob", "deadbeef"];
        let all = names.iter().flat_map(|case| [1, 2].map(|at| testing::record(case, at, Verdict::Pass)));
        let records: BTreeMap<TrialId, TrialRecord> =
            all.map(|record| (record.trial.clone(), record)).collect();
        let cases = |wanted: &str| -> Result<Vec<String>, String> {
            let found = find_trials(&records, wanted)?;
            Ok(found.iter().map(|record| format!("{} {}", record.case, record.attempt)).collect())
        };
        let both = |case: &str| Ok(vec![format!("{case} 1"), format!("{case} 2")]);
        let sorted = |found: Result<Vec<String>, String>| {
            found.map(|mut found| {
                found.sort();
                found
            })
        };
        for (wanted, expected) in
            [("a", both("a")), ("bob", both("greet-bob")), ("greet-alice", both("greet-alice"))]
        {
            assert_eq!(sorted(cases(wanted)), expected, "{wanted}");
        }
        let trial = &testing::record("greet-bob", 2, Verdict::Pass).trial;
        let id = trial.as_str();
        for wanted in [id, hash_of(trial), &hash_of(trial)[..6], &id[..id.len() - 4]] {
            assert_eq!(cases(wanted), Ok(vec!["greet-bob 2".to_owned()]), "{wanted}");
        }
        for (wanted, part) in [
            ("greet", "2 cases fit \"greet\": greet-alice, greet-bob; name one of them"),
            ("e", "3 cases fit"),
            ("zz", "no case or trial fits \"zz\"; its cases are a, deadbeef, greet-alice, greet-bob"),
            // A case's name with a dash begins the ids of all its trials.
            ("greet-bob-", "no case or trial fits"),
        ] {
            let why = cases(wanted).expect_err(wanted);
            assert!(why.starts_with(part), "{wanted}: {why}");
        }
    }
}

//! Tests of routing: counting by hand, and simulated catalogues whose truth is known.

use super::*;
use crate::stats::SeededRandom;

const RULES: RoutingRules = RoutingRules { goal: 0.8, most_rounds: 8 };

fn run(prompt: &str, attempt: u32, accepted: &[&str], activated: Option<&[&str]>) -> RoutedRun {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    RoutedRun {
        prompt: prompt.to_owned(),
        attempt,
        accepted: names(accepted),
        activated: activated.map(names),
    }
}

#[test]
fn counts_by_hand() {
    let found = analyse_routing(
        &[
            run("a1", 1, &["a"], Some(&["a"])),
            run("a2", 1, &["a"], Some(&["b"])),
            run("a3", 1, &["a"], Some(&["a", "b"])),
            run("a4", 1, &["a"], Some(&[])),
            run("a5", 1, &["a"], None),
            run("ab", 1, &["a", "b"], Some(&["b"])),
            run("n1", 1, &[], Some(&[])),
            run("n2", 1, &[], Some(&["c"])),
            // Only one of two prompts has a second run.
            run("n2", 2, &[], Some(&["c"])),
        ],
        &RULES,
    );
    assert_eq!((found.prompts, found.runs, found.unknown), (8, 8, 1));
    assert_eq!(found.right_at_first.value, Some(3.0 / 7.0));
    let row = |expected: &[&str]| found.rows.iter().find(|row| row.expected == expected).expect("a row");
    assert_eq!((row(&["a"]).right.value, row(&["a"]).prompts, row(&["a"]).unknown), (Some(0.25), 5, 1));
    assert_eq!(row(&["a", "b"]).right.value, Some(1.0));
    assert_eq!((row(&[]).right.value, row(&[]).rounds), (Some(0.5), 1));
    let pairs: Vec<(Vec<String>, &str, u64)> =
        found.collisions.iter().map(|of| (of.expected.clone(), of.activated.as_str(), of.runs)).collect();
    assert_eq!(pairs.len(), 2);
    assert!(pairs.contains(&(vec!["a".to_owned()], "b", 2)));
    assert!(pairs.contains(&(vec![], "c", 1)));
}

#[test]
fn an_unknown_run_is_neither_right_nor_wrong() {
    let runs = |activated: Option<&[&str]>| {
        let all: Vec<RoutedRun> = (1..=6).map(|attempt| run("p", attempt, &["a"], activated)).collect();
        analyse_routing(&all, &RULES).rows[0].clone()
    };
    let unknown = runs(None);
    assert_eq!((unknown.right.value, unknown.right.low, unknown.standing), (None, None, RowStanding::Open));
    assert_eq!(runs(Some(&["b"])).standing, RowStanding::Below);
}

#[test]
fn only_suspect_rows_that_do_not_tell_get_more_rounds() {
    let found = analyse_routing(
        &[
            run("a", 1, &["a"], Some(&["a"])),
            run("b", 1, &["b"], Some(&["c"])),
            run("c", 1, &["c"], Some(&["c"])),
            run("d", 1, &["d"], Some(&["d"])),
            run("e", 1, &["e"], None),
        ],
        &RULES,
    );
    let similar = SimilarDescriptions { skills: ["d".to_owned(), "x".to_owned()], likeness: 0.9 };
    let chosen = rows_to_repeat(&found, &[similar], &RULES);
    let names: Vec<String> = chosen.keys().map(|row| row.concat()).collect();
    assert_eq!(names, ["b", "c", "d"], "not right; activated elsewhere; similar");
    assert!(chosen.values().all(|rounds| *rounds == 2));
    let only_one = RoutingRules { most_rounds: 1, ..RULES };
    assert_eq!(rows_to_repeat(&found, &[], &only_one), BTreeMap::new());
}

/// The true chances of one prompt: that the right skill is activated, that its rival is; otherwise nothing is.
#[derive(Clone, Copy)]
struct Truth {
    right: f64,
    rival: f64,
}

/// Simulates a study with the sequential design, as the command runs it.
fn simulate_study(rows: &[Vec<Truth>], random: &mut SeededRandom) -> RoutingAnalysis {
    let mut runs = Vec::new();
    let mut rounds: BTreeMap<Vec<String>, (u32, u32)> =
        (0..rows.len()).map(|row| (vec![format!("s{row:03}")], (0, 1))).collect();
    loop {
        for (row, (done, wanted)) in &mut rounds {
            let number: usize = row[0][1..].parse().expect("a number");
            for attempt in *done + 1..=*wanted {
                for (at, truth) in rows[number].iter().enumerate() {
                    let drawn = random.fraction();
                    let activated = match drawn {
                        _ if drawn < truth.right => vec![row[0].clone()],
                        _ if drawn < truth.right + truth.rival => vec!["rival".to_owned()],
                        _ => Vec::new(),
                    };
                    let prompt = format!("{}-{at}", row[0]);
                    runs.push(RoutedRun {
                        prompt,
                        attempt,
                        accepted: row.clone(),
                        activated: Some(activated),
                    });
                }
            }
            *done = *wanted;
        }
        let found = analyse_routing(&runs, &RULES);
        let more = rows_to_repeat(&found, &[], &RULES);
        if more.is_empty() {
            return found;
        }
        for (row, wanted) in more {
            rounds.get_mut(&row).expect("a known row").1 = wanted;
        }
    }
}

/// A catalogue of 423 skills with 2 or 3 prompts each, of which every fifth is confused with another.
fn catalogue(random: &mut SeededRandom) -> Vec<Vec<Truth>> {
    let row = |number: usize, random: &mut SeededRandom| {
        let prompts = 2 + number % 3 / 2;
        let truth = |random: &mut SeededRandom| match number % 5 {
            // Prompts of one row differ much.
            0 => {
                let rival = random.fraction();
                Truth { right: (1.0 - rival) * 0.9, rival }
            }
            _ => Truth { right: 0.97, rival: 0.01 },
        };
        (0..prompts).map(|_| truth(random)).collect()
    };
    (0..423).map(|number| row(number, random)).collect()
}

/// Over simulated studies: intervals contain the truth in at least 95 % of the rows, at most 5 % of the rows that are
/// called below the goal are not, and a repeated design costs several times as much.
#[test]
fn a_sequential_study_covers_the_truth_and_saves_runs() {
    let mut random = SeededRandom::new(423);
    let (mut right_covered, mut rival_covered, mut rows_seen, mut rivals_seen) = (0, 0, 0, 0);
    let (mut claims, mut wrong, mut below, mut runs, mut all_runs) = (0, 0, 0, 0, 0);
    const STUDIES: usize = 20;
    for _ in 0..STUDIES {
        let truth = catalogue(&mut random);
        let found = simulate_study(&truth, &mut random);
        runs += found.runs;
        for (row, truth) in found.rows.iter().zip(&truth) {
            let mean = |of: fn(&Truth) -> f64| truth.iter().map(of).sum::<f64>() / truth.len() as f64;
            let (right, rival) = (mean(|truth| truth.right), mean(|truth| truth.rival));
            let contains = |of: &Estimate, value: f64| {
                of.low.zip(of.high).is_some_and(|(low, high)| low <= value && value <= high)
            };
            rows_seen += 1;
            all_runs += u64::from(RULES.most_rounds) * row.prompts;
            right_covered += usize::from(contains(&row.right, right));
            if let Some(of) = row.activated.iter().find(|of| of.skill.as_deref() == Some("rival")) {
                rivals_seen += 1;
                rival_covered += usize::from(contains(&of.share, rival));
            }
            below += usize::from(right < RULES.goal);
            if row.standing == RowStanding::Below {
                claims += 1;
                wrong += usize::from(right >= RULES.goal);
            }
        }
    }
    let share = |part: usize, of: usize| part as f64 / of as f64;
    let words = format!(
        "right {:.3} of {rows_seen}, rival {:.3} of {rivals_seen}, claimed {claims} of {below} below, wrong {wrong}, \
         runs {runs} of {all_runs}",
        share(right_covered, rows_seen),
        share(rival_covered, rivals_seen)
    );
    println!("{words}");
    assert!(share(right_covered, rows_seen) >= 0.95, "{words}");
    assert!(share(rival_covered, rivals_seen) >= 0.95, "{words}");
    assert!(claims > 0 && share(wrong, claims) <= 0.05, "{words}");
    assert!(share(claims, below) >= 0.4, "{words}");
    assert!(runs * 3 < all_runs, "{words}");
}

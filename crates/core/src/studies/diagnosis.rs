//! Diagnosis: why a skill does not help. Is it not found, not followed, or of no use?
//!
//! The cases are run in four cells: *absent* (without the skill), *present* (with it), *named* (the prompt says to use it)
//! and *in prompt* (its text is in the system prompt, and the skill is not staged). Four comparisons decide, corrected
//! together with Holm's method: the chance that any of them claims a difference where there is none is at most 5 %.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VersionRuns;
use crate::model::{ComparisonVerdict, Estimate};
use crate::stats::{ALPHA, Cluster, PairedComparison, clustered_rate, compare_pairs, correct_comparisons};

/// The runs of the four cells, and how often the skill was activated where it was present.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiagnosisCells {
    /// The runs without the skill.
    pub absent: VersionRuns,
    /// The runs with the skill.
    pub present: VersionRuns,
    /// The runs whose prompt names the skill.
    pub named: VersionRuns,
    /// The runs whose system prompt contains the skill's text.
    pub in_prompt: VersionRuns,
    /// For each case with the skill: in how many runs it was activated. Runs that do not show it are left out.
    pub activated: Vec<Cluster>,
    /// The number of runs with the skill that do not show whether it was activated.
    pub activation_unknown: u64,
}

/// What is to blame for the results of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The skill helps as it is.
    Helps,
    /// The skill makes results worse.
    Harms,
    /// The description is not found: where the skill is named or its text given, it helps, and it is activated in less
    /// than half of the runs.
    NotFound,
    /// The skill is found and not followed: it is activated in more than half of the runs without an effect, but its text in the
    /// system prompt helps.
    NotFollowed,
    /// The skill is followed and does not help: even with its text in the system prompt, results are the same as without.
    NotHelping,
    /// The runs do not show it.
    CannotTell,
}

impl Blame {
    /// Says it in words.
    pub fn describe(self) -> &'static str {
        match self {
            Blame::Helps => "the skill helps",
            Blame::Harms => "the skill makes results worse",
            Blame::NotFound => "the description is not found",
            Blame::NotFollowed => "found and not followed",
            Blame::NotHelping => "followed and not helping",
            Blame::CannotTell => "cannot tell",
        }
    }
}

/// The result of a diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// What is to blame.
    pub blame: Blame,
    /// The share of runs that activated the skill where it was present.
    pub activation: Estimate,
    /// The pass rate of each cell: absent, present, named, in prompt.
    pub pass_rates: Vec<NamedRate>,
    /// The comparisons that decided.
    pub comparisons: Vec<CellComparison>,
    /// The number of runs without a verdict. With any, no verdict that nothing differs is given.
    pub not_scored: u64,
}

/// The result of a diagnosis as a document: the output of `practicum diagnose --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Why a skill does not help (diagnose --json)")]
pub struct DiagnosisDocument {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// Smaller differences of the pass rate do not matter.
    pub margin: f64,
    /// The result.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// The pass rate of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedRate {
    /// The name of the cell.
    pub cell: String,
    /// The mean over cases.
    pub pass_rate: Estimate,
}

/// A comparison of two cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellComparison {
    /// The names of the two cells.
    pub cells: [String; 2],
    /// The pass rate of the second minus that of the first.
    pub difference: Estimate,
    /// The p-value, corrected for all comparisons of the diagnosis.
    pub chance: f64,
    /// What the comparison says of the second cell.
    pub verdict: ComparisonVerdict,
}

/// Decides what is to blame. Differences smaller than `margin` do not matter.
pub fn diagnose(cells: &DiagnosisCells, margin: f64) -> Diagnosis {
    let DiagnosisCells { absent, present, named, in_prompt, .. } = cells;
    let pairs = [
        (["absent", "present"], absent.pairs_with(present)),
        (["absent", "in prompt"], absent.pairs_with(in_prompt)),
        (["present", "named"], present.pairs_with(named)),
        (["present", "in prompt"], present.pairs_with(in_prompt)),
    ];
    let mut found: Vec<PairedComparison> =
        pairs.iter().map(|(_, pairs)| compare_pairs(pairs, margin, ALPHA)).collect();
    correct_comparisons(&mut found, ALPHA);
    let not_scored = [absent, present, named, in_prompt].iter().map(|runs| runs.not_scored).sum();
    let activation = activation_rate(cells);
    let verdicts: Vec<ComparisonVerdict> = found.iter().map(|one| one.verdict).collect();
    let blame = match verdicts.as_slice() {
        [helps, text_helps, naming_helps, text_beats] => {
            blame_of([*helps, *text_helps, *naming_helps, *text_beats], activation, not_scored == 0)
        }
        _ => Blame::CannotTell,
    };
    let comparison = |(cells, _): &([&str; 2], _), one: &PairedComparison| CellComparison {
        cells: cells.map(str::to_owned),
        difference: one.difference,
        chance: one.chance,
        verdict: one.verdict,
    };
    let rate =
        |(cell, runs): (&str, &VersionRuns)| NamedRate { cell: cell.to_owned(), pass_rate: runs.pass_rate() };
    let rates = [("absent", absent), ("present", present), ("named", named), ("in prompt", in_prompt)];
    Diagnosis {
        blame,
        activation,
        pass_rates: rates.into_iter().map(rate).collect(),
        comparisons: pairs.iter().zip(&found).map(|(pair, one)| comparison(pair, one)).collect(),
        not_scored,
    }
}

fn blame_of(verdicts: [ComparisonVerdict; 4], activation: Estimate, is_complete: bool) -> Blame {
    use ComparisonVerdict::{Better, Equivalent, Worse};
    let [helps, text_helps, naming_helps, text_beats] = verdicts;
    let is_rare = activation.high.is_some_and(|high| high < 0.5);
    let is_usual = activation.low.is_some_and(|low| low > 0.5);
    let helps_if_given = naming_helps == Better || text_beats == Better;
    match helps {
        Worse => Blame::Harms,
        // A skill that helps may still be found too rarely.
        _ if helps_if_given && is_rare => Blame::NotFound,
        Better => Blame::Helps,
        _ if text_beats == Better && is_usual => Blame::NotFollowed,
        _ if text_helps == Equivalent && is_complete => Blame::NotHelping,
        _ => Blame::CannotTell,
    }
}

/// Gives the share of runs that activated the skill. Runs that do not show it leave no interval.
fn activation_rate(cells: &DiagnosisCells) -> Estimate {
    let runs = cells.activated.iter().map(|cluster| cluster.runs).sum();
    match clustered_rate(&cells.activated, ALPHA) {
        Some((rate, at)) if cells.activation_unknown == 0 => {
            Estimate::new(Some(rate), Some((at.low, at.high)), runs)
        }
        Some((rate, _)) => Estimate::new(Some(rate), None, runs),
        None => Estimate::undefined(runs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{DEFAULT_MARGIN, SeededRandom};

    /// The true pass rates of the cells, the chance of activation, and what is really to blame.
    struct Truth {
        rates: [f64; 4],
        activation: f64,
        blame: Blame,
        /// Smaller differences do not matter.
        margin: f64,
        /// The fewest of 100 studies that must say so.
        least: usize,
    }

    fn simulate(truth: &Truth, cases: usize, repeat: u64, random: &mut SeededRandom) -> Blame {
        let mut runs = |rate: f64| {
            let mut of = VersionRuns::default();
            for at in 0..cases {
                let own = (rate + 0.1 * (random.fraction() - 0.5)).clamp(0.0, 1.0);
                let cluster = Cluster::new(random.successes(repeat, own), repeat);
                of.cases.insert([String::new(), at.to_string(), String::new()], cluster);
            }
            of
        };
        let [absent, present, named, in_prompt] = truth.rates.map(&mut runs);
        let activated: Vec<Cluster> =
            (0..cases).map(|_| Cluster::new(random.successes(repeat, truth.activation), repeat)).collect();
        let cells = DiagnosisCells { absent, present, named, in_prompt, activated, activation_unknown: 0 };
        diagnose(&cells, truth.margin).blame
    }

    /// In 100 simulated studies of each kind, the right verdict is usual and a wrong one rare: at most 8 of 100, where
    /// 5 are allowed for on average.
    #[test]
    fn wrong_verdicts_are_rare() {
        let mut random = SeededRandom::new(20);
        for truth in [
            Truth {
                rates: [0.2, 0.25, 0.85, 0.85],
                activation: 0.05,
                blame: Blame::NotFound,
                margin: DEFAULT_MARGIN,
                least: 90,
            },
            Truth {
                rates: [0.2, 0.2, 0.2, 0.85],
                activation: 0.95,
                blame: Blame::NotFollowed,
                margin: DEFAULT_MARGIN,
                least: 90,
            },
            Truth {
                rates: [0.95, 0.95, 0.95, 0.95],
                activation: 0.95,
                blame: Blame::NotHelping,
                margin: 0.3,
                least: 60,
            },
            Truth {
                rates: [0.2, 0.85, 0.85, 0.85],
                activation: 0.95,
                blame: Blame::Helps,
                margin: DEFAULT_MARGIN,
                least: 90,
            },
            Truth {
                rates: [0.85, 0.2, 0.2, 0.2],
                activation: 0.95,
                blame: Blame::Harms,
                margin: DEFAULT_MARGIN,
                least: 90,
            },
            // Nothing differs by as much as the margin, or too little is known.
            Truth {
                rates: [0.5, 0.5, 0.5, 0.5],
                activation: 0.5,
                blame: Blame::CannotTell,
                margin: DEFAULT_MARGIN,
                least: 80,
            },
        ] {
            let found: Vec<Blame> = (0..100).map(|_| simulate(&truth, 16, 6, &mut random)).collect();
            let right = found.iter().filter(|found| **found == truth.blame).count();
            let is_wrong = |found: &&Blame| {
                // That nothing helps is true where all cells are the same.
                let same = truth.blame == Blame::CannotTell && **found == Blame::NotHelping;
                **found != truth.blame && **found != Blame::CannotTell && !same
            };
            let wrong = found.iter().filter(is_wrong).count();
            println!("{}: right {right}, wrong {wrong} of 100", truth.blame.describe());
            assert!(right >= truth.least, "{:?}: {right}", truth.blame);
            assert!(wrong <= 8, "{:?}: {wrong}", truth.blame);
        }
    }

    #[test]
    fn without_runs_or_with_unknown_activation_nothing_is_blamed() {
        assert_eq!(diagnose(&DiagnosisCells::default(), DEFAULT_MARGIN).blame, Blame::CannotTell);
        let side = |passed: u64| VersionRuns {
            cases: (0..12)
                .map(|at: u8| ([String::new(), at.to_string(), String::new()], Cluster::new(passed, 5)))
                .collect(),
            not_scored: 0,
        };
        let cells = DiagnosisCells {
            absent: side(1),
            present: side(1),
            named: side(5),
            in_prompt: side(5),
            activated: vec![Cluster::new(0, 5); 12],
            activation_unknown: 0,
        };
        assert_eq!(diagnose(&cells, DEFAULT_MARGIN).blame, Blame::NotFound);
        let unknown = DiagnosisCells { activation_unknown: 3, ..cells };
        assert_eq!(diagnose(&unknown, DEFAULT_MARGIN).blame, Blame::CannotTell);
    }
}

//! Simulated suites: cases whose pass rates differ by a known amount.

use practicum_core::stats::{CasePair, Cluster, Confusion, SeededRandom};

/// One cell of the grid.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub cases: u64,
    pub repeat: u64,
    /// How alike the runs of one case are: 0 if all cases have the same pass rate, 1 if each case passes always or
    /// never.
    pub icc: f64,
    /// The mean pass rate.
    pub rate: f64,
}

impl Cell {
    pub fn grid() -> Vec<Cell> {
        let mut cells = Vec::new();
        for cases in [5, 20, 100] {
            for repeat in [1, 3, 10] {
                for icc in [0.0, 0.3, 0.8] {
                    for rate in [0.5, 0.9, 0.98] {
                        cells.push(Cell { cases, repeat, icc, rate });
                    }
                }
            }
        }
        cells
    }

    pub fn name(&self) -> String {
        format!("{} × {}, ICC {}, p {}", self.cases, self.repeat, self.icc, self.rate)
    }

    pub fn seed(&self) -> u64 {
        self.cases * 1_000_003
            + self.repeat * 10_007
            + (self.icc * 10.0) as u64 * 101
            + (self.rate * 100.0) as u64
    }

    /// Draws the pass rate of one case from a beta distribution.
    pub fn draw_rate(&self, random: &mut SeededRandom, mean: f64) -> f64 {
        if self.icc == 0.0 {
            return mean;
        }
        let sum = 1.0 / self.icc - 1.0;
        let (a, b) = (random.log_gamma(mean * sum), random.log_gamma((1.0 - mean) * sum));
        1.0 / (1.0 + (b - a).exp())
    }

    pub fn draw_rates(&self, random: &mut SeededRandom) -> Vec<f64> {
        (0..self.cases).map(|_| self.draw_rate(random, self.rate)).collect()
    }

    /// Gives the mean chance that `k` runs of a case all pass.
    pub fn chance_of_all(&self, k: u64, mean: f64) -> f64 {
        if self.icc == 0.0 {
            return mean.powi(k as i32);
        }
        let sum = 1.0 / self.icc - 1.0;
        (0..k).map(|i| (mean * sum + i as f64) / (sum + i as f64)).product()
    }
}

pub fn run_cases(rates: &[f64], repeat: u64, random: &mut SeededRandom) -> Vec<Cluster> {
    rates.iter().map(|rate| Cluster::new(random.successes(repeat, *rate), repeat)).collect()
}

/// How the new version differs from the old one.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Nothing changes.
    None,
    /// Every second case gets another pass rate, with the same mean.
    Redrawn,
    /// Every case passes less often, so that the mean falls by this much.
    Loss(f64),
    /// Some cases fail always, so that the mean falls by this much.
    Dead(f64),
}

impl Change {
    fn rate_after(self, cell: &Cell, at: usize, before: f64, random: &mut SeededRandom) -> f64 {
        match self {
            Change::None => before,
            Change::Redrawn if at.is_multiple_of(2) => cell.draw_rate(random, cell.rate),
            Change::Redrawn => before,
            Change::Loss(loss) => before * (1.0 - loss / cell.rate),
            Change::Dead(loss) if random.happens(loss / cell.rate) => 0.0,
            Change::Dead(_) => before,
        }
    }

    pub fn describe(self) -> String {
        match self {
            Change::None => "nothing changed".to_owned(),
            Change::Redrawn => "cases changed both ways".to_owned(),
            Change::Loss(loss) => format!("loss of {loss} everywhere"),
            Change::Dead(loss) => format!("loss of {loss} by dead cases"),
        }
    }

    pub fn true_difference(self) -> f64 {
        match self {
            Change::None | Change::Redrawn => 0.0,
            Change::Loss(loss) | Change::Dead(loss) => -loss,
        }
    }

    pub fn draw_pairs(self, cell: &Cell, random: &mut SeededRandom) -> Vec<CasePair> {
        let rates = cell.draw_rates(random);
        let mut pairs = Vec::new();
        for (at, before) in rates.iter().enumerate() {
            let after = self.rate_after(cell, at, *before, random);
            let run = |rate: f64, random: &mut SeededRandom| {
                Cluster::new(random.successes(cell.repeat, rate), cell.repeat)
            };
            pairs.push(CasePair { before: run(*before, random), after: run(after, random) });
        }
        pairs
    }
}

/// The cases of an activation suite: in the first half the skill must be activated, in the others it must not.
pub fn draw_confusions(cell: &Cell, random: &mut SeededRandom) -> Vec<Confusion> {
    let must = must_cases(cell);
    (0..cell.cases)
        .map(|at| {
            let rate = cell.draw_rate(random, cell.rate);
            let right = random.successes(cell.repeat, rate);
            let wrong = cell.repeat - right;
            match at < must {
                true => Confusion { tp: right, fn_: wrong, ..Confusion::default() },
                false => Confusion { tn: right, fp: wrong, ..Confusion::default() },
            }
        })
        .collect()
}

/// The number of cases in which the skill must be activated.
pub fn must_cases(cell: &Cell) -> u64 {
    cell.cases.div_ceil(2)
}

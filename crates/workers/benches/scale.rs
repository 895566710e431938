//! Simulates runs on thousands of workers that crash and lose their connection, on virtual time, and checks the promises
//! of the protocol: no trial is lost, none is counted twice, and the budget is kept.
//!
//! Run with `cargo bench -p practicum-workers --bench scale`; `-- --quick` simulates small runs. Seeded: the same program
//! gives the same table. It fails if a promise is broken; `-- --overwrite` simulates a server on which a second result
//! replaces the first, and must fail. The budget and the number of deliveries are those of the
//! program; the server is a model of a work queue with leases and of a create-only record for each result.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use practicum_agents::gateway::SpendingBudget;
use practicum_workers::budget::{Amount, BudgetAccount, Reservation};
use practicum_workers::messages::MOST_DELIVERIES;

/// A run that is simulated. Times are in milliseconds.
#[derive(Clone, Copy)]
struct Scenario {
    workers: usize,
    trials: usize,
    /// The chance that a worker crashes during a trial.
    crash: f64,
    /// The chance that a worker is cut off during a trial, for up to four leases.
    cut_off: f64,
    /// The share of trials that kill every worker.
    deadly: f64,
    /// The budget in USD, if there is one. A trial costs up to 0.10.
    budget: Option<f64>,
}

const LEASE: u64 = 30_000;
const RESTART: u64 = 60_000;
const LARGEST_COST: f64 = 0.10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A worker looks for a trial.
    Pull { worker: usize },
    /// A worker tells the server the result of a delivery.
    Report { worker: usize, trial: usize, delivery: i64 },
    /// The lease of a delivery is over without a sign of life.
    Expire { trial: usize, delivery: i64 },
    /// A worker that crashed is there again.
    Restart { worker: usize },
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Result,
    Lost,
}

struct Simulation {
    scenario: Scenario,
    dice: Dice,
    now: u64,
    order: u64,
    steps: BinaryHeap<Reverse<(u64, u64, Step)>>,
    waiting: VecDeque<usize>,
    deliveries: Vec<i64>,
    /// The deliveries whose lease counts, by their trial.
    leased: HashMap<usize, i64>,
    /// The record of each trial, and how often the coordinator got one.
    done: BTreeMap<usize, (Counted, u32)>,
    /// Whether a second record of a trial replaces the first.
    overwrites: bool,
    account: Option<BudgetAccount>,
    costs: HashMap<(usize, i64), f64>,
    running: usize,
    most_running: usize,
    messages: u64,
    discarded: u64,
}

impl Simulation {
    fn new(scenario: Scenario, seed: u64) -> Self {
        let budget = SpendingBudget { max_cost: scenario.budget, max_tokens: None };
        let mut simulation = Self {
            scenario,
            dice: Dice(seed),
            now: 0,
            order: 0,
            steps: BinaryHeap::new(),
            waiting: (0..scenario.trials).collect(),
            deliveries: vec![0; scenario.trials],
            leased: HashMap::new(),
            done: BTreeMap::new(),
            overwrites: false,
            account: BudgetAccount::open(budget),
            costs: HashMap::new(),
            running: 0,
            most_running: 0,
            messages: scenario.trials as u64,
            discarded: 0,
        };
        for worker in 0..scenario.workers {
            let at = simulation.dice.between(0, 5_000);
            simulation.plan(at, Step::Pull { worker });
        }
        simulation
    }

    fn plan(&mut self, after: u64, step: Step) {
        self.order += 1;
        self.steps.push(Reverse((self.now + after, self.order, step)));
    }

    fn run(&mut self) {
        while let Some(Reverse((at, _, step))) = self.steps.pop() {
            self.now = at;
            match step {
                Step::Pull { worker } => self.pull(worker),
                Step::Report { worker, trial, delivery } => self.report(worker, trial, delivery),
                Step::Expire { trial, delivery } => {
                    if self.leased.get(&trial) == Some(&delivery) {
                        self.leased.remove(&trial);
                        self.waiting.push_back(trial);
                    }
                }
                Step::Restart { worker } => self.plan(0, Step::Pull { worker }),
            }
            let is_over = self.done.len() == self.scenario.trials && self.leased.is_empty();
            if is_over || self.is_budget_used_up() && self.running == 0 {
                break;
            }
        }
    }

    fn is_budget_used_up(&self) -> bool {
        let spent = self.account.as_ref().map(|account| account.spent().cost);
        spent.zip(self.scenario.budget).is_some_and(|(spent, budget)| spent >= budget)
    }

    fn pull(&mut self, worker: usize) {
        self.messages += 1;
        let Some(trial) = self.waiting.pop_front() else { return self.plan(2_000, Step::Pull { worker }) };
        self.deliveries[trial] += 1;
        let delivery = self.deliveries[trial];
        if self.done.contains_key(&trial) {
            return self.plan(1, Step::Pull { worker });
        }
        if delivery > MOST_DELIVERIES {
            self.create_record(trial, Counted::Lost);
            return self.plan(1, Step::Pull { worker });
        }
        if let Some(account) = &mut self.account {
            match account.reserve(&trial.to_string()) {
                Reservation::Granted => {}
                Reservation::Wait | Reservation::UsedUp => {
                    self.deliveries[trial] -= 1;
                    self.waiting.push_back(trial);
                    return self.plan(300, Step::Pull { worker });
                }
            }
        }
        self.begin(worker, trial, delivery);
    }

    fn begin(&mut self, worker: usize, trial: usize, delivery: i64) {
        self.leased.insert(trial, delivery);
        self.running += 1;
        self.most_running = self.most_running.max(self.running);
        let lasts = self.dice.between(5_000, 300_000);
        self.messages += lasts / (LEASE / 3);
        let is_deadly = (trial as f64 / self.scenario.trials as f64) < self.scenario.deadly;
        let cost = self.dice.share() * LARGEST_COST;
        self.costs.insert((trial, delivery), cost);
        if is_deadly || self.dice.share() < self.scenario.crash {
            let dies_after = self.dice.between(0, lasts);
            self.running -= 1;
            self.plan(dies_after + LEASE, Step::Expire { trial, delivery });
            self.plan(dies_after + RESTART, Step::Restart { worker });
        } else if self.dice.share() < self.scenario.cut_off {
            // The server hears nothing for a while; the worker goes on and reports when it is connected again.
            let (from, length) = (self.dice.between(0, lasts), self.dice.between(1, 4 * LEASE));
            if length > LEASE {
                self.plan(from + LEASE, Step::Expire { trial, delivery });
            }
            self.plan(lasts.max(from + length), Step::Report { worker, trial, delivery });
        } else {
            self.plan(lasts, Step::Report { worker, trial, delivery });
        }
    }

    fn report(&mut self, worker: usize, trial: usize, delivery: i64) {
        self.running -= 1;
        // An upload of two messages, the record of the result, the acknowledgement and its answer.
        self.messages += 5;
        let cost = self.costs.remove(&(trial, delivery)).unwrap_or_default();
        if let Some(account) = &mut self.account {
            account.settle(&trial.to_string(), Amount { cost, tokens: 0 });
            self.messages += 4;
        }
        if !self.create_record(trial, Counted::Result) {
            self.discarded += 1;
        }
        if self.leased.get(&trial) == Some(&delivery) {
            self.leased.remove(&trial);
        }
        self.plan(1, Step::Pull { worker });
    }

    /// Creates the record of a trial, unless it has one. Says whether it was created, so that the coordinator counts it.
    fn create_record(&mut self, trial: usize, end: Counted) -> bool {
        let is_created = self.overwrites || !self.done.contains_key(&trial);
        if is_created {
            let times = self.done.get(&trial).map_or(0, |(_, times)| *times);
            self.done.insert(trial, (end, times + 1));
        }
        is_created
    }

    /// Gives the promises that were broken.
    fn broken_promises(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let has_stopped = self.is_budget_used_up();
        if self.done.len() != self.scenario.trials && !has_stopped {
            broken.push(format!(
                "{} of {} trials have no result",
                self.scenario.trials - self.done.len(),
                self.scenario.trials
            ));
        }
        if let Some((trial, (_, times))) = self.done.iter().find(|(_, (_, times))| *times != 1) {
            broken.push(format!("trial {trial} was counted {times} times"));
        }
        let lost = self.done.iter().filter(|(_, (end, _))| *end == Counted::Lost);
        if let Some((trial, _)) = lost.clone().find(|(trial, _)| self.deliveries[**trial] <= MOST_DELIVERIES)
        {
            broken.push(format!("trial {trial} was given up too early"));
        }
        if let Some((account, budget)) = self.account.as_ref().zip(self.scenario.budget) {
            let most = budget + self.most_running as f64 * LARGEST_COST;
            if account.spent().cost > most {
                broken.push(format!("{} were spent of {budget}", account.spent().cost));
            }
        }
        broken
    }
}

fn main() {
    let has_flag = |flag: &str| std::env::args().any(|argument| argument == flag);
    let is_quick = has_flag("--quick");
    let scale = if is_quick { 100 } else { 1 };
    let calm = Scenario {
        workers: 10_000 / scale,
        trials: 1_000_000 / scale,
        crash: 0.0,
        cut_off: 0.0,
        deadly: 0.0,
        budget: None,
    };
    let scenarios = [
        ("nothing fails", calm),
        ("1 % crash, 1 % are cut off", Scenario { crash: 0.01, cut_off: 0.01, ..calm }),
        (
            "10 % crash, 10 % are cut off",
            Scenario { crash: 0.1, cut_off: 0.1, trials: calm.trials / 4, ..calm },
        ),
        (
            "1 of 1,000 trials is deadly",
            Scenario { crash: 0.01, deadly: 0.001, trials: calm.trials / 4, ..calm },
        ),
        (
            "a budget for a half, 5 % crash",
            Scenario {
                crash: 0.05,
                cut_off: 0.05,
                workers: calm.workers / 10,
                trials: calm.trials / 50,
                budget: Some(calm.trials as f64 / 50.0 * LARGEST_COST / 4.0),
                ..calm
            },
        ),
    ];
    println!(
        "| run | workers | trials | counted | lost | run twice | messages per trial | hours | broken promises |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut any_broken = false;
    for (name, scenario) in scenarios {
        let mut simulation =
            Simulation { overwrites: has_flag("--overwrite"), ..Simulation::new(scenario, 20_261) };
        simulation.run();
        let broken = simulation.broken_promises();
        let lost = simulation.done.values().filter(|(end, _)| *end == Counted::Lost).count();
        println!(
            "| {name} | {} | {} | {} | {lost} | {} | {:.1} | {:.1} | {} |",
            scenario.workers,
            scenario.trials,
            simulation.done.len() - lost,
            simulation.discarded,
            simulation.messages as f64 / simulation.done.len().max(1) as f64,
            simulation.now as f64 / 3_600_000.0,
            broken.len()
        );
        broken.iter().for_each(|promise| eprintln!("broken: {promise}"));
        any_broken |= !broken.is_empty();
    }
    if any_broken {
        std::process::exit(1);
    }
}

//! Tests of ablation: groups by hand, and simulated studies whose useful paragraphs are known.

use super::*;
use crate::stats::{DEFAULT_MARGIN, SeededRandom};

#[test]
fn groups_fit_into_the_budget_and_halves_cover_their_group() {
    assert_eq!(first_groups(5, 2), [0..2, 2..4, 4..5]);
    assert_eq!(first_groups(0, 2), []);
    for (paragraphs, versions, expected) in
        [(10, 11, Some(1)), (10, 10, Some(2)), (10, 3, Some(5)), (10, 2, Some(10)), (10, 1, None)]
    {
        assert_eq!(group_size_for(paragraphs, versions), expected, "{paragraphs} {versions}");
    }
    assert_eq!(split_group(&(4..7)), Some([4..5, 5..7]));
    assert_eq!(split_group(&(4..5)), None);
}

#[test]
fn a_skill_that_never_passes_shows_nothing_about_its_text() {
    let side = |passed: u64| VersionRuns {
        cases: (0..40)
            .map(|at: u8| ([String::new(), at.to_string(), String::new()], Cluster::new(passed, 2)))
            .collect(),
        not_scored: 0,
    };
    let role = |whole: &VersionRuns, without: &VersionRuns| {
        judge_group(0..1, 4, whole, without, DEFAULT_MARGIN, 0.0).role
    };
    assert_eq!(role(&side(0), &side(0)), ParagraphRole::Unclear);
    assert_eq!(role(&side(2), &side(2)), ParagraphRole::WithoutEffect);
    assert_eq!(role(&side(2), &side(0)), ParagraphRole::Needed);
    assert_eq!(role(&side(0), &side(2)), ParagraphRole::Harmful);
    // A run without a verdict may be one that the missing text broke.
    let broken = VersionRuns { not_scored: 1, ..side(2) };
    assert_eq!(role(&side(2), &broken), ParagraphRole::Unclear);
}

/// A simulated skill: the pass rate of each case with all paragraphs, and what the lack of each takes from it.
struct SimulatedSkill {
    cases: Vec<f64>,
    losses: Vec<f64>,
}

impl SimulatedSkill {
    /// Ten paragraphs, of which three help.
    fn with_three_useful(loss: f64, cases: usize, random: &mut SeededRandom) -> (Self, Vec<usize>) {
        let mut useful: Vec<usize> = Vec::new();
        while useful.len() < 3 {
            let drawn = random.position(10);
            if !useful.contains(&drawn) {
                useful.push(drawn);
            }
        }
        useful.sort_unstable();
        let losses = (0..10).map(|at| if useful.contains(&at) { loss } else { 0.0 }).collect();
        let cases = (0..cases).map(|_| 0.85 + 0.14 * random.fraction()).collect();
        (Self { cases, losses }, useful)
    }

    fn run_without(&self, group: &Range<usize>, repeat: u64, random: &mut SeededRandom) -> VersionRuns {
        let loss: f64 = group.clone().map(|at| self.losses[at]).sum();
        let mut runs = VersionRuns::default();
        for (at, rate) in self.cases.iter().enumerate() {
            let passed = random.successes(repeat, (rate - loss).max(0.02));
            runs.cases.insert([String::new(), at.to_string(), String::new()], Cluster::new(passed, repeat));
        }
        runs
    }

    /// Runs a study as the command does, with groups of this size at first.
    fn study(&self, size: usize, repeat: u64, margin: f64, random: &mut SeededRandom) -> Vec<GroupEffect> {
        let paragraphs = self.losses.len();
        let whole = self.run_without(&(0..0), repeat, random);
        let mut open: Vec<(Range<usize>, f64)> =
            first_groups(paragraphs, size).into_iter().map(|group| (group, 0.0)).collect();
        let mut found = Vec::new();
        while let Some((group, parent)) = open.pop() {
            let without = self.run_without(&group, repeat, random);
            let effect = judge_group(group.clone(), paragraphs, &whole, &without, margin, parent);
            match split_group(&group).filter(|_| effect.role == ParagraphRole::Needed) {
                Some(halves) => open.extend(halves.map(|half| (half, effect.chance))),
                None => found.push(effect),
            }
        }
        found
    }
}

/// What 100 studies found.
#[derive(Default)]
struct StudyTotals {
    found: usize,
    useful: usize,
    studies_with_error: usize,
    cut_wrongly: usize,
    cut: usize,
    useless: usize,
}

fn hundred_studies(loss: f64, cases: usize, size: usize, repeat: u64, margin: f64) -> StudyTotals {
    let mut random = SeededRandom::new(100 + size as u64);
    let mut totals = StudyTotals::default();
    for _ in 0..100 {
        let (skill, useful) = SimulatedSkill::with_three_useful(loss, cases, &mut random);
        let found = skill.study(size, repeat, margin, &mut random);
        let is_useful = |effect: &GroupEffect| effect.paragraphs().any(|at| useful.contains(&at));
        let needed = || found.iter().filter(|effect| effect.role == ParagraphRole::Needed);
        let cut = || found.iter().filter(|effect| effect.role == ParagraphRole::WithoutEffect);
        totals.useful += useful.len();
        totals.found += needed().filter(|effect| effect.count == 1 && is_useful(effect)).count();
        totals.studies_with_error += usize::from(needed().any(|effect| !is_useful(effect)));
        totals.cut_wrongly +=
            cut().filter(|effect| is_useful(effect)).map(|effect| effect.count).sum::<usize>();
        totals.cut += cut().filter(|effect| !is_useful(effect)).map(|effect| effect.count).sum::<usize>();
        totals.useless += 10 - useful.len();
    }
    totals
}

/// Over 100 simulated studies each: at most 5 of them call a useless paragraph needed, at most 5 % of the useful
/// paragraphs are called without effect, and nearly all useful ones are found.
#[test]
fn three_useful_paragraphs_among_ten_are_found() {
    println!(
        "loss cases repeat groups margin: found, studies with a false alarm, useful called without effect, useless cut"
    );
    for (loss, cases, repeat, size, margin, least_found) in [
        (0.6, 12, 4, 1, 0.3, 285),
        (0.6, 12, 4, 2, 0.3, 285),
        (0.3, 20, 5, 1, 0.2, 240),
        (0.0, 12, 4, 1, 0.3, 0),
    ] {
        let totals = hundred_studies(loss, cases, size, repeat, margin);
        println!(
            "{loss} {cases} {repeat} {size} {margin}: {} of {}, {} of 100, {}, {} of {}",
            totals.found,
            totals.useful,
            totals.studies_with_error,
            totals.cut_wrongly,
            totals.cut,
            totals.useless
        );
        let alarms =
            if loss == 0.0 { totals.found.max(totals.studies_with_error) } else { totals.studies_with_error };
        assert!(alarms <= 8, "loss {loss}: {alarms} of 100 studies have a false alarm");
        if loss > 0.0 {
            assert!(totals.found >= least_found, "loss {loss}, groups of {size}: {} found", totals.found);
            assert!(totals.cut_wrongly <= 15, "loss {loss}: {} of {}", totals.cut_wrongly, totals.useful);
        }
    }
}

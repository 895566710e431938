//! Cost against quality: which of several agents, models, modes and versions nothing else beats.

use std::collections::BTreeMap;

use super::CaseKey;
use super::case::CaseTally;
use crate::model::{ComparisonVerdict, Estimate, FrontierPoint, FrontierStanding};
use crate::stats::{
    ALPHA, CasePair, Cluster, DEFAULT_MARGIN, PairedComparison, clustered_rate, compare_pairs,
    correct_comparisons, mean_difference,
};

/// One of several candidates that ran the same cases, each case with its runs and the mean cost of a run.
#[derive(Debug, Clone, Default)]
pub struct FrontierCandidate {
    /// The name of the candidate in reports.
    pub name: String,
    /// The runs by case, each with the mean cost of a run if it is known.
    pub cases: BTreeMap<(String, String), (Cluster, Option<f64>)>,
}

impl FrontierCandidate {
    fn pass_rate(&self) -> Estimate {
        let clusters: Vec<Cluster> = self.cases.values().map(|(cluster, _)| *cluster).collect();
        let runs = clusters.iter().map(|cluster| cluster.runs).sum();
        let found = clustered_rate(&clusters, ALPHA);
        Estimate::new(found.map(|(rate, _)| rate), found.map(|(_, at)| (at.low, at.high)), runs)
    }

    fn cost(&self) -> Estimate {
        let costs: Option<Vec<f64>> = self.cases.values().map(|(_, cost)| *cost).collect();
        let found = costs.map_or(Estimate::undefined(0), |costs| mean_difference(&costs, ALPHA));
        // A cost is never below 0.
        Estimate { low: found.low.map(|low| low.max(0.0)), ..found }
    }

    /// Gives the cases that both ran, with the results of both.
    fn shared<'c>(
        &'c self,
        other: &'c Self,
    ) -> impl Iterator<Item = ((Cluster, Option<f64>), (Cluster, Option<f64>))> + 'c {
        self.cases.iter().filter_map(|(name, own)| Some((*own, *other.cases.get(name)?)))
    }
}

/// Finds where each candidate stands. The more candidates there are, the clearer a difference must be. Empty if there are
/// fewer than two, or if the cost of none is known.
pub fn find_frontier(candidates: &[FrontierCandidate]) -> Vec<FrontierPoint> {
    let points: Vec<FrontierPoint> = candidates
        .iter()
        .map(|one| FrontierPoint {
            name: one.name.clone(),
            pass_rate: one.pass_rate(),
            cost_usd: one.cost(),
            standing: None,
            behind: None,
        })
        .collect();
    if points.len() < 2 || points.iter().all(|point| point.cost_usd.value.is_none()) {
        return Vec::new();
    }
    let rivals: Vec<(usize, usize)> = (0..points.len())
        .flat_map(|own| (0..points.len()).map(move |other| (own, other)))
        .filter(|(own, other)| own != other)
        .collect();
    let mut quality: Vec<PairedComparison> = rivals
        .iter()
        .map(|(own, other)| {
            let pairs = candidates[*own].shared(&candidates[*other]);
            let pairs: Vec<CasePair> =
                pairs.map(|((before, _), (after, _))| CasePair { before, after }).collect();
            compare_pairs(&pairs, DEFAULT_MARGIN, ALPHA)
        })
        .collect();
    correct_comparisons(&mut quality, ALPHA);
    let alpha = ALPHA / rivals.len() as f64;
    let mut found = points.clone();
    for (at, point) in found.iter_mut().enumerate() {
        let Some(own) = point.pass_rate.value.zip(point.cost_usd.value) else { continue };
        point.standing = Some(FrontierStanding::OnFrontier);
        for ((_, other), quality) in rivals.iter().zip(&quality).filter(|((own, _), _)| *own == at) {
            let Some(theirs) = points[*other].pass_rate.value.zip(points[*other].cost_usd.value) else {
                continue;
            };
            let is_cheaper = is_clearly_cheaper(&candidates[at], &candidates[*other], alpha);
            let standing = standing_against(own, theirs, quality.verdict, is_cheaper);
            let worse = |known: FrontierStanding| standing as u8 > known as u8;
            if point.standing.is_some_and(worse) {
                point.standing = Some(standing);
                point.behind = Some(points[*other].name.clone());
            }
        }
    }
    found
}

/// Compares a candidate with another one. Each comes with its pass rate and its cost; `verdict` is about the other one's
/// quality, and `is_cheaper` says whether the other one is clearly cheaper.
fn standing_against(
    own: (f64, f64),
    other: (f64, f64),
    verdict: ComparisonVerdict,
    is_cheaper: bool,
) -> FrontierStanding {
    let looks_better = other.0 >= own.0 && other.1 <= own.1 && other != own;
    let is_better = verdict == ComparisonVerdict::Better && other.1 <= own.1;
    let is_no_worse = matches!(verdict, ComparisonVerdict::Better | ComparisonVerdict::Equivalent);
    match (is_better || is_cheaper && is_no_worse, looks_better) {
        (true, _) => FrontierStanding::Behind,
        (false, true) => FrontierStanding::Unclear,
        (false, false) => FrontierStanding::OnFrontier,
    }
}

fn is_clearly_cheaper(own: &FrontierCandidate, other: &FrontierCandidate, alpha: f64) -> bool {
    let costs = own.shared(other).map(|((_, own), (_, other))| Some(other? - own?));
    let differences: Option<Vec<f64>> = costs.collect();
    let found =
        differences.map_or(Estimate::undefined(0), |differences| mean_difference(&differences, alpha));
    // Where every case has the same difference, there is no interval and nothing to doubt.
    match (found.value, found.high) {
        (Some(_), Some(high)) => high < 0.0,
        (Some(value), None) => value < 0.0 && found.n > 1,
        (None, _) => false,
    }
}

/// Places the agents, models, modes and versions of a run.
pub fn summarise_frontier(cases: &BTreeMap<CaseKey, CaseTally>) -> Vec<FrontierPoint> {
    let mut candidates: Vec<FrontierCandidate> = Vec::new();
    for (key, case) in cases.iter().filter(|(_, case)| case.trials() > 0) {
        let name = candidate_name(key);
        let at = candidates.iter().position(|known| known.name == name).unwrap_or_else(|| {
            candidates.push(FrontierCandidate { name: name.clone(), ..FrontierCandidate::default() });
            candidates.len() - 1
        });
        let id = (key.suite.clone(), key.case.clone());
        candidates[at].cases.insert(id, (case.cluster(), case.mean_cost()));
    }
    find_frontier(&candidates)
}

/// Names a candidate by its agent, and by model, mode and arm where they are not the usual ones.
fn candidate_name(key: &CaseKey) -> String {
    let arm = key.arm.name();
    let more = [key.model.as_deref(), Some(key.mode.as_str()), Some(arm.as_str())];
    let is_usual = |word: &&str| ["baseline", "with"].contains(word);
    let words: Vec<&str> = more.into_iter().flatten().filter(|word| !is_usual(word)).collect();
    match words.is_empty() {
        true => key.agent.clone(),
        false => format!("{} ({})", key.agent, words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a candidate of forty cases, each with this many of five runs passed, at about this cost.
    fn candidate(name: &str, passed: u64, cost: Option<f64>) -> FrontierCandidate {
        let case = |at: u32| {
            let cost = cost.map(|cost| cost * (1.0 + 0.01 * f64::from(at % 3)));
            (("s".to_owned(), format!("c{at}")), (Cluster::new(passed, 5), cost))
        };
        FrontierCandidate { name: name.to_owned(), cases: (0..40).map(case).collect() }
    }

    fn standings(candidates: &[FrontierCandidate]) -> Vec<Option<FrontierStanding>> {
        find_frontier(candidates).into_iter().map(|point| point.standing).collect()
    }

    #[test]
    fn what_is_worse_and_dearer_is_behind() {
        use FrontierStanding::{Behind, OnFrontier, Unclear};
        let (good, cheap) = (candidate("good", 5, Some(0.9)), candidate("cheap", 2, Some(0.1)));
        let (bad, unknown) = (candidate("bad", 2, Some(1.0)), candidate("unknown", 5, None));
        let found = find_frontier(&[good.clone(), cheap.clone(), bad, unknown]);
        let expected = [Some(OnFrontier), Some(OnFrontier), Some(Behind), None];
        assert_eq!(found.iter().map(|point| point.standing).collect::<Vec<_>>(), expected);
        assert!(found[2].behind.is_some() && found[0].behind.is_none());
        assert!(found[0].pass_rate.low.is_some() && found[0].cost_usd.low.is_some());
        // A little dearer and one run worse: that may be chance.
        let mut close = candidate("close", 5, Some(0.9));
        for (at, case) in close.cases.values_mut().enumerate() {
            let less = u64::from(at == 0);
            *case = (Cluster::new(5 - less, 5), Some(if at % 2 == 0 { 0.5 } else { 1.4 }));
        }
        assert_eq!(standings(&[good.clone(), close]), [Some(OnFrontier), Some(Unclear)]);
        // As good, and clearly cheaper.
        assert_eq!(
            standings(&[good.clone(), candidate("same", 5, Some(0.5))]),
            [Some(Behind), Some(OnFrontier)]
        );
        assert_eq!(standings(&[good.clone(), good]), [Some(OnFrontier); 2], "equal ones are both on it");
        assert!(standings(&[cheap]).is_empty());
    }
}

//! The results of several agents side by side: a row for each case, a column for each agent.

use super::figures;
use practicum_core::model::{CaseSummary, Summary};

/// The pass rates of the cases of a run that several agents worked on, with their intervals.
pub struct AgentMatrix {
    /// The names of the columns: the agent, with model, mode and arm if these differ within the run.
    pub columns: Vec<String>,
    /// The rows, in the order of the cases.
    pub rows: Vec<AgentMatrixRow>,
}

/// The results of one case.
pub struct AgentMatrixRow {
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The pass rate of each column in words; `None` if the case was not planned there.
    pub cells: Vec<Option<String>>,
}

/// What distinguishes the columns.
type ColumnKey<'s> = (&'s str, Option<&'s str>, &'s str, &'s str);

fn column_of(case: &CaseSummary) -> ColumnKey<'_> {
    (&case.agent, case.model.as_deref(), &case.mode, &case.arm)
}

/// Makes the matrix of a run; `None` if fewer than two agents worked in it. The arm without the skill is only compared
/// with, and has no column unless nothing else was run.
pub fn agent_matrix(summary: &Summary) -> Option<AgentMatrix> {
    let has_skill = |case: &&CaseSummary| case.arm != "without";
    let only_without = !summary.cases.iter().any(|case| has_skill(&case));
    let cases: Vec<&CaseSummary> =
        summary.cases.iter().filter(|case| only_without || has_skill(case)).collect();
    let mut keys: Vec<ColumnKey<'_>> = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for case in &cases {
        let (key, name) = (column_of(case), (case.suite.as_str(), case.id.as_str()));
        if !keys.contains(&key) {
            keys.push(key);
        }
        if names.last() != Some(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    if keys.iter().all(|key| Some(key.0) == keys.first().map(|first| first.0)) {
        return None;
    }
    let cell = |(suite, id): (&str, &str), key: &ColumnKey<'_>| {
        let found =
            cases.iter().find(|case| case.suite == suite && case.id == id && column_of(case) == *key)?;
        let scored = found.passed + found.failed + found.not_scored;
        Some(match scored {
            0 => "not run".to_owned(),
            _ => figures::describe_pass_rate(&found.pass_rate),
        })
    };
    let rows = names.iter().map(|&name| AgentMatrixRow {
        suite: name.0.to_owned(),
        case: name.1.to_owned(),
        cells: keys.iter().map(|key| cell(name, key)).collect(),
    });
    Some(AgentMatrix {
        rows: rows.collect(),
        columns: keys.iter().map(|key| column_name(key, &keys)).collect(),
    })
}

/// Names a column: the agent, and what else differs among the columns.
fn column_name(key: &ColumnKey<'_>, all: &[ColumnKey<'_>]) -> String {
    let mut parts = vec![key.0];
    let differs = |part: fn(&ColumnKey<'_>) -> String| all.iter().any(|other| part(other) != part(key));
    parts.extend(key.1.filter(|_| differs(|key| key.1.unwrap_or_default().to_owned())));
    parts.extend(Some(key.2).filter(|_| differs(|key| key.2.to_owned())));
    parts.extend(Some(key.3).filter(|_| differs(|key| key.3.to_owned())));
    parts.join(" · ")
}

//! The viewer's JSON API over runs, cases and trials.

use std::path::Path as FilePath;

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ViewerError, ViewerState};
use crate::report::RunResults;
use crate::report::routing::routing_of_run;
use practicum_core::model::GateResult;
use practicum_core::stats;
use practicum_core::studies::RoutingDocument;
use practicum_core::tree::open_regular;
use practicum_engine::store::history;
use practicum_engine::store::{
    CaseCell, CaseRow, CheckRow, Metric, MetricScope, RunLock, RunRow, SuiteRow, TrialFilter,
    TrialFilterValues, TrialOrder, TrialRow,
};

/// The greatest number of rows on a page, whatever is asked for.
const MAX_ROWS: usize = 200;

#[derive(Deserialize)]
pub struct RunsQuery {
    before: Option<String>,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub struct RunsPage {
    runs: Vec<RunListEntry>,
    more: bool,
    /// Whether runs may be missing, because the index is still being made.
    importing: bool,
}

#[derive(Serialize)]
struct RunListEntry {
    #[serde(flatten)]
    row: RunRow,
    state: &'static str,
    suites: Vec<String>,
}

fn run_state(row: &RunRow, folder: &FilePath) -> &'static str {
    match row.status() {
        Some(standing) => standing.name(),
        None if RunLock::read(folder).is_some_and(|live| live.is_running()) => "running",
        None => "broken off",
    }
}

impl ViewerState {
    fn list_entry(&self, row: RunRow, suites: Vec<String>) -> RunListEntry {
        let state = run_state(&row, &self.0.project.join(".practicum/runs").join(&row.id));
        RunListEntry { row, state, suites }
    }
}

pub async fn runs(
    State(shared): State<ViewerState>,
    Query(asked): Query<RunsQuery>,
) -> Result<Json<RunsPage>, ViewerError> {
    let limit = asked.limit.unwrap_or(50).clamp(1, MAX_ROWS);
    let mut rows = shared.query_index(|index| {
        let rows = index.runs(asked.before.as_deref(), limit + 1)?;
        rows.into_iter()
            .map(|row| Ok((index.suites_of(&row.id, usize::MAX)?, row)))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    Ok(Json(RunsPage {
        runs: rows.into_iter().map(|(suites, row)| shared.list_entry(row, suites)).collect(),
        more,
        importing: shared.is_importing(),
    }))
}

#[derive(Serialize)]
pub struct RunDetails {
    #[serde(flatten)]
    listed: RunListEntry,
    /// The suites of the run against the agents and arms that they ran with. `columns` are their sums.
    grid: Vec<SuiteRow>,
    columns: Vec<CaseCell>,
    /// The summary without its cases, which may be many.
    summary: Option<Value>,
    notices: Vec<String>,
}

/// The parts of a summary that are shown, as far as it has them.
#[derive(Deserialize)]
struct ShownSummary {
    #[serde(default)]
    gates: Vec<GateResult>,
    pass_rate: Option<Value>,
    activation: Option<Value>,
    arms: Option<Value>,
    saved: Option<Value>,
    variance: Option<Value>,
    frontier: Option<Value>,
}

pub async fn run(
    State(shared): State<ViewerState>,
    Path(id): Path<String>,
) -> Result<Json<RunDetails>, ViewerError> {
    let run = shared.find_run(&id)?;
    let (row, grid) = shared.query_index(|index| Ok((index.run(&id)?, index.suite_cells_of(&id)?)))?;
    let row = row.ok_or(ViewerError::Missing("the run is not in the index yet"))?;
    let file = |name: &str| open_regular(run.path().join(name)).ok().map(std::io::BufReader::new);
    let summary = file("summary.json").and_then(|file| serde_json::from_reader(file).ok());
    let summary = summary.map(|of: ShownSummary| {
        let gates: Vec<Value> = of.gates.iter().map(gate_document).collect();
        json!({"gates": gates, "pass_rate": of.pass_rate, "activation": of.activation, "arms": of.arms,
            "saved": of.saved, "variance": of.variance, "frontier": of.frontier})
    });
    #[derive(Deserialize)]
    struct RunNotices {
        #[serde(default)]
        notices: Vec<String>,
    }
    let stored = file("run.json").and_then(|file| serde_json::from_reader::<_, RunNotices>(file).ok());
    let notices = stored.map(|stored| stored.notices).unwrap_or_default();
    let suites = grid.iter().map(|row| row.suite.clone()).collect();
    let columns = add_up_cells(&grid);
    Ok(Json(RunDetails { listed: shared.list_entry(row, suites), grid, columns, summary, notices }))
}

/// Gives the routing of a catalogue; `null` if the run is none of a catalogue, or did not finish.
pub async fn routing(
    State(shared): State<ViewerState>,
    Path(id): Path<String>,
) -> Result<Json<Option<RoutingDocument>>, ViewerError> {
    let run = shared.find_run(&id)?;
    // Thousands of trials are read, which must not hold up the other answers.
    let read = move || RunResults::open(run).ok().and_then(|results| routing_of_run(&results));
    Ok(Json(tokio::task::spawn_blocking(read).await.ok().flatten()))
}

fn gate_document(gate: &GateResult) -> Value {
    let mut shown = json!(gate);
    shown["standing"] = gate.status().into();
    shown
}

/// Adds up the cells of all suites.
fn add_up_cells(grid: &[SuiteRow]) -> Vec<CaseCell> {
    let mut columns: Vec<CaseCell> = Vec::new();
    for cell in grid.iter().flat_map(|row| &row.cells) {
        match columns.iter_mut().find(|known| known.column == cell.column) {
            Some(known) => {
                known.passed += cell.passed;
                known.failed += cell.failed;
                known.not_scored += cell.not_scored;
            }
            None => columns.push(cell.clone()),
        }
    }
    columns.sort_by(|a, b| a.column.cmp(&b.column));
    columns
}

#[derive(Deserialize)]
pub struct CasesQuery {
    suite: Option<String>,
    case: Option<String>,
    #[serde(default)]
    troubled: bool,
}

#[derive(Serialize)]
pub struct CasesPage {
    cases: Vec<CaseGridRow>,
    more: bool,
}

#[derive(Serialize)]
struct CaseGridRow {
    suite: String,
    case: String,
    cells: Vec<CaseGridCell>,
}

/// A cell of the grid of cases, with the interval of its pass rate.
#[derive(Serialize)]
struct CaseGridCell {
    #[serde(flatten)]
    cell: CaseCell,
    low: Option<f64>,
    high: Option<f64>,
}

impl CaseGridCell {
    fn from_cell(cell: CaseCell) -> Self {
        let interval = stats::clopper_pearson(cell.passed, cell.passed + cell.failed, stats::ALPHA);
        Self { cell, low: interval.map(|ends| ends.low), high: interval.map(|ends| ends.high) }
    }
}

pub async fn cases(
    State(shared): State<ViewerState>,
    Path(id): Path<String>,
    Query(asked): Query<CasesQuery>,
) -> Result<Json<CasesPage>, ViewerError> {
    let after = asked.suite.as_deref().zip(asked.case.as_deref());
    let limit = 100;
    let mut cases = shared.query_index(|index| index.cases_of(&id, after, asked.troubled, limit + 1))?;
    let more = cases.len() > limit;
    cases.truncate(limit);
    let case = |CaseRow { suite, case, cells }| CaseGridRow {
        suite,
        case,
        cells: cells.into_iter().map(CaseGridCell::from_cell).collect(),
    };
    Ok(Json(CasesPage { cases: cases.into_iter().map(case).collect(), more }))
}

#[derive(Deserialize)]
pub struct TrialsQuery {
    run: Option<String>,
    suite: Option<String>,
    case: Option<String>,
    agent: Option<String>,
    arm: Option<String>,
    verdict: Option<String>,
    q: Option<String>,
    order: Option<String>,
    after: Option<i64>,
    limit: Option<usize>,
    /// Whether the checks of each trial are included.
    #[serde(default)]
    checks: bool,
}

#[derive(Serialize)]
pub struct TrialsPage {
    trials: Vec<ListedTrial>,
    more: bool,
}

#[derive(Serialize)]
struct ListedTrial {
    #[serde(flatten)]
    row: TrialRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Vec<CheckRow>>,
}

pub async fn trials(
    State(shared): State<ViewerState>,
    Query(asked): Query<TrialsQuery>,
) -> Result<Json<TrialsPage>, ViewerError> {
    let passed = match asked.verdict.as_deref() {
        None | Some("") => None,
        Some("pass") => Some(Some(true)),
        Some("fail") => Some(Some(false)),
        Some("not_scored") => Some(None),
        Some(_) => return Err(ViewerError::BadRequest("a verdict is pass, fail or not_scored".to_owned())),
    };
    let filter = TrialFilter {
        run: asked.run,
        suite: asked.suite,
        case: asked.case,
        agent: asked.agent,
        arm: asked.arm,
        passed,
        text: asked.q,
    };
    let order = match asked.order.as_deref() {
        None | Some("") => {
            if filter.run.is_some() {
                TrialOrder::Case
            } else {
                TrialOrder::Newest
            }
        }
        Some(name) => TrialOrder::parse(name)
            .ok_or_else(|| ViewerError::BadRequest("there is no such order".to_owned()))?,
    };
    let limit = asked.limit.unwrap_or(100).clamp(1, MAX_ROWS);
    let mut trials = shared.query_index(|index| {
        let rows = index.trials(&filter, order, asked.after, limit + 1)?.into_iter();
        rows.map(|row| {
            let checks = asked.checks.then(|| index.checks_of(row.n)).transpose()?;
            Ok(ListedTrial { row, checks })
        })
        .collect::<Result<Vec<_>, _>>()
    })?;
    let more = trials.len() > limit;
    trials.truncate(limit);
    Ok(Json(TrialsPage { trials, more }))
}

#[derive(Deserialize)]
pub struct ChoicesQuery {
    run: Option<String>,
}

/// Gives the values by which trials can be filtered.
pub async fn choices(
    State(shared): State<ViewerState>,
    Query(asked): Query<ChoicesQuery>,
) -> Result<Json<TrialFilterValues>, ViewerError> {
    Ok(Json(shared.query_index(|index| index.trial_filter_values(asked.run.as_deref()))?))
}

#[derive(Deserialize)]
pub struct TrendQuery {
    metric: Option<String>,
    suite: Option<String>,
    case: Option<String>,
    arm: Option<String>,
}

pub async fn trend(
    State(shared): State<ViewerState>,
    Query(asked): Query<TrendQuery>,
) -> Result<Json<history::Trend>, ViewerError> {
    let metric = Metric::parse(asked.metric.as_deref().unwrap_or("pass_rate"))
        .ok_or_else(|| ViewerError::BadRequest("there is no such metric".to_owned()))?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let scope = MetricScope {
        suite: given(asked.suite),
        case: given(asked.case),
        arm: given(asked.arm),
        ..MetricScope::default()
    };
    Ok(Json(shared.query_index(|index| history::trend(index, metric, &scope, 100))?))
}

pub async fn audit(State(shared): State<ViewerState>) -> Result<Json<history::AuditReport>, ViewerError> {
    Ok(Json(shared.query_index(|index| history::audit(index, None, 20, 5))?))
}

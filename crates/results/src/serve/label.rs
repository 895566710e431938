//! Labels of people on judged checks. The judge's verdict is shown only after the person has said theirs.

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::trial::{ViewedTrial, list_files};
use super::{ViewerError, ViewerState};
use practicum_core::model::Verdict;
use practicum_core::stats;
use practicum_engine::store::{HumanLabel, JudgedItem, JudgedRun, StoredLabels};
use practicum_engine::workspace::run::run_blocking;

#[derive(Deserialize)]
pub struct NextLabelQuery {
    /// The place in the order after which to look, to skip an output.
    after: Option<String>,
}

/// Gives the next output without a label, in random order and without any verdict.
pub async fn next_label(
    State(shared): State<ViewerState>,
    Path(run): Path<String>,
    Query(asked): Query<NextLabelQuery>,
) -> Result<Json<Value>, ViewerError> {
    let run = shared.find_run(&run)?;
    let labels = read_labels(run.path())?.labels;
    let judged = run_blocking(|| JudgedRun::read(&run)).map_err(ViewerError::Internal)?;
    let is_labelled = |item: &JudgedItem| {
        labels.iter().any(|label| label.trial == item.trial && label.check == item.output.check)
    };
    let open: Vec<&JudgedItem> = judged.items.iter().filter(|item| !is_labelled(item)).collect();
    let after = asked.after.as_deref().unwrap_or_default();
    let next = open.iter().find(|item| item.output.order.as_str() > after).map(|item| {
        let files = run_blocking(|| list_files(&judged.trial_folder(&item.trial).join("files")));
        json!({
            "trial": item.trial, "check": item.output.check, "case": item.output.case,
            "statement": judged.statement(&item.output), "order": item.output.order, "files": files,
        })
    });
    Ok(Json(json!({"next": next, "labelled": judged.items.len() - open.len(), "left": open.len()})))
}

#[derive(Deserialize)]
pub struct LabelRequest {
    check: String,
    /// Whether the check passes in the eyes of the person.
    passed: bool,
}

/// Stores a person's label on a judged check, and shows what the judge said.
pub async fn label(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Json(said): Json<LabelRequest>,
) -> Result<Json<Value>, ViewerError> {
    let kept = ViewedTrial::find(&shared, &run, &trial)?;
    let check = kept.record.checks.iter().find(|check| check.check == said.check && check.scale.is_some());
    let judge_passed = match check.map(|check| &check.verdict) {
        Some(Verdict::Pass) => true,
        Some(Verdict::Fail) => false,
        Some(Verdict::NotScored(_)) | None => {
            return Err(ViewerError::BadRequest("the judge gave no verdict on such a check".to_owned()));
        }
    };
    // Whoever has labelled a check has also seen its verdict.
    let known = read_labels(kept.run.path())?.labels;
    let has_seen = known.iter().any(|label| label.trial == kept.record.trial && label.check == said.check);
    let label = HumanLabel {
        schema_version: 2,
        at: jiff::Timestamp::now().to_string(),
        trial: kept.record.trial.clone(),
        check: said.check.clone(),
        judge_passed,
        passed: said.passed,
        blind: !has_seen,
    };
    label.append(kept.run.path()).map_err(|error| ViewerError::Internal(error.to_string()))?;
    Ok(Json(json!({"label": label, "judge": check})))
}

/// Gives how far people agree with the judge, over the labels of a run.
pub async fn agreement(
    State(shared): State<ViewerState>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ViewerError> {
    let labels = read_labels(shared.find_run(&id)?.path())?.labels;
    let table = HumanLabel::agreement_table(&labels);
    let kappa = stats::kappa(table, stats::ALPHA);
    Ok(Json(json!({
        "labels": labels.len(),
        "agree": table[0][0] + table[1][1],
        "kappa": kappa.map(|kappa| json!({
            "value": kappa.value, "low": kappa.interval.low, "high": kappa.interval.high,
        })),
    })))
}

fn read_labels(run: &std::path::Path) -> Result<StoredLabels, ViewerError> {
    HumanLabel::read_all(run).map_err(ViewerError::Internal)
}

//! Files of a trial as pictures: images as they are, pages of PDF files and presentations, and HTML in a frame without any
//! power.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::trial::{ViewedTrial, open_trial_file};
use super::{ViewerError, ViewerState};
use practicum_core::model::RelPath;
use practicum_engine::workspace::pictures::{JudgePicture, PictureRenderer};
use practicum_engine::workspace::run::CancelToken;

/// The largest file that is shown as a picture.
const LARGEST_FILE: u64 = 32 * 1024 * 1024;

/// The policy of a framed file: no script, no form, no request, and an origin of its own. Only the viewer may frame it.
const FRAME_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
    frame-ancestors 'self'";

/// The marker of the processes that make pictures for the viewer.
const MARKER: &str = "practicum-view";

/// Makes pictures for the viewer, and keeps those of the last file: each page of it is a request of its own.
pub(super) struct ArtefactPictures {
    renderer: PictureRenderer,
    last: Mutex<Option<(FileKey, Arc<Vec<JudgePicture>>)>>,
}

/// The run, the trial and the path of a file.
type FileKey = (String, String, String);

impl ArtefactPictures {
    /// Makes pictures with the programs on the PATH of this process.
    pub(super) fn new() -> Self {
        Self { renderer: PictureRenderer::new(&std::env::vars().collect()), last: Mutex::default() }
    }

    async fn of_file(&self, key: FileKey, bytes: Vec<u8>) -> Result<Arc<Vec<JudgePicture>>, ViewerError> {
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, pictures)) = known.filter(|(known, _)| *known == key) {
            return Ok(pictures);
        }
        let path = RelPath::new(&key.2).ok_or(ViewerError::Missing("there is no such file"))?;
        let made = self.renderer.render(&[(path, bytes)], MARKER, &CancelToken::default()).await;
        let pictures = Arc::new(made.map_err(ViewerError::BadRequest)?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, Arc::clone(&pictures)));
        Ok(pictures)
    }
}

#[derive(Deserialize)]
pub struct PictureQuery {
    path: String,
    #[serde(default)]
    page: usize,
}

fn read_file(shared: &ViewerState, run: &str, trial: &str, path: &str) -> Result<Vec<u8>, ViewerError> {
    let file = open_trial_file(&ViewedTrial::find(shared, run, trial)?, path)?;
    let mut bytes = Vec::new();
    let read =
        practicum_engine::workspace::run::run_blocking(|| file.take(LARGEST_FILE).read_to_end(&mut bytes));
    read.map_err(|error| ViewerError::Internal(error.to_string()))?;
    Ok(bytes)
}

async fn pictures_of(
    shared: &ViewerState,
    run: String,
    trial: String,
    path: String,
) -> Result<Arc<Vec<JudgePicture>>, ViewerError> {
    let bytes = read_file(shared, &run, &trial, &path)?;
    shared.0.pictures.of_file((run, trial, path), bytes).await
}

/// Says how many pictures a file has, or why it has none.
pub async fn pictures(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Query(asked): Query<PictureQuery>,
) -> Result<Json<Value>, ViewerError> {
    let pictures = pictures_of(&shared, run, trial, asked.path).await?;
    Ok(Json(json!({"count": pictures.len()})))
}

/// Gives one picture of a file.
pub async fn picture(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Query(asked): Query<PictureQuery>,
) -> Result<Response, ViewerError> {
    let pictures = pictures_of(&shared, run, trial, asked.path).await?;
    let picture = pictures.get(asked.page).ok_or(ViewerError::Missing("there is no such page"))?;
    Ok(([(CONTENT_TYPE, picture.media_type)], Body::from(picture.bytes())).into_response())
}

/// Gives an HTML file for a frame, with a policy that takes all power from it.
pub async fn frame(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Query(asked): Query<PictureQuery>,
) -> Result<Response, ViewerError> {
    let bytes = read_file(&shared, &run, &trial, &asked.path)?;
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, FRAME_POLICY)];
    Ok((headers, Body::from(bytes)).into_response())
}

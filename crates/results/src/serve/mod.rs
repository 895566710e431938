//! The viewer: a page for people, served on loopback.
//!
//! In: run directories and their index. Out: HTTP. Never: shows what the store cannot read; lets anything that an
//! agent wrote be more than text; answers anyone who does not know the token.

mod api;
mod artefact;
mod assets;
mod guard;
mod label;
mod live;
mod trial;
mod viewer_index;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use tokio::net::TcpListener;

use self::viewer_index::ViewerIndex;
use practicum_engine::store::{Index, IndexError, RunDir};

/// A viewer that is ready to serve.
pub struct Viewer {
    listener: TcpListener,
    router: Router,
    url: String,
}

impl Viewer {
    /// Binds a port of this machine that other machines cannot reach; 0 means any free port.
    pub async fn open(project: &Path, port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let port = listener.local_addr()?.port();
        let token = uuid::Uuid::new_v4().simple().to_string();
        let index = ViewerIndex::open(project).map_err(std::io::Error::other)?;
        let shared = ViewerState(Arc::new(ViewerStateInner {
            project: project.to_owned(),
            index: Mutex::new(index),
            pictures: artefact::ArtefactPictures::new(),
        }));
        let router = guard::guarded_router(get(assets::page), routes(shared), &token, port);
        Ok(Self { listener, router, url: format!("http://127.0.0.1:{port}/{token}/") })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Serves until the process ends.
    pub async fn serve(self) -> std::io::Result<()> {
        axum::serve(self.listener, self.router).await
    }
}

fn routes(shared: ViewerState) -> Router {
    Router::new()
        .route("/web/{name}", get(assets::asset))
        .route("/api/runs", get(api::runs))
        .route("/api/trials", get(api::trials))
        .route("/api/choices", get(api::choices))
        .route("/api/trend", get(api::trend))
        .route("/api/audit", get(api::audit))
        .route("/api/run/{run}", get(api::run))
        .route("/api/run/{run}/cases", get(api::cases))
        .route("/api/run/{run}/routing", get(api::routing))
        .route("/api/run/{run}/agreement", get(label::agreement))
        .route("/api/run/{run}/label", get(label::next_label))
        .route("/api/run/{run}/live", get(live::live))
        .route("/api/run/{run}/trial/{trial}", get(trial::trial))
        .route("/api/run/{run}/trial/{trial}/steps", get(trial::steps))
        .route("/api/run/{run}/trial/{trial}/step", get(trial::step))
        .route("/api/run/{run}/trial/{trial}/file", get(trial::file))
        .route("/api/run/{run}/trial/{trial}/download", get(trial::download))
        .route("/api/run/{run}/trial/{trial}/pictures", get(artefact::pictures))
        .route("/api/run/{run}/trial/{trial}/picture", get(artefact::picture))
        .route("/api/run/{run}/trial/{trial}/frame", get(artefact::frame))
        .route("/api/run/{run}/trial/{trial}/label", post(label::label))
        .with_state(shared)
}

/// The state that all requests share.
#[derive(Clone)]
struct ViewerState(Arc<ViewerStateInner>);

struct ViewerStateInner {
    project: PathBuf,
    index: Mutex<ViewerIndex>,
    pictures: artefact::ArtefactPictures,
}

impl ViewerState {
    /// Queries the index. It is updated first if it is too old, unless that takes long.
    fn query_index<T>(
        &self,
        question: impl FnOnce(&Index) -> Result<T, IndexError>,
    ) -> Result<T, ViewerError> {
        practicum_engine::workspace::run::run_blocking(|| {
            let mut held = self.0.index.lock().unwrap_or_else(PoisonError::into_inner);
            question(held.up_to_date()).map_err(|error| ViewerError::Internal(error.to_string()))
        })
    }

    /// Says whether runs and trials may be missing in the index, because they are still being imported.
    fn is_importing(&self) -> bool {
        self.0.index.lock().unwrap_or_else(PoisonError::into_inner).is_importing()
    }

    /// Finds the folder of a run by its whole id.
    fn find_run(&self, id: &str) -> Result<RunDir, ViewerError> {
        let run = is_plain_name(id).then(|| RunDir::find(&self.0.project, id).ok()).flatten();
        run.filter(|run| run.id() == id).ok_or(ViewerError::Missing("there is no such run"))
    }
}

/// Says whether a name can only be that of a folder inside another.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// The reason why there is no answer.
#[derive(Debug)]
enum ViewerError {
    Missing(&'static str),
    /// Nothing has this name, or several things have.
    Unknown(String),
    BadRequest(String),
    Internal(String),
}

impl IntoResponse for ViewerError {
    fn into_response(self) -> Response {
        let (status, message) = match self {
            ViewerError::Missing(what) => (StatusCode::NOT_FOUND, what.to_owned()),
            ViewerError::Unknown(why) => (StatusCode::NOT_FOUND, why),
            ViewerError::BadRequest(why) => (StatusCode::BAD_REQUEST, why),
            ViewerError::Internal(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        };
        (status, axum::Json(json!({ "error": message }))).into_response()
    }
}

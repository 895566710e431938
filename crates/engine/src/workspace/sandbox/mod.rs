//! The sandbox around agents: it hides files and closes the network.
//!
//! In: the wanted mode, what the machine supports, and what must stay hidden. Out: `Sandbox`, and for each trial a
//! `TrialSandbox` that wraps a `Launch`. Never: starts an agent; isolates less than was asked for without saying
//! so.

mod bubblewrap;
#[cfg_attr(not(target_os = "linux"), path = "landlock_missing.rs")]
mod landlock_backend;
mod model_routes;
mod model_sockets;
mod port_forwarding;
mod seatbelt;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use landlock_backend::confine_this_process;
pub use port_forwarding::{PortForward, forward_while};

use model_sockets::ModelSockets;
use practicum_agents::agents::{AgentCli, Launch};
use practicum_core::model::SandboxMode;
use view::SandboxView;

/// The hidden subcommand with which this program is the inner side of a sandbox.
pub const SUBCOMMAND: &str = "confined";

/// A variable that forces one backend, so that each can be tested on a machine that has both.
const BACKEND_VARIABLE: &str = "PRACTICUM_SANDBOX_MEANS";

/// The backends that the variable can name, and how to get a strict sandbox.
#[cfg(not(target_os = "macos"))]
const BACKEND_NAMES: &str = "bubblewrap or landlock";
#[cfg(not(target_os = "macos"))]
const STRICT_HINT: &str = "Install bubblewrap (such as apt-get install bubblewrap) and allow user namespaces, or say --sandbox auto";
#[cfg(target_os = "macos")]
const BACKEND_NAMES: &str = "seatbelt";
#[cfg(target_os = "macos")]
const STRICT_HINT: &str = "Run it on Linux with bubblewrap (a container will do), or say --sandbox auto";

/// The sandbox of one run.
pub struct Sandbox {
    backend: SandboxBackend,
    strict: bool,
    /// The paths that no agent may see: the user's home, projects, evals, records, other workspaces.
    hidden: Vec<PathBuf>,
    notice: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SandboxBackend {
    Off,
    Bubblewrap(PathBuf),
    /// This program, which restricts itself before it becomes the agent.
    #[cfg(target_os = "linux")]
    Landlock(PathBuf),
    /// The sandbox of macOS.
    Seatbelt,
}

/// An error: the requested sandbox is not available.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("--sandbox strict cannot hold on this machine: {0}\n  {STRICT_HINT}")]
    NotStrict(String),
    #[error("{BACKEND_VARIABLE} is \"{0}\"; it can be {BACKEND_NAMES}")]
    UnknownBackend(String),
    #[error("{BACKEND_VARIABLE} asks for {means}: {why}")]
    ForcedBackend { means: &'static str, why: String },
    #[error("cannot open a way to the model for this trial: {0}")]
    ModelSocket(String),
}

impl Sandbox {
    /// Finds out what this machine supports. Each backend is tried, because an installed program may still not be
    /// allowed to make a namespace.
    pub fn build(
        wanted: SandboxMode,
        env: &BTreeMap<String, String>,
        hidden: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, SandboxError> {
        let strict = match wanted {
            SandboxMode::Off => {
                return Ok(Self {
                    backend: SandboxBackend::Off,
                    strict: false,
                    hidden: Vec::new(),
                    notice: None,
                });
            }
            SandboxMode::Auto => false,
            SandboxMode::Strict => true,
        };
        let hidden = view::resolve_hidden_paths(hidden);
        let forced = env.get(BACKEND_VARIABLE).map(String::as_str).filter(|text| !text.is_empty());
        let (means, notice) = match (forced, strict) {
            (Some("seatbelt") | None, true) if cfg!(target_os = "macos") => {
                return Err(SandboxError::NotStrict("Seatbelt does not confine the network".to_owned()));
            }
            (Some("seatbelt"), false) if cfg!(target_os = "macos") => {
                let found = seatbelt::probe();
                let means = found.map_err(|why| SandboxError::ForcedBackend { means: "seatbelt", why })?;
                (means, "Seatbelt".to_owned())
            }
            (Some("landlock"), true) => {
                return Err(SandboxError::NotStrict("landlock does not confine the network".to_owned()));
            }
            (Some("landlock"), false) => {
                let found = landlock_backend::probe();
                (
                    found.map_err(|why| SandboxError::ForcedBackend { means: "landlock", why })?,
                    "landlock".to_owned(),
                )
            }
            (Some("bubblewrap"), false) => {
                let found = bubblewrap::probe(env, strict);
                let means = found.map_err(|why| SandboxError::ForcedBackend { means: "bubblewrap", why })?;
                (means, "bubblewrap".to_owned())
            }
            (Some("bubblewrap") | None, true) => {
                let means = bubblewrap::probe(env, strict).map_err(SandboxError::NotStrict)?;
                (means, "bubblewrap, no network but the model".to_owned())
            }
            (None, false) => best_backend(env),
            (Some(other), _) => return Err(SandboxError::UnknownBackend(other.to_owned())),
        };
        Ok(Self { backend: means, strict, hidden, notice: Some(format!("sandbox: {notice}")) })
    }

    /// Says whether agents are isolated at all.
    pub fn is_active(&self) -> bool {
        self.backend != SandboxBackend::Off
    }

    /// Gives a notice for the user about the sandbox of this run.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Makes the sandbox of one trial, for its agent and its scripts. `gateway` replaces the agent's own model
    /// endpoint. The caller must be inside a tokio runtime, which runs the servers of the sandbox.
    pub fn for_trial(
        &self,
        room: &Path,
        agent: &AgentCli,
        gateway: Option<&str>,
        user_env: &BTreeMap<String, String>,
    ) -> Result<TrialSandbox, SandboxError> {
        if self.backend == SandboxBackend::Off {
            return Ok(TrialSandbox::none());
        }
        let mut view = SandboxView::new(&self.hidden, room);
        view.show_agent(agent, user_env);
        if gateway.is_none() {
            view.show_login(agent, user_env);
        }
        let wires = if self.strict {
            let ourselves =
                std::env::current_exe().map_err(|error| SandboxError::ModelSocket(error.to_string()))?;
            view.show_file(&ourselves);
            let ways =
                model_routes::model_routes(agent, gateway, user_env).map_err(SandboxError::ModelSocket)?;
            let at = room.with_extension("wires");
            let opened = model_sockets::open(ways, &at, ourselves);
            Some(opened.map_err(|error| SandboxError::ModelSocket(format!("{}: {error}", at.display())))?)
        } else {
            None
        };
        Ok(TrialSandbox(Some(ActiveSandbox { backend: self.backend.clone(), view, sockets: wires })))
    }
}

/// Finds the best backend that works here, and describes it.
fn best_backend(env: &BTreeMap<String, String>) -> (SandboxBackend, String) {
    if cfg!(target_os = "macos") {
        return match seatbelt::probe() {
            Ok(means) => (means, "Seatbelt".to_owned()),
            Err(no_seatbelt) => (SandboxBackend::Off, format!("none, because {no_seatbelt}")),
        };
    }
    let no_bubblewrap = match bubblewrap::probe(env, false) {
        Ok(means) => return (means, "bubblewrap".to_owned()),
        Err(why) => why,
    };
    match landlock_backend::probe() {
        Ok(means) => (means, format!("landlock, because {no_bubblewrap}")),
        Err(no_landlock) => (SandboxBackend::Off, format!("none, because {no_bubblewrap} and {no_landlock}")),
    }
}

/// The sandbox of one trial. Dropping it closes the connection to the model.
pub struct TrialSandbox(Option<ActiveSandbox>);

struct ActiveSandbox {
    backend: SandboxBackend,
    view: SandboxView,
    sockets: Option<ModelSockets>,
}

impl TrialSandbox {
    pub fn none() -> Self {
        Self(None)
    }

    /// Says whether the trial is isolated at all.
    pub fn is_active(&self) -> bool {
        self.0.as_ref().is_some_and(|walls| !matches!(walls.backend, SandboxBackend::Off))
    }

    /// Says whether processes have a namespace of their own, whose first process ends last.
    pub(crate) fn has_init_process(&self) -> bool {
        self.0.as_ref().is_some_and(|walls| matches!(walls.backend, SandboxBackend::Bubblewrap(_)))
    }

    /// Wraps a process so that it runs inside the sandbox, started in `folder`. Without a sandbox nothing changes.
    pub fn wrap(&self, launch: Launch, folder: &Path) -> Launch {
        let Some(ActiveSandbox { backend: means, view, sockets: wires }) = &self.0 else { return launch };
        match means {
            SandboxBackend::Off => launch,
            #[cfg(target_os = "linux")]
            SandboxBackend::Landlock(ourselves) => landlock_backend::wrap(launch, ourselves, view),
            SandboxBackend::Seatbelt => seatbelt::wrap(launch, view),
            SandboxBackend::Bubblewrap(program) => {
                let launch = match wires {
                    Some(wires) => wires.wrap(launch),
                    None => launch,
                };
                bubblewrap::wrap(launch, program, view, wires.as_ref().map(ModelSockets::folder), folder)
            }
        }
    }
}

/// Converts a path to an argument. If the path is not UTF-8, the result does not exist, and then nothing starts.
fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn to_strings<const N: usize>(words: [&str; N]) -> [String; N] {
    words.map(str::to_owned)
}

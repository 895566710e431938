//! The walls of the exam room: what an agent cannot see, it can neither read nor break.
//!
//! In: what is wanted, what the machine has, what must stay hidden. Out: `Sandbox`, and for each
//! trial a `TrialSandbox` that turns a `Launch` into one behind walls. Never: starts an agent, or
//! holds less than was wanted without saying so.

mod bubblewrap;
mod landlock_backend;
mod model_routes;
mod model_sockets;
mod port_forwarding;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use landlock_backend::confine_this_process;
pub use port_forwarding::{PortForward, forward_while};

use model_sockets::ModelSockets;
use practicum_agents::agents::{AgentCli, Launch};
use practicum_core::model::SandboxMode;
use view::SandboxView;

/// The hidden subcommand under which this program is the inner side of a sandbox.
pub const SUBCOMMAND: &str = "confined";

/// Forces one of the means, so that each can be tested on a machine that has both.
const BACKEND_VARIABLE: &str = "PRACTICUM_SANDBOX_MEANS";

/// What holds the walls of one run.
pub struct Sandbox {
    backend: SandboxBackend,
    strict: bool,
    /// What no agent may see, wherever it lies: the user's home, projects, evals, records, rooms.
    hidden: Vec<PathBuf>,
    notice: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SandboxBackend {
    Off,
    Bubblewrap(PathBuf),
    /// This program, which confines itself before it becomes the agent.
    Landlock(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error(
        "--sandbox strict cannot hold on this machine: {0}\n  \
         Install bubblewrap (such as apt-get install bubblewrap) and allow user namespaces, or say --sandbox auto"
    )]
    NotStrict(String),
    #[error("{BACKEND_VARIABLE} is \"{0}\"; it can be bubblewrap or landlock")]
    UnknownBackend(String),
    #[error("{BACKEND_VARIABLE} asks for {means}: {why}")]
    ForcedBackend { means: &'static str, why: String },
    #[error("cannot open a way to the model for this trial: {0}")]
    ModelSocket(String),
}

impl Sandbox {
    /// Finds out what this machine can do. Tried, not guessed: a program that is there may still
    /// not be allowed to make a namespace.
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

    /// Whether there are walls at all.
    pub fn is_active(&self) -> bool {
        self.backend != SandboxBackend::Off
    }

    /// What a person should know about the walls of this run.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The walls of one trial, for its agent and its scripts. `gateway` stands in for the agent's
    /// own model endpoint. Its servers need a runtime around the caller.
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

/// The best that works here, and how to say so.
fn best_backend(env: &BTreeMap<String, String>) -> (SandboxBackend, String) {
    let no_bubblewrap = match bubblewrap::probe(env, false) {
        Ok(means) => return (means, "bubblewrap".to_owned()),
        Err(why) => why,
    };
    match landlock_backend::probe() {
        Ok(means) => (means, format!("landlock, because {no_bubblewrap}")),
        Err(no_landlock) => (SandboxBackend::Off, format!("none, because {no_bubblewrap} and {no_landlock}")),
    }
}

/// One trial's walls. Dropping them closes its way to the model.
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

    /// Whether there are any walls at all.
    pub fn is_active(&self) -> bool {
        self.0.as_ref().is_some_and(|walls| !matches!(walls.backend, SandboxBackend::Off))
    }

    /// Whether processes live in a namespace of their own, whose first process ends last.
    pub fn has_init_process(&self) -> bool {
        self.0.as_ref().is_some_and(|walls| matches!(walls.backend, SandboxBackend::Bubblewrap(_)))
    }

    /// The same process behind the walls, started in `folder`. Without walls nothing changes.
    pub fn wrap(&self, launch: Launch, folder: &Path) -> Launch {
        let Some(ActiveSandbox { backend: means, view, sockets: wires }) = &self.0 else { return launch };
        match means {
            SandboxBackend::Off => launch,
            SandboxBackend::Landlock(ourselves) => landlock_backend::wrap(launch, ourselves, view),
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

/// Paths become arguments. One that is no text is not found, and then nothing starts.
fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn to_strings<const N: usize>(words: [&str; N]) -> [String; N] {
    words.map(str::to_owned)
}

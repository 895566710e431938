//! The walls of the exam room: what an agent cannot see, it can neither read nor break.
//!
//! In: what is wanted, what the machine has, what must stay hidden. Out: `Sandbox`, and for each
//! trial a `Confinement` that turns a `Launch` into one behind walls. Never: starts an agent, or
//! holds less than was wanted without saying so.

mod bubblewrap;
mod inside;
mod landlocked;
mod outside;
mod reach;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use inside::{Forward, forward_while};
pub use landlocked::confine_ourselves;

use outside::Wires;
use practicum_agents::agents::{Agent, Launch};
use practicum_core::model::SandboxMode;
use view::View;

/// The hidden subcommand under which this program is the inner side of a sandbox.
pub const SUBCOMMAND: &str = "confined";

/// Forces one of the means, so that each can be tested on a machine that has both.
const MEANS_VARIABLE: &str = "PRACTICUM_SANDBOX_MEANS";

/// What holds the walls of one run.
pub struct Sandbox {
    means: Means,
    strict: bool,
    /// What no agent may see, wherever it lies: the user's home, projects, evals, records, rooms.
    hidden: Vec<PathBuf>,
    notice: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Means {
    Nothing,
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
    #[error("{MEANS_VARIABLE} is \"{0}\"; it can be bubblewrap or landlock")]
    UnknownMeans(String),
    #[error("{MEANS_VARIABLE} asks for {means}: {why}")]
    Forced { means: &'static str, why: String },
    #[error("cannot open a way to the model for this trial: {0}")]
    Wire(String),
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
                return Ok(Self { means: Means::Nothing, strict: false, hidden: Vec::new(), notice: None });
            }
            SandboxMode::Auto => false,
            SandboxMode::Strict => true,
        };
        let hidden = view::hidden(hidden);
        let forced = env.get(MEANS_VARIABLE).map(String::as_str).filter(|text| !text.is_empty());
        let (means, notice) = match (forced, strict) {
            (Some("landlock"), true) => {
                return Err(SandboxError::NotStrict("landlock does not confine the network".to_owned()));
            }
            (Some("landlock"), false) => {
                let found = landlocked::probe();
                (found.map_err(|why| SandboxError::Forced { means: "landlock", why })?, "landlock".to_owned())
            }
            (Some("bubblewrap"), false) => {
                let found = bubblewrap::probe(env, strict);
                let means = found.map_err(|why| SandboxError::Forced { means: "bubblewrap", why })?;
                (means, "bubblewrap".to_owned())
            }
            (Some("bubblewrap") | None, true) => {
                let means = bubblewrap::probe(env, strict).map_err(SandboxError::NotStrict)?;
                (means, "bubblewrap, no network but the model".to_owned())
            }
            (None, false) => best(env),
            (Some(other), _) => return Err(SandboxError::UnknownMeans(other.to_owned())),
        };
        Ok(Self { means, strict, hidden, notice: Some(format!("sandbox: {notice}")) })
    }

    /// Whether there are walls at all.
    pub fn holds(&self) -> bool {
        self.means != Means::Nothing
    }

    /// What a person should know about the walls of this run.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The walls of one trial, for its agent and its scripts. `gateway` stands in for the agent's
    /// own model endpoint. Its servers need a runtime around the caller.
    pub fn confine(
        &self,
        room: &Path,
        agent: &Agent,
        gateway: Option<&str>,
        user_env: &BTreeMap<String, String>,
    ) -> Result<Confinement, SandboxError> {
        if self.means == Means::Nothing {
            return Ok(Confinement::none());
        }
        let mut view = View::new(&self.hidden, room);
        view.show_agent(agent, user_env);
        if gateway.is_none() {
            view.show_login(agent, user_env);
        }
        let wires = if self.strict {
            let ourselves = std::env::current_exe().map_err(|error| SandboxError::Wire(error.to_string()))?;
            view.show_file(&ourselves);
            let ways = reach::ways(agent, gateway, user_env).map_err(SandboxError::Wire)?;
            let at = room.with_extension("wires");
            let opened = outside::open(ways, &at, ourselves);
            Some(opened.map_err(|error| SandboxError::Wire(format!("{}: {error}", at.display())))?)
        } else {
            None
        };
        Ok(Confinement(Some(Walls { means: self.means.clone(), view, wires })))
    }
}

/// The best that works here, and how to say so.
fn best(env: &BTreeMap<String, String>) -> (Means, String) {
    let no_bubblewrap = match bubblewrap::probe(env, false) {
        Ok(means) => return (means, "bubblewrap".to_owned()),
        Err(why) => why,
    };
    match landlocked::probe() {
        Ok(means) => (means, format!("landlock, because {no_bubblewrap}")),
        Err(no_landlock) => (Means::Nothing, format!("none, because {no_bubblewrap} and {no_landlock}")),
    }
}

/// One trial's walls. Dropping them closes its way to the model.
pub struct Confinement(Option<Walls>);

struct Walls {
    means: Means,
    view: View,
    wires: Option<Wires>,
}

impl Confinement {
    pub fn none() -> Self {
        Self(None)
    }

    /// Whether there are any walls at all.
    pub fn holds(&self) -> bool {
        self.0.as_ref().is_some_and(|walls| !matches!(walls.means, Means::Nothing))
    }

    /// Whether processes live in a namespace of their own, whose first process ends last.
    pub fn have_a_first_process(&self) -> bool {
        self.0.as_ref().is_some_and(|walls| matches!(walls.means, Means::Bubblewrap(_)))
    }

    /// The same process behind the walls, started in `folder`. Without walls nothing changes.
    pub fn wrap(&self, launch: Launch, folder: &Path) -> Launch {
        let Some(Walls { means, view, wires }) = &self.0 else { return launch };
        match means {
            Means::Nothing => launch,
            Means::Landlock(ourselves) => landlocked::wrap(launch, ourselves, view),
            Means::Bubblewrap(program) => {
                let launch = match wires {
                    Some(wires) => wires.wrap(launch),
                    None => launch,
                };
                bubblewrap::wrap(launch, program, view, wires.as_ref().map(Wires::folder), folder)
            }
        }
    }
}

/// Paths become arguments. One that is no text is not found, and then nothing starts.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn words<const N: usize>(words: [&str; N]) -> [String; N] {
    words.map(str::to_owned)
}

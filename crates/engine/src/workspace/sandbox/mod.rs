//! The sandbox around agents: it hides files and closes the network.
//!
//! In: the wanted mode, what the machine supports, and what must stay hidden. Out: `Sandbox`, and for each trial a
//! `TrialSandbox` that wraps a `Launch`. Never: starts an agent; isolates less than was asked for without saying
//! so.

mod bubblewrap;
#[cfg(target_os = "linux")]
mod confine;
mod hand_over;
mod inner_steps;
#[cfg_attr(not(target_os = "linux"), path = "landlock_missing.rs")]
mod landlock_backend;
mod model_routes;
mod model_sockets;
mod port_forwarding;
mod private_files;
mod seatbelt;
#[cfg(target_os = "linux")]
mod system_calls;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
pub use confine::confine_this_process;
pub use inner_steps::InnerSteps;
#[cfg(not(target_os = "linux"))]
pub use landlock_backend::confine_this_process;
pub use port_forwarding::{PortForward, forward_while};
pub use view::MOST_SIBLINGS;

use crate::workspace::limits::ResourceLimits;
use bubblewrap::{Bubblewrap, SandboxNetwork};
use inner_steps::UNPRIVILEGED_ID;
use model_sockets::ModelSockets;
use practicum_agents::agents::{AgentCli, Launch};
use practicum_core::model::SandboxMode;
use view::SandboxView;

/// The hidden subcommand with which this program is the inner side of a sandbox.
pub const SUBCOMMAND: &str = "confined";

/// The folders inside a sandbox of namespaces that are kept in memory.
pub const MEMORY_FOLDERS: [&str; 2] = ["/tmp", "/dev/shm"];

/// What a sandbox with the network of this machine leaves open.
const OPEN_NETWORK: &str = "the network, with the services of this machine on 127.0.0.1";

/// A variable that forces one backend, so that each can be tested on a machine that has both.
const BACKEND_VARIABLE: &str = "PRACTICUM_SANDBOX_MEANS";

/// The backends that the variable can name, and how to get a strict sandbox.
#[cfg(not(target_os = "macos"))]
const BACKEND_NAMES: &str = "bubblewrap or landlock";
#[cfg(not(target_os = "macos"))]
const STRICT_HINT: &str = "Install bubblewrap (such as apt-get install bubblewrap) and allow user namespaces, or say --sandbox auto";
/// How to run agents if no sandbox works.
const NO_SANDBOX_HINT: &str =
    "Say --sandbox off to let agents reach all files of this user and the whole network";

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
    /// What the processes of one trial may use.
    limits: ResourceLimits,
    notices: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SandboxBackend {
    Off,
    Bubblewrap(Bubblewrap),
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
    #[error("no sandbox works on this machine: {0}\n  {NO_SANDBOX_HINT}")]
    Missing(String),
    #[error("{BACKEND_VARIABLE} is \"{0}\"; it can be {BACKEND_NAMES}")]
    UnknownBackend(String),
    #[error("{BACKEND_VARIABLE} asks for {means}: {why}")]
    ForcedBackend { means: &'static str, why: String },
    #[error("cannot prepare a folder for the sandbox: {0}")]
    Folder(String),
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
        limits: ResourceLimits,
    ) -> Result<Self, SandboxError> {
        let strict = match wanted {
            SandboxMode::Off => {
                let (backend, hidden, notices) = (SandboxBackend::Off, Vec::new(), Vec::new());
                return Ok(Self { backend, strict: false, hidden, limits, notices });
            }
            SandboxMode::Auto => false,
            SandboxMode::Strict => true,
        };
        let mut hidden = view::resolve_hidden_paths(hidden);
        hidden.extend(private_files::private_files());
        let forced = env.get(BACKEND_VARIABLE).map(String::as_str).filter(|text| !text.is_empty());
        let (backend, name) = match (forced, strict) {
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
                let found = Bubblewrap::probe(env, strict);
                let means = found.map_err(|why| SandboxError::ForcedBackend { means: "bubblewrap", why })?;
                (SandboxBackend::Bubblewrap(means), "bubblewrap".to_owned())
            }
            (Some("bubblewrap") | None, true) => {
                let means = Bubblewrap::probe(env, strict).map_err(SandboxError::NotStrict)?;
                (SandboxBackend::Bubblewrap(means), "bubblewrap, no network but the model".to_owned())
            }
            (None, false) => best_backend(env)?,
            (Some(other), _) => return Err(SandboxError::UnknownBackend(other.to_owned())),
        };
        let open = backend.what_stays_open(strict).map(|open| format!("the sandbox leaves open: {open}"));
        let notices = std::iter::once(format!("sandbox: {name}")).chain(open).collect();
        Ok(Self { backend, strict, hidden, limits, notices })
    }

    /// Says whether agents are isolated at all.
    pub fn is_active(&self) -> bool {
        self.backend != SandboxBackend::Off
    }

    /// Gives notices for the user: which sandbox this run has, and what it does not hold.
    pub fn notices(&self) -> &[String] {
        &self.notices
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
        let failed = |error: std::io::Error| SandboxError::ModelSocket(error.to_string());
        let own_program = std::env::current_exe().map_err(failed)?;
        let mut view = SandboxView::new(&self.hidden, room);
        view.show_agent(agent, user_env);
        view.show_file(&own_program);
        let sockets = if self.strict {
            let routes =
                model_routes::model_routes(agent, gateway, user_env).map_err(SandboxError::ModelSocket)?;
            let at = room.with_extension("wires");
            let opened = model_sockets::open(routes, &at, own_program.clone());
            Some(opened.map_err(|error| SandboxError::ModelSocket(format!("{}: {error}", at.display())))?)
        } else {
            None
        };
        let user = self.backend.unprivileged_user().filter(|_| {
            agent.installed_path(user_env).is_ok_and(|program| hand_over::others_can_run(&program))
        });
        if let Some(user) = user {
            hand_over::hand_over_folder(room, user).map_err(failed)?;
        }
        Ok(TrialSandbox(Some(ActiveSandbox {
            backend: self.backend.clone(),
            view,
            sockets,
            closes_network: false,
            limits: self.limits,
            own_program,
            user,
            script_folder: None,
        })))
    }

    /// Makes a sandbox for one program that works in `folder` and needs no network. A strict sandbox gives it none.
    pub fn for_program(
        &self,
        folder: &Path,
        program: &Path,
        user_env: &BTreeMap<String, String>,
    ) -> Result<TrialSandbox, SandboxError> {
        let failed = |error: std::io::Error| SandboxError::Folder(error.to_string());
        let own_program = std::env::current_exe().map_err(failed)?;
        let mut view = SandboxView::new(&self.hidden, folder);
        view.show_program(program, user_env, 0);
        view.show_file(&own_program);
        let user = self.backend.unprivileged_user().filter(|_| hand_over::others_can_run(program));
        if let Some(user) = user {
            hand_over::hand_over_folder(folder, user).map_err(failed)?;
        }
        Ok(TrialSandbox(Some(ActiveSandbox {
            backend: self.backend.clone(),
            view,
            sockets: None,
            closes_network: self.strict,
            limits: self.limits,
            own_program,
            user,
            script_folder: None,
        })))
    }
}

impl SandboxBackend {
    /// Gives the user that an agent becomes; `None` if it stays the user of this program.
    fn unprivileged_user(&self) -> Option<u32> {
        match self {
            SandboxBackend::Bubblewrap(bubblewrap) if bubblewrap.can_change_user() => Some(UNPRIVILEGED_ID),
            _ => None,
        }
    }

    /// Names what an agent can still reach, for the plan.
    fn what_stays_open(&self, strict: bool) -> Option<String> {
        match self {
            SandboxBackend::Off => None,
            SandboxBackend::Bubblewrap(_) if strict => None,
            SandboxBackend::Bubblewrap(_) | SandboxBackend::Seatbelt => Some(OPEN_NETWORK.to_owned()),
            #[cfg(target_os = "linux")]
            SandboxBackend::Landlock(_) => Some(landlock_backend::what_stays_open()),
        }
    }
}

/// Finds the best backend that works here, and describes it.
fn best_backend(env: &BTreeMap<String, String>) -> Result<(SandboxBackend, String), SandboxError> {
    if cfg!(target_os = "macos") {
        return match seatbelt::probe() {
            Ok(means) => Ok((means, "Seatbelt".to_owned())),
            Err(why) => Err(SandboxError::Missing(why)),
        };
    }
    let no_bubblewrap = match Bubblewrap::probe(env, false) {
        Ok(means) => return Ok((SandboxBackend::Bubblewrap(means), "bubblewrap".to_owned())),
        Err(why) => why,
    };
    match landlock_backend::probe() {
        Ok(means) => Ok((means, format!("landlock, because {no_bubblewrap}"))),
        Err(no_landlock) => Err(SandboxError::Missing(format!("{no_bubblewrap} and {no_landlock}"))),
    }
}

/// The sandbox of one trial. Dropping it closes the connection to the model.
pub struct TrialSandbox(Option<ActiveSandbox>);

struct ActiveSandbox {
    backend: SandboxBackend,
    view: SandboxView,
    sockets: Option<ModelSockets>,
    /// Whether there is no network at all, not even the model.
    closes_network: bool,
    limits: ResourceLimits,
    /// The path of this program, which is also the inner side of the sandbox.
    own_program: PathBuf,
    /// The user that the agent becomes; `None` if it stays the user of this program.
    user: Option<u32>,
    /// The folder of the eval file. Scripts of the evals see the programs in it that they name, and what lies beside
    /// those.
    script_folder: Option<PathBuf>,
}

/// How many times a limit is what the kernel still allows at least. Whatever lies between is seen, and the trial ends
/// with the right reason. What the kernel refuses is not seen, and the agent would only look as if it had failed.
const KERNEL_LIMIT_PER_LIMIT: u64 = 3;

/// What the kernel allows at least above a limit: more than can be started or opened between two looks.
const LEAST_MORE_PROCESSES: u64 = 4096;
const LEAST_MORE_OPEN_FILES: u64 = 65_536;

/// Gives the amount from which on the kernel refuses what a trial asks for.
fn kernel_limit(limit: u64, least_more: u64) -> u64 {
    limit.saturating_mul(KERNEL_LIMIT_PER_LIMIT).max(limit.saturating_add(least_more))
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
        self.wrap_with(launch, folder, true, "")
    }

    /// Wraps a setup or teardown script. It is isolated like the agent, and sees the files that it names.
    pub fn wrap_script(&self, launch: Launch, folder: &Path, script: &str) -> Launch {
        self.wrap_with(launch, folder, true, script)
    }

    /// Wraps the command of a check. It is isolated like the agent, sees the files that it names, and does not reach
    /// the model in a sandbox without network.
    pub fn wrap_check(&self, launch: Launch, folder: &Path, command: &str) -> Launch {
        self.wrap_with(launch, folder, false, command)
    }

    /// Wraps a process. Programs beside the evals that the script names by absolute paths are visible to it, with the
    /// files in their folders that they may import: they belong to the author of the evals, whose code the user trusts.
    /// The evals themselves stay hidden. An agent has no script, so it sees none of them.
    fn wrap_with(&self, launch: Launch, folder: &Path, reaches_model: bool, script: &str) -> Launch {
        let Some(active) = &self.0 else { return launch };
        let ActiveSandbox {
            backend,
            view,
            sockets,
            closes_network,
            limits,
            own_program,
            user,
            script_folder,
        } = active;
        let mut view = view.clone();
        if let Some(owner) = script_folder.as_deref().and_then(|folder| folder.canonicalize().ok()) {
            for program in named_files(script).iter().filter(|file| is_program(file)) {
                view.show_program_with_siblings(program, &owner);
            }
        }
        let view = &view;
        let steps = InnerSteps {
            open_files: Some(kernel_limit(limits.open_files, LEAST_MORE_OPEN_FILES)),
            file_size: Some(kernel_limit(limits.disk, 0)),
            ..InnerSteps::default()
        };
        match backend {
            SandboxBackend::Off => launch,
            #[cfg(target_os = "linux")]
            SandboxBackend::Landlock(ourselves) => {
                let (read_only, writable) = (view.readable(), view.writable().map(Path::to_owned).collect());
                InnerSteps { read_only, listable: view.listable(), writable, ..steps }
                    .wrap(launch, ourselves.clone())
            }
            SandboxBackend::Seatbelt => seatbelt::wrap(launch, view),
            SandboxBackend::Bubblewrap(bubblewrap) => {
                let processes = Some(kernel_limit(limits.processes, LEAST_MORE_PROCESSES));
                let steps = InnerSteps { user: *user, processes, ..steps };
                let launch = steps.wrap(launch, own_program.clone());
                let (launch, network) = match sockets {
                    None if *closes_network => (launch, SandboxNetwork::Closed),
                    None => (launch, SandboxNetwork::Open),
                    Some(_) if !reaches_model => (launch, SandboxNetwork::Closed),
                    Some(sockets) => (sockets.wrap(launch), SandboxNetwork::Sockets(sockets.folder())),
                };
                bubblewrap.wrap(launch, view, network, folder, limits.memory)
            }
        }
    }

    /// Sets the folder of the eval file, whose scripts may run in the sandbox.
    #[must_use]
    pub fn with_script_folder(mut self, folder: Option<PathBuf>) -> Self {
        if let Some(active) = &mut self.0 {
            active.script_folder = folder;
        }
        self
    }

    /// Says whether the files of the workspace were given to another user, as whom the agent runs.
    pub fn changes_owner(&self) -> bool {
        self.0.as_ref().is_some_and(|active| active.user.is_some())
    }

    /// Gives a file that was put into the workspace, and the folders around it, to the user that the agent becomes.
    pub fn hand_over(&self, file: &Path, room: &Path) -> std::io::Result<()> {
        match self.0.as_ref().and_then(|active| active.user) {
            Some(user) => hand_over::hand_over_file(file, room, user),
            None => Ok(()),
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

/// The endings of programs that an interpreter runs.
const PROGRAM_ENDINGS: [&str; 10] = ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php"];

/// Says whether a file is a program by its ending or its mode.
pub fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_executable = || file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    PROGRAM_ENDINGS.contains(&ending) || is_executable()
}

/// Says whether a file belongs to the system. The user is not asked about programs of the system.
pub fn is_of_system(path: &Path) -> bool {
    ["/bin", "/sbin", "/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

/// Gives the files that a script names by absolute paths, also in quotes.
pub fn named_files(script: &str) -> BTreeSet<PathBuf> {
    let is_end = |c: char| c.is_whitespace() || "\"'`;|&<>()=:\\".contains(c);
    let quoted = ['"', '\''].into_iter().flat_map(|quote| script.split(quote).skip(1).step_by(2));
    let words = script.split(is_end).chain(quoted).filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).filter(|path| path.is_file()).collect()
}

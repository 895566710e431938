//! A sandbox of namespaces, made by bubblewrap: the agent sees a file system with only the permitted files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::view::{PathAccess, SandboxView};
use super::{MEMORY_FOLDERS, path_text, to_strings};
use practicum_agents::agents::{Launch, find_program};

/// The folder of the sockets to the model, inside the sandbox.
pub const SOCKETS_FOLDER: &str = "/run/practicum";

/// The arguments for separate namespaces of everything except users and the network. All processes end when
/// bubblewrap or this program is killed.
const BASE_ARGUMENTS: [&str; 8] = [
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    // Without this, the agent could type into the user's terminal.
    "--new-session",
    // Without this, root would keep its capabilities.
    "--cap-drop",
    "ALL",
];

/// Parts of /proc that change the whole machine. Root could write to them even without capabilities.
const MACHINE_FILES: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// The size of the folders in memory while bubblewrap is tried.
const PROBE_BYTES: u64 = 1024 * 1024;

/// An installed bubblewrap, and the way in which it works here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bubblewrap {
    program: PathBuf,
    kind: NamespaceKind,
}

/// The ways in which bubblewrap can make its namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamespaceKind {
    /// Root makes them, and the agent then becomes a user without rights.
    Root,
    /// A namespace of users comes first, in which no further one can be made.
    LastUser,
    /// A namespace of users comes first. Older versions of bubblewrap can do no more.
    User,
}

impl Bubblewrap {
    /// Tests whether bubblewrap is installed and allowed to work. The error says why not.
    pub fn probe(env: &BTreeMap<String, String>, strict: bool) -> Result<Self, String> {
        let program = find_program("bwrap", env).ok_or("bubblewrap is not installed")?;
        let is_root = rustix::process::geteuid().is_root();
        let kinds = [NamespaceKind::Root, NamespaceKind::LastUser, NamespaceKind::User];
        let mut why_not = String::new();
        for kind in kinds.into_iter().filter(|kind| is_root || *kind != NamespaceKind::Root) {
            let tried = Self { program: program.clone(), kind };
            match tried.try_out(strict) {
                Ok(()) => return Ok(tried),
                Err(why) => why_not = why,
            }
        }
        Err(why_not)
    }

    fn try_out(&self, strict: bool) -> Result<(), String> {
        let tried = Command::new(&self.program)
            .args(self.namespaces(!strict))
            .args(["--ro-bind", "/", "/"])
            .args(self.own_folders(PROBE_BYTES))
            .arg("true")
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/run/current-system/sw/bin")
            .stdin(Stdio::null())
            .output();
        match tried {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let line = said.lines().next_back().unwrap_or("it says nothing").trim().to_owned();
                Err(format!("bubblewrap does not work here ({line})"))
            }
            Err(error) => Err(format!("bubblewrap cannot be started ({error})")),
        }
    }

    /// Says whether the agent can become a user without rights.
    pub fn can_change_user(&self) -> bool {
        self.kind == NamespaceKind::Root
    }

    fn namespaces(&self, network: bool) -> Vec<String> {
        let users: &[&str] = match self.kind {
            NamespaceKind::Root => &["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"],
            NamespaceKind::LastUser => &["--unshare-user", "--disable-userns"],
            NamespaceKind::User => &["--unshare-user"],
        };
        let network = (!network).then_some("--unshare-net");
        BASE_ARGUMENTS.iter().chain(users).copied().chain(network).map(str::to_owned).collect()
    }

    /// Gives the arguments for the folders that each sandbox has for itself.
    fn own_folders(&self, memory: u64) -> Vec<String> {
        let mut args = to_strings(["--proc", "/proc"]).to_vec();
        for path in MACHINE_FILES {
            args.extend(to_strings(["--ro-bind-try", path, path]));
        }
        args.extend(to_strings(["--dev", "/dev"]));
        for folder in MEMORY_FOLDERS {
            if self.kind != NamespaceKind::User {
                args.extend(to_strings(["--perms", "1777", "--size"]));
                args.push(memory.to_string());
            }
            args.extend(to_strings(["--tmpfs", folder]));
        }
        args
    }

    /// Gives the arguments for the folders around a path. Bubblewrap makes them by itself, but only for the user who
    /// starts it, and the agent may become another one.
    fn folders_around(&self, path: &Path) -> Vec<String> {
        let mut folders: Vec<&Path> = path.ancestors().skip(1).filter(|at| at.parent().is_some()).collect();
        folders.reverse();
        let make = |folder: &Path| {
            let [perms, mode, dir] = to_strings(["--perms", "0755", "--dir"]);
            [perms, mode, dir, path_text(folder)]
        };
        folders.into_iter().filter(|_| self.can_change_user()).flat_map(make).collect()
    }

    /// Wraps a launch so that it runs inside the sandbox. `memory` is the size of the folders in memory.
    pub fn wrap(
        &self,
        launch: Launch,
        view: &SandboxView,
        network: SandboxNetwork<'_>,
        folder: &Path,
        memory: u64,
    ) -> Launch {
        let mut args = self.namespaces(network == SandboxNetwork::Open);
        args.extend(self.own_folders(memory));
        args.extend(to_strings(["--symlink", "../tmp", "/var/tmp"]));
        for (at, shown) in view.in_order() {
            args.extend(self.folders_around(at));
            args.extend(match shown {
                PathAccess::ReadOnly(from) => {
                    ["--ro-bind".to_owned(), path_text(from), path_text(at)].to_vec()
                }
                PathAccess::Writable => ["--bind".to_owned(), path_text(at), path_text(at)].to_vec(),
                PathAccess::Link(to) => ["--symlink".to_owned(), path_text(to), path_text(at)].to_vec(),
                PathAccess::HiddenFolder => ["--tmpfs".to_owned(), path_text(at)].to_vec(),
                PathAccess::HiddenFile => {
                    ["--ro-bind".to_owned(), "/dev/null".to_owned(), path_text(at)].to_vec()
                }
            });
        }
        if let SandboxNetwork::Sockets(sockets) = network {
            args.extend(["--ro-bind".to_owned(), path_text(sockets), SOCKETS_FOLDER.to_owned()]);
        }
        // A hidden folder appears empty, and must not look as if it could be written to.
        for (at, shown) in view.in_order() {
            if shown == &PathAccess::HiddenFolder {
                args.extend(["--remount-ro".to_owned(), path_text(at)]);
            }
        }
        args.extend(to_strings(["--remount-ro", "/", "--chdir"]));
        args.extend([path_text(folder), "--".to_owned(), path_text(&launch.program)]);
        args.extend(launch.args);
        Launch { program: self.program.clone(), args, ..launch }
    }
}

/// The network of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxNetwork<'n> {
    /// The network of this machine.
    Open,
    /// None.
    Closed,
    /// Only the sockets in this folder.
    Sockets(&'n Path),
}

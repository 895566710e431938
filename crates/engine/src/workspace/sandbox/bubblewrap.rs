//! A sandbox of namespaces, made by bubblewrap: the agent sees a file system with only the permitted files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use super::view::{PathAccess, SandboxView};
use super::{SandboxBackend, path_text, to_strings};
use practicum_agents::agents::{Launch, find_program};

/// The folder of the sockets to the model, inside the sandbox.
pub const SOCKETS_FOLDER: &str = "/run/practicum";

/// The arguments for separate namespaces of everything except the network. All processes end when bubblewrap or
/// this program is killed.
const BASE_ARGUMENTS: [&str; 9] = [
    "--unshare-user",
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

fn namespaces(network: bool) -> impl Iterator<Item = String> {
    let network = (!network).then_some("--unshare-net");
    BASE_ARGUMENTS.into_iter().chain(network).map(str::to_owned)
}

/// Tests whether bubblewrap is installed and allowed to work. The error says why not.
pub fn probe(env: &BTreeMap<String, String>, strict: bool) -> Result<SandboxBackend, String> {
    let program = find_program("bwrap", env).ok_or("bubblewrap is not installed")?;
    let tried = Command::new(&program)
        .args(namespaces(!strict))
        .args(["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "true"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/run/current-system/sw/bin")
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => Ok(SandboxBackend::Bubblewrap(program)),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().next_back().unwrap_or("it says nothing").trim().to_owned();
            Err(format!("bubblewrap does not work here ({line})"))
        }
        Err(error) => Err(format!("bubblewrap cannot be started ({error})")),
    }
}

/// Wraps a launch so that it runs inside the sandbox. With `wires`, the only network is the sockets in that
/// folder.
pub fn wrap(
    launch: Launch,
    program: &Path,
    view: &SandboxView,
    wires: Option<&Path>,
    folder: &Path,
) -> Launch {
    let mut args: Vec<String> = namespaces(wires.is_none()).collect();
    args.extend(to_strings([
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--symlink",
        "../tmp",
        "/var/tmp",
    ]));
    for (at, shown) in view.in_order() {
        args.extend(match shown {
            PathAccess::ReadOnly(from) => ["--ro-bind".to_owned(), path_text(from), path_text(at)].to_vec(),
            PathAccess::Writable => ["--bind".to_owned(), path_text(at), path_text(at)].to_vec(),
            PathAccess::Link(to) => ["--symlink".to_owned(), path_text(to), path_text(at)].to_vec(),
            PathAccess::HiddenFolder => ["--tmpfs".to_owned(), path_text(at)].to_vec(),
            PathAccess::HiddenFile => {
                ["--ro-bind".to_owned(), "/dev/null".to_owned(), path_text(at)].to_vec()
            }
        });
    }
    if let Some(wires) = wires {
        args.extend(["--ro-bind".to_owned(), path_text(wires), SOCKETS_FOLDER.to_owned()]);
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
    Launch { program: program.to_owned(), args, ..launch }
}

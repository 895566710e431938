//! A sandbox of Seatbelt rules, which macOS enforces for a program that `sandbox-exec` starts.
//!
//! It is weaker than namespaces: whether a file exists, its size and its times can be asked for every path; the
//! agent sees the names of other processes; and the network is open. It was written from the documented rules and
//! has not been run on a Mac, so `probe` tries it before it is used.

use std::path::Path;
use std::process::{Command, Stdio};

use super::view::{PathAccess, SandboxView};
use super::{SandboxBackend, path_text};
use practicum_agents::agents::Launch;

/// The program that applies the rules. The path is fixed, so that no other program of this name is started.
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// The rules for everything except files: what is not allowed is forbidden. The listed services are those for user
/// names, host names, certificates and messages of the system. The Keychain, Apple events and the services that
/// start other programs are not among them, because they would lead out of the sandbox.
const BASE_RULES: &str = r#"(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow ipc-posix-shm*)
(allow system-socket)
(allow file-map-executable)
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.logd")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.trustd.agent"))
(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-bind (local ip "*:*"))
(allow network-inbound (local ip "*:*"))
"#;

/// The rules about files that hold for every agent. Terminals are not among the devices, because one of them is the
/// user's. The last rule about a path counts, so these come before those of the view.
const BASE_FILE_RULES: &str = r#"(allow file-read* (literal "/"))
(allow file-read* file-write-data
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read* file-write-data file-ioctl (literal "/dev/dtracehelper"))
(allow file-read* (subpath "/dev/fd"))
"#;

/// The rule that lets a program find its way through folders that it may not list. It comes last.
const METADATA_RULE: &str = "(allow file-read-metadata)\n";

/// Tests whether Seatbelt works here, with the rules that an agent would get. The error says why not.
pub fn probe() -> Result<SandboxBackend, String> {
    if !cfg!(target_os = "macos") {
        return Err("Seatbelt exists only on macOS".to_owned());
    }
    let view = SandboxView::new(&[], Path::new("/private/var/empty"));
    let tried = Command::new(SANDBOX_EXEC)
        .args(["-p", &profile(&view), "/bin/sh", "-c", "/usr/bin/true"])
        .env_clear()
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => Ok(SandboxBackend::Seatbelt),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().next_back().unwrap_or("it says nothing").trim();
            Err(format!("Seatbelt does not work here ({line})"))
        }
        Err(error) => Err(format!("{SANDBOX_EXEC} cannot be started ({error})")),
    }
}

/// Wraps a launch so that it runs under the rules of its view.
pub fn wrap(launch: Launch, view: &SandboxView) -> Launch {
    let mut args = vec!["-p".to_owned(), profile(view), path_text(&launch.program)];
    args.extend(launch.args);
    Launch { program: SANDBOX_EXEC.into(), args, ..launch }
}

/// Writes the rules for a view.
fn profile(view: &SandboxView) -> String {
    let mut text = format!("{BASE_RULES}{BASE_FILE_RULES}");
    for (at, access) in view.in_order() {
        let at = quoted(at);
        text.push_str(&match access {
            // The system asks for the real path, and for each link on the way to it.
            PathAccess::ReadOnly(real) => {
                format!("(allow file-read* (subpath {}) (literal {at}))\n", quoted(real))
            }
            PathAccess::Link(_) => format!("(allow file-read* (literal {at}))\n"),
            // The agent may have sockets of its own in its workspace.
            PathAccess::Writable => {
                format!("(allow file-read* file-write* network-bind network-outbound (subpath {at}))\n")
            }
            PathAccess::HiddenFolder | PathAccess::HiddenFile => {
                format!("(deny file-read* file-write* (subpath {at}))\n")
            }
        });
    }
    text.push_str(METADATA_RULE);
    text
}

/// Gives a path as a string of the rule language, in which a quote or a backslash in the path cannot end the string.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path_text(path).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn lines_about<'p>(profile: &'p str, path: &Path) -> Vec<&'p str> {
        profile.lines().filter(|line| line.contains(&quoted(path))).collect()
    }

    #[test]
    fn what_is_hidden_is_denied_after_what_is_around_it_and_the_workspace_is_allowed() {
        let home = tempfile::tempdir().expect("a folder");
        let home = home.path().canonicalize().expect("a home");
        let room = home.join("rooms/a \"b\\");
        std::fs::create_dir_all(home.join("tool")).expect("create");
        std::fs::write(home.join("tool/run"), "x").expect("write");
        let mut view = SandboxView::new(std::slice::from_ref(&home), &room);
        view.show_file(&home.join("tool/run"));
        let profile = profile(&view);

        assert_eq!(lines_about(&profile, &room).len(), 1, "{profile}");
        assert!(profile.contains(r#"/rooms/a \"b\\"))"#), "{profile}");
        let position =
            |text: String| profile.find(&text).unwrap_or_else(|| panic!("{text} is not in {profile}"));
        let hidden = position(format!("(deny file-read* file-write* (subpath {}))", quoted(&home)));
        let shown = position(format!("(allow file-read* (subpath {})", quoted(&home.join("tool/run"))));
        let workspace = position(format!(
            "(allow file-read* file-write* network-bind network-outbound (subpath {}))",
            quoted(&room)
        ));
        assert!(hidden < shown && hidden < workspace, "{profile}");
        assert!(profile.starts_with("(version 1)\n(deny default)\n"), "{profile}");
    }

    #[test]
    fn every_parenthesis_of_the_rules_is_closed() {
        let view = SandboxView::new(&[], Path::new("/room"));
        let profile = profile(&view);
        let depth = profile.chars().try_fold(0_i32, |depth, char| {
            let depth = depth + i32::from(char == '(') - i32::from(char == ')');
            (depth >= 0).then_some(depth)
        });
        assert_eq!(depth, Some(0), "{profile}");
    }

    #[test]
    fn a_launch_keeps_its_arguments_and_is_started_by_the_fixed_program() {
        let view = SandboxView::new(&[], Path::new("/room"));
        let launch = Launch {
            program: "/bin/agent".into(),
            args: vec!["-p".to_owned(), "(allow default)".to_owned()],
            env: BTreeMap::new(),
            files: Vec::new(),
            login_file: None,
            stdin: None,
        };
        let wrapped = wrap(launch, &view);
        assert_eq!(wrapped.program, Path::new(SANDBOX_EXEC));
        assert_eq!(wrapped.args[0], "-p");
        assert_eq!(wrapped.args[2..], ["/bin/agent", "-p", "(allow default)"]);
    }
}

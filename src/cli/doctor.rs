//! The command `practicum doctor`: shows which agents, logins and sandbox this machine has, and its disk space.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{environment, print, runtime};
use crate::agents::AgentRegistry;
use crate::agents::{AgentLogin, Launch, find_program};
use crate::model::{Outcome, SandboxMode};
use crate::plan::settings::{SettingLayers, project_root};
use crate::report::terminal_safe;
use crate::session::run_setup;
use crate::tree::read_regular_text;
use crate::workspace::limits::ResourceLimits;
use crate::workspace::observe::ProcessEnd;
use crate::workspace::run::{
    CancelToken, OutputFiles, ProcessRules, adopt_orphans, control_groups_work, supervise,
};
use crate::workspace::sandbox::Sandbox;
use crate::workspace::secrets::Scrubber;

#[derive(clap::Args)]
#[command(after_help = "\
Nothing is asked of a vendor and nothing is changed. Not every agent has to be here: one that is installed \
and logged in is enough, and with --script not even that. The exit code is 0 whatever is missing. On \
Windows, install and run it inside WSL.

Examples:
  practicum doctor                 of this project, with agents of its own
  practicum doctor path/to/project")]
pub struct DoctorArgs {
    /// The project, or anything in it
    #[arg(default_value = ".")]
    path: PathBuf,
}

/// One thing that was checked: its state, and what to do about it.
struct DoctorFinding {
    is_good: bool,
    what: String,
    fix: Option<String>,
}

pub fn main(args: DoctorArgs) -> Outcome {
    let project = project_root(&std::path::absolute(&args.path).unwrap_or(args.path));
    let findings = check_machine(&project);
    let mut text = String::new();
    for finding in &findings {
        text.push_str(&format!("{} {}\n", if finding.is_good { "✓" } else { "✗" }, finding.what));
        if let Some(fix) = finding.fix.as_ref().filter(|_| !finding.is_good) {
            text.push_str(&format!("    {fix}\n"));
        }
    }
    let _ = print(&terminal_safe(&text));
    Outcome::Passed
}

fn check_machine(project: &Path) -> Vec<DoctorFinding> {
    let env = environment();
    let mut findings = Vec::new();
    let layers = match SettingLayers::without_flags(env.clone(), project) {
        Ok(layers) => {
            findings.push(DoctorFinding {
                is_good: true,
                what: format!("project {}", project.display()),
                fix: None,
            });
            layers
        }
        Err(error) => {
            let what = format!("settings: {error}");
            return vec![DoctorFinding {
                is_good: false,
                what,
                fix: Some("mend the settings file".to_owned()),
            }];
        }
    };
    findings.extend(check_platform());
    let agents = match run_setup::all_agents(&layers, &AgentRegistry::default()) {
        Ok(agents) => agents,
        Err(error) => {
            let what = format!("agents: {error}");
            findings.push(DoctorFinding {
                is_good: false,
                what,
                fix: Some("mend the settings file".to_owned()),
            });
            return findings;
        }
    };
    for agent in agents.values() {
        match agent.installed_path(&env) {
            Ok(path) => {
                // An agent that the user defined may not know `--version`, and could start working.
                let own = layers.table("agents").any(|(name, ..)| *name == agent.name);
                let version = match (!own).then(|| program_version(&path, &env)).flatten() {
                    Some(version) => format!("{version} at "),
                    None if own => String::new(),
                    None => "version unknown, at ".to_owned(),
                };
                let what = format!("agent {}: {version}{}", agent.name, path.display());
                findings.push(DoctorFinding { is_good: true, what, fix: None });
                findings.extend(check_login(agent, &env));
            }
            Err(error) => findings.push(DoctorFinding {
                is_good: false,
                what: format!("agent {}: {error}", agent.name),
                fix: Some("install it, or name another with --agent".to_owned()),
            }),
        }
    }
    findings.push(check_sandbox(&env));
    findings.push(check_limits());
    findings.extend(check_picture_programs(&env));
    findings.push(check_disk_space(project));
    findings
}

/// Says what the user should know about a platform on which the program is not tested. Linux has no finding.
fn check_platform() -> Option<DoctorFinding> {
    cfg!(target_os = "macos").then(|| DoctorFinding {
        is_good: false,
        what: "platform: macOS; this program compiles for it and has not been tested on a Mac".to_owned(),
        fix: Some("the section Platforms of the README lists what differs from Linux".to_owned()),
    })
}

/// Says how this machine gets a better sandbox.
fn sandbox_fix() -> &'static str {
    if cfg!(target_os = "macos") {
        "agents run without a sandbox: use Linux, such as in a container, for skills that you do not trust"
    } else {
        "install bubblewrap (such as apt-get install bubblewrap) and allow user namespaces"
    }
}

/// Checks the sandbox by building it as a run would.
fn check_sandbox(env: &BTreeMap<String, String>) -> DoctorFinding {
    let tried = |mode| Sandbox::build(mode, env, [], ResourceLimits::default());
    if tried(SandboxMode::Strict).is_ok() {
        return DoctorFinding {
            is_good: true,
            what: "sandbox: bubblewrap, also for --sandbox strict".to_owned(),
            fix: None,
        };
    }
    let (good, what) = match tried(SandboxMode::Auto) {
        Ok(sandbox) => (sandbox.is_active(), sandbox.notices().join("; ")),
        Err(error) => (false, format!("sandbox: {error}")),
    };
    let what = if good { format!("{what}; --sandbox strict does not hold") } else { what };
    DoctorFinding { is_good: good, what, fix: Some(sandbox_fix().to_owned()) }
}

/// Says how the limits of trials are kept.
fn check_limits() -> DoctorFinding {
    let how = match control_groups_work() {
        Ok(()) => "by cgroup v2 and a watchdog".to_owned(),
        Err(why) => format!("by a watchdog and limits of each process, because {why}"),
    };
    DoctorFinding { is_good: true, what: format!("limits of trials: {how}"), fix: None }
}

/// Says which programs are there that make pictures of files for judges. Most evals need none.
fn check_picture_programs(env: &BTreeMap<String, String>) -> [DoctorFinding; 2] {
    let found = |program: &str, files: &str| {
        let what = match find_program(program, env) {
            Some(path) => format!("{files} for judges: {program} at {}", path.display()),
            None => format!(
                "{files} for judges: {program} is not installed, and only checks with \"pictures\" need it"
            ),
        };
        DoctorFinding { is_good: true, what, fix: None }
    };
    [found("pdftoppm", "PDF files"), found("soffice", "slides")]
}

/// Describes how the agent is logged in. Only its vendor knows whether the login is still valid.
fn check_login(agent: &crate::agents::AgentCli, env: &BTreeMap<String, String>) -> Option<DoctorFinding> {
    let variables = &agent.credentials.variables;
    if variables.is_empty() {
        return None;
    }
    let good = |how: String| DoctorFinding {
        is_good: true,
        what: format!("agent {}: logs in with {how}", agent.name),
        fix: None,
    };
    Some(match agent.credentials.find_login(env) {
        Some(AgentLogin::Variable(name)) => good(name),
        Some(AgentLogin::File(path)) => good(format!(
            "its own login in {}; agents get a copy that they cannot renew, so {} is better for long runs",
            path.display(),
            variables.join(" or ")
        )),
        None => DoctorFinding {
            is_good: false,
            what: format!("agent {}: not logged in", agent.name),
            fix: Some(format!("set {}{}", variables.join(" or "), describe_own_login(agent))),
        },
    })
}

/// The time limit for a program to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Gives the version that a program prints. It runs in a temporary folder, and every process that it starts is
/// ended.
fn program_version(program: &Path, env: &BTreeMap<String, String>) -> Option<String> {
    let room = tempfile::tempdir().ok()?;
    let home = room.path().display().to_string();
    let path = env.get("PATH").cloned().unwrap_or_default();
    let launch = Launch {
        program: program.to_owned(),
        args: vec!["--version".to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home)]),
        files: Vec::new(),
        login_file: None,
        stdin: None,
    };
    let output = OutputFiles {
        stdout: room.path().join("stdout"),
        stderr: room.path().join("stderr"),
        scrubber: Scrubber::default(),
    };
    let marker = format!("doctor-{}", std::process::id());
    let asked = runtime().ok()?.block_on(async {
        adopt_orphans();
        let rules = ProcessRules {
            folder: room.path(),
            marker: &marker,
            time_limit: VERSION_TIMEOUT,
            limits: None,
            has_init_process: false,
        };
        supervise(&launch, &rules, &output, &CancelToken::default()).await
    });
    let said = read_regular_text(&output.stdout).ok()?;
    let line = terminal_safe(said.lines().next()?.trim());
    matches!(asked.end, ProcessEnd::Exited(0)).then_some(line)
}

/// Checks the free disk space, which workspaces and records need.
fn check_disk_space(project: &Path) -> DoctorFinding {
    const ENOUGH_BYTES: u64 = 1024 * 1024 * 1024;
    match rustix::fs::statvfs(project) {
        Ok(disk) => {
            let free = disk.f_bavail * disk.f_frsize;
            DoctorFinding {
                is_good: free >= ENOUGH_BYTES,
                what: format!("disk: {:.1} GB free", free as f64 / 1e9),
                fix: Some("practicum clean --keep 10 removes old records".to_owned()),
            }
        }
        Err(error) => DoctorFinding { is_good: false, what: format!("disk: {error}"), fix: None },
    }
}

fn describe_own_login(agent: &crate::agents::AgentCli) -> String {
    // On macOS, Claude Code has no login file: its login is in the Keychain, which an agent with a home of its own
    // does not find.
    let in_keychain = agent.credentials.variables.iter().any(|name| name == "CLAUDE_CODE_OAUTH_TOKEN");
    if cfg!(target_os = "macos") && in_keychain {
        return "; its login in the Keychain does not reach a workspace, so run claude setup-token and set \
                CLAUDE_CODE_OAUTH_TOKEN"
            .to_owned();
    }
    match agent.credentials.file {
        Some(_) => format!(", or log in with {} itself", agent.name),
        None => String::new(),
    }
}

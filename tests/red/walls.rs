//! Agents, scripts and checks that want out of their sandbox: as root and as another user, in each sandbox.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Project, Ran, has_bubblewrap, has_landlock, sandbox_means};

/// Tries a command and tells if it works.
const TRY: &str = "try() { if bash -c \"$1\" >/dev/null 2>&1; then echo \"ESCAPED: $1\"; fi; }\n";

/// What no process of a trial may do, whatever the sandbox.
const ESCAPES: &str = r#"
try 'cat SECRET'
try 'cat PROJECT/practicum.toml'
try 'cat PROJECT/evals/e.practicum.yaml'
try 'echo x >> PROJECT/practicum.toml'
try 'echo x > /etc/practicum-escaped'
try 'cat /etc/shadow'
try 'cat /etc/gshadow'
try 'echo escaped > /proc/sys/kernel/domainname'
try 'echo 1 > /proc/sysrq-trigger'
try 'unshare --user true'
try 'unshare --user --map-root-user --mount true'
try 'mount -t tmpfs none /mnt'
try 'mount --bind /usr /mnt'
try 'chroot / true'
try 'su -c true'
try 'kill -0 PARENT'
try 'perl -e "exit(syscall(425, 8, 0) < 0)"'
try 'perl -e "exit(syscall(101, 16, $PPID, 0, 0) < 0)"'
try 'perl -e "exit(syscall(248, 0, 0, 0, 0, 0) < 0 && \$!{EPERM} ? 1 : 0)"'
try 'perl -e "exit(syscall(250, 0, -3, 0) < 0)"'
try 'perl -e "exit(syscall(56, 0x10000011, 0, 0, 0, 0) < 0)"'
try 'perl -e "exit(syscall(435, 0, 0) < 0)"'
try 'grep -E "^Cap(Prm|Eff):" /proc/self/status | grep -qv 0000000000000000'
"#;

/// What only a sandbox with namespaces of its own holds.
const NAMESPACE_ESCAPES: &str = r#"
try '[ "$(id -u)" = 0 ]'
try 'ls /proc/PARENT'
try 'ls PROJECT/evals'
try '[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 40 ]'
"#;

/// What a sandbox holds that does not share the names of sockets with the machine.
const SOCKET_ESCAPES: &str = "try 'perl -MSocket -e \"socket(S, AF_UNIX, SOCK_STREAM, 0); \
    exit(!connect(S, pack_sockaddr_un(chr(0) . q(ABSTRACT))))\"'\n";

/// What only a sandbox without network holds.
const NETWORK_ESCAPES: &str = "try 'exec 3<>/dev/tcp/127.0.0.1/PORT'\n";

/// A user's project with a secret beside it, and a service of the machine.
struct Scene {
    project: Project,
    home: tempfile::TempDir,
    service: std::net::TcpListener,
    /// A service with an abstract name.
    _named_service: std::os::unix::net::UnixListener,
}

impl Scene {
    /// Makes a scene in which `place` executes the escapes: the agent, the setup script or the command of a check.
    fn new(place: &str, escapes: &str) -> Self {
        let home = tempfile::tempdir().expect("a home");
        std::fs::write(home.path().join("secret.txt"), "user secret").expect("write");
        let project = Project::new(&[]);
        let service = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        use std::os::linux::net::SocketAddrExt;
        let name = format!("practicum-test-{}", project.path().display());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
        let named_service = std::os::unix::net::UnixListener::bind_addr(&address).expect("a socket");
        let scene = Self { project, home, service, _named_service: named_service };
        let port = scene.service.local_addr().expect("bound").port();
        let script = format!("{TRY}{escapes}")
            .replace("SECRET", &scene.home.path().join("secret.txt").display().to_string())
            .replace("PROJECT", &scene.project.path().display().to_string())
            .replace("ABSTRACT", &name)
            .replace("PARENT", &std::process::id().to_string())
            .replace("PORT", &port.to_string());
        let (agent, setup, check) = match place {
            "agent" => (script.as_str(), "true", "true"),
            "setup" => ("cat found.txt", script.as_str(), "true"),
            _ => ("", "true", script.as_str()),
        };
        scene.project.write("agent.sh", &format!("{agent}\necho done\n"));
        let setup = format!("cat > escapes.sh <<'END'\n{setup}\nEND\nbash escapes.sh > found.txt");
        let check =
            format!("cat > check.sh <<'END'\n{check}\nEND\nbash check.sh; ! bash check.sh | grep ESCAPED");
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        scene.project.write(
            "evals/e.practicum.yaml",
            &format!(
                "practicum: 1\nworkspace: empty\nrun: {{ agents: [own], timeout: 60s }}\ncases:\n  - id: x\n    prompt: p\n    setup: {}\n    checks: [{{ contains: done }}, {{ not_contains: ESCAPED }}, {{ command: {} }}]\n",
                quoted(&setup),
                quoted(&check),
            ),
        );
        let path = scene.project.path().join("agent.sh");
        scene.project.write(
            "practicum.toml",
            &format!("[agents.own]\ncommand = [\"/bin/bash\", \"{}\"]\n", path.display()),
        );
        scene
    }

    /// Gives the command that runs the evals, as this user or as another one.
    fn command(&self, means: &str, user: Option<u32>) -> Command {
        let mode = if means == "strict" { "strict" } else { "auto" };
        let inner =
            self.project.practicum(&["run", "evals", "--trust", "--json", "--no-cache", "--sandbox", mode]);
        let mut command = match user {
            None => Command::new(inner.get_program()),
            Some(user) => {
                self.give_to(user);
                let mut command = Command::new("setpriv");
                let user = user.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]);
                command.arg(inner.get_program());
                command
            }
        };
        command.args(inner.get_args()).current_dir(self.project.path()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("HOME", self.home.path());
        if means != "strict" {
            command.env("PRACTICUM_SANDBOX_MEANS", means);
        }
        command
    }

    fn give_to(&self, user: u32) {
        for folder in [self.project.path(), self.home.path()] {
            let owner = format!("{user}:{user}");
            let given = Command::new("chown").args(["-R", &owner]).arg(folder).status();
            assert!(given.expect("chown").success());
        }
    }

    fn trial(&self) -> PathBuf {
        let trials = std::fs::read_dir(self.project.only_run().join("trials")).expect("trials");
        trials.flatten().next().expect("one").path()
    }

    fn found(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.trial().join(name)).unwrap_or_default();
        format!("{}\n{}\n{}", read("output.txt"), read("stderr.txt"), read("checks.json"))
    }
}

/// The users to try as: root's tests also become another user, if that user can start the program.
fn users() -> Vec<Option<u32>> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_practicum"));
    let is_root = rustix::process::geteuid().is_root();
    let reachable = program
        .ancestors()
        .skip(1)
        .all(|folder| folder.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0));
    if is_root && reachable { vec![None, Some(1000)] } else { vec![None] }
}

fn all_means() -> Vec<&'static str> {
    let strict = has_bubblewrap().then_some("strict");
    sandbox_means().into_iter().chain(strict).collect()
}

fn escapes_of(means: &str) -> String {
    let namespaces = if means == "landlock" { "" } else { NAMESPACE_ESCAPES };
    let network = if means == "strict" { NETWORK_ESCAPES } else { "" };
    let sockets = if means == "bubblewrap" { "" } else { SOCKET_ESCAPES };
    format!("{ESCAPES}{namespaces}{sockets}{network}")
}

#[track_caller]
fn nothing_escapes(place: &str) {
    for user in users() {
        for means in all_means() {
            let scene = Scene::new(place, &escapes_of(means));
            let before =
                std::fs::read_to_string(scene.project.path().join("practicum.toml")).expect("settings");
            let ran = Ran::of(scene.command(means, user).output().expect("starts"));
            assert_eq!(ran.code, 0, "{place} {means} {user:?}: {}\n{}", scene.found(), ran.stderr);
            let after =
                std::fs::read_to_string(scene.project.path().join("practicum.toml")).expect("settings");
            assert_eq!(after, before, "{place} {means} {user:?}");
            assert!(!PathBuf::from("/etc/practicum-escaped").exists());
            let domain = std::fs::read_to_string("/proc/sys/kernel/domainname").expect("a name");
            assert_ne!(domain.trim(), "escaped");
            println!("held: {place} in {means} as {user:?}");
        }
    }
}

#[test]
fn an_agent_reaches_the_machine() {
    nothing_escapes("agent");
}

#[test]
fn a_setup_script_reaches_the_machine() {
    nothing_escapes("setup");
}

#[test]
fn the_command_of_a_check_reaches_the_machine() {
    nothing_escapes("check");
}

#[test]
fn without_a_sandbox_the_same_check_gets_out() {
    let escapes = format!("try 'cat SECRET'\n{SOCKET_ESCAPES}{NETWORK_ESCAPES}");
    let scene = Scene::new("check", &escapes);
    let mut command = scene.command("", None);
    command.args(["--sandbox", "off"]);
    let ran = Ran::of(
        scene
            .project
            .practicum(&["run", "evals", "--trust", "--json", "--sandbox", "off"])
            .output()
            .expect("starts"),
    );
    assert_eq!(ran.code, 1, "else the tests above prove nothing: {}", scene.found());
    for escape in ["cat", "perl", "exec"] {
        assert!(scene.found().contains(&format!("ESCAPED: {escape} ")), "{escape}: {}", scene.found());
    }
    drop(command);
}

#[test]
fn the_plan_says_what_stays_open() {
    for means in all_means() {
        let scene = Scene::new("agent", "");
        let ran = Ran::of(scene.command(means, None).output().expect("starts")).exits(0);
        let open = ran.stderr.lines().find(|line| line.contains("the sandbox leaves open"));
        match means {
            "strict" => assert_eq!(open, None),
            "landlock" => {
                assert!(open.is_some_and(|open| open.contains("the list of processes")), "{}", ran.stderr)
            }
            _ => {
                assert!(open.is_some_and(|open| open.contains("on 127.0.0.1")), "{}", ran.stderr)
            }
        }
    }
}

#[test]
fn no_agent_runs_without_a_sandbox_unless_that_is_said() {
    if has_landlock() {
        // The kernel's rules cannot be taken away from a program, so only a machine without them shows this.
        eprintln!("skipped: landlock works on this machine");
        return;
    }
    let scene = Scene::new("agent", "");
    let mut command = scene.project.practicum(&["run", "evals", "--trust"]);
    command.env("PATH", "/nowhere");
    let ran = Ran::of(command.output().expect("starts")).exits(2);
    assert!(ran.stderr.contains("--sandbox off"), "{}", ran.stderr);
}

#[test]
fn an_agent_replaces_the_users_login() {
    // A program with the name of a known agent gets that agent's login.
    let hostile = "#!/bin/bash\nlogin=\"$HOME/.claude/.credentials.json\"\nwc -c < \"$login\" > seen.txt\n\
        echo stolen > \"$login\"\nrm -f \"$login\"\n\
        for own in USERHOME/.claude/.credentials.json; do echo stolen > $own; rm -f $own; done\n\
        rm -rf \"$HOME/.claude\"; ln -sfn USERHOME/.claude \"$HOME/.claude\"\necho stolen > \"$login\"\n";
    let token = "{\"token\":\"sk-of-the-user\"}";
    for means in all_means() {
        let scene = Scene::new("agent", "");
        let home = scene.home.path();
        let login = home.join(".claude/.credentials.json");
        for (path, text) in [
            (login.clone(), token.to_owned()),
            (home.join("bin/claude"), hostile.replace("USERHOME", &home.display().to_string())),
        ] {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("create");
            std::fs::write(&path, text).expect("write");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("set");
        }
        std::fs::set_permissions(&login, std::fs::Permissions::from_mode(0o600)).expect("set");
        let evals = scene.project.path().join("evals/e.practicum.yaml");
        let text = std::fs::read_to_string(evals).expect("evals");
        scene.project.write("evals/e.practicum.yaml", &text.replace("agents: [own]", "agents: [claude]"));
        let mut command = scene.command(means, None);
        command.args(["--keep-workspaces", "--no-probe"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display())).env("TMPDIR", home);
        let ran = Ran::of(command.output().expect("starts"));
        let seen = std::fs::read_to_string(scene.trial().join("files/seen.txt")).unwrap_or_default();
        assert_eq!(seen.trim(), token.len().to_string(), "{means}: it has the login\n{}", ran.stderr);
        let after = std::fs::read_to_string(&login).unwrap_or_default();
        assert_eq!(after, token, "{means}: {}\n{}", scene.found(), ran.stderr);
    }
}

/// A token that renews a login works only once. If the agent used it, the user would be logged out.
#[test]
fn an_agent_renews_the_users_login_away() {
    let agent = "#!/bin/bash\ncat \"$HOME/.claude/.credentials.json\" > seen.txt\n\
        echo '{\"claudeAiOauth\":{\"accessToken\":\"sk-new\",\"refreshToken\":\"r-new\"}}' > \"$HOME/.claude/.credentials.json\"\n\
        echo done\n";
    let own = "{\"claudeAiOauth\": {\"accessToken\": \"sk-now\", \"refreshToken\": \"r-now\", \"expiresAt\": 9},\n\
        \"mcpOAuth\": {\"s\": {\"accessToken\": \"of-a-server\"}}}";
    for means in all_means() {
        let scene = Scene::new("agent", "");
        let home = scene.home.path();
        for (name, text, mode) in [("bin/claude", agent, 0o755), (".claude/.credentials.json", own, 0o600)] {
            let path = home.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("create");
            std::fs::write(&path, text).expect("write");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
        }
        let evals = scene.project.path().join("evals/e.practicum.yaml");
        let text = std::fs::read_to_string(evals).expect("evals");
        scene.project.write("evals/e.practicum.yaml", &text.replace("agents: [own]", "agents: [claude]"));
        let mut command = scene.command(means, None);
        command.arg("--no-probe");
        command.env("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display()));
        let ran = Ran::of(command.output().expect("starts"));
        let seen = std::fs::read_to_string(scene.trial().join("files/seen.txt")).unwrap_or_default();
        let has = |part: &str| seen.contains(part);
        assert!(has("expiresAt") && has("refreshToken"), "{means}: {seen}\n{}", ran.stderr);
        assert!(!has("r-now") && !has("of-a-server"), "{means}: {seen}");
        let after = std::fs::read_to_string(home.join(".claude/.credentials.json")).unwrap_or_default();
        assert_eq!(after, own, "{means}");
    }
}

/// A check beside the evals finds what it imports. The agent does not, and the evals stay hidden from both.
#[test]
fn a_program_beside_the_evals_misses_its_modules() {
    let skillgrade = "version: '1'\nskill: ..\ndefaults: { agent: own, trials: 1, timeout: 60 }\ntasks:\n\
        \x20 - name: x\n    instruction: p\n    graders:\n\
        \x20     - { type: deterministic, name: py, run: python3 graders/check.py }\n\
        \x20     - { type: deterministic, name: sh, run: bash graders/check.sh }\n";
    let reward = "print('{\"score\": 1, \"details\": \"\", \"checks\": []}')\n";
    let python = format!("import os, helper, lib.inner\nassert helper.A + lib.inner.B == 3\n{reward}");
    let look = "for f in FOLDER/EVALS FOLDER/GRADERS.env FOLDER/GRADERSout/secret.txt; do\n\
        \x20 if cat \"$f\" >/dev/null 2>&1; then echo \"ESCAPED $f\"; exit 1; fi\ndone\n";
    let shell = format!(
        "set -e\nsource \"$(dirname \"$0\")/lib.sh\"\ncd \"$(dirname \"$0\")\"; source ./lib.sh\n[ \"$found\" = yes ]\n{look}\
         echo '{{\"score\": 1, \"details\": \"\", \"checks\": []}}'\n"
    );
    for (format, graders) in
        [("native", "graders/"), ("native", ""), ("skillgrade", "graders/"), ("skillgrade", "")]
    {
        for means in all_means() {
            let scene = Scene::new("agent", "");
            let folder = scene.project.path().join("skills/gull/evals");
            let shown = folder.display().to_string();
            let (name, evals) = match format {
                "native" => (
                    "e.practicum.yaml",
                    format!(
                        "practicum: 1\nworkspace: empty\nrun: {{ agents: [own], timeout: 60s }}\ncases:\n  - id: x\n    prompt: p\n    \
                         checks: [{{ contains: done }}, {{ command: python3 {shown}/{graders}check.py }}, {{ command: 'bash {shown}/{graders}check.sh' }}]\n"
                    ),
                ),
                _ => ("eval.yaml", skillgrade.replace("graders/", graders)),
            };
            let shell = shell.replace("FOLDER", &shown).replace("EVALS", name).replace("GRADERS", graders);
            scene.project.write(&format!("skills/gull/evals/{name}"), &evals);
            scene
                .project
                .write("skills/gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\nkee-ow\n");
            for (path, text) in [
                ("check.py", python.as_str()),
                ("helper.py", "A = 1\n"),
                ("lib/inner.py", "B = 2\n"),
                ("check.sh", &shell),
                ("lib.sh", "found=yes\n"),
                (".env", "KEY=x\n"),
            ] {
                scene.project.write(&format!("skills/gull/evals/{graders}{path}"), text);
            }
            std::os::unix::fs::symlink(scene.home.path(), folder.join(format!("{graders}out")))
                .expect("a link");
            scene.project.write(
                "agent.sh",
                &format!(
                    "cat {shown}/{graders}helper.py {shown}/{graders}lib.sh && echo ESCAPED\necho done\n"
                ),
            );
            std::fs::remove_dir_all(scene.project.path().join("evals")).expect("removed");
            let mut command = scene.command(means, None);
            command.args(["--no-probe", "--agent", "own"]);
            let args: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
            let args = args.iter().map(|arg| if arg == "evals" { shown.as_ref() } else { arg.as_os_str() });
            let mut given = Command::new(command.get_program());
            given.args(args).current_dir(scene.project.path()).env_clear();
            given.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let ran = Ran::of(given.output().expect("starts"));
            let found = scene.found();
            assert_eq!(ran.code, 0, "{format} {graders} {means}: {found}\n{}\n{}", ran.stdout, ran.stderr);
            assert!(!found.contains("ESCAPED"), "{format} {means}: {found}");
        }
    }
}

/// An agent that is asked to end can still write what it holds, in every sandbox.
#[test]
fn an_agent_loses_what_it_holds_at_its_time_limit() {
    let flush = "trap 'echo flushed > flushed.txt; echo flushed; exit 0' TERM\necho started\nwhile :; do sleep 0.1; done\n";
    for means in all_means().into_iter().chain(["off"]) {
        let scene = Scene::new("agent", "");
        scene.project.write("agent.sh", flush);
        let ran = match means {
            "off" => scene.project.run(&[
                "run",
                "evals",
                "--trust",
                "--json",
                "--sandbox",
                "off",
                "--timeout",
                "1s",
            ]),
            _ => Ran::of(scene.command(means, None).args(["--timeout", "1s"]).output().expect("starts")),
        };
        let summary = ran.exits(3).json();
        assert_eq!(summary["cases"][0]["endings"]["timed_out"], 1, "{means}: {summary:#}");
        assert!(scene.trial().join("files/flushed.txt").exists(), "{means}: {}", scene.found());
        let stream = std::fs::read_to_string(scene.trial().join("transcript.jsonl")).expect("a stream");
        assert!(stream.contains("flushed"), "{means}: {stream}");
    }
}

//! A project of a stranger on plain `practicum run`: nothing of it runs or weakens the sandbox without trust.

use std::process::Command;

use crate::common::{Project, Ran};
use crate::{EVALS, link, project, set_agent};

/// Makes a command of a user who has not said anything about trust.
fn untrusting(project: &Project, args: &[&str]) -> Command {
    let mut command = project.practicum(args);
    command.env_remove("PRACTICUM_TRUST").env("XDG_CONFIG_HOME", config(project));
    command
}

/// Gives the user's own settings folder.
fn config(project: &Project) -> std::path::PathBuf {
    project.path().join(".settings-of-user")
}

fn run(project: &Project, args: &[&str]) -> Ran {
    Ran::of(untrusting(project, args).output().expect("practicum starts"))
}

fn started(project: &Project) -> bool {
    project.path().join("started").exists()
}

/// Makes a project whose agent leaves a file `started` when it is started.
fn hostile_project() -> Project {
    let project = project();
    set_agent(&project, &format!("touch {}/started", project.path().display()));
    project
}

#[test]
fn a_command_of_a_project_runs_on_plain_run() {
    for agent in ["own", "claude", "codex", "builtin"] {
        let project = hostile_project();
        let settings = std::fs::read_to_string(project.path().join("practicum.toml")).expect("settings");
        project.write("practicum.toml", &settings.replace("[agents.own]", &format!("[agents.{agent}]")));
        project.write("evals/e.practicum.yaml", &EVALS.replace("[own]", &format!("[{agent}]")));
        for args in [
            &["run", "evals"][..],
            &["compare", "evals", "--modes"],
            &["noise", "evals"],
            &["try", "speak", "--skill", "skills/gull", "--agent", agent],
        ] {
            let ran = run(&project, args);
            assert!(
                ran.code == 2 && ran.stderr.contains("is not trusted"),
                "{agent} {args:?} {}",
                ran.stderr
            );
            assert!(!started(&project), "{agent} {args:?}");
        }
        run(&project, &["run", "evals", "--trust", "--no-probe"]).exits(0);
        assert!(started(&project), "{agent}: --trust is for this run");
        std::fs::remove_file(project.path().join("started")).expect("removed");
        run(&project, &["run", "evals", "--no-cache"]).exits(2);
        assert!(!started(&project), "{agent}: and only for this run");
    }
}

#[test]
fn trust_outlives_a_change_of_what_was_trusted() {
    let project = hostile_project();
    let listed = run(&project, &["trust", "--list", "evals"]).exits(0);
    assert!(listed.stdout.contains("not trusted: agent own") && listed.stdout.contains("sandbox = \"off\""));
    run(&project, &["run", "evals"]).exits(2);
    run(&project, &["trust", "evals"]).exits(0);
    run(&project, &["run", "evals", "--no-probe"]).exits(0);
    let stored = config(&project).join("practicum/trust.json");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(stored.metadata().expect("stored").permissions().mode() & 0o777, 0o600);
    // The file that the command names, a key of the agent, and another project with the same content.
    let script = std::fs::read_to_string(project.path().join("agent.sh")).expect("a script");
    let settings = std::fs::read_to_string(project.path().join("practicum.toml")).expect("settings");
    project.write("agent.sh", &format!("{script}\ncurl evil\n"));
    run(&project, &["run", "evals"]).exits(2);
    project.write("agent.sh", &script);
    run(&project, &["run", "evals"]).exits(0);
    for key in [
        "pass_env = [\"AWS_SECRET\"]",
        "env = { K = \"/etc/shadow\" }",
        "models = [\"https://evil.example\"]",
        "credentials = [\"HOME\"]",
    ] {
        project.write("practicum.toml", &format!("{settings}{key}\n"));
        run(&project, &["run", "evals"]).exits(2);
    }
    project.write("practicum.toml", &settings);
    run(&project, &["trust", "--revoke", "evals"]).exits(0);
    run(&project, &["run", "evals"]).exits(2);
}

#[test]
fn trust_in_one_project_reaches_a_copy_elsewhere() {
    let (one, two) = (hostile_project(), hostile_project());
    run(&one, &["trust", "evals"]).exits(0);
    let mut command = two.practicum(&["run", "evals"]);
    command.env_remove("PRACTICUM_TRUST").env("XDG_CONFIG_HOME", config(&one));
    assert_eq!(Ran::of(command.output().expect("starts")).code, 2);
    assert!(!started(&two));
}

#[test]
fn a_project_raises_the_limits_of_trials() {
    let project = project();
    let agent = std::fs::read_to_string(project.path().join("practicum.toml")).expect("settings");
    let agent = agent.replace("sandbox = \"off\"\n", "");
    let user = config(&project).join("practicum/config.toml");
    std::fs::create_dir_all(user.parent().expect("a folder")).expect("create");
    let explained = |args: &[&str], name: &str| {
        let ran = run(&project, &[&["run", "evals", "--explain"], args].concat()).exits(0);
        let row = ran.stdout.lines().find(|line| line.contains(name)).expect("a row").to_owned();
        (row, ran.stderr.contains("because the project is not trusted"))
    };
    for (limit, of_user, expected, is_ignored) in [
        ("memory = \"64GB\"", "", "2 GB", true),
        ("memory = \"64GB\"", "[limits]\nmemory = \"3GB\"", "3 GB", false),
        ("memory = \"64GB\"", "[limits]\nmemory = \"128GB\"", "64 GB", false),
        ("memory = \"1GB\"", "", "1 GB", false),
        ("processes = 100000", "", "1024", true),
        ("cpu = \"100h\"", "", "3600s", true),
        ("cpu = \"1m\"", "", "60s", false),
        ("open-files = 100000", "", "4096", true),
        ("disk = \"1TB\"", "", "4 GB", true),
        ("files = 1000000", "", "75000", true),
    ] {
        project.write("practicum.toml", &format!("[limits]\n{limit}\n{agent}"));
        std::fs::write(&user, of_user).expect("write");
        let name = format!("limits.{}", limit.split(' ').next().expect("a name"));
        let (row, ignored) = explained(&[], &name);
        assert!(row.contains(&format!(" {expected} ")), "{limit} {of_user}: {row}");
        assert_eq!(ignored, is_ignored, "{limit} {of_user}");
    }
    project.write("practicum.toml", &format!("[limits]\nmemory = \"64GB\"\n{agent}"));
    std::fs::write(&user, "").expect("write");
    assert!(explained(&["--trust"], "limits.memory").0.contains(" 64 GB "));
    run(&project, &["trust", "."]).exits(0);
    assert!(explained(&[], "limits.memory").0.contains(" 64 GB "), "trusted by name and value");
    project.write("practicum.toml", &format!("[limits]\nmemory = \"65GB\"\n{agent}"));
    assert!(explained(&[], "limits.memory").0.contains(" 2 GB "), "a higher one is another item");
}

#[test]
fn a_project_switches_the_sandbox_off() {
    let project = project();
    let settings = std::fs::read_to_string(project.path().join("practicum.toml")).expect("settings");
    let agent = settings.replace("sandbox = \"off\"\n", "");
    let user = config(&project).join("practicum/config.toml");
    std::fs::create_dir_all(user.parent().expect("a folder")).expect("create");
    let explained = |project: &Project| {
        let ran = run(project, &["run", "evals", "--explain"]).exits(0);
        let row = ran.stdout.lines().find(|line| line.contains("sandbox")).expect("a row").to_owned();
        (row.split_whitespace().nth(1).expect("a value").to_owned(), ran.stderr)
    };
    for (of_project, of_user, expected, notice) in [
        ("off", "", "auto", true),
        ("strict", "", "strict", false),
        ("off", "sandbox = \"strict\"", "strict", false),
        ("auto", "sandbox = \"strict\"", "strict", false),
        ("strict", "sandbox = \"off\"", "strict", false),
        ("off", "sandbox = \"off\"", "off", false),
    ] {
        project.write("practicum.toml", &format!("sandbox = \"{of_project}\"\n{agent}"));
        std::fs::write(&user, of_user).expect("write");
        let (value, said) = explained(&project);
        assert_eq!(value, expected, "{of_project} {of_user}");
        assert_eq!(said.contains("ignored, because the project is not trusted"), notice, "{said}");
    }
    // Even where the project is trusted, the user's own file wins for what weakens.
    std::fs::write(&user, "sandbox = \"strict\"\nmax-cost = 1\n").expect("write");
    project.write("practicum.toml", &format!("sandbox = \"off\"\nmax-cost = 1000\n{agent}"));
    run(&project, &["trust", "evals"]).exits(0);
    assert_eq!(explained(&project).0, "strict");
    let ran = run(&project, &["run", "evals", "--explain", "--trust"]).exits(0);
    assert!(
        ran.stdout.lines().any(|line| line.contains("max-cost") && line.contains("$1 ")),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_agent_of_a_project_replaces_the_users_own() {
    let project = hostile_project();
    let user = config(&project).join("practicum/config.toml");
    std::fs::create_dir_all(user.parent().expect("a folder")).expect("create");
    let own = project.path().join("mine.sh");
    let text = std::fs::read_to_string(project.path().join("agent.sh")).expect("a script");
    std::fs::write(&own, text.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>())
        .expect("write");
    let agent = format!(
        "sandbox = \"off\"\n[agents.own]\ndecoder = \"practicum-jsonl\"\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n",
        own.display()
    );
    std::fs::write(user, agent).expect("write");
    run(&project, &["run", "evals", "--no-probe"]).exits(0);
    assert!(!started(&project));
}

#[test]
fn scripts_of_evals_are_asked_about_again_though_they_are_trusted() {
    let project = project();
    let touch = format!("touch {}/started", project.path().display());
    let case =
        format!("  - {{ id: y, prompt: speak, setup: \"{touch}\", checks: [{{ contains: kee-ow }}] }}\n");
    project.write("evals/e.practicum.yaml", &format!("{EVALS}{case}"));
    let args = ["run", "evals", "--no-probe"];
    let mut command = untrusting(&project, &args);
    let ran = Ran::of(command.env("PRACTICUM_TRUST", "settings").output().expect("starts")).exits(2);
    assert!(ran.stderr.contains("1 script") && !started(&project), "{}", ran.stderr);
    run(&project, &["trust", "evals"]).exits(0);
    run(&project, &args).exits(0);
    assert!(started(&project));
    project.write("evals/e.practicum.yaml", &format!("{EVALS}{}", case.replace("touch", "touch -a")));
    run(&project, &args).exits(2);
    let mut command = untrusting(&project, &args);
    assert_eq!(Ran::of(command.env("PRACTICUM_TRUST", "nonsense").output().expect("starts")).code, 2);
    let mut command = untrusting(&project, &args);
    assert_eq!(Ran::of(command.env("PRACTICUM_TRUST", "all").output().expect("starts")).code, 0);
}

/// Makes a project whose agent says which files of the kind that start programs are in its workspace.
fn project_with_agent_files() -> Project {
    let project = project();
    set_agent(
        &project,
        &format!(
            "cat .claude/settings.json .codex/config.toml .mcp.json opencode.json > {}/seen 2>/dev/null",
            project.path().display()
        ),
    );
    project.write("evals/e.practicum.yaml", &format!("{EVALS}workspace: project\n"));
    project
}

#[test]
fn hooks_of_a_project_reach_the_agent() {
    let project = project_with_agent_files();
    project.write(".claude/settings.json", r#"{"hooks": {}, "apiKeyHelper": "sh evil.sh"}"#);
    project.write("conf/config.toml", "notify = [\"sh\"]\n");
    link("conf", project.path().join(".codex"));
    project.write(".mcp.json", r#"{"mcpServers": {"evil": {"command": "sh"}}}"#);
    let seen = || std::fs::read_to_string(project.path().join("seen")).unwrap_or_default();
    let run_trusting = |kinds: &str| {
        let mut command = untrusting(&project, &["run", "evals", "--no-probe", "--no-cache"]);
        Ran::of(command.env("PRACTICUM_TRUST", kinds).output().expect("starts")).exits(0)
    };
    let ran = run_trusting("settings");
    assert_eq!(seen(), "", "{}", ran.stderr);
    assert_eq!(
        ran.stderr.matches("ignored, because the project is not trusted").count(),
        1,
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains(".claude/settings.json") && ran.stderr.contains(".mcp.json"),
        "{}",
        ran.stderr
    );
    run_trusting("settings,agent-files");
    assert!(
        seen().contains("apiKeyHelper") && seen().contains("notify") && seen().contains("evil"),
        "{}",
        seen()
    );
}

#[test]
fn a_case_puts_hooks_into_the_workspace_as_a_file() {
    for given in [
        "files: [{ from: hooks.json, to: .claude/settings.json }]",
        "files: [{ from: more, to: .opencode }]",
        "overlays: [over]",
    ] {
        let project = project_with_agent_files();
        project.write("evals/hooks.json", r#"{"hooks": {}}"#);
        project.write("evals/more/plugin/x.ts", "evil()");
        project.write("evals/over/.mcp.json", "{\"mcpServers\": {}}");
        let case = format!("  - {{ id: y, prompt: speak, {given}, checks: [{{ contains: kee-ow }}] }}\n");
        project.write("evals/e.practicum.yaml", &format!("{EVALS}{case}"));
        let mut command = untrusting(&project, &["run", "evals", "--no-probe"]);
        let ran = Ran::of(command.env("PRACTICUM_TRUST", "settings").output().expect("starts"));
        assert!(
            ran.code == 2 && ran.stderr.contains("in the workspace of y"),
            "{given}: {} {}",
            ran.code,
            ran.stderr
        );
    }
}

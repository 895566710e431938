//! Who may use a server, and what a worker allows.

use std::path::Path;
use std::process::Command;

use crate::common::{Project, Ran, sandbox_means};
use crate::setup::{KEY, TestServer, files_below, project, run, run_command, start_worker};

fn openssl(folder: &Path, args: &str) {
    let made = Command::new("openssl").args(args.split(' ')).current_dir(folder).output().expect("openssl");
    assert!(made.status.success(), "{args}: {}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn a_server_with_a_login_and_a_certificate_of_its_own_is_used_by_those_who_have_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    openssl(
        folder.path(),
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test",
    );
    openssl(folder.path(), "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=queue");
    std::fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1\n").expect("write");
    openssl(
        folder.path(),
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
    );
    let config = format!(
        "authorization {{ user: practicum, password: \"a-secret-word\" }}\n\
         tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n",
        at("server.pem"),
        at("server.key")
    );
    let server = TestServer::start_with(&config, "");
    let project = project(2, "1ms");
    let address = |login: &str| format!("tls://{login}127.0.0.1:{}", server.port);
    let (url, ca) = (address("practicum:a-secret-word@"), at("ca.pem"));
    let run_at = |url: &str, ca: &str| {
        let mut command = run_command(&project, url, &[]);
        Ran::of(command.env("PRACTICUM_NATS_CA", ca).output().expect("practicum starts"))
    };
    for (url, ca, expected) in [
        (&address(""), &ca, "no connection"),
        (&address("practicum:another-word@"), &ca, "no connection"),
        (&url, &String::new(), "no connection"),
        (&url, &at("missing.pem"), "missing.pem"),
    ] {
        let refused = run_at(url, ca).exits(2);
        assert!(refused.stderr.contains(expected), "{url}: {}", refused.stderr);
        assert!(!refused.stderr.contains("-word"), "{}", refused.stderr);
        let worker = Ran::of(
            project
                .practicum(&["worker", url])
                .envs([("PRACTICUM_NATS_CA", ca.as_str()), ("PRACTICUM_RECORD_KEY", KEY)])
                .output()
                .expect("practicum starts"),
        )
        .exits(2);
        assert!(worker.stderr.contains(expected), "{url}: {}", worker.stderr);
    }
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    let _worker = start_worker(&url, &["--sandbox", "off"], &[("PRACTICUM_NATS_CA", &ca)]);
    run_at(&url, &ca).exits(0);
    let record = project.only_run();
    for file in files_below(&record) {
        let text = std::fs::read(record.join(&file)).expect("a file");
        assert!(!String::from_utf8_lossy(&text).contains("a-secret-word"), "{file}");
    }
}

#[test]
fn a_worker_uses_its_own_sandbox_if_a_run_asks_for_less() {
    if sandbox_means().is_empty() {
        return;
    }
    let server = TestServer::start();
    let project = project(1, "1ms");
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mark = outside.path().join("mark");
    let script = format!(
        "practicum_script: 1\nscenarios:\n  - when: speak\n    steps: [{{ tools: [{{ name: Bash, input: {{ command: 'touch {}' }} }}] }}, kee-ow]\n",
        mark.display()
    );
    project.write("gull/evals/script.yaml", &script);
    for (floor, escapes) in [("auto", false), ("off", true)] {
        let _worker = start_worker(&server.url(), &["--sandbox", floor], &[]);
        run(&project, &server, &["--no-cache"]).exits(0);
        assert_eq!(mark.exists(), escapes, "the worker has --sandbox {floor}, and the run asks for off");
    }
}

#[test]
fn probes_run_on_workers_before_the_trials() {
    let server = TestServer::start();
    let skill = "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\nSay ahoy.\n";
    let evals = "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: { agents: [builtin], script: script.yaml }\ncases:\n\
        \x20 - { id: greets, prompt: Greet Alice., activation: must }\n\
        \x20 - { id: sums, prompt: What is one and one?, activation: must_not }\n";
    let script = "practicum_script: 1\nscenarios:\n\
        \x20 - when: Greet Alice\n    steps: [{ tools: [{ name: Skill, input: { skill: greeter } }] }, Ahoy.]\n\
        \x20 - { when: one and one, steps: ['2'] }\n\
        \x20 - { to: probe, when: Use the skill greeter, steps: [{ tools: [{ name: Skill, input: { skill: '{{skill}}' } }] }, ready] }\n";
    let project = Project::new(&[
        ("greeter/SKILL.md", skill),
        ("gull/e.practicum.yaml", evals),
        ("gull/script.yaml", script),
    ]);
    let worker = server.worker("one", &[]);
    let ran = run(&project, &server, &[]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stderr, worker.log());
    let summary = ran.json();
    assert_eq!(summary["probes"][0]["fired"], true, "{summary}");
    assert_eq!(summary["totals"]["trials"], 2, "a probe is no trial");
    let probe = summary["probes"][0]["trial"].as_str().expect("a name");
    let transcript = project.only_run().join("probes").join(probe).join("transcript.jsonl");
    assert!(std::fs::read_to_string(transcript).expect("what it did is kept").contains("\"skill\""));
    // A probe that does not activate its skill stops the run there as well.
    project.write(
        "gull/script.yaml",
        &script.replace(
            "[{ tools: [{ name: Skill, input: { skill: '{{skill}}' } }] }, ready]",
            "[I would rather not.]",
        ),
    );
    let stopped = run(&project, &server, &["--no-cache"]).exits(3);
    assert_eq!(stopped.json()["probes"][0]["trouble"]["kind"], "not_taken", "{}", stopped.stderr);
    assert_eq!(stopped.json()["totals"]["trials"], 0);
}

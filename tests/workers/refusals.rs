//! What workers and servers refuse.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use crate::setup::{TestServer, events, finished_cases, project, run, run_log, start_run, wait_for};

/// Answers as a NATS server of an old version would, for one connection after the other.
fn old_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("nats://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut writer = connection.try_clone().expect("a copy");
            let info = r#"{"server_id":"x","server_name":"x","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576,"host":"127.0.0.1","port":1,"client_id":1}"#;
            let _ = writer.write_all(format!("INFO {info}\r\n").as_bytes());
            for line in BufReader::new(connection).lines().map_while(Result::ok) {
                if line.starts_with("PING") {
                    let _ = writer.write_all(b"PONG\r\n");
                }
            }
        }
    });
    url
}

#[test]
fn an_old_server_is_refused_by_name() {
    let project = project(1, "1ms");
    let url = old_server();
    for args in [&["worker", url.as_str()][..], &["run", "gull", "--workers", &url]] {
        let ran = project.run(args).exits(2);
        let expected = "has version 2.9.10, and workers need 2.10 or newer";
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
    let ran = project.run(&["worker", "nats://127.0.0.1:1"]).exits(2);
    assert!(ran.stderr.contains("no connection"), "{}", ran.stderr);
}

#[test]
fn a_worker_with_another_key_or_without_the_label_takes_nothing() {
    let server = TestServer::start();
    let project = project(2, "1ms");
    let other = server.worker_with_key("other", &[], "the key of somebody else");
    let plain = server.worker("plain", &[]);
    let mut run = start_run(&project, &server, &["--worker-label", "gpu"]);
    // Both look for work several times meanwhile.
    wait_for("the notice", || run_log(&project).contains("no worker has begun a trial yet"));
    assert_eq!(events(&project, "trial_started").len(), 0);
    let _fitting = server.worker("fitting", &["--label", "gpu"]);
    assert!(run.0.wait().expect("ended").success());
    assert_eq!(finished_cases(&project).len(), 2);
    for worker in [&other, &plain] {
        assert!(!worker.log().contains("case-"), "{}", worker.log());
    }
}

#[test]
fn what_the_user_of_the_run_does_not_trust_is_not_run_by_a_worker() {
    let server = TestServer::start();
    let project = project(2, "1ms");
    let evals = std::fs::read_to_string(project.path().join("gull/evals/a.practicum.yaml")).expect("evals");
    let mark = project.path().join("ran");
    let script = format!(
        "  - {{ id: scripted, prompt: speak 9, setup: \"touch {}\", checks: [{{ contains: kee-ow }}] }}\n",
        mark.display()
    );
    project.write("gull/evals/a.practicum.yaml", &(evals + &script));
    let _worker = server.worker("one", &[]);
    let refused = run(&project, &server, &[]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("--trust"), "{}", refused.stderr);
    assert!(!mark.exists());
    run(&project, &server, &["--trust"]).exits(0);
    assert!(mark.exists(), "with trust the worker runs it");
}

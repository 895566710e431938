//! Messages that were sent twice, and what somebody without the project's key writes to the server.

use serde_json::{Value, json};

use crate::setup::{
    TestServer, case_names, events, finished_cases, project, run, run_log, start_run, wait_for,
};
use crate::stranger::{Stranger, WaitingTrial};

#[test]
fn a_trial_that_is_published_twice_is_run_once() {
    let server = TestServer::start();
    let project = project(4, "1ms");
    let mut run = start_run(&project, &server, &[]);
    let other = Stranger::connect(&server.url());
    let trials = other.waiting_trials(4);
    let publish = |trial: &WaitingTrial, headers: &async_nats::HeaderMap| {
        let (headers, payload) = (headers.clone(), trial.payload.clone());
        other.wait(async {
            let sent = other.jetstream.publish_with_headers(trial.subject.clone(), headers, payload.into());
            sent.await.expect("sent").await.expect("stored").duplicate
        })
    };
    for (number, trial) in trials.iter().enumerate() {
        assert!(publish(trial, &trial.headers), "the server recognises the same message");
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Msg-Id", format!("another-{number}"));
        assert!(!publish(trial, &headers));
    }
    let worker = server.worker("one", &[]);
    let ended = run.0.wait().expect("ended");
    assert!(ended.code().is_some_and(|code| code < 2), "{ended}");
    assert_eq!(finished_cases(&project), case_names(4));
    let log = worker.log();
    assert_eq!(log.lines().filter(|line| line.starts_with("case-")).count(), 4, "{log}");
}

#[test]
fn what_has_no_mark_of_the_key_is_refused_and_the_trial_counts_all_the_same() {
    let server = TestServer::start();
    let project = project(2, "1s");
    let mut run = start_run(&project, &server, &[]);
    let stranger = Stranger::connect(&server.url());
    let trials = stranger.waiting_trials(2);
    let keys: Vec<String> = trials.iter().map(|trial| trial.task.done_key()).collect();
    let bucket = stranger.bucket_of(&trials[0].task.run);
    let done = |done_key: &str| {
        let document = json!({
            "run": trials[0].task.run, "done_key": done_key, "worker": "stranger", "object": "x",
            "end": { "finished": { "digest": "0" } },
        });
        json!({ "document": document, "mark": "0".repeat(64) }).to_string()
    };
    let write = |key: &str, text: String| {
        stranger.wait(bucket.put(key, text.into())).expect("written");
    };
    // The result of a trial that was asked for, of one that was not, and a trial that nobody planned.
    write(&keys[0], done(&keys[0]));
    write(
        "done.trial.00000000000000000000000000000000.1",
        done("done.trial.00000000000000000000000000000000.1"),
    );
    let mut changed: Value = serde_json::from_slice(&trials[0].payload).expect("JSON");
    changed["document"]["bundle"] = json!("another");
    let forged = changed.to_string();
    let sent = stranger.jetstream.publish(trials[0].subject.clone(), forged.into());
    stranger.wait(async { sent.await.expect("sent").await.expect("stored") });
    wait_for("the refusal", || run_log(&project).contains("without a valid mark"));
    assert_eq!(finished_cases(&project).len(), 0);
    let worker = server.worker("one", &[]);
    // A true result is none for another trial.
    let is_stored = |key: &str| {
        let stored = stranger.wait(bucket.get(key)).ok().flatten();
        stored.filter(|value| !value.windows(8).any(|part| part == b"stranger"))
    };
    let first = std::cell::RefCell::new(None);
    wait_for("the first result", || {
        let stored = is_stored(&keys[0]).map(|value| (&keys[1], value));
        *first.borrow_mut() = stored.or_else(|| is_stored(&keys[1]).map(|value| (&keys[0], value)));
        first.borrow().is_some()
    });
    if let Some((other, value)) = first.take() {
        stranger.wait(bucket.put(other, value)).expect("written");
    }
    let ended = run.0.wait().expect("ended");
    assert!(ended.success(), "{ended}: {}", run_log(&project));
    assert_eq!(finished_cases(&project), case_names(2));
    assert!(!run_log(&project).contains("stranger"), "{}", run_log(&project));
    assert!(worker.log().contains("a trial without a valid mark of this project's key was refused"));
}

#[test]
fn files_that_were_replaced_are_not_used() {
    let server = TestServer::start();
    let project = project(1, "1ms");
    let mut run = start_run(&project, &server, &[]);
    let stranger = Stranger::connect(&server.url());
    let bundle = stranger.waiting_trials(1)[0].task.bundle.clone();
    let bundles = stranger.wait(stranger.jetstream.get_object_store("practicum_bundles")).expect("a store");
    let put = |bytes: &[u8]| {
        stranger
            .wait(bundles.put(bundle.as_str(), &mut std::io::Cursor::new(bytes.to_vec())))
            .expect("stored");
    };
    let mut own = Vec::new();
    stranger.wait(async {
        let mut object = bundles.get(&bundle).await.expect("the files");
        tokio::io::AsyncReadExt::read_to_end(&mut object, &mut own).await.expect("read");
    });
    put(b"something else");
    let worker = server.worker("one", &[]);
    wait_for("the refusal", || worker.log().contains("the stored file has another digest"));
    assert_eq!(events(&project, "trial_started").len(), 0);
    put(&own);
    assert!(run.0.wait().expect("ended").success());
    assert_eq!(finished_cases(&project), case_names(1));
}

#[test]
fn files_that_are_at_the_server_are_not_stored_again() {
    let server = TestServer::start();
    let project = project(1, "1ms");
    let _worker = server.worker("one", &[]);
    let other = Stranger::connect(&server.url());
    let stored = || {
        let stream = other.wait(other.jetstream.get_stream("OBJ_practicum_bundles")).expect("a stream");
        stream.cached_info().state.last_sequence
    };
    run(&project, &server, &["--no-cache"]).exits(0);
    let first = stored();
    assert!(first > 0);
    run(&project, &server, &["--no-cache"]).exits(0);
    assert_eq!(stored(), first, "nothing was stored");
    assert_eq!(finished_cases(&project).len(), 2);
    project.write("gull/more.txt", "changed");
    run(&project, &server, &["--no-cache"]).exits(0);
    assert!(stored() > first, "other files are");
}

//! Large results, results that arrive damaged, and a server whose disk is full.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use crate::common::Project;
use crate::proxy::{Moment, Proxy};
use crate::setup::{
    TestServer, case_names, events, files_below, finished_cases, project, run, run_log, start_run,
    start_worker, wait_for,
};
use crate::stranger::Stranger;

/// A text that cannot be compressed to less than half of its length.
fn noise(length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    let mut state = 88_172_645_463_325_252_u64;
    while text.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let _ = write!(text, "{state:016x}");
    }
    text
}

/// A project whose agent answers each case with this text.
fn talkative_project(cases: usize, text: &str) -> Project {
    let project = project(cases, "1ms");
    let script = format!("practicum_script: 1\ndefault: {{ text: kee-ow {text} }}\n");
    project.write("gull/evals/script.yaml", &script);
    project
}

/// Gives the answers in the record of a run.
fn answers(run: &Path) -> Vec<Vec<u8>> {
    let files = files_below(run).into_iter().filter(|file| file.ends_with("output.txt"));
    files.map(|file| std::fs::read(run.join(file)).expect("an answer")).collect()
}

#[test]
fn results_arrive_whole_and_damaged_ones_are_run_again() {
    run_with_damaged_uploads(1_000_000);
}

#[test]
#[ignore = "takes a minute"]
fn results_of_ten_megabytes_arrive_whole_and_damaged_ones_are_run_again() {
    run_with_damaged_uploads(10_000_000);
}

fn run_with_damaged_uploads(length: usize) {
    let server = TestServer::start();
    let project = project(2, "1ms");
    // The models of a script do not say that much, so the agent is a program that prints a file.
    let (text, file) = (format!("kee-ow {}\n", noise(length)), project.path().join("text"));
    project.write("text", &text);
    let agent =
        format!("[agents.loud]\ndecoder = \"text\"\ncommand = [\"/bin/cat\", \"{}\"]\n", file.display());
    project.write("practicum.toml", &agent);
    let evals = project.path().join("gull/evals/a.practicum.yaml");
    let with_builtin = std::fs::read_to_string(&evals).expect("evals");
    let with_loud = with_builtin.replace("agents: [builtin], script: script.yaml", "agents: [loud]");
    project.write("gull/evals/a.practicum.yaml", &with_loud);
    let stranger = Stranger::connect(&server.url());
    // The first upload is changed on its way. The second loses its beginning before its record is written.
    let (mut chunks, mut records) = (0, 0);
    let connection = Proxy::start(server.port, move |frame, moment| {
        if moment == Moment::Before && frame.is(" $O.practicum_", "") && frame.line.contains(".C.") {
            chunks += 1;
            if chunks == 1 {
                let middle = frame.rest.len() / 2;
                frame.rest[middle] ^= 1;
            }
        }
        if moment == Moment::Before && frame.is(" $KV.", "") && frame.line.contains(".done.") {
            records += 1;
            if records == 2 {
                let run = frame.line.split('.').nth(1).expect("a bucket").to_owned();
                stranger.wait(async {
                    let stream = stranger.jetstream.get_stream(format!("OBJ_{run}")).await.expect("a stream");
                    let kept = stream.cached_info().state.last_sequence - 3;
                    stream.purge().sequence(kept).await.expect("removed");
                });
            }
        }
        true
    });
    let args = ["--name", "one", "--sandbox", "off", "--agent", "loud"];
    let worker = start_worker(&connection.url(), &args, &[]);
    let ran = run(&project, &server, &["--worker-lease", "10s"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stderr, worker.log());
    assert_eq!(finished_cases(&project), case_names(2));
    let answers = answers(&project.only_run());
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|answer| answer.trim_ascii() == text.trim_ascii().as_bytes()));
    assert_eq!(ran.stderr.matches("the trial is run again").count(), 2, "{}", ran.stderr);
    println!(
        "2 results of {length} bytes, 2 damaged uploads: {} trials run",
        worker.log().matches("case-").count()
    );
}

#[test]
fn a_full_disk_at_the_server_is_told_and_fails_no_trial() {
    let mut server = TestServer::start_with("", ", max_file_store: 256KB");
    let project = talkative_project(3, &noise(1_500_000));
    // The files of the run have no room.
    let refused = run(&project, &server, &[]).exits(2);
    assert!(
        refused.stderr.contains("the NATS server could not store the files of the run"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("insufficient"), "{}", refused.stderr);
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    // The files have room, and the results have not.
    server.storage = ", max_file_store: 2500KB".to_owned();
    server.restart(Duration::ZERO);
    let worker = server.worker("one", &[]);
    let mut begun = start_run(&project, &server, &[]);
    wait_for("the message", || worker.log().contains("the NATS server could not store a result"));
    wait_for("the message at the run", || run_log(&project).contains("one: the NATS server could not store"));
    server.storage = ", max_file_store: 100MB".to_owned();
    server.restart(Duration::ZERO);
    let ended = begun.0.wait().expect("ended");
    assert!(ended.success(), "{ended}: {}", run_log(&project));
    assert_eq!(finished_cases(&project), case_names(3));
    assert!(events(&project, "trial_finished").iter().all(|line| line["record"]["ended"] == "finished"));
}

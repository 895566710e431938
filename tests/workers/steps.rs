//! Workers, coordinators and servers that are killed at each step of the protocol. Whatever is killed, the run becomes the
//! run of one machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::equal::LocalRun;
use crate::proxy::{Frame, Moment, Proxy};
use crate::setup::{
    TestServer, case_names, finished_cases, project, resume, spawn_worker, start_run, start_run_at, wait_for,
};

/// A step of the protocol: the message that its process sends to the server.
struct Step {
    what: &'static str,
    /// Parts of the message's subject.
    subject: &'static [&'static str],
    /// A part of its text.
    text: &'static str,
    /// How many such messages are sent before this one.
    earlier: usize,
}

const fn step(what: &'static str, subject: &'static [&'static str]) -> Step {
    Step { what, subject, text: "", earlier: 0 }
}

static WORKER_STEPS: [Step; 10] = [
    step("asks for trials", &["CONSUMER.MSG.NEXT.PRACTICUM_TRIALS"]),
    step("fetches the files of the run", &["CONSUMER.CREATE.OBJ_practicum_bundles"]),
    step("looks for a result that is there already", &["DIRECT.GET.KV_practicum_", ".done."]),
    step("says that it began", &["practicum.news."]),
    step("uploads a result", &[" $O.", ".C."]),
    step("describes its upload", &[" $O.", ".M."]),
    RECORD,
    ACKNOWLEDGED,
    Step { what: "stores the third record", earlier: 2, ..RECORD },
    Step { what: "acknowledges the third trial", earlier: 2, ..ACKNOWLEDGED },
];

const RECORD: Step = step("stores the record of a result", &[" $KV.", ".done."]);
const ACKNOWLEDGED: Step = Step { text: "+ACK", ..step("acknowledges a trial", &["$JS.ACK."]) };

static COORDINATOR_STEPS: [Step; 12] = [
    step("makes a consumer of trials", &["CREATE.PRACTICUM_TRIALS"]),
    step("makes the bucket of the run", &["STREAM.CREATE.KV_practicum_"]),
    step("makes the store of results", &["STREAM.CREATE.OBJ_practicum_"]),
    step("stores the state of the run", &[" $KV.practicum_", ".state"]),
    step("uploads the files of the run", &[" $O.practicum_bundles.C."]),
    step("describes the files of the run", &[" $O.practicum_bundles.M."]),
    step("publishes a trial", &["practicum.trials."]),
    PUBLISHED,
    step("fetches a result", &["CONSUMER.CREATE.OBJ_practicum_"]),
    Step { what: "fetches the third result", earlier: 2, ..step("", &["CONSUMER.CREATE.OBJ_practicum_"]) },
    step("removes what is left in the queue", &["STREAM.PURGE.PRACTICUM_TRIALS"]),
    step("removes the bucket of the run", &["STREAM.DELETE.KV_"]),
];

const PUBLISHED: Step =
    Step { what: "publishes the third trial", earlier: 2, ..step("", &["practicum.trials."]) };

const CASES: usize = 4;

impl Step {
    fn is(&self, frame: &Frame) -> bool {
        self.subject.iter().all(|part| frame.is(part, self.text))
    }
}

/// Kills a process when a message is seen, once.
struct Killer {
    victim: AtomicU32,
    killed: AtomicBool,
}

impl Killer {
    fn new() -> Arc<Self> {
        Arc::new(Self { victim: AtomicU32::new(0), killed: AtomicBool::new(false) })
    }

    fn aim(&self, process: u32) {
        self.victim.store(process, Ordering::SeqCst);
    }

    fn has_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }

    /// Makes a connection on which a step kills the process.
    fn connection(self: &Arc<Self>, server: u16, step: &'static Step, moment: Moment) -> Proxy {
        let killer = Arc::clone(self);
        let mut seen = 0;
        Proxy::start(server, move |frame, now| {
            if now != moment || !step.is(frame) || killer.has_killed() {
                return true;
            }
            seen += 1;
            if seen <= step.earlier {
                return true;
            }
            if moment == Moment::After {
                // The server does what the message says, and perhaps answers.
                std::thread::sleep(Duration::from_millis(30));
            }
            let process = killer.victim.load(Ordering::SeqCst).to_string();
            let sent = std::process::Command::new("kill").args(["-9", &process]).status();
            assert!(sent.expect("kill").success());
            killer.killed.store(true, Ordering::SeqCst);
            false
        })
    }
}

fn kill_worker(server: &TestServer, step: &'static Step, moment: Moment) {
    let project = project(CASES, "20ms");
    let local = LocalRun::of(&project);
    let killer = Killer::new();
    let connection = killer.connection(server.port, step, moment);
    let mut run = start_run(&project, server, &["--worker-lease", "1s"]);
    let first = spawn_worker(&connection.url(), &["--name", "first", "--sandbox", "off"], &[]);
    killer.aim(first.process.0.id());
    wait_for(step.what, || killer.has_killed());
    let _second = server.worker("second", &[]);
    let ended = run.0.wait().expect("ended");
    assert!(ended.code().is_some_and(|code| code < 2), "{}, {moment:?}: {ended}", step.what);
    assert_eq!(finished_cases(&project), case_names(CASES), "{}, {moment:?}", step.what);
    local.assert_equals_run_of(&project);
}

fn kill_coordinator(server: &TestServer, step: &'static Step, moment: Moment) {
    let project = project(CASES, "20ms");
    let local = LocalRun::of(&project);
    let killer = Killer::new();
    let connection = killer.connection(server.port, step, moment);
    let _worker = server.worker("one", &[]);
    let mut run = start_run_at(&project, &connection.url(), &["--worker-lease", "1s"]);
    killer.aim(run.0.id());
    wait_for(step.what, || killer.has_killed());
    run.0.wait().expect("ended");
    let resumed = resume(&project, &server.url());
    local.assert_ended_as(&resumed);
    assert_eq!(finished_cases(&project), case_names(CASES), "{}, {moment:?}", step.what);
    local.assert_equals_run_of(&project);
}

fn kill_server(server: &mut TestServer, step: &'static Step, moment: Moment, is_workers: bool) {
    let project = project(CASES, "20ms");
    let local = LocalRun::of(&project);
    let killer = Killer::new();
    killer.aim(server.process_id());
    let connection = killer.connection(server.port, step, moment);
    let [at_worker, at_run] = match is_workers {
        true => [connection.url(), server.url()],
        false => [server.url(), connection.url()],
    };
    let _worker = spawn_worker(&at_worker, &["--name", "one", "--sandbox", "off"], &[]);
    let mut run = start_run_at(&project, &at_run, &["--worker-lease", "2s"]);
    wait_for(step.what, || killer.has_killed());
    server.restart(Duration::from_millis(200));
    let ended = run.0.wait().expect("ended");
    if ended.code().is_none_or(|code| code > 1) {
        // A run whose server ends before its first trial is published is refused, and can be continued.
        local.assert_ended_as(&resume(&project, &server.url()));
    }
    assert_eq!(finished_cases(&project), case_names(CASES), "{}, {moment:?}", step.what);
    local.assert_equals_run_of(&project);
}

const MOMENTS: [Moment; 2] = [Moment::Before, Moment::After];

#[test]
fn a_worker_or_coordinator_that_is_killed_at_a_critical_step_changes_nothing() {
    let server = TestServer::start();
    kill_worker(&server, &RECORD, Moment::Before);
    kill_worker(&server, &ACKNOWLEDGED, Moment::Before);
    kill_coordinator(&server, &PUBLISHED, Moment::After);
}

#[test]
#[ignore = "takes minutes"]
fn a_worker_that_is_killed_at_any_step_changes_nothing() {
    let server = TestServer::start();
    for (step, moment) in WORKER_STEPS.iter().flat_map(|step| MOMENTS.map(|moment| (step, moment))) {
        kill_worker(&server, step, moment);
        println!("worker killed, {moment:?} it {}: equal", step.what);
    }
    println!("workers: killed {} times, each run equal", WORKER_STEPS.len() * MOMENTS.len());
}

#[test]
#[ignore = "takes minutes"]
fn a_coordinator_that_is_killed_at_any_step_changes_nothing() {
    let server = TestServer::start();
    for (step, moment) in COORDINATOR_STEPS.iter().flat_map(|step| MOMENTS.map(|moment| (step, moment))) {
        kill_coordinator(&server, step, moment);
        println!("coordinator killed, {moment:?} it {}: equal", step.what);
    }
    println!("coordinators: killed {} times, each run equal", COORDINATOR_STEPS.len() * MOMENTS.len());
}

fn kill_servers(steps: &'static [Step], is_workers: bool) {
    let mut server = TestServer::start();
    let who = if is_workers { "worker" } else { "coordinator" };
    for (step, moment) in steps.iter().flat_map(|step| MOMENTS.map(|moment| (step, moment))) {
        kill_server(&mut server, step, moment, is_workers);
        println!("server killed, {moment:?} a {who} {}: equal", step.what);
    }
    println!("servers: killed {} times, each run equal", steps.len() * MOMENTS.len());
}

#[test]
#[ignore = "takes minutes"]
fn a_server_that_is_killed_at_any_step_of_a_worker_changes_nothing() {
    kill_servers(&WORKER_STEPS, true);
}

#[test]
#[ignore = "takes minutes"]
fn a_server_that_is_killed_at_any_step_of_a_coordinator_changes_nothing() {
    kill_servers(&COORDINATOR_STEPS, false);
}

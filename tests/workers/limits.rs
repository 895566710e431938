//! Budgets, rate limits and clocks of several workers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use practicum::gateway::SpendingBudget;
use practicum_workers::budget::{Amount, BudgetAccount, Reservation, change_account};
use practicum_workers::messages::BUDGET_KEY;

use crate::common::Project;
use crate::setup::{TestServer, events, finished_cases, start_worker, wait_for};

#[test]
fn fifty_workers_exceed_a_budget_by_no_more_than_what_is_running() {
    const WORKERS: u64 = 50;
    const BUDGET: u64 = 200_000;
    const LARGEST: u64 = 1500;
    let server = TestServer::start();
    let url = server.url();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (spent, trials) = runtime.block_on(async {
        let bucket = |url: String| async move {
            let jetstream = async_nats::jetstream::new(async_nats::connect(url).await.expect("connected"));
            let config =
                async_nats::jetstream::kv::Config { bucket: "race".to_owned(), ..Default::default() };
            match jetstream.get_key_value("race").await {
                Ok(bucket) => bucket,
                Err(_) => jetstream.create_key_value(config).await.expect("a bucket"),
            }
        };
        let first = bucket(url.clone()).await;
        let limit = SpendingBudget { max_cost: None, max_tokens: Some(BUDGET) };
        let account = BudgetAccount::open(limit).expect("a budget");
        let bytes = serde_json::to_vec(&account).expect("JSON");
        first.put(BUDGET_KEY, bytes.into()).await.expect("stored");
        let (spent, trials) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let workers = (0..WORKERS).map(|worker| {
            let (url, spent, trials) = (url.clone(), Arc::clone(&spent), Arc::clone(&trials));
            tokio::spawn(async move {
                let bucket = bucket(url).await;
                for number in 0_u64.. {
                    let trial = format!("{worker}-{number}");
                    let tokens = 500 + (worker * 7919 + number * 104_729) % (LARGEST - 499);
                    loop {
                        let reserved = change_account(&bucket, |account| account.reserve(&trial)).await;
                        match reserved.expect("an answer").expect("a budget") {
                            Reservation::Granted => break,
                            Reservation::Wait => tokio::time::sleep(Duration::from_millis(20)).await,
                            Reservation::UsedUp => return,
                        }
                    }
                    trials.fetch_add(1, Ordering::SeqCst);
                    spent.fetch_add(tokens, Ordering::SeqCst);
                    let amount = Amount { cost: 0.0, tokens };
                    let settled = change_account(&bucket, |account| account.settle(&trial, amount)).await;
                    settled.expect("an answer");
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.expect("ended");
        }
        let booked = change_account(&first, |account| account.spent().tokens).await;
        assert_eq!(booked.expect("an answer"), Some(spent.load(Ordering::SeqCst)), "all is booked, and once");
        (spent.load(Ordering::SeqCst), trials.load(Ordering::SeqCst))
    });
    println!("{WORKERS} workers, {trials} trials: {spent} tokens of {BUDGET}");
    assert!(spent >= BUDGET);
    assert!(spent - BUDGET <= WORKERS * LARGEST, "{spent}");
}

/// An agent that counts outside of its workspace when it was asked. The first trial reaches a limit that resets soon.
fn limited_project(cases: usize, pause: u64) -> Project {
    let project = Project::new(&[]);
    let log = project.path().join("asked.log");
    let script = format!(
        "echo \"$(date +%s) $1\" >> {log}\n\
         if [ \"$(grep -c . {log})\" -eq 1 ]; then\n\
         resets=$(($(date +%s) + {pause}))\n\
         echo '{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"rejected\",\"resetsAt\":'$resets'}}}}'\n\
         echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":429,\"result\":\"limit reached\"}}'; exit 1\n\
         fi\n\
         echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"kee-ow\"}}'\n",
        log = log.display()
    );
    project.write("agent.sh", &script);
    let command = format!(
        "command = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n",
        project.path().join("agent.sh").display()
    );
    project
        .write("practicum.toml", &format!("[agents.limited]\ndecoder = \"claude-stream-json\"\n{command}"));
    let mut evals = "practicum: 1\nworkspace: empty\nrun: { agents: [limited] }\ncases:\n".to_owned();
    for number in 1..=cases {
        evals += &format!(
            "  - {{ id: case-{number}, prompt: case-{number}, checks: [{{ contains: kee-ow }}] }}\n"
        );
    }
    project.write("gull/a.practicum.yaml", &evals);
    project
}

/// Gives the library that shows another time to a program, if it is installed.
fn other_clock() -> Option<String> {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let found = places.iter().map(|place| format!("{place}/faketime/libfaketimeMT.so.1"));
    let found = found.into_iter().find(|path| Path::new(path).is_file());
    if found.is_none() {
        eprintln!(
            "skipped: libfaketime is not installed on this machine, so the clocks of workers are right"
        );
    }
    found
}

/// A worker whose clock is an hour ahead runs into a rate limit; another, an hour late, begins during the pause.
#[test]
fn a_rate_limit_pauses_all_workers_of_the_account_whatever_their_clocks_say() {
    const PAUSE: u64 = 8;
    let server = TestServer::start();
    let project = limited_project(6, PAUSE);
    let library = other_clock().unwrap_or_default();
    let worker = |name: &str, clock: &str| {
        let skewed =
            [("LD_PRELOAD", library.as_str()), ("FAKETIME", clock), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
        let environment = if library.is_empty() { &[][..] } else { &skewed };
        let args = ["--name", name, "--sandbox", "off", "--agent", "limited"];
        start_worker(&server.url(), &args, environment)
    };
    let _ahead = worker("ahead", "+1h");
    let mut run = crate::setup::start_run(&project, &server, &["--trust"]);
    let log = || std::fs::read_to_string(project.path().join("asked.log")).unwrap_or_default();
    wait_for("the limit", || !log().is_empty());
    wait_for("the pause", || !events(&project, "trial_started").is_empty());
    let _late = worker("late", "-1h");
    let ended = run.0.wait().expect("ended");
    assert!(ended.success(), "{ended}: {}", crate::setup::run_log(&project));
    assert_eq!(finished_cases(&project).len(), 6);
    let times: Vec<u64> = log()
        .lines()
        .map(|line| line.split(' ').next().and_then(|word| word.parse().ok()).expect("a time"))
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    println!(
        "trials began after {:?} s, with a pause of {PAUSE} s",
        times.iter().map(|at| at - times[0]).collect::<Vec<_>>()
    );
    // One more may have been taken before the worker knew of the limit.
    let early = times.iter().filter(|at| **at > times[0] && **at < times[0] + PAUSE - 1).count();
    assert!(early <= 1, "{times:?}");
    assert!(now < times[0] + 600, "no hour is waited for");
}

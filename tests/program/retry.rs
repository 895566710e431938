//! What the outside world breaks is tried again, and is never a result.

use crate::common::Project;
use serde_json::Value;

/// An agent that fails as `ending` says until it was asked `failures` times, then answers. It counts
/// outside of its room, and notes when each try began.
fn project(ending: &str, failures: u32, cases: u32) -> Project {
    let project = Project::new(&[]);
    let log = project.path().join("asked.log");
    let script = format!(
        "echo \"$(date +%s%N) $1\" >> {log}\n\
         echo '{{\"type\":\"usage\",\"input\":10,\"output\":1,\"cache_read\":0,\"cache_write\":0}}'\n\
         if [ \"$(grep -c \"$1\" {log})\" -le {failures} ] && [ \"$1\" = case-1 ]; then\n\
         echo '{{\"type\":\"end\",\"ending\":\"{ending}\",\"message\":\"come back later\"}}'; exit 1\n\
         fi\n\
         echo '{{\"type\":\"text\",\"text\":\"done\"}}'\n\
         echo '{{\"type\":\"end\",\"ending\":\"finished\"}}'\n",
        log = log.display()
    );
    project.write("agent.sh", &script);
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.shaky]\ndecoder = \"practicum-jsonl\"\n\
             command = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n",
            project.path().join("agent.sh").display()
        ),
    );
    let cases: String = (1..=cases)
        .map(|n| format!("  - {{ id: case-{n}, prompt: case-{n}, checks: [{{ contains: done }}] }}\n"))
        .collect();
    let eval = format!("practicum: 1\nworkspace: empty\nrun: {{ agents: [shaky] }}\ncases:\n{cases}");
    project.write("evals/e.practicum.yaml", &eval);
    project
}

/// Who was asked when, in milliseconds.
fn asked(project: &Project) -> Vec<(u128, String)> {
    let log = std::fs::read_to_string(project.path().join("asked.log")).expect("a log");
    let line = |line: &str| {
        let (at, who) = line.split_once(' ').expect("two words");
        (at.parse::<u128>().expect("a time") / 1_000_000, who.to_owned())
    };
    log.lines().map(line).collect()
}

fn record(project: &Project) -> Value {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials");
    let first =
        trials.flatten().map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("case-1"));
    let text = std::fs::read_to_string(first.expect("the trial").join("checks.json")).expect("checks");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_rate_limit_pauses_the_queue_and_the_run_goes_on() {
    let project = project("rate_limited", 1, 3);
    let ran = project.run(&["run", "evals", "-j", "1", "--retry-wait", "300ms", "--json"]).exits(0);
    assert_eq!(ran.json()["totals"]["passed"], 3);
    let asked = asked(&project);
    let order: Vec<&str> = asked.iter().map(|(_, who)| who.as_str()).collect();
    assert_eq!(order, ["case-1", "case-1", "case-2", "case-3"], "nobody else began while it waited");
    assert!(asked[1].0 - asked[0].0 >= 300, "{asked:?}");
    assert!(ran.stderr.contains("all trials wait 0.3 s"), "{}", ran.stderr);
    let record = record(&project);
    assert_eq!(record["usage"]["input"], 20, "both tries were paid for");
    assert!(record["notes"][0].as_str().expect("a note").contains("come back later"), "{record}");
    let earlier = std::fs::read_dir(project.only_run().join("earlier")).expect("kept").count();
    assert_eq!(earlier, 1, "what the first try said is kept");
}

#[test]
fn a_failed_api_holds_up_only_its_own_trial() {
    let project = project("api_failed", 1, 2);
    let ran = project.run(&["run", "evals", "-j", "1", "--json"]).exits(0);
    assert_eq!(ran.json()["totals"]["passed"], 2);
    let mut order: Vec<String> = asked(&project).into_iter().map(|(_, who)| who).collect();
    // The first two began together.
    order[..2].sort();
    assert_eq!(order, ["case-1", "case-2", "case-1"]);
}

#[test]
fn a_rate_limit_never_scores() {
    for (ending, key) in [("rate_limited", "rate_limited"), ("api_failed", "api_failed")] {
        let project = project(ending, 99, 1);
        let summary = project.run(&["run", "evals", "--retries", "1", "--json"]).exits(3).json();
        assert_eq!(summary["cases"][0]["endings"][key], 1);
        assert_eq!(summary["totals"]["not_scored"], 1);
        assert_eq!(asked(&project).len(), 2);
    }
}

#[test]
fn a_failed_login_is_not_tried_again() {
    let project = project("auth_failed", 99, 1);
    project.run(&["run", "evals", "--json"]).exits(3);
    assert_eq!(asked(&project).len(), 1);
}

#[test]
fn while_a_run_waits_it_can_be_stopped_and_resumed() {
    let project = project("rate_limited", 1, 2);
    let mut command = project.practicum(&["run", "evals", "--retry-wait", "60s", "--json"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut running = command.spawn().expect("starts");
    let log = project.path().join("asked.log");
    crate::common::wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.lines().count() == 2));
    std::thread::sleep(std::time::Duration::from_millis(300));
    crate::common::interrupt(&running);
    assert_eq!(running.wait().expect("ends").code(), Some(130));
    let summary = project.run(&["run", "--resume", "--json"]).exits(0).json();
    assert_eq!(summary["totals"]["passed"], 2);
    let mut order: Vec<String> = asked(&project).into_iter().map(|(_, who)| who).collect();
    // The first two began at the same time.
    order[..2].sort();
    assert_eq!(order, ["case-1", "case-2", "case-1"]);
}

/// An agent that prints what Claude Code prints when the limit of a subscription is used up (recorded from the real
/// one): until the limit resets, and as long as the file `limited` is there.
fn limited_project(resets_in: u64) -> Project {
    let project = Project::new(&[("limited", "")]);
    let script = format!(
        r#"file={folder}/resets-at
if [ -e {folder}/limited ] && [ ! -e $file ]; then
  echo $(( $(date +%s) + {resets_in} )) > $file
fi
echo "$(date +%s)" >> {folder}/asked.log
echo '{{"type":"system","subtype":"init","session_id":"s","tools":[],"skills":[]}}'
if [ -e $file ] && [ $(date +%s) -lt $(cat $file) ]; then
  echo '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":'$(cat $file)',"rateLimitType":"five_hour","overageStatus":"rejected","isUsingOverage":false}},"uuid":"u","session_id":"s"}}'
  echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit","session_id":"s","terminal_reason":"api_error","usage":{{}}}}'
  exit 1
fi
echo '{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"done"}}],"usage":{{}}}},"session_id":"s"}}'
echo '{{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","usage":{{}}}}'
"#,
        folder = project.path().display()
    );
    project.write("agent.sh", &script);
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\nprobe = false\n[agents.limited]\ndecoder = \"claude-stream-json\"\n\
             command = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n",
            project.path().join("agent.sh").display()
        ),
    );
    project.write(
        "evals/e.practicum.yaml",
        "practicum: 1\nworkspace: empty\nrun: { agents: [limited] }\ncases:\n\
         \x20 - { id: one, prompt: one, checks: [{ contains: done }] }\n\
         \x20 - { id: two, prompt: two, checks: [{ contains: done }] }\n",
    );
    project
}

#[test]
fn a_usage_limit_is_waited_for_until_it_resets() {
    let project = limited_project(4);
    // Retries of the usual kind would not wait long enough, and there are none.
    let ran = project.run(&["run", "evals", "-j", "1", "--retries", "0", "--json"]).exits(0);
    assert_eq!(ran.json()["totals"]["passed"], 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("all trials wait"), "{}", ran.stderr);
    let asked = std::fs::read_to_string(project.path().join("asked.log")).expect("a log");
    let asked: Vec<u64> = asked.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(asked.len(), 3, "nobody asked while the limit was used up");
    assert!(asked[1] - asked[0] >= 4, "{asked:?}");
}

#[test]
fn a_usage_limit_that_resets_too_late_ends_a_run_that_can_be_resumed() {
    let project = limited_project(8 * 3600);
    let ran = project.run(&["run", "evals", "-j", "1"]).exits(3);
    assert!(ran.stderr.contains("resets in 8 h"), "{}", ran.stderr);
    let asked = || std::fs::read_to_string(project.path().join("asked.log")).expect("a log").lines().count();
    assert_eq!(asked(), 1, "the second trial did not ask in vain");
    // The limit is reset.
    std::fs::remove_file(project.path().join("limited")).expect("removed");
    std::fs::remove_file(project.path().join("resets-at")).expect("removed");
    let ran = project.run(&["run", "--resume", "--json"]).exits(0);
    assert_eq!(ran.json()["totals"]["passed"], 2, "{}", ran.stderr);
    assert_eq!(asked(), 3);
}

#[test]
fn until_is_a_time_of_the_day() {
    let project = limited_project(4 * 3600);
    // Less than four hours from now in any case: the next full minute but one.
    let soon = std::process::Command::new("date").args(["-d", "2 minutes", "+%H:%M"]).output().expect("date");
    let soon = String::from_utf8_lossy(&soon.stdout).trim().to_owned();
    let ran = project.run(&["run", "evals", "-j", "1", "--until", &soon]).exits(3);
    assert!(ran.stderr.contains("longer than this run may wait"), "{}", ran.stderr);
    let ran = project.run(&["run", "evals", "--until", "25:00"]).exits(2);
    assert!(ran.stderr.contains("07:00"), "{}", ran.stderr);
}

//! A run on workers is the run that one machine would have made.

use serde_json::Value;

use crate::setup::{TestServer, events, files_below, finished_cases, project, run, without_times};

fn json_of(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn a_run_on_two_workers_is_the_run_of_one_machine() {
    let server = TestServer::start();
    let project = project(9, "1ms");
    let local = project.run(&["run", "gull", "--sandbox", "off", "--json"]);
    let local_run = project.path().join("local-run");
    std::fs::rename(project.only_run(), &local_run).expect("moved");
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    let _workers = [server.worker("one", &["-j", "2"]), server.worker("two", &[])];
    let shared = run(&project, &server, &[]);
    assert_eq!(shared.code, local.code, "{}", shared.stderr);
    assert_eq!(without_times(shared.json()), without_times(local.json()));
    let (local, shared) = (local_run, project.only_run());
    assert_eq!(files_below(&shared), files_below(&local));
    for file in files_below(&local).iter().filter(|file| file.ends_with("checks.json")) {
        let [local, shared] = [&local, &shared].map(|run| without_times(json_of(&run.join(file))));
        assert_eq!(shared, local, "{file}");
    }
    for file in files_below(&local).iter().filter(|file| file.ends_with("output.txt")) {
        let [local, shared] = [&local, &shared].map(|run| std::fs::read(run.join(file)).expect("read"));
        assert_eq!(shared, local, "{file}");
    }
    assert_eq!(finished_cases(&project).len(), 9);
    // What workers made is as good as one's own: it is reused, graded again and shown.
    let again = run(&project, &server, &[]);
    let finished = events(&project, "trial_finished");
    let reused = finished.iter().filter(|line| line["record"]["reused_from"].is_string()).count();
    assert_eq!((finished.len(), reused), (18, 9), "{}", again.stderr);
    project.run(&["show", "latest", "case-1"]).exits(0);
}

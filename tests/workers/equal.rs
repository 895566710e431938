//! A run on workers is the run that one machine would have made.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Project, Ran};
use crate::setup::{TestServer, events, files_below, finished_cases, project, run, without_times};

/// The run of one machine, to compare with.
pub struct LocalRun {
    code: i32,
    folder: PathBuf,
}

impl LocalRun {
    /// Runs a project here and puts its record aside.
    pub fn of(project: &Project) -> Self {
        let ran = project.run(&["run", "gull", "--sandbox", "off", "--json", "--no-cache"]);
        let folder = project.path().join(".practicum-of-one-machine");
        std::fs::rename(project.only_run(), &folder).expect("moved");
        std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
        Self { code: ran.code, folder }
    }

    /// Compares the only run of the project with this one: everything must be equal but ids and times.
    #[track_caller]
    pub fn assert_equals_run_of(&self, project: &Project) {
        let shared = project.only_run();
        assert_eq!(files_below(&shared), files_below(&self.folder));
        for file in files_below(&self.folder) {
            let [own, other] = [&self.folder, &shared].map(|run| run.join(&file));
            if file.ends_with("checks.json") || file == "summary.json" {
                assert_eq!(without_times(json_of(&other)), without_times(json_of(&own)), "{file}");
            } else if file.ends_with("output.txt") {
                let [own, other] = [own, other].map(|path| std::fs::read(path).expect("a file"));
                assert!(own == other, "{file}");
            }
        }
    }

    #[track_caller]
    pub fn assert_ended_as(&self, ran: &Ran) {
        assert_eq!(ran.code, self.code, "{}", ran.stderr);
    }
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn a_run_on_two_workers_is_the_run_of_one_machine() {
    let server = TestServer::start();
    let project = project(9, "1ms");
    let local = LocalRun::of(&project);
    let _workers = [server.worker("one", &["-j", "2"]), server.worker("two", &[])];
    let shared = run(&project, &server, &[]);
    local.assert_ended_as(&shared);
    local.assert_equals_run_of(&project);
    assert_eq!(finished_cases(&project).len(), 9);
    // What workers made is as good as one's own: it is reused, graded again and shown.
    let again = run(&project, &server, &[]);
    let finished = events(&project, "trial_finished");
    let reused = finished.iter().filter(|line| line["record"]["reused_from"].is_string()).count();
    assert_eq!((finished.len(), reused), (18, 9), "{}", again.stderr);
    project.run(&["show", "latest", "case-1"]).exits(0);
}

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::process::{Cancel, Output, supervise};
use super::tree::see_out;
use crate::agents::Launch;
use crate::observe::ProcessEnd;
use crate::sandbox::Confinement;

/// How long a setup or teardown script may take.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
    Done,
    Failed(String),
}

/// Where a script runs: the trial's own home and workspace.
pub struct ScriptScene<'s> {
    pub folder: &'s Path,
    pub home: &'s Path,
    pub tmp: &'s Path,
    pub user_env: &'s BTreeMap<String, String>,
    pub walls: &'s Confinement,
    pub marker: &'s str,
    /// Where its output is kept.
    pub record: &'s Path,
}

pub async fn run_script(script: &str, scene: &ScriptScene<'_>, cancel: &Cancel) -> ScriptEnd {
    let ScriptScene { folder, home, tmp, user_env, walls, marker, record } = scene;
    let inherited = ["PATH", "LANG", "LC_ALL", "TZ"]
        .into_iter()
        .filter_map(|name| user_env.get(name).map(|value| (name.to_owned(), value.clone())));
    let mut env: BTreeMap<String, String> = inherited.collect();
    env.insert("HOME".to_owned(), home.display().to_string());
    env.insert("TMPDIR".to_owned(), tmp.display().to_string());
    let launch = Launch {
        program: PathBuf::from("/bin/bash"),
        args: vec!["-c".to_owned(), script.to_owned()],
        env,
        files: Vec::new(),
        link: None,
        stdin: None,
    };
    let launch = walls.wrap(launch, folder);
    let output = Output { stdout: record.join("scripts.txt"), stderr: record.join("scripts.txt") };
    let supervised = supervise(&launch, folder, marker, LIMIT, &output, cancel).await;
    if walls.have_a_first_process() {
        see_out(marker).await;
    }
    match supervised.end {
        ProcessEnd::Exited(0) => ScriptEnd::Done,
        ProcessEnd::Exited(code) => ScriptEnd::Failed(format!("it exited with code {code}")),
        ProcessEnd::Signalled(signal) => ScriptEnd::Failed(format!("signal {signal} killed it")),
        ProcessEnd::TimedOut => ScriptEnd::Failed(format!("it took longer than {} seconds", LIMIT.as_secs())),
        ProcessEnd::Cancelled => ScriptEnd::Failed("the run was stopped".to_owned()),
        ProcessEnd::NotLaunched(why) => ScriptEnd::Failed(why),
    }
}

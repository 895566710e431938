//! Code of an eval file runs on the user's machine, so the user must say that it may.

use std::io::{IsTerminal, Write};

use anyhow::bail;

use crate::cli::{counted, tell};
use crate::model::{Case, CheckKind};
use crate::plan::Plan;
use crate::report::safe;

/// Whether the plan's scripts may run. Without anyone to ask, what is not trusted does not begin.
pub fn trust(plan: &Plan, trusted: bool) -> anyhow::Result<bool> {
    let scripts: Vec<String> = plan
        .suites
        .iter()
        .flat_map(|planned| planned.suite.cases.iter().map(|case| (&planned.suite.name, case)))
        .flat_map(|(suite, case)| {
            scripts_of(case).map(move |(what, script)| {
                let case = &case.id;
                format!("{what} of {case} in suite {suite}:\n{script}")
            })
        })
        .collect();
    if trusted || scripts.is_empty() {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!(
            "the evals hold {} that would run on this machine; read what they do, then say --trust",
            counted(scripts.len(), "script")
        );
    }
    for script in &scripts {
        say!("--- {}", safe(script));
    }
    tell(&format!("Run {}? [y/N] ", counted(scripts.len(), "script")));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !yes {
        say!("not trusted: the cases with scripts are skipped");
    }
    Ok(yes)
}

/// The code that comes with a case, and what it is there for.
fn scripts_of(case: &Case) -> impl Iterator<Item = (&'static str, String)> {
    let around = [("setup", &case.room.setup), ("teardown", &case.room.teardown)];
    let around = around.into_iter().filter_map(|(what, script)| Some((what, script.clone()?)));
    let checks = case.checks.iter().filter_map(|check| match &check.kind {
        CheckKind::Exact(rule) if rule.runs_code() => Some(("check", rule.value().to_string())),
        CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => {
            None
        }
    });
    around.chain(checks)
}

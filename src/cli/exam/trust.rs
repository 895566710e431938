//! Code of an eval file runs on the user's machine, so the user must say that it may.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use anyhow::bail;

use crate::cli::{counted, tell};
use crate::plan::Plan;
use crate::report::safe;

/// Whether the scripts of the planned trials may run. `false` only where the user wants to run the other
/// cases without them. Where there is nobody to ask, or the user declines, nothing is run.
pub fn trust(plan: &Plan, trusted: bool) -> anyhow::Result<bool> {
    let selected: BTreeSet<(usize, usize)> =
        plan.trials.iter().map(|trial| (trial.suite, trial.case)).collect();
    let mut scripts = Vec::new();
    let mut cases_with_scripts = 0;
    for (suite, case) in &selected {
        let suite = &plan.suites[*suite].suite;
        let case = &suite.cases[*case];
        let before = scripts.len();
        scripts.extend(
            case.scripts()
                .map(|(what, script)| format!("{what} of {} in suite {}:\n{script}", case.id, suite.name)),
        );
        cases_with_scripts += usize::from(scripts.len() > before);
    }
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
    let others = selected.len() - cases_with_scripts;
    let skip = match others {
        0 => String::new(),
        others => {
            format!(", s = only the {} without scripts; the run stays incomplete", counted(others, "case"))
        }
    };
    tell(&format!("Run {}? [y = yes, N = run nothing{skip}] ", counted(scripts.len(), "script")));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(true),
        "s" | "S" | "skip" if others > 0 => {
            say!("not trusted: {} with scripts not run", counted(cases_with_scripts, "case"));
            Ok(false)
        }
        _ => bail!("the scripts were not trusted, so nothing was run"),
    }
}

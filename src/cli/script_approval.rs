//! Asks whether scripts of the evals may run. They are code that runs on the user's machine, so the user must
//! allow it.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use crate::cli::{count_with_noun, print_to_stderr};
use crate::report::terminal_safe;
use crate::session::{ScriptApproval, ScriptToApprove, SessionError};

/// Asks at the terminal whether the scripts may run. Without a terminal, or if the user declines, nothing runs.
pub fn ask_about_scripts(
    scripts: &[ScriptToApprove],
    cases_without: usize,
) -> Result<ScriptApproval, SessionError> {
    let number = count_with_noun(scripts.len(), "script");
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(SessionError::Refused(format!(
            "the evals hold {number} that would run on this machine; read what they do, then say --trust"
        )));
    }
    let cases_with: BTreeSet<(&str, &str)> =
        scripts.iter().map(|script| (script.suite.as_str(), script.case.as_str())).collect();
    for ScriptToApprove { suite, case, purpose, text } in scripts {
        say!("--- {}", terminal_safe(&format!("{purpose} of {case} in suite {suite}:\n{text}")));
    }
    let skip = match cases_without {
        0 => String::new(),
        others => {
            format!(
                ", s = only the {} without scripts; the run stays incomplete",
                count_with_noun(others, "case")
            )
        }
    };
    print_to_stderr(&format!("Run {number}? [y = yes, N = run nothing{skip}] "));
    let mut answer = String::new();
    let read = std::io::stderr().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
    read.map_err(|error| SessionError::Refused(format!("cannot ask: {error}")))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(ScriptApproval::Run),
        "s" | "S" | "skip" if cases_without > 0 => {
            say!(
                "{} with scripts not run, because the scripts are not trusted",
                count_with_noun(cases_with.len(), "case")
            );
            Ok(ScriptApproval::SkipCases)
        }
        _ => Err(SessionError::Refused("the scripts were not trusted, so nothing was run".to_owned())),
    }
}

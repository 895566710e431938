//! Asks whether the user trusts what a project would run on their machine.

use std::io::{IsTerminal, Write};

use crate::cli::{count_with_noun, print_to_stderr};
use crate::report::terminal_safe;
use crate::session::{SessionError, TrustAnswer, TrustRequest};

/// Asks at the terminal. Without a terminal, nothing is trusted.
pub fn ask_for_trust(request: &TrustRequest<'_>) -> Result<TrustAnswer, SessionError> {
    let refusal = request.refusal();
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return match refusal {
            Some(why) => Err(SessionError::Refused(why)),
            None => Ok(TrustAnswer::Ignore),
        };
    }
    for item in request.items {
        say!("--- {}", terminal_safe(&format!("{}:\n{}", item.what, item.text)));
    }
    let no = if refusal.is_some() { "run nothing" } else { "run without it" };
    let skip = match request.can_skip_cases() {
        true => format!(
            ", s = only the {} without scripts; the run stays incomplete",
            count_with_noun(request.cases_without, "case")
        ),
        false => String::new(),
    };
    let items = count_with_noun(request.items.len(), "item");
    print_to_stderr(&format!(
        "Trust {items} of this project, until one changes? [y = yes, o = only this once, N = {no}{skip}] "
    ));
    let mut answer = String::new();
    let read = std::io::stderr().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
    read.map_err(|error| SessionError::Refused(format!("cannot ask: {error}")))?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(TrustAnswer::Remember),
        "o" | "once" => Ok(TrustAnswer::Once),
        "s" | "skip" if request.can_skip_cases() => {
            say!("cases with scripts are not run, because the scripts are not trusted");
            Ok(TrustAnswer::SkipCases)
        }
        _ if refusal.is_none() => Ok(TrustAnswer::Ignore),
        _ => Err(SessionError::Refused("the project was not trusted, so nothing was run".to_owned())),
    }
}

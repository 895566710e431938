//! From what a process did to what was seen.
//!
//! In: `RawRun`, the process turns of one trial, and the files changed. Out: `Observation`.
//! Never: decides pass or fail.

use practicum_agents::agents::{Said, Transcript};
use practicum_core::model::{Ended, FileChange, Observation, Step};

/// One trial's processes, one for each turn that was reached.
#[derive(Debug, Clone, Default)]
pub struct RawRun {
    pub turns: Vec<RawTurn>,
    pub seconds: f64,
}

#[derive(Debug, Clone)]
pub struct RawTurn {
    pub prompt: String,
    pub transcript: Transcript,
    /// How much of the kept stream is of this turn.
    pub bytes: u64,
    pub process: ProcessEnd,
}

/// What became of one process, as the machine saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    Exited(i32),
    Signalled(i32),
    /// Our time limit killed it.
    TimedOut,
    /// The user stopped the run.
    Cancelled,
    NotLaunched(String),
}

/// Folds the turns into one observation. `detect_questions` says whether a run that only asked
/// something counts as ended by asking.
pub fn observe(raw: RawRun, files: Vec<FileChange>, detect_questions: bool) -> Observation {
    let (ended, ended_because) = match raw.turns.last() {
        Some(last) => ending(&last.process, &last.transcript.said, detect_questions),
        None => (Ended::NotLaunched, None),
    };
    let mut seen = Observation {
        ended_because,
        files,
        turns: raw.turns.len(),
        seconds: raw.seconds,
        ..Observation::ended(ended)
    };
    for turn in raw.turns {
        // Another turn: what the last one said only as its output becomes a step.
        if seen.unstepped().is_some() {
            let said = std::mem::take(&mut seen.output);
            seen.steps.push(Step::Text(said));
        }
        let transcript = turn.transcript;
        seen.steps.push(Step::User(turn.prompt));
        seen.steps.extend(transcript.steps);
        seen.output = transcript.output;
        seen.skills_listed = transcript.skills_listed.or(seen.skills_listed);
        seen.commands_listed.extend(transcript.commands_listed);
        seen.activated.extend(transcript.activated);
        seen.refused.extend(transcript.refused);
        // What was not understood may have been a call.
        seen.hides_tools |= transcript.hides_tools || transcript.unread.is_some();
        seen.unread = seen.unread.or(transcript.unread);
        if transcript.totals_of_session {
            seen.usage = transcript.usage;
            seen.cost_usd = transcript.cost_usd.or(seen.cost_usd);
        } else {
            seen.usage.add(transcript.usage);
            seen.cost_usd = add(seen.cost_usd, transcript.cost_usd);
        }
        seen.api_calls = add(seen.api_calls, transcript.api_calls);
        seen.model = transcript.model.or(seen.model);
        seen.agent_version = transcript.version.or(seen.agent_version);
    }
    seen
}

fn add<T: std::ops::Add<Output = T>>(total: Option<T>, more: Option<T>) -> Option<T> {
    match (total, more) {
        (Some(total), Some(more)) => Some(total + more),
        (total, more) => total.or(more),
    }
}

/// What ended the run. What we did to the process comes first, then what the stream says of
/// itself, and the exit code only where the stream says nothing.
fn ending(process: &ProcessEnd, said: &Said, detect_questions: bool) -> (Ended, Option<String>) {
    match process {
        ProcessEnd::TimedOut => return (Ended::TimedOut, None),
        ProcessEnd::Cancelled => return (Ended::Cancelled, None),
        ProcessEnd::NotLaunched(why) => return (Ended::NotLaunched, Some(why.clone())),
        ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) => {}
    }
    match said {
        Said::RateLimited(why) => (Ended::RateLimited, Some(why.clone())),
        Said::AuthFailed(why) => (Ended::AuthFailed, Some(why.clone())),
        Said::ApiFailed(why) => (Ended::ApiFailed, Some(why.clone())),
        Said::OverBudget(why) => (Ended::OverBudget, Some(why.clone())),
        Said::Interrupted(why) => (Ended::Cancelled, Some(why.clone())),
        Said::Done | Said::Asked | Said::Nothing => match (process, said) {
            (ProcessEnd::Exited(0), Said::Asked) if detect_questions => (Ended::AskedUser, None),
            (ProcessEnd::Exited(0), Said::Nothing) => {
                (Ended::Crashed, Some("its stream broke off".to_owned()))
            }
            (ProcessEnd::Exited(0), _) => (Ended::Finished, None),
            (ProcessEnd::Exited(code), _) => (Ended::Crashed, Some(format!("it exited with code {code}"))),
            (ProcessEnd::Signalled(signal), _) => {
                (Ended::Crashed, Some(format!("signal {signal} killed it")))
            }
            (ProcessEnd::TimedOut | ProcessEnd::Cancelled | ProcessEnd::NotLaunched(_), _) => {
                (Ended::Crashed, None)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::Usage;

    #[test]
    fn tokens_and_money_of_a_session_are_not_counted_twice() {
        let turn = |input: u64, totals_of_session: bool| RawTurn {
            prompt: String::new(),
            transcript: Transcript {
                usage: Usage { input, ..Usage::default() },
                cost_usd: Some(input as f64),
                totals_of_session,
                ..Transcript::default()
            },
            bytes: 0,
            process: ProcessEnd::Exited(0),
        };
        for (turns, expected) in [
            (vec![turn(10, false), turn(15, false)], 25),
            (vec![turn(10, true), turn(15, true)], 15),
            // A turn that failed tells nothing; what the turns before it took stays.
            (vec![turn(10, true), turn(0, false)], 10),
        ] {
            let seen = observe(RawRun { turns, seconds: 0.0 }, Vec::new(), false);
            assert_eq!((seen.usage.input, seen.cost_usd), (expected, Some(expected as f64)));
        }
    }

    #[test]
    fn every_turn_of_a_plain_answer_is_kept_once() {
        let turn = |said: &str| RawTurn {
            prompt: "p".into(),
            transcript: Transcript { output: said.into(), said: Said::Done, ..Transcript::default() },
            bytes: 0,
            process: ProcessEnd::Exited(0),
        };
        let raw = RawRun { turns: vec![turn("one"), turn("two")], seconds: 1.0 };
        let seen = observe(raw, Vec::new(), false);
        assert_eq!((seen.output.as_str(), seen.all_text().as_str()), ("two", "one\n\ntwo"));
    }

    #[test]
    fn endings() {
        let text = || "why".to_owned();
        for (process, said, detect, expected) in [
            (ProcessEnd::Exited(0), Said::Done, true, Ended::Finished),
            (ProcessEnd::Exited(0), Said::Asked, true, Ended::AskedUser),
            (ProcessEnd::Exited(0), Said::Asked, false, Ended::Finished),
            (ProcessEnd::Exited(0), Said::Nothing, true, Ended::Crashed),
            (ProcessEnd::Exited(3), Said::Done, true, Ended::Crashed),
            (ProcessEnd::Exited(1), Said::Nothing, true, Ended::Crashed),
            (ProcessEnd::Signalled(9), Said::Nothing, true, Ended::Crashed),
            (ProcessEnd::Exited(1), Said::RateLimited(text()), true, Ended::RateLimited),
            (ProcessEnd::Exited(1), Said::AuthFailed(text()), true, Ended::AuthFailed),
            (ProcessEnd::Exited(1), Said::ApiFailed(text()), true, Ended::ApiFailed),
            (ProcessEnd::Exited(1), Said::OverBudget(text()), true, Ended::OverBudget),
            (ProcessEnd::Exited(0), Said::Interrupted(text()), true, Ended::Cancelled),
            (ProcessEnd::TimedOut, Said::Done, true, Ended::TimedOut),
            (ProcessEnd::Cancelled, Said::Nothing, true, Ended::Cancelled),
            (ProcessEnd::NotLaunched(text()), Said::Nothing, true, Ended::NotLaunched),
        ] {
            assert_eq!(ending(&process, &said, detect).0, expected, "{process:?} {said:?}");
        }
    }
}

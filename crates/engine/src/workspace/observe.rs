//! Turns the output of processes into an observation.
//!
//! In: `RawRun` (the process of each turn of a trial) and the files that changed. Out: `Observation`. Never:
//! decides pass or fail.

use practicum_agents::agents::{StreamEnd, StreamTranscript, skills_read_in, unanswered_calls_in};
use practicum_core::model::{AgentEnding, FileChange, Observation, Step};

/// The processes of one trial, one for each turn that was reached.
#[derive(Debug, Clone, Default)]
pub struct RawRun {
    pub turns: Vec<RawTurn>,
    pub seconds: f64,
}

/// One turn of a trial: its prompt, the decoded stream, and how the process ended.
#[derive(Debug, Clone)]
pub struct RawTurn {
    pub prompt: String,
    pub transcript: StreamTranscript,
    /// The length of this turn in the stored stream, in bytes.
    pub bytes: u64,
    pub process: ProcessEnd,
}

/// How one process ended, as the operating system reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    Exited(i32),
    Signalled(i32),
    /// This program killed the process at its time limit.
    TimedOut,
    /// This program killed the process, because it used more than a limit allows. The text says which.
    OverLimit(String),
    /// The user stopped the run.
    Cancelled,
    NotLaunched(String),
}

/// Combines the turns into one observation. `detect_questions` says whether a run that only asked a question
/// counts as ended by asking.
pub fn observe(raw: RawRun, files: Vec<FileChange>, detect_questions: bool) -> Observation {
    let (ended, ended_because) = match raw.turns.last() {
        Some(last) => run_ending(&last.process, &last.transcript.end, detect_questions),
        None => (AgentEnding::NotLaunched, None),
    };
    let mut seen = Observation {
        ended_because,
        files,
        turns: raw.turns.len(),
        seconds: raw.seconds,
        ..Observation::with_ending(ended)
    };
    seen.limit_resets_at = raw.turns.last().and_then(|last| last.transcript.limit_resets_at);
    for turn in raw.turns {
        // A new turn begins, so the previous output becomes a step unless it already is one.
        if seen.output_outside_steps().is_some() {
            let said = std::mem::take(&mut seen.output);
            seen.steps.push(Step::Text(said));
        }
        let transcript = turn.transcript;
        seen.activated.extend(transcript.activations);
        seen.activated.extend(skills_read_in(&transcript.steps));
        seen.uncertain.extend(transcript.uncertain);
        seen.uncertain.extend(unanswered_calls_in(&transcript.steps));
        seen.steps.push(Step::User(turn.prompt));
        seen.steps.extend(transcript.steps);
        seen.output = transcript.output;
        seen.skills_listed = transcript.skills_listed.or(seen.skills_listed);
        seen.commands_listed.extend(transcript.commands_listed);
        seen.refused.extend(transcript.refused_skills);
        // An unread part of the stream may have contained a tool call.
        seen.hides_tools |= transcript.hides_tools || transcript.unread_reason.is_some();
        seen.unread = seen.unread.or(transcript.unread_reason);
        if transcript.totals_of_session {
            seen.usage = transcript.usage;
        } else {
            seen.usage.add(transcript.usage);
        }
        seen.cost_usd = match transcript.totals_of_session || transcript.cost_of_session {
            true => transcript.cost_usd.or(seen.cost_usd),
            false => add(seen.cost_usd, transcript.cost_usd),
        };
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

/// Decides how the run ended. What this program did to the process comes first, then what the stream says. The
/// exit code counts only if the stream says nothing.
fn run_ending(
    process: &ProcessEnd,
    said: &StreamEnd,
    detect_questions: bool,
) -> (AgentEnding, Option<String>) {
    match process {
        ProcessEnd::TimedOut => return (AgentEnding::TimedOut, None),
        ProcessEnd::OverLimit(why) => return (AgentEnding::OverLimit, Some(why.clone())),
        ProcessEnd::Cancelled => return (AgentEnding::Cancelled, None),
        ProcessEnd::NotLaunched(why) => return (AgentEnding::NotLaunched, Some(why.clone())),
        ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) => {}
    }
    match said {
        StreamEnd::RateLimited(why) => (AgentEnding::RateLimited, Some(why.clone())),
        StreamEnd::AuthFailed(why) => (AgentEnding::AuthFailed, Some(why.clone())),
        StreamEnd::ApiFailed(why) => (AgentEnding::ApiFailed, Some(why.clone())),
        StreamEnd::OverBudget(why) => (AgentEnding::OverBudget, Some(why.clone())),
        StreamEnd::Interrupted(why) => (AgentEnding::Cancelled, Some(why.clone())),
        StreamEnd::Done | StreamEnd::AskedUser | StreamEnd::BrokenOff => match (process, said) {
            (ProcessEnd::Exited(0), StreamEnd::AskedUser) if detect_questions => {
                (AgentEnding::AskedUser, None)
            }
            (ProcessEnd::Exited(0), StreamEnd::BrokenOff) => {
                (AgentEnding::Crashed, Some("its stream broke off".to_owned()))
            }
            (ProcessEnd::Exited(0), _) => (AgentEnding::Finished, None),
            (ProcessEnd::Exited(code), _) => {
                (AgentEnding::Crashed, Some(format!("it exited with code {code}")))
            }
            (ProcessEnd::Signalled(signal), _) => {
                (AgentEnding::Crashed, Some(format!("signal {signal} killed it")))
            }
            (
                ProcessEnd::TimedOut
                | ProcessEnd::OverLimit(_)
                | ProcessEnd::Cancelled
                | ProcessEnd::NotLaunched(_),
                _,
            ) => (AgentEnding::Crashed, None),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::TokenUsage;

    #[test]
    fn tokens_and_money_of_a_session_are_not_counted_twice() {
        let turn = |input: u64, totals_of_session: bool| RawTurn {
            prompt: String::new(),
            transcript: StreamTranscript {
                usage: TokenUsage { input, ..TokenUsage::default() },
                cost_usd: Some(input as f64),
                totals_of_session,
                ..StreamTranscript::default()
            },
            bytes: 0,
            process: ProcessEnd::Exited(0),
        };
        for (turns, expected) in [
            (vec![turn(10, false), turn(15, false)], 25),
            (vec![turn(10, true), turn(15, true)], 15),
            // A failed turn reports nothing, so the values of the turns before it stay.
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
            transcript: StreamTranscript {
                output: said.into(),
                end: StreamEnd::Done,
                ..StreamTranscript::default()
            },
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
            (ProcessEnd::Exited(0), StreamEnd::Done, true, AgentEnding::Finished),
            (ProcessEnd::Exited(0), StreamEnd::AskedUser, true, AgentEnding::AskedUser),
            (ProcessEnd::Exited(0), StreamEnd::AskedUser, false, AgentEnding::Finished),
            (ProcessEnd::Exited(0), StreamEnd::BrokenOff, true, AgentEnding::Crashed),
            (ProcessEnd::Exited(3), StreamEnd::Done, true, AgentEnding::Crashed),
            (ProcessEnd::Exited(1), StreamEnd::BrokenOff, true, AgentEnding::Crashed),
            (ProcessEnd::Signalled(9), StreamEnd::BrokenOff, true, AgentEnding::Crashed),
            (ProcessEnd::Exited(1), StreamEnd::RateLimited(text()), true, AgentEnding::RateLimited),
            (ProcessEnd::Exited(1), StreamEnd::AuthFailed(text()), true, AgentEnding::AuthFailed),
            (ProcessEnd::Exited(1), StreamEnd::ApiFailed(text()), true, AgentEnding::ApiFailed),
            (ProcessEnd::Exited(1), StreamEnd::OverBudget(text()), true, AgentEnding::OverBudget),
            (ProcessEnd::Exited(0), StreamEnd::Interrupted(text()), true, AgentEnding::Cancelled),
            (ProcessEnd::TimedOut, StreamEnd::Done, true, AgentEnding::TimedOut),
            (ProcessEnd::OverLimit(text()), StreamEnd::Done, true, AgentEnding::OverLimit),
            (ProcessEnd::Cancelled, StreamEnd::BrokenOff, true, AgentEnding::Cancelled),
            (ProcessEnd::NotLaunched(text()), StreamEnd::BrokenOff, true, AgentEnding::NotLaunched),
        ] {
            assert_eq!(run_ending(&process, &said, detect).0, expected, "{process:?} {said:?}");
        }
    }
}

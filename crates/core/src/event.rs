//! The events of a run, sent as they happen.
//!
//! In: nothing. Out: `RunEvent`, and `EventSink` for receivers. Never: does anything itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Condition, ProbeRecord, SkillJudgement, Summary, TrialId, TrialRecord};

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[schemars(title = "Event of a run (a line of events.jsonl)")]
pub enum RunEvent {
    /// The run started. This is the first event of every run.
    RunStarted {
        #[schemars(extend("const" = 1))]
        schema_version: u32,
        run: String,
        at: String,
        trials: usize,
    },
    /// A probe ended. Probes run before the first trial.
    ProbeFinished {
        probe: Box<ProbeRecord>,
    },
    TrialStarted {
        trial: TrialId,
        suite: String,
        case: String,
        condition: Condition,
        attempt: u32,
    },
    // Boxed because it is far larger than the other variants.
    TrialFinished {
        record: Box<TrialRecord>,
    },
    /// A judge was asked about the text of a skill.
    SkillJudged {
        judged: Box<SkillJudgement>,
    },
    /// A message for people about the whole run.
    Notice {
        text: String,
    },
    RunFinished {
        summary: Box<Summary>,
    },
}

/// A receiver of events. A sink that fails is reported and gets no more events. It does not stop the run, unless
/// it is the sink that stores the results: trials whose results are lost are not worth their cost.
pub trait EventSink: Send {
    fn name(&self) -> &'static str;

    fn keeps_record(&self) -> bool {
        false
    }

    fn receive(&mut self, event: &RunEvent) -> std::io::Result<()>;
}

/// The receivers of events, in order. The store comes first.
pub struct EventSinks {
    sinks: Vec<Box<dyn EventSink>>,
    lost_record: Option<String>,
}

impl EventSinks {
    pub fn new(sinks: Vec<Box<dyn EventSink>>) -> Self {
        Self { sinks, lost_record: None }
    }

    /// Gives the error of the sink that stores the results, if it failed.
    pub fn lost_record(&self) -> Option<&str> {
        self.lost_record.as_deref()
    }

    /// Sends an event to every sink. Gives the names of those that failed; they get no more events.
    pub fn send(&mut self, event: &RunEvent) -> Vec<(&'static str, std::io::Error)> {
        let mut failed = Vec::new();
        self.sinks.retain_mut(|sink| match sink.receive(event) {
            Ok(()) => true,
            Err(error) => {
                if sink.keeps_record() {
                    self.lost_record = Some(error.to_string());
                }
                failed.push((sink.name(), error));
                false
            }
        });
        failed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    struct Broken {
        keeps_record: bool,
    }

    impl EventSink for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }

        fn keeps_record(&self) -> bool {
            self.keeps_record
        }

        fn receive(&mut self, _: &RunEvent) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }

    struct Counting(Arc<Mutex<usize>>);

    impl EventSink for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn receive(&mut self, _: &RunEvent) -> std::io::Result<()> {
            *self.0.lock().expect("unpoisoned") += 1;
            Ok(())
        }
    }

    #[test]
    fn a_broken_sink_fails_alone_and_once() {
        for keeps_record in [false, true] {
            let heard = Arc::new(Mutex::new(0));
            let mut sinks = EventSinks::new(vec![
                Box::new(Broken { keeps_record }),
                Box::new(Counting(Arc::clone(&heard))),
            ]);
            let event = RunEvent::Notice { text: "x".to_owned() };
            assert_eq!(sinks.lost_record(), None);
            assert_eq!(sinks.send(&event).len(), 1);
            assert_eq!(sinks.send(&event).len(), 0);
            assert_eq!(*heard.lock().expect("unpoisoned"), 2);
            assert_eq!(sinks.lost_record().is_some(), keeps_record);
        }
    }
}

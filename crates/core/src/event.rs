//! The events of a run, sent as they happen.
//!
//! In: nothing. Out: `RunEvent`, and `EventSink` for receivers. Never: does anything itself.

use std::sync::Arc;

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
        /// The version of the format of these events.
        #[schemars(extend("const" = 1))]
        schema_version: u32,
        /// The run's id.
        run: String,
        /// The time of the start, in UTC.
        at: String,
        /// The number of planned trials.
        trials: usize,
    },
    /// A probe ended. Probes run before the first trial.
    ProbeFinished {
        /// The result of the probe.
        probe: Box<ProbeRecord>,
    },
    /// A trial started.
    TrialStarted {
        /// The id of the trial.
        trial: TrialId,
        /// The name of the suite.
        suite: String,
        /// The id of the case.
        case: String,
        /// The agent, model, arm and mode.
        condition: Condition,
        /// The number of the repetition, from 1.
        attempt: u32,
        /// The worker that runs the trial; `None` if it runs on the machine of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
    /// A trial ended, and its folder is complete.
    // Boxed because it is far larger than the other variants.
    TrialFinished {
        /// The result of the trial.
        record: Box<TrialRecord>,
    },
    /// A judge was asked about the text of a skill.
    SkillJudged {
        /// The verdicts of the judge.
        judged: Box<SkillJudgement>,
    },
    /// A message for people about the whole run.
    Notice {
        /// The message.
        text: String,
    },
    /// The run ended. This is the last event of every run that was not killed.
    RunFinished {
        /// The results of the run. They are shared, because those of ten thousand cases are large.
        summary: Arc<Summary>,
    },
}

/// A receiver of events. A sink that fails is reported and gets no more events. It does not stop the run, unless
/// it is the sink that stores the results: trials whose results are lost are not worth their cost.
pub trait EventSink: Send {
    /// Gives the name of the sink for messages about its failure.
    fn name(&self) -> &'static str;

    /// Says whether this sink stores the results, so that the run must stop if it fails.
    fn keeps_record(&self) -> bool {
        false
    }

    /// Takes an event. After an error, the sink gets no more events.
    fn receive(&mut self, event: &RunEvent) -> std::io::Result<()>;
}

/// The receivers of events, in order. The store comes first.
pub struct EventSinks {
    sinks: Vec<Box<dyn EventSink>>,
    lost_record: Option<String>,
}

impl EventSinks {
    /// Makes a list of receivers, which get each event in this order.
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

    /// Sends an event to every sink, and tells the others about those that failed.
    pub fn send_and_report(&mut self, event: &RunEvent) {
        for (name, error) in self.send(event) {
            let text = format!("{name} failed and gets no more events: {error}");
            // If the others fail too, there is nowhere left to report it.
            let _ = self.send(&RunEvent::Notice { text });
        }
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
            let received = Arc::new(Mutex::new(0));
            let mut sinks = EventSinks::new(vec![
                Box::new(Broken { keeps_record }),
                Box::new(Counting(Arc::clone(&received))),
            ]);
            let event = RunEvent::Notice { text: "x".to_owned() };
            assert_eq!(sinks.lost_record(), None);
            assert_eq!(sinks.send(&event).len(), 1);
            assert_eq!(sinks.send(&event).len(), 0);
            assert_eq!(*received.lock().expect("unpoisoned"), 2);
            assert_eq!(sinks.lost_record().is_some(), keeps_record);
        }
    }
}

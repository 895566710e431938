//! Somebody who may write to the server and does not have the project's key.

use async_nats::jetstream::{self, kv};
use practicum_workers::messages::{TRIALS_STREAM, TrialTask, run_bucket};
use serde_json::Value;

use crate::setup::wait_for;

pub struct Stranger {
    runtime: tokio::runtime::Runtime,
    pub jetstream: jetstream::Context,
}

/// A trial that waits at the server.
pub struct WaitingTrial {
    pub subject: String,
    pub headers: async_nats::HeaderMap,
    pub payload: Vec<u8>,
    pub task: TrialTask,
}

impl Stranger {
    pub fn connect(url: &str) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let client = runtime.block_on(async_nats::connect(url)).expect("a connection");
        // It starts a task of its own.
        let jetstream = runtime.block_on(async { jetstream::new(client) });
        Self { runtime, jetstream }
    }

    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Waits until so many trials are at the server, and gives them. No worker may have begun.
    pub fn waiting_trials(&self, count: u64) -> Vec<WaitingTrial> {
        let state = || {
            let stream = self.wait(self.jetstream.get_stream(TRIALS_STREAM)).ok()?;
            Some(stream.cached_info().state.clone())
        };
        wait_for("the trials", || state().is_some_and(|state| state.messages >= count));
        let stream = self.wait(self.jetstream.get_stream(TRIALS_STREAM)).expect("a stream");
        let first = state().expect("a state").first_sequence;
        let message = |number| self.wait(stream.get_raw_message(first + number)).expect("a message");
        let trial = |message: async_nats::jetstream::message::StreamMessage| {
            let document: Value = serde_json::from_slice(&message.payload).expect("JSON");
            let task = serde_json::from_value(document["document"].clone()).expect("a task");
            let subject = message.subject.to_string();
            WaitingTrial { subject, headers: message.headers, payload: message.payload.to_vec(), task }
        };
        (0..count).map(message).map(trial).collect()
    }

    pub fn bucket_of(&self, run: &str) -> kv::Store {
        self.wait(self.jetstream.get_key_value(run_bucket(run))).expect("a bucket")
    }
}

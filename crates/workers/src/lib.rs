//! Runs the trials of a run on other machines: a coordinator gives them to a NATS server, and workers take them from
//! there.
//!
//! In: a run that is planned here, or the address of a server with such runs. Out: the results, in an ordinary run
//! directory of the coordinator. Never: plans, grades or stores a trial in another way than a run on one machine.

#![warn(missing_docs)]
// Printing panics when the reader of the output has gone. A worker must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod archive;
#[doc(hidden)]
pub mod budget;
mod bundle;
mod coordinator;
#[doc(hidden)]
pub mod messages;
mod objects;
mod open_run;
mod pauses;
mod server;
mod shared_trial;
mod task;
mod worker;
mod worker_options;

pub use coordinator::NatsWorkers;
pub use server::NatsAccess;
pub use worker::{Worker, WorkerStop};
pub use worker_options::{OnWorkerEvent, WorkerEvent, WorkerOptions};

/// An error: a run cannot be shared, or a worker cannot work.
#[derive(Debug, thiserror::Error)]
pub enum WorkersError {
    /// The server cannot be used.
    #[error("{0}")]
    Server(String),
    /// The server did not do what it was asked to do.
    #[error("the NATS server could not {what}: {why}")]
    Request {
        /// What was asked.
        what: &'static str,
        /// What the server or the connection said.
        why: String,
    },
    /// A file at the server is not the one that was stored there.
    #[error("the stored file {0}")]
    Damaged(&'static str),
    /// The files of a run cannot be packed or unpacked.
    #[error("the files of the run cannot be shared: {0}")]
    Bundle(String),
}

impl WorkersError {
    /// Makes a function that says what the server was asked to do.
    pub(crate) fn request<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Request { what, why: error.to_string() }
    }
}

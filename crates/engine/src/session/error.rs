//! The errors of a session.

use crate::plan::settings::SettingsError;
use crate::session::run_setup::RunSetupError;
use crate::store::StoreError;

/// The reason why a run could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The run cannot be set up: its evals, settings, agents or judges cannot be used.
    #[error(transparent)]
    Intake(#[from] RunSetupError),
    /// The record of the run cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request cannot be carried out as it was made.
    #[error("{0}")]
    Refused(String),
    /// A file or a folder of the run could not be created or written.
    #[error("{what}: {error}")]
    Io {
        /// What could not be done.
        what: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

impl SessionError {
    /// Makes an I/O error with a description of what was tried.
    pub(super) fn io(what: &str) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.to_owned();
        move |error| Self::Io { what, error }
    }
}

impl From<SettingsError> for SessionError {
    fn from(error: SettingsError) -> Self {
        Self::Intake(error.into())
    }
}

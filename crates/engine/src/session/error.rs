//! The errors of a session.

use crate::run_setup::RunSetupError;
use crate::settings::SettingsError;
use crate::store::StoreError;

/// The reason why a run could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Intake(#[from] RunSetupError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request cannot be carried out as it was made.
    #[error("{0}")]
    Refused(String),
    /// A file or a folder of the run could not be created or written.
    #[error("{what}: {error}")]
    Io { what: String, error: std::io::Error },
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

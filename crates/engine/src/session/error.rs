//! Why a run could not begin or go on.

use crate::run_setup::RunSetupError;
use crate::settings::SettingsError;
use crate::store::StoreError;

/// Why a run could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Intake(#[from] RunSetupError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was asked for cannot be done as it was asked.
    #[error("{0}")]
    Refused(String),
    /// A file or a folder of the run could not be made or written.
    #[error("{what}: {error}")]
    Io { what: String, error: std::io::Error },
}

impl SessionError {
    /// An error of the machine, with what was tried.
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

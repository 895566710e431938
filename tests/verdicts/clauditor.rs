//! clauditor's files.

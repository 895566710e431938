//! Skillet's files.

//! BMad's files.

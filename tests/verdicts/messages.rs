//! Messages that misled.

//! Setup scripts, teardown scripts and trust.

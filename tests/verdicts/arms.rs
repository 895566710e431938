//! Arms that are compared, or left out.

//! One missing file blocks one case, not the rest.

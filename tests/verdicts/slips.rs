//! Small mistakes in files and arguments that were passed over in silence.

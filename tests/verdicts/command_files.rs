//! Skills that are a command file.

//! What a judge must quote, and what it is shown.

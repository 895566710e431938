//! Files that this program wrote are never staged and never part of a key.

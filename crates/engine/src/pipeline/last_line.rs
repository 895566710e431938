//! Reads the last line of a file that an agent wrote.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use practicum_core::tree::open_regular;

/// The part of the file that is looked at, from its end.
const MOST_BYTES: u64 = 16 * 1024;

/// Gives the last line of a file that is not blank, shortened. `None` if there is no such line or no file.
pub fn last_line(path: &Path) -> Option<String> {
    let mut file = open_regular(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(300).collect())
}

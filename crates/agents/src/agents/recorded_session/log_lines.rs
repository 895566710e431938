//! Reads the lines of a log one at a time, so that a long session does not fill the memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use super::super::stream::parse_event;
use practicum_core::tree::open_regular;

/// The longest line that is read, in bytes. A longer one counts as unreadable.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// The lines of a log.
pub struct LogLines {
    reader: BufReader<File>,
    bytes_left: u64,
    largest: u64,
}

/// One line of a log.
pub enum LogLine {
    /// Only blanks.
    Empty,
    /// A JSON document.
    Json(Value),
    /// Something else, or a line that is too long.
    Unreadable,
}

impl LogLines {
    /// Opens a regular file of at most `largest` bytes.
    pub fn open(path: &Path, largest: u64) -> Result<Self, String> {
        let file = open_regular(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
            _ => error.to_string(),
        })?;
        Ok(Self { reader: BufReader::new(file), bytes_left: largest, largest })
    }

    /// Reads the next line; `None` after the last one.
    pub fn next_line(&mut self) -> Result<Option<LogLine>, String> {
        let mut line = Vec::new();
        let length = self.read_part(&mut line)?;
        if length == 0 {
            return Ok(None);
        }
        if length == LONGEST_LINE && !line.ends_with(b"\n") {
            self.skip_rest_of_line()?;
            return Ok(Some(LogLine::Unreadable));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_start_matches('\u{feff}').trim();
        Ok(Some(match text.is_empty() {
            true => LogLine::Empty,
            false => match parse_event(text) {
                Some(value @ Value::Object(_)) => LogLine::Json(value),
                Some(_) | None => LogLine::Unreadable,
            },
        }))
    }

    fn skip_rest_of_line(&mut self) -> Result<(), String> {
        let mut part = Vec::new();
        while self.read_part(&mut part)? > 0 && !part.ends_with(b"\n") {
            part.clear();
        }
        Ok(())
    }

    /// Reads to the end of the line, or as much as is read at once. Gives the number of bytes.
    fn read_part(&mut self, into: &mut Vec<u8>) -> Result<u64, String> {
        let mut part = self.reader.by_ref().take(LONGEST_LINE);
        let length = part.read_until(b'\n', into).map_err(|error| error.to_string())? as u64;
        self.bytes_left = self
            .bytes_left
            .checked_sub(length)
            .ok_or_else(|| format!("it is larger than {} MB", self.largest / 1024 / 1024))?;
        Ok(length)
    }
}

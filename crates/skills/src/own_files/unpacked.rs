//! Reads files, whether or not they are compressed with gzip.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// The most bytes that are read of any file.
const MOST_READ: u64 = 64 * 1024 * 1024;

/// A file whose content is inspected. Content compressed with gzip is decompressed while it is read.
#[derive(Debug)]
pub struct Unpacked<'p> {
    path: &'p Path,
    is_packed: bool,
}

impl<'p> Unpacked<'p> {
    pub fn new(path: &'p Path) -> Self {
        let mut begin = [0; 2];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
        Self { path, is_packed: read.is_ok() && begin == [0x1f, 0x8b] }
    }

    /// Gives the file's path, without the extension of gzip.
    pub fn path(&self) -> PathBuf {
        let is_named = self.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
        if self.is_packed && is_named { self.path.with_extension("") } else { self.path.to_owned() }
    }

    /// Opens the content from its beginning.
    pub fn reader(&self) -> Option<Box<dyn Read>> {
        let file = File::open(self.path).ok()?;
        Some(match self.is_packed {
            true => Box::new(MultiGzDecoder::new(file).take(MOST_READ)),
            false => Box::new(file.take(MOST_READ)),
        })
    }

    /// Gives the first bytes, at most this many.
    pub fn head(&self, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader()?.take(most).read_to_end(&mut bytes);
        // An agent can also read what was decompressed before an error.
        (read.is_ok() || !bytes.is_empty()).then_some(bytes)
    }

    /// Gives the last bytes, at most this many.
    pub fn tail(&self, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        if !self.is_packed {
            let mut file = File::open(self.path).ok()?;
            let length = file.metadata().ok()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(most))).ok()?;
            file.take(most).read_to_end(&mut bytes).ok()?;
            return Some(bytes);
        }
        let most = usize::try_from(most).ok()?;
        let mut reader = self.reader()?;
        let mut piece = vec![0; most];
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            bytes.extend_from_slice(&piece[..count]);
            bytes.drain(..bytes.len().saturating_sub(most));
        }
        Some(bytes)
    }
}

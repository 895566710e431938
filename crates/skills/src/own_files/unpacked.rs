//! Reading files whether or not gzip packed them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// No more than this is read of any file.
const MOST_READ: u64 = 64 * 1024 * 1024;

/// A file whose content is looked at. What gzip packed is unpacked while it is read.
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

    /// The file's path, without the ending that gzip gave it.
    pub fn path(&self) -> PathBuf {
        let is_named = self.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
        if self.is_packed && is_named { self.path.with_extension("") } else { self.path.to_owned() }
    }

    /// The content from its beginning.
    pub fn reader(&self) -> Option<Box<dyn Read>> {
        let file = File::open(self.path).ok()?;
        Some(match self.is_packed {
            true => Box::new(MultiGzDecoder::new(file).take(MOST_READ)),
            false => Box::new(file.take(MOST_READ)),
        })
    }

    /// So many bytes from the beginning.
    pub fn head(&self, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader()?.take(most).read_to_end(&mut bytes);
        // What was unpacked before an error can be read by an agent, too.
        (read.is_ok() || !bytes.is_empty()).then_some(bytes)
    }

    /// So many bytes before the end.
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

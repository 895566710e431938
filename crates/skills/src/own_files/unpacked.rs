//! Reading files whether or not gzip packed them, and whether they are UTF-8 or UTF-16.

use std::borrow::Cow;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use practicum_core::tree::open_regular;

/// The most bytes that are read of any file.
pub const MOST_READ: u64 = 64 * 1024 * 1024;

/// The number of bytes that decide whether a file is text.
const BINARY_HEAD: u64 = 16 * 1024;

/// A file whose content is searched. Gzip is unpacked while the file is read, and UTF-16 becomes UTF-8.
#[derive(Debug)]
pub struct Unpacked<'p> {
    path: Cow<'p, Path>,
    /// The content, if the file is inside another one; `None` if it is on the disk.
    bytes: Option<Vec<u8>>,
    is_packed: bool,
}

/// The bytes that gzip begins a file with.
pub const GZIP_BEGINNING: [u8; 2] = [0x1f, 0x8b];

impl<'p> Unpacked<'p> {
    pub fn new(path: &'p Path) -> Self {
        let mut begin = [0; 2];
        let read = open_regular(path).and_then(|mut file| file.read_exact(&mut begin));
        Self { path: Cow::Borrowed(path), bytes: None, is_packed: read.is_ok() && begin == GZIP_BEGINNING }
    }

    /// A file that was read from inside another one.
    pub fn from_bytes(path: PathBuf, bytes: Vec<u8>) -> Unpacked<'static> {
        let is_packed = bytes.starts_with(&GZIP_BEGINNING);
        Unpacked { path: Cow::Owned(path), bytes: Some(bytes), is_packed }
    }

    /// Opens the file as it is, packed or not.
    fn open(&self) -> Option<Box<dyn Read + '_>> {
        match &self.bytes {
            Some(bytes) => Some(Box::new(bytes.as_slice())),
            None => open_regular(&self.path).ok().map(|file| Box::new(file) as Box<dyn Read>),
        }
    }

    /// Gives the file's path, without the extension of gzip.
    pub fn path(&self) -> PathBuf {
        let is_named = self.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
        if self.is_packed && is_named { self.path.with_extension("") } else { self.path.to_path_buf() }
    }

    /// Opens the content from its beginning.
    pub fn reader(&self) -> Option<Box<dyn Read + '_>> {
        let file = self.open()?;
        let mut content: Box<dyn Read + '_> = match self.is_packed {
            true => Box::new(MultiGzDecoder::new(file).take(MOST_READ)),
            false => Box::new(file.take(MOST_READ)),
        };
        let mut begin = Vec::new();
        // After a read error, the part that was read is searched: an agent could read that part, too.
        let _ = content.by_ref().take(4).read_to_end(&mut begin);
        let order = utf16_order(&begin);
        let content = Cursor::new(begin).chain(content);
        Some(match order {
            Some(order) => Box::new(Cursor::new(decode_utf16(content, order))),
            None => Box::new(content),
        })
    }

    /// Whether this is no text: it has a byte that no text has.
    pub fn is_binary(&self) -> bool {
        self.head(BINARY_HEAD).is_some_and(|head| head.contains(&0))
    }

    /// So many bytes from the beginning.
    pub fn head(&self, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader()?.take(most).read_to_end(&mut bytes);
        // An agent can also read what was decompressed before an error.
        (read.is_ok() || !bytes.is_empty()).then_some(bytes)
    }

    /// Gives the last bytes, at most this many.
    pub fn tail(&self, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.bytes.is_none() && !self.is_packed && !self.is_utf16() {
            let mut file = open_regular(&self.path).ok()?;
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

    fn is_utf16(&self) -> bool {
        let mut begin = Vec::new();
        let read = self.open().map(|file| file.take(4).read_to_end(&mut begin));
        read.is_some_and(|read| read.is_ok()) && utf16_order(&begin).is_some()
    }
}

/// A function that makes a UTF-16 code unit from its two bytes.
type ByteOrder = fn([u8; 2]) -> u16;

/// Recognises the byte order of a UTF-16 text by its first four bytes: a byte order mark, or two ASCII letters.
fn utf16_order(begin: &[u8]) -> Option<ByteOrder> {
    let is_letter = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match *begin {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        [first, 0, second, 0] if is_letter(first) && is_letter(second) => Some(u16::from_le_bytes),
        [0, first, 0, second] if is_letter(first) && is_letter(second) => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// Converts a text from UTF-16 to UTF-8, without its byte order mark.
fn decode_utf16(mut text: impl Read, order: ByteOrder) -> Vec<u8> {
    let mut bytes = Vec::new();
    // After a read error, the part that was read is searched: an agent could read that part, too.
    let _ = text.read_to_end(&mut bytes);
    let units = bytes.chunks_exact(2).map(|pair| order([pair[0], pair[1]]));
    let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
    letters.skip_while(|letter| *letter == '\u{feff}').collect::<String>().into_bytes()
}

//! Files inside a file: the members of a tar or zip archive, and the files of a patch.
//!
//! In: a file. Out: whatever a function finds in one of the files inside, and whether a part of them could not be
//! looked at. Never: unpacks more than a bounded number of bytes, however many archives are inside each other.

use std::cell::Cell;
use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder};

use super::unpacked::{GZIP_BEGINNING, MOST_READ, Unpacked};

/// The most files that are looked at.
const MOST_FILES: usize = 10_000;

/// The largest patch that is read.
const LARGEST_PATCH: u64 = 4 * 1024 * 1024;

/// The size of the blocks of a tar archive.
const TAR_BLOCK: usize = 512;

/// The most archives that are looked into inside each other.
const DEEPEST_ARCHIVE: usize = 4;

/// The beginnings of compressed files and archives that are not unpacked: bzip2, xz, zstd, 7z, rar, lz4, lzip.
const CLOSED_BEGINNINGS: [&[u8]; 7] = [
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\x04\x22\x4d\x18",
    b"LZIP",
];

/// Bounds how much of one file is unpacked, with everything inside it.
#[derive(Debug)]
pub struct UnpackLimit {
    bytes_left: Cell<u64>,
    depth: Cell<usize>,
    is_part_unread: Cell<bool>,
}

impl UnpackLimit {
    pub fn new() -> Self {
        Self { bytes_left: Cell::new(MOST_READ), depth: Cell::new(0), is_part_unread: Cell::new(false) }
    }

    /// Whether an archive, or a part of it, could not be looked at.
    pub fn is_part_unread(&self) -> bool {
        self.is_part_unread.get()
    }

    fn note_unread(&self) {
        self.is_part_unread.set(true);
    }

    /// Reads to the end, or as far as the limit allows.
    fn read(&self, content: impl Read) -> Vec<u8> {
        let left = self.bytes_left.get();
        let mut bytes = Vec::new();
        // What was unpacked before an error can be read by an agent, too.
        let _ = content.take(left).read_to_end(&mut bytes);
        self.bytes_left.set(left.saturating_sub(bytes.len() as u64));
        if self.bytes_left.get() == 0 {
            self.note_unread();
        }
        bytes
    }
}

/// Calls a function with each file inside of this one, until it finds something.
pub fn find_in_contained_files<T>(
    file: &Unpacked<'_>,
    limit: &UnpackLimit,
    look: &dyn Fn(&Unpacked<'_>) -> Option<T>,
) -> Option<T> {
    let head = file.head(TAR_BLOCK as u64)?;
    let (is_zip, is_tar) = (head.starts_with(b"PK\x03\x04"), is_tar_header(&head));
    let is_closed = CLOSED_BEGINNINGS.iter().any(|beginning| head.starts_with(beginning));
    let depth = limit.depth.get();
    if is_closed || depth == DEEPEST_ARCHIVE {
        if is_closed || is_zip || is_tar {
            limit.note_unread();
        }
        return None;
    }
    limit.depth.set(depth + 1);
    let found = if head.starts_with(&GZIP_BEGINNING) {
        // Gzip inside gzip.
        let bytes = file.reader().map(|content| limit.read(content)).unwrap_or_default();
        look(&contained_file(file, b"", bytes, limit))
    } else if is_zip {
        find_in_zip(file, limit, look).unwrap_or_else(|| {
            limit.note_unread();
            None
        })
    } else if is_tar {
        find_in_tar(file, limit, look)
    } else {
        find_in_patch(file, limit, look)
    };
    limit.depth.set(depth);
    found
}

fn is_tar_header(block: &[u8]) -> bool {
    block.get(257..262) == Some(b"ustar")
}

fn find_in_tar<T>(
    file: &Unpacked<'_>,
    limit: &UnpackLimit,
    look: &dyn Fn(&Unpacked<'_>) -> Option<T>,
) -> Option<T> {
    let mut archive = file.reader()?;
    for _ in 0..MOST_FILES {
        let mut header = [0; TAR_BLOCK];
        archive.read_exact(&mut header).ok()?;
        if !is_tar_header(&header) {
            return None;
        }
        let Some(size) = octal_number(&header[124..136]) else {
            limit.note_unread();
            return None;
        };
        let bytes = limit.read(archive.by_ref().take(size));
        let padding = size.next_multiple_of(TAR_BLOCK as u64) - size;
        std::io::copy(&mut archive.by_ref().take(padding), &mut std::io::sink()).ok()?;
        let is_regular = matches!(header[156], b'0' | 0);
        let name = header[..100].split(|byte| *byte == 0).next().unwrap_or_default();
        if is_regular && let Some(found) = look(&contained_file(file, name, bytes, limit)) {
            return Some(found);
        }
        if limit.bytes_left.get() == 0 {
            return None;
        }
    }
    limit.note_unread();
    None
}

/// Reads the size of a member. A size that is not written as octal digits belongs to no file that is small enough.
fn octal_number(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(digits, 8).ok()
}

/// `None` if the archive cannot be read.
fn find_in_zip<T>(
    file: &Unpacked<'_>,
    limit: &UnpackLimit,
    look: &dyn Fn(&Unpacked<'_>) -> Option<T>,
) -> Option<Option<T>> {
    let mut archive = Vec::new();
    file.reader()?.read_to_end(&mut archive).ok()?;
    let end = archive.windows(4).rposition(|bytes| bytes == b"PK\x05\x06")?;
    let count = number_at::<2>(&archive, end + 10)?;
    let mut at = number_at::<4>(&archive, end + 16)?;
    for _ in 0..count.min(MOST_FILES) {
        if archive.get(at..at.checked_add(4)?)? != b"PK\x01\x02" {
            return None;
        }
        let [flags, method, name_length, extra, comment] =
            [8, 10, 28, 30, 32].map(|place| number_at::<2>(&archive, at + place));
        let name = archive.get(at + 46..at + 46 + name_length?)?;
        let (packed_size, local) = (number_at::<4>(&archive, at + 20)?, number_at::<4>(&archive, at + 42)?);
        let begin =
            local + 30 + number_at::<2>(&archive, local + 26)? + number_at::<2>(&archive, local + 28)?;
        let packed = archive.get(begin..begin + packed_size)?;
        let is_encrypted = flags? & 1 == 1;
        let bytes = match method? {
            0 if !is_encrypted => limit.read(packed),
            8 if !is_encrypted => limit.read(DeflateDecoder::new(packed)),
            _ => {
                limit.note_unread();
                Vec::new()
            }
        };
        if let Some(found) = look(&contained_file(file, name, bytes, limit)) {
            return Some(Some(found));
        }
        if limit.bytes_left.get() == 0 {
            return None;
        }
        at += 46 + name_length? + extra? + comment?;
    }
    (count <= MOST_FILES).then_some(None)
}

/// Reads a number of `N` bytes, the lowest byte first.
fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(N)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

/// Looks at the files of a patch as they are before and after it, both at once.
fn find_in_patch<T>(
    file: &Unpacked<'_>,
    limit: &UnpackLimit,
    look: &dyn Fn(&Unpacked<'_>) -> Option<T>,
) -> Option<T> {
    let text = file.head(LARGEST_PATCH)?;
    if text.contains(&0) || !text.windows(5).any(|bytes| bytes == b"\n+++ ") {
        return None;
    }
    let text = String::from_utf8_lossy(&text);
    let mut name = String::new();
    let mut bytes = Vec::new();
    let name_in = |line: &str| {
        let path = line.split('\t').next().unwrap_or_default().trim();
        (path != "/dev/null").then(|| path.trim_start_matches("a/").trim_start_matches("b/").to_owned())
    };
    for line in text.lines() {
        if let Some(named) = line.strip_prefix("--- ") {
            let before = contained_file(file, name.as_bytes(), std::mem::take(&mut bytes), limit);
            if let Some(found) = look(&before) {
                return Some(found);
            }
            name = name_in(named).unwrap_or_default();
        } else if let Some(named) = line.strip_prefix("+++ ") {
            name = name_in(named).unwrap_or(name);
        } else if let Some(content) = line.strip_prefix(['+', '-', ' ']) {
            bytes.extend_from_slice(content.as_bytes());
            bytes.push(b'\n');
        }
    }
    look(&contained_file(file, name.as_bytes(), bytes, limit))
}

/// Makes a file of what was inside another one. Gzip, also several times around each other, is unpacked here, where
/// the limit counts it.
fn contained_file(
    around: &Unpacked<'_>,
    name: &[u8],
    mut bytes: Vec<u8>,
    limit: &UnpackLimit,
) -> Unpacked<'static> {
    let name = String::from_utf8_lossy(name);
    let mut name = name.trim_start_matches('/');
    while bytes.starts_with(&GZIP_BEGINNING) && limit.bytes_left.get() > 0 {
        bytes = limit.read(MultiGzDecoder::new(bytes.as_slice()));
        name = name.strip_suffix(".gz").unwrap_or(name);
    }
    Unpacked::from_bytes(around.path().join(name), bytes)
}

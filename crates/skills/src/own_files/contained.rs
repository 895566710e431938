//! Files inside a file: the members of a tar or zip archive, and the files of a patch.
//!
//! In: a file. Out: whatever a function finds in one of the files inside. Never: looks into an archive that is inside
//! another one, or reads more than a bounded number of bytes.

use std::io::Read;

use flate2::read::DeflateDecoder;

use super::unpacked::{MOST_READ, Unpacked};

/// The most files that are looked at.
const MOST_FILES: usize = 10_000;

/// The largest patch that is read.
const LARGEST_PATCH: u64 = 4 * 1024 * 1024;

/// The size of the blocks of a tar archive.
const TAR_BLOCK: usize = 512;

/// Calls a function with each file inside of this one, until it finds something.
pub fn find_in_contained_files<T>(
    file: &Unpacked<'_>,
    look: &dyn Fn(&Unpacked<'_>) -> Option<T>,
) -> Option<T> {
    let head = file.head(TAR_BLOCK as u64)?;
    if head.starts_with(b"PK\x03\x04") {
        find_in_zip(file, look)
    } else if is_tar_header(&head) {
        find_in_tar(file, look)
    } else {
        find_in_patch(file, look)
    }
}

fn is_tar_header(block: &[u8]) -> bool {
    block.get(257..262) == Some(b"ustar")
}

fn find_in_tar<T>(file: &Unpacked<'_>, look: &dyn Fn(&Unpacked<'_>) -> Option<T>) -> Option<T> {
    let mut archive = file.reader()?;
    for _ in 0..MOST_FILES {
        let mut header = [0; TAR_BLOCK];
        archive.read_exact(&mut header).ok()?;
        if !is_tar_header(&header) {
            return None;
        }
        let size = octal_number(&header[124..136])?;
        let mut bytes = Vec::new();
        archive.by_ref().take(size).read_to_end(&mut bytes).ok()?;
        let padding = size.next_multiple_of(TAR_BLOCK as u64) - size;
        std::io::copy(&mut archive.by_ref().take(padding), &mut std::io::sink()).ok()?;
        let is_regular = matches!(header[156], b'0' | 0);
        let name = header[..100].split(|byte| *byte == 0).next().unwrap_or_default();
        if is_regular && let Some(found) = look(&contained_file(file, name, bytes)) {
            return Some(found);
        }
    }
    None
}

/// Reads the size of a member. A size that is not written as octal digits belongs to no file that is small enough.
fn octal_number(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(digits, 8).ok()
}

fn find_in_zip<T>(file: &Unpacked<'_>, look: &dyn Fn(&Unpacked<'_>) -> Option<T>) -> Option<T> {
    let mut archive = Vec::new();
    file.reader()?.read_to_end(&mut archive).ok()?;
    let end = archive.windows(4).rposition(|bytes| bytes == b"PK\x05\x06")?;
    let mut at = number_at::<4>(&archive, end + 16)?;
    let mut left = MOST_READ;
    for _ in 0..MOST_FILES {
        if archive.get(at..at + 4)? != b"PK\x01\x02" {
            return None;
        }
        let [method, name_length, extra, comment] =
            [10, 28, 30, 32].map(|place| number_at::<2>(&archive, at + place));
        let name = archive.get(at + 46..at + 46 + name_length?)?;
        let (packed_size, local) = (number_at::<4>(&archive, at + 20)?, number_at::<4>(&archive, at + 42)?);
        let begin =
            local + 30 + number_at::<2>(&archive, local + 26)? + number_at::<2>(&archive, local + 28)?;
        let packed = archive.get(begin..begin + packed_size)?;
        let mut bytes = Vec::new();
        // What was unpacked before an error can be read by an agent, too.
        let _ = match method? {
            0 => packed.take(left).read_to_end(&mut bytes),
            8 => DeflateDecoder::new(packed).take(left).read_to_end(&mut bytes),
            _ => Ok(0),
        };
        left = left.saturating_sub(bytes.len() as u64);
        if let Some(found) = look(&contained_file(file, name, bytes)) {
            return Some(found);
        }
        at += 46 + name_length? + extra? + comment?;
    }
    None
}

/// Reads a number of `N` bytes, the lowest byte first.
fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(N)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

/// Looks at the files of a patch as they are before and after it, both at once.
fn find_in_patch<T>(file: &Unpacked<'_>, look: &dyn Fn(&Unpacked<'_>) -> Option<T>) -> Option<T> {
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
            if let Some(found) = look(&contained_file(file, name.as_bytes(), std::mem::take(&mut bytes))) {
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
    look(&contained_file(file, name.as_bytes(), bytes))
}

fn contained_file(around: &Unpacked<'_>, name: &[u8], bytes: Vec<u8>) -> Unpacked<'static> {
    let name = String::from_utf8_lossy(name);
    Unpacked::from_bytes(around.path().join(name.trim_start_matches('/')), bytes)
}

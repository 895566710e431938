//! Reading, writing and editing files. Every error is a sentence for the model.

use practicum_core::tree::read_regular;
use std::fs;
use std::path::Path;

const LARGEST_READ: usize = 256 * 1024;
const LARGEST_EDIT: u64 = 8 * 1024 * 1024;

/// Reads numbered lines from `offset`, which counts from 1.
pub fn read(path: &Path, offset: Option<u64>, limit: Option<u64>) -> Result<String, String> {
    let text = read_text(path, LARGEST_EDIT)?;
    let first = offset.unwrap_or(1).max(1);
    let most = usize::try_from(limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let lines = text.lines().enumerate().map(|(at, line)| (at as u64 + 1, line));
    let mut shown = String::new();
    for (number, line) in lines.skip_while(|(number, _)| *number < first).take(most) {
        if shown.is_empty() && line.len() > LARGEST_READ {
            let part: String = line.chars().take(LARGEST_READ / 4).collect();
            shown.push_str(&format!("{number}\t{part}… the rest of this line was left out\n"));
        } else if shown.len() + line.len() > LARGEST_READ {
            shown.push_str(&format!("… more from line {number}: read it with offset and limit\n"));
            break;
        } else {
            shown.push_str(&format!("{number}\t{line}\n"));
        }
    }
    match (text.is_empty(), shown.is_empty()) {
        (true, _) => Ok("(the file is empty)".to_owned()),
        (false, true) => Err(format!("there is no line {first}")),
        (false, false) => Ok(shown),
    }
}

pub fn write(path: &Path, content: &str) -> Result<String, String> {
    let existed = path.symlink_metadata().is_ok();
    if existed {
        check_is_file(path)?;
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    fs::write(path, content).map_err(|error| error.to_string())?;
    let done = if existed { "overwritten" } else { "created" };
    Ok(format!("{} {done}", path.display()))
}

pub fn edit(path: &Path, old: &str, new: &str, all: bool) -> Result<String, String> {
    if old.is_empty() {
        return Err("old_string is empty; use Write for a new file".to_owned());
    }
    if old == new {
        return Err("old_string and new_string are the same".to_owned());
    }
    let text = read_text(path, LARGEST_EDIT)?;
    let found = text.matches(old).count();
    let edited = match (found, all) {
        (0, _) => return Err("old_string does not occur in the file".to_owned()),
        (1, _) | (_, true) => text.replace(old, new),
        (_, false) => {
            return Err(format!("old_string occurs {found} times; give more of it, or set replace_all"));
        }
    };
    fs::write(path, edited).map_err(|error| error.to_string())?;
    Ok(format!("{} edited, {found} replaced", path.display()))
}

/// Checks that a path is a regular file and gives its size. Reading a pipe or a device might never end.
fn check_is_file(path: &Path) -> Result<u64, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if metadata.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    Ok(metadata.len())
}

fn read_text(path: &Path, largest: u64) -> Result<String, String> {
    let size = check_is_file(path)?;
    if size > largest {
        return Err(format!("the file has {size} bytes, more than {largest}"));
    }
    let bytes = read_regular(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        let long = "y".repeat(200_000);
        for (content, offset, limit, expected) in [
            ("a\nb\nc", None, None, Ok("1\ta\n2\tb\n3\tc\n".to_owned())),
            ("a\nb\nc", Some(2), Some(1), Ok("2\tb\n".to_owned())),
            ("a\r\nb", Some(0), None, Ok("1\ta\n2\tb\n".to_owned())),
            ("", None, None, Ok("(the file is empty)".to_owned())),
            ("a", Some(9), None, Err("there is no line 9".to_owned())),
            (
                &format!("{long}\n{long}"),
                None,
                None,
                Ok(format!("1\t{long}\n… more from line 2: read it with offset and limit\n")),
            ),
        ] {
            fs::write(&path, content).expect("written");
            assert_eq!(read(&path, offset, limit), expected, "{content:.20} {offset:?} {limit:?}");
        }
        fs::write(&path, [0xff, 0xfe]).expect("written");
        assert!(read(&path, None, None).is_err());
        fs::write(&path, long.repeat(2)).expect("written");
        assert!(read(&path, None, None).is_ok_and(|shown| shown.len() < LARGEST_READ));
        assert!(read(folder.path(), None, None).is_err());
        assert!(read(&folder.path().join("missing"), None, None).is_err());
    }

    #[test]
    fn edits_are_exact() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/x");
        for (content, old, new, all, expected) in [
            ("a b a", "b", "c", false, Ok("a c a")),
            ("a b a", "a", "c", true, Ok("c b c")),
            ("a b a", "a", "c", false, Err("occurs 2 times")),
            ("a b a", "x", "c", true, Err("does not occur")),
            ("a", "a", "a", false, Err("the same")),
            ("a", "", "x", false, Err("empty")),
        ] {
            write(&path, content).expect("written");
            match (edit(&path, old, new, all), expected) {
                (Ok(_), Ok(expected)) => {
                    assert_eq!(fs::read_to_string(&path).expect("text"), expected);
                }
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
        }
    }
}

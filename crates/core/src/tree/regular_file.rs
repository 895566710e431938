//! Reading and writing of regular files, whatever lies at their path.
//!
//! A named pipe, a device or a link to one in place of a file would make the program wait for ever or fill the
//! memory. Files of a project, of a workspace and of records are therefore opened here and nowhere else.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The largest file that is read into memory where no smaller limit is given.
const MAX_REGULAR_SIZE: u64 = 1024 * 1024 * 1024;

/// Opens a regular file for reading. A link counts as the file that it leads to. Anything else is refused without
/// waiting for it.
pub fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    open_with_size(path.as_ref()).map(|(file, _)| file)
}

/// Opens a regular file as [`open_regular`] does, and gives its size too.
fn open_with_size(path: &Path) -> io::Result<(File, u64)> {
    // Opening alone has an effect on some devices, so the kind is also looked at before.
    refuse_other_kinds(&std::fs::metadata(path)?)?;
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    refuse_other_kinds(&metadata)?;
    Ok((file, metadata.len()))
}

/// Opens a file for appending, and creates it for the user alone if it is missing. A link is refused, because it may lead to a file that
/// this program did not make.
pub fn append_unlinked(path: impl AsRef<Path>) -> io::Result<File> {
    let file = options_without_links().append(true).create(true).mode(0o600).open(path)?;
    refuse_other_kinds(&file.metadata()?)?;
    Ok(file)
}

/// Writes a file, and replaces its content if it exists. A new file is for the user alone. A link is refused, because it may lead to a file that this
/// program did not make.
pub fn write_unlinked(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    create_unlinked(path)?.write_all(content.as_ref())
}

/// Creates a file for writing, as [`write_unlinked`] does, and empties it if it exists.
pub fn create_unlinked(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    // Most files are new. What was made just now is a regular file and empty, so it need not be looked at.
    match options_without_links().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = options_without_links().write(true).open(path)?;
            refuse_other_kinds(&file.metadata()?)?;
            file.set_len(0)?;
            Ok(file)
        }
        made => made,
    }
}

/// Makes a folder and the missing ones above it, for the user alone.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file that only the user can read, as a whole or not at all. Missing folders are made, also only for the user.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    create_private_folder(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = folder.join(format!(".{name}.{}.new", std::process::id()));
    let _ = std::fs::remove_file(&aside);
    let mut file = options_without_links().write(true).create_new(true).mode(0o600).open(&aside)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)
}

fn options_without_links() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Reads a regular file that fits into memory.
pub fn read_regular(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let (file, size) = open_with_size(path.as_ref())?;
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(MAX_REGULAR_SIZE)).unwrap_or(0));
    if size <= MAX_REGULAR_SIZE {
        file.take(MAX_REGULAR_SIZE + 1).read_to_end(&mut bytes)?;
    }
    match size.max(bytes.len() as u64) <= MAX_REGULAR_SIZE {
        true => Ok(bytes),
        false => Err(io::Error::new(io::ErrorKind::FileTooLarge, too_large(MAX_REGULAR_SIZE))),
    }
}

/// Reads a regular file of UTF-8 text that fits into memory.
pub fn read_regular_text(path: impl AsRef<Path>) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(read_regular(path)?).map_err(not_text)
}

/// Reads a regular file of at most `largest` bytes. The error says in words why the file cannot be read.
pub fn read_bounded(path: &Path, largest: u64) -> Result<Vec<u8>, String> {
    let in_words = |error: io::Error| match error.kind() {
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    };
    let (file, size) = open_with_size(path).map_err(in_words)?;
    if size > largest {
        return Err(too_large(largest));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(largest + 1).read_to_end(&mut bytes).map_err(in_words)?;
    if bytes.len() as u64 > largest {
        return Err(too_large(largest));
    }
    Ok(bytes)
}

fn refuse_other_kinds(metadata: &Metadata) -> io::Result<()> {
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok(()),
        (false, true) => Err(Errno::ISDIR.into()),
        (false, false) => Err(io::Error::other("it is not a regular file")),
    }
}

fn too_large(largest: u64) -> String {
    format!("it is larger than {} MB", largest / 1024 / 1024)
}

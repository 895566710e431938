//! Packs files into archives, and unpacks archives from outside within limits.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use practicum_core::tree::{create_private_folder, open_regular};
use tar::{EntryType, Header};

/// The greatest number of entries in an archive.
const MOST_ENTRIES: usize = 500_000;

/// The most bytes that all files of an archive may have together.
pub const LARGEST_ARCHIVE: u64 = 4 * 1024 * 1024 * 1024;

/// An archive that was packed into a temporary file.
pub struct PackedArchive {
    /// The file.
    pub file: tempfile::NamedTempFile,
    /// The digest of the file's bytes.
    pub digest: String,
}

/// An archive that is being packed. Equal files give equal bytes.
pub struct ArchiveWriter {
    builder: tar::Builder<GzEncoder<tempfile::NamedTempFile>>,
    bytes: u64,
}

impl ArchiveWriter {
    /// Begins an archive in a temporary file.
    pub fn new() -> std::io::Result<Self> {
        let encoder = GzEncoder::new(tempfile::NamedTempFile::new()?, Compression::fast());
        Ok(Self { builder: tar::Builder::new(encoder), bytes: 0 })
    }

    /// Adds a regular file. Links are not followed.
    pub fn add_file(&mut self, name: &Path, path: &Path) -> std::io::Result<()> {
        let file = open_regular(path)?;
        let metadata = file.metadata()?;
        let is_program = metadata.permissions().mode() & 0o111 != 0;
        let mut header = header(EntryType::Regular, metadata.len(), if is_program { 0o755 } else { 0o644 });
        self.count(metadata.len())?;
        // A file that grows meanwhile must not make the archive unreadable; one that shrinks is an error.
        self.builder.append_data(&mut header, name, file.take(metadata.len()))
    }

    /// Adds a file with these bytes.
    pub fn add_bytes(&mut self, name: &Path, bytes: &[u8]) -> std::io::Result<()> {
        self.count(bytes.len() as u64)?;
        self.builder.append_data(&mut header(EntryType::Regular, bytes.len() as u64, 0o644), name, bytes)
    }

    /// Adds a folder.
    pub fn add_folder(&mut self, name: &Path) -> std::io::Result<()> {
        self.builder.append_data(&mut header(EntryType::Directory, 0, 0o755), name, std::io::empty())
    }

    /// Adds a symbolic link.
    pub fn add_link(&mut self, name: &Path, target: &Path) -> std::io::Result<()> {
        self.builder.append_link(&mut header(EntryType::Symlink, 0, 0o777), name, target)
    }

    /// Adds all folders and regular files below a folder, in order. Links are left out.
    pub fn add_tree(&mut self, name: &Path, folder: &Path) -> std::io::Result<()> {
        let mut entries: Vec<std::fs::DirEntry> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (kind, name) = (entry.file_type()?, name.join(entry.file_name()));
            if kind.is_dir() {
                self.add_folder(&name)?;
                self.add_tree(&name, &entry.path())?;
            } else if kind.is_file() {
                self.add_file(&name, &entry.path())?;
            }
        }
        Ok(())
    }

    fn count(&mut self, bytes: u64) -> std::io::Result<()> {
        self.bytes += bytes;
        match self.bytes > LARGEST_ARCHIVE {
            true => Err(std::io::Error::other("the files have more than 4 GB together")),
            false => Ok(()),
        }
    }

    /// Ends the archive.
    pub fn finish(self) -> std::io::Result<PackedArchive> {
        let mut file = self.builder.into_inner()?.finish()?;
        file.flush()?;
        let digest = digest_of_file(file.as_file_mut())?;
        Ok(PackedArchive { file, digest })
    }
}

fn header(kind: EntryType, size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header
}

/// Computes the digest of a file from its beginning, and goes back there.
pub fn digest_of_file(file: &mut File) -> std::io::Result<String> {
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(file, &mut hasher)?;
    file.rewind()?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Unpacks an archive into an empty folder. Whatever the archive says, nothing is written outside of the folder, and
/// links lead to something inside. `allow_links` says whether there may be links at all.
pub fn unpack(archive: File, to: &Path, allow_links: bool) -> std::io::Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive).take(LARGEST_ARCHIVE + 1024 * 1024 * 1024));
    let mut links = Vec::new();
    let (mut count, mut bytes) = (0_usize, 0_u64);
    for entry in archive.entries()? {
        let mut entry = entry?;
        count += 1;
        bytes = bytes.saturating_add(entry.size());
        if count > MOST_ENTRIES || bytes > LARGEST_ARCHIVE {
            return Err(refused("it is too large"));
        }
        let name = relative_path(&entry.path()?)?;
        let path = to.join(&name);
        match entry.header().entry_type() {
            EntryType::Directory => create_private_folder(&path)?,
            EntryType::Regular => {
                path.parent().map_or(Ok(()), create_private_folder)?;
                let mut file = File::options().write(true).create_new(true).open(&path)?;
                std::io::copy(&mut entry, &mut file)?;
                let is_program = entry.header().mode()? & 0o100 != 0;
                let mode = if is_program { 0o755 } else { 0o644 };
                file.set_permissions(std::fs::Permissions::from_mode(mode))?;
            }
            EntryType::Symlink if allow_links => {
                let target = entry.link_name()?.ok_or_else(|| refused("a link has no target"))?.into_owned();
                if leads_out(&name, &target) {
                    return Err(refused("a link leads out of it"));
                }
                links.push((path, target));
            }
            _ => return Err(refused("it has an entry that is neither a file nor a folder")),
        }
    }
    // Links come last, so that no file is written through one.
    for (path, target) in links {
        path.parent().map_or(Ok(()), create_private_folder)?;
        std::os::unix::fs::symlink(target, path)?;
    }
    Ok(())
}

fn refused(why: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, format!("the archive cannot be used: {why}"))
}

/// Gives a path that surely stays in its folder.
fn relative_path(path: &Path) -> std::io::Result<PathBuf> {
    let normal = |part: Component<'_>| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        _ => None,
    };
    let parts: Option<PathBuf> = path.components().map(normal).collect();
    parts.filter(|path| path.as_os_str() != "").ok_or_else(|| refused("a path leads out of it"))
}

/// Says whether a link with this name and target leads out of the folder that the name is relative to.
pub fn leads_out(name: &Path, target: &Path) -> bool {
    let mut depth = name.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(fill: impl FnOnce(&mut ArchiveWriter)) -> PackedArchive {
        let mut writer = ArchiveWriter::new().expect("begun");
        fill(&mut writer);
        writer.finish().expect("packed")
    }

    fn unpacked(archive: &PackedArchive, allow_links: bool) -> std::io::Result<tempfile::TempDir> {
        let to = tempfile::tempdir().expect("a folder");
        unpack(archive.file.reopen().expect("opened"), to.path(), allow_links).map(|()| to)
    }

    #[test]
    fn an_archive_is_the_same_for_the_same_files_and_comes_back_as_it_was() {
        let from = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(from.path().join("a/empty")).expect("create");
        std::fs::write(from.path().join("a/b.txt"), "text").expect("write");
        std::fs::write(from.path().join("run.sh"), "#!").expect("write");
        let program = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(from.path().join("run.sh"), program).expect("set");
        let pack = || packed(|writer| writer.add_tree(Path::new("files"), from.path()).expect("added"));
        assert_eq!(pack().digest, pack().digest);
        let back = unpacked(&pack(), false).expect("unpacked");
        assert_eq!(std::fs::read_to_string(back.path().join("files/a/b.txt")).expect("read"), "text");
        assert!(back.path().join("files/a/empty").is_dir());
        let mode = back.path().join("files/run.sh").metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        let absolute = packed(|writer| {
            let mut entry = header(EntryType::Regular, 1, 0o644);
            // The writer refuses such names, so the bytes are set by hand.
            entry.as_gnu_mut().expect("gnu").name[..10].copy_from_slice(b"../outside");
            entry.set_cksum();
            writer.builder.append(&entry, b"x".as_slice()).expect("added");
        });
        assert!(unpacked(&absolute, true).is_err());
        for (name, target) in [("a", "/etc/passwd"), ("a/b", "../../x"), ("a", "..")] {
            let linked = packed(|writer| {
                writer.add_link(Path::new(name), Path::new(target)).expect("added");
            });
            assert!(unpacked(&linked, true).is_err(), "{name} -> {target}");
        }
        let inside = packed(|writer| writer.add_link(Path::new("a/b"), Path::new("../c")).expect("added"));
        assert!(unpacked(&inside, true).is_ok());
        assert!(unpacked(&inside, false).is_err(), "results have no links");
    }

    #[test]
    fn a_truncated_archive_is_refused() {
        let whole = packed(|writer| writer.add_bytes(Path::new("a"), &[7; 100_000]).expect("added"));
        let length = whole.file.as_file().metadata().expect("there").len();
        whole.file.as_file().set_len(length / 2).expect("cut");
        assert!(unpacked(&whole, false).is_err());
    }
}

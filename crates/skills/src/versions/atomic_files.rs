//! Writes files atomically: a reader finds the whole file or none.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

/// Writes a JSON document to a temporary file and moves it into place, so that no reader sees half of it.
pub fn write_json(path: &Path, document: &impl Serialize) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(document)?;
    bytes.push(b'\n');
    write_bytes(path, &bytes)
}

pub fn write_bytes(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut aside = tempfile::NamedTempFile::new_in(folder)?;
    aside.write_all(bytes)?;
    let permissions = std::fs::metadata(path).map(|metadata| metadata.permissions());
    // The file gets the usual permissions, not the private ones of a temporary file.
    let permissions = permissions.unwrap_or_else(|_| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::Permissions::from_mode(0o644)
    });
    aside.as_file().set_permissions(permissions)?;
    aside.persist(path).map(|_| ()).map_err(|error| error.error)
}

//! The schema that editors read for the native eval files that `init` and `convert` write.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::dialects::relative_path;
use crate::discover::EDITOR_SCHEMA_FILE;
use crate::tree::{read_regular, write_unlinked};
use crate::{own_files, schema};

/// Gives the first line of a native eval file in `folder`, with which editors explain and complete its keys. The schema
/// is written into `schema_folder`, unless it is there already.
pub fn schema_comment(folder: &Path, schema_folder: &Path) -> std::io::Result<String> {
    let file = schema_folder.join(EDITOR_SCHEMA_FILE);
    let text = schema::schema("native").map(|schema| format!("{schema}\n")).unwrap_or_default();
    if !read_regular(&file).is_ok_and(|known| known == text.as_bytes()) {
        std::fs::create_dir_all(schema_folder)?;
        write_unlinked(&file, &text)?;
        // It is committed with the evals, so everyone may read it.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
        own_files::record_written_files(std::slice::from_ref(&file));
    }
    Ok(comment(folder, &file))
}

fn comment(folder: &Path, schema: &Path) -> String {
    let path = relative_path(schema, folder);
    let path = if path.starts_with(['.', '/']) { path } else { format!("./{path}") };
    format!("# yaml-language-server: $schema={path}\n")
}

//! Writes the files that a process expects to find when it starts.

use std::path::Path;

use practicum_agents::agents::Launch;

/// Writes the files and the link of a launch.
pub(crate) fn write_launch_files(launch: &Launch) -> Result<(), String> {
    for (path, content) in &launch.files {
        make_with_parent(path, |path| std::fs::write(path, content))?;
    }
    if let Some((path, to)) = &launch.symlink {
        make_with_parent(path, |path| std::os::unix::fs::symlink(to, path))?;
    }
    Ok(())
}

/// Makes a file or link, after the folder around it.
fn make_with_parent(path: &Path, make: impl Fn(&Path) -> std::io::Result<()>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| make(path));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

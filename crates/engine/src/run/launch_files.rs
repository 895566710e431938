use std::path::Path;

use practicum_agents::agents::Launch;

/// Puts everything where a process expects to find it.
pub fn write_launch_files(launch: &Launch) -> Result<(), String> {
    for (path, content) in &launch.files {
        make_with_parent(path, |path| std::fs::write(path, content))?;
    }
    if let Some((path, to)) = &launch.symlink {
        make_with_parent(path, |path| std::os::unix::fs::symlink(to, path))?;
    }
    Ok(())
}

/// Makes something in a folder that may have to be made first.
fn make_with_parent(path: &Path, make: impl Fn(&Path) -> std::io::Result<()>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| make(path));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

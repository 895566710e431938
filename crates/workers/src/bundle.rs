//! The files of a run, packed into one archive that a worker plans the same run from.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use practicum_core::tree::{create_private_folder, read_regular};
use practicum_engine::session::{RunDescription, SharedRun};
use practicum_skills::project_files::{ExclusionReason, ProjectFiles, is_version_control};
use serde::{Deserialize, Serialize};

use crate::WorkersError;
use crate::archive::{ArchiveWriter, PackedArchive, leads_out, unpack};

/// The document at the beginning of a bundle.
#[derive(Serialize, Deserialize)]
struct BundleManifest {
    /// The version of the program that made the bundle.
    version: String,
    /// The folder that the names of the files are relative to.
    root: PathBuf,
    description: RunDescription,
}

enum BundleEntry {
    Folder,
    File(PathBuf),
    Link(PathBuf),
}

const MANIFEST: &str = "manifest.json";
const FILES: &str = "files";

/// Packs the files of a run. Equal files and options give an equal digest.
pub fn pack_bundle(run: &SharedRun) -> Result<PackedArchive, WorkersError> {
    let told = |error: std::io::Error| WorkersError::Bundle(error.to_string());
    let root = common_folder(&run.files);
    let manifest = BundleManifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: root.clone(),
        description: run.description.clone(),
    };
    let bytes = serde_json::to_vec(&manifest).map_err(|error| WorkersError::Bundle(error.to_string()))?;
    let mut writer = ArchiveWriter::new().map_err(told)?;
    writer.add_bytes(Path::new(MANIFEST), &bytes).map_err(told)?;
    for (name, entry) in entries(&run.files, &root).map_err(told)? {
        let name = Path::new(FILES).join(name);
        let added = match entry {
            BundleEntry::Folder => writer.add_folder(&name),
            BundleEntry::File(path) => writer.add_file(&name, &path),
            BundleEntry::Link(target) => writer.add_link(&name, &target),
        };
        added.map_err(|error| WorkersError::Bundle(format!("{}: {error}", name.display())))?;
    }
    writer.finish().map_err(told)
}

/// Unpacks a bundle into an empty folder, and gives the description of its run for this machine.
pub fn unpack_bundle(bundle: File, to: &Path) -> Result<RunDescription, WorkersError> {
    let told = |error: std::io::Error| WorkersError::Bundle(error.to_string());
    unpack(bundle, to, true).map_err(told)?;
    let bytes = read_regular(to.join(MANIFEST)).map_err(told)?;
    let manifest: BundleManifest =
        serde_json::from_slice(&bytes).map_err(|error| WorkersError::Bundle(error.to_string()))?;
    let version = env!("CARGO_PKG_VERSION");
    if manifest.version != version {
        return Err(WorkersError::Bundle(format!(
            "the run is planned by practicum {}, and this worker is {version}; use the same version",
            manifest.version
        )));
    }
    let files = to.join(FILES);
    create_private_folder(&files).map_err(told)?;
    Ok(manifest.description.moved(&manifest.root, &files))
}

/// Gives the deepest folder that has all files somewhere below it.
fn common_folder(files: &[PathBuf]) -> PathBuf {
    let mut folders =
        files.iter().map(|path| if path.is_dir() { path } else { path.parent().unwrap_or(path) });
    let mut common = folders.next().unwrap_or(Path::new("/")).to_owned();
    for folder in folders {
        while !folder.starts_with(&common) && common.pop() {}
    }
    common
}

/// Lists the entries of a bundle by their names. The first of the files is the folder of the project: of it everything is
/// taken that an agent could get, and its evals. Everything else was named and is taken whole.
fn entries(files: &[PathBuf], root: &Path) -> std::io::Result<BTreeMap<PathBuf, BundleEntry>> {
    let mut entries = BTreeMap::new();
    let Some((project, others)) = files.split_first() else { return Ok(entries) };
    let name = |path: &Path| path.strip_prefix(root).ok().map(Path::to_owned);
    let listed = ProjectFiles::list(project, &|_, _| false);
    for path in listed.folders.iter().map(|path| project.join(path)) {
        name(&path).map(|name| entries.insert(name, BundleEntry::Folder));
    }
    for path in listed.files.iter().map(|path| project.join(path)) {
        add(&mut entries, root, &path)?;
    }
    let evals = listed.left_out.get(&ExclusionReason::Evals).into_iter().flatten();
    for path in evals.map(|path| project.join(path)) {
        add(&mut entries, root, &path)?;
    }
    for path in others.iter().filter(|path| !project.starts_with(path)) {
        add(&mut entries, root, path)?;
    }
    // The project is found by its settings file or by this folder.
    name(&project.join(".git")).map(|name| entries.insert(name, BundleEntry::Folder));
    Ok(entries)
}

/// Adds a file, a link that stays below the root, or a folder with everything in it.
fn add(entries: &mut BTreeMap<PathBuf, BundleEntry>, root: &Path, path: &Path) -> std::io::Result<()> {
    let Ok(name) = path.strip_prefix(root).map(Path::to_owned) else { return Ok(()) };
    let kind = path.symlink_metadata()?.file_type();
    if is_version_control(path) {
        // Only that it is there counts: it marks the folder of a project.
        entries.insert(name, BundleEntry::Folder);
    } else if path.file_name().is_some_and(|name| name == ".practicum") {
        // Records are no part of a run.
    } else if kind.is_symlink() {
        let target = std::fs::read_link(path)?;
        if !leads_out(&name, &target) {
            entries.insert(name, BundleEntry::Link(target));
        }
    } else if kind.is_dir() {
        if name.as_os_str() != "" {
            entries.insert(name, BundleEntry::Folder);
        }
        for entry in std::fs::read_dir(path)? {
            add(entries, root, &entry?.path())?;
        }
    } else if kind.is_file() {
        entries.insert(name, BundleEntry::File(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_has_the_project_its_evals_and_what_was_named_and_no_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("real");
        for path in [
            "project/evals/a.yaml",
            "project/src/a.py",
            "project/.git/HEAD",
            "project/.practicum/runs/r/run.json",
            "project/.env",
            "skills/other/SKILL.md",
            "unrelated/big.bin",
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::fs::write(path, "x").expect("write");
        }
        std::os::unix::fs::symlink("/etc/passwd", root.join("skills/other/out")).expect("linked");
        let files = [root.join("project"), root.join("skills/other")];
        assert_eq!(common_folder(&files), root);
        let names: Vec<String> =
            entries(&files, &root).expect("listed").keys().map(|name| name.display().to_string()).collect();
        let expected = [
            "project/.git",
            "project/evals",
            "project/evals/a.yaml",
            "project/src",
            "project/src/a.py",
            "skills/other",
            "skills/other/SKILL.md",
        ];
        assert_eq!(names, expected);
    }
}

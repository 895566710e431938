//! Recognises folders that tools downloaded or built.

use practicum_core::tree::open_regular;
use std::io::Read;
use std::path::Path;

/// Names that only tools give to a folder.
const TOOL_FOLDER_NAMES: [&str; 13] = [
    "node_modules",
    "__pycache__",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".terraform",
    ".direnv",
    ".gradle",
    ".dart_tool",
    ".parcel-cache",
    ".turbo",
];

/// Names that prove nothing alone: a folder is a build folder only if one of these files lies beside it.
const NAMES_WITH_MARKER_FILES: [(&str, &[&str]); 7] = [
    ("target", &["Cargo.toml", "pom.xml", "build.sbt", "project.clj"]),
    ("build", &["build.gradle", "build.gradle.kts"]),
    ("pods", &["Podfile"]),
    ("_build", &["mix.exs", "dune-project"]),
    (".next", &["package.json"]),
    (".nuxt", &["package.json"]),
    (".svelte-kit", &["package.json"]),
];

/// Says whether a folder contains only what a tool downloaded or built and can make again. `name` is its name in
/// lowercase.
pub fn is_build_folder(folder: &Path, name: &str) -> bool {
    let made_beside = |files: &[&str]| files.iter().any(|file| folder.with_file_name(file).is_file());
    TOOL_FOLDER_NAMES.contains(&name)
        || NAMES_WITH_MARKER_FILES.iter().any(|(known, files)| *known == name && made_beside(files))
        || folder.join("pyvenv.cfg").is_file()
        || has_cache_tag(folder)
}

/// Says whether a tool marked its folder as a cache with a tag that backup programs know
/// (<https://bford.info/cachedir/>).
fn has_cache_tag(folder: &Path) -> bool {
    const CACHE_TAG_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
    let tag = folder.join("CACHEDIR.TAG");
    let mut begin = [0; CACHE_TAG_SIGNATURE.len()];
    let is_file = tag.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    is_file
        && open_regular(tag).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == CACHE_TAG_SIGNATURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_built_only_where_something_says_so() {
        for (files, folder, expected) in [
            (&[][..], "node_modules", true),
            (&[], "target", false),
            (&["Cargo.toml"], "target", true),
            (&["pom.xml"], "target", true),
            (&["package.json"], "build", false),
            (&["build.gradle.kts"], "build", true),
            (&["package.json"], "dist", false),
            (&[], "venv", false),
            (&["venv/pyvenv.cfg"], "venv", true),
            (&["any/pyvenv.cfg"], "any", true),
            (&["cache/CACHEDIR.TAG"], "cache", true),
            (&[], "src", false),
        ] {
            let project = tempfile::tempdir().expect("a folder");
            let path = project.path().join(folder);
            std::fs::create_dir(&path).expect("create");
            for file in files {
                let text = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n";
                std::fs::write(project.path().join(file), text).expect("write");
            }
            assert_eq!(is_build_folder(&path, folder), expected, "{folder} {files:?}");
        }
    }

    #[test]
    fn a_tag_without_its_signature_says_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("CACHEDIR.TAG"), "Signature: mine").expect("write");
        assert!(!is_build_folder(folder.path(), "x"));
    }
}

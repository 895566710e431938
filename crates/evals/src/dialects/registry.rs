//! The formats and checks that eval files may use: the built-in tables, and what a program adds to them.

use std::fmt;

use super::{DIALECTS, Dialect, EvalFolder, FormatMatch};
use crate::checks::{RULES, RuleKind};
use practicum_core::tree::SourceFile;

/// The eval formats and the deterministic checks that eval files may use.
///
/// Starts with the built-in ones. A program adds its own; one with the name of an earlier one replaces it.
///
/// ```
/// use practicum_evals::dialects::EvalRegistry;
///
/// let registry = EvalRegistry::default();
/// assert!(registry.format("skillet").is_some());
/// assert!(registry.check("contains").is_some());
/// ```
#[derive(Clone)]
pub struct EvalRegistry {
    formats: Vec<&'static dyn Dialect>,
    checks: Vec<&'static RuleKind>,
}

impl Default for EvalRegistry {
    fn default() -> Self {
        Self { formats: DIALECTS.to_vec(), checks: RULES.to_vec() }
    }
}

impl fmt::Debug for EvalRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.checks.iter().map(|kind| kind.key).collect();
        f.debug_struct("EvalRegistry").field("formats", &self.format_names()).field("checks", &keys).finish()
    }
}

impl EvalRegistry {
    /// Adds an eval format.
    #[must_use]
    pub fn with_format(mut self, format: &'static dyn Dialect) -> Self {
        self.formats.retain(|known| known.name() != format.name());
        self.formats.push(format);
        self
    }

    /// Adds a kind of deterministic check. Native eval files may then use its key.
    #[must_use]
    pub fn with_check(mut self, check: &'static RuleKind) -> Self {
        self.checks.retain(|known| known.key != check.key);
        self.checks.push(check);
        self
    }

    /// Gives all formats, the built-in ones first.
    pub fn formats(&self) -> &[&'static dyn Dialect] {
        &self.formats
    }

    /// Gives all kinds of checks, the built-in ones first.
    pub fn checks(&self) -> &[&'static RuleKind] {
        &self.checks
    }

    /// Gives the format of this name.
    pub fn format(&self, name: &str) -> Option<&'static dyn Dialect> {
        self.formats.iter().copied().find(|format| format.name() == name)
    }

    /// Gives the kind of check with this key.
    pub fn check(&self, key: &str) -> Option<&'static RuleKind> {
        self.checks.iter().copied().find(|kind| kind.key == key)
    }

    /// Gives the names of all formats.
    pub fn format_names(&self) -> Vec<&'static str> {
        self.formats.iter().map(|format| format.name()).collect()
    }

    /// Decides which format reads a document: asks each how well it fits.
    pub fn decide_format(&self, source: &SourceFile) -> FormatDecision {
        self.decide(|format| format.recognise(source))
    }

    /// Decides which format reads a folder as one eval.
    pub fn decide_folder_format(&self, folder: &EvalFolder) -> FormatDecision {
        self.decide(|format| format.recognise_folder(folder))
    }

    fn decide(&self, ask: impl Fn(&dyn Dialect) -> FormatMatch) -> FormatDecision {
        let asked =
            self.formats.iter().map(|format| FormatCandidate { format: *format, found: ask(*format) });
        let mut candidates: Vec<FormatCandidate> =
            asked.filter(|candidate| candidate.found.score() > 0).collect();
        // The sort is stable: between equals, the earlier format comes first.
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.found.score()));
        FormatDecision { candidates }
    }

    /// Says whether some format fits a document.
    pub(crate) fn knows_file(&self, source: &SourceFile) -> bool {
        self.formats.iter().any(|format| format.recognise(source).score() > 0)
    }

    /// Says whether some format reads a folder as one eval.
    pub(crate) fn knows_folder(&self, path: &std::path::Path) -> bool {
        self.formats.iter().any(|format| format.reads_folders())
            && EvalFolder::open(path)
                .is_ok_and(|folder| self.decide_folder_format(&folder).chosen().is_some())
    }

    /// Gives the names of files that only hold evals, each once: whole names, and `*` with an ending.
    pub(crate) fn eval_file_names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for name in self.formats.iter().flat_map(|format| format.file_names()) {
            if !names.contains(name) {
                names.push(*name);
            }
        }
        names
    }

    /// Says whether a file of this name, in lower case, is only used for evals.
    pub(crate) fn is_eval_file_name(&self, name: &str) -> bool {
        self.formats.iter().flat_map(|format| format.file_names()).any(|known| {
            match known.strip_prefix('*') {
                Some(ending) => name.ends_with(ending),
                None => name == *known,
            }
        })
    }
}

/// A format that fits a document, and why.
#[derive(Clone)]
pub struct FormatCandidate {
    /// The format.
    pub format: &'static dyn Dialect,
    /// How well the document fits.
    pub found: FormatMatch,
}

/// The formats that fit a document, the best first.
#[derive(Clone, Default)]
pub struct FormatDecision {
    /// The formats that fit at all.
    pub candidates: Vec<FormatCandidate>,
}

/// The lead in points below which two formats fit about equally well.
const CLEAR_LEAD: u32 = 20;

impl FormatDecision {
    /// Gives the format that reads the document.
    pub fn chosen(&self) -> Option<&FormatCandidate> {
        self.candidates.first()
    }

    /// Gives the formats that fit about as well as the chosen one.
    pub fn rivals(&self) -> &[FormatCandidate] {
        let Some(best) = self.chosen().map(|best| best.found.score()) else { return &[] };
        let close = |candidate: &FormatCandidate| best - candidate.found.score() < CLEAR_LEAD;
        let count = self.candidates.iter().take_while(|candidate| close(candidate)).count();
        &self.candidates[1..count]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::dialects::{
        EvalFileLocation, ExportedSuite, LoadedFile, LocatedSuite, load_eval_file, merge_folders,
    };
    use crate::discover::{EvalSearch, discover};
    use practicum_core::model::{Case, Diagnostics, Origin, RelPath, Severity, Suite};

    /// A format that claims each YAML file with `prompt`, as Skillet does, and reads folders with a `task.md`.
    struct TaskFolders;

    impl Dialect for TaskFolders {
        fn name(&self) -> &'static str {
            "task-folders"
        }

        fn file_names(&self) -> &'static [&'static str] {
            &["*.task.txt"]
        }

        fn recognise(&self, source: &SourceFile) -> FormatMatch {
            match source.root.has("prompt") {
                true => FormatMatch::sure("it has a prompt"),
                false => FormatMatch::NO,
            }
        }

        fn lower(&self, _: &SourceFile, _: &EvalFileLocation, _: &mut Diagnostics) -> Option<Suite> {
            None
        }

        fn reads_folders(&self) -> bool {
            true
        }

        fn recognise_folder(&self, folder: &EvalFolder) -> FormatMatch {
            match folder.has("task.md") {
                true => FormatMatch::sure("it has a task.md"),
                false => FormatMatch::NO,
            }
        }

        fn lower_folder(
            &self,
            folder: &EvalFolder,
            place: &EvalFileLocation,
            diagnostics: &mut Diagnostics,
        ) -> Option<Suite> {
            let task = RelPath::new("task.md")?;
            let prompt = match folder.read_text(&task) {
                Ok(prompt) => prompt,
                Err(why) => {
                    diagnostics.error("unreadable-file", None, format!("task.md: {why}"));
                    return None;
                }
            };
            let digest = folder.digest_of([&task]);
            let origin = Origin { dialect: self.name().to_owned(), path: folder.path().to_owned(), digest };
            let id = folder.path().strip_prefix(&place.root).ok()?.to_string_lossy().into_owned();
            Some(Suite { cases: vec![Case::new(id, prompt)], ..Suite::empty("tasks", origin) })
        }

        fn schema(&self) -> Value {
            json!({})
        }

        fn export_suite(&self, _: &Suite, _: &Path) -> ExportedSuite {
            ExportedSuite { files: Vec::new(), losses: Vec::new(), lost_cases: Vec::new() }
        }

        fn folder_is_suite(&self) -> bool {
            true
        }
    }

    fn load(path: &Path, registry: &EvalRegistry) -> LoadedFile {
        let folder = path.parent().expect("a folder");
        let place = EvalFileLocation::new(folder, folder).with_registry(registry.clone());
        load_eval_file(path, &place, None)
    }

    #[test]
    fn a_tie_is_a_warning_that_names_both_formats() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\n").expect("write");
        let registry = EvalRegistry::default().with_format(&TaskFolders);
        let loaded = load(&path, &registry);
        assert_eq!(loaded.dialect, Some("skillet"), "the earlier format wins a tie");
        let warning = loaded.lowered.diagnostics.iter().find(|warning| warning.code == "ambiguous-format");
        let warning = warning.expect("a warning");
        assert_eq!(warning.severity, Severity::Warning);
        for part in ["skillet (it is YAML", "task-folders (it has a prompt)"] {
            assert!(warning.message.contains(part), "{}", warning.message);
        }
        let alone = load(&path, &EvalRegistry::default());
        assert!(alone.lowered.diagnostics.iter().all(|warning| warning.code != "ambiguous-format"));
    }

    #[test]
    fn a_folder_of_files_is_one_eval_and_its_files_are_none() {
        let tree = tempfile::tempdir().expect("a folder");
        let evals = tree.path().canonicalize().expect("real").join("evals");
        for (path, text) in [
            ("group/one.a/task.md", "First"),
            ("group/one.a/evals.json", "{}"),
            ("two/task.md", "Second"),
            ("other/readme.md", "x"),
            ("x.task.txt", "x"),
        ] {
            let path = evals.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("create");
            std::fs::write(path, text).expect("write");
        }
        let registry = EvalRegistry::default().with_format(&TaskFolders);
        let found = |path: &Path| {
            let search = EvalSearch {
                paths: vec![path.to_owned()],
                registry: registry.clone(),
                ..EvalSearch::default()
            };
            let found = discover(&search, &|path| path.to_owned()).expect("found");
            found.files.into_iter().map(|found| found.file).collect::<Vec<_>>()
        };
        let (one, two) = (evals.join("group/one.a"), evals.join("two"));
        assert_eq!(found(&evals), [one.clone(), two.clone(), evals.join("x.task.txt")]);
        assert_eq!(found(&two), std::slice::from_ref(&two), "a folder that is an eval may be named");
        let place = EvalFileLocation::new(&evals, &evals).with_registry(registry.clone());
        let suites = [one, two].map(|path| LocatedSuite {
            suite: load_eval_file(&path, &place, None).lowered.suite.expect("a suite"),
            root: evals.clone(),
            project: evals.clone(),
        });
        let merged = merge_folders(suites, &registry);
        let [LocatedSuite { suite, .. }] = merged.as_slice() else { panic!("one suite") };
        let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, ["group/one.a", "two"]);
    }

    #[test]
    fn a_later_format_replaces_an_earlier_one_of_the_same_name() {
        struct OtherSkillet;
        impl Dialect for OtherSkillet {
            fn name(&self) -> &'static str {
                "skillet"
            }
            fn recognise(&self, _: &SourceFile) -> FormatMatch {
                FormatMatch::NO
            }
            fn lower(&self, _: &SourceFile, _: &EvalFileLocation, _: &mut Diagnostics) -> Option<Suite> {
                None
            }
            fn schema(&self) -> Value {
                json!({})
            }
            fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
                TaskFolders.export_suite(suite, folder)
            }
        }
        let registry = EvalRegistry::default().with_format(&OtherSkillet);
        assert_eq!(registry.formats().len(), DIALECTS.len());
        let kinds = registry.formats().iter().filter(|format| format.name() == "skillet");
        assert_eq!(kinds.map(|format| format.folder_is_suite()).collect::<Vec<_>>(), [false]);
    }
}

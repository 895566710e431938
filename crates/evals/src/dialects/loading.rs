//! Loads eval files: finds the format, reads the cases, and joins the files of one folder to a suite.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use super::{Dialect, EvalFileLocation, EvalFolder, EvalRegistry, FormatDecision};
use practicum_core::model::{Case, Diagnostics, LoadedSuite, Severity, Span, Suite};
use practicum_core::tree::{self, NodeData, SourceFile, SourceSyntax, TreeNode};

/// The code of the notice that a file fits several formats.
pub const AMBIGUOUS_FORMAT: &str = "ambiguous-format";

/// A file after reading: its suite, the diagnostics, and the text for excerpts.
#[derive(Debug, Clone)]
pub struct LoadedFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The folder below which its cases are named.
    pub root: PathBuf,
    /// The project that the file belongs to.
    pub project: PathBuf,
    /// The content of the file; empty for a folder.
    pub text: String,
    /// The name of the format; `None` if no format fits.
    pub dialect: Option<&'static str>,
    /// The suite and the diagnostics.
    pub lowered: LoadedSuite,
    /// The suite without the cases that have errors, if only cases have errors.
    pub rest_of_suite: Option<RestOfSuite>,
}

impl LoadedFile {
    fn unread(path: &Path, text: String, place: &EvalFileLocation, diagnostics: Diagnostics) -> Self {
        Self {
            path: path.to_owned(),
            root: place.root.clone(),
            project: place.project.clone(),
            text,
            dialect: None,
            lowered: LoadedSuite { suite: None, diagnostics },
            rest_of_suite: None,
        }
    }
}

/// A suite without those of its cases that have errors.
#[derive(Debug, Clone)]
pub struct RestOfSuite {
    pub suite: Suite,
    /// The ids of the cases that were left out.
    pub broken_cases: Vec<String>,
}

/// Reads one eval file, or one folder that is an eval, in the given format or in the one that fits best.
///
/// ```
/// use practicum_evals::dialects::{EvalFileLocation, load_eval_file};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("greeting.practicum.yaml");
/// std::fs::write(
///     &file,
///     "practicum: 1\ncases:\n  - { id: hello, prompt: Say hello., checks: [{ contains: hello }] }\n",
/// )?;
/// let place = EvalFileLocation::new(folder.path(), folder.path());
/// let loaded = load_eval_file(&file, &place, None);
/// assert_eq!(loaded.dialect, Some("native"));
/// let suite = loaded.lowered.suite.expect("a suite without errors");
/// assert_eq!(suite.cases[0].id, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn load_eval_file(
    path: &Path,
    place: &EvalFileLocation,
    forced: Option<&'static dyn Dialect>,
) -> LoadedFile {
    if path.is_dir() {
        return load_eval_folder(path, place, forced);
    }
    let mut diagnostics = Diagnostics::default();
    let (text, source) = SourceFile::read(path, &mut diagnostics);
    lower_text(path, text, source, place, forced, diagnostics)
}

/// Reads a folder that is one eval.
fn load_eval_folder(
    path: &Path,
    place: &EvalFileLocation,
    forced: Option<&'static dyn Dialect>,
) -> LoadedFile {
    let mut loaded = LoadedFile::unread(path, String::new(), place, Diagnostics::default());
    let diagnostics = &mut loaded.lowered.diagnostics;
    let folder = match EvalFolder::open(path) {
        Ok(folder) => folder,
        Err(why) => {
            diagnostics.error("unreadable-folder", None, format!("cannot read {}: {why}", path.display()));
            return loaded;
        }
    };
    let decision = place.registry.decide_folder_format(&folder);
    let Some(format) = forced.or_else(|| choose_format(&decision, diagnostics)) else {
        let message = format!("the folder {} is an eval of no known format", path.display());
        diagnostics.error_with_help("unknown-format", None, message, name_a_format(&place.registry));
        return loaded;
    };
    loaded.dialect = Some(format.name());
    let mut suite = format.lower_folder(&folder, place, diagnostics);
    tidy_names(suite.as_mut(), diagnostics);
    loaded.lowered.suite = suite.filter(|_| !diagnostics.has_errors());
    loaded
}

/// Reads a text as if it were the content of a file.
pub fn load_text(path: &Path, text: String, place: &EvalFileLocation) -> LoadedFile {
    let mut diagnostics = Diagnostics::default();
    let source = SourceFile::parse(path, text.clone(), SourceSyntax::detect(path, &text), &mut diagnostics);
    lower_text(path, text, source, place, None, diagnostics)
}

fn lower_text(
    path: &Path,
    text: String,
    source: Option<SourceFile>,
    place: &EvalFileLocation,
    forced: Option<&'static dyn Dialect>,
    diagnostics: Diagnostics,
) -> LoadedFile {
    let mut loaded = LoadedFile::unread(path, text, place, diagnostics);
    let Some(source) = source else { return loaded };
    let diagnostics = &mut loaded.lowered.diagnostics;
    let Some(dialect) = forced.or_else(|| recognise(&source, &place.registry, diagnostics)) else {
        return loaded;
    };
    loaded.dialect = Some(dialect.name());
    let mut suite = dialect.lower(&source, place, diagnostics);
    tidy_names(suite.as_mut(), diagnostics);
    if diagnostics.has_errors() {
        loaded.rest_of_suite = without_broken_cases(source, dialect, place, diagnostics);
        return loaded;
    }
    loaded.lowered.suite = suite;
    loaded
}

/// Removes the line break that a name in a block of YAML ends with, and reports names of several lines.
fn tidy_names(suite: Option<&mut Suite>, diagnostics: &mut Diagnostics) {
    if let Some(suite) = suite {
        suite.name = suite.name.trim().to_owned();
        reject_names_of_several_lines(suite, diagnostics);
    }
}

/// Reports names with line breaks or other control characters. Printed in a line of progress or in a report, they
/// could look like the result of another case.
fn reject_names_of_several_lines(suite: &Suite, diagnostics: &mut Diagnostics) {
    let ids = suite.cases.iter().map(|case| ("the id of a case", &case.id));
    for (what, name) in std::iter::once(("the name of the suite", &suite.name)).chain(ids) {
        if name.contains(char::is_control) {
            diagnostics.error_with_help(
                "control-character",
                None,
                format!("{what} has a line break or another control character in it: {name:?}"),
                "write it in one line",
            );
        }
    }
}

/// Reads a file again without the cases that have errors. Gives `None` if there are other errors, or if a case has
/// no id of its own: leaving one out could then give another case its id.
fn without_broken_cases(
    mut source: SourceFile,
    dialect: &'static dyn Dialect,
    place: &EvalFileLocation,
    diagnostics: &Diagnostics,
) -> Option<RestOfSuite> {
    let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let spans: Vec<Span> = errors.map(|error| error.span).collect::<Option<_>>()?;
    let mut broken = Vec::new();
    for cases in case_lists(&mut source.root) {
        let ids: Vec<String> = cases.iter().map(own_id).collect::<Option<_>>()?;
        let mut ids = ids.into_iter();
        cases.retain(|case| {
            let id = ids.next().unwrap_or_default();
            let is_broken = spans.iter().any(|at| (case.span.start..case.span.end).contains(&at.start));
            broken.extend(is_broken.then_some(id));
            !is_broken
        });
    }
    let mut found = Diagnostics::default();
    let suite = dialect.lower(&source, place, &mut found).filter(|_| !found.has_errors())?;
    (diagnostics.dropped() == 0 && !broken.is_empty()).then_some(RestOfSuite { suite, broken_cases: broken })
}

/// Gives the lists of cases of a document, in any format in which a case has an id.
fn case_lists(root: &mut TreeNode) -> Vec<&mut Vec<TreeNode>> {
    match &mut root.data {
        NodeData::List(cases) => vec![cases],
        NodeData::Map(entries) => {
            let lists = entries.iter_mut().filter(|entry| ["cases", "evals"].contains(&entry.key.as_str()));
            lists
                .filter_map(|entry| match &mut entry.value.data {
                    NodeData::List(cases) => Some(cases),
                    _ => None,
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn own_id(case: &TreeNode) -> Option<String> {
    match &case.get("id")?.data {
        NodeData::Text(id) => Some(id.trim().to_owned()),
        NodeData::Int(id) => Some(id.to_string()),
        _ => None,
    }
}

fn recognise(
    source: &SourceFile,
    registry: &EvalRegistry,
    diagnostics: &mut Diagnostics,
) -> Option<&'static dyn Dialect> {
    let chosen = choose_format(&registry.decide_format(source), diagnostics);
    if chosen.is_none() {
        diagnostics.error_with_help(
            "unknown-format",
            Span::new(source.root.span.start, source.root.span.start + 1),
            format!("this is none of the eval formats: {}", describe_document(&source.root)),
            name_a_format(registry),
        );
    }
    chosen
}

fn name_a_format(registry: &EvalRegistry) -> String {
    format!("name one with --dialect: {}", registry.format_names().join(", "))
}

/// Chooses the format that fits best. A warning names the formats that fit about as well.
fn choose_format(decision: &FormatDecision, diagnostics: &mut Diagnostics) -> Option<&'static dyn Dialect> {
    let best = decision.chosen()?;
    let rivals = decision.rivals();
    if !rivals.is_empty() {
        let named: Vec<String> = rivals
            .iter()
            .map(|rival| format!("{} ({})", rival.format.name(), rival.found.describe()))
            .collect();
        let message = format!(
            "read as {} ({}); it could also be {}; choose with --dialect",
            best.format.name(),
            best.found.describe(),
            named.join(" or ")
        );
        diagnostics.warning(AMBIGUOUS_FORMAT, None, message);
    }
    Some(best.format)
}

/// Describes the content of a document that no format fits, for a message.
fn describe_document(root: &TreeNode) -> String {
    const MOST_KEYS_SHOWN: usize = 8;
    let keys = |entries: &[tree::MapEntry]| {
        let keys: Vec<String> =
            entries.iter().take(MOST_KEYS_SHOWN).map(|entry| format!("\"{}\"", entry.key)).collect();
        keys.join(", ")
    };
    match &root.data {
        NodeData::Map(entries) if !entries.is_empty() => format!("a mapping with {}", keys(entries)),
        NodeData::List(items) => match items.first().and_then(TreeNode::as_map) {
            Some(entries) if !entries.is_empty() => format!("a list of mappings with {}", keys(entries)),
            Some(_) | None => root.kind_name().to_owned(),
        },
        _ => root.kind_name().to_owned(),
    }
}

/// Gives the id of the only case of a file if the format makes it from the file's path; `None` if the file itself
/// gives the ids of its cases.
pub fn case_id_of_file(file: &LoadedFile, registry: &EvalRegistry) -> Option<String> {
    let is_yaml = file.path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let is_own_case = match file.dialect {
        Some(dialect) => registry.format(dialect).is_some_and(Dialect::folder_is_suite),
        // The file is too broken for any format to recognise it. A native file is known by its name.
        None => is_yaml && !file.path.to_string_lossy().contains(".practicum."),
    };
    is_own_case.then(|| id_below(&file.path, &file.root))
}

/// Gives the path of a file or folder below its suite's folder, without the extension of a file.
pub fn id_below(path: &Path, root: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    // The name of a folder has no extension, even if there is a dot in it.
    let below = if path.is_dir() { below.to_owned() } else { below.with_extension("") };
    below.to_string_lossy().into_owned()
}

/// Gives an unused id. `one.yaml` and `one.yml` side by side are two cases, so the second keeps its extension; folders
/// have none and get a number.
fn unique_id(id: String, taken: &[Case], path: &Path) -> String {
    let is_taken = |id: &str| taken.iter().any(|case| case.id == id);
    if !is_taken(&id) {
        return id;
    }
    let ending = path.extension().map(|ending| format!("{id}.{}", ending.to_string_lossy()));
    let numbered = (2_u32..).map(|number| format!("{id}-{number}"));
    ending.into_iter().chain(numbered).find(|wanted| !is_taken(wanted)).unwrap_or(id)
}

/// A suite, the folder below which its cases are named, and its project.
#[derive(Debug, Clone)]
pub struct LocatedSuite {
    /// The suite.
    pub suite: Suite,
    /// The folder below which the cases are named.
    pub root: PathBuf,
    /// The project that the suite belongs to.
    pub project: PathBuf,
}

/// Joins the files of formats in which a folder is the suite: one suite for each folder.
pub fn merge_folders(
    loaded: impl IntoIterator<Item = LocatedSuite>,
    registry: &EvalRegistry,
) -> Vec<LocatedSuite> {
    let mut suites: Vec<LocatedSuite> = Vec::new();
    // Evals of different skills are different suites, even in one folder.
    type SuiteKey = (String, PathBuf, PathBuf, Vec<PathBuf>);
    let mut folders: HashMap<SuiteKey, usize> = HashMap::new();
    for mut placed in loaded {
        let dialect = &placed.suite.origin.dialect;
        if !registry.format(dialect).is_some_and(Dialect::folder_is_suite) {
            suites.push(placed);
            continue;
        }
        let about = placed.suite.skills.iter().filter_map(|skill| skill.path.clone());
        let about = about.chain(placed.suite.plugins.iter().cloned()).collect();
        match folders.entry((dialect.clone(), placed.root.clone(), placed.project.clone(), about)) {
            Entry::Occupied(known) => {
                let known = &mut suites[*known.get()].suite;
                for case in placed.suite.cases {
                    let id = unique_id(case.id, &known.cases, &placed.suite.origin.path);
                    known.cases.push(Case { id, ..case });
                }
            }
            Entry::Vacant(new) => {
                new.insert(suites.len());
                placed.suite.origin.path.clone_from(&placed.root);
                suites.push(placed);
            }
        }
    }
    suites
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::testing;

    #[test]
    fn one_folder_is_one_suite_and_no_two_cases_share_an_id() {
        let root = Path::new("/nowhere/evals");
        let text = "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e";
        let skillet = super::super::find_dialect("skillet").expect("a dialect");
        let lowered = |path: &str| {
            let source = testing::parse_source(root.join(path), text);
            let suite =
                testing::lower_source(skillet, &source, &testing::location_in(root)).0.expect("a suite");
            LocatedSuite { suite, root: root.to_owned(), project: root.to_owned() }
        };
        let merged = merge_folders(
            [lowered("a.yaml"), lowered("a.yml"), lowered("b/a.yaml")],
            &EvalRegistry::default(),
        );
        let [LocatedSuite { suite, .. }] = merged.as_slice() else { panic!("one suite") };
        let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!((ids, suite.origin.path.as_path()), (vec!["a", "a.yml", "b/a"], root));
    }

    #[test]
    fn a_file_that_fits_two_formats_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text, chosen, codes) in [
            (
                "a.json",
                r#"{"evals": [{"id": 1, "prompt": "p", "expectations": ["e"]}]}"#,
                "skill-creator",
                false,
            ),
            (
                "b.json",
                r#"{"evals": [{"id": "A", "prompt": "p", "expectations": ["e"]}]}"#,
                "skill-creator",
                true,
            ),
            (
                "c.json",
                r#"{"evals": [{"id": 1, "prompt": "p", "assertions": ["e"]}]}"#,
                "skill-creator",
                false,
            ),
            ("triggers.json", r#"[{"query": "q", "should_trigger": true}]"#, "bmad", false),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("write");
            let loaded = load_eval_file(&path, &testing::location_in(folder.path()), None);
            assert_eq!(loaded.dialect, Some(chosen), "{text}");
            let told = loaded.lowered.diagnostics.iter().any(|said| said.code == AMBIGUOUS_FORMAT);
            assert_eq!(told, codes, "{text}");
        }
    }
}

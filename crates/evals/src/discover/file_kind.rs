//! Guesses what a file holds from its name and its beginning.

use std::io::Read;
use std::path::Path;

use crate::dialects::EvalRegistry;
use practicum_core::model::Diagnostics;
use practicum_core::tree::{self, NodeData, SourceFile, TreeNode, open_regular, read_bounded};

/// A guess at the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvalFileKind {
    /// Evals, by the file's name; or a whole suite in YAML, of a format that is usually written in JSON.
    NamedAsEvals,
    /// Evals, by the file's content.
    Evals(DataSyntax),
    /// An incomplete eval: it has one of the keys that every eval of its format has.
    PartialEval(DataSyntax),
    /// An empty file, a list, text without any key, or a file that cannot be opened. Among evals it is probably an
    /// unfinished eval; elsewhere it can be anything.
    Unfinished(DataSyntax),
    /// YAML or JSON of another kind.
    Data(DataSyntax),
    /// Nothing that could hold evals.
    Other,
}

/// The syntax of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataSyntax {
    Yaml,
    Json,
    /// A syntax in which evals are rarely or never written: a JSON value in each line, JSON with comments.
    Unsupported,
}

/// Says whether a file has a name for evals, such as `evals`, with another extension than theirs.
pub fn is_named_like_evals(path: &Path, registry: &EvalRegistry) -> bool {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    stem.is_some_and(|stem| registry.eval_file_names().contains(&format!("{stem}.json").as_str()))
}

impl DataSyntax {
    /// The syntax that the ending of a file's name stands for.
    pub fn of_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_string_lossy().to_lowercase();
        match ending.as_str() {
            "yaml" | "yml" => Some(DataSyntax::Yaml),
            "json" => Some(DataSyntax::Json),
            "jsonl" | "ndjson" | "jsonc" | "json5" => Some(DataSyntax::Unsupported),
            _ => None,
        }
    }
}

impl EvalFileKind {
    /// Guesses the content of a file.
    pub fn detect(path: &Path, registry: &EvalRegistry) -> Self {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return EvalFileKind::Other };
        let name = name.to_lowercase();
        if registry.is_eval_file_name(&name) {
            return EvalFileKind::NamedAsEvals;
        }
        // What cannot be read, such as a link to nothing, may be an eval; whoever reads it says what is wrong.
        match DataSyntax::of_path(path) {
            Some(DataSyntax::Yaml) => {
                read_head(path).map_or(EvalFileKind::Unfinished(DataSyntax::Yaml), |text| {
                    match detect_yaml(&text) {
                        // The answers of a scripted model lie beside the evals that use them.
                        _ if text.lines().any(|line| line.starts_with("practicum_script:")) => {
                            EvalFileKind::Other
                        }
                        EvalFileKind::Evals(syntax) => EvalFileKind::Evals(syntax),
                        at_first_sight => detect_by_keys(path, registry).unwrap_or(at_first_sight),
                    }
                })
            }
            Some(DataSyntax::Json) => {
                read_head(path).map_or(EvalFileKind::Unfinished(DataSyntax::Json), |text| {
                    match detect_json(&text) {
                        EvalFileKind::Data(_) if is_long_suite(path, registry) => {
                            EvalFileKind::Evals(DataSyntax::Json)
                        }
                        at_first_sight => at_first_sight,
                    }
                })
            }
            Some(DataSyntax::Unsupported) if name.ends_with(".jsonl") || name.ends_with(".ndjson") => {
                match is_list_of_evals(path, registry) {
                    true => EvalFileKind::Evals(DataSyntax::Json),
                    false => EvalFileKind::Data(DataSyntax::Unsupported),
                }
            }
            Some(DataSyntax::Unsupported) => EvalFileKind::Data(DataSyntax::Unsupported),
            // A link to nothing that may have led to a folder of evals.
            None if !name.contains('.') && is_broken_link(path) => EvalFileKind::Unfinished(DataSyntax::Yaml),
            None => EvalFileKind::Other,
        }
    }

    /// Says whether the file holds evals, by its name or its content.
    pub fn holds_evals(self) -> bool {
        matches!(self, EvalFileKind::NamedAsEvals | EvalFileKind::Evals(_))
    }
}

/// What a file beside evals is, seen as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeighbourKind {
    /// It has the keys of an eval format.
    Evals,
    /// It is empty, or cannot be parsed.
    Broken,
    /// Data that has nothing to do with evals.
    Data,
}

impl NeighbourKind {
    pub fn detect(path: &Path, registry: &EvalRegistry) -> Self {
        if std::fs::metadata(path).is_ok_and(|file| file.len() > LARGEST_PARSED) {
            return NeighbourKind::Data;
        }
        let Some(source) = SourceFile::read(path, &mut Diagnostics::default()).1 else {
            return NeighbourKind::Broken;
        };
        let is_case = |item: &TreeNode| ["prompt", "query"].iter().any(|key| item.has(key));
        match &source.root.data {
            NodeData::Null => NeighbourKind::Broken,
            NodeData::List(items) if items.is_empty() => NeighbourKind::Broken,
            NodeData::List(items) if items.iter().any(is_case) => NeighbourKind::Evals,
            _ if registry.knows_file(&source) => NeighbourKind::Evals,
            _ => NeighbourKind::Data,
        }
    }
}

/// Whether a link leads to nothing.
pub fn is_broken_link(path: &Path) -> bool {
    path.is_symlink() && !path.exists()
}

/// The largest file that is parsed to find out whether it is an eval.
const LARGEST_PARSED: u64 = 1024 * 1024;

/// Says whether a file with a JSON value in each line holds evals: each line is a case, and a format knows them. The
/// transcripts of agents and the results of runs have such files too.
fn is_list_of_evals(path: &Path, registry: &EvalRegistry) -> bool {
    if !std::fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST_PARSED) {
        return false;
    }
    let Some(source) = SourceFile::read(path, &mut Diagnostics::default()).1 else { return false };
    let is_case = |item: &TreeNode| {
        ["prompt", "query", "question"]
            .iter()
            .any(|key| item.get(key).is_some_and(|node| node.as_text().is_some()))
    };
    let items = source.root.as_list().unwrap_or_default();
    !items.is_empty() && items.iter().all(is_case) && registry.knows_file(&source)
}

/// Says whether a JSON file holds evals although its beginning does not show it, as when the first prompt or the
/// description is very long. A long file of data may mention some of the keys, so it must also fit a format.
fn is_long_suite(path: &Path, registry: &EvalRegistry) -> bool {
    if !std::fs::metadata(path).is_ok_and(|file| file.len() > HEAD_BYTES) {
        return false;
    }
    let text = read_bounded(path, LARGEST_PARSED).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text.filter(|text| detect_json(text).holds_evals()) else { return false };
    SourceFile::parse(path, text, tree::SourceSyntax::Json, &mut Diagnostics::default())
        .is_some_and(|source| registry.knows_file(&source))
}

/// Words of which a suite in YAML has at least one: the keys of its cases.
const SUITE_KEYS: [&str; 5] = ["expectation", "test_cases", "should_trigger", "expected_skill", "rubric"];

/// Classifies a YAML file by the keys of its document, however it is written: on one line, indented, or with a
/// long text before the relevant keys. Gives `None` if nothing in it is about evals.
fn detect_by_keys(path: &Path, registry: &EvalRegistry) -> Option<EvalFileKind> {
    let bytes = read_bounded(path, LARGEST_PARSED).ok()?;
    let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if is_utf16 {
        return Some(EvalFileKind::Unfinished(DataSyntax::Yaml));
    }
    let text = String::from_utf8(bytes).ok()?;
    let may_be_case = text.contains("prompt") && text.contains("expected");
    let may_be_suite = SUITE_KEYS.iter().any(|key| text.contains(key));
    if !may_be_case && !may_be_suite {
        return None;
    }
    let text = text.trim_start_matches('\u{feff}').to_owned();
    let mut problems = Diagnostics::default();
    // A file that cannot be parsed may be an eval. Loading it reports the error.
    let broken = EvalFileKind::Unfinished(DataSyntax::Yaml);
    let Some(source) = SourceFile::parse(path, text, tree::SourceSyntax::Yaml, &mut problems) else {
        return may_be_case.then_some(broken);
    };
    let has_key = |key: &str| source.root.has(key);
    match (has_key("prompt"), has_key("expected")) {
        (false, false) if may_be_suite && registry.knows_file(&source) => {
            // Other tools have files of the same names, whose cases ask under other keys.
            match has_prompts(&source.root) {
                true => Some(EvalFileKind::NamedAsEvals),
                false => is_named_like_evals(path, registry).then_some(broken),
            }
        }
        (true, true) => Some(EvalFileKind::Evals(DataSyntax::Yaml)),
        (true, false) | (false, true) => Some(EvalFileKind::PartialEval(DataSyntax::Yaml)),
        (false, false) => None,
    }
}

/// Says whether the cases of a suite have prompts.
fn has_prompts(suite: &TreeNode) -> bool {
    let lists = [Some(suite), suite.get("cases"), suite.get("evals")].into_iter().flatten();
    let mut cases = lists.filter_map(TreeNode::as_list).flatten();
    let is_case = |case: &TreeNode| ["prompt", "query", "input"].iter().any(|key| case.has(key));
    suite.has("skills") || suite.has("practicum") || cases.any(is_case)
}

fn detect_yaml(text: &str) -> EvalFileKind {
    let text = text.trim_start_matches('\u{feff}');
    let has_key = |key: &str| text.lines().any(|line| has_top_key(line, key));
    let (prompt, expected) = (has_key("prompt"), has_key("expected"));
    // One of the two keys may be misspelt. The eval must not silently drop out of the suite because of that.
    if prompt && expected || has_key("timestamp") && (prompt || expected) {
        return EvalFileKind::Evals(DataSyntax::Yaml);
    }
    let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '%']) && *line != "---";
    let first = text.lines().find(is_said);
    let is_list = first.is_some_and(|line| line.trim_start().starts_with(['-', '[']));
    let has_keys = text.lines().any(|line| line.contains(": ") || line.trim_end().ends_with(':'));
    let is_scalar = !has_keys && !text.contains('{');
    match first {
        _ if prompt || expected || has_key("timestamp") && has_key("name") => {
            EvalFileKind::PartialEval(DataSyntax::Yaml)
        }
        None => EvalFileKind::Unfinished(DataSyntax::Yaml),
        Some(_) if is_list || is_scalar => EvalFileKind::Unfinished(DataSyntax::Yaml),
        Some(_) => EvalFileKind::Data(DataSyntax::Yaml),
    }
}

fn detect_json(text: &str) -> EvalFileKind {
    let has_key = |key: &str| text.contains(&format!("\"{key}\""));
    let holds_evals = has_key("test_cases")
        || has_key("negative_cases")
        || has_key("should_trigger") && (has_key("query") || has_key("prompt"))
        || has_key("expected_skill")
        || has_key("expectation") && has_key("prompt")
        || has_key("expectations") && has_key("prompt")
        || has_key("evals") && has_key("prompt")
        || has_key("rubric") && has_key("input");
    match text.trim() {
        _ if holds_evals => EvalFileKind::Evals(DataSyntax::Json),
        "" | "[]" => EvalFileKind::Unfinished(DataSyntax::Json),
        list if list.starts_with('[') && (has_key("query") || has_key("should_trigger")) => {
            EvalFileKind::PartialEval(DataSyntax::Json)
        }
        // JSON is also YAML: in a folder with one eval per YAML file, this file is one more eval.
        object if object.starts_with('{') && has_key("prompt") && has_key("expected") => {
            EvalFileKind::PartialEval(DataSyntax::Yaml)
        }
        _ => EvalFileKind::Data(DataSyntax::Json),
    }
}

/// Says whether a line of YAML begins with this key at the top level, quoted or not.
fn has_top_key(line: &str, key: &str) -> bool {
    let plain = |line: &str| line.strip_prefix(key).map(str::to_owned);
    let quoted =
        |quote: char| line.strip_prefix(quote)?.strip_prefix(key)?.strip_prefix(quote).map(str::to_owned);
    let after = plain(line).or_else(|| quoted('"')).or_else(|| quoted('\''));
    after.is_some_and(|after| after.trim_start().starts_with(':'))
}

/// The number of bytes of a file that are read to decide whether it is worth parsing.
const HEAD_BYTES: u64 = 16 * 1024;

fn read_head(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(HEAD_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_eval_is_told_from_other_data() {
        use DataSyntax::Yaml;
        use EvalFileKind::{Data, Evals, PartialEval, Unfinished};
        for (text, expected) in [
            ("prompt: p\nexpected: e\n", Evals(Yaml)),
            ("name: n\nprompt: p\n", PartialEval(Yaml)),
            ("name: n\n\"expected\": e\n", PartialEval(Yaml)),
            ("- prompt: p\n  expected: e\n", Unfinished(Yaml)),
            ("", Unfinished(Yaml)),
            ("# nothing yet\n---\n", Unfinished(Yaml)),
            ("- a\n- b\n", Unfinished(Yaml)),
            ("[a, b]\n", Unfinished(Yaml)),
            ("hello\n", Unfinished(Yaml)),
            ("port: 80\n", Data(Yaml)),
            ("{port: 80}\n", Data(Yaml)),
            ("jobs:\n  prompt: p\n", Data(Yaml)),
        ] {
            assert_eq!(detect_yaml(text), expected, "{text}");
        }
    }
}

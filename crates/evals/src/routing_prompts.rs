//! Reads files of prompts for a catalogue of skills: each prompt with the skill that it should activate.
//!
//! In: a YAML, JSON, JSONL or CSV file. Out: prompts, or diagnostics. Never: knows which skills exist.
//!
//! ```yaml
//! - prompt: Write the release notes for 2.0.
//!   expected: release-notes
//! - prompt: What is a semantic version?
//!   expected: null                 # no skill
//! - prompt: Tell our users what is new.
//!   expected: [release-notes, newsletter]
//!   id: what-is-new
//! ```
//!
//! A CSV file has the columns `prompt`, `expected` (empty for no skill, `|` between several) and perhaps `id`.

use std::collections::HashSet;
use std::path::Path;

use practicum_core::model::{Diagnostics, Digest, Span};
use practicum_core::tree::{
    MapEntry, NodeData, ObjectReader, SourceFile, TreeNode, read_bounded, report_wrong_type,
};

/// A prompt, and the skills of which one should be activated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingPrompt {
    /// The id, unique in its file.
    pub id: String,
    /// The user's message.
    pub prompt: String,
    /// The skills of which one should be activated, in order. Empty if none should be.
    pub expected: Vec<String>,
}

/// The greatest number of prompts in a file.
const MOST_PROMPTS: usize = 100_000;

/// The largest CSV file that is read, in bytes.
const LARGEST_TABLE: u64 = 32 * 1024 * 1024;

/// Reads a file of prompts. Also gives its text, so that an excerpt can be shown.
pub fn read_routing_prompts(path: &Path, diagnostics: &mut Diagnostics) -> (String, Vec<RoutingPrompt>) {
    let is_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let (text, root) = if is_csv {
        let read = read_bounded(path, LARGEST_TABLE)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|error| format!("not UTF-8 text: {error}")));
        match read {
            Ok(text) => {
                let root = table_of_csv(&text, diagnostics);
                (text, root)
            }
            Err(error) => {
                let problem = format!("cannot read {}: {error}", path.display());
                diagnostics.error("unreadable-file", None, problem);
                (String::new(), None)
            }
        }
    } else {
        let (text, source) = SourceFile::read(path, diagnostics);
        (text, source.map(|source| source.root))
    };
    let prompts = root.map(|root| prompts_of(&root, diagnostics)).unwrap_or_default();
    (text, if diagnostics.has_errors() { Vec::new() } else { prompts })
}

/// The columns of a table of prompts.
const COLUMNS: [&str; 3] = ["prompt", "expected", "id"];

/// Makes a list of objects from the lines of a CSV file.
fn table_of_csv(text: &str, diagnostics: &mut Diagnostics) -> Option<TreeNode> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(text.as_bytes());
    let mut fail = |error: csv::Error| {
        diagnostics.error("invalid-csv", None, error.to_string());
        None
    };
    let heads = match reader.headers() {
        Ok(heads) => heads.clone(),
        Err(error) => return fail(error),
    };
    // Said once, and not for each row.
    if let Some(unknown) = heads.iter().find(|head| !COLUMNS.contains(head)) {
        let name: String = unknown.chars().take(60).collect();
        let message = format!("unknown column \"{name}\"; a table of prompts has {}", COLUMNS.join(", "));
        diagnostics.error("unknown-key", None, message);
        return None;
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => return fail(error),
        };
        let at = record.position().map_or(0, |position| position.byte() as usize).min(text.len());
        let span = Span::new(at, at);
        let node = |data: NodeData| TreeNode { data, span };
        let entry = |(key, value): (&str, &str)| {
            let text = |text: &str| node(NodeData::Text(text.to_owned()));
            let value = match key {
                "expected" if value.trim().is_empty() => node(NodeData::Null),
                "expected" => node(NodeData::List(value.split('|').map(|name| text(name.trim())).collect())),
                _ => text(value),
            };
            MapEntry { key: key.to_owned(), key_span: span, value }
        };
        let entries = heads.iter().zip(&record).filter(|(key, value)| *key != "id" || !value.is_empty());
        rows.push(node(NodeData::Map(entries.map(entry).collect())));
    }
    Some(TreeNode { data: NodeData::List(rows), span: Span::new(0, 0) })
}

fn prompts_of(root: &TreeNode, diagnostics: &mut Diagnostics) -> Vec<RoutingPrompt> {
    let nodes = match root.as_list() {
        Some(nodes) => nodes,
        None => {
            let mut file = match ObjectReader::new(root, "the file of prompts", diagnostics) {
                Some(file) => file,
                None => return Vec::new(),
            };
            if !file.is_known_key("prompts") && file.peek("prompts").is_none() {
                file.report_missing("prompts", diagnostics);
            }
            let nodes = file.list("prompts", diagnostics).unwrap_or_default();
            file.reject_unknown_keys("the file of prompts", diagnostics);
            nodes
        }
    };
    if nodes.is_empty() && !diagnostics.has_errors() {
        diagnostics.error("no-prompts", root.span, "the file has no prompts");
    }
    if nodes.len() > MOST_PROMPTS {
        diagnostics.error("too-many-prompts", None, format!("there are more than {MOST_PROMPTS} prompts"));
        return Vec::new();
    }
    let mut known = HashSet::new();
    let mut prompts = Vec::new();
    for node in nodes {
        let Some(prompt) = read_prompt(node, diagnostics) else { continue };
        if !known.insert(prompt.id.clone()) {
            let problem = format!("the prompt \"{}\" is there twice", prompt.id);
            diagnostics.error("same-prompt-twice", node.span, problem);
        }
        prompts.push(prompt);
    }
    prompts
}

fn read_prompt(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<RoutingPrompt> {
    let mut object = ObjectReader::new(node, "a prompt", diagnostics)?;
    let prompt = object.required_text("prompt", diagnostics).map(str::to_owned);
    let id = object.text("id", diagnostics).map(str::to_owned);
    let expected = match object.get("expected") {
        // Whether no skill is expected must be said, because a forgotten key would look the same.
        None => {
            object.report_missing("expected", diagnostics);
            None
        }
        Some(node) => expected_skills(node, diagnostics),
    };
    object.reject_unknown_keys("a prompt", diagnostics);
    let (prompt, mut expected) = (prompt?, expected?);
    if prompt.trim().is_empty() {
        diagnostics.error("empty-prompt", node.span, "the prompt is empty");
    }
    expected.sort();
    expected.dedup();
    // An id that depends on the position would change when a prompt is added.
    let named = || {
        let name = expected.first().map_or("none", String::as_str);
        format!("{name}-{}", Digest::of_bytes(prompt.as_bytes()).short())
    };
    Some(RoutingPrompt { id: id.filter(|id| !id.trim().is_empty()).unwrap_or_else(named), prompt, expected })
}

fn expected_skills(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Vec<String>> {
    match &node.data {
        NodeData::Null => Some(Vec::new()),
        NodeData::Text(name) if !name.trim().is_empty() => Some(vec![name.trim().to_owned()]),
        NodeData::List(names) => {
            let texts: Option<Vec<String>> =
                names.iter().map(|name| name.as_text().map(str::to_owned)).collect();
            let texts = texts.filter(|texts| texts.iter().all(|text| !text.trim().is_empty()));
            if texts.is_none() {
                report_wrong_type(node, "expected", "a list of skill names", diagnostics);
            }
            texts
        }
        _ => {
            report_wrong_type(node, "expected", "a skill's name, a list of names, or null", diagnostics);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Vec<RoutingPrompt>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("write");
        let mut diagnostics = Diagnostics::default();
        let (_, prompts) = read_routing_prompts(&path, &mut diagnostics);
        let problems: Vec<String> = diagnostics.iter().map(|problem| problem.message.clone()).collect();
        if problems.is_empty() { Ok(prompts) } else { Err(problems.join("; ")) }
    }

    #[test]
    fn the_same_prompts_in_every_syntax() {
        let yaml = "- { prompt: one, expected: a, id: x }\n- { prompt: two, expected: null }\n- { prompt: three, expected: [b, a] }\n";
        let json = r#"{"prompts": [{"prompt": "one", "expected": "a", "id": "x"}, {"prompt": "two", "expected": null},
            {"prompt": "three", "expected": ["b", "a"]}]}"#;
        let lines = "{\"prompt\": \"one\", \"expected\": \"a\", \"id\": \"x\"}\n{\"prompt\": \"two\", \"expected\": []}\n\
            {\"prompt\": \"three\", \"expected\": [\"b\", \"a\"]}\n";
        let csv = "prompt,expected,id\none,a,x\ntwo,,\nthree,b | a,\n";
        let expected = read("p.yaml", yaml).expect("prompts");
        assert_eq!(
            (expected[0].id.as_str(), &expected[2].expected),
            ("x", &vec!["a".to_owned(), "b".to_owned()])
        );
        assert!(expected[1].expected.is_empty() && expected[1].id.starts_with("none-"));
        for (name, text) in [("p.json", json), ("p.jsonl", lines), ("p.csv", csv)] {
            assert_eq!(read(name, text).as_ref(), Ok(&expected), "{name}");
        }
    }

    #[test]
    fn wrong_files_are_refused_with_the_reason() {
        for (name, text, reason) in [
            ("p.yaml", "- { prompt: one }", "expected"),
            ("p.yaml", "- { prompt: \" \", expected: a }", "blank"),
            ("p.yaml", "- { prompt: one, expected: a }\n- { prompt: one, expected: a }", "twice"),
            ("p.yaml", "- { prompt: one, expected: 3 }", "expected"),
            ("p.yaml", "- { prompt: one, expected: [\"\"] }", "expected"),
            ("p.yaml", "[]", "no prompts"),
            ("p.yaml", "{ prompt: one }", "prompts"),
            ("p.csv", "prompt,expected\none\n", "record"),
            ("p.csv", "prompt\none\n", "expected"),
            ("p.csv", "prompt,expected,skill\none,a,b\n", "skill"),
        ] {
            let problem = read(name, text).expect_err(text);
            assert!(problem.contains(reason), "{text}: {problem}");
        }
    }
}

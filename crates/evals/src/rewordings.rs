//! Reads and writes files of rewordings: for cases, the same request in other words.
//!
//! In: a YAML or JSON file, and suites. Out: rewordings, or diagnostics; suites with one case for each wording. Never: asks
//! a model.
//!
//! ```yaml
//! - case: greets-alice
//!   suite: greeter            # needed only if several suites have such a case
//!   rewordings:
//!     - Say hello to Alice for me.
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use practicum_core::model::{Case, CasePrompt, Diagnostics, Suite};
use practicum_core::studies::WordedCase;
use practicum_core::tree::{ObjectReader, SourceFile, TreeNode, report_wrong_type, to_yaml};

/// The rewordings of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseRewordings {
    /// The id of the case.
    pub case: String,
    /// The name of its suite; `None` if only one suite has such a case.
    pub suite: Option<String>,
    /// The first message of the user in other words.
    pub rewordings: Vec<String>,
}

/// The most rewordings in a file.
const MOST_REWORDINGS: usize = 10_000;

/// Reads a file of rewordings. Also gives its text, so that an excerpt can be shown.
pub fn read_rewordings(path: &Path, diagnostics: &mut Diagnostics) -> (String, Vec<CaseRewordings>) {
    let (text, source) = SourceFile::read(path, diagnostics);
    let found = source.map(|source| decode_file(&source.root, diagnostics)).unwrap_or_default();
    (text, if diagnostics.has_errors() { Vec::new() } else { found })
}

fn decode_file(root: &TreeNode, diagnostics: &mut Diagnostics) -> Vec<CaseRewordings> {
    let Some(nodes) = root.as_list() else {
        report_wrong_type(root, "the file", "a list of cases with their rewordings", diagnostics);
        return Vec::new();
    };
    let found: Vec<CaseRewordings> = nodes.iter().filter_map(|node| decode_case(node, diagnostics)).collect();
    let count: usize = found.iter().map(|case| case.rewordings.len()).sum();
    if count > MOST_REWORDINGS {
        diagnostics.error(
            "too-many-rewordings",
            None,
            format!("there are more than {MOST_REWORDINGS} rewordings"),
        );
    }
    if count == 0 && !diagnostics.has_errors() {
        diagnostics.error("no-rewordings", root.span, "the file has no rewordings");
    }
    found
}

fn decode_case(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<CaseRewordings> {
    let mut object = ObjectReader::new(node, "the rewordings of a case", diagnostics)?;
    let case = object.required_text("case", diagnostics).map(str::to_owned);
    let suite = object.text("suite", diagnostics).map(str::to_owned);
    // The original stands there for the reader.
    object.get("original");
    let texts = object.texts("rewordings", diagnostics);
    if texts.is_none() {
        object.report_missing("rewordings", diagnostics);
    }
    object.reject_unknown_keys("the rewordings of a case", diagnostics);
    let mut rewordings: Vec<String> = Vec::new();
    for (text, span) in texts.unwrap_or_default() {
        if text.trim().is_empty() {
            diagnostics.error("empty-text", span, "a rewording must not be blank");
        } else if rewordings.iter().any(|known| known == text) {
            diagnostics.error("same-text-twice", span, "this rewording is there twice");
        } else {
            rewordings.push(text.to_owned());
        }
    }
    Some(CaseRewordings { case: case?, suite, rewordings })
}

/// Writes a file of rewordings. Each comes with its case and the original text.
pub fn write_rewordings(found: &[(CaseRewordings, String)]) -> String {
    let entries = found.iter().map(|(CaseRewordings { case, suite, rewordings }, original)| {
        let mut map = Map::new();
        map.insert("case".to_owned(), json!(case));
        map.extend(suite.as_ref().map(|suite| ("suite".to_owned(), json!(suite))));
        map.insert("original".to_owned(), json!(original));
        map.insert("rewordings".to_owned(), json!(rewordings));
        Value::Object(map)
    });
    to_yaml(&entries.collect())
}

/// Gives the message of a case that is reworded: the first one. `None` if the case calls a skill by its command.
pub fn reworded_message(case: &Case) -> Option<&str> {
    match &case.prompt {
        CasePrompt::Turns(turns) => turns.first().map(String::as_str),
        CasePrompt::SkillCommand { .. } => None,
    }
}

/// Leaves in the suites only cases with rewordings, each with a copy for each of them. Gives the wording of every case, by
/// the name of its suite and its id. The error says which rewordings belong to no case.
pub fn add_reworded_cases(
    suites: &mut [&mut Suite],
    rewordings: &[CaseRewordings],
) -> Result<BTreeMap<(String, String), WordedCase>, String> {
    for wanted in rewordings {
        let has_case = |suite: &&&mut Suite| {
            wanted.suite.as_ref().is_none_or(|name| *name == suite.name)
                && suite.cases.iter().any(|case| case.id == wanted.case && reworded_message(case).is_some())
        };
        match suites.iter().filter(has_case).count() {
            1 => {}
            0 => return Err(format!("there is no case {} with a prompt", wanted.case)),
            _ => {
                return Err(format!(
                    "several suites have a case {}; add \"suite\" to its rewordings",
                    wanted.case
                ));
            }
        }
    }
    let mut worded = BTreeMap::new();
    for suite in suites.iter_mut() {
        let mut cases = Vec::new();
        for case in std::mem::take(&mut suite.cases) {
            let is_own = |wanted: &&CaseRewordings| {
                wanted.case == case.id && wanted.suite.as_ref().is_none_or(|name| *name == suite.name)
            };
            let texts: Vec<&String> =
                rewordings.iter().filter(is_own).flat_map(|own| &own.rewordings).collect();
            let (Some(original), false) = (reworded_message(&case).map(str::to_owned), texts.is_empty())
            else {
                continue;
            };
            let mut name = |id: &str, rewording, prompt: &str| {
                let worded_case = WordedCase { case: case.id.clone(), rewording, prompt: prompt.to_owned() };
                match worded.insert((suite.name.clone(), id.to_owned()), worded_case) {
                    None => Ok(()),
                    Some(_) => Err(format!("the id {id} of a case is also that of a rewording")),
                }
            };
            name(&case.id, None, &original)?;
            cases.push(case.clone());
            for (at, text) in texts.into_iter().enumerate() {
                let id = format!("{}-reworded-{}", case.id, at + 1);
                name(&id, Some(at + 1), text)?;
                cases.push(reworded_case(&case, id, text));
            }
        }
        suite.cases = cases;
    }
    Ok(worded)
}

fn reworded_case(case: &Case, id: String, text: &str) -> Case {
    let mut reworded = Case { id, ..case.clone() };
    if let CasePrompt::Turns(turns) = &mut reworded.prompt
        && let Some(first) = turns.first_mut()
    {
        text.clone_into(first);
    }
    reworded
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Digest, Origin};

    fn suite(name: &str, cases: &[&str]) -> Suite {
        let origin =
            Origin { dialect: "native".to_owned(), path: "e.yaml".into(), digest: Digest::of_bytes(b"") };
        let cases = cases.iter().map(|id| Case::new(*id, format!("Do {id}."))).collect();
        Suite { cases, ..Suite::empty(name, origin) }
    }

    fn read(text: &str) -> Result<Vec<CaseRewordings>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.yaml");
        std::fs::write(&path, text).expect("write");
        let mut diagnostics = Diagnostics::default();
        let (_, found) = read_rewordings(&path, &mut diagnostics);
        let problems: Vec<String> = diagnostics.iter().map(|problem| problem.message.clone()).collect();
        if problems.is_empty() { Ok(found) } else { Err(problems.join("; ")) }
    }

    #[test]
    fn files_are_read_as_they_are_written() {
        let own = CaseRewordings {
            case: "a: b".to_owned(),
            suite: Some("s".to_owned()),
            rewordings: vec!["- One\ntwo".to_owned(), "#three".to_owned()],
        };
        let written = write_rewordings(&[(own.clone(), "Original.".to_owned())]);
        assert_eq!(read(&written), Ok(vec![own]));
        for (text, problem) in [
            ("[]", "no rewordings"),
            ("a: 1", "a list of cases"),
            ("- { case: a }", "rewordings"),
            ("- { case: a, rewordings: [x, x] }", "twice"),
            ("- { case: a, rewordings: [' '] }", "blank"),
            ("- { case: a, rewordings: [x], reword: 1 }", "reword"),
        ] {
            let found = read(text).expect_err(text);
            assert!(found.contains(problem), "{text}: {found}");
        }
    }

    #[test]
    fn each_rewording_becomes_a_case_of_its_own() {
        let rewordings = |case: &str, suite: Option<&str>| CaseRewordings {
            case: case.to_owned(),
            suite: suite.map(str::to_owned),
            rewordings: vec!["Please do it.".to_owned()],
        };
        let (mut one, mut two) = (suite("one", &["a", "b"]), suite("two", &["a"]));
        let ambiguous = add_reworded_cases(&mut [&mut one, &mut two], &[rewordings("a", None)]);
        assert!(ambiguous.is_err_and(|why| why.contains("several suites")));
        let unknown = add_reworded_cases(&mut [&mut one, &mut two], &[rewordings("c", None)]);
        assert!(unknown.is_err_and(|why| why.contains("no case c")));
        let worded = add_reworded_cases(&mut [&mut one, &mut two], &[rewordings("a", Some("two"))]);
        let worded = worded.expect("wordings");
        assert_eq!((one.cases.len(), two.cases.len(), worded.len()), (0, 2, 2));
        let of = |id: &str| worded.get(&("two".to_owned(), id.to_owned())).cloned().expect(id);
        assert_eq!((of("a").rewording, of("a").prompt.as_str()), (None, "Do a."));
        assert_eq!(of("a-reworded-1").rewording, Some(1));
        assert_eq!(two.cases[1].prompt, CasePrompt::Turns(vec!["Please do it.".to_owned()]));
    }
}

//! Says how well a document fits each of the formats that share file names and forms, by its content first, then by
//! its folder and the files beside it, then by its name. Each reason has points, and the format with the most points
//! reads the document; no format looks at another's answer.

use std::io::Read;
use std::path::Path;

use super::FormatMatch;
use super::bmad::base_overlays;
use super::reading::case_keys::{are_trigger_queries, case_lists, has_prompt, has_statements, is_case};
use super::reading::{are_sorted_triggers, are_wrapped_triggers, has_activation_key, is_skill};
use practicum_core::model::RelPath;
use practicum_core::tree::{NodeData, SourceFile, TreeNode, open_regular};

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignFormat {
    SkillTest,
    Bmad,
    WritingSkills,
    SkillCreator,
    Clauditor,
}

/// Says how well a document fits a format.
pub fn fit_for(source: &SourceFile, format: ForeignFormat) -> FormatMatch {
    if source.root.has("practicum") || is_skillet(source) {
        return FormatMatch::NO;
    }
    match format {
        ForeignFormat::SkillTest => fit_for_skill_test(&source.root),
        ForeignFormat::Bmad => fit_for_bmad(source),
        ForeignFormat::WritingSkills => fit_for_writing_skills(&source.root),
        ForeignFormat::SkillCreator => fit_for_skill_creator(source),
        ForeignFormat::Clauditor => fit_for_clauditor(source),
    }
}

/// The points of a document in which a format finds cases that it can read, while others may too.
const CASES: u32 = 60;

/// Says whether a document has the Skillet format, the only one of these formats that is YAML.
pub fn is_skillet(source: &SourceFile) -> bool {
    let root = &source.root;
    let yaml = source.path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let (prompt, expected) = (root.has("prompt"), root.has("expected"));
    // With one of the two keys missing or misspelt it is still this format, and the reader tells the author about
    // the other key.
    yaml && (prompt || expected)
}

fn items_of<'n>(root: &'n TreeNode, key: &str) -> &'n [TreeNode] {
    root.get(key).and_then(TreeNode::as_list).unwrap_or_default()
}

fn expectations_of(cases: &[TreeNode]) -> impl Iterator<Item = &TreeNode> {
    cases.iter().filter_map(|case| case.get("expectations")?.as_list()).flatten()
}

fn fit_for_skill_test(root: &TreeNode) -> FormatMatch {
    if let NodeData::List(items) = &root.data {
        return match items.iter().any(|item| item.has("expected_skill")) {
            true => FormatMatch::with_points(80, "its items have an \"expected_skill\""),
            false => FormatMatch::NO,
        };
    }
    if root.has("evals") {
        return FormatMatch::NO;
    }
    if items_of(root, "skills").iter().any(|skill| skill.has("test_cases")) || root.has("negative_cases") {
        return FormatMatch::sure("it has test cases of skills");
    }
    let cases = items_of(root, "cases");
    let criteria = expectations_of(cases).any(|item| item.has("criterion"));
    if cases.iter().any(|case| case.has("expectation")) && !criteria && !any_key(cases, "rubric") {
        return FormatMatch::sure("its cases have an \"expectation\", a label about activation");
    }
    match find_router_cases(root).is_some() {
        true => FormatMatch::with_points(80, "its cases name the skill that must be activated, of several"),
        false => FormatMatch::NO,
    }
}

fn any_key(items: &[TreeNode], key: &str) -> bool {
    items.iter().any(|item| item.has(key))
}

/// Finds cases that only name the skill that each must activate: a router set.
pub fn find_router_cases(root: &TreeNode) -> Option<&[TreeNode]> {
    let lists = ["cases", "scenarios", "test_cases", "queries"].into_iter().map(|key| items_of(root, key));
    let names_skill = |item: &TreeNode| {
        ["skill", "expected_skill"].iter().any(|key| item.has(key))
            && has_prompt(item)
            && !has_statements(item)
    };
    let is_router = |items: &&[TreeNode]| !items.is_empty() && items.iter().all(names_skill);
    lists.into_iter().find(is_router)
}

fn fit_for_writing_skills(root: &TreeNode) -> FormatMatch {
    let (evals, cases) = (items_of(root, "evals"), items_of(root, "cases"));
    if expectations_of(evals).chain(expectations_of(cases)).any(|item| item.has("criterion")) {
        return FormatMatch::sure("its expectations have a \"criterion\"");
    }
    if expectations_of(evals).any(|item| item.as_map().is_some()) {
        return FormatMatch::sure("its expectations are mappings");
    }
    if root.has("evals") || root.get("cases").is_none_or(|cases| cases.as_list().is_none()) {
        return FormatMatch::NO;
    }
    let is_other = any_key(cases, "rubric") || any_key(cases, "expectation") || any_key(cases, "input");
    let texts = expectations_of(cases).any(|item| item.as_text().is_some());
    if any_key(cases, "expectations") && !texts && !is_other {
        return FormatMatch::with_points(CASES + 20, "its cases have \"expectations\"");
    }
    // This is a file before its author has written the first case or the first expectation.
    let is_begun = root.has("version") && root.has("skill") && !is_other && !cases.iter().any(is_case);
    match is_begun {
        true => FormatMatch::with_points(CASES, "it has a version, a skill and cases"),
        false => FormatMatch::NO,
    }
}

/// Says whether a document has keys that only clauditor has.
fn is_spec(root: &TreeNode) -> bool {
    let assertions = items_of(root, "assertions");
    ["test_args", "grading_criteria", "trigger_tests"].iter().any(|key| root.has(key))
        || assertions.iter().any(|assertion| assertion.has("type") && assertion.has("id"))
}

/// The name of a spec is enough even if the file is empty. The bare name `eval.json` is common, so there the content
/// must fit too.
fn fit_for_clauditor(source: &SourceFile) -> FormatMatch {
    let root = &source.root;
    if root.has("evals") || !case_lists(root).is_empty() || has_prompt(root) {
        return FormatMatch::NO;
    }
    if is_spec(root) {
        return FormatMatch::sure("it has keys that only clauditor has");
    }
    let name = source.path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let keys = ["skill_name", "assertions", "sections", "output_file", "output_files", "input_files"];
    match name.ends_with(".eval.json") || name == "eval.json" && keys.iter().any(|key| root.has(key)) {
        true => FormatMatch::with_points(30, "its name"),
        false => FormatMatch::NO,
    }
}

fn fit_for_skill_creator(source: &SourceFile) -> FormatMatch {
    let root = &source.root;
    if let NodeData::List(items) = &root.data {
        return fit_of_list_for_skill_creator(items);
    }
    if let Some(evals) = root.get("evals") {
        let evals = evals.as_list().unwrap_or_default();
        let has_number = evals.iter().any(|eval| matches!(id_of(eval), Some(NodeData::Int(_))));
        return FormatMatch::with_points(50, "it has \"evals\"")
            .and(any_key(evals, "assertions"), 30, "they have assertions")
            .and(has_number, 25, "their ids are numbers")
            .and(lies_in_skill(source), 40, "it lies in the evals folder of a skill");
    }
    if !case_lists(root).is_empty() && find_router_cases(root).is_none() {
        return FormatMatch::with_points(CASES, "it has a list of cases with prompts and expectations");
    }
    if are_sorted_triggers(root) {
        return FormatMatch::sure("it has lists of queries that should and should not activate a skill");
    }
    if are_wrapped_triggers(root) && find_router_cases(root).is_none() && !root.has("cases") {
        return FormatMatch::with_points(CASES, "it is a set of trigger queries");
    }
    match is_case(root) {
        true => FormatMatch::with_points(CASES, "it is one case with a prompt and expectations"),
        false => FormatMatch::NO,
    }
}

fn fit_of_list_for_skill_creator(items: &[TreeNode]) -> FormatMatch {
    let any = |key: &str| any_key(items, key);
    if any("question") && ["ground_truth", "expected_behavior", "expected_script"].iter().any(|key| any(key))
    {
        return FormatMatch::with_points(
            110,
            "its items have a \"question\" and what is expected of the answer",
        );
    }
    if any("query") && any("should_trigger") {
        return FormatMatch::with_points(110, "it is a list of trigger queries");
    }
    if any("expected_skill") {
        return FormatMatch::NO;
    }
    if are_trigger_queries(items) {
        return FormatMatch::with_points(
            CASES,
            "it is a list of prompts that should or should not activate a skill",
        );
    }
    match items.iter().any(is_case) && items.iter().all(has_prompt) {
        true => FormatMatch::with_points(CASES, "it is a list of cases with prompts and expectations"),
        false => FormatMatch::NO,
    }
}

fn id_of(eval: &TreeNode) -> Option<&NodeData> {
    Some(&eval.get("id")?.data)
}

/// Says whether a file lies in the folder `evals` of a skill, where skill-creator puts it.
fn lies_in_skill(source: &SourceFile) -> bool {
    let folder = source.folder();
    folder.file_name().is_some_and(|name| name == "evals") && folder.parent().is_some_and(is_skill)
}

fn fit_for_bmad(source: &SourceFile) -> FormatMatch {
    let root = &source.root;
    match &root.data {
        NodeData::List(items) => fit_of_list_for_bmad(items, source),
        NodeData::Map(_) if root.has("evals") => fit_of_evals_for_bmad(items_of(root, "evals"), source),
        NodeData::Map(_) => {
            let cases = items_of(root, "cases");
            let asks = any_key(cases, "input") || any_key(cases, "prompt");
            if any_key(cases, "rubric") && asks && !any_key(cases, "expectation") {
                FormatMatch::sure("its cases have a \"rubric\"")
            } else if any_key(cases, "input") && !cases.iter().any(is_case) {
                FormatMatch::with_points(CASES, "its cases have an \"input\"")
            } else if is_named_triggers(source) && case_lists(root).is_empty() && !root.has("cases") {
                FormatMatch::sure("its name")
            } else {
                FormatMatch::NO
            }
        }
        _ => FormatMatch::NO,
    }
}

fn fit_of_list_for_bmad(items: &[TreeNode], source: &SourceFile) -> FormatMatch {
    let any = |key: &str| any_key(items, key);
    let named = is_named_triggers(source);
    if any("expected_skill") {
        return FormatMatch::NO;
    }
    if any("rubric") && (any("input") || any("prompt")) {
        return FormatMatch::sure("its items have a \"rubric\"");
    }
    if any("input") && !items.iter().any(is_case) {
        return FormatMatch::with_points(CASES, "its items have an \"input\"");
    }
    match named {
        true => FormatMatch::with_points(140, "its name"),
        false
            if (any("query") || any("prompt"))
                && items.iter().all(has_activation_key)
                && !items.is_empty() =>
        {
            FormatMatch::with_points(30, "it is a list of trigger queries")
        }
        false => FormatMatch::NO,
    }
}

/// BMad and skill-creator write the same keys. What tells them apart is what lies around the file; the type of an id
/// never decides alone.
fn fit_of_evals_for_bmad(evals: &[TreeNode], source: &SourceFile) -> FormatMatch {
    let any = |key: &str| any_key(evals, key);
    if expectations_of(evals).any(|item| item.as_map().is_some()) {
        return FormatMatch::NO;
    }
    let texts = expectations_of(evals).any(|item| item.as_text().is_some());
    let noted = source.root.has("_design_notes");
    if !texts {
        // If nothing is graded, only the folder tells the format. BMad itself has no assertions.
        let overlays = !any("assertions") && has_overlays(evals, source);
        let triggers = !any("assertions") && any("expected_output");
        let triggers = triggers && is_below_evals(source) && has_triggers_beside(source);
        return FormatMatch::NO
            .and(overlays, 100, "overlays lie around it")
            .and(triggers, 100, "it lies below \"evals\" beside a trigger set")
            .and(noted, 60, "it has \"_design_notes\"");
    }
    let base = if any("assertions") { 20 } else { 45 };
    let has_text_id = evals.iter().any(|eval| matches!(id_of(eval), Some(NodeData::Text(_))));
    FormatMatch::with_points(base, "its evals have expectations")
        .and(any("timeout"), 60, "they have a \"timeout\"")
        .and(noted, 60, "it has \"_design_notes\"")
        .and(has_overlays(evals, source), 80, "overlays lie around it")
        .and(has_triggers_beside(source), 80, "a trigger set with a name of BMad lies beside it")
        .and(is_below_evals(source), 25, "it lies in a folder below \"evals\"")
        .and(has_text_id, 4, "their ids are texts")
}

/// Says whether setup overlays lie beside the file or above it, for all evals or for one.
fn has_overlays(evals: &[TreeNode], source: &SourceFile) -> bool {
    let folder = source.folder();
    !base_overlays(folder).is_empty()
        || evals
            .iter()
            .filter_map(|eval| match id_of(eval)? {
                NodeData::Text(id) => RelPath::new(id),
                NodeData::Int(id) => RelPath::new(&id.to_string()),
                _ => None,
            })
            .any(|id| id.join_to(folder).join("setup").is_dir())
}

/// Says whether the file lies in one skill's folder below `evals`.
fn is_below_evals(source: &SourceFile) -> bool {
    let above = source.folder().parent().and_then(|above| above.file_name());
    above.is_some_and(|name| name == "evals")
}

/// Says whether a trigger set with one of BMad's names lies beside the file. BMad's are lists.
fn has_triggers_beside(source: &SourceFile) -> bool {
    TRIGGER_FILES.iter().any(|name| begins_with_list(&source.folder().join(name)))
}

/// Says whether a JSON file begins with a list.
fn begins_with_list(path: &Path) -> bool {
    const HEAD_BYTES: u64 = 256;
    let mut head = Vec::new();
    let is_read = open_regular(path).is_ok_and(|file| file.take(HEAD_BYTES).read_to_end(&mut head).is_ok());
    is_read && head.trim_ascii_start().first() == Some(&b'[')
}

/// The names that BMad gives its trigger sets.
pub const TRIGGER_FILES: [&str; 2] = ["triggers.json", "trigger-queries.json"];

/// Says whether a file has one of the names of trigger sets.
pub fn is_named_triggers(source: &SourceFile) -> bool {
    is_trigger_file(&source.path)
}

/// Says whether a file has one of the names of trigger sets.
pub fn is_trigger_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| TRIGGER_FILES.iter().any(|known| name == *known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::testing;

    fn formats_of(source: &SourceFile) -> Option<(ForeignFormat, Option<ForeignFormat>)> {
        recognise_format(source).map(|told| (told.format, told.alternative))
    }

    #[test]
    fn content_first_name_second() {
        use ForeignFormat::{Bmad, Clauditor, SkillCreator, SkillTest, WritingSkills};
        let sure = |is| Some((is, None));
        let rather = |is, or| Some((is, Some(or)));
        for (name, text, expected) in [
            ("evals.json", r#"{"evals":[{"expectations":[{"criterion":"c"}]}]}"#, sure(WritingSkills)),
            ("evals.json", r#"{"cases":[{"expectations":[{"criterion":"c"}]}]}"#, sure(WritingSkills)),
            ("evals.json", r#"{"version":"1.0","skill":"s","cases":[]}"#, sure(WritingSkills)),
            ("evals.json", r#"{"version":"1.0","skill":"s","cases":[{"prompt":"p"}]}"#, sure(WritingSkills)),
            ("evals.json", r#"{"cases":[{"expectations":[{"criteria":"c"}]}]}"#, sure(WritingSkills)),
            ("evals.json", r#"{"cases":[{"expectations":{"criterion":"c"}}]}"#, sure(WritingSkills)),
            ("evals.json", r#"{"cases":[{"input":"i","rubric":["r"]}]}"#, sure(Bmad)),
            ("evals.json", r#"{"cases":[{"input":"i"}]}"#, sure(Bmad)),
            ("cases.json", r#"[{"input":"i","rubric":["r"]}]"#, sure(Bmad)),
            ("evals.json", r#"{"evals":[{"id":"A1","expectations":["e"]}]}"#, rather(Bmad, SkillCreator)),
            ("evals.json", r#"{"evals":[{"id":1,"expectations":["e"],"timeout":9}]}"#, sure(Bmad)),
            ("evals.json", r#"{"evals":[{"id":1,"expectations":["e"]}]}"#, rather(SkillCreator, Bmad)),
            ("evals.json", r#"{"evals":[{"id":"a","assertions":["e"]}]}"#, sure(SkillCreator)),
            (
                "evals.json",
                r#"{"evals":[{"id":"a","expectations":["e"],"assertions":["e"]}]}"#,
                sure(SkillCreator),
            ),
            ("evals.json", r#"{"evals":[]}"#, sure(SkillCreator)),
            ("evals.json", r#"{"evals":3}"#, sure(SkillCreator)),
            ("s.json", r#"{"skills":[{"name":"s","test_cases":[]}]}"#, sure(SkillTest)),
            ("s.json", r#"{"skills":[],"negative_cases":[]}"#, sure(SkillTest)),
            ("s.json", r#"{"skill":"s","cases":[{"prompt":"p","expectation":"must"}]}"#, sure(SkillTest)),
            ("s.json", r#"{"cases":[{"input":"p","expectation":"must"}]}"#, sure(SkillTest)),
            ("s.json", r#"[{"input":"i","expected_skill":null}]"#, sure(SkillTest)),
            ("triggers.json", r#"[{"query":"q","should_trigger":true}]"#, sure(Bmad)),
            ("trigger-queries.json", r#"[{"query":"q","should_trigger":true}]"#, sure(Bmad)),
            ("set.json", r#"[{"query":"q","should_trigger":true}]"#, rather(SkillCreator, Bmad)),
            ("triggers.json", "[]", sure(Bmad)),
            ("triggers.json", r#"{"queries":[]}"#, sure(Bmad)),
            ("set.json", r#"{"queries":[{"query":"q","should_trigger":true}]}"#, sure(SkillCreator)),
            ("set.json", r#"{"query":"q","should_trigger":true}"#, sure(SkillCreator)),
            ("set.json", "[]", None),
            ("x.json", r#"{"test_args":"--a"}"#, sure(Clauditor)),
            ("x.json", r#"{"grading_criteria":[]}"#, sure(Clauditor)),
            ("x.json", r#"{"trigger_tests":{}}"#, sure(Clauditor)),
            ("x.json", r#"{"assertions":[{"id":"a","type":"contains"}]}"#, sure(Clauditor)),
            ("x.json", r#"{"assertions":[{"type":"contains","value":"a"}]}"#, None),
            ("x.json", r#"{"skill_name":"s"}"#, None),
            ("a.eval.json", "{}", sure(Clauditor)),
            ("SKILL.Eval.JSON", r#"{"skill_name":"s"}"#, sure(Clauditor)),
            ("a.eval.json", "[]", sure(Clauditor)),
            ("a.eval.json", "3", sure(Clauditor)),
            ("eval.json", r#"{"skill_name":"s"}"#, sure(Clauditor)),
            ("eval.json", r#"{"model":"m"}"#, None),
            // The content counts more than the name.
            ("a.eval.json", r#"{"evals":[{"id":1,"assertions":["e"]}]}"#, sure(SkillCreator)),
            ("a.eval.json", r#"[{"query":"q","should_trigger":true}]"#, rather(SkillCreator, Bmad)),
            ("evals.json", r#"{"evals":[],"test_args":"a"}"#, sure(SkillCreator)),
            ("a.eval.json", r#"{"practicum":1}"#, None),
            ("a.yaml", r#"{"prompt":"p","expected":"e","assertions":[{"id":"a","type":"contains"}]}"#, None),
            (
                "a.yaml",
                r#"{"timestamp":"t","expected":"e","assertions":[{"id":"a","type":"contains"}]}"#,
                None,
            ),
            ("x.json", r#"{"practicum":1,"evals":[]}"#, None),
            ("x.json", r#"{"cases":[{"prompt":"p"}]}"#, None),
            ("x.json", r#"{"cases":3}"#, None),
            ("x.json", r#"{"skills":["a"]}"#, None),
            ("x.json", "3", None),
        ] {
            let source = testing::parse_source(std::path::Path::new("/nowhere").join(name), text);
            assert_eq!(formats_of(&source), expected, "{name} {text}");
        }
    }

    #[test]
    fn triggers_beside_the_file_make_it_bmad_unless_it_has_only_assertions() {
        let bmad = (ForeignFormat::Bmad, None);
        let skill_creator = (ForeignFormat::SkillCreator, None);
        for (beside, text, expected) in [
            ("triggers.json", r#"{"evals":[{"id":1,"expectations":["e"]}]}"#, bmad),
            ("trigger-queries.json", r#"{"evals":[{"id":1,"expectations":["e"]}]}"#, bmad),
            ("triggers.json", r#"{"evals":[{"id":1,"expectations":["e"],"assertions":["a"]}]}"#, bmad),
            ("triggers.json", r#"{"evals":[{"id":1,"assertions":["e"]}]}"#, skill_creator),
            ("triggers.json", r#"{"evals":[{"id":1,"expected_output":"e"}]}"#, skill_creator),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join(beside), "[]").expect("write");
            let source = testing::parse_source(folder.path().join("evals.json"), text);
            assert_eq!(formats_of(&source), Some(expected), "{beside} {text}");
        }
    }

    #[test]
    fn overlays_beside_the_file_make_it_bmad() {
        let or_skill_creator = Some(ForeignFormat::SkillCreator);
        for (text, or) in [
            (r#"{"evals":[{"id":7,"expectations":["e"]}]}"#, None),
            (r#"{"evals":[{"id":7,"prompt":"p","expected_output":"e"}]}"#, or_skill_creator),
            (r#"{"evals":[{"id":7,"prompt":"p"}]}"#, or_skill_creator),
        ] {
            for overlay in ["evals/s/setup", "evals/s/7/setup", "evals/setup"] {
                let folder = tempfile::tempdir().expect("a folder");
                std::fs::create_dir_all(folder.path().join(overlay)).expect("create");
                let source = testing::parse_source(folder.path().join("evals/s/evals.json"), text);
                assert_eq!(formats_of(&source), Some((ForeignFormat::Bmad, or)), "{overlay} {text}");
            }
        }
    }
}

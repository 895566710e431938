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
    if root.has("evals") || !case_lists(root).is_empty() {
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
        return match is_list_of_skillet(items, source) {
            true => FormatMatch::NO,
            false => fit_of_list_for_skill_creator(items),
        };
    }
    if let Some(evals) = root.get("evals") {
        let evals = evals.as_list().unwrap_or_default();
        if expectations_of(evals).any(|item| item.as_map().is_some()) {
            return FormatMatch::with_points(20, "it has \"evals\"");
        }
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
    match is_case(root) && !is_spec(root) {
        true => FormatMatch::with_points(CASES, "it is one case with a prompt and expectations"),
        false => FormatMatch::NO,
    }
}

/// Says whether a YAML file is a list of what Skillet wants in a file each. Its author is told, because what else lies
/// in the folder is Skillet's too.
fn is_list_of_skillet(items: &[TreeNode], source: &SourceFile) -> bool {
    let yaml = source.path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let is_pair = |item: &TreeNode| {
        let is_text = |key: &str| item.get(key).is_some_and(|node| node.as_text().is_some());
        let keys = item.as_map().unwrap_or_default().iter().map(|entry| entry.key.as_str());
        let own =
            ["timestamp", "name", "prompt", "expected", "actual", "setup", "teardown", "schema_version"];
        is_text("prompt") && is_text("expected") && keys.into_iter().all(|key| own.contains(&key))
    };
    yaml && items.iter().all(is_pair)
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
            } else if is_named_triggers(source)
                && case_lists(root).is_empty()
                && !root.has("cases")
                && !are_sorted_triggers(root)
            {
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
    // BMad itself has no assertions.
    if !texts && any("assertions") {
        return FormatMatch::NO;
    }
    if !texts {
        // If nothing is graded, only the folder tells the format.
        let triggers = any("expected_output") && is_below_evals(source) && has_triggers_beside(source);
        return FormatMatch::NO
            .and(has_overlays(evals, source), 100, "overlays lie around it")
            .and(triggers, 100, "it lies below \"evals\" beside a trigger set")
            .and(noted, 80, "it has \"_design_notes\"");
    }
    let has_text_id = evals.iter().any(|eval| matches!(id_of(eval), Some(NodeData::Text(_))));
    FormatMatch::with_points(45, "its evals have expectations")
        .and(any("timeout"), 60, "they have a \"timeout\"")
        .and(noted, 80, "it has \"_design_notes\"")
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
    use crate::dialects::{EvalRegistry, testing};

    /// Gives the format that reads a document, and those that fit about as well.
    fn formats_of(source: &SourceFile) -> (Option<&'static str>, Vec<&'static str>) {
        let decision = EvalRegistry::default().decide_format(source);
        let rivals = decision.rivals().iter().map(|rival| rival.format.name()).collect();
        (decision.chosen().map(|best| best.format.name()), rivals)
    }

    #[test]
    fn content_first_name_second() {
        const BMAD: &str = "bmad";
        const CLAUDITOR: &str = "clauditor";
        const SKILL_CREATOR: &str = "skill-creator";
        const SKILL_TEST: &str = "skill-test";
        const WRITING_SKILLS: &str = "writing-skills";
        let sure = |is: &'static str| (Some(is), Vec::new());
        let rather = |is: &'static str, or: &'static str| (Some(is), vec![or]);
        let none = || (None, Vec::new());
        for (name, text, expected) in [
            ("evals.json", r#"{"evals":[{"expectations":[{"criterion":"c"}]}]}"#, sure(WRITING_SKILLS)),
            ("evals.json", r#"{"cases":[{"expectations":[{"criterion":"c"}]}]}"#, sure(WRITING_SKILLS)),
            ("evals.json", r#"{"version":"1.0","skill":"s","cases":[]}"#, sure(WRITING_SKILLS)),
            ("evals.json", r#"{"version":"1.0","skill":"s","cases":[{"prompt":"p"}]}"#, sure(WRITING_SKILLS)),
            ("evals.json", r#"{"cases":[{"expectations":[{"criteria":"c"}]}]}"#, sure(WRITING_SKILLS)),
            ("evals.json", r#"{"cases":[{"expectations":{"criterion":"c"}}]}"#, sure(WRITING_SKILLS)),
            ("evals.json", r#"{"cases":[{"input":"i","rubric":["r"]}]}"#, sure(BMAD)),
            ("evals.json", r#"{"cases":[{"input":"i"}]}"#, sure(BMAD)),
            ("cases.json", r#"[{"input":"i","rubric":["r"]}]"#, sure(BMAD)),
            // The type of an id alone decides nothing.
            ("evals.json", r#"{"evals":[{"id":"A1","expectations":["e"]}]}"#, rather(SKILL_CREATOR, BMAD)),
            ("evals.json", r#"{"_design_notes":"n","evals":[{"id":"A1","expectations":["e"]}]}"#, sure(BMAD)),
            ("evals.json", r#"{"evals":[{"id":1,"expectations":["e"],"timeout":9}]}"#, sure(BMAD)),
            ("evals.json", r#"{"evals":[{"id":1,"expectations":["e"]}]}"#, sure(SKILL_CREATOR)),
            ("evals.json", r#"{"evals":[{"id":"a","assertions":["e"]}]}"#, sure(SKILL_CREATOR)),
            (
                "evals.json",
                r#"{"evals":[{"id":"a","expectations":["e"],"assertions":["e"]}]}"#,
                sure(SKILL_CREATOR),
            ),
            ("evals.json", r#"{"evals":[]}"#, sure(SKILL_CREATOR)),
            ("evals.json", r#"{"evals":3}"#, sure(SKILL_CREATOR)),
            ("s.json", r#"{"skills":[{"name":"s","test_cases":[]}]}"#, sure(SKILL_TEST)),
            ("s.json", r#"{"skills":[],"negative_cases":[]}"#, sure(SKILL_TEST)),
            ("s.json", r#"{"skill":"s","cases":[{"prompt":"p","expectation":"must"}]}"#, sure(SKILL_TEST)),
            ("s.json", r#"{"cases":[{"input":"p","expectation":"must"}]}"#, sure(SKILL_TEST)),
            ("s.json", r#"[{"input":"i","expected_skill":null}]"#, sure(SKILL_TEST)),
            ("triggers.json", r#"[{"query":"q","should_trigger":true}]"#, sure(BMAD)),
            ("trigger-queries.json", r#"[{"query":"q","should_trigger":true}]"#, sure(BMAD)),
            ("set.json", r#"[{"query":"q","should_trigger":true}]"#, sure(SKILL_CREATOR)),
            ("triggers.json", "[]", sure(BMAD)),
            ("triggers.json", r#"{"queries":[]}"#, sure(BMAD)),
            ("set.json", r#"{"queries":[{"query":"q","should_trigger":true}]}"#, sure(SKILL_CREATOR)),
            ("set.json", r#"{"query":"q","should_trigger":true}"#, sure(SKILL_CREATOR)),
            ("set.json", "[]", none()),
            ("x.json", r#"{"test_args":"--a"}"#, sure(CLAUDITOR)),
            ("x.json", r#"{"grading_criteria":[]}"#, sure(CLAUDITOR)),
            ("x.json", r#"{"trigger_tests":{}}"#, sure(CLAUDITOR)),
            ("x.json", r#"{"assertions":[{"id":"a","type":"contains"}]}"#, sure(CLAUDITOR)),
            ("x.json", r#"{"assertions":[{"type":"contains","value":"a"}]}"#, none()),
            ("x.json", r#"{"skill_name":"s"}"#, none()),
            ("a.eval.json", "{}", sure(CLAUDITOR)),
            ("SKILL.Eval.JSON", r#"{"skill_name":"s"}"#, sure(CLAUDITOR)),
            ("a.eval.json", "[]", sure(CLAUDITOR)),
            ("a.eval.json", "3", sure(CLAUDITOR)),
            ("eval.json", r#"{"skill_name":"s"}"#, sure(CLAUDITOR)),
            ("eval.json", r#"{"model":"m"}"#, none()),
            // The content counts more than the name.
            ("a.eval.json", r#"{"evals":[{"id":1,"assertions":["e"]}]}"#, sure(SKILL_CREATOR)),
            ("a.eval.json", r#"[{"query":"q","should_trigger":true}]"#, sure(SKILL_CREATOR)),
            ("evals.json", r#"{"evals":[],"test_args":"a"}"#, sure(SKILL_CREATOR)),
            ("a.eval.json", r#"{"practicum":1}"#, sure("native")),
            (
                "a.yaml",
                r#"{"prompt":"p","expected":"e","assertions":[{"id":"a","type":"contains"}]}"#,
                sure("skillet"),
            ),
            (
                "a.yaml",
                r#"{"timestamp":"t","expected":"e","assertions":[{"id":"a","type":"contains"}]}"#,
                sure("skillet"),
            ),
            ("x.json", r#"{"practicum":1,"evals":[]}"#, sure("native")),
            ("x.json", r#"{"cases":[{"prompt":"p"}]}"#, none()),
            // Cases as people write them, in any list.
            ("x.json", r#"{"cases":[{"prompt":"p","must_contain":["a"]}]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"cases":[{"input":"i","expected_outputs":["e"]}]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"cases":[{"user_input":"i","rubric":["e"]}]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"cases":[{"prompt":"p","expectations":["e"]}]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"test_cases":[{"query":"p","expected_output":"e"}]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"edge_cases":[{"prompt":"p","expect":"use"}]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"[{"prompt":"p","assertions":["e"]}]"#, sure(SKILL_CREATOR)),
            ("x.jsonl", r#"{"prompt":"p","assertions":["e"]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"[{"question":"q","expected_skill":"s","ground_truth":"t"}]"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"question":"q","expected_skill":"s","ground_truth":"t"}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"cases":[{"query":"q","should_trigger":true}]}"#, sure(SKILL_CREATOR)),
            ("x.json", r#"{"cases":[{"prompt":"p","skill":"s","accept":["s"]}]}"#, sure(SKILL_TEST)),
            ("x.json", r#"{"scenarios":[{"prompt":"p","expected_skill":"s"}]}"#, sure(SKILL_TEST)),
            ("x.json", r#"{"messages":[{"prompt":"p","assertions":["e"]}]}"#, none()),
            ("x.json", r#"{"cases":3}"#, none()),
            ("x.json", r#"{"skills":["a"]}"#, none()),
            ("x.json", "3", none()),
        ] {
            let source = testing::parse_source(std::path::Path::new("/nowhere").join(name), text);
            assert_eq!(formats_of(&source), expected, "{name} {text}");
        }
    }

    #[test]
    fn triggers_beside_the_file_make_it_bmad_unless_it_has_only_assertions() {
        let bmad = "bmad";
        let skill_creator = "skill-creator";
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
            assert_eq!(formats_of(&source), (Some(expected), Vec::new()), "{beside} {text}");
        }
    }

    #[test]
    fn overlays_beside_the_file_make_it_bmad() {
        for text in [
            r#"{"evals":[{"id":7,"expectations":["e"]}]}"#,
            r#"{"evals":[{"id":7,"prompt":"p","expected_output":"e"}]}"#,
            r#"{"evals":[{"id":7,"prompt":"p"}]}"#,
        ] {
            for overlay in ["evals/s/setup", "evals/s/7/setup", "evals/setup"] {
                let folder = tempfile::tempdir().expect("a folder");
                std::fs::create_dir_all(folder.path().join(overlay)).expect("create");
                let source = testing::parse_source(folder.path().join("evals/s/evals.json"), text);
                assert_eq!(formats_of(&source), (Some("bmad"), Vec::new()), "{overlay} {text}");
            }
        }
    }

    /// The two formats have the same keys. The folder and the files beside the file tell them apart.
    #[test]
    fn the_folder_tells_skill_creator_from_bmad() {
        let (texts, numbers) = (r#""A""#, "1");
        for (path, beside, id, expected, is_clear) in [
            ("skills/s/evals/evals.json", &["skills/s/SKILL.md"][..], texts, "skill-creator", true),
            ("skills/s/evals/evals.json", &["skills/s/SKILL.md"], numbers, "skill-creator", true),
            ("evals/s/evals.json", &["skills/s/SKILL.md"], texts, "bmad", true),
            ("evals/s/evals.json", &["skills/s/SKILL.md"], numbers, "skill-creator", false),
            ("evals/s/evals.json", &["evals/s/triggers.json"], numbers, "bmad", true),
            ("checks/evals.json", &[], texts, "skill-creator", false),
            ("checks/evals.json", &["checks/trigger-queries.json"], texts, "bmad", true),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            for file in beside {
                let file = folder.path().join(file);
                std::fs::create_dir_all(file.parent().expect("a folder")).expect("create");
                std::fs::write(file, "[]").expect("write");
            }
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("create");
            let text = format!(r#"{{"evals":[{{"id":{id},"prompt":"p","expectations":["e"]}}]}}"#);
            let (chosen, rivals) = formats_of(&testing::parse_source(path.clone(), &text));
            assert_eq!((chosen, rivals.is_empty()), (Some(expected), is_clear), "{} {text}", path.display());
        }
    }
}

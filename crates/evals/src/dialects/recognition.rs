//! Recognises which of the foreign formats a document has, by its content first and its name second. One table
//! covers all formats that share file names and forms, so that no two claim the same document.

use std::path::Path;

use super::FormatMatch;
use super::bmad::base_overlays;
use super::reading::{are_sorted_triggers, are_wrapped_triggers, has_activation_key};
use practicum_core::model::RelPath;
use practicum_core::tree::{NodeData, SourceFile, TreeNode};

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignFormat {
    SkillTest,
    Bmad,
    WritingSkills,
    SkillCreator,
    Clauditor,
}

/// The format of a document, and another format that could read it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecognisedFormat {
    pub format: ForeignFormat,
    /// What in the document speaks for the format.
    pub reason: &'static str,
    pub alternative: Option<ForeignFormat>,
}

/// Says how well a document fits a format.
pub fn fit_for(source: &SourceFile, format: ForeignFormat) -> FormatMatch {
    match recognise_format(source) {
        Some(recognised) if recognised.format == format => FormatMatch::sure(recognised.reason),
        Some(recognised) if recognised.alternative == Some(format) => FormatMatch::possible("its form fits"),
        Some(_) | None => FormatMatch::NO,
    }
}

pub fn recognise_format(source: &SourceFile) -> Option<RecognisedFormat> {
    let root = &source.root;
    if root.has("practicum") || is_skillet(source) {
        return None;
    }
    let by_content = match &root.data {
        NodeData::Map(_) => recognise_mapping(source),
        NodeData::List(items) => recognise_array(items, source),
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) | NodeData::Text(_) => {
            None
        }
    };
    by_content.or_else(|| is_named_spec(source).then_some(certain(ForeignFormat::Clauditor, "its name")))
}

fn certain(format: ForeignFormat, reason: &'static str) -> RecognisedFormat {
    RecognisedFormat { format, reason, alternative: None }
}

fn likely(format: ForeignFormat, reason: &'static str, alternative: ForeignFormat) -> RecognisedFormat {
    RecognisedFormat { format, reason, alternative: Some(alternative) }
}

/// Says whether a document has the Skillet format, the only one of these formats that is YAML.
pub fn is_skillet(source: &SourceFile) -> bool {
    let root = &source.root;
    let yaml = source.path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let (prompt, expected) = (root.has("prompt"), root.has("expected"));
    // With one of the two keys missing or misspelt it is still this format, and the reader tells the author about
    // the other key.
    yaml && (prompt || expected)
}

fn recognise_mapping(source: &SourceFile) -> Option<RecognisedFormat> {
    let root = &source.root;
    if let Some(evals) = root.get("evals") {
        return Some(recognise_evals(evals.as_list().unwrap_or_default(), source));
    }
    let skills = root.get("skills").and_then(TreeNode::as_list).unwrap_or_default();
    if skills.iter().any(|skill| skill.has("test_cases")) || root.has("negative_cases") {
        return Some(certain(ForeignFormat::SkillTest, "it has test cases of skills"));
    }
    let cases = root.get("cases").and_then(TreeNode::as_list);
    if let Some(recognised) = cases.and_then(|cases| recognise_cases(cases, root)) {
        return Some(recognised);
    }
    if is_spec(root) {
        Some(certain(ForeignFormat::Clauditor, "its keys"))
    } else if is_named_triggers(source) {
        Some(certain(ForeignFormat::Bmad, "its name"))
    } else if are_wrapped_triggers(root) || are_sorted_triggers(root) {
        Some(certain(ForeignFormat::SkillCreator, "it is a set of trigger queries"))
    } else {
        None
    }
}

fn recognise_cases(cases: &[TreeNode], root: &TreeNode) -> Option<RecognisedFormat> {
    let any = |key: &str| cases.iter().any(|case| case.has(key));
    let found = if expectations_of(cases).any(|item| item.has("criterion")) {
        certain(ForeignFormat::WritingSkills, "its expectations have a \"criterion\"")
    } else if any("rubric") {
        certain(ForeignFormat::Bmad, "its cases have a \"rubric\"")
    } else if any("expectation")
        || cases.iter().any(has_activation_key) && !any("input") && !any("expectations")
    {
        certain(ForeignFormat::SkillTest, "its cases say what is expected of the skill")
    } else if any("input") {
        certain(ForeignFormat::Bmad, "its cases have an \"input\"")
    } else if any("expectations") || root.has("version") && root.has("skill") {
        // This is a file before its author has written the first case or the first expectation.
        certain(
            ForeignFormat::WritingSkills,
            "its cases have \"expectations\", or it has a version and a skill",
        )
    } else {
        return None;
    };
    Some(found)
}

/// Says whether a document has keys that only clauditor has.
fn is_spec(root: &TreeNode) -> bool {
    let assertions = root.get("assertions").and_then(TreeNode::as_list).unwrap_or_default();
    ["test_args", "grading_criteria", "trigger_tests"].iter().any(|key| root.has(key))
        || assertions.iter().any(|assertion| assertion.has("type") && assertion.has("id"))
}

/// Says whether a file has the name of a clauditor spec, which is enough even if it is empty. The bare name
/// `eval.json` is common, so there the content must fit too.
fn is_named_spec(source: &SourceFile) -> bool {
    let name = source.path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let keys = ["skill_name", "assertions", "sections", "output_file", "output_files", "input_files"];
    name.ends_with(".eval.json") || name == "eval.json" && keys.iter().any(|key| source.root.has(key))
}

fn expectations_of(cases: &[TreeNode]) -> impl Iterator<Item = &TreeNode> {
    cases.iter().filter_map(|case| case.get("expectations")?.as_list()).flatten()
}

fn recognise_evals(evals: &[TreeNode], source: &SourceFile) -> RecognisedFormat {
    let any = |key: &str| evals.iter().any(|eval| eval.has(key));
    if expectations_of(evals).any(|item| item.as_map().is_some()) {
        return certain(ForeignFormat::WritingSkills, "its expectations are mappings");
    }
    let texts = expectations_of(evals).any(|item| item.as_text().is_some());
    // If nothing is graded, only the folder shows the format. A BMad folder has overlays, or it is evals/<skill>
    // and has triggers.
    let is_in_folder_of_bmad =
        || has_overlays(evals, source) || any("expected_output") && is_below_evals(source);
    if !texts && !any("assertions") && is_in_folder_of_bmad() {
        return likely(
            ForeignFormat::Bmad,
            "its folder has overlays or triggers",
            ForeignFormat::SkillCreator,
        );
    }
    let is_bmad = || any("timeout") || has_overlays(evals, source) || has_triggers_beside(source);
    if texts && is_bmad() {
        return certain(
            ForeignFormat::Bmad,
            "its evals have a \"timeout\", or overlays or triggers beside them",
        );
    }
    // BMad itself has no assertions.
    if !texts || any("assertions") {
        return certain(ForeignFormat::SkillCreator, "its evals have assertions, or nothing to grade");
    }
    if evals.iter().any(|eval| eval.get("id").and_then(TreeNode::as_text).is_some()) {
        return likely(ForeignFormat::Bmad, "its evals have texts as ids", ForeignFormat::SkillCreator);
    }
    likely(ForeignFormat::SkillCreator, "its evals have numbers as ids, or none", ForeignFormat::Bmad)
}

/// Says whether setup overlays lie beside the file or above it, for all evals or for one.
fn has_overlays(evals: &[TreeNode], source: &SourceFile) -> bool {
    let folder = source.folder();
    !base_overlays(folder).is_empty()
        || evals
            .iter()
            .filter_map(|eval| match &eval.get("id")?.data {
                NodeData::Text(id) => RelPath::new(id),
                NodeData::Int(id) => RelPath::new(&id.to_string()),
                _ => None,
            })
            .any(|id| id.join_to(folder).join("setup").is_dir())
}

/// Says whether the file lies in one skill's folder below `evals`, beside a trigger set with one of BMad's names.
fn is_below_evals(source: &SourceFile) -> bool {
    let above = source.folder().parent().and_then(|above| above.file_name());
    above.is_some_and(|name| name == "evals") && has_triggers_beside(source)
}

/// Says whether a trigger set with one of BMad's names lies beside the file.
fn has_triggers_beside(source: &SourceFile) -> bool {
    TRIGGER_FILES.iter().any(|name| source.folder().join(name).is_file())
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

fn recognise_array(items: &[TreeNode], source: &SourceFile) -> Option<RecognisedFormat> {
    let any = |key: &str| items.iter().any(|item| item.has(key));
    let named = is_named_triggers(source);
    if any("expected_skill") {
        Some(certain(ForeignFormat::SkillTest, "its items have an \"expected_skill\""))
    } else if (any("query") || any("prompt")) && items.iter().any(has_activation_key) {
        Some(match named {
            true => certain(ForeignFormat::Bmad, "its name"),
            false => {
                likely(ForeignFormat::SkillCreator, "it is a list of trigger queries", ForeignFormat::Bmad)
            }
        })
    } else if any("rubric") || any("input") || named {
        Some(certain(ForeignFormat::Bmad, "its name, or items with a \"rubric\" or an \"input\""))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::testing;

    fn formats_of(source: &SourceFile) -> Option<(ForeignFormat, Option<ForeignFormat>)> {
        recognise_format(source).map(|recognised| (recognised.format, recognised.alternative))
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

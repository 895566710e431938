//! The writing-skills format: `evals.json` with criteria that a judge scores from 1 to 5.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::reading::{self, UniqueIds, UnusedKeys, is_skill};
use super::recognition::{self, ForeignFormat};
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    Case, Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, Diagnostics, JudgedStatement, RunPolicy,
    ScoreScale, SkillRef, SkillStatement, Suite, TYPE_ALIGNMENT_ID, WorkspaceSpec,
};
use practicum_core::tree::{NodeData, ObjectReader, SourceFile, TreeNode, report_wrong_type};
use practicum_skills::skill::{normalise_path, versions_folder_of};

mod export;
mod schema;

/// The adapter for the writing-skills format.
pub struct WritingSkills;

const NAME: &str = "writing-skills";

/// Words that are too vague to be proved false.
const VAGUE_WORDS: [&str; 4] = ["appropriate", "reasonable", "good", "correctly"];

impl Dialect for WritingSkills {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["evals.json"]
    }

    fn recognition_rule(&self) -> &'static str {
        "expectations with a \"criterion\"; \"version\", \"skill\" and \"cases\""
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        recognition::fit_for(source, ForeignFormat::WritingSkills)
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export_suite(suite, folder)
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut kept = UnusedKeys::default();
        let mut file = ObjectReader::new(&source.root, "the file", diagnostics)?;
        let version = read_version(&mut file, diagnostics);
        let skill = find_skill(&mut file, source.folder(), place, diagnostics);
        let key = reading::pick_key(&mut file, ["cases", "evals"], diagnostics);
        let nodes = file.list(key, diagnostics);
        if file.get_non_null(key).is_none() {
            file.report_missing(key, diagnostics);
        }
        let mut meta = kept.collect_unused(&file, "the file", diagnostics);
        meta.extend(version.map(|node| ("version".to_owned(), node.to_value())));
        let nodes = nodes?;
        if nodes.is_empty() {
            diagnostics.error(
                "no-cases",
                source.root.span,
                "there are no cases; a suite without cases proves nothing",
            );
        }
        // The documented place is the skill's workspace folder, but many people keep the files with the project or
        // the evals.
        let workspace = skill.path.as_deref().map(versions_folder_of);
        let roots = workspace.into_iter().chain([place.project.clone(), source.folder().to_owned()]);
        let files = reading::FixtureFolders { roots: roots.collect(), own_folder: None };
        let mut reader = WritingSkillsReader {
            files,
            ids: UniqueIds::default(),
            unused_keys: kept,
            skill: skill.name.clone(),
        };
        let cases: Vec<Case> = nodes.iter().filter_map(|node| reader.read_case(node, diagnostics)).collect();
        Some(Suite {
            rivals: reading::other_expected_skills(&cases, &skill, diagnostics),
            cases,
            format_defaults: RunPolicy { repeat: Some(1), ..RunPolicy::default() },
            gates: reading::all_cases_pass(),
            skills: vec![skill.clone()],
            skill_statements: skill_statements(),
            meta,
            ..reading::blank_suite(NAME, source, reading::suite_name(&skill.name, source))
        })
    }
}

/// Gives what the format's grader judges about the skill beside the cases, and code cannot decide:
/// `type_alignment`.
fn skill_statements() -> Vec<SkillStatement> {
    let statement = "\
The skill has what its type needs. Its type is told by its text. A discipline skill lays down rules that must \
hold under pressure: it names the excuses for breaking them and answers each, for example in a table of \
rationalizations or a list of red flags, and it closes loopholes. A technique skill says how something is done: \
it has steps that can be followed, and an example. A pattern skill is a way to think about problems: it says \
when it applies and when it does not. A reference skill is looked things up in: it is divided by headings, \
tables or lists, and holds what its description promises. Name the type in the reasoning.";
    let judged =
        JudgedStatement { statement: statement.to_owned(), context: None, scale: ScoreScale::PassFail };
    vec![SkillStatement { id: TYPE_ALIGNMENT_ID.to_owned(), judged }]
}

/// Reads the version of the schema. The only version is 1.
fn read_version<'n>(file: &mut ObjectReader<'n>, diagnostics: &mut Diagnostics) -> Option<&'n TreeNode> {
    let node = file.get_non_null("version")?;
    let major = match &node.data {
        NodeData::Text(text) => text.split('.').next().unwrap_or_default().trim_start_matches('v').to_owned(),
        NodeData::Int(number) => number.to_string(),
        NodeData::Float(number) => number.trunc().to_string(),
        NodeData::Null | NodeData::Bool(_) | NodeData::List(_) | NodeData::Map(_) => {
            report_wrong_type(node, "version", "text like \"1.0\"", diagnostics);
            return None;
        }
    };
    if major != "1" {
        diagnostics.error_with_help(
            "unknown-version",
            node.span,
            format!("version {} of the format is not known", node.to_value()),
            "\"1.0\" is",
        );
    }
    Some(node)
}

/// Finds the skill that the file is about: the one that the user names, otherwise the one in whose folder the file
/// lies, otherwise the one at the path in the file, relative to the project or to the file. The folder counts
/// before the path because a copied skill brings its evals along, and their path leads back to the original.
fn find_skill(
    file: &mut ObjectReader<'_>,
    folder: &Path,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> SkillRef {
    let key = reading::pick_key(file, ["skill", "skill_name"], diagnostics);
    let node = file.get_non_null(key);
    let said = file.text(key, diagnostics).map(str::trim).filter(|said| !said.is_empty());
    let Some((said, node)) = said.zip(node).filter(|_| place.skill.is_none()) else {
        return reading::skill_beside(folder, place, None, diagnostics);
    };
    // Joining an absolute path gives that path.
    let wanted = [&place.project, folder].map(|root| normalise_path(&root.join(said)));
    let around = [Some(folder), folder.parent()].into_iter().flatten().find(|around| is_skill(around));
    if let Some(around) = around {
        // The name of the skill alone is right, too.
        let is_its_name = || around.file_name().is_some_and(|name| name == said);
        let mut found = wanted.iter().filter_map(|path| skill_folder(path)).peekable();
        let message = match found.peek().cloned() {
            None if is_its_name() => None,
            None => Some(format!("there is no skill at {said}; taking the one this file lies in")),
            Some(_) if found.any(|found| is_same_folder(&found, around)) => None,
            Some(other) => Some(format!(
                "\"{key}\" names {}, but this file lies in the skill {}, which is the one under test",
                other.display(),
                around.display()
            )),
        };
        if let Some(message) = message {
            let help =
                format!("write the path of {} here, or name another skill with --skill", around.display());
            diagnostics.warning_with_help("skill-elsewhere", node.span, message, help);
        }
        return reading::skill_at(around, &place.skills, diagnostics);
    }
    if let Some(found) = wanted.iter().find_map(|path| skill_folder(path)) {
        return reading::skill_at(&found, &place.skills, diagnostics);
    }
    diagnostics.warning_with_help(
        "skill-not-found",
        node.span,
        format!("there is no skill at {said}"),
        "name its folder with --skill",
    );
    let name =
        wanted[0].file_name().map_or_else(|| said.to_owned(), |name| name.to_string_lossy().into_owned());
    SkillRef { name, path: None, plugin: None }
}

/// Says whether two paths lead to the same folder, also through links.
fn is_same_folder(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

/// Gives the folder itself, or the folder of the named SKILL.md.
fn skill_folder(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return path
            .parent()
            .filter(|folder| folder.join(practicum_skills::skill::SKILL_FILE) == path)
            .map(Path::to_owned);
    }
    is_skill(path).then(|| path.to_owned())
}

/// A reader for the cases of one file, with what they share.
struct WritingSkillsReader {
    files: reading::FixtureFolders,
    ids: UniqueIds,
    unused_keys: UnusedKeys,
    /// The name of the skill under test.
    skill: String,
}

/// Says whether an id has only small letters and digits, in words joined by hyphens.
fn is_kebab_case(id: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    id.split('-').all(is_word)
}

impl WritingSkillsReader {
    fn read_case(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut case = ObjectReader::new(node, "a case", diagnostics)?;
        let activation =
            reading::expected_activation(&mut case, std::slice::from_ref(&self.skill), diagnostics);
        let id = self.ids.read_id(&mut case, diagnostics);
        if let Some(id) = id.as_deref().filter(|id| !is_kebab_case(id)) {
            diagnostics.notice(
                "id-form",
                case.get_non_null("id").map(|node| node.span),
                format!(
                    "the id \"{id}\" is not in kebab-case, as writing-skills wants it (like \"case-01\")"
                ),
            );
        }
        let prompt = case.required_text("prompt", diagnostics);
        let files = reading::read_fixtures(&mut case, &self.files, diagnostics);
        let expectations = case.list("expectations", diagnostics);
        let expectations_node = case.get_non_null("expectations");
        if expectations_node.is_none() && !activation.is_given {
            case.report_missing("expectations", diagnostics);
        }
        let mut checks = ExpectationReader::default();
        for node in expectations.unwrap_or_default() {
            checks.add_expectation(node, &mut self.unused_keys, diagnostics);
        }
        let required = checks.checks.iter().any(|check| check.need == CheckNeed::Required);
        if expectations.is_some() && !required && !checks.has_errors && !activation.is_given {
            diagnostics.error_with_help(
                "nothing-required",
                expectations_node.map(|node| node.span),
                "no expectation of this case is required, so it can never fail",
                "set \"required\": true on at least one",
            );
        }
        let mut meta = self.unused_keys.collect_unused(&case, "a case", diagnostics);
        if !checks.unused.is_empty() {
            meta.insert("expectations".to_owned(), checks.unused.into());
        }
        Some(Case {
            workspace: WorkspaceSpec { files, ..WorkspaceSpec::default() },
            checks: [activation.checks, checks.checks].concat(),
            meta,
            ..reading::blank_case(id?, prompt?.to_owned())
        })
    }
}

/// A reader for the expectations of one case, with the checks read so far.
#[derive(Default)]
struct ExpectationReader {
    checks: Vec<Check>,
    /// Whether there was an error, so that the list is not complete.
    has_errors: bool,
    ids: UniqueIds,
    /// The parts of expectations that no check uses, by check.
    unused: serde_json::Map<String, serde_json::Value>,
}

impl ExpectationReader {
    fn add_expectation(&mut self, node: &TreeNode, kept: &mut UnusedKeys, diagnostics: &mut Diagnostics) {
        let check = self.read_expectation(node, kept, diagnostics);
        self.has_errors |= check.is_none();
        self.checks.extend(check);
    }

    fn read_expectation(
        &mut self,
        node: &TreeNode,
        kept: &mut UnusedKeys,
        diagnostics: &mut Diagnostics,
    ) -> Option<Check> {
        let mut object = ObjectReader::new(node, "an expectation", diagnostics)?;
        let label_node = object.get_non_null("criterion");
        let label = object.required_text("criterion", diagnostics).map(str::trim);
        let description_node = object.get_non_null("description");
        let description = object.required_text("description", diagnostics).map(str::trim);
        let required_node = object.get_non_null("required");
        let required = object.bool("required", diagnostics);
        let rest = kept.collect_unused(&object, "an expectation", diagnostics);
        if required_node.is_none() {
            diagnostics.warning_with_help(
                "missing-key",
                node.span,
                "\"required\" is missing; taken as true",
                "say whether a case that misses this fails",
            );
        }
        if let (Some(description), Some(node)) = (description, description_node)
            && let Some(word) = vague_word(description)
        {
            diagnostics.warning_with_help(
                "vague-criterion",
                node.span,
                format!("\"{word}\" cannot be shown to be false"),
                "say what would be seen if it were not so",
            );
        }
        let (label, description) = (label?, description?);
        if self.ids.contains(label) {
            diagnostics.warning_with_help(
                "duplicate-criterion",
                label_node.map(|node| node.span),
                format!("another expectation of this case is already called \"{label}\""),
                "scores are compared by criterion; give each its own label",
            );
        }
        let id = self.ids.make_unique(label);
        if !rest.is_empty() {
            self.unused.insert(id.clone(), serde_json::json!(rest));
        }
        Some(Check {
            weight: CheckWeight::ONE,
            name: (id != label).then(|| label.to_owned()),
            id,
            need: if required.unwrap_or(true) { CheckNeed::Required } else { CheckNeed::Advisory },
            target: CheckTarget::WholeRun,
            kind: CheckKind::Judged(JudgedStatement {
                statement: description.to_owned(),
                context: None,
                scale: ScoreScale::OneToFive,
            }),
        })
    }
}

fn vague_word(description: &str) -> Option<&'static str> {
    let words = description.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.into_iter().find_map(|word| VAGUE_WORDS.iter().copied().find(|vague| *vague == word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::testing;

    fn check(text: &str, expected: &[&str]) -> Option<Suite> {
        testing::check_diagnostics(&WritingSkills, "evals.json", text, expected)
    }

    /// Gives a file with one case that has these expectations.
    fn expecting(expectations: &str) -> String {
        format!(
            r#"{{"skill": "s", "cases": [{{"id": "a", "prompt": "p", "expectations": {expectations}}}]}}"#
        )
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        for (text, expected) in [
            (r#"{"version": "1.0", "skill": "s"}"#, &["error missing-key 1:1"] as &[&str]),
            (r#"{"version": "1.0", "skill": "s", "cases": []}"#, &["error no-cases 1:1"]),
            (
                r#"{"version": "2.0", "skill": 3, "cases": {}}"#,
                &["error unknown-version 1:13", "error wrong-type 1:29", "error wrong-type 1:41"],
            ),
            (
                r#"{"skill": "s", "cases": [{}, 3]}"#,
                &[
                    "error missing-key 1:26",
                    "error missing-key 1:26",
                    "error missing-key 1:26",
                    "error wrong-type 1:30",
                ],
            ),
            (
                r#"{"cases": [{"id": 1, "prompt": "p", "expectations": [{"criterion": "c", "description": "d", "required": true}]},
                    {"id": "1", "prompt": "p", "expectations": [{"criterion": "c", "description": "d", "required": true}]}]}"#,
                &["error duplicate-id 2:28"],
            ),
            (
                r#"{"evals": [{"id": 1, "prompt": "p", "files": ["../x"], "expectations": [{"criterion": "c", "description": "d", "required": true}]}]}"#,
                &["error escaping-path 1:47"],
            ),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn expectations() {
        for (expectations, expected) in [
            ("[]", &["error nothing-required 1:69"] as &[&str]),
            ("3", &["error wrong-type 1:69"]),
            (r#"["text"]"#, &["error wrong-type 1:70"]),
            (r#"[{"criterion": "c", "description": "d", "required": true}]"#, &[]),
            (
                r#"[{"criterion": "c", "description": "d", "required": false}]"#,
                &["error nothing-required 1:69"],
            ),
            (r#"[{"criterion": "c", "description": "d", "required": "yes"}]"#, &["error wrong-type 1:121"]),
            (r#"[{"criterion": "c", "description": "d"}]"#, &["warning missing-key 1:70"]),
            (
                r#"[{"criterion": "c", "descripton": "d", "required": true}]"#,
                &["error missing-key 1:70", "warning unknown-key 1:89"],
            ),
            (
                r#"[{"criterion": " ", "description": "", "required": true}]"#,
                &["error empty-text 1:84", "error empty-text 1:104"],
            ),
            (
                r#"[{"criterion": "c", "description": "Is Reasonable.", "required": true}]"#,
                &["warning vague-criterion 1:104"],
            ),
            (r#"[{"criterion": "c", "description": "goodbye is said", "required": true}]"#, &[]),
            (
                r#"[{"criterion": "c", "description": "d", "required": true}, {"criterion": "c", "description": "e", "required": false}]"#,
                &["warning duplicate-criterion 1:142"],
            ),
        ] {
            check(&expecting(expectations), expected);
        }
    }

    #[test]
    fn the_skill_around_the_file_counts_before_the_path_in_it() {
        let project = tempfile::tempdir().expect("a folder");
        let root = project.path();
        for skill in ["skills/a", "skills/b", "skills/a/evals/inner"] {
            std::fs::create_dir_all(root.join(skill)).expect("create");
            std::fs::write(root.join(skill).join("SKILL.md"), "text").expect("write");
        }
        let evals = root.join("skills/a/evals");
        let absolute = root.join("skills/b").to_string_lossy().into_owned();
        for (said, found, code) in [
            ("skills/a", Some("skills/a"), None),
            ("skills/b/SKILL.md", Some("skills/a"), Some("skill-elsewhere")),
            ("./skills/../skills/b", Some("skills/a"), Some("skill-elsewhere")),
            (absolute.as_str(), Some("skills/a"), Some("skill-elsewhere")),
            ("inner", Some("skills/a"), Some("skill-elsewhere")),
            ("..", Some("skills/a"), None),
            ("a", Some("skills/a"), None),
            ("/Users/someone/.claude/skills/a", Some("skills/a"), Some("skill-elsewhere")),
            ("path/to/skill", Some("skills/a"), Some("skill-elsewhere")),
        ] {
            let text = expecting(r#"[{"criterion": "c", "description": "d", "required": true}]"#)
                .replace(r#""skill": "s""#, &format!(r#""skill": "{said}""#));
            let source = testing::parse_source(evals.join("evals.json"), &text);
            let place = EvalFileLocation::new(evals.clone(), root.to_owned());
            let (suite, diagnostics) = testing::lower_source(&WritingSkills, &source, &place);
            let suite = suite.expect("a suite");
            assert_eq!(suite.skills[0].path, found.map(|found| root.join(found)), "{said}");
            assert_eq!(diagnostics.iter().map(|diagnostic| diagnostic.code).next(), code, "{said}");
        }
        let suite = testing::check_diagnostics(
            &WritingSkills,
            "evals.json",
            &expecting(r#"[{"criterion": "c", "description": "d", "required": true}]"#)
                .replace(r#""s""#, r#""path/to/pr:skill""#),
            &[],
        );
        assert_eq!(
            suite.expect("a suite").skills,
            [SkillRef { name: "pr:skill".to_owned(), path: None, plugin: None }]
        );
    }
}

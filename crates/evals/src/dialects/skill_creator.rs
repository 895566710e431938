//! The skill-creator and agentskills.io format: `evals/evals.json` in a skill's folder, and trigger sets, in all the
//! forms in which people write them.

use std::path::Path;

use serde_json::Value;

use super::reading::case_keys::{self, TRIGGERS_KEY};
use super::reading::{self, SkillHint, TriggerReader, UniqueIds, UnusedKeys};
use super::recognition::{self, ForeignFormat};
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    Arm, Case, CheckKind, CheckNeed, Diagnostics, PassRule, Ratio, RunPolicy, ScoreOf, ScoreRule, Suite,
    WorkspaceSpec,
};
use practicum_core::tree::{MapEntry, NodeData, ObjectReader, SourceFile, TreeNode};

pub(super) mod assertions;
mod case_reader;
mod exact_checks;
mod export;
mod prompt;
mod schema;
mod statements;

use case_reader::CaseReader;

/// The adapter for the skill-creator format.
pub struct SkillCreator;

const NAME: &str = "skill-creator";

/// The key of a case's meta for the parts of its assertions that no check uses.
const ASSERTIONS_META_KEY: &str = "assertions";

impl Dialect for SkillCreator {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["evals.json"]
    }

    fn recognition_rule(&self) -> &'static str {
        "\"evals\", or any list of cases with prompts and expectations, best in the evals folder of a skill; \
         lists of queries with \"should_trigger\""
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        recognition::fit_for(source, ForeignFormat::SkillCreator)
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
        let root = &source.root;
        if let NodeData::List(items) = &root.data {
            return Some(
                match case_keys::are_trigger_queries(items) || !items.iter().any(case_keys::is_case) {
                    true => read_triggers(source, place, diagnostics),
                    false => {
                        let mut reader = CaseReader::new(source, place, None, diagnostics);
                        let cases = reader.read_cases(items, None, diagnostics);
                        reader.into_suite(cases, source, diagnostics)
                    }
                },
            );
        }
        let lists = case_keys::case_lists(root);
        let is_trigger_list = |list: &&MapEntry| {
            list.key != "evals" && case_keys::are_trigger_queries(list.value.as_list().unwrap_or_default())
        };
        let only_triggers = !lists.is_empty() && lists.iter().all(is_trigger_list);
        if only_triggers || lists.is_empty() && !root.has("evals") && reading::are_sorted_triggers(root) {
            return Some(read_triggers(source, place, diagnostics));
        }
        if lists.is_empty() && !root.has("evals") {
            if case_keys::is_case(root) {
                let mut reader = CaseReader::new(source, place, None, diagnostics);
                let cases = reader.read_cases(std::slice::from_ref(root), None, diagnostics);
                return Some(reader.into_suite(cases, source, diagnostics));
            }
            if reading::are_wrapped_triggers(root) {
                reading::refuse_mapped_triggers(root, diagnostics);
                return None;
            }
        }
        read_mapping(source, place, diagnostics)
    }
}

/// Reads the skill that a document names. The usual key is asked for always, the others only where they are.
fn read_skill_hint<'n>(file: &mut ObjectReader<'n>, diagnostics: &mut Diagnostics) -> Option<SkillHint<'n>> {
    file.get("skill_name");
    let is_text = |key: &str| file.peek(key).is_some_and(|node| node.as_text().is_some());
    let key = ["skill_name", "skill"].into_iter().find(|key| is_text(key)).unwrap_or("skill_name");
    let node = file.get_non_null(key)?;
    let name = file.text(key, diagnostics).map(str::trim).filter(|name| !name.is_empty())?;
    Some(SkillHint { name, span: node.span, is_decisive: true })
}

/// Reads a mapping with one or more lists of cases.
fn read_mapping(
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> Option<Suite> {
    let mut file = ObjectReader::new(&source.root, "the file", diagnostics)?;
    let hint = read_skill_hint(&mut file, diagnostics);
    let lists = case_keys::case_lists(&source.root);
    if lists.iter().all(|list| list.key == "evals") {
        file.list("evals", diagnostics);
        if file.get_non_null("evals").is_none() {
            file.report_missing("evals", diagnostics);
        }
    }
    file.take_named(&lists);
    let mut reader = CaseReader::new(source, place, hint, diagnostics);
    let queries = file.get_non_null(TRIGGERS_KEY);
    for (key, why) in UNREAD_SETUP {
        if file.peek(key).is_some_and(|node| !node.is_null()) {
            file.get(key);
            diagnostics.warning("unread-setup", file.span, format!("the file has a \"{key}\", {why}"));
        }
    }
    let threshold = read_threshold(&mut file, diagnostics);
    let meta = reader.unused_keys.collect_unused(&file, "the file", diagnostics);
    if lists.is_empty() {
        return None;
    }
    let mut cases = Vec::new();
    for (index, list) in lists.iter().enumerate() {
        let items = list.value.as_list().unwrap_or_default();
        let key = (index > 0).then_some(list.key.as_str());
        match index > 0 && case_keys::are_trigger_queries(items) {
            true => {
                let own = std::mem::take(&mut reader.ids);
                let read = reader.read_queries(Some(&list.value), diagnostics);
                reader.ids = own;
                cases.extend(with_unique_ids(read, &list.key, &mut reader.ids));
            }
            false => cases.extend(reader.read_cases(items, key, diagnostics)),
        }
    }
    cases.extend(reader.read_queries(queries, diagnostics));
    if let Some(at_least) = threshold {
        cases.iter_mut().for_each(|case| pass_by_score(case, at_least));
    }
    let mut suite = reader.into_suite(cases, source, diagnostics);
    suite.meta = meta;
    Some(suite)
}

/// Reads the share of its assertions that each case must pass, where a file has one.
fn read_threshold(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Ratio> {
    file.peek("pass_threshold").filter(|node| !node.is_null())?;
    file.number("pass_threshold", 0.0, 1.0, diagnostics).and_then(Ratio::new)
}

/// Lets a case pass by the share of its checks. Whether the skill is activated must be right all the same.
fn pass_by_score(case: &mut Case, at_least: Ratio) {
    if case.pass_rule != PassRule::EveryRequiredCheck {
        return;
    }
    for check in &mut case.checks {
        if !matches!(check.kind, CheckKind::Activation(_)) {
            check.need = CheckNeed::Advisory;
        }
    }
    case.pass_rule = PassRule::Score(ScoreRule { at_least, of: ScoreOf::EachTrial });
}

/// Gives cases ids that no other list of the file uses: with the key of their list if an id is taken.
fn with_unique_ids(cases: Vec<Case>, list: &str, ids: &mut UniqueIds) -> Vec<Case> {
    let unique = |case: Case| {
        let wanted = match ids.contains(&case.id) {
            true => format!("{list}-{}", case.id),
            false => case.id.clone(),
        };
        Case { id: ids.make_unique(&wanted), ..case }
    };
    cases.into_iter().map(unique).collect()
}

/// Keys of a file that say how each case must be prepared, which is not done.
const UNREAD_SETUP: [(&str, &str); 3] = [
    ("codebase", "which is not fetched: the cases start without it"),
    ("fixture", "which is not prepared: the cases start without it"),
    ("setup", "which is not run: the cases start without it"),
];

impl CaseReader {
    /// Reads the queries in the same file. Each runs as often as in a trigger set.
    fn read_queries(&mut self, node: Option<&TreeNode>, diagnostics: &mut Diagnostics) -> Vec<Case> {
        let Some(node) = node else { return Vec::new() };
        let triggers = TriggerReader { skill: &self.skill.name, workspace: &WorkspaceSpec::default() };
        let cases =
            triggers.read_sorted_cases(node, TRIGGERS_KEY, &mut self.ids, &mut self.unused_keys, diagnostics);
        cases.into_iter().map(|case| Case { repeat: Some(reading::TRIGGER_RUNS), ..case }).collect()
    }

    /// Makes the suite of the cases that were read.
    fn into_suite(self, cases: Vec<Case>, source: &SourceFile, diagnostics: &mut Diagnostics) -> Suite {
        if cases.is_empty() && !diagnostics.has_errors() {
            let message = "there are no evals; a suite without cases proves nothing";
            diagnostics.error("no-cases", source.root.span, message);
        }
        Suite {
            rivals: reading::other_expected_skills(&cases, &self.skill, diagnostics),
            cases,
            format_defaults: RunPolicy {
                repeat: Some(1),
                arms: vec![Arm::WithSkill, Arm::WithoutSkill],
                ..RunPolicy::default()
            },
            gates: reading::all_cases_pass(),
            skills: vec![self.skill.clone()],
            ..reading::blank_suite(NAME, source, reading::suite_name(&self.skill.name, source))
        }
    }
}

/// Reads a file that is a trigger set: a list of queries, such lists under keys, or two lists of them.
fn read_triggers(source: &SourceFile, place: &EvalFileLocation, diagnostics: &mut Diagnostics) -> Suite {
    let root = &source.root;
    let mut unused_keys = UnusedKeys::with_silent_underscores();
    let lists = case_keys::case_lists(root);
    let mut hint = None;
    let mut meta = std::collections::BTreeMap::new();
    if let (false, Some(mut file)) =
        (lists.is_empty(), ObjectReader::new(root, "the file", &mut Diagnostics::default()))
    {
        hint = read_skill_hint(&mut file, diagnostics);
        file.take_named(&lists);
        meta = unused_keys.collect_unused(&file, "the file", diagnostics);
    }
    let skill = reading::skill_beside(source.folder(), place, hint, diagnostics);
    let triggers = TriggerReader { skill: &skill.name, workspace: &WorkspaceSpec::default() };
    let mut ids = UniqueIds::default();
    let mut cases = Vec::new();
    match &root.data {
        NodeData::List(items) => cases = triggers.read_cases(items, &mut unused_keys, diagnostics),
        _ if !lists.is_empty() => {
            for list in &lists {
                let mut own = UniqueIds::default();
                let (node, kept) = (&list.value, &mut unused_keys);
                let read = triggers.read_sorted_cases(node, "the file", &mut own, kept, diagnostics);
                cases.extend(with_unique_ids(read, &list.key, &mut ids));
            }
        }
        _ => cases = triggers.read_sorted_cases(root, "the file", &mut ids, &mut unused_keys, diagnostics),
    }
    if cases.is_empty() && !diagnostics.has_errors() {
        diagnostics.error("no-cases", None, "there are no queries; a suite without cases proves nothing");
    }
    Suite {
        rivals: reading::other_expected_skills(&cases, &skill, diagnostics),
        cases,
        format_defaults: RunPolicy {
            repeat: Some(reading::TRIGGER_RUNS),
            trigger_threshold: Ratio::new(reading::TRIGGER_THRESHOLD),
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
        skills: vec![skill.clone()],
        meta,
        ..reading::blank_suite(NAME, source, reading::suite_name(&skill.name, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::rule_kind;
    use crate::dialects::{testing, to_native};
    use serde_json::{Value, json};

    fn check(text: &str, expected: &[&str]) -> Option<Suite> {
        testing::check_diagnostics(&SkillCreator, "evals.json", text, expected)
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        for (text, expected) in [
            (r#"{"skill_name": "s"}"#, &["error missing-key 1:1"] as &[&str]),
            (r#"{"evals": 3}"#, &["error wrong-type 1:11"]),
            (r#"{"evals": []}"#, &["error no-cases 1:1"]),
            (r#"{"evals": [{}]}"#, &["error missing-key 1:12", "error no-checks 1:12"]),
            (
                r#"{"evals": [{"id": 1.5, "prompt": 3, "expectations": 4}]}"#,
                &["error wrong-type 1:34", "error wrong-type 1:19", "error wrong-type 1:53"],
            ),
            (
                r#"{"evals": [{"id": 1, "prompt": "p", "assertions": [3, "", {}]}]}"#,
                &["error wrong-type 1:52", "error empty-text 1:55", "error unknown-assertion 1:59"],
            ),
            (
                r#"{"evals": [{"id": 1, "prompt": "p", "expectations": ["e"], "files": ["../x"]}]}"#,
                &["error escaping-path 1:70"],
            ),
            (r#"[{"query": "", "should_trigger": true}]"#, &["error empty-text 1:12"]),
        ] {
            check(text, expected);
        }
    }

    /// Tests one assertion: the checks that it becomes, and the diagnostics.
    fn assertion(text: &str, checks: Value, expected: &[&str]) {
        let file = format!(r#"{{"evals": [{{"id": 1, "prompt": "p", "assertions": [{text}]}}]}}"#);
        let suite = check(&file, expected).expect("a suite");
        let native = to_native(&suite, Path::new("/nowhere/evals"));
        assert_eq!(native["cases"][0].get("checks").cloned().unwrap_or(json!([])), checks, "{text}");
    }

    #[test]
    fn assertions() {
        assertion(r#""It is so.""#, json!([{"judge": "It is so.", "id": "it-is-so"}]), &[]);
        assertion(
            r#"{"name": "n", "type": "contains", "value": "v"}"#,
            json!([{"contains": "v", "id": "n"}]),
            &[],
        );
        assertion(
            r#"{"type": "not_contains", "values": ["a", "b"], "case_sensitive": false}"#,
            json!([
                {"not_contains": {"text": "a", "ignore_case": true}, "id": "not-contains-a"},
                {"not_contains": {"text": "b", "ignore_case": true}, "id": "not-contains-b"},
            ]),
            &[],
        );
        assertion(
            r#"{"id": "i", "name": "n", "type": "regex", "value": "a+"}"#,
            json!([{"regex": "a+", "id": "i", "name": "n"}]),
            &[],
        );
        assertion(r#"{"type": "regex", "pattern": "("}"#, json!([]), &["error invalid-pattern 1:81"]);
        assertion(r#"{"type": "regex", "pattern": 5}"#, json!([]), &["error wrong-type 1:81"]);
        assertion(r#"{"type": "file_exists", "path": 5}"#, json!([]), &["error wrong-type 1:84"]);
        assertion(r#"{"type": "script", "command": ["a", 5]}"#, json!([]), &["error wrong-type 1:88"]);
        assertion(
            r#"{"type": "script", "command": {"a": 5}}"#,
            json!([]),
            &["error missing-key 1:82", "error unknown-key 1:82"],
        );
        for nothing in [
            r#"{"name": "n", "type": "contains"}"#,
            r#"{"name": "n", "type": "not_contains", "value": null}"#,
            r#"{"name": "n", "type": "contains", "values": []}"#,
            r#"{"name": "n", "type": "regex"}"#,
            r#"{"name": "n", "type": "transcript_regex", "expect": "absent"}"#,
            r#"{"name": "n", "type": "file_contains", "path": "a"}"#,
            r#"{"name": "n", "type": "json"}"#,
            r#"{"type": "file_exists"}"#,
            r#"{"type": "script"}"#,
        ] {
            assertion(nothing, json!([]), &["error unknown-assertion 1:52"]);
        }
        for kind in ["file_exists", "script"] {
            assertion(
                &format!(r#"{{"name": "The report is there", "type": "{kind}"}}"#),
                json!([{"judge": "The report is there", "id": "The report is there"}]),
                &["notice judged-assertion 1:52"],
            );
        }
        assertion(
            r#"{"type": "file_exists", "path": "a.md"}"#,
            json!([{"file": {"path": "a.md"}, "id": "file-a-md"}]),
            &[],
        );
        assertion(
            r#"{"type": "file_exists", "path": "a.md", "expect": "absent", "name": "n"}"#,
            json!([{"file": {"path": "a.md", "exists": false}, "id": "n"}]),
            &[],
        );
        assertion(
            r#"{"type": "file_contains", "path": "a.md", "value": "x"}"#,
            json!([{"file": {"path": "a.md", "contains": ["x"]}, "id": "file-a-md-x"}]),
            &[],
        );
        assertion(r#"{"type": "file_exists", "path": "/a"}"#, json!([]), &["error escaping-path 1:84"]);
        assertion(
            r#"{"name": "n", "type": "semantic", "text": "It is so."}"#,
            json!([{"judge": "It is so.", "id": "n"}]),
            &[],
        );
        assertion(
            r#"{"name": "n", "type": "layout", "check": "look at the top", "description": "It is so"}"#,
            json!([{"judge": "It is so (look at the top)", "id": "n"}]),
            &["notice judged-assertion 1:52"],
        );
        for text in [
            r#"{"name": "n", "type": "llm_judge", "value": "It is so."}"#,
            r#"{"name": "n", "type": "judge", "criteria": ["It is so."]}"#,
            r#"{"name": "n", "type": "rubric", "rubric": "It is so."}"#,
            r#"{"name": "n", "value": "It is so."}"#,
        ] {
            assertion(text, json!([{"judge": "n: It is so.", "id": "n"}]), &[]);
        }
        assertion(
            r#"{"name": "n", "check": "contains", "pattern": "z+"}"#,
            json!([{"judge": "n: contains; pattern \"z+\"", "id": "n"}]),
            &[],
        );
        assertion(
            r#"{"name": "has-a-table", "required": false}"#,
            json!([{"judge": "has-a-table", "id": "has-a-table", "required": false}]),
            &[],
        );
        assertion(
            r#"{"name": "n", "type": "contains", "description": "Says v"}"#,
            json!([{"judge": "Says v", "id": "n"}]),
            &["notice judged-assertion 1:52"],
        );
        assertion(
            r#"{"name": "n", "type": "json_valid", "path": "a.json"}"#,
            json!([{"judge": "n: An assertion of type json_valid with path \"a.json\" holds.", "id": "n"}]),
            &["notice judged-assertion 1:52"],
        );
        assertion(
            r#"{"type": "file", "value": {"path": "a.md", "matches": "x"}, "name": "n", "weight": 3}"#,
            json!([{"file": {"path": "a.md", "matches": "x"}, "id": "n"}]),
            &["warning unknown-key 1:125"],
        );
        assertion(
            r#"{"name": "n", "type": "transcript_regex", "pattern": "x", "expect": "sometimes"}"#,
            json!([]),
            &["error unknown-value 1:120"],
        );
    }

    #[test]
    fn assertions_that_are_turned_round_or_look_at_a_file() {
        for text in [
            r#"{"name": "n", "type": "contains", "value": "v", "expect": "absent"}"#,
            r#"{"name": "n", "type": "contains", "value": "v", "negate": true}"#,
            r#"{"name": "n", "type": "contains", "value": "v", "expected": false}"#,
            r#"{"name": "n", "type": "not_contains", "value": "v", "expect": "present"}"#,
        ] {
            assertion(text, json!([{"not_contains": "v", "id": "n"}]), &[]);
        }
        assertion(
            r#"{"name": "n", "type": "regex", "value": "(?i)a|b", "negate": true}"#,
            json!([{"regex": r"(?i)\A(?![\s\S]*?(?:a|b))", "id": "n"}]),
            &[],
        );
        assertion(
            r#"{"name": "n", "type": "starts_with", "value": "v", "negate": true}"#,
            json!([]),
            &["error unknown-value 1:52"],
        );
        for key in ["path", "file", "target"] {
            assertion(
                &format!(r#"{{"name": "n", "type": "contains", "value": "v", "{key}": "a.md"}}"#),
                json!([{"contains": "v", "on": {"file": "a.md"}, "id": "n"}]),
                &[],
            );
        }
        assertion(
            r#"{"name": "n", "type": "file_contains", "path": "a.md", "value": "v", "expect": "absent"}"#,
            json!([{"not_contains": "v", "on": {"file": "a.md"}, "id": "n"}]),
            &[],
        );
        assertion(
            r#"{"name": "n", "type": "contains", "value": "v", "target": "stderr"}"#,
            json!([]),
            &["error unknown-value 1:110"],
        );
    }

    /// These two are checks where there are such checks, and sentences for the judge where not.
    #[test]
    fn assertions_about_the_run() {
        let transcript =
            r#"{"name": "n", "type": "transcript_regex", "pattern": "rm -rf", "expect": "absent"}"#;
        let script =
            r#"{"name": "n", "type": "script", "command": ["test", "-f", "a b"], "expect_exit_code": 1}"#;
        let judged: &[&str] = &["notice judged-assertion 1:52"];
        match rule_kind("transcript") {
            Some(_) => assertion(
                transcript,
                json!([{"transcript": {"pattern": "rm -rf", "expect": "absent"}, "id": "n"}]),
                &[],
            ),
            None => assertion(
                transcript,
                json!([{"judge": "The transcript does not match the regular expression /rm -rf/.", "id": "n"}]),
                judged,
            ),
        }
        let command = "(test -f 'a b'\n); test $? -eq 1";
        match rule_kind("command") {
            Some(_) => assertion(script, json!([{"command": command, "id": "n"}]), &[]),
            None => assertion(
                script,
                json!([{"judge": format!("In the workspace, the command `{command}` would succeed."), "id": "n"}]),
                judged,
            ),
        }
    }

    #[test]
    fn expectations_and_assertions_add_up_and_ids_are_text() {
        let text = r#"{"skill_name": "s", "evals": [
            {"id": 7, "prompt": "p", "expectations": ["a"], "assertions": ["a", "b"], "expected_output": "o"}]}"#;
        let suite = check(text, &[]).expect("a suite");
        let case = &suite.cases[0];
        let ids: Vec<&str> = case.checks.iter().map(|check| check.id.as_str()).collect();
        assert_eq!((case.id.as_str(), ids), ("7", vec!["a", "a-2", "b"]));
        assert_eq!(case.context.as_deref(), Some("o"));
        assert_eq!(suite.format_defaults.arms, [Arm::WithSkill, Arm::WithoutSkill]);
    }
}

//! The skill-test format: suites that measure when skills are activated.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::reading::case_keys::PROMPT_KEYS;
use super::reading::{self, SkillHint, UniqueIds, UnusedKeys, slug};
use super::recognition::{self, ForeignFormat};
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    ActivationExpectation, Case, Check, CheckKind, Diagnostics, RunPolicy, SkillRef, Span, Suite,
};
use practicum_core::tree::{MapEntry, NodeData, ObjectReader, SourceFile, TreeNode, closest_word};

mod export;
pub(super) mod plugins;
mod router;
mod schema;

use router::{read_route, skills_named_in};

pub struct SkillTest;

const NAME: &str = "skill-test";

/// The number of runs of a case if the suite gives none.
const DEFAULT_RUNS: u32 = 5;
/// The largest number of runs that a suite may give.
const MOST_RUNS: u32 = 20;

/// The key of the suite's meta for the parts of its skills that no case uses.
const SKILLS_META_KEY: &str = "skills";

/// The key of a listed case for statements for a judge.
const BEHAVIOUR_KEY: &str = "expected_behavior";
/// The key of a listed case for what the judge should know.
const TRUTH_KEY: &str = "ground_truth";

/// The group and id prefix of cases in which no skill may be activated.
const NEGATIVE_GROUP: &str = "negative";

impl Dialect for SkillTest {
    fn name(&self) -> &'static str {
        NAME
    }

    fn recognition_rule(&self) -> &'static str {
        "\"skills\" with \"test_cases\", \"negative_cases\", or cases with an \"expectation\"; lists of cases \
         that name the skill that must be activated"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        recognition::fit_for(source, ForeignFormat::SkillTest)
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, _folder: &Path) -> ExportedSuite {
        export::export_suite(suite)
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut reader =
            SkillTestReader { ids: UniqueIds::default(), unused_keys: UnusedKeys::refusing_unread_cases() };
        if source.root.has("cases") && source.root.has("skills") {
            diagnostics.error_with_help(
                "contradiction",
                source.root.span,
                "the suite has \"skills\" with their cases and \"cases\" beside them; only one of them can be read",
                "move the cases to the \"test_cases\" of their skill, or to \"negative_cases\"",
            );
            return None;
        }
        let router = recognition::find_router_cases(&source.root);
        let suite = match &source.root.data {
            NodeData::List(items) => reader.read_array(items, source, place, diagnostics),
            _ if router.is_some() => {
                let suite = reader.read_array(router.unwrap_or_default(), source, place, diagnostics);
                Suite { meta: reader.read_router_meta(source, diagnostics), ..suite }
            }
            _ if source.root.has("cases") => reader.read_flat(source, place, diagnostics)?,
            _ => reader.read_nested(source, place, diagnostics)?,
        };
        if suite.cases.is_empty() && !diagnostics.has_errors() {
            diagnostics.error(
                "no-cases",
                source.root.span,
                "there are no cases; a suite without cases proves nothing",
            );
        }
        Some(Suite {
            format_defaults: RunPolicy { repeat: Some(DEFAULT_RUNS), ..RunPolicy::default() },
            ..suite
        })
    }
}

/// Makes a suite that has only the found skills, their rivals and their plugins.
fn suite_of(found: plugins::FoundSkills, source: &SourceFile, name: String) -> Suite {
    let plugins::FoundSkills { skills, rivals, plugins, left_out: _ } = found;
    Suite { skills, rivals, plugins, ..reading::blank_suite(NAME, source, name) }
}

struct SkillTestReader {
    ids: UniqueIds,
    unused_keys: UnusedKeys,
}

/// A skill as the file names it.
struct NamedSkill<'n> {
    name: &'n str,
    plugin: Option<&'n str>,
    cases: &'n [TreeNode],
    /// The cases in which this skill must not be activated.
    negative: &'n [TreeNode],
    unused: BTreeMap<String, Value>,
}

impl SkillTestReader {
    /// Reads skills with their cases, and cases in which none of the skills may be activated.
    fn read_nested(
        &mut self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut file = ObjectReader::new(&source.root, "the suite", diagnostics)?;
        let name = file.required_text("name", diagnostics).map(str::to_owned);
        let description = file.text("description", diagnostics).map(str::to_owned);
        let run = read_run_policy(&mut file, diagnostics);
        let nodes = file.list("skills", diagnostics).unwrap_or_default();
        if nodes.is_empty() {
            diagnostics.error_with_help(
                "no-skill",
                file.get_non_null("skills").map_or(file.span, |node| node.span),
                "there are no skills, so there is nothing to activate",
                "list at least one under \"skills\"",
            );
        }
        let negative = file.list("negative_cases", diagnostics).unwrap_or_default();
        let mut meta = self.unused_keys.collect_unused(&file, "the suite", diagnostics);
        let skills: Vec<NamedSkill<'_>> =
            nodes.iter().filter_map(|node| self.read_skill(node, diagnostics)).collect();
        let more: Map<String, Value> = skills
            .iter()
            .filter(|skill| !skill.unused.is_empty())
            .map(|skill| (skill.name.to_owned(), json!(skill.unused)))
            .collect();
        if !more.is_empty() {
            meta.insert(SKILLS_META_KEY.to_owned(), Value::Object(more));
        }
        let listed = distinct_skills(skills.iter().map(|skill| (skill.name, skill.plugin)));
        let found = plugins::find_skills(listed, source, place, diagnostics);
        let mut cases = Vec::new();
        for skill in &skills {
            let subject = [skill.name.to_owned()];
            let is_it = |other: &SkillRef| {
                (other.name.as_str(), other.plugin.as_deref()) == (skill.name, skill.plugin)
            };
            let is_left_out = found.left_out.iter().any(is_it);
            for (nodes, labels) in [(skill.cases, &LABELS[..]), (skill.negative, NEGATIVE_LABELS)] {
                let read = nodes
                    .iter()
                    .filter_map(|node| self.read_case(node, skill.name, &subject, labels, diagnostics));
                // The skill is not staged, so nothing can be said about its cases. Without checks they do not run.
                cases.extend(
                    read.map(|case| if is_left_out { Case { checks: Vec::new(), ..case } } else { case }),
                );
            }
        }
        let mut all: Vec<String> = Vec::new();
        for skill in &skills {
            if !all.iter().any(|name| name == skill.name) {
                all.push(skill.name.to_owned());
            }
        }
        cases.extend(
            negative
                .iter()
                .filter_map(|node| self.read_case(node, NEGATIVE_GROUP, &all, NEGATIVE_LABELS, diagnostics)),
        );
        Some(Suite { description, cases, run_policy: run, meta, ..suite_of(found, source, name?) })
    }

    fn read_skill<'n>(
        &mut self,
        node: &'n TreeNode,
        diagnostics: &mut Diagnostics,
    ) -> Option<NamedSkill<'n>> {
        let mut skill = ObjectReader::new(node, "a skill", diagnostics)?;
        let name = skill.required_text("name", diagnostics);
        let plugin = skill.required_text("plugin", diagnostics);
        let cases = skill.list("test_cases", diagnostics);
        if skill.get_non_null("test_cases").is_none() {
            skill.report_missing("test_cases", diagnostics);
        }
        let negative = skill.list("negative_cases", diagnostics).unwrap_or_default();
        let more = self.unused_keys.collect_unused(&skill, "a skill", diagnostics);
        Some(NamedSkill { name: name?, plugin, cases: cases.unwrap_or_default(), negative, unused: more })
    }

    fn read_case(
        &mut self,
        node: &TreeNode,
        group: &str,
        subject: &[String],
        labels: &[(&str, ActivationExpectation)],
        diagnostics: &mut Diagnostics,
    ) -> Option<Case> {
        let mut case = ObjectReader::new(node, "a case", diagnostics)?;
        let prompt = reading::either_text(&mut case, ["prompt", "input"], diagnostics);
        let checks = self.read_expectation(&mut case, subject, labels, diagnostics);
        let behaviour = expected_behaviour(&mut case, diagnostics);
        let context = ground_truth(&mut case, diagnostics);
        let note = case.text("rationale", diagnostics).map(str::to_owned);
        let id = match case.get_non_null("id") {
            Some(_) => self.ids.read_id(&mut case, diagnostics),
            None => prompt.map(|prompt| self.ids.make_unique(&format!("{group}/{}", slug(prompt, "case")))),
        };
        let meta = self.unused_keys.collect_unused(&case, "a case", diagnostics);
        Some(Case {
            group: Some(group.to_owned()),
            note,
            checks: [checks?, behaviour].concat(),
            context,
            meta,
            ..reading::blank_case(id?, prompt?.to_owned())
        })
    }

    /// Reads the documented label, or one of the other keys that mean the same. If both are given they must agree.
    fn read_expectation(
        &mut self,
        case: &mut ObjectReader<'_>,
        subject: &[String],
        labels: &[(&str, ActivationExpectation)],
        diagnostics: &mut Diagnostics,
    ) -> Option<Vec<Check>> {
        let other = reading::expected_activation(case, subject, diagnostics);
        let label = case.get_non_null("expectation");
        if label.is_none() && other.is_given {
            return Some(other.checks).filter(|checks| !checks.is_empty());
        }
        let expect = read_label(case, labels, diagnostics)?;
        if let Some(skills) = forbidden_together(&other.checks, subject, expect) {
            return Some(vec![reading::activation_check(skills, expect)]);
        }
        let checks = vec![reading::activation_check(subject.to_vec(), expect)];
        if other.is_given && other.checks != checks {
            diagnostics.error_with_help(
                "contradiction",
                label.map(|node| node.span),
                "\"expectation\" and another key of this case do not say the same of activation",
                "keep one of them",
            );
        }
        Some(checks)
    }

    /// Reads one skill and a list of cases about it. The cases in which it must not be activated may be a separate
    /// list.
    fn read_flat(
        &mut self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut file = ObjectReader::new(&source.root, "the suite", diagnostics)?;
        let name = file.text("name", diagnostics).map(str::to_owned);
        let description = file.text("description", diagnostics).map(str::to_owned);
        let run = read_run_policy(&mut file, diagnostics);
        // A file that names no skill lies in the folder of the skill that it is about.
        let named = ["skill", "skill_name"].into_iter().any(|key| file.get_non_null(key).is_some());
        let skill = match named {
            true => reading::either_text(&mut file, ["skill", "skill_name"], diagnostics).map(|name| {
                let hint = SkillHint { name, span: source.root.span, is_decisive: true };
                let beside =
                    reading::skill_beside(source.folder(), place, Some(hint), &mut Diagnostics::default());
                let path = beside.path.filter(|_| beside.name == name);
                SkillRef { name: name.to_owned(), path, plugin: None }
            }),
            false => Some(reading::skill_beside(source.folder(), place, None, &mut Diagnostics::default())),
        };
        let plugin = file.text("plugin", diagnostics).map(str::to_owned);
        let nodes = file.list("cases", diagnostics).unwrap_or_default();
        let negative = file.list("negative_cases", diagnostics).unwrap_or_default();
        let meta = self.unused_keys.collect_unused(&file, "the suite", diagnostics);
        let subject = [skill.as_ref().map(|skill| skill.name.clone()).unwrap_or_default()];
        let mut cases: Vec<Case> = nodes
            .iter()
            .filter_map(|node| self.read_case(node, &subject[0], &subject, &LABELS, diagnostics))
            .collect();
        cases.extend(
            negative.iter().filter_map(|node| {
                self.read_case(node, NEGATIVE_GROUP, &subject, NEGATIVE_LABELS, diagnostics)
            }),
        );
        let found = plugins::find_skills(vec![SkillRef { plugin, ..skill? }], source, place, diagnostics);
        let name = name.unwrap_or_else(|| suite_stem(source));
        Some(Suite { description, cases, run_policy: run, meta, ..suite_of(found, source, name) })
    }

    /// Reads inputs, each with the skill that it should activate. Null means that none of the staged skills may be
    /// activated.
    fn read_array(
        &mut self,
        items: &[TreeNode],
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Suite {
        let named: Vec<&str> = items.iter().flat_map(skills_named_in).collect();
        // Cases that only say when no skill may be activated are about the skill of the file.
        let own = ["skill", "skill_name"].into_iter().find_map(|key| source.root.get(key)?.as_text());
        let own = own.filter(|_| named.is_empty());
        let skills = distinct_skills(named.into_iter().chain(own).map(|name| (name, None)));
        if skills.is_empty() {
            diagnostics.error_with_help(
                "no-skill",
                source.root.span,
                "no case names a skill, so none could be activated",
                "name one in \"expected_skill\"",
            );
        }
        let suite =
            suite_of(plugins::find_skills(skills, source, place, diagnostics), source, suite_stem(source));
        let staged: Vec<String> =
            suite.skills.iter().chain(&suite.rivals).map(|skill| skill.name.clone()).collect();
        let cases = items.iter().filter_map(|node| self.read_item(node, &staged, diagnostics)).collect();
        Suite { cases, ..suite }
    }

    fn read_item(
        &mut self,
        node: &TreeNode,
        staged: &[String],
        diagnostics: &mut Diagnostics,
    ) -> Option<Case> {
        let mut item = ObjectReader::new(node, "a case", diagnostics)?;
        let other = PROMPT_KEYS.into_iter().find(|key| node.has(key) && !["prompt", "input"].contains(key));
        let input = reading::either_text(&mut item, ["input", other.unwrap_or("prompt")], diagnostics);
        let note = item.text("rationale", diagnostics).map(str::to_owned);
        let name = item.get("expected_skill").and_then(TreeNode::as_text).map(str::trim);
        let name = name.filter(|name| !name.is_empty());
        let routed = read_route(&mut item, staged);
        let about = name.map_or_else(|| staged.to_vec(), |name| vec![name.to_owned()]);
        let expected = reading::expected_activation(&mut item, &about, diagnostics);
        if !expected.is_given && routed.is_none() {
            item.report_missing("expected_skill", diagnostics);
        }
        let group = node.get("skill").and_then(TreeNode::as_text).or(name).unwrap_or(NEGATIVE_GROUP);
        let checks = match routed {
            Some(check) => Some(vec![check]),
            None => Some(expected.checks).filter(|checks| !checks.is_empty()),
        };
        let behaviour = expected_behaviour(&mut item, diagnostics);
        let context = ground_truth(&mut item, diagnostics);
        let id = match item.get_non_null("id") {
            Some(_) => self.ids.read_id(&mut item, diagnostics),
            None => input.map(|input| self.ids.make_unique(&format!("{group}/{}", slug(input, "case")))),
        };
        let meta = self.unused_keys.collect_unused(&item, "a case", diagnostics);
        Some(Case {
            group: Some(group.to_owned()),
            note,
            checks: [checks?, behaviour].concat(),
            context,
            meta,
            ..reading::blank_case(id?, input?.to_owned())
        })
    }
}

impl SkillTestReader {
    /// Collects what a router set has beside its cases.
    fn read_router_meta(
        &mut self,
        source: &SourceFile,
        diagnostics: &mut Diagnostics,
    ) -> BTreeMap<String, Value> {
        let Some(mut file) = ObjectReader::new(&source.root, "the suite", diagnostics) else {
            return BTreeMap::new();
        };
        let is_read = |entry: &&MapEntry| {
            let read = recognition::find_router_cases(&source.root).map(<[TreeNode]>::as_ptr);
            entry.value.as_list().map(<[TreeNode]>::as_ptr) == read
        };
        let entries: Vec<&MapEntry> =
            source.root.as_map().unwrap_or_default().iter().filter(is_read).collect();
        file.take_named(&entries);
        self.unused_keys.collect_unused(&file, "the suite", diagnostics)
    }
}

/// Gives all forbidden skills of a case whose label and another key both forbid some; `None` for other cases.
fn forbidden_together(
    other: &[Check],
    subject: &[String],
    expect: ActivationExpectation,
) -> Option<Vec<String>> {
    let [Check { kind: CheckKind::Activation(forbidden), .. }] = other else { return None };
    if (expect, forbidden.expect) != (ActivationExpectation::MustNot, ActivationExpectation::MustNot) {
        return None;
    }
    let more = subject.iter().filter(|name| !forbidden.skills.contains(name));
    Some(forbidden.skills.iter().chain(more).cloned().collect())
}

/// Reads statements about what the agent should do beyond activation, which some people write in the same file.
fn expected_behaviour(case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let mut ids = UniqueIds::default();
    let mut checks = Vec::new();
    for (text, span) in case.texts(BEHAVIOUR_KEY, diagnostics).unwrap_or_default() {
        match text.trim().is_empty() {
            true => diagnostics.error("empty-text", span, "an expected behaviour must not be blank"),
            false => checks.push(reading::judged_check(ids.make_unique(&slug(text, "behaviour")), text)),
        }
    }
    checks
}

/// Reads what the judge of such statements should know.
fn ground_truth(case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<String> {
    case.text(TRUTH_KEY, diagnostics).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// The labels of a case: the documented one first, then the spellings that people use.
const LABELS: [(&str, ActivationExpectation); 11] = [
    ("must_activate", ActivationExpectation::Must),
    ("must_trigger", ActivationExpectation::Must),
    ("must_pass", ActivationExpectation::Must),
    ("must", ActivationExpectation::Must),
    ("should_not_activate", ActivationExpectation::MustNot),
    ("should_not_trigger", ActivationExpectation::MustNot),
    ("must_fail", ActivationExpectation::MustNot),
    ("should_not", ActivationExpectation::MustNot),
    ("must_not", ActivationExpectation::MustNot),
    ("acceptable", ActivationExpectation::Either),
    ("ok", ActivationExpectation::Either),
];

const LABELS_TEXT: &str = "it may be must_activate, should_not_activate or acceptable";

/// The labels for cases in which no skill may be activated.
const NEGATIVE_LABELS: &[(&str, ActivationExpectation)] = LABELS.split_at(4).1.split_at(5).0;

fn read_label(
    case: &mut ObjectReader<'_>,
    labels: &[(&str, ActivationExpectation)],
    diagnostics: &mut Diagnostics,
) -> Option<ActivationExpectation> {
    let node = case.get_non_null("expectation");
    let span: Option<Span> = node.map(|node| node.span);
    if let Some(node) = node.filter(|node| node.as_text().is_none()) {
        let message = format!("\"expectation\" must be a label, not {}", node.kind_name());
        diagnostics.error_with_help("wrong-type", node.span, message, LABELS_TEXT);
        return None;
    }
    let label = case.required_text("expectation", diagnostics)?;
    let normal = label.trim().to_lowercase().replace(['-', ' '], "_");
    if let Some((_, expect)) = labels.iter().find(|(known, _)| *known == normal) {
        return Some(*expect);
    }
    let known: Vec<&str> = labels.iter().map(|(label, _)| *label).collect();
    let elsewhere = LABELS.iter().any(|(known, _)| *known == normal);
    let (message, help) = if elsewhere {
        let message = format!("a negative case cannot be \"{label}\": none of the skills may answer it");
        (message, "write should_not_activate, or move the case to the skill that may".to_owned())
    } else {
        // A label with the opposite meaning may look similar, and is never the one that was meant.
        let negated = |label: &str| label.split('_').any(|word| word == "not" || word == "fail");
        let alike: Vec<&str> = known.into_iter().filter(|known| negated(known) == negated(&normal)).collect();
        let help = closest_word(&normal, &alike)
            .map_or_else(|| LABELS_TEXT.to_owned(), |known| format!("did you mean \"{known}\"?"));
        (format!("\"expectation\" cannot be \"{label}\""), help)
    };
    diagnostics.error_with_help("unknown-value", span, message, help);
    None
}

/// Reads how often each case runs, if the suite says it.
fn read_run_policy(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RunPolicy {
    let repeat = file.int("runs_per_case", 1, i64::from(MOST_RUNS), diagnostics);
    RunPolicy { repeat: repeat.and_then(|n| u32::try_from(n).ok()), ..RunPolicy::default() }
}

fn distinct_skills<'n>(skills: impl IntoIterator<Item = (&'n str, Option<&'n str>)>) -> Vec<SkillRef> {
    let mut distinct: Vec<SkillRef> = Vec::new();
    for (name, plugin) in skills {
        let plugin = plugin.map(str::to_owned);
        if !distinct.iter().any(|known| known.name == name && known.plugin == plugin) {
            distinct.push(SkillRef { name: name.to_owned(), path: None, plugin });
        }
    }
    distinct
}

fn suite_stem(source: &SourceFile) -> String {
    source.path.file_stem().map_or_else(|| NAME.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::testing;
    use practicum_core::model::PassRule;

    fn check(text: &str, expected: &[&str]) -> Option<Suite> {
        testing::check_diagnostics(&SkillTest, "suite.json", text, expected)
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        for (text, expected) in [
            ("{}", &["error missing-key 1:1", "error no-skill 1:1"] as &[&str]),
            (r#"{"name": " ", "skills": []}"#, &["error empty-text 1:10", "error no-skill 1:25"]),
            (
                r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": []}]}"#,
                &["error no-cases 1:1"],
            ),
            (
                r#"{"name": "n", "skills": [{}, 3]}"#,
                &[
                    "error missing-key 1:26",
                    "error missing-key 1:26",
                    "error missing-key 1:26",
                    "error wrong-type 1:30",
                ],
            ),
            (
                r#"{"name": "n", "runs_per_case": 0, "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "x", "expectation": "must_activate"}]}]}"#,
                &["error out-of-range 1:32"],
            ),
            (
                r#"{"name": "n", "runs_per_case": 21, "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "x", "expectation": "must_activate"}]}]}"#,
                &["error out-of-range 1:32"],
            ),
            (
                r#"{"name": "n", "runs_per_case": 2.5, "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "", "expectation": "must_activat"}, {}]}]}"#,
                &[
                    "error wrong-type 1:32",
                    "error empty-text 1:103",
                    "error unknown-value 1:122",
                    "error missing-key 1:139",
                    "error missing-key 1:139",
                ],
            ),
            (
                r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": []}], "negative_cases": [{"prompt": "x", "expectation": "must_activate"}, {"prompt": "y", "expectation": "acceptable"}]}"#,
                &["error unknown-value 1:125", "error unknown-value 1:174"],
            ),
            (r#"{"skill": "s", "cases": []}"#, &["error no-cases 1:1"]),
            (
                r#"{"skill": "s", "cases": [], "negative_cases": [{"prompt": "x", "expectation": "should_not_activate"}]}"#,
                &[],
            ),
            (
                r#"{"skill": "s", "cases": [], "negative_cases": [{"prompt": "x", "expectation": "must_activate"}]}"#,
                &["error unknown-value 1:79"],
            ),
            (
                r#"{"cases": [{"id": "a", "prompt": "x", "expectation": "must"}, {"id": "a", "prompt": "x", "expectation": "must"}]}"#,
                &["error duplicate-id 1:70"],
            ),
            (r#"[{"input": "x", "expected_skill": null}]"#, &["error no-skill 1:1"]),
            (
                r#"[{"input": "x", "expected_skill": "s"}, {"input": "y"}, {"expected_skill": 3}, 4]"#,
                &[
                    "error missing-key 1:41",
                    "error missing-key 1:57",
                    "error wrong-type 1:76",
                    "error wrong-type 1:80",
                ],
            ),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn every_seen_spelling_of_a_label() {
        for (labels, expect) in [
            (
                &["must_activate", "must_trigger", "must_pass", "must", "MUST", "must-activate"] as &[&str],
                ActivationExpectation::Must,
            ),
            (
                &["should_not_activate", "should_not_trigger", "must_fail", "should_not", "must_not"],
                ActivationExpectation::MustNot,
            ),
            (&["acceptable", "ok"], ActivationExpectation::Either),
        ] {
            for label in labels {
                let text =
                    format!(r#"{{"skill": "s", "cases": [{{"prompt": "p", "expectation": "{label}"}}]}}"#);
                let suite = check(&text, &[]).expect("a suite");
                assert_eq!(
                    suite.cases[0].checks,
                    [reading::activation_check(vec!["s".to_owned()], expect)],
                    "{label}"
                );
                assert_eq!(suite.cases[0].pass_rule, PassRule::EveryRequiredCheck);
            }
        }
    }

    #[test]
    fn a_label_that_is_none_is_never_taken_for_its_opposite() {
        let help = |label: &str| {
            let text = format!(r#"{{"skill": "s", "cases": [{{"prompt": "p", "expectation": {label}}}]}}"#);
            let source = testing::parse_source("/nowhere/suite.json".into(), &text);
            let (_, found) =
                testing::lower_source(&SkillTest, &source, &testing::location_in(Path::new("/nowhere")));
            let problem =
                found.iter().find(|problem| problem.severity == practicum_core::model::Severity::Error);
            problem.and_then(|problem| problem.help.clone()).unwrap_or_default()
        };
        for (label, expected) in [
            (r#""must_activat""#, "did you mean \"must_activate\"?"),
            (r#""should_not_activat""#, "did you mean \"should_not_activate\"?"),
            (r#""accept""#, "did you mean \"acceptable\"?"),
            (r#""should_activate""#, LABELS_TEXT),
            ("true", LABELS_TEXT),
        ] {
            assert_eq!(help(label), expected, "{label}");
        }
    }

    #[test]
    fn a_negative_case_forbids_every_skill() {
        for text in [
            r#"{"name": "n", "skills": [
                {"name": "a", "plugin": "p", "test_cases": [{"prompt": "x", "expectation": "must"}]},
                {"name": "b", "plugin": "p", "test_cases": []}, {"name": "a", "plugin": "q", "test_cases": []}],
                "negative_cases": [{"prompt": "y", "expectation": "should_not"}]}"#,
            r#"[{"input": "x", "expected_skill": "a"}, {"input": "y", "expected_skill": null},
                {"input": "z", "expected_skill": "b"}]"#,
        ] {
            let suite = check(text, &[]).expect("a suite");
            let forbidden: Vec<&[String]> = suite
                .cases
                .iter()
                .filter(|case| case.group.as_deref() == Some(NEGATIVE_GROUP))
                .map(|case| match &case.checks[0].kind {
                    CheckKind::Activation(activation) => activation.skills.as_slice(),
                    CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => &[],
                })
                .collect();
            assert_eq!(forbidden, [["a".to_owned(), "b".to_owned()]]);
            assert_eq!((suite.run_policy.repeat, suite.format_defaults.repeat), (None, Some(5)));
        }
    }

    #[test]
    fn skills_are_looked_for_where_the_user_says_then_beside_the_suite() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for skill in ["plugins/p/skills/s", "plugins/q/skills/s", "plugins/single", "mine/p/skills/s"] {
            std::fs::create_dir_all(root.join(skill)).expect("create");
            std::fs::write(root.join(skill).join("SKILL.md"), "text").expect("write");
        }
        let suite = |plugin: &str, name: &str, plugins: Option<&str>| {
            let text = format!(
                r#"{{"name": "n", "skills": [{{"name": "{name}", "plugin": "{plugin}", "test_cases": []}}]}}"#
            );
            let source = testing::parse_source(root.join("evals/suite.json"), &text);
            let place = EvalFileLocation {
                plugins: plugins.map(Into::into),
                ..EvalFileLocation::new(root.join("evals"), root.join("evals"))
            };
            let suite = testing::lower_source(&SkillTest, &source, &place).0.expect("a suite");
            let inside = |skill: &SkillRef| {
                let path = skill.path.as_ref()?.strip_prefix(root).ok()?;
                Some(path.to_string_lossy().into_owned())
            };
            (inside(&suite.skills[0]), suite.rivals.iter().filter_map(inside).collect::<Vec<_>>())
        };
        let (p, q, single) = ("plugins/p/skills/s", "plugins/q/skills/s", "plugins/single");
        let some = |path: &str| Some(path.to_owned());
        // A workspace can hold only one skill of each name.
        for plugins in [None, Some("../plugins")] {
            assert_eq!(suite("p", "s", plugins), (some(p), vec![single.to_owned()]));
            assert_eq!(suite("q", "s", plugins), (some(q), vec![single.to_owned()]));
            assert_eq!(suite("single", "single", plugins), (some(single), vec![p.to_owned()]));
        }
        assert_eq!(suite("p", "s", Some("../mine")), (some("mine/p/skills/s"), vec![]));
        let mine = root.join("mine");
        assert_eq!(suite("p", "s", mine.to_str()), (some("mine/p/skills/s"), vec![]));
        assert_eq!(suite("r", "s", None).0, None);
        // A user who gives a folder does not mean any other.
        assert_eq!(suite("p", "s", Some("../nowhere")), (None, vec![]));

        let both = r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": []},
            {"name": "s", "plugin": "q", "test_cases": []}, {"name": "s", "plugin": "q", "test_cases": []}]}"#;
        let source = testing::parse_source(root.join("evals/suite.json"), both);
        let place = EvalFileLocation::new(root.join("evals"), root.join("evals"));
        let said = testing::lower_source(&SkillTest, &source, &place).1;
        let warnings = said.iter().filter(|said| said.code == "same-name-skills").count();
        assert_eq!(warnings, 1, "{said:?}");
    }
}

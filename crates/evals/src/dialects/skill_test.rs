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
        let mut skills = distinct_skills(named.into_iter().chain(own).map(|name| (name, None)));
        if let (true, Some(path)) = (skills.is_empty(), &place.skill) {
            skills.push(reading::skill_at(path, &place.skills, diagnostics));
        }
        if skills.is_empty() {
            diagnostics.error_with_help(
                "no-skill",
                source.root.span,
                "no case names a skill, so none could be activated",
                "name one in \"expected_skill\", or with --skill",
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
mod tests;

//! clauditor: `<skill>.eval.json` beside the skill or command it is about.

mod assertions;
mod files;
mod grading;
mod raise;
mod schema;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::reading::{Ids, activation, blank_case, blank_suite, slug};
use super::{Dialect, Fit, Place, Raised};
use crate::model::{
    Base, Case, Check, Diagnostics, Expect, Fixture, Gate, GateName, JudgePolicy, PassRule, Provider,
    RelPath, Room, RunPolicy, SkillRef, Stimulus, Suite, Transport, parse_duration,
};
use crate::tree::{Data, Node, Object, Source, closest, text_of};

pub struct Clauditor;

const TIMEOUT: Duration = Duration::from_secs(300);

const HARNESSES: [&str; 3] = ["claude-code", "codex", "auto"];

/// The top-level keys that are not for the person reading the file alone.
const KEYS: [&str; 19] = [
    "skill_name",
    "description",
    "test_args",
    "input_files",
    "assertions",
    "sections",
    "output_file",
    "output_files",
    "grading_criteria",
    "grading_model",
    "grading_provider",
    "grade_thresholds",
    "trigger_tests",
    "variance",
    "user_prompt",
    "system_prompt",
    "timeout",
    "transport",
    "harness",
];

impl Dialect for Clauditor {
    fn name(&self) -> &'static str {
        "clauditor"
    }

    fn recognise(&self, source: &Source) -> Fit {
        let name =
            source.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
        let root = &source.root;
        if name.ends_with(".eval.json") {
            return Fit::Sure;
        }
        let typed = root.get("assertions").and_then(Node::as_list).is_some_and(|assertions| {
            assertions.iter().any(|assertion| assertion.has("type") && assertion.has("id"))
        });
        if root.has("test_args") || root.has("grading_criteria") || typed { Fit::Sure } else { Fit::No }
    }

    fn lower(&self, source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Option<Suite> {
        let mut spec = Object::new(&source.root, "an eval spec", diagnostics)?;
        let name = nullable_text(&mut spec, "skill_name", diagnostics)
            .map_or_else(|| default_name(&source.path), str::to_owned);
        let description = nullable_text(&mut spec, "description", diagnostics).map(str::to_owned);
        let args = nullable_text(&mut spec, "test_args", diagnostics).unwrap_or_default().to_owned();
        let inputs = files::inputs(&mut spec, source.folder(), diagnostics);
        let looks_at = files::looks_at(&mut spec, &inputs, diagnostics);
        let mut ids = EntryIds::default();
        let mut checks = assertions::decode(&mut spec, &looks_at, &mut ids, diagnostics);
        checks.extend(grading::sections(&mut spec, &looks_at, &mut ids, diagnostics));
        let criteria = grading::criteria(&mut spec, &looks_at, &mut ids, diagnostics);
        let thresholds = grading::thresholds(&mut spec, diagnostics);
        let variance = grading::variance(&mut spec, diagnostics);
        let graded = !criteria.is_empty();
        checks.extend(criteria);
        let queries = trigger_tests(&mut spec, diagnostics);
        let (run, judge) = policies(&mut spec, variance.map(|variance| variance.runs), diagnostics);
        let mut meta = BTreeMap::new();
        for entry in spec.rest() {
            meta.insert(entry.key.clone(), entry.value.to_value());
            let help = closest(&entry.key, &KEYS)
                .map(|known| format!(" (did you mean \"{known}\"?)"))
                .unwrap_or_default();
            let message = format!("a spec has no key \"{}\"{help}; it is kept and means nothing", entry.key);
            diagnostics.notice("unknown-key", entry.key_span, message);
        }
        let mut cases = Vec::new();
        if !checks.is_empty() || queries.is_empty() {
            let pass_when = if graded {
                PassRule::Graded { pass_rate: thresholds.pass_rate, mean_score: thresholds.mean_score }
            } else {
                PassRule::EveryRequiredCheck
            };
            cases.push(case(name.clone(), Stimulus::SkillCommand { args }, inputs, checks, pass_when));
        }
        cases.extend(trigger_cases(&queries, &name));
        let skill = find_skill(source, place, &name);
        if skill.is_none() {
            let beside = source.folder().display();
            diagnostics.warning(
                "skill-not-found",
                None,
                format!("no skill {name} beside {beside} nor in the project"),
            );
        }
        Some(Suite {
            description,
            skills: vec![SkillRef { name: name.clone(), path: skill, plugin: None }],
            cases,
            run,
            defaults: RunPolicy {
                timeout: Some(TIMEOUT),
                repeat: Some(1),
                detect_questions: Some(true),
                ..RunPolicy::default()
            },
            judge,
            gates: gates(graded, &thresholds, variance),
            meta,
            ..blank_suite(self.name(), source, name)
        })
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn raise(&self, suite: &Suite, folder: &Path) -> Raised {
        raise::raise(suite, folder)
    }
}

/// Ids of assertions, fields and criteria are one set.
#[derive(Default)]
pub struct EntryIds(HashSet<String>);

impl EntryIds {
    /// The entry's id if it is there, text, not empty and new.
    fn take<'n>(
        &mut self,
        entry: &mut Object<'n>,
        what: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<&'n str> {
        let Some(node) = entry.get("id") else {
            entry.missing("id", diagnostics);
            return None;
        };
        match node.as_text() {
            Some(id) if !id.is_empty() => {
                if !self.0.insert(id.to_owned()) {
                    diagnostics.error(
                        "duplicate-id",
                        node.span,
                        format!("another entry is already called \"{id}\""),
                    );
                }
                Some(id)
            }
            _ => {
                diagnostics.error(
                    "wrong-type",
                    node.span,
                    format!("the \"id\" of {what} must be text that is not empty"),
                );
                None
            }
        }
    }
}

/// Text, or nothing where null stands.
pub fn nullable_text<'n>(
    spec: &mut Object<'n>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    spec.text(key, diagnostics)
}

/// Text that must say something where it is given.
fn filled_text<'n>(
    spec: &mut Object<'n>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let node = spec.given(key)?;
    let text = text_of(node, key, diagnostics)?;
    if text.trim().is_empty() {
        diagnostics.error("empty-text", node.span, format!("\"{key}\" must not be blank"));
        return None;
    }
    Some(text)
}

/// A word out of a few. Null is an error here: leaving the key out is how to say nothing.
fn word<'n>(
    spec: &mut Object<'n>,
    key: &'static str,
    words: &[&str],
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let node = spec.get(key)?;
    let text = text_of(node, key, diagnostics)?;
    if words.contains(&text) {
        return Some(text);
    }
    let help = closest(text, words).map_or_else(
        || format!("it may be {}", words.join(", ")),
        |known| format!("did you mean \"{known}\"?"),
    );
    diagnostics.error_help("unknown-value", node.span, format!("\"{key}\" cannot be \"{text}\""), help);
    None
}

/// True or false, not null.
fn flag(spec: &mut Object<'_>, key: &'static str, diagnostics: &mut Diagnostics) -> Option<bool> {
    let node = spec.get(key)?;
    match node.data {
        Data::Bool(value) => Some(value),
        _ => {
            crate::tree::wrong_type(node, key, "true or false", diagnostics);
            None
        }
    }
}

/// `my-skill.eval.json` is about `my-skill`; a file that is named after no skill lies in its folder.
fn default_name(path: &Path) -> String {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name = match stem.strip_suffix(".eval") {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => stem,
    };
    let folder = || path.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
    if name == "SKILL" || name == "eval" { folder().unwrap_or(name) } else { name }
}

/// The skill beside its spec: a folder's SKILL.md, a command file, or one of that name in the project.
fn find_skill(source: &Source, place: &Place, name: &str) -> Option<PathBuf> {
    RelPath::new(name)?;
    let folder = source.folder();
    let candidates = [
        folder.join(format!("{name}.md")),
        folder.join("SKILL.md"),
        folder.join(name).join("SKILL.md"),
        folder.parent().map(|above| above.join("SKILL.md")).unwrap_or_default(),
        place.project.join(".claude/skills").join(name).join("SKILL.md"),
        place.project.join(".claude/commands").join(format!("{name}.md")),
        place.project.join("skills").join(name).join("SKILL.md"),
    ];
    candidates.into_iter().find(|path| path.is_file())
}

fn case(
    id: String,
    stimulus: Stimulus,
    files: Vec<Fixture>,
    checks: Vec<Check>,
    pass_when: PassRule,
) -> Case {
    let room = Room { base: Base::Project, files, ..Room::default() };
    Case { stimulus, room, checks, pass_when, ..blank_case(id, String::new()) }
}

fn trigger_tests(spec: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Vec<(String, Expect)> {
    let Some(node) = spec.given("trigger_tests") else { return Vec::new() };
    let Some(mut tests) = Object::new(node, "trigger_tests", diagnostics) else { return Vec::new() };
    let mut queries = Vec::new();
    for (key, expect) in [("should_trigger", Expect::Must), ("should_not_trigger", Expect::MustNot)] {
        for node in tests.list(key, diagnostics).unwrap_or_default() {
            match text_of(node, key, diagnostics) {
                Some(query) if query.trim().is_empty() => {
                    diagnostics.error(
                        "empty-text",
                        node.span,
                        format!("a query in \"{key}\" must not be blank"),
                    );
                }
                Some(query) => queries.push((query.to_owned(), expect)),
                None => {}
            }
        }
    }
    tests.note_rest("trigger_tests", diagnostics);
    queries
}

/// One case a query, run once as the format asks once.
fn trigger_cases(queries: &[(String, Expect)], skill: &str) -> Vec<Case> {
    let mut ids = Ids::default();
    let cases = queries.iter().map(|(query, expect)| {
        let id = ids.derive(&format!("trigger-{}", slug(query, "query")));
        let check = activation(vec![skill.to_owned()], *expect);
        let turns = Stimulus::Turns(vec![query.clone()]);
        let case = case(id, turns, Vec::new(), vec![check], PassRule::EveryRequiredCheck);
        Case { repeat: Some(1), ..case }
    });
    cases.collect()
}

fn policies(
    spec: &mut Object<'_>,
    runs: Option<u32>,
    diagnostics: &mut Diagnostics,
) -> (RunPolicy, JudgePolicy) {
    let harness = word(spec, "harness", &HARNESSES, diagnostics);
    let run = RunPolicy {
        // Saying `auto` is saying nothing.
        agents: harness.filter(|name| *name != "auto").map(agent_name).into_iter().collect(),
        repeat: runs,
        timeout: timeout(spec, diagnostics),
        sync_tasks: flag(spec, "sync_tasks", diagnostics),
        detect_questions: flag(spec, "allow_hang_heuristic", diagnostics),
        system_prompt: filled_text(spec, "system_prompt", diagnostics).map(str::to_owned),
        ..RunPolicy::default()
    };
    let provider = match spec.given("grading_provider") {
        Some(_) => word(spec, "grading_provider", &Provider::NAMES, diagnostics).and_then(Provider::parse),
        None => None,
    };
    let judge = JudgePolicy {
        model: filled_text(spec, "grading_model", diagnostics).map(str::to_owned),
        provider: provider.filter(|provider| *provider != Provider::Auto),
        transport: word(spec, "transport", &Transport::NAMES, diagnostics)
            .and_then(Transport::parse)
            .filter(|transport| *transport != Transport::Auto),
        votes: None,
        user_prompt: filled_text(spec, "user_prompt", diagnostics).map(str::to_owned),
    };
    (run, judge)
}

fn agent_name(harness: &str) -> String {
    if harness == "claude-code" { "claude".to_owned() } else { harness.to_owned() }
}

fn timeout(spec: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let node = spec.given("timeout")?;
    let Data::Int(seconds) = node.data else {
        crate::tree::wrong_type(node, "timeout", "a whole number of seconds", diagnostics);
        return None;
    };
    let parsed = parse_duration(&seconds.to_string());
    if parsed.is_none() {
        diagnostics.error(
            "out-of-range",
            node.span,
            "\"timeout\" must be more than 0 seconds and at most a week",
        );
    }
    parsed
}

fn gates(graded: bool, thresholds: &grading::Thresholds, variance: Option<grading::Variance>) -> Vec<Gate> {
    let runs = match variance {
        Some(variance) => Gate { name: GateName::Stability, threshold: variance.stability },
        None => Gate { name: GateName::AllCasesPass, threshold: grading::whole() },
    };
    let mut gates = vec![runs];
    if graded {
        gates.push(Gate { name: GateName::CriteriaPassRate, threshold: thresholds.pass_rate });
        gates.push(Gate { name: GateName::MeanScore, threshold: thresholds.mean_score });
    }
    gates
}

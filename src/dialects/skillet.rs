//! Skillet: one YAML file an eval, a folder of them a suite.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Dialect, Fit, Place, Raised};
use crate::model::{
    Base, Case, Check, CheckKind, Diagnostics, Gate, GateName, JudgePolicy, Judged, LooksAt, Need, Origin,
    PassRule, Ratio, Room, Rule, RunPolicy, Scale, SkillName, Stimulus, Suite,
};
use crate::score::{Contains, Needle, NotContains, Pattern, RegexRule};
use crate::tree::{Data, Node, Object, Source, closest, text_of};

mod raise;

pub struct Skillet;

/// How often an eval runs when nobody says.
const SAMPLES: u32 = 3;

impl Dialect for Skillet {
    fn name(&self) -> &'static str {
        "skillet"
    }

    fn recognise(&self, source: &Source) -> Fit {
        let root = &source.root;
        let yaml = source.path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        match (root.has("prompt") && root.has("expected"), yaml) {
            (true, true) => Fit::Sure,
            (true, false) => Fit::Possible,
            (false, _) => Fit::No,
        }
    }

    fn folder_is_suite(&self) -> bool {
        true
    }

    fn raise(&self, suite: &Suite, _folder: &Path) -> Raised {
        raise::raise(suite)
    }

    fn lower(&self, source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Option<Suite> {
        let mut file = Object::new(&source.root, "an eval", diagnostics)?;
        check_version(&mut file, diagnostics);
        check_timestamp(&mut file, diagnostics);
        let group = file.required_text("name", diagnostics);
        let stimulus = prompts(&mut file, diagnostics);
        let expected = file.required_text("expected", diagnostics);
        let setup = file.text("setup", diagnostics).map(str::to_owned);
        let teardown = file.text("teardown", diagnostics).map(str::to_owned);
        let assertions = file.list("assertions", diagnostics);
        let checks = match assertions {
            Some(assertions) => assertion_checks(assertions, diagnostics),
            None => vec![judged(expected?)],
        };
        // Both are kept for the author and used by nothing.
        let mut meta = BTreeMap::new();
        for key in ["timestamp", "actual"] {
            if let Some(node) = file.given(key) {
                meta.insert(key.to_owned(), node.to_value());
            }
        }
        for entry in file.rest() {
            meta.insert(entry.key.clone(), entry.value.to_value());
        }
        file.note_rest("this eval", diagnostics);
        let case = Case {
            id: case_id(source, place),
            group: group.map(str::to_owned),
            note: None,
            stimulus: stimulus?,
            room: Room {
                base: Base::Empty,
                overlays: Vec::new(),
                skill: SkillName::Own,
                files: Vec::new(),
                setup,
                teardown,
            },
            context: assertions.and(expected).map(str::to_owned),
            checks,
            timeout: None,
            repeat: None,
            pass_when: PassRule::EveryRequiredCheck,
            oracle: None,
            meta,
        };
        Some(Suite {
            name: folder_name(place),
            origin: Origin {
                dialect: self.name().to_owned(),
                path: source.path.clone(),
                digest: source.digest(),
            },
            description: None,
            skills: Vec::new(),
            rivals: Vec::new(),
            cases: vec![case],
            run: RunPolicy::default(),
            defaults: RunPolicy { repeat: Some(SAMPLES), ..RunPolicy::default() },
            judge: JudgePolicy::default(),
            gates: Ratio::new(1.0)
                .map(|threshold| Gate { name: GateName::AllCasesPass, threshold })
                .into_iter()
                .collect(),
            meta: BTreeMap::new(),
        })
    }
}

fn folder_name(place: &Place) -> String {
    place.root.file_name().map_or_else(|| "skillet".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The path below the suite's folder, without the ending.
fn case_id(source: &Source, place: &Place) -> String {
    let below = source.path.strip_prefix(&place.root).unwrap_or(&source.path);
    below.with_extension("").to_string_lossy().into_owned()
}

fn check_version(file: &mut Object<'_>, diagnostics: &mut Diagnostics) {
    let Some(node) = file.given("schema_version") else { return };
    match node.data {
        Data::Int(1) => {}
        Data::Int(version) => diagnostics.error(
            "unknown-version",
            node.span,
            format!("schema_version {version} is not known; version 1 is"),
        ),
        _ => crate::tree::wrong_type(node, "schema_version", "a whole number", diagnostics),
    }
}

fn check_timestamp(file: &mut Object<'_>, diagnostics: &mut Diagnostics) {
    let span = file.given("timestamp").map(|node| node.span);
    let Some(text) = file.required_text("timestamp", diagnostics) else { return };
    // Offsets may be written with or without a colon, and with a space before the time.
    let known = text.parse::<jiff::Timestamp>().is_ok()
        || text.parse::<jiff::civil::DateTime>().is_ok()
        || text.parse::<jiff::civil::Date>().is_ok();
    if !known {
        diagnostics.error_help(
            "invalid-timestamp",
            span,
            format!("{text:?} is not an ISO 8601 timestamp"),
            "write it like 2025-01-15T10:30:00Z",
        );
    }
}

fn prompts(file: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<Stimulus> {
    let Some(node) = file.given("prompt") else {
        file.missing("prompt", diagnostics);
        return None;
    };
    let turns: Vec<String> = match &node.data {
        Data::Text(text) => vec![text.clone()],
        Data::List(items) => {
            items.iter().filter_map(|item| text_of(item, "prompt", diagnostics).map(str::to_owned)).collect()
        }
        Data::Null | Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::Map(_) => {
            crate::tree::wrong_type(node, "prompt", "text or a list of texts", diagnostics);
            return None;
        }
    };
    if turns.is_empty() || turns.iter().any(|turn| turn.trim().is_empty()) {
        diagnostics.error("empty-text", node.span, "\"prompt\" must not be blank");
        return None;
    }
    Some(Stimulus::Turns(turns))
}

/// What was expected, for the judge to decide over everything the agent said and did.
fn judged(expected: &str) -> Check {
    Check {
        id: "expected".to_owned(),
        name: None,
        need: Need::Required,
        looks_at: LooksAt::WholeRun,
        kind: CheckKind::Judged(Judged {
            statement: expected.trim_end().to_owned(),
            context: None,
            scale: Scale::PassFail,
        }),
    }
}

const ASSERTION_TYPES: [&str; 3] = ["contains", "not_contains", "regex"];

fn assertion_checks(assertions: &[Node], diagnostics: &mut Diagnostics) -> Vec<Check> {
    let mut checks = Vec::new();
    for (index, node) in assertions.iter().enumerate() {
        let Some(mut assertion) = Object::new(node, "an assertion", diagnostics) else { continue };
        let kind_span = assertion.given("type").map(|node| node.span);
        let kind = assertion.required_text("type", diagnostics);
        let value_span = assertion.given("value").map(|node| node.span);
        let value = match assertion.get("value") {
            Some(node) => text_of(node, "value", diagnostics),
            None => {
                assertion.missing("value", diagnostics);
                None
            }
        };
        assertion.refuse_rest("an assertion", diagnostics);
        let (Some(kind), Some(value)) = (kind, value) else { continue };
        let rule: Arc<dyn Rule> = match kind {
            "contains" => Arc::new(Contains(Needle::ignoring_case(value))),
            "not_contains" => Arc::new(NotContains(Needle::ignoring_case(value))),
            "regex" => match Pattern::new(value) {
                Ok(pattern) => Arc::new(RegexRule { pattern }),
                Err(problem) => {
                    diagnostics.error(
                        "invalid-pattern",
                        value_span,
                        format!("the pattern does not compile: {problem}"),
                    );
                    continue;
                }
            },
            unknown => {
                let message = format!("unknown assertion type \"{unknown}\"");
                let help = closest(unknown, &ASSERTION_TYPES).map_or_else(
                    || format!("the types are {}", ASSERTION_TYPES.join(", ")),
                    |known| format!("did you mean \"{known}\"?"),
                );
                diagnostics.error_help("unknown-assertion", kind_span, message, help);
                continue;
            }
        };
        checks.push(Check {
            id: format!("{kind}-{}", index + 1),
            name: None,
            need: Need::Required,
            looks_at: LooksAt::Output,
            kind: CheckKind::Exact(rule),
        });
    }
    if checks.is_empty() && !diagnostics.has_errors() {
        diagnostics.error(
            "no-assertions",
            None,
            "\"assertions\" replaces the judge, so it must not be empty",
        );
    }
    checks
}

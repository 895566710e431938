//! What several formats write alike: the sentences a judge can read, and the list of what was lost.

mod check_sentences;
mod losses;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

pub use check_sentences::describe_check;
pub use losses::{ABOUT_SKILL_LOSS, FormatCapabilities, FormatFeature, Losses};

use super::native::relative_path;
use super::reading::{self, slug};
use practicum_core::model::{
    ActivationExpectation, ActivationSource, Case, CasePrompt, Check, CheckKind, Fixture, JudgedStatement,
    PassRule, RelPath, ScoreScale, SkillRef, Suite,
};

/// The messages of a case as one text, for formats that know no conversation and no command.
pub fn join_prompts(case: &Case, suite: &Suite) -> String {
    match &case.prompt {
        CasePrompt::Turns(turns) => turns.join("\n\n"),
        CasePrompt::SkillCommand { args } => {
            let skill = suite.skills.first().map_or("", |skill| skill.name.as_str());
            format!("/{skill} {args}").trim_end().to_owned()
        }
    }
}

/// An id as people write it in this kind of file: a whole number stays one.
pub fn id_value(id: &str) -> Value {
    match id.parse::<i64>() {
        Ok(number) if number.to_string() == id => json!(number),
        Ok(_) | Err(_) => json!(id),
    }
}

/// What a check says to a judge: its statement, or its rule in words. `None` if no words would do.
pub fn judge_statement(check: &Check, losses: &mut Losses, case: &str, scale: ScoreScale) -> Option<String> {
    match &check.kind {
        CheckKind::Judged(JudgedStatement { statement, context, scale: own }) => {
            if context.is_some() {
                losses.add_for_case(case, "what the judge should know for single checks");
            }
            if *own != scale {
                losses.add_for_case(case, format!("the scale {} of its checks", own.name()));
            }
            Some(statement.clone())
        }
        CheckKind::Rule(rule) => {
            let key = rule.key();
            losses
                .add_for_case(case, format!("that \"{key}\" is decided by code; the judge gets it in words"));
            Some(describe_check(key, &rule.value(), &check.target))
        }
        CheckKind::Sections(_) => {
            losses.add_for_case(case, "its sections");
            None
        }
        CheckKind::Activation(_) => {
            losses.add_for_case(case, "its activation");
            None
        }
    }
}

/// The checks of a case that a format with `should_trigger` says there, and the others. Only what reads back
/// as the same check is said so: the first check, about the one skill under test.
pub fn split_activation<'c>(case: &'c Case, suite: &Suite) -> (Option<bool>, &'c [Check]) {
    let ([skill], Some((first, others))) = (suite.skills.as_slice(), case.checks.split_first()) else {
        return (None, &case.checks);
    };
    let CheckKind::Activation(activation) = &first.kind else { return (None, &case.checks) };
    let must = match activation.expect {
        ActivationExpectation::Must => true,
        ActivationExpectation::MustNot => false,
        ActivationExpectation::Either => return (None, &case.checks),
    };
    let plain = *first == reading::activation_check(vec![skill.name.clone()], activation.expect);
    if plain { (Some(must), others) } else { (None, &case.checks) }
}

/// Whether a case is one line of a trigger set: a message, and whether the one skill should fire.
pub fn trigger_query(case: &Case, suite: &Suite) -> Option<Map<String, Value>> {
    let ([check], [skill], CasePrompt::Turns(turns)) =
        (case.checks.as_slice(), suite.skills.as_slice(), &case.prompt)
    else {
        return None;
    };
    let (CheckKind::Activation(activation), [query]) = (&check.kind, turns.as_slice()) else { return None };
    let should = match activation.expect {
        ActivationExpectation::Must => true,
        ActivationExpectation::MustNot => false,
        ActivationExpectation::Either => return None,
    };
    let fits = activation.source == ActivationSource::Observed
        && activation.skills == [skill.name.clone()]
        && matches!(case.pass_rule, PassRule::ActivationRate(_) | PassRule::EveryRequiredCheck);
    fits.then(|| {
        let mut map = Map::new();
        // An id that the query itself would give need not be written.
        if case.id != slug(query, "query") {
            map.insert("id".to_owned(), json!(case.id));
        }
        map.insert("query".to_owned(), json!(query));
        map.insert("should_trigger".to_owned(), json!(should));
        map
    })
}

/// The declared paths of a case's files. One that does not lie where the format will look for it
/// has to be put there by hand, which is told.
pub fn declared_files(case: &Case, folder: &Path, losses: &mut Losses) -> Vec<Value> {
    case.workspace
        .files
        .iter()
        .map(|Fixture { source: from, destination: to, access: _ }| {
            if !from.ends_with(to.as_str()) && !is_found_below(to, from, folder) {
                let from = relative_path(from, folder);
                losses.add_for_case(&case.id, format!("where {to} lies (copy it there from {from})"));
            }
            json!(to.as_str())
        })
        .collect()
}

/// Whether a path that begins with the way to its evals folder leads to a file in that folder.
fn is_found_below(to: &RelPath, from: &Path, folder: &Path) -> bool {
    let inside = from.strip_prefix(folder).is_ok_and(|inside| Path::new(to.as_str()).ends_with(inside));
    inside && to.as_str().starts_with("evals/")
}

/// Keys that some format gives a meaning. Under one of these a kept value would be read as
/// something it is not, or make the file another format's.
const MEANINGFUL_KEYS: [&str; 49] = [
    "actual",
    "assertions",
    "cases",
    "criterion",
    "description",
    "evals",
    "expect_activation",
    "expect_skill",
    "expect_trigger",
    "expectation",
    "expectations",
    "expected",
    "expected_activation",
    "expected_behavior",
    "expected_output",
    "expected_skill",
    "expected_trigger",
    "files",
    "grading_criteria",
    "ground_truth",
    "id",
    "input",
    "must_not_activate",
    "name",
    "negative_cases",
    "practicum",
    "prompt",
    "query",
    "question",
    "rationale",
    "rubric",
    "runs_per_case",
    "schema_version",
    "setup",
    "should_activate",
    "should_trigger",
    "skill",
    "skill_name",
    "skill_should_trigger",
    "skills",
    "state_prefix",
    "target_skill",
    "teardown",
    "test_args",
    "test_cases",
    "timeout",
    "timestamp",
    "trigger_evals",
    "trigger_tests",
];

/// Adds what was kept from another file, and gives back the keys under which it cannot stand.
pub fn add_meta(map: &mut Map<String, Value>, meta: &BTreeMap<String, Value>) -> Vec<String> {
    let mut refused = Vec::new();
    for (key, value) in meta {
        if map.contains_key(key) || MEANINGFUL_KEYS.contains(&key.as_str()) {
            refused.push(key.clone());
        } else {
            map.insert(key.clone(), value.clone());
        }
    }
    refused
}

/// A file's name without its ending, made from a name that may be anything.
pub fn file_stem(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let stem: String = name.chars().map(plain).collect();
    match stem.trim_matches(['.', '-']) {
        "" => "suite".to_owned(),
        stem => stem.to_owned(),
    }
}

/// The skill's place as seen from `folder`, else its name.
pub fn skill_path(skill: &SkillRef, folder: &Path) -> String {
    skill.path.as_deref().map_or_else(|| skill.name.clone(), |path| relative_path(path, folder))
}

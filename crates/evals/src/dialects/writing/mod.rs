//! Code that several formats share for writing: statements for a judge, and the list of losses.

mod check_sentences;
mod losses;
mod same_checks;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

pub use check_sentences::describe_check;
pub use losses::{ABOUT_SKILL_LOSS, FormatCapabilities, FormatFeature, Losses};
pub use same_checks::{PatternLanguage, PlainRule, asks_the_same, first_same, foreign_pattern, literal_text};

use super::ExportedSuite;
use super::native::relative_path;
use super::reading::graders::rubric_text;
use super::reading::{self, slug};
use practicum_core::model::{
    ActivationExpectation, ActivationSource, Arm, Case, CasePrompt, Check, CheckKind, CheckNeed, CheckTarget,
    CheckWeight, Fixture, JudgedStatement, PassRule, Ratio, RelPath, ScoreScale, SkillRef, Suite,
};

/// Joins the messages of a case to one text, for formats without conversations and commands.
pub fn join_prompts(case: &Case, suite: &Suite) -> String {
    match &case.prompt {
        CasePrompt::Turns(turns) => turns.join("\n\n"),
        CasePrompt::SkillCommand { args } => {
            let skill = suite.skills.first().map_or("", |skill| skill.name.as_str());
            format!("/{skill} {args}").trim_end().to_owned()
        }
    }
}

/// Writes an id as people do in such files: a whole number stays a number.
pub fn id_value(id: &str) -> Value {
    match id.parse::<i64>() {
        Ok(number) if number.to_string() == id => json!(number),
        Ok(_) | Err(_) => json!(id),
    }
}

/// Gives a check as a statement for a judge: its own statement, or a description of its rule. Gives `None` if no
/// statement can express it.
pub fn judge_statement(check: &Check, losses: &mut Losses, case: &str, scale: ScoreScale) -> Option<String> {
    match &check.kind {
        CheckKind::Judged(JudgedStatement { statement, context, scale: own }) => {
            if context.is_some() {
                losses.add_for_case(case, "what the judge should know for single checks");
            }
            if *own != scale {
                losses.add_for_case(case, format!("the scale {} of its checks", own.name()));
            }
            if check.needs_pictures() {
                losses.add_for_case(case, "that the judge is shown pictures");
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

/// Gives a check as the rubric of a judge that looks at `target`: its own statement, or a description of its rule. Gives
/// `None` if no rubric can express it.
pub fn rubric_for(
    check: &Check,
    losses: &mut Losses,
    case: &str,
    scale: ScoreScale,
    target: &CheckTarget,
) -> Option<String> {
    let statement = judge_statement(check, losses, case, scale)?;
    if matches!(check.kind, CheckKind::Judged(_)) && check.target != *target {
        losses.add_for_case(case, format!("that a judge looks only at {}", check.target.describe()));
    }
    Some(rubric_text(&statement).to_owned())
}

/// Leaves out the cases that cannot run here. In a format that cannot say so they would be other cases: one that lost a
/// check could pass.
pub fn cases_that_run(suite: &Suite, losses: &mut Losses) -> Suite {
    let mut kept = suite.clone();
    kept.cases.retain(|case| match &case.unsupported {
        Some(why) => {
            losses.add_whole_case(&case.id, &format!("it cannot run: {why}"));
            false
        }
        None => true,
    });
    kept
}

/// Writes cases that pass by their score for a format without scores: each check that counts must pass. Where the score
/// asks for less, the rule of the case stays, so that it is listed as a loss.
pub fn require_counted_checks(suite: &Suite) -> Suite {
    let mut suite = suite.clone();
    for case in &mut suite.cases {
        let PassRule::Score(rule) = case.pass_rule else { continue };
        if rule.at_least == Ratio::ONE && !case.checks.iter().any(has_partial_score) {
            case.pass_rule = PassRule::EveryRequiredCheck;
        }
        for check in &mut case.checks {
            if check.need == CheckNeed::Advisory && check.weight != CheckWeight::ZERO {
                check.need = CheckNeed::Required;
            }
            check.weight = CheckWeight::ONE;
        }
    }
    suite
}

/// Says whether a check can pass with less than the whole score.
fn has_partial_score(check: &Check) -> bool {
    match &check.kind {
        CheckKind::Judged(judged) => judged.scale != ScoreScale::PassFail,
        CheckKind::Rule(rule) => rule.value().to_string().contains("\"score\""),
        CheckKind::Sections(_) | CheckKind::Activation(_) => false,
    }
}

/// Says whether a folder lies in the folder of the only skill, at most so many levels below it.
pub fn is_in_skill(suite: &Suite, folder: &Path, levels: usize) -> bool {
    let [SkillRef { path: Some(path), .. }] = suite.skills.as_slice() else { return false };
    folder.ancestors().take(levels).any(|above| above == path)
}

/// Writes a number; a whole one without a fraction.
pub fn number_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

/// Gives the number of trials of every case: from the file, or from the format it was read from.
pub fn shared_repeat(suite: &Suite) -> Option<u32> {
    suite.run_policy.repeat.or(suite.format_defaults.repeat)
}

/// Gives the time limit of every case in whole seconds: from the file, or from the format it was read from.
pub fn shared_timeout(suite: &Suite) -> Option<u64> {
    let timeout = suite.run_policy.timeout.or(suite.format_defaults.timeout)?;
    Some(whole_seconds(timeout))
}

/// Gives a time limit in whole seconds, at least one.
pub fn whole_seconds(limit: std::time::Duration) -> u64 {
    (limit.as_secs() + u64::from(limit.subsec_nanos() > 0)).max(1)
}

/// Gives the arms in which the cases run: from the file, or from the format it was read from.
pub fn chosen_arms(suite: &Suite) -> Vec<Arm> {
    let own = &suite.run_policy.arms;
    if own.is_empty() { suite.format_defaults.arms.clone() } else { own.clone() }
}

/// Splits the checks of a case into the value of `should_trigger` and the other checks. Only a check that would
/// read back as the same check becomes `should_trigger`: the first one, about the only skill under test.
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

/// Gives a case as an item of a trigger set, if it is just a message and whether the one skill should be
/// activated.
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

/// Gives the declared paths of a case's files. A file in a folder where the format will not look for it must be
/// moved by hand; this is reported.
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

/// Says whether a path that begins with the path of its evals folder leads to a file in that folder.
fn is_found_below(to: &RelPath, from: &Path, folder: &Path) -> bool {
    let inside = from.strip_prefix(folder).is_ok_and(|inside| Path::new(to.as_str()).ends_with(inside));
    inside && to.as_str().starts_with("evals/")
}

/// Keys that have a meaning in some format. A kept value under one of them would be misread, or the file would be
/// recognised as another format.
pub const MEANINGFUL_KEYS: [&str; 49] = [
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

/// Adds the keys that were kept from another file. Gives the keys that cannot be used here.
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

/// Makes a file name without extension from any name.
pub fn file_stem(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let stem: String = name.chars().map(plain).collect();
    match stem.trim_matches(['.', '-']) {
        "" => "suite".to_owned(),
        stem => stem.to_owned(),
    }
}

/// Gives the path of a skill relative to `folder`, otherwise its name.
pub fn skill_path(skill: &SkillRef, folder: &Path) -> String {
    skill.path.as_deref().map_or_else(|| skill.name.clone(), |path| relative_path(path, folder))
}

/// Gives the result of exporting a suite to a format that is only read here: every case is lost, and that is said.
pub fn only_read(suite: &Suite, format: &str) -> ExportedSuite {
    let cases: Vec<String> = suite.cases.iter().map(|case| case.id.clone()).collect();
    let losses = match cases.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "all {} cases: {format} is only read here, not written; the native format expresses all of them",
            cases.len()
        )],
    };
    ExportedSuite { files: Vec::new(), losses, lost_cases: cases }
}

//! Warns about weak spots of a suite before it is run.
//!
//! In: a suite and the text it was read from. Out: warnings. Never: runs anything.

mod positions;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use positions::SuitePositions;

use practicum_agents::agents::{is_tool_name, tool_names};
use practicum_core::model::{
    ActivationExpectation, Case, CasePrompt, CheckKind, CheckNeed, Diagnostics, PassRule, Provider, Span,
    Suite, count_with_noun,
};
use practicum_core::tree::closest_word;
use practicum_evals::dialects::missing_checks_help;
use practicum_skills::skill::{Skill, SkillCache};

/// Adds warnings about a suite that is well formed but proves little. `cache` has the skills that were already read.
pub fn review_suite(suite: &Suite, text: &str, cache: &SkillCache, diagnostics: &mut Diagnostics) {
    let places = SuitePositions::new(text);
    warn_cannot_fail(suite, &places, diagnostics);
    warn_checks_without_effect(suite, &places, diagnostics);
    warn_no_entry_required(suite, &places, diagnostics);
    warn_duplicate_prompts(suite, &places, diagnostics);
    warn_vague_criteria(suite, &places, diagnostics);
    warn_answer_leaks(suite, &places, cache, diagnostics);
    warn_too_few_negatives(suite, diagnostics);
    warn_too_few_repeats(suite, diagnostics);
    warn_unknown_provider(suite, &places, diagnostics);
}

/// Warns about a judge model whose provider is unknown.
fn warn_unknown_provider(suite: &Suite, places: &SuitePositions<'_>, diagnostics: &mut Diagnostics) {
    let Some(model) = &suite.judge_policy.model else { return };
    let said = suite.judge_policy.provider.is_some_and(|provider| provider != Provider::Auto);
    if !said && Provider::of_model(model).is_none() {
        diagnostics.warning_with_help(
            "unknown-provider",
            places.find_text(model),
            format!("unknown provider for model \"{model}\""),
            "name the provider in the file, or run with --grading-provider",
        );
    }
}

fn warn_cannot_fail(suite: &Suite, places: &SuitePositions<'_>, diagnostics: &mut Diagnostics) {
    for case in &suite.cases {
        let can_fail = case.checks.iter().any(|check| {
            let either = matches!(&check.kind, CheckKind::Activation(activation) if activation.expect == ActivationExpectation::Either);
            check.need == CheckNeed::Required && !either
        });
        // The judged criteria decide together, so none of them is required alone.
        let judged = || case.checks.iter().any(|check| matches!(check.kind, CheckKind::Judged(_)));
        let graded = matches!(case.pass_rule, PassRule::JudgedThresholds { pass_rate, mean_score }
            if pass_rate.get() > 0.0 || mean_score.get() > 0.0)
            && judged();
        let tallied = case.checks.iter().any(|check| matches!(check.kind, CheckKind::Activation(_)));
        // In a case that passes by its score, checks decide by their weights.
        let scored = matches!(case.pass_rule, PassRule::Score(rule) if rule.at_least.get() > 0.0)
            && case.checks.iter().any(|check| check.weight.get() > 0.0);
        if !can_fail && !graded && !scored && !tallied {
            let (message, help) = match case.checks.is_empty() {
                true => (
                    format!("case {} has no check, so it cannot be scored and is not run", case.id),
                    missing_checks_help(&suite.origin.dialect),
                ),
                false => (
                    format!("case {} has no required check, so it can never fail", case.id),
                    "make at least one of its checks required",
                ),
            };
            diagnostics.warning_with_help("cannot-fail", places.case_span(case), message, help);
        }
    }
}

/// Patterns that match every text.
const MATCH_ALL_PATTERNS: [&str; 8] = ["", "^", "$", "^$|.*", ".*", "^.*", ".*$", "^.*$"];

/// Warns about checks with the same result for every run.
fn warn_checks_without_effect(suite: &Suite, places: &SuitePositions<'_>, diagnostics: &mut Diagnostics) {
    for case in &suite.cases {
        for check in &case.checks {
            let CheckKind::Rule(rule) = &check.kind else { continue };
            let value = rule.value();
            let named = |key: &str| value.as_str().or_else(|| value[key].as_str());
            let weakness = match rule.key() {
                "contains" | "starts_with" | "ends_with" if named("text") == Some("") => Some((
                    "every text has an empty text in it, so this check can never fail".to_owned(),
                    None,
                )),
                "not_contains" if named("text") == Some("") => {
                    Some(("every text has an empty text in it, so this check always fails".to_owned(), None))
                }
                "regex" if named("pattern").is_some_and(|pattern| MATCH_ALL_PATTERNS.contains(&pattern)) => {
                    Some(("every text matches this pattern, so this check can never fail".to_owned(), None))
                }
                "tool_not_used" => named("name").filter(|tool| !is_tool_name(tool)).map(|tool| {
                    let message =
                        format!("no known agent has a tool \"{tool}\", so this check can never fail");
                    (message, Some(tool.to_owned()))
                }),
                _ => None,
            };
            let Some((message, tool)) = weakness else { continue };
            let help = match &tool {
                None => "say what the text must have".to_owned(),
                Some(tool) => match closest_word(tool, tool_names()) {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => "write the tool's name as the agent calls it".to_owned(),
                },
            };
            let at =
                tool.as_deref().and_then(|tool| places.find_text(tool)).or_else(|| places.case_span(case));
            let message = format!("check {} of {}: {message}", check.id, case.id);
            diagnostics.warning_with_help("cannot-fail", at, message, help);
        }
    }
}

/// Warns about sections that a text without any entry satisfies.
fn warn_no_entry_required(suite: &Suite, places: &SuitePositions<'_>, diagnostics: &mut Diagnostics) {
    for case in &suite.cases {
        let lenient = case.checks.iter().any(|check| match &check.kind {
            CheckKind::Sections(sections) => {
                sections.iter().flat_map(|section| &section.tiers).all(|tier| tier.min_entries == 0)
            }
            CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Activation(_) => false,
        });
        if lenient {
            diagnostics.warning_with_help(
                "no-entry-required",
                places.case_span(case).or_else(|| places.find_text("sections")),
                format!("no section of case {} requires an entry, so a text without any passes", case.id),
                "give a tier \"min_entries\"",
            );
        }
    }
}

const MOST_COMPARED_CASES: usize = 100;

/// Warns about cases with the same prompt. Cases that also have the same checks are stored once, so that many
/// copies are not compared with each other.
fn warn_duplicate_prompts(suite: &Suite, places: &SuitePositions<'_>, diagnostics: &mut Diagnostics) {
    let mut seen: HashMap<&[String], Vec<(&Case, SkillExpectations<'_>)>> = HashMap::new();
    for case in &suite.cases {
        let CasePrompt::Turns(turns) = &case.prompt else { continue };
        // The same words with other files or scripts are another task.
        if !case.workspace.files.is_empty() || case.workspace.setup.is_some() {
            continue;
        }
        let (earlier, wishes) = (seen.entry(turns).or_default(), SkillExpectations::from_case(case));
        if let Some((first, _)) = earlier.iter().find(|(_, known)| known.contradict(&wishes)) {
            diagnostics.warning_with_help(
                "contradiction",
                places.case_span(case),
                format!(
                    "cases {} and {} have the same prompt, and a skill must be activated in one and not in the other",
                    first.id, case.id
                ),
                "no skill can pass both",
            );
        }
        match earlier.iter().find(|(first, _)| have_same_checks(first, case)) {
            Some((first, _)) => diagnostics.warning_with_help(
                "duplicate-prompt",
                places.case_span(case),
                format!("cases {} and {} ask and check the same", first.id, case.id),
                "a copied case counts one thing twice; to run it more often, raise the number of runs",
            ),
            // One prompt with so many different checks is intended.
            None if earlier.len() < MOST_COMPARED_CASES => earlier.push((case, wishes)),
            None => {}
        }
    }
}

fn have_same_checks(one: &Case, other: &Case) -> bool {
    let pairs = || one.checks.iter().zip(&other.checks);
    one.checks.len() == other.checks.len()
        && pairs().all(|(one, other)| one.kind == other.kind && one.target == other.target)
}

/// The skills that a case wants to be activated, and those that must not be.
struct SkillExpectations<'c> {
    wanted: HashSet<&'c str>,
    forbidden: HashSet<&'c str>,
}

impl<'c> SkillExpectations<'c> {
    fn from_case(case: &'c Case) -> Self {
        let named = |expect: ActivationExpectation| {
            let activations = case.checks.iter().filter_map(move |check| match &check.kind {
                CheckKind::Activation(activation) if activation.expect == expect => Some(&activation.skills),
                CheckKind::Activation(_)
                | CheckKind::Rule(_)
                | CheckKind::Judged(_)
                | CheckKind::Sections(_) => None,
            });
            activations.flatten().map(String::as_str).collect()
        };
        Self { wanted: named(ActivationExpectation::Must), forbidden: named(ActivationExpectation::MustNot) }
    }

    /// Says whether one case forbids all skills that the other wants.
    fn contradict(&self, other: &Self) -> bool {
        let clash = |wants: &Self, forbids: &Self| {
            !wants.wanted.is_empty() && wants.wanted.is_subset(&forbids.forbidden)
        };
        clash(self, other) || clash(other, self)
    }
}

/// Words that leave the decision to the judge's taste.
const VAGUE_WORDS: [&str; 7] =
    ["appropriate", "appropriately", "reasonable", "reasonably", "correctly", "properly", "good"];

fn warn_vague_criteria(suite: &Suite, places: &SuitePositions<'_>, diagnostics: &mut Diagnostics) {
    // A format with this rule of its own has already reported it.
    let reported: Vec<Span> = diagnostics
        .iter()
        .filter(|known| known.code == "vague-criterion")
        .filter_map(|known| known.span)
        .collect();
    for (case, check, statement) in statements(suite) {
        let words: Vec<String> = statement
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let vague = VAGUE_WORDS.iter().find(|vague| words.iter().any(|word| word == *vague));
        // A long statement that uses such a word in passing is clear enough.
        let Some(vague) = vague.filter(|_| words.len() <= 12) else { continue };
        let at = places.find_text(statement);
        if !at.is_some_and(|at| {
            reported.iter().any(|reported| (reported.start..reported.end).contains(&at.start))
        }) {
            diagnostics.warning_with_help(
                "vague-criterion",
                at,
                format!("check {check} of {case}: \"{vague}\" can mean anything"),
                "say what would have to be there, so that two readers would agree",
            );
        }
    }
}

fn statements(suite: &Suite) -> impl Iterator<Item = (&str, &str, &str)> {
    suite.cases.iter().flat_map(|case| {
        case.checks.iter().filter_map(|check| match &check.kind {
            CheckKind::Judged(judged) => {
                Some((case.id.as_str(), check.id.as_str(), judged.statement.as_str()))
            }
            CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
        })
    })
}

/// The shortest expected text that is looked for. Shorter texts occur by accident.
const MIN_TELLING_LENGTH: usize = 12;

/// Warns about an expected text that is already in the prompt or the skill: an agent passes by repeating it.
fn warn_answer_leaks(
    suite: &Suite,
    places: &SuitePositions<'_>,
    cache: &SkillCache,
    diagnostics: &mut Diagnostics,
) {
    let skills: Vec<Arc<Skill>> =
        suite.skills.iter().filter_map(|skill| cache.read(skill.path.as_ref()?).ok()).collect();
    for case in &suite.cases {
        let prompt = match &case.prompt {
            CasePrompt::Turns(turns) => turns.join("\n"),
            CasePrompt::SkillCommand { args } => args.clone(),
        };
        for check in &case.checks {
            let expected = match &check.kind {
                CheckKind::Judged(judged) => judged.statement.clone(),
                CheckKind::Rule(rule) if rule.key() == "contains" => match rule.value() {
                    serde_json::Value::String(needle) => needle,
                    value => value["text"].as_str().unwrap_or_default().to_owned(),
                },
                CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => continue,
            };
            if expected.chars().count() < MIN_TELLING_LENGTH {
                continue;
            }
            let leak = if prompt.contains(&expected) {
                Some("its own prompt".to_owned())
            } else {
                let telling = skills.iter().find(|skill| skill.body.contains(&expected));
                telling.map(|skill| format!("the skill {}", skill.name))
            };
            if let Some(place) = leak {
                diagnostics.warning_with_help(
                    "answer-leak",
                    places.find_text(&expected),
                    format!("the text that check {} of {} looks for is in {place}", check.id, case.id),
                    "an agent can pass by repeating it; look for something it has to work out",
                );
            }
        }
    }
}

/// The number of negative cases below which precision is only a guess.
const FEW_NEGATIVES: usize = 2;

fn warn_too_few_negatives(suite: &Suite, diagnostics: &mut Diagnostics) {
    let expectations: Vec<ActivationExpectation> = suite
        .cases
        .iter()
        .flat_map(|case| &case.checks)
        .filter_map(|check| match &check.kind {
            CheckKind::Activation(activation) => Some(activation.expect),
            CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
        })
        .collect();
    let count =
        |wanted: ActivationExpectation| expectations.iter().filter(|expect| **expect == wanted).count();
    let (positives, negatives) = (count(ActivationExpectation::Must), count(ActivationExpectation::MustNot));
    if positives >= 3 && negatives < FEW_NEGATIVES {
        diagnostics.warning_with_help(
            "few-negatives",
            None,
            match negatives {
                0 => "there is no case that must not activate the skill: precision cannot be measured, nor F1 and accuracy"
                    .to_owned(),
                _ => format!(
                    "only {} must not activate the skill: precision says little",
                    count_with_noun(negatives, "case")
                ),
            },
            "add prompts that sound related and are not what the skill is for",
        );
    }
}

/// The number of runs below which an activation rate says almost nothing.
const FEW_REPEATS: u32 = 3;

fn warn_too_few_repeats(suite: &Suite, diagnostics: &mut Diagnostics) {
    let said: HashSet<u32> = suite
        .cases
        .iter()
        .filter(|case| matches!(case.pass_rule, practicum_core::model::PassRule::ActivationRate(_)))
        .filter_map(|case| case.repeat.or(suite.run_policy.repeat))
        .filter(|repeat| *repeat < FEW_REPEATS)
        .collect();
    if let Some(repeat) = said.iter().min() {
        diagnostics.warning_with_help(
            "few-repeats",
            None,
            format!(
                "an activation rate from {} proves nothing: by chance alone it is often 0 or 1",
                count_with_noun(*repeat, "run")
            ),
            format!("run each query at least {FEW_REPEATS} times"),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use practicum_core::tree::{SourceFile, SourceSyntax};
    use practicum_evals::dialects::{EvalFileLocation, find_dialect};

    /// Gives the codes of the warnings about the cases of a native file.
    fn codes(cases: &str) -> Vec<&'static str> {
        codes_of("", cases)
    }

    fn codes_of(head: &str, cases: &str) -> Vec<&'static str> {
        let text = format!("practicum: 1\nskill: {{name: s}}\n{head}cases:\n{cases}");
        let mut diagnostics = Diagnostics::default();
        let source = SourceFile::parse(Path::new("/x.yaml"), text, SourceSyntax::Yaml, &mut diagnostics)
            .expect("YAML");
        let place = EvalFileLocation::new("/", "/");
        let suite =
            find_dialect("native").expect("known").lower(&source, &place, &mut diagnostics).expect("a suite");
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
        let mut found = Diagnostics::default();
        review_suite(&suite, &source.text, &SkillCache::default(), &mut found);
        found.iter().map(|problem| problem.code).collect()
    }

    #[test]
    fn warnings() {
        let many = "  - {id: a, prompt: x, activation: must}\n  - {id: b, prompt: y, activation: must}\n  - {id: c, prompt: z, activation: must}\n";
        for (cases, expected) in [
            ("  - {id: a, prompt: p, checks: [{contains: x}]}", vec![]),
            ("  - {id: a, prompt: p, checks: [{contains: x, required: false}]}", vec!["cannot-fail"]),
            ("  - {id: a, prompt: p, activation: either}", vec![]),
            (
                "  - {id: a, prompt: p, pass_when: {score: 0.5}, checks: [{contains: x, required: false}]}",
                vec![],
            ),
            (
                "  - {id: a, prompt: p, pass_when: {score: 0.5}, checks: [{contains: x, required: false, weight: 0}]}",
                vec!["cannot-fail"],
            ),
            ("  - {id: a, prompt: p, checks: []}", vec!["cannot-fail"]),
            (
                "  - {id: a, prompt: p, pass_when: {pass_rate: 0.7, mean_score: 0.5}, checks: [{judge: It rhymes., required: false}]}",
                vec![],
            ),
            (
                "  - {id: a, prompt: p, checks: [{contains: x}]}\n  - {id: b, prompt: p, checks: [{contains: x}]}",
                vec!["duplicate-prompt"],
            ),
            // Two cases may check one answer in two ways.
            (
                "  - {id: a, prompt: p, checks: [{contains: x}]}\n  - {id: b, prompt: p, checks: [{contains: y}]}",
                vec![],
            ),
            (
                "  - {id: a, prompt: p, activation: must}\n  - {id: b, prompt: p, activation: must_not}",
                vec!["contradiction"],
            ),
            (
                "  - {id: a, prompt: p, activation: must}\n  - {id: b, prompt: p, activation: {expect: must_not, skills: [t]}}",
                vec![],
            ),
            ("  - {id: a, prompt: p, checks: [{judge: Handles errors properly.}]}", vec!["vague-criterion"]),
            ("  - {id: a, prompt: p, checks: [{judge: Names the file that is missing.}]}", vec![]),
            (
                "  - {id: a, prompt: 'Say Ahoy, dear Alice now', checks: [{contains: 'Ahoy, dear Alice'}]}",
                vec!["answer-leak"],
            ),
            (many, vec!["few-negatives"]),
            (
                "  - {id: a, prompt: p, activation: must, pass_when: fire_rate, repeat: 1}",
                vec!["few-repeats"],
            ),
            ("  - {id: a, prompt: p, activation: must, pass_when: fire_rate, repeat: 3}", vec![]),
        ] {
            assert_eq!(codes(cases), expected, "{cases}");
        }
    }

    #[test]
    fn a_missing_judge_is_reported() {
        let with = |judge: &str| {
            codes_of(&format!("judge: {judge}\n"), "  - {id: a, prompt: p, checks: [{contains: x}]}")
        };
        assert_eq!(with("{model: my-llm}"), ["unknown-provider"]);
        assert_eq!(with("{model: my-llm, provider: openai}"), [""; 0]);
        assert_eq!(with("{model: claude-opus-4-1}"), [""; 0]);
    }
}

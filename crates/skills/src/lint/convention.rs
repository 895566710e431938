//! The conventions of writing-skills: whether a skill follows each of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::discipline_without_counters::{answers_excuses, imposes_discipline};
use super::rules::word_count::{TARGET_WORDS, count_words};
use super::{Convention, DraftFrontmatter, RULES, SkillFileDraft};
use practicum_core::model::{CheckResult, Verdict};

/// The conventions of writing-skills, in the shape its reports have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConventionCompliance {
    /// The frontmatter can be read, and has a name and a description.
    pub frontmatter: ConventionResult,
    /// The description says when to use the skill, and not how it works.
    pub description_field: ConventionResult,
    /// The skill is as short as it can be.
    pub token_efficiency: ConventionResult,
    /// Whether details are in separate files, which are read only when they are needed.
    pub progressive_disclosure: ConventionResult,
    /// The skill has what its type needs.
    pub type_alignment: TypeAlignmentResult,
}

/// Whether a skill has what its type needs. Code alone can seldom decide that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeAlignmentResult {
    /// Whether the skill follows the convention; `None` if that is unknown.
    pub passed: Option<bool>,
    /// What was found, or why the convention could not be checked.
    pub details: String,
}

impl ConventionCompliance {
    /// Makes the result for a skill that can no longer be read. It counts every convention as not followed.
    pub fn unknown(why: &str) -> Self {
        let unknown = || ConventionResult::new(false, format!("unknown: {why}"));
        Self {
            frontmatter: unknown(),
            description_field: unknown(),
            token_efficiency: unknown(),
            progressive_disclosure: unknown(),
            type_alignment: TypeAlignmentResult { passed: None, details: format!("unknown: {why}") },
        }
    }

    /// Replaces the answer about the skill's type by that of a judge, if a judge was asked. If the judge gave no
    /// answer, the answer by code stays, if there is one.
    #[must_use]
    pub fn with_judge_answer(self, said: Option<&CheckResult>) -> Self {
        let Some(said) = said else { return self };
        let passed = match &said.verdict {
            Verdict::Pass => Some(true),
            Verdict::Fail => Some(false),
            Verdict::NotScored(_) if self.type_alignment.passed.is_some() => return self,
            Verdict::NotScored(_) => None,
        };
        let words = std::iter::once(&said.rationale).chain(&said.flags);
        let details = words.map(String::as_str).collect::<Vec<&str>>().join("; ");
        Self { type_alignment: TypeAlignmentResult { passed, details }, ..self }
    }
}

/// Whether a skill follows one convention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConventionResult {
    /// Whether the convention is kept.
    pub passed: bool,
    /// What was found.
    pub details: String,
}

impl ConventionResult {
    fn new(passed: bool, details: impl Into<String>) -> Self {
        Self { passed, details: details.into() }
    }
}

/// Says which conventions a SKILL.md follows.
pub fn convention_compliance(draft: &SkillFileDraft) -> ConventionCompliance {
    ConventionCompliance {
        frontmatter: result_from_rules(
            draft,
            Convention::Frontmatter,
            "valid YAML, name and description present",
        ),
        description_field: description_result(draft),
        token_efficiency: tokens_result(draft),
        progressive_disclosure: disclosure_result(draft),
        type_alignment: type_alignment_result(draft),
    }
}

/// Gives what the rules of a convention found, or `well` if they found nothing.
fn result_from_rules(draft: &SkillFileDraft, convention: Convention, well: &str) -> ConventionResult {
    let rules = RULES.iter().filter(|rule| rule.convention == Some(convention));
    let found: Vec<String> =
        rules.flat_map(|rule| rule.run(draft)).map(|problem| problem.message).take(10).collect();
    if found.is_empty() {
        ConventionResult::new(true, well)
    } else {
        ConventionResult::new(false, found.join("; "))
    }
}

/// Gives a failure if SKILL.md cannot be read: then it follows no convention.
fn unreadable_result(draft: &SkillFileDraft) -> Option<ConventionResult> {
    match draft.frontmatter {
        DraftFrontmatter::Unreadable { .. } => Some(ConventionResult::new(false, "SKILL.md cannot be read")),
        DraftFrontmatter::Missing
        | DraftFrontmatter::Unclosed
        | DraftFrontmatter::InvalidYaml(_)
        | DraftFrontmatter::NotAMapping(_)
        | DraftFrontmatter::Mapping(_) => None,
    }
}

fn description_result(draft: &SkillFileDraft) -> ConventionResult {
    if draft.nonblank_text("description").is_none() {
        return ConventionResult::new(false, "there is no description that can be read");
    }
    result_from_rules(
        draft,
        Convention::Description,
        "says when to use the skill, in the third person, without the steps",
    )
}

fn tokens_result(draft: &SkillFileDraft) -> ConventionResult {
    let well = format!("{} words, within the target of {TARGET_WORDS}", count_words(draft));
    unreadable_result(draft).unwrap_or_else(|| result_from_rules(draft, Convention::Tokens, &well))
}

fn disclosure_result(draft: &SkillFileDraft) -> ConventionResult {
    let well = "divided by headings where it is long; nothing in it that belongs into a file of its own";
    unreadable_result(draft).unwrap_or_else(|| result_from_rules(draft, Convention::Disclosure, well))
}

fn type_alignment_result(draft: &SkillFileDraft) -> TypeAlignmentResult {
    if !imposes_discipline(draft) {
        let details = "code cannot decide what type of skill this is, and no judge was asked".to_owned();
        return TypeAlignmentResult { passed: None, details };
    }
    let ConventionResult { passed, details } = if answers_excuses(draft) {
        ConventionResult::new(true, "imposes discipline and answers the excuses for breaking it")
    } else {
        result_from_rules(draft, Convention::TypeAlignment, "imposes discipline")
    };
    TypeAlignmentResult { passed: Some(passed), details }
}

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::discipline_without_counters::{answers_excuses, imposes_discipline};
use super::rules::word_count::{TARGET, words};
use super::{Convention, Draft, Front, RULES};
use practicum_core::model::{CheckResult, Verdict};

/// The conventions of writing-skills, in the shape its reports have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConventionCompliance {
    /// The frontmatter can be read, and has a name and a description.
    pub frontmatter: Mark,
    /// The description says when to use the skill, and not how it works.
    pub description_field: Mark,
    /// The skill is as short as it can be.
    pub token_efficiency: Mark,
    /// What is seldom needed is not read always.
    pub progressive_disclosure: Mark,
    /// The skill has what its type needs.
    pub type_alignment: Alignment,
}

/// Whether a skill has what its type needs, which code can seldom tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alignment {
    /// `None` if nobody could tell.
    pub passed: Option<bool>,
    /// What was seen, or why nobody could tell.
    pub details: String,
}

impl ConventionCompliance {
    /// What is said of a skill that nobody can look at any more. What is not known to be kept is not called kept.
    pub fn unknown(why: &str) -> Self {
        let mark = || Mark::new(false, format!("unknown: {why}"));
        Self {
            frontmatter: mark(),
            description_field: mark(),
            token_efficiency: mark(),
            progressive_disclosure: mark(),
            type_alignment: Alignment { passed: None, details: format!("unknown: {why}") },
        }
    }

    /// With what a judge said of the skill's type, if one was asked. It is believed before code is; where
    /// it gave no answer, that of code stands, if there is one.
    #[must_use]
    pub fn judged(self, said: Option<&CheckResult>) -> Self {
        let Some(said) = said else { return self };
        let passed = match &said.verdict {
            Verdict::Pass => Some(true),
            Verdict::Fail => Some(false),
            Verdict::NotScored(_) if self.type_alignment.passed.is_some() => return self,
            Verdict::NotScored(_) => None,
        };
        let words = std::iter::once(&said.rationale).chain(&said.flags);
        let details = words.map(String::as_str).collect::<Vec<&str>>().join("; ");
        Self { type_alignment: Alignment { passed, details }, ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Whether the convention is kept.
    pub passed: bool,
    /// What was seen.
    pub details: String,
}

impl Mark {
    fn new(passed: bool, details: impl Into<String>) -> Self {
        Self { passed, details: details.into() }
    }
}

pub fn convention_compliance(draft: &Draft) -> ConventionCompliance {
    ConventionCompliance {
        frontmatter: by_rules(draft, Convention::Frontmatter, "valid YAML, name and description present"),
        description_field: description(draft),
        token_efficiency: tokens(draft),
        progressive_disclosure: disclosure(draft),
        type_alignment: type_alignment(draft),
    }
}

/// What the rules of a convention found, or that all is well.
fn by_rules(draft: &Draft, convention: Convention, well: &str) -> Mark {
    let rules = RULES.iter().filter(|rule| rule.convention == Some(convention));
    let found: Vec<String> =
        rules.flat_map(|rule| rule.findings(draft)).map(|problem| problem.message).take(10).collect();
    if found.is_empty() { Mark::new(true, well) } else { Mark::new(false, found.join("; ")) }
}

/// What cannot be read keeps no convention.
fn unread(draft: &Draft) -> Option<Mark> {
    match draft.front {
        Front::Unread { .. } => Some(Mark::new(false, "SKILL.md cannot be read")),
        Front::Missing | Front::Unclosed | Front::Broken(_) | Front::NoMapping(_) | Front::Mapping(_) => None,
    }
}

fn description(draft: &Draft) -> Mark {
    if draft.said("description").is_none() {
        return Mark::new(false, "there is no description that can be read");
    }
    by_rules(
        draft,
        Convention::Description,
        "says when to use the skill, in the third person, without the steps",
    )
}

fn tokens(draft: &Draft) -> Mark {
    let well = format!("{} words, within the target of {TARGET}", words(draft));
    unread(draft).unwrap_or_else(|| by_rules(draft, Convention::Tokens, &well))
}

fn disclosure(draft: &Draft) -> Mark {
    let well = "divided by headings where it is long; nothing in it that belongs into a file of its own";
    unread(draft).unwrap_or_else(|| by_rules(draft, Convention::Disclosure, well))
}

fn type_alignment(draft: &Draft) -> Alignment {
    if !imposes_discipline(draft) {
        let details = "code cannot tell what type of skill this is, and no judge was asked".to_owned();
        return Alignment { passed: None, details };
    }
    let Mark { passed, details } = if answers_excuses(draft) {
        Mark::new(true, "imposes discipline and answers the excuses for breaking it")
    } else {
        by_rules(draft, Convention::TypeAlignment, "imposes discipline")
    };
    Alignment { passed: Some(passed), details }
}

//! Why one version is better than another, and what to change next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::edits::{Draft, Refused, Suggestion};
use super::failures::Failures;
use super::forms::{closed, items_of, list_of, texts_of};
use super::suggest::{skill_exhibits, suggestion_of};
use super::{Advice, Adviser, Contents, ContentsError};
use practicum_agents::llm::Tool;
use practicum_engine::judge::{Inquiry, cut};

/// In the shape that writing-skills documents, with exactly its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Why a version is better, and what to change next (analysis.json)")]
pub struct Analysis {
    /// The version that did better, such as v1.
    #[schemars(regex(pattern = r"^v\d+$"))]
    pub winner_version: String,
    /// The version that did worse.
    #[schemars(regex(pattern = r"^v\d+$"))]
    pub loser_version: String,
    /// What the winner did better.
    pub strengths: Vec<String>,
    /// What the loser got wrong.
    pub weaknesses: Vec<String>,
    /// What to change next, each with the text that is there now.
    pub suggestions: Vec<Suggestion>,
}

/// Two versions, after it is known which did better.
pub struct Compared<'c> {
    pub winner: u32,
    pub loser: u32,
    /// The winner's files: suggestions are for these.
    pub contents: &'c Contents,
    /// What changed from the earlier to the later of the two.
    pub diff: &'c str,
    /// What blind judges said, by version.
    pub reasons: &'c str,
}

/// An analysis with the suggestions that can be followed, and those that cannot.
#[derive(Debug)]
pub struct Analysed {
    pub analysis: Analysis,
    pub refused: Vec<Refused>,
}

const RULES: &str = "\
You analyse two versions of an agent skill after it was found out which did better: what made the \
difference, and what to change next in the better one.

Rules:
- Strengths are what the winner does better, weaknesses what the loser got wrong; each a sentence about \
the skill's text, borne out by what you were shown.
- A suggestion names a text that occurs exactly once in the winner, copied letter by letter, and what \
stands in its place afterwards. It mends the cause of failed checks for all requests of this kind; it \
never answers a request that you were shown. Without a good one, suggest nothing.
- Leave the skill's name and the keys of its frontmatter as they are.";

const LONGEST_DIFF: usize = 40_000;

pub async fn analyse(
    adviser: &Adviser,
    compared: &Compared<'_>,
    failures: &Failures,
    round: u32,
) -> Result<Advice<Analysed>, ContentsError> {
    let draft = Draft::of(compared.contents)?;
    let versions = (format!("v{}", compared.winner), format!("v{}", compared.loser));
    let mut exhibits = skill_exhibits(&draft);
    exhibits.push(("What changed between the two versions".to_owned(), cut(compared.diff, LONGEST_DIFF)));
    exhibits.push(("What judges said who did not know the versions".to_owned(), compared.reasons.to_owned()));
    exhibits.extend(failures.exhibits());
    let text = json!({"type": "string"});
    let suggestion = closed(json!({"area": text, "before": text, "after": text, "reasoning": text}));
    let inquiry = Inquiry {
        rules: RULES.to_owned(),
        exhibits,
        wanted: format!(
            "Analyse why {} did better than {}; the skill shown is {}. Answer with JSON of the form \
             {{\"strengths\": [texts], \"weaknesses\": [texts], \"suggestions\": [{{\"area\", \"before\", \
             \"after\", \"reasoning\"}}]}}.",
            versions.0, versions.1, versions.0
        ),
        form: Tool {
            name: "report_analysis".to_owned(),
            description: "Report the analysis of the two versions.".to_owned(),
            input_schema: closed(json!({
                "strengths": list_of(text.clone()),
                "weaknesses": list_of(text),
                "suggestions": list_of(suggestion),
            })),
        },
        round,
    };
    let read = |answer: &Value| {
        let suggestions = items_of(answer, "suggestions")?.iter().map(suggestion_of);
        Ok(Analysis {
            winner_version: versions.0.clone(),
            loser_version: versions.1.clone(),
            strengths: texts_of(answer, "strengths")?,
            weaknesses: texts_of(answer, "weaknesses")?,
            suggestions: suggestions.collect::<Result<_, String>>()?,
        })
    };
    let Advice { answer, cost_usd } = adviser.ask(&format!("analyse {round}"), &inquiry, &read).await;
    Ok(Advice { answer: answer.map(|analysis| checked(analysis, draft)), cost_usd })
}

/// Keeps the suggestions that can be followed one after the other.
fn checked(mut analysis: Analysis, mut draft: Draft) -> Analysed {
    let mut refused = Vec::new();
    let suggestions = std::mem::take(&mut analysis.suggestions);
    for suggestion in suggestions {
        match draft.follow(&suggestion, None) {
            Ok(()) => analysis.suggestions.push(suggestion),
            Err(why) => refused.push(Refused { suggestion, why }),
        }
    }
    Analysed { analysis, refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_without_its_one_place_is_dropped_and_told() {
        let room = tempfile::tempdir().expect("a folder");
        std::fs::write(room.path().join("SKILL.md"), "Use when deploying. Ask. Ask.").expect("write");
        let draft = Draft::of(&Contents::of(room.path()).expect("a skill")).expect("texts");
        let suggestion = |before: &str| Suggestion {
            area: "description".into(),
            before: before.into(),
            after: "Use when sailing".into(),
            reasoning: "r".into(),
        };
        let analysis = Analysis {
            winner_version: "v1".into(),
            loser_version: "v0".into(),
            strengths: vec!["s".into()],
            weaknesses: Vec::new(),
            suggestions: vec![suggestion("Use when deploying"), suggestion("Ask."), suggestion("nowhere")],
        };
        let Analysed { analysis, refused } = checked(analysis, draft);
        assert_eq!(analysis.suggestions, [suggestion("Use when deploying")]);
        let why: Vec<&str> = refused.iter().map(|refused| refused.why.as_str()).collect();
        assert_eq!(
            why,
            ["the text to change is there more than once", "the text to change is not in the skill"]
        );
    }
}

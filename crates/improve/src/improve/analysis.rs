//! Asks why one version is better than another, and what to change next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer_forms::{closed_object, items_of, list_of, texts_of};
use super::edit_suggestions::{read_suggestion, skill_exhibits};
use super::edits::{EditSuggestion, RefusedSuggestion, SkillEditDraft};
use super::failures::FailedChecks;
use super::{Adviser, AdviserAnswer, SkillContents, SkillContentsError};
use practicum_agents::llm::ToolDefinition;
use practicum_engine::grade::judge::{StructuredQuestion, shorten_text};

/// The analysis of why one version is better, with exactly the keys that writing-skills documents.
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
    pub suggestions: Vec<EditSuggestion>,
}

/// Two versions, after the better one is known.
pub struct RankedVersions<'c> {
    pub winner: u32,
    pub loser: u32,
    /// The winner's files, which the suggestions are for.
    pub contents: &'c SkillContents,
    /// The changes from the earlier to the later version.
    pub diff: &'c str,
    /// The reasons of the blind judges, by version.
    pub judge_reasons: &'c str,
}

/// An analysis, with the suggestions that can be applied and those that cannot.
#[derive(Debug)]
pub struct CheckedAnalysis {
    pub analysis: Analysis,
    pub refused_suggestions: Vec<RefusedSuggestion>,
}

const RULES: &str = "\
You analyse two versions of an agent skill after it was found out which did better: what made the \
difference, and what to change next in the better one.

Rules:
- Strengths are what the winner does better, weaknesses what the loser got wrong; each a sentence about \
the skill's text, confirmed by what you were shown.
- A suggestion names a text that occurs exactly once in the winner, copied letter by letter, and what \
stands in its place afterwards. It mends the cause of failed checks for all requests of this kind; it \
never answers a request that you were shown. Without a good one, suggest nothing.
- Leave the skill's name and the keys of its frontmatter as they are.";

const LONGEST_DIFF: usize = 40_000;

/// Asks the adviser why one version did better, and for suggestions.
pub async fn analyse_versions(
    adviser: &Adviser,
    compared: &RankedVersions<'_>,
    failures: &FailedChecks,
    round: u32,
) -> Result<AdviserAnswer<CheckedAnalysis>, SkillContentsError> {
    let draft = SkillEditDraft::from_contents(compared.contents)?;
    let versions = (format!("v{}", compared.winner), format!("v{}", compared.loser));
    let mut exhibits = skill_exhibits(&draft);
    exhibits.push((
        "What changed between the two versions".to_owned(),
        shorten_text(compared.diff, LONGEST_DIFF),
    ));
    exhibits.push((
        "What judges said who did not know the versions".to_owned(),
        compared.judge_reasons.to_owned(),
    ));
    exhibits.extend(failures.exhibits());
    let text = json!({"type": "string"});
    let suggestion = closed_object(json!({"area": text, "before": text, "after": text, "reasoning": text}));
    let inquiry = StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits,
        task: format!(
            "Analyse why {} did better than {}; the skill shown is {}. Answer with JSON of the form \
             {{\"strengths\": [texts], \"weaknesses\": [texts], \"suggestions\": [{{\"area\", \"before\", \
             \"after\", \"reasoning\"}}]}}.",
            versions.0, versions.1, versions.0
        ),
        form: ToolDefinition {
            name: "report_analysis".to_owned(),
            description: "Report the analysis of the two versions.".to_owned(),
            input_schema: closed_object(json!({
                "strengths": list_of(text.clone()),
                "weaknesses": list_of(text),
                "suggestions": list_of(suggestion),
            })),
        },
        round,
    };
    let read = |answer: &Value| {
        let suggestions = items_of(answer, "suggestions")?.iter().map(read_suggestion);
        Ok(Analysis {
            winner_version: versions.0.clone(),
            loser_version: versions.1.clone(),
            strengths: texts_of(answer, "strengths")?,
            weaknesses: texts_of(answer, "weaknesses")?,
            suggestions: suggestions.collect::<Result<_, String>>()?,
        })
    };
    let AdviserAnswer { answer, cost_usd } =
        adviser.ask_as(&format!("analyse {round}"), &inquiry, &read).await;
    Ok(AdviserAnswer { answer: answer.map(|analysis| check_suggestions(analysis, draft)), cost_usd })
}

/// Keeps the suggestions that can be applied one after the other.
fn check_suggestions(mut analysis: Analysis, mut draft: SkillEditDraft) -> CheckedAnalysis {
    let mut refused = Vec::new();
    let suggestions = std::mem::take(&mut analysis.suggestions);
    for suggestion in suggestions {
        match draft.apply_suggestion(&suggestion, None) {
            Ok(()) => analysis.suggestions.push(suggestion),
            Err(why) => refused.push(RefusedSuggestion { suggestion, why }),
        }
    }
    CheckedAnalysis { analysis, refused_suggestions: refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_without_its_one_place_is_dropped_and_reported() {
        let room = tempfile::tempdir().expect("a folder");
        std::fs::write(room.path().join("SKILL.md"), "Use when deploying. Ask. Ask.").expect("write");
        let draft = SkillEditDraft::from_contents(&SkillContents::scan(room.path()).expect("a skill"))
            .expect("texts");
        let suggestion = |before: &str| EditSuggestion {
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
        let CheckedAnalysis { analysis, refused_suggestions: refused } = check_suggestions(analysis, draft);
        assert_eq!(analysis.suggestions, [suggestion("Use when deploying")]);
        let why: Vec<&str> = refused.iter().map(|refused| refused.why.as_str()).collect();
        assert_eq!(
            why,
            ["the text to change is there more than once", "the text to change is not in the skill"]
        );
    }
}

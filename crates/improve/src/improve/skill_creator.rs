//! Writes comparisons and analyses in the forms that skill-creator documents, beside those of writing-skills.
//!
//! No value is invented: a key that has no answer is null or empty.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::analysis::Analysis;
use super::blind::{BlindComparison, OutputLabel};

/// The folder for these documents, because writing-skills has documents with the same names.
pub const SKILL_CREATOR_FOLDER: &str = "skill-creator";

/// The documented dimensions that are about form; all others are about content.
const STRUCTURE_DIMENSIONS: [&str; 3] = ["description_quality", "convention_compliance", "token_efficiency"];

/// Writes one blind comparison of two outputs: `comparison-N.json`.
pub fn comparison_document(of: &BlindComparison) -> Value {
    let winner = match of.winner {
        OutputLabel::A => "A",
        OutputLabel::B => "B",
    };
    json!({
        "winner": winner,
        "reasoning": of.reasoning,
        "rubric": {"A": rubric_document(of, OutputLabel::A), "B": rubric_document(of, OutputLabel::B)},
        "output_quality": {"A": quality_document(of, OutputLabel::A), "B": quality_document(of, OutputLabel::B)},
    })
}

/// Gives each dimension with the scores of this output and of the other one, from 1 to 10.
fn dimension_scores(of: &BlindComparison, label: OutputLabel) -> impl Iterator<Item = (&str, u8, u8)> {
    of.scores.iter().map(move |(name, scores)| match label {
        OutputLabel::A => (name.as_str(), scores.a, scores.b),
        OutputLabel::B => (name.as_str(), scores.b, scores.a),
    })
}

fn rubric_document(of: &BlindComparison, label: OutputLabel) -> Value {
    let part = |wanted: bool| -> Map<String, Value> {
        let part =
            dimension_scores(of, label).filter(|(name, ..)| STRUCTURE_DIMENSIONS.contains(name) == wanted);
        // The scale here is from 1 to 5.
        part.map(|(name, own, _)| (name.to_owned(), json!(f64::from(own) / 2.0))).collect()
    };
    let (content, structure) = (part(false), part(true));
    let (content_score, structure_score) = (mean(&content), mean(&structure));
    json!({
        "content": content,
        "structure": structure,
        "content_score": content_score.map(rounded),
        "structure_score": structure_score.map(rounded),
        "overall_score": overall_score(of, label).map(rounded),
    })
}

/// Gives the mean of the two parts, from 1 to 10.
fn overall_score(of: &BlindComparison, label: OutputLabel) -> Option<f64> {
    let part = |wanted: bool| {
        let part =
            dimension_scores(of, label).filter(|(name, ..)| STRUCTURE_DIMENSIONS.contains(name) == wanted);
        let own: Vec<f64> = part.map(|(_, own, _)| f64::from(own)).collect();
        (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
    };
    let parts: Vec<f64> = [part(false), part(true)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.iter().sum::<f64>() / parts.len() as f64)
}

fn quality_document(of: &BlindComparison, label: OutputLabel) -> Value {
    let points = |better: bool| -> Vec<String> {
        let differing = dimension_scores(of, label).filter(|(_, own, other)| own != other);
        differing
            .filter(|(_, own, other)| (own > other) == better)
            .map(|(name, own, other)| format!("{name}: {own} of 10, the other {other}"))
            .collect()
    };
    json!({
        "score": overall_score(of, label).map(f64::round),
        "strengths": points(true),
        "weaknesses": points(false),
    })
}

fn mean(part: &Map<String, Value>) -> Option<f64> {
    let values: Vec<f64> = part.values().filter_map(Value::as_f64).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The documented categories of suggestions, each with the words that indicate it.
const CATEGORIES: [(&str, &[&str]); 5] = [
    ("examples", &["example"]),
    ("error_handling", &["error"]),
    ("tools", &["tool", "script"]),
    ("references", &["reference", "link"]),
    ("structure", &["structure", "heading", "order", "layout"]),
];

/// Gives the documented category of a suggestion's area. Without any of these words it is about instructions.
fn category(area: &str) -> &'static str {
    let area = area.to_lowercase();
    let category = CATEGORIES.iter().find(|(_, words)| words.iter().any(|word| area.contains(word)));
    category.map_or("instructions", |(name, _)| name)
}

/// Writes why one version is better: `analysis.json`. Labels change with each comparison, so here A is the earlier
/// version and B the later one.
pub fn analysis_document(of: &Analysis, winner_skill: &Path, loser_skill: &Path, reasons: &str) -> Value {
    let suggestions: Vec<Value> = of
        .suggestions
        .iter()
        .map(|suggestion| {
            json!({
                // The analysis does not rank its suggestions.
                "priority": "medium",
                "category": category(&suggestion.area),
                "suggestion": format!(
                    "{}: replace {:?} with {:?}",
                    suggestion.area, suggestion.before, suggestion.after
                ),
                "expected_impact": suggestion.reasoning,
            })
        })
        .collect();
    let number = |version: &str| version.trim_start_matches('v').parse::<u32>().ok();
    let later_won = number(&of.winner_version) > number(&of.loser_version);
    json!({
        "comparison_summary": {
            "winner": if later_won { "B" } else { "A" },
            "winner_skill": winner_skill,
            "loser_skill": loser_skill,
            "comparator_reasoning": reasons,
        },
        "winner_strengths": of.strengths,
        "loser_weaknesses": of.weaknesses,
        "instruction_following": {
            "winner": {"score": null, "issues": []},
            "loser": {"score": null, "issues": []},
        },
        "improvement_suggestions": suggestions,
        "transcript_insights": {"winner_execution_pattern": null, "loser_execution_pattern": null},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_has_both_outputs_scores_on_the_documented_scales() {
        let of: BlindComparison = serde_json::from_value(json!({
            "eval_prompt": "p",
            "winner": "A",
            "reasoning": "clearer",
            "scores": {
                "content_value": {"A": 8, "B": 6},
                "type_specific_quality": {"A": 9, "B": 4},
                "token_efficiency": {"A": 7, "B": 7},
            },
        }))
        .expect("a comparison");
        let written = comparison_document(&of);
        assert_eq!(written["winner"], "A");
        assert_eq!(
            written["rubric"]["A"],
            json!({
                "content": {"content_value": 4.0, "type_specific_quality": 4.5},
                "structure": {"token_efficiency": 3.5},
                "content_score": 4.3,
                "structure_score": 3.5,
                "overall_score": 7.8,
            })
        );
        assert_eq!(
            written["output_quality"]["B"],
            json!({
                "score": 6.0,
                "strengths": [],
                "weaknesses": ["content_value: 6 of 10, the other 8", "type_specific_quality: 4 of 10, the other 9"],
            })
        );
    }
}

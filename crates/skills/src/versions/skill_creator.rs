//! The versions of a skill in skill-creator's format.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::skill_versions::{ListedVersion, VersionListing};
use super::version_score::VersionScore;

/// Writes the versions of a skill in the format that skill-creator documents for its `history.json`. A version
/// that was not measured has no pass rate, and one that could not be compared with an earlier one has no result.
pub fn history_document(of: &VersionListing) -> Value {
    let mut best: Option<(u32, &VersionScore)> = None;
    let mut previous = None;
    let mut iterations = Vec::new();
    for ListedVersion { version, score } in &of.versions {
        let (number, score) = (version.version, score.as_ref().filter(|score| score.is_measured()));
        let result = match (previous, score, best) {
            (None, ..) => Some("baseline"),
            (_, None, _) | (_, _, None) => None,
            (_, Some(score), Some((_, known))) => Some(match score.compare_rank(known) {
                _ if score.rejected.is_some() => "lost",
                Ordering::Greater => "won",
                Ordering::Equal => "tie",
                Ordering::Less => "lost",
            }),
        };
        iterations.push(json!({
            "version": version_name(number),
            "parent": best.map(|(number, _)| number).or(previous).map(version_name),
            "expectation_pass_rate": score.and_then(|score| score.expectation_pass_rate),
            "grading_result": result,
            "is_current_best": of.best == Some(number),
        }));
        if let Some(score) = score.filter(|_| best.is_none() || result == Some("won")) {
            best = Some((number, score));
        }
        previous = Some(number);
    }
    json!({
        "started_at": of.versions.first().map(|first| &first.version.timestamp),
        "skill_name": of.skill.file_name().map(|name| name.to_string_lossy()),
        "current_best": of.best.map(version_name),
        "iterations": iterations,
    })
}

fn version_name(number: u32) -> String {
    format!("v{number}")
}

//! The routing of a catalogue for people: which skill was activated for which prompt.

use super::{RunResults, figures, terminal_safe};
use practicum_core::model::{TrialRecord, count_with_noun};
use practicum_core::studies::{
    CatalogueFacts, ListingMeasurement, RoutingDocument, RoutingPart, RoutingRow, RowStanding, SkillCollision,
};
use practicum_engine::store::TrialFacts;

/// The greatest number of collisions, rows or descriptions that a terminal lists one by one.
const MAX_LISTED: usize = 20;

/// Makes the document about the routing in a stored run. `None` if it is not the run of a catalogue, or its trials cannot
/// be read.
pub fn routing_of_run(results: &RunResults) -> Option<RoutingDocument> {
    let stored = results.info.suites.iter().find(|of| CatalogueFacts::of_suite(&of.suite).is_some())?;
    let facts = CatalogueFacts::of_suite(&stored.suite)?;
    let records: Vec<TrialRecord> = results.all_trials().collect::<Result<_, _>>().ok()?;
    let listing = |record: &TrialRecord| TrialFacts::read(&results.trial_folder(record)).ok()?.listing;
    Some(RoutingDocument::from_records(results.run.id(), &stored.suite, facts, &records, listing))
}

/// Writes the document for a terminal.
pub fn render_text(of: &RoutingDocument) -> String {
    let mut out = String::new();
    for part in &of.agents {
        out.push_str(&describe_part(of, part));
    }
    for pair in of.similar.iter().take(MAX_LISTED) {
        let [one, other] = &pair.skills;
        let (one, other) = (terminal_safe(one), terminal_safe(other));
        out.push_str(&format!("similar descriptions: {one} and {other} ({:.0} %)\n", pair.likeness * 100.0));
    }
    out.extend(describe_rest(of.similar.len(), "similar pair"));
    out
}

fn describe_part(of: &RoutingDocument, part: &RoutingPart) -> String {
    let found = &part.analysis;
    let mut out = format!(
        "{}: {}, {}, {}\n",
        terminal_safe(&part.agent),
        count_with_noun(of.skills, "skill"),
        count_with_noun(found.prompts, "prompt"),
        count_with_noun(found.runs, "run")
    );
    out.push_str(&format!(
        "  right at the first run: {} of the prompts\n",
        figures::format_estimate(found.right_at_first)
    ));
    if found.unknown > 0 {
        out.push_str(&format!("  {} not show what was activated\n", runs_do(found.unknown)));
    }
    if !found.rows.is_empty()
        && found.rows.iter().all(|row| row.activated.iter().all(|of| of.skill.is_none()))
    {
        out.push_str(
            "  no skill was activated at all: the agent may not see them (practicum try, practicum doctor)\n",
        );
    }
    for collision in found.collisions.iter().take(MAX_LISTED) {
        out.push_str(&format!("  {}\n", terminal_safe(&describe_collision(collision))));
    }
    out.extend(describe_rest(found.collisions.len(), "collision"));
    let below: Vec<&RoutingRow> =
        found.rows.iter().filter(|row| row.standing == RowStanding::Below).collect();
    for row in below.iter().take(MAX_LISTED) {
        let words = format!(
            "below {:.2}: {} {} in {}",
            of.goal,
            expected_words(&row.expected),
            figures::format_estimate(row.right),
            count_with_noun(row.right.n, "run")
        );
        out.push_str(&format!("  {}\n", terminal_safe(&words)));
    }
    out.extend(describe_rest(below.len(), "row"));
    for line in describe_listing(&part.listing) {
        out.push_str(&format!("  {}\n", terminal_safe(&line)));
    }
    out
}

fn runs_do(count: u64) -> String {
    format!("{} {}", count_with_noun(count, "run"), if count == 1 { "does" } else { "do" })
}

/// Describes what is not listed: `and 3 more collisions`. `None` if all are listed.
fn describe_rest(all: usize, noun: &str) -> Option<String> {
    let more = all.checked_sub(MAX_LISTED).filter(|more| *more > 0)?;
    Some(format!("  and {} (--json has all)\n", count_with_noun(more, &format!("more {noun}"))))
}

/// Describes the skills of which one is expected.
pub fn expected_words(expected: &[String]) -> String {
    if expected.is_empty() { "no skill".to_owned() } else { expected.join(" or ") }
}

/// Describes a collision in one line.
pub fn describe_collision(of: &SkillCollision) -> String {
    format!(
        "{} → {}: {} ({} of {})",
        expected_words(&of.expected),
        of.activated,
        figures::format_estimate(of.share),
        of.runs,
        count_with_noun(of.share.n, "run")
    )
}

/// Describes what the agent tells its model about the skills.
pub fn describe_listing(of: &ListingMeasurement) -> Vec<String> {
    match of {
        ListingMeasurement::Unknown { why, estimated_tokens_if_whole } => vec![format!(
            "listing: unknown, because {why}; about {estimated_tokens_if_whole} tokens (an estimate) if nothing is cut"
        )],
        ListingMeasurement::Measured { listing, estimated_tokens } => {
            let mut lines = vec![format!(
                "listing: {} of {} whole, about {estimated_tokens} tokens in every request (an estimate)",
                listing.whole,
                count_with_noun(listing.skills, "description")
            )];
            let shown = |names: &[String]| {
                let mut shown = names.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
                if names.len() > MAX_LISTED {
                    shown.push_str(&format!(" and {} more", names.len() - MAX_LISTED));
                }
                shown
            };
            let cut: Vec<String> = listing
                .cut
                .iter()
                .map(|of| format!("{} ({:.0} %)", of.skill, of.shown as f64 / of.of.max(1) as f64 * 100.0))
                .collect();
            for (words, names) in [
                ("cut after the beginning", &cut),
                ("listed without a description", &listing.without_description),
                ("not listed", &listing.missing),
            ] {
                if !names.is_empty() {
                    lines.push(format!("{words}: {}", shown(names)));
                }
            }
            lines
        }
    }
}

//! The routing of a catalogue as pictures: every skill as a square, and the confused ones as a heat map.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::report::figures;
use crate::report::routing::{describe_collision, describe_listing, expected_words};
use practicum_core::model::count_with_noun;
use practicum_core::studies::{RoutingDocument, RoutingPart, RoutingRow, RowStanding};

/// The size of a square of the overview, and how many are in a line.
const SQUARE: usize = 18;
const SQUARES_IN_LINE: usize = 48;
/// The size of a cell of the heat map.
const CELL: usize = 18;
/// The greatest number of rows and columns of the heat map.
const MAX_ROWS: usize = 60;
const MAX_COLUMNS: usize = 60;
/// The greatest number of letters of a name that are shown.
const NAME_LETTERS: usize = 30;
/// The greatest number of collisions that are listed.
const MAX_COLLISIONS: usize = 100;

/// Shows the routing of each agent.
pub fn routing_section(of: &RoutingDocument) -> Markup {
    html! {
        section class="routing" {
            @for part in &of.agents { (part_card(of, part)) }
        }
    }
}

fn part_card(of: &RoutingDocument, part: &RoutingPart) -> Markup {
    let found = &part.analysis;
    let below = found.rows.iter().filter(|row| row.standing == RowStanding::Below).count();
    let (shown, more) = found.collisions.split_at(found.collisions.len().min(MAX_COLLISIONS));
    html! {
        div class="card" {
            h2 { "Routing with " (part.agent) }
            p {
                (count_with_noun(of.skills, "skill")) ", " (count_with_noun(found.prompts, "prompt")) ", "
                (count_with_noun(found.runs, "run")) ". Right at the first run: "
                (figures::format_estimate(found.right_at_first)) " of the prompts. "
                (count_with_noun(below, "row")) " below the goal of " (format!("{:.2}", of.goal)) "."
            }
            @for line in describe_listing(&part.listing) { p { (line) } }
            h3 { "Every expected skill" }
            p class="faint" { "A square is one row: green where all runs were right, the redder the fewer were. Point at it for its name." }
            (overview(&found.rows, of.goal))
            @if !found.collisions.is_empty() || found.rows.iter().any(is_confused) {
                h3 { "Expected against activated" }
                p class="faint" { "Only rows with a wrong run. The darker, the more runs activated the skill of the column." }
                div class="wide" { (heat_map(&found.rows)) }
                h3 { "Collisions" }
                @for collision in shown { p class="fail" { (describe_collision(collision)) } }
                @if !more.is_empty() { p class="faint" { "and " (more.len()) " more" } }
            }
        }
    }
}

fn is_confused(row: &RoutingRow) -> bool {
    row.right.value.is_some_and(|right| right < 1.0)
}

/// Draws one square for each row, in the order of names.
fn overview(rows: &[RoutingRow], goal: f64) -> Markup {
    let lines = rows.len().div_ceil(SQUARES_IN_LINE).max(1);
    let (width, height) = (rows.len().clamp(1, SQUARES_IN_LINE) * SQUARE, lines * SQUARE);
    html! {
        svg class="squares" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" {
            title { (rows.len()) " rows" }
            @for (at, row) in rows.iter().enumerate() {
                @let (class, strength) = strength(row, goal);
                rect class={ "field " (class) } x=(at % SQUARES_IN_LINE * SQUARE + 1) y=(at / SQUARES_IN_LINE * SQUARE + 1)
                    width=(SQUARE - 2) height=(SQUARE - 2) rx="3" fill-opacity=(strength) {
                    title { (expected_words(&row.expected)) ": " (figures::format_estimate(row.right)) }
                }
            }
        }
    }
}

/// Gives the colour of a row and its strength: pale green where a few runs were wrong, the redder the more were.
fn strength(row: &RoutingRow, goal: f64) -> (&'static str, String) {
    match row.right.value {
        None => ("none", "0.60".to_owned()),
        Some(right) if right >= 1.0 => ("pass", "0.80".to_owned()),
        Some(right) if right >= goal => ("pass", "0.35".to_owned()),
        Some(right) => ("fail", format!("{:.2}", 0.25 + 0.70 * (1.0 - right))),
    }
}

/// Gives the room that these names need beside the picture.
fn name_room<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    const LETTER_WIDTH: usize = 7;
    let longest = names.map(|name| name.chars().count().min(NAME_LETTERS)).max().unwrap_or(0);
    longest.max(9) * LETTER_WIDTH + 14
}

/// Draws the confused rows against the skills that they activated.
fn heat_map(rows: &[RoutingRow]) -> Markup {
    let mut confused: Vec<&RoutingRow> = rows.iter().filter(|row| is_confused(row)).collect();
    confused.sort_by(|a, b| a.right.high.unwrap_or(1.0).total_cmp(&b.right.high.unwrap_or(1.0)));
    let left_out = confused.len().saturating_sub(MAX_ROWS);
    confused.truncate(MAX_ROWS);
    let mut weights: BTreeMap<Option<&str>, f64> = BTreeMap::new();
    for of in confused.iter().flat_map(|row| &row.activated) {
        *weights.entry(of.skill.as_deref()).or_default() += of.share.value.unwrap_or(0.0);
    }
    let mut columns: Vec<Option<&str>> = weights.keys().copied().collect();
    columns.sort_by(|a, b| weights[b].total_cmp(&weights[a]));
    columns.truncate(MAX_COLUMNS);
    // The order of names is easier to search, and nothing at the end.
    columns.sort_by_key(|column| (column.is_none(), *column));
    let rows: Vec<String> = confused.iter().map(|row| expected_words(&row.expected)).collect();
    let left = name_room(rows.iter().map(String::as_str));
    let top = name_room(columns.iter().flatten().copied());
    let (width, height) = (left + columns.len() * CELL + 10, top + confused.len() * CELL + 4);
    html! {
        svg class="heat" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" {
            title { "Expected skills against activated skills" }
            @for (at, column) in columns.iter().enumerate() {
                @let x = left + at * CELL + CELL / 2 + 4;
                text class="axis start" transform={ "translate(" (x) " " (top - 6) ") rotate(-90)" } {
                    (short_name(column.unwrap_or("(nothing)")))
                }
            }
            @for (line, row) in confused.iter().enumerate() {
                @let y = top + line * CELL;
                text class="side" x=(left - 6) y=(y + CELL - 5) { (short_name(&expected_words(&row.expected))) }
                @for (at, column) in columns.iter().enumerate() {
                    (cell(row, *column, left + at * CELL, y))
                }
            }
        }
        @if left_out > 0 { p class="faint" { "and " (count_with_noun(left_out, "more row")) } }
    }
}

fn cell(row: &RoutingRow, column: Option<&str>, x: usize, y: usize) -> Markup {
    let found = row.activated.iter().find(|of| of.skill.as_deref() == column);
    let is_expected = match column {
        Some(skill) => row.expected.iter().any(|expected| expected == skill),
        None => row.expected.is_empty(),
    };
    let share = found.and_then(|of| of.share.value).unwrap_or(0.0);
    let class = match (is_expected, found) {
        (true, _) => "pass",
        (false, Some(_)) => "fail",
        (false, None) => "empty",
    };
    let words = format!(
        "{} → {}: {}",
        expected_words(&row.expected),
        column.unwrap_or("nothing"),
        found.map_or("never".to_owned(), |of| figures::format_estimate(of.share))
    );
    let strength = if share > 0.0 { 0.15 + 0.8 * share } else { 0.0 };
    html! {
        rect class={ "field " (class) } x=(x + 1) y=(y + 1) width=(CELL - 2) height=(CELL - 2) rx="2"
            fill-opacity=(format!("{strength:.2}")) { title { (words) } }
    }
}

/// Shortens a name so that it fits beside the picture.
fn short_name(name: &str) -> String {
    match name.chars().count() > NAME_LETTERS {
        true => name.chars().take(NAME_LETTERS - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

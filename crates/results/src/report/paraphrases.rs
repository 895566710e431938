//! How results hold over rewordings, for a terminal.

use super::{figures, terminal_safe};
use practicum_core::model::count_with_noun;
use practicum_core::studies::{BrokenPart, ParaphraseDocument, ParaphrasedCase, WordingResult};

/// The longest part of a wording that is shown.
const LONGEST_SHOWN: usize = 160;

/// Writes a paragraph for each case: how often it held over its rewordings, and which of them broke something.
pub fn render_text(of: &ParaphraseDocument) -> String {
    let mut out = String::new();
    for case in &of.cases {
        describe_case(case, &mut out);
    }
    let wordings = of.cases.iter().flat_map(|case| &case.rewordings);
    let (broke, all) = wordings
        .fold((0, 0), |(broke, all), wording| (broke + u64::from(!wording.broke.is_empty()), all + 1_u64));
    out.push_str(&match broke {
        0 => format!("no rewording of {all} broke anything\n"),
        _ => format!("{broke} of {} broke something\n", count_with_noun(all, "rewording")),
    });
    out
}

fn describe_case(case: &ParaphrasedCase, out: &mut String) {
    let model = case.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
    let heading = format!("{} {} ({}{model})", case.suite, case.case, case.agent);
    out.push_str(&format!("{}\n", terminal_safe(&heading)));
    let rows = [
        ("result", case.result, BrokenPart::Result),
        ("activation", case.activation, BrokenPart::Activation),
    ];
    for (what, estimate, part) in rows {
        let counts = |wording: &WordingResult| wording.counts_of(part);
        let (good, runs) = counts(&case.original);
        let own = if runs == 0 { "–".to_owned() } else { format!("{good} of {runs}") };
        let held =
            case.rewordings.iter().map(counts).filter(|(good, runs)| *runs > 0 && good * 2 > *runs).count();
        let known = case.rewordings.iter().map(counts).filter(|(_, runs)| *runs > 0).count();
        let held = if known == 0 { "–".to_owned() } else { format!("{held} of {known}") };
        out.push_str(&format!(
            "  {what:<10} own wording {own}; held in {held} rewordings: {}\n",
            figures::format_estimate(estimate)
        ));
    }
    for wording in case.rewordings.iter().filter(|wording| !wording.broke.is_empty()) {
        let parts: Vec<&str> = wording.broke.iter().map(|part| part.name()).collect();
        out.push_str(&format!("  broke {}: {}\n", parts.join(" and "), shown(&wording.prompt)));
    }
    let not_scored: u64 =
        case.rewordings.iter().chain([&case.original]).map(|wording| wording.not_scored).sum();
    if not_scored > 0 {
        let verb = if not_scored == 1 { "has" } else { "have" };
        out.push_str(&format!("  {} {verb} no verdict\n", count_with_noun(not_scored, "run")));
    }
}

/// Gives a wording on one line, shortened.
fn shown(prompt: &str) -> String {
    let line = prompt.split_whitespace().collect::<Vec<&str>>().join(" ");
    let short: String = line.chars().take(LONGEST_SHOWN).collect();
    let cut = if short.len() < line.len() { "…" } else { "" };
    terminal_safe(&format!("{short}{cut}"))
}

//! What the agent said and did, as much of it as a page that goes by mail can hold.

use std::io::Write;

use crate::report::markup::{cut, html};
use crate::report::results::Results;
use practicum_core::model::{Step, ToolCall, Totals, TrialRecord, Verdict};
use practicum_engine::transcript::{Told, asked, gist, told};

/// Characters of all transcripts together.
const MOST_IN_ALL: u64 = 8_000_000;

/// Of one trial: no more, and if it were less, rather none.
const MOST_OF_A_TRIAL: u64 = 60_000;
const LEAST_OF_A_TRIAL: u64 = 2_000;

/// Of one step.
const MOST_OF_A_TEXT: usize = 8_000;
const MOST_OF_AN_INPUT: usize = 3_000;

/// What is read to find that much: a single line may be long.
const MOST_READ: u64 = 16 * 1024 * 1024;

/// How much of its transcript a trial may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    each: usize,
    passed_too: bool,
}

impl Allowance {
    pub fn of(totals: &Totals) -> Self {
        let share = |trials: u64| MOST_IN_ALL / trials.max(1);
        let size = |share: u64| usize::try_from(share.min(MOST_OF_A_TRIAL)).unwrap_or(0);
        match (share(totals.trials), share(totals.failed + totals.not_scored)) {
            (all, _) if all >= LEAST_OF_A_TRIAL => Self { each: size(all), passed_too: true },
            (_, troubled) if troubled >= LEAST_OF_A_TRIAL => Self { each: size(troubled), passed_too: false },
            (_, _) => Self { each: 0, passed_too: false },
        }
    }

    fn for_trial(self, record: &TrialRecord) -> usize {
        if self.passed_too || record.verdict != Verdict::Pass { self.each } else { 0 }
    }

    /// What is missing, if anything is.
    pub fn in_words(self, run: &str) -> Option<String> {
        match (self.passed_too, self.each) {
            (true, _) => None,
            (false, 0) => Some(format!(
                "There are too many trials for their transcripts; practicum show {run} TRIAL has them."
            )),
            (false, _) => Some(format!(
                "Only trials that did not pass have their transcripts here; practicum show {run} TRIAL has the others."
            )),
        }
    }
}

pub fn transcript(
    results: &Results,
    record: &TrialRecord,
    allowance: Allowance,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut left = allowance.for_trial(record);
    if left == 0 {
        return Ok(());
    }
    let Told { steps, whole } = told(&results.folder(record), record, MOST_READ);
    if steps.is_empty() {
        return Ok(());
    }
    let count = match steps.len() {
        1 => "1 step".to_owned(),
        several => format!("{several} steps"),
    };
    writeln!(out, "<details class=\"transcript\"><summary>Transcript <small>{count}</small></summary>")?;
    let mut shown = 0;
    for step in &steps {
        if left == 0 {
            break;
        }
        let written = one(step, left);
        left = left.saturating_sub(written.spent);
        shown += 1;
        writeln!(out, "{}", written.html)?;
    }
    if shown < steps.len() || !whole {
        let rest = match steps.len() - shown {
            0 => "The rest is".to_owned(),
            count => format!("{count} more steps are"),
        };
        let more = html(&format!("practicum show {} {}", results.summary.run, record.trial));
        writeln!(out, "<p class=\"cut\">✂ {rest} not in this page: <code>{more}</code></p>")?;
    }
    writeln!(out, "</details>")
}

struct Written {
    html: String,
    spent: usize,
}

fn one(step: &Step, left: usize) -> Written {
    match step {
        Step::User(text) => said("user", text, left),
        Step::Text(text) => said("agent", text, left),
        Step::Tool(call) => tool(call, left),
    }
}

fn said(who: &str, text: &str, left: usize) -> Written {
    let (shown, spent) = shown(text, left.min(MOST_OF_A_TEXT));
    let html = format!("<div class=\"step {who}\"><small>{who}</small><pre dir=\"auto\">{shown}</pre></div>");
    Written { html, spent }
}

/// Folded: what was done is told by its name and the beginning of what it was done with.
fn tool(call: &ToolCall, left: usize) -> Written {
    let brief = gist(&call.input);
    let (input, input_spent) = shown(&asked(&call.input), left.min(MOST_OF_AN_INPUT));
    let result = call.result.as_deref().unwrap_or_default();
    let (result, result_spent) = shown(result, left.saturating_sub(input_spent).min(MOST_OF_A_TEXT));
    let (class, word) = match call.ok {
        Some(true) => ("", "result"),
        Some(false) => (" fail", "failed"),
        None => (" none", "no result"),
    };
    let html = format!(
        "<details class=\"step tool\"><summary><b class=\"{}\">{}</b> <code>{}</code></summary>\
         <pre dir=\"auto\">{input}</pre><small class=\"{}\">{word}</small><pre dir=\"auto\">{result}</pre></details>",
        class.trim(),
        html(&cut(&call.name, 100)),
        html(&brief),
        class.trim(),
    );
    Written { html, spent: input_spent + result_spent + brief.len() }
}

/// As text of the page, with a visible mark where it was cut, and how much of the allowance it took.
fn shown(text: &str, most: usize) -> (String, usize) {
    match text.char_indices().nth(most) {
        None => (html(text), text.chars().count()),
        Some((end, _)) => {
            let missing = text[end..].chars().count();
            (format!("{}<span class=\"cut\"> ✂ {missing} more characters</span>", html(&text[..end])), most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_stays_small_however_many_trials_there_are() {
        let of = |trials, failed| Allowance::of(&Totals { trials, failed, ..Totals::default() });
        assert_eq!(of(10, 1), Allowance { each: 60_000, passed_too: true });
        assert_eq!(of(2000, 1), Allowance { each: 4000, passed_too: true });
        assert_eq!(of(100_000, 100), Allowance { each: 60_000, passed_too: false });
        assert_eq!(of(100_000, 50_000), Allowance { each: 0, passed_too: false });
    }

    #[test]
    fn what_is_cut_is_marked_and_nothing_is_markup() {
        let call = ToolCall {
            name: "<b>".to_owned(),
            input: serde_json::json!("</script>"),
            result: Some("x".repeat(5_000_000)),
            ok: Some(false),
        };
        let Written { html, spent } = one(&Step::Tool(call), 60_000);
        assert!(html.contains("&lt;b&gt;") && html.contains("&lt;/script&gt;"), "{html:.300}");
        assert!(html.contains("✂ 4992000 more characters"));
        assert!(spent < 10_000 && html.len() < 20_000);
    }
}

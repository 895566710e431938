//! Transcripts on the page, limited to a size that can be sent by mail.

use maud::{Markup, html};

use crate::report::escaping::truncate_text;
use crate::report::rich_text::read_rich_text;
use crate::report::run_results::RunResults;
use practicum_core::model::{Step, ToolCall, TrialRecord, TrialTotals, Verdict, count_with_noun};
use practicum_engine::store::transcript::{
    TrialSteps, describe_tool_input, read_steps, summarise_tool_input,
};

/// The greatest number of characters of all transcripts together.
const MAX_TOTAL_CHARACTERS: u64 = 8_000_000;

/// The greatest number of characters of one trial's transcript. With less than the minimum, none is shown.
const MAX_TRIAL_CHARACTERS: u64 = 60_000;
const MIN_TRIAL_CHARACTERS: u64 = 2_000;

/// The greatest number of characters of one step.
const MAX_TEXT_CHARACTERS: usize = 8_000;
const MAX_INPUT_CHARACTERS: usize = 3_000;

/// The greatest number of bytes that are read of a transcript, because a single line may be long.
const MAX_TRANSCRIPT_BYTES: u64 = 16 * 1024 * 1024;

/// The part of its transcript that a trial may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptAllowance {
    per_trial: usize,
    includes_passed: bool,
}

impl TranscriptAllowance {
    pub fn from_totals(totals: &TrialTotals) -> Self {
        let share = |trials: u64| MAX_TOTAL_CHARACTERS / trials.max(1);
        let size = |share: u64| usize::try_from(share.min(MAX_TRIAL_CHARACTERS)).unwrap_or(0);
        match (share(totals.trials), share(totals.failed + totals.not_scored)) {
            (all, _) if all >= MIN_TRIAL_CHARACTERS => Self { per_trial: size(all), includes_passed: true },
            (_, troubled) if troubled >= MIN_TRIAL_CHARACTERS => {
                Self { per_trial: size(troubled), includes_passed: false }
            }
            (_, _) => Self { per_trial: 0, includes_passed: false },
        }
    }

    fn for_trial(self, record: &TrialRecord) -> usize {
        if self.includes_passed || record.verdict != Verdict::Pass { self.per_trial } else { 0 }
    }

    /// Describes what is left out, if anything is.
    pub fn describe_omissions(self, run: &str) -> Option<String> {
        match (self.includes_passed, self.per_trial) {
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

/// Shows the steps of a trial, folded; nothing if it may show none or has none.
pub fn transcript(results: &RunResults, record: &TrialRecord, allowance: TranscriptAllowance) -> Markup {
    let mut left = allowance.for_trial(record);
    if left == 0 {
        return html! {};
    }
    let TrialSteps { steps, is_complete } =
        read_steps(&results.trial_folder(record), record, MAX_TRANSCRIPT_BYTES, &results.agents);
    if steps.is_empty() {
        return html! {};
    }
    let mut shown = Vec::new();
    for step in &steps {
        if left == 0 {
            break;
        }
        let rendered = render_step(step, left);
        left = left.saturating_sub(rendered.characters);
        shown.push(rendered.html);
    }
    let rest = match steps.len() - shown.len() {
        0 if is_complete => None,
        0 => Some("The rest is".to_owned()),
        count => Some(format!("{count} more steps are")),
    };
    html! {
        details class="transcript" {
            summary { "Transcript " small { (count_with_noun(steps.len(), "step")) } }
            @for step in shown { (step) }
            @if let Some(rest) = rest {
                p class="cut" {
                    "✂ " (rest) " not in this page: "
                    code { "practicum show " (results.summary.run) " " (record.trial) }
                }
            }
        }
    }
}

struct RenderedStep {
    html: Markup,
    characters: usize,
}

fn render_step(step: &Step, left: usize) -> RenderedStep {
    match step {
        Step::User(text) => render_message("user", text, left),
        Step::Text(text) => render_message("agent", text, left),
        Step::Tool(call) => render_tool_call(call, left),
    }
}

fn render_message(who: &str, text: &str, left: usize) -> RenderedStep {
    let most = left.min(MAX_TEXT_CHARACTERS);
    let characters = text.chars().count();
    // Only a text that is shown as a whole can be formatted, and only agents write Markdown.
    if who == "agent"
        && characters <= most
        && let Some(parts) = read_rich_text(text)
    {
        let html = html! {
            div class={ "step " (who) } { small { (who) } div class="rich" dir="auto" { @for part in &parts { (part) } } }
        };
        return RenderedStep { html, characters };
    }
    let (shown, characters) = cut_text(text, most);
    let html = html! { div class={ "step " (who) } { small { (who) } pre dir="auto" { (shown) } } };
    RenderedStep { html, characters }
}

/// Renders a tool call folded, with its name and the beginning of its input.
fn render_tool_call(call: &ToolCall, left: usize) -> RenderedStep {
    let brief = summarise_tool_input(&call.input);
    let (input, input_spent) = cut_text(&describe_tool_input(&call.input), left.min(MAX_INPUT_CHARACTERS));
    let result = call.result.as_deref().unwrap_or_default();
    let (result, result_spent) = cut_text(result, left.saturating_sub(input_spent).min(MAX_TEXT_CHARACTERS));
    let (class, word) = match call.ok {
        Some(true) => ("", "result"),
        Some(false) => ("fail", "failed"),
        None => ("none", "no result"),
    };
    let html = html! {
        details class="step tool" {
            summary { b class=(class) { (truncate_text(&call.name, 100)) } " " code { (brief) } }
            pre dir="auto" { (input) }
            small class=(class) { (word) }
            pre dir="auto" { (result) }
        }
    };
    RenderedStep { html, characters: input_spent + result_spent + brief.len() }
}

/// Cuts a text, with a visible mark where it was cut. Gives how much of the allowance it took.
fn cut_text(text: &str, most: usize) -> (Markup, usize) {
    match text.char_indices().nth(most) {
        None => (html! { (text) }, text.chars().count()),
        Some((end, _)) => {
            let missing = text[end..].chars().count();
            (html! { (text[..end]) span class="cut" { " ✂ " (missing) " more characters" } }, most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_stays_small_however_many_trials_there_are() {
        let of = |trials, failed| {
            TranscriptAllowance::from_totals(&TrialTotals { trials, failed, ..TrialTotals::default() })
        };
        assert_eq!(of(10, 1), TranscriptAllowance { per_trial: 60_000, includes_passed: true });
        assert_eq!(of(2000, 1), TranscriptAllowance { per_trial: 4000, includes_passed: true });
        assert_eq!(of(100_000, 100), TranscriptAllowance { per_trial: 60_000, includes_passed: false });
        assert_eq!(of(100_000, 50_000), TranscriptAllowance { per_trial: 0, includes_passed: false });
    }

    #[test]
    fn an_agents_markdown_is_formatted_and_harmless() {
        let step = |text: &str| render_step(&Step::Text(text.to_owned()), 60_000).html.into_string();
        let shown = step("## Done\n\n- <b>one</b>\n- [two](javascript:alert(1))");
        assert!(shown.contains("<h4>Done</h4><ul><li>&lt;b&gt;one&lt;/b&gt;</li>"), "{shown}");
        assert!(shown.contains("two (javascript:alert(1))") && !shown.contains("href"), "{shown}");
        // A text that is cut is shown as it was written.
        assert!(step(&format!("## Long\n\n{}", "x".repeat(9_000))).contains("<pre"));
        assert!(
            render_step(&Step::User("## Asked".to_owned()), 60_000).html.into_string().contains("## Asked")
        );
    }

    #[test]
    fn what_is_cut_is_marked_and_nothing_is_markup() {
        let call = ToolCall {
            name: "<b>".to_owned(),
            input: serde_json::json!("</script>"),
            result: Some("x".repeat(5_000_000)),
            ok: Some(false),
        };
        let RenderedStep { html, characters: spent } = render_step(&Step::Tool(call), 60_000);
        let html = html.into_string();
        assert!(html.contains("&lt;b&gt;") && html.contains("&lt;/script&gt;"), "{html:.300}");
        assert!(html.contains("✂ 4992000 more characters"));
        assert!(spent < 10_000 && html.len() < 20_000);
    }
}

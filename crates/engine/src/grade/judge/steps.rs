//! The steps of a run as a text of bounded length, for a judge to read.
//!
//! Every tool call stays, with its name, its arguments and its outcome. Results are shortened first, then the
//! agent's messages, then arguments. Only if there are still too many calls, some are shown by their names alone,
//! spread evenly over the run.

use std::collections::BTreeMap;

use super::evidence::TextShortener;
use practicum_core::model::{Step, ToolCall};

/// The longest text of one step.
const LONGEST_STEP_TEXT: usize = 8_000;
const LONGEST_NAME: usize = 200;

/// The shortest lengths to which texts are cut before whole steps are left out.
const SHORTEST_RESULT: usize = 20;
const SHORTEST_TEXT: usize = 120;
const SHORTEST_INPUT: usize = 60;

/// The limit from which on a shortened text keeps its end too and says how much is missing.
const KEEP_END_FROM: usize = 400;

/// The longest line that replaces several steps.
const LONGEST_LIST: usize = 240;

/// The bytes around the texts of a step: its labels and the notes of what was cut.
const STEP_OVERHEAD: usize = 28;
const CUT_MARK_BYTES: usize = 45;
const SHORT_CUT_MARK_BYTES: usize = '…'.len_utf8();

/// The steps of a run as a judge reads them.
pub struct StepsText {
    /// All steps that are shown.
    pub shown: String,
    /// The shown steps without the user's messages, which are no evidence of what the agent did.
    pub shown_of_agent: String,
    /// The number of calls that are shown by name only.
    pub calls_by_name: u64,
}

/// Renders the steps as texts of about `most` bytes.
pub fn render_steps(steps: &[Step], most: usize, scissors: &mut TextShortener) -> StepsText {
    let sizes: Vec<StepSize> = steps.iter().map(StepSize::from_step).collect();
    let limits = StepLimits::fitting(&sizes, most);
    let (mut shown, mut by_agent) = (String::new(), String::new());
    let mut gap = SkippedSteps::default();
    let mut calls_by_name = 0;
    for (at, (step, size)) in steps.iter().zip(&sizes).enumerate() {
        if !limits.shows(at, steps.len()) {
            gap.add(step);
            scissors.left_out += size.total_bytes();
            continue;
        }
        calls_by_name += gap.calls;
        let text = std::mem::take(&mut gap).describe() + &limits.render_step(step, scissors);
        shown.push_str(&text);
        if !matches!(step, Step::User(_)) {
            by_agent.push_str(&text);
        }
    }
    // Only extremely long names can exceed this limit.
    let most = most.saturating_add(most / 10);
    let by_agent = TextShortener::default().shorten(&by_agent, most);
    StepsText { shown: scissors.shorten(&shown, most), shown_of_agent: by_agent, calls_by_name }
}

/// How much of each text of a step is shown.
#[derive(Debug, Clone, Copy)]
struct StepLimits {
    result: usize,
    text: usize,
    input: usize,
    /// One step in this many is shown in full; 1 shows all.
    show_every: usize,
}

impl StepLimits {
    fn fitting(sizes: &[StepSize], most: usize) -> Self {
        let fits = |limits: StepLimits| limits.total(sizes) <= most;
        let mut limits = Self {
            result: LONGEST_STEP_TEXT,
            text: LONGEST_STEP_TEXT,
            input: LONGEST_STEP_TEXT,
            show_every: 1,
        };
        if fits(limits) {
            return limits;
        }
        limits.result = largest_fitting(SHORTEST_RESULT, |result| fits(Self { result, ..limits }));
        limits.text = largest_fitting(SHORTEST_TEXT, |text| fits(Self { text, ..limits }));
        limits.input = largest_fitting(SHORTEST_INPUT, |input| fits(Self { input, ..limits }));
        while !fits(limits) && limits.show_every < sizes.len() {
            limits.show_every *= 2;
        }
        limits
    }

    /// Says whether a step is shown. The last step always is.
    fn shows(&self, at: usize, steps: usize) -> bool {
        at.is_multiple_of(self.show_every) || at + 1 == steps
    }

    fn total(&self, sizes: &[StepSize]) -> usize {
        let shown = sizes.iter().enumerate().filter(|(at, _)| self.shows(*at, sizes.len()));
        let gap = if self.show_every > 1 { LONGEST_LIST + STEP_OVERHEAD } else { 0 };
        shown.map(|(_, size)| self.size_of(size) + gap).sum()
    }

    fn size_of(&self, size: &StepSize) -> usize {
        let mark_bytes =
            |limit: usize| if limit < KEEP_END_FROM { SHORT_CUT_MARK_BYTES } else { CUT_MARK_BYTES };
        let cut =
            |length: usize, limit: usize| if length > limit { limit + mark_bytes(limit) } else { length };
        STEP_OVERHEAD
            + cut(size.name, LONGEST_NAME)
            + cut(size.text, self.text)
            + cut(size.input, self.input)
            + cut(size.result, self.result)
    }

    fn render_step(&self, step: &Step, scissors: &mut TextShortener) -> String {
        match step {
            Step::User(text) => format!("user: {}\n", shorten_to(text, self.text, scissors)),
            Step::Text(text) => format!("agent: {}\n", shorten_to(text, self.text, scissors)),
            Step::Tool(call) => {
                let result = match (&call.result, call.ok) {
                    (Some(result), Some(false)) => {
                        format!("failed: {}", shorten_to(result, self.result, scissors))
                    }
                    (Some(result), _) => format!("gave: {}", shorten_to(result, self.result, scissors)),
                    (None, _) => "gave nothing that was seen".to_owned(),
                };
                let input = shorten_to(&call.input.to_string(), self.input, scissors);
                let name = shorten_to(&call.name, LONGEST_NAME, scissors);
                format!("tool {name} with {input}\n  {result}\n")
            }
        }
    }
}

/// Shortens a text to about `most` bytes.
fn shorten_to(text: &str, most: usize, scissors: &mut TextShortener) -> String {
    if text.len() <= most || most >= KEEP_END_FROM {
        return scissors.shorten(text, most);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let head = &text[..end];
    scissors.left_out += text.len() - head.len();
    format!("{head}…")
}

/// Finds the largest limit with which everything fits, or `least` if none does.
fn largest_fitting(least: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (least, LONGEST_STEP_TEXT);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The lengths of the texts of a step, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct StepSize {
    name: usize,
    text: usize,
    input: usize,
    result: usize,
}

impl StepSize {
    fn from_step(step: &Step) -> Self {
        match step {
            Step::User(text) | Step::Text(text) => Self { text: text.len(), ..Self::default() },
            Step::Tool(call) => Self {
                name: call.name.len(),
                input: length_as_json(&call.input),
                result: call.result.as_ref().map_or(0, String::len),
                text: 0,
            },
        }
    }

    fn total_bytes(&self) -> usize {
        self.name + self.text + self.input + self.result
    }
}

/// A writer that only counts bytes, so that no long text is built only to be measured.
struct ByteCounter(usize);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn length_as_json(value: &serde_json::Value) -> usize {
    let mut counter = ByteCounter(0);
    // Counting cannot fail, and a JSON value can always be written.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// The steps between two that are shown.
#[derive(Default)]
struct SkippedSteps<'s> {
    messages: u64,
    calls: u64,
    tools: BTreeMap<&'s str, ToolCallCounts>,
}

#[derive(Default)]
struct ToolCallCounts {
    all: u64,
    failed: u64,
}

impl<'s> SkippedSteps<'s> {
    fn add(&mut self, step: &'s Step) {
        match step {
            Step::User(_) | Step::Text(_) => self.messages += 1,
            Step::Tool(ToolCall { name, ok, .. }) => {
                self.calls += 1;
                let calls = self.tools.entry(name).or_default();
                calls.all += 1;
                calls.failed += u64::from(*ok == Some(false));
            }
        }
    }

    fn describe(self) -> String {
        let mut list = String::new();
        let mut tools: Vec<(&str, ToolCallCounts)> = self.tools.into_iter().collect();
        tools.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.all));
        for (at, (name, calls)) in tools.iter().enumerate() {
            let failed = if calls.failed > 0 { format!(" ({} failed)", calls.failed) } else { String::new() };
            let entry = format!("{name} ×{}{failed}", calls.all);
            if list.len() + entry.len() > LONGEST_LIST - 80 {
                list.push_str(&format!("{} other tools", tools.len() - at));
                break;
            }
            list.push_str(&entry);
            list.push_str(if at + 1 < tools.len() { ", " } else { "" });
        }
        let calls = (self.calls > 0).then(|| format!("calls shown as names only: {list}"));
        let messages = (self.messages > 0).then(|| format!("messages left out: {}", self.messages));
        let words: Vec<String> = calls.into_iter().chain(messages).collect();
        if words.is_empty() { String::new() } else { format!("[… {} …]\n", words.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(at: usize, name: &str, input: usize, result: usize) -> Step {
        Step::Tool(ToolCall {
            name: name.to_owned(),
            input: json!({"n": format!("call {at} {}", "x".repeat(input))}),
            result: Some("r".repeat(result)),
            ok: Some(at % 10 != 3),
        })
    }

    #[test]
    fn every_call_stays_while_results_are_shortened() {
        for (calls, input, result) in [(80, 20, 8_000), (80, 7_000, 100_000), (900, 100, 4_000)] {
            let mut steps: Vec<Step> = (0..calls).map(|at| call(at, "Bash", input, result)).collect();
            steps.insert(0, Step::User("Do it.".to_owned()));
            let mut scissors = TextShortener::default();
            let StepsText { shown: text, calls_by_name: by_name, .. } =
                render_steps(&steps, 200_000, &mut scissors);
            assert!(text.len() <= 220_000, "{}", text.len());
            assert_eq!(by_name, 0);
            assert!(scissors.left_out > 0);
            for at in 0..calls {
                assert!(
                    text.contains(&format!("tool Bash with {{\"n\":\"call {at} ")),
                    "call {at} of {calls}"
                );
            }
            assert_eq!(text.matches("  failed: ").count(), (0..calls).filter(|at| at % 10 == 3).count());
        }
    }

    #[test]
    fn too_many_calls_are_thinned_out_evenly_and_counted() {
        for many in [3_000, 10_000, 200_000] {
            let steps: Vec<Step> =
                (0..many).map(|at| call(at, if at % 2 == 0 { "Bash" } else { "Read" }, 50, 500)).collect();
            let mut scissors = TextShortener::default();
            let StepsText { shown: text, calls_by_name: by_name, .. } =
                render_steps(&steps, 200_000, &mut scissors);
            assert!(text.len() <= 220_000, "{}", text.len());
            let shown = text.matches("tool ").count() as u64;
            assert!(shown >= 150 && by_name + shown == many as u64, "{shown} {by_name} of {many}");
            assert!(text.contains("call 0 ") && text.contains(&format!("call {} ", many - 1)));
            assert!(text.contains("calls shown as names only: "), "{}", &text[..2000]);
            let middle = text.len() / 2;
            let at: usize = text[middle..]
                .split("call ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next())
                .and_then(|at| at.parse().ok())
                .expect("a call");
            assert!((many * 2 / 5..many * 3 / 5).contains(&at), "{at} is in the middle of {many}");
        }
    }

    #[test]
    fn short_runs_are_shown_as_they_are() {
        let steps = [Step::User("Go.".to_owned()), call(3, "Bash", 2, 4), Step::Text("Done.".to_owned())];
        let mut scissors = TextShortener::default();
        let StepsText { shown: text, calls_by_name: by_name, .. } =
            render_steps(&steps, 200_000, &mut scissors);
        assert_eq!(text, "user: Go.\ntool Bash with {\"n\":\"call 3 xx\"}\n  failed: rrrr\nagent: Done.\n");
        assert_eq!((by_name, scissors.left_out), (0, 0));
    }
}

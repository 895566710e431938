//! A badge that shows the result of a run on a web page.

use maud::{PreEscaped, html};
use serde::Serialize;

use crate::store::RunRow;
use practicum_core::model::RunStatus;
use practicum_skills::own_files::OWN_FILE_MARK;

/// A run in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Badge {
    pub label: String,
    pub message: String,
    pub tone: BadgeTone,
}

/// The colour of a badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadgeTone {
    Good,
    Bad,
    /// The run has no clear result.
    Unsure,
}

/// The document that the endpoint of shields.io reads, with exactly its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShieldsEndpoint {
    pub schema_version: u32,
    pub label: String,
    pub message: String,
    pub color: &'static str,
    pub is_error: bool,
}

impl Badge {
    pub fn from_run(label: &str, run: Option<&RunRow>) -> Self {
        let badge = |message: String, tone: BadgeTone| Self { label: label.to_owned(), message, tone };
        let Some(run) = run else { return badge("no runs".to_owned(), BadgeTone::Unsure) };
        let (passed, scored) = (run.examined.passed, run.examined.passed + run.examined.failed);
        let sample = run.sample.as_ref().map(|sample| format!(", {sample}")).unwrap_or_default();
        let counted = format!("{passed} of {scored} passed{sample}");
        match (scored, run.status()) {
            (0, _) => badge("nothing scored".to_owned(), BadgeTone::Unsure),
            // Answers from a script show nothing about a model.
            (_, Some(RunStatus::Passed)) if run.scripted => {
                badge(format!("{counted}, scripted"), BadgeTone::Unsure)
            }
            (_, Some(RunStatus::Passed)) => badge(counted, BadgeTone::Good),
            (_, Some(RunStatus::Failed)) => badge(counted, BadgeTone::Bad),
            (_, Some(RunStatus::Ungated)) => badge(format!("{counted}, no gate"), BadgeTone::Unsure),
            (_, Some(RunStatus::Incomplete | RunStatus::OverBudget | RunStatus::Interrupted) | None) => {
                badge(format!("{counted}, incomplete"), BadgeTone::Unsure)
            }
        }
    }

    pub fn shields(&self) -> ShieldsEndpoint {
        let color = match self.tone {
            BadgeTone::Good => "brightgreen",
            BadgeTone::Bad => "red",
            BadgeTone::Unsure => "lightgrey",
        };
        ShieldsEndpoint {
            schema_version: 1,
            label: self.label.clone(),
            message: self.message.clone(),
            color,
            is_error: self.tone == BadgeTone::Bad,
        }
    }

    pub fn svg(&self) -> String {
        let (label, message) = (printable(&self.label), printable(&self.message));
        let title = format!("{label}: {message}");
        let (left, right) = (width(&self.label), width(&self.message));
        let colour = match self.tone {
            BadgeTone::Good => "#2e7d32",
            BadgeTone::Bad => "#c62828",
            BadgeTone::Unsure => "#757575",
        };
        let image = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(left + right) height="20" role="img" aria-label=(title) {
                (PreEscaped(format!("\n{OWN_FILE_MARK}\n")))
                title { (title) }
                clipPath id="round" { rect width=(left + right) height="20" rx="3" {} }
                g clip-path="url(#round)" {
                    rect width=(left) height="20" fill="#424242" {}
                    rect x=(left) width=(right) height="20" fill=(colour) {}
                }
                g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" {
                    text x=(left / 2) y="14" { (label) }
                    text x=(left + right / 2) y="14" { (message) }
                }
            }
        };
        format!("{}\n", image.into_string())
    }
}

/// Estimates the width of a text in eleven-pixel Verdana.
fn width(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 7 } else { 12 }).sum::<usize>() + 10
}

/// Replaces the characters that XML cannot represent.
fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Outcome, TrialTotals};

    fn run(exit: Option<u8>, passed: u64, failed: u64) -> RunRow {
        RunRow {
            in_history: true,
            sample: None,
            id: "r".into(),
            started: String::new(),
            scripted: false,
            replayed: false,
            planned: 3,
            exit: exit.map(Outcome::from),
            ungated: exit == Some(0) && failed > 0,
            passed: 0,
            failed: 9,
            not_scored: 0,
            reused: 0,
            examined: TrialTotals { trials: passed + failed, passed, failed, ..TrialTotals::default() },
            cost_usd: None,
            seconds: None,
        }
    }

    #[test]
    fn badges() {
        for (run, message, tone) in [
            (None, "no runs", BadgeTone::Unsure),
            (Some(run(Some(0), 3, 0)), "3 of 3 passed", BadgeTone::Good),
            (
                Some(RunRow { scripted: true, ..run(Some(0), 3, 0) }),
                "3 of 3 passed, scripted",
                BadgeTone::Unsure,
            ),
            (
                Some(RunRow { sample: Some("sample of 3 of 9 cases".into()), ..run(Some(0), 3, 0) }),
                "3 of 3 passed, sample of 3 of 9 cases",
                BadgeTone::Good,
            ),
            (Some(run(Some(1), 2, 1)), "2 of 3 passed", BadgeTone::Bad),
            (Some(run(Some(0), 2, 1)), "2 of 3 passed, no gate", BadgeTone::Unsure),
            (Some(run(Some(3), 2, 0)), "2 of 2 passed, incomplete", BadgeTone::Unsure),
            (Some(run(None, 2, 0)), "2 of 2 passed, incomplete", BadgeTone::Unsure),
            (Some(run(Some(3), 0, 0)), "nothing scored", BadgeTone::Unsure),
        ] {
            let badge = Badge::from_run("notes", run.as_ref());
            assert_eq!((badge.message.as_str(), badge.tone), (message, tone));
        }
    }

    #[test]
    fn a_label_cannot_leave_its_place() {
        let svg = Badge::from_run("</text><script>alert(1)</script>\"'&\u{0}", None).svg();
        assert!(!svg.contains("<script") && !svg.contains('\0'), "{svg}");
        assert!(
            svg.contains("&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;\u{fffd}"),
            "{svg}"
        );
    }
}

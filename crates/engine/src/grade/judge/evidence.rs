//! The evidence of a trial as one text of bounded length, for a judge to read.

use std::sync::Arc;

use super::prompt::make_visible;
use super::quotes::QuotableText;
use super::steps::{self, StepsText};
use crate::workspace::pictures::JudgePicture;
use practicum_core::model::{
    FileChange, FileChangeKind, GivenFile, Observation, RelPath, ShortenedEvidence, Step, WorkspaceView,
};

/// One trial whose evidence a judge is to read.
pub struct TrialEvidence<'e> {
    /// The observation of the trial, with what the agent was asked.
    pub observation: &'e Observation,
    /// Background from the author of the case that the judge should know but does not grade.
    pub context: Option<&'e str>,
    pub workspace: &'e dyn WorkspaceView,
    /// The files that the agent was given to read.
    pub given_files: &'e [GivenFile],
}

/// Length limits of the parts. Files are shortened first, because the transcript also says what was done to them.
const LONGEST_FILE: usize = 20_000;
const MAX_FILES_TOTAL: usize = 100_000;
const MIN_FILES_TOTAL: usize = 20_000;
const MAX_STEPS_TOTAL: usize = 200_000;
const LONGEST_OUTPUT: usize = 60_000;
const LONGEST_CONTEXT: usize = 20_000;
const MAX_GIVEN_TOTAL: usize = 10_000;
const JUDGE_WINDOW: usize = 300_000;

/// The headings of the parts. A quote of a heading is no evidence.
const EVIDENCE_HEADINGS: [&str; 4] = [
    "## What happened",
    "## The last message of the agent",
    "## Files the agent made or changed",
    "## Files the agent was given, to be left as they are",
];

/// Length limits for grading a single text with the rest of the run as background.
const MAX_GRADED_TEXT: usize = 200_000;
const MAX_BACKGROUND: usize = 80_000;

/// A trial or a text as a judge reads it.
pub struct EvidenceText {
    /// The text that the judge is shown.
    shown: String,
    /// The part of `shown` that quotes may come from: what the agent said, did or made.
    evidence: String,
    /// Background that the judge is shown separately and that is no evidence.
    background: String,
    headings: &'static [&'static str],
    /// Lines that count as evidence only if they are quoted as a whole.
    whole_lines: Vec<String>,
    /// Pictures that the judge is shown beside the text.
    pictures: Arc<Vec<JudgePicture>>,
    /// How much was left out to fit the judge's window, if anything was.
    pub shortened: Option<ShortenedEvidence>,
}

impl EvidenceText {
    /// Makes a text in which quotes can be looked up. `edit` changes every part of it first.
    pub fn to_quotable(&self, edit: impl Fn(String) -> String) -> QuotableText {
        let quotable =
            QuotableText::with_partial_evidence(edit(self.shown.clone()), &edit(self.evidence.clone()));
        quotable
            .with_background(edit(self.background.clone()))
            .with_headings(self.headings)
            .with_pictures(Arc::clone(&self.pictures))
            .with_whole_lines(self.whole_lines.iter().map(|line| edit(line.clone())))
    }
}

impl TrialEvidence<'_> {
    pub(crate) fn to_text(&self) -> EvidenceText {
        let mut scissors = TextShortener::default();
        let StepsText { shown: steps, shown_of_agent: by_agent, calls_by_name } =
            steps::render_steps(&self.observation.steps, MAX_STEPS_TOTAL, &mut scissors);
        let for_files = if self.observation.files.is_empty() { 0 } else { MAX_FILES_TOTAL };
        let for_output = JUDGE_WINDOW.saturating_sub(steps.len() + for_files).max(LONGEST_OUTPUT);
        let output = scissors.shorten(&self.observation.output, for_output);
        let left = JUDGE_WINDOW.saturating_sub(steps.len() + output.len());
        let files = self.files(left.clamp(MIN_FILES_TOTAL, MAX_FILES_TOTAL), &mut scissors);
        let context = self.context.map(|context| {
            let context = scissors.shorten(context, LONGEST_CONTEXT);
            format!("## For your information, not graded\n{context}\n\n")
        });
        let [happened, said, made, was_given] = EVIDENCE_HEADINGS;
        let lay = |steps: &str| format!("{happened}\n{steps}\n{said}\n{output}\n\n{made}\n{files}\n");
        let mut shown = context.unwrap_or_default() + &lay(&steps);
        // The eval gave these files to the agent, so only their fate is the agent's doing.
        let line = |given: &GivenFile| make_visible(&format!("{}: {}\n", given.path, given.fate.name()));
        let whole_lines: Vec<String> = self.given_files.iter().map(line).collect();
        if !whole_lines.is_empty() {
            shown.push_str(&format!(
                "{was_given}\n{}",
                scissors.shorten(&whole_lines.concat(), MAX_GIVEN_TOTAL)
            ));
        }
        let is_call = |step: &&Step| matches!(step, Step::Tool(_));
        EvidenceText {
            shown: make_visible(&shown),
            evidence: make_visible(&lay(&by_agent)),
            background: String::new(),
            headings: &EVIDENCE_HEADINGS,
            whole_lines,
            pictures: Arc::default(),
            shortened: (scissors.left_out > 0).then(|| ShortenedEvidence {
                bytes_left_out: scissors.left_out as u64,
                calls: self.observation.steps.iter().filter(is_call).count() as u64,
                calls_by_name,
            }),
        }
    }

    /// Presents texts that the agent was asked to write as the text to grade, with the run as background. `shown`
    /// may label the texts; `evidence` is the texts without labels.
    pub(crate) fn to_graded_text(&self, shown: &str, evidence: &str) -> EvidenceText {
        let run = self.to_text();
        let mut scissors = TextShortener::default();
        let shown = make_visible(&scissors.shorten(shown, MAX_GRADED_TEXT));
        EvidenceText {
            shown,
            evidence: make_visible(&shorten_text(evidence, MAX_GRADED_TEXT)),
            background: shorten_text(&run.shown, MAX_BACKGROUND),
            headings: &[],
            whole_lines: Vec::new(),
            pictures: Arc::default(),
            shortened: scissors.shortened_evidence(),
        }
    }

    /// Presents pictures of files that the agent was asked to write as what is graded, with the run as background.
    pub(crate) fn to_graded_pictures(&self, pictures: Vec<JudgePicture>) -> EvidenceText {
        let line = |(at, picture): (usize, &JudgePicture)| format!("picture {}: {}\n", at + 1, picture.label);
        let list: String = pictures.iter().enumerate().map(line).collect();
        EvidenceText { pictures: Arc::new(pictures), ..self.to_graded_text(&list, "") }
    }

    fn files(&self, most: usize, scissors: &mut TextShortener) -> String {
        if self.observation.missing.files {
            return "unknown: this session was recorded without its files\n".to_owned();
        }
        if self.observation.files.is_empty() {
            return "none\n".to_owned();
        }
        let mut out = String::new();
        for file in &self.observation.files {
            let FileChange { path, change, bytes } = file;
            let word = match change {
                FileChangeKind::Created => "created",
                FileChangeKind::Changed => "changed",
                FileChangeKind::Deleted => "deleted",
            };
            out.push_str(&format!("### {path} ({word}, {bytes} bytes)\n"));
            if *change != FileChangeKind::Deleted {
                out.push_str(&scissors.shorten(&self.file(path), LONGEST_FILE));
                out.push('\n');
            }
            // Anything more would be cut away again.
            if out.len() > 2 * most {
                break;
            }
        }
        scissors.shorten(&out, most)
    }

    fn file(&self, path: &RelPath) -> String {
        match self.workspace.read(path) {
            Ok(Some(bytes)) => match std::str::from_utf8(&bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => "(not text)".to_owned(),
            },
            Ok(None) => "(gone)".to_owned(),
            Err(error) => format!("(cannot be read: {error})"),
        }
    }
}

/// Shortens texts and counts the bytes that are left out.
#[derive(Default)]
pub(super) struct TextShortener {
    pub left_out: usize,
}

impl TextShortener {
    /// Keeps the beginning and the end of a long text, with a note of what is missing between them.
    pub fn shorten(&mut self, text: &str, most: usize) -> String {
        if text.len() <= most {
            return text.to_owned();
        }
        let boundary = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let head = boundary(most * 2 / 3);
        let tail = boundary(text.len() - most / 3);
        self.left_out += tail - head;
        format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
    }
}

impl TextShortener {
    /// Says how much was left out, if anything was.
    fn shortened_evidence(&self) -> Option<ShortenedEvidence> {
        let bytes_left_out = self.left_out as u64;
        (bytes_left_out > 0).then_some(ShortenedEvidence { bytes_left_out, calls: 0, calls_by_name: 0 })
    }
}

/// Shortens a text to about `most` bytes, in the same way as `TextShortener`.
pub fn shorten_text(text: &str, most: usize) -> String {
    TextShortener::default().shorten(text, most)
}

/// Makes evidence of a text that has the judge's whole window to itself.
pub fn text_within_window(text: &str) -> EvidenceText {
    let mut scissors = TextShortener::default();
    let evidence = make_visible(&scissors.shorten(text, JUDGE_WINDOW));
    EvidenceText {
        shown: evidence.clone(),
        evidence,
        background: String::new(),
        headings: &[],
        whole_lines: Vec::new(),
        pictures: Arc::default(),
        shortened: scissors.shortened_evidence(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{AgentEnding, GivenFileFate};

    #[test]
    fn a_cut_keeps_head_and_tail_and_says_so() {
        let mut scissors = TextShortener::default();
        let text = format!("start{}end", "ü".repeat(1000));
        let short = scissors.shorten(&text, 100);
        assert!(
            short.starts_with("start") && short.ends_with("end") && short.contains("left out"),
            "{short}"
        );
        assert!(short.len() < 160);
        assert_eq!(scissors.left_out, text.len() + "\n[…  bytes left out …]\n".len() + 4 - short.len());
        assert_eq!(scissors.shorten("short", 100), "short");
    }

    /// A workspace in which every file is very long.
    struct Flood;

    impl WorkspaceView for Flood {
        fn read(&self, _path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
            Ok(Some(b"file ".repeat(10_000)))
        }

        fn exists(&self, _path: &RelPath) -> std::io::Result<bool> {
            Ok(true)
        }
    }

    #[test]
    fn files_give_way_before_the_transcript_and_the_whole_has_a_bound() {
        let file = |n: usize| FileChange {
            path: RelPath::new(&format!("f{n}")).expect("a path"),
            change: FileChangeKind::Created,
            bytes: 1,
        };
        let mut seen = Observation::with_ending(AgentEnding::Finished);
        seen.files = (0..100).map(file).collect();
        let lay_out = |seen: &Observation| {
            TrialEvidence { observation: seen, context: None, workspace: &Flood, given_files: &[] }.to_text()
        };
        let without_tool_output = lay_out(&seen);
        let in_files = |text: &str| text.len() - text.find("## Files").expect("files");
        assert!(
            (90_000..110_000).contains(&in_files(&without_tool_output.evidence)),
            "{}",
            in_files(&without_tool_output.evidence)
        );
        seen.steps = (0..1000).map(|n| Step::Text(format!("{n} {}", "step ".repeat(1000)))).collect();
        seen.output = "out ".repeat(100_000);
        let loud = lay_out(&seen);
        assert!((15_000..65_000).contains(&in_files(&loud.evidence)), "{}", in_files(&loud.evidence));
        let shortened = loud.shortened.expect("it was shortened");
        assert!(loud.evidence.len() < JUDGE_WINDOW + 30_000 && shortened.bytes_left_out > 1_000_000);
        for step in [0, 500, 999] {
            assert!(loud.evidence.contains(&format!("agent: {step} step")), "{step}");
        }
    }

    #[test]
    fn the_evidence_says_what_became_of_each_given_file() {
        let given = |path: &str, fate| GivenFile { path: RelPath::new(path).expect("a path"), fate };
        let given = [
            given("in/a", GivenFileFate::Unchanged),
            given("in/b", GivenFileFate::Changed),
            given("in/c", GivenFileFate::Deleted),
        ];
        let seen = Observation::with_ending(AgentEnding::Finished);
        let text =
            TrialEvidence { observation: &seen, context: None, workspace: &Flood, given_files: &given }
                .to_text()
                .shown;
        assert!(text.ends_with("as they are\nin/a: unchanged\nin/b: changed\nin/c: deleted\n"), "{text}");
    }
}

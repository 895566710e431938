//! What the judge may look at, as one text within bounds.

use super::prompt::visible;
use super::quotes::Quotable;
use super::steps::{self, StepsText};
use practicum_core::model::{
    Change, FileChange, Given, Observation, RelPath, ShortenedEvidence, Step, WorkspaceView,
};

/// One trial laid out for a judge.
pub struct Exhibit<'e> {
    /// What the agent was asked.
    pub observation: &'e Observation,
    /// What the case's author wants the judge to know without marking it.
    pub context: Option<&'e str>,
    pub workspace: &'e dyn WorkspaceView,
    /// The files that the agent was given to read.
    pub given: &'e [Given],
}

/// Bounds of the parts. Files give way first: the transcript says what was done to them.
const LONGEST_FILE: usize = 20_000;
const ALL_FILES: usize = 100_000;
const LEAST_FOR_FILES: usize = 20_000;
const ALL_STEPS: usize = 200_000;
const LONGEST_OUTPUT: usize = 60_000;
const LONGEST_CONTEXT: usize = 20_000;
const ALL_GIVEN: usize = 10_000;
const WINDOW: usize = 300_000;

/// The headings of the parts. What they say is no evidence.
const HEADINGS: [&str; 4] = [
    "## What happened",
    "## The last message of the agent",
    "## Files the agent made or changed",
    "## Files the agent was given, to be left as they are",
];

/// Bounds where one text is graded, and the rest of the run is shown beside it.
const ALL_GRADED: usize = 200_000;
const ALL_BACKGROUND: usize = 80_000;

/// A trial, or a text, as a judge reads it.
pub struct Laid {
    /// What is shown.
    shown: String,
    /// What a quote may come from: what the agent said, did or made. Part of what is shown.
    evidence: String,
    /// What the judge is to know beside it, shown apart. No evidence of anything.
    background: String,
    headings: &'static [&'static str],
    /// Lines that are evidence only as a whole.
    whole_lines: Vec<String>,
    /// What was left out to fit the judge's window, if anything was.
    pub shortened: Option<ShortenedEvidence>,
}

impl Laid {
    /// The same, for quotes to be looked up in, as `edit` changes it.
    pub fn quotable(&self, edit: impl Fn(String) -> String) -> Quotable {
        let quotable = Quotable::part_of(edit(self.shown.clone()), &edit(self.evidence.clone()));
        quotable
            .beside(edit(self.background.clone()))
            .with_headings(self.headings)
            .with_whole_lines(self.whole_lines.iter().map(|line| edit(line.clone())))
    }
}

impl Exhibit<'_> {
    pub fn lay_out(&self) -> Laid {
        let mut scissors = Scissors::default();
        let StepsText { shown: steps, by_agent, calls_by_name } =
            steps::lay_out(&self.observation.steps, ALL_STEPS, &mut scissors);
        let for_files = if self.observation.files.is_empty() { 0 } else { ALL_FILES };
        let for_output = WINDOW.saturating_sub(steps.len() + for_files).max(LONGEST_OUTPUT);
        let output = scissors.cut(&self.observation.output, for_output);
        let left = WINDOW.saturating_sub(steps.len() + output.len());
        let files = self.files(left.clamp(LEAST_FOR_FILES, ALL_FILES), &mut scissors);
        let context = self.context.map(|context| {
            let context = scissors.cut(context, LONGEST_CONTEXT);
            format!("## For your information, not to be marked\n{context}\n\n")
        });
        let [happened, said, made, was_given] = HEADINGS;
        let lay = |steps: &str| format!("{happened}\n{steps}\n{said}\n{output}\n\n{made}\n{files}\n");
        let mut shown = context.unwrap_or_default() + &lay(&steps);
        // That a file was given is the eval's doing; what became of it is the agent's.
        let line = |given: &Given| visible(&format!("{}: {}\n", given.path, given.fate.name()));
        let whole_lines: Vec<String> = self.given.iter().map(line).collect();
        if !whole_lines.is_empty() {
            shown.push_str(&format!("{was_given}\n{}", scissors.cut(&whole_lines.concat(), ALL_GIVEN)));
        }
        let is_call = |step: &&Step| matches!(step, Step::Tool(_));
        Laid {
            shown: visible(&shown),
            evidence: visible(&lay(&by_agent)),
            background: String::new(),
            headings: &HEADINGS,
            whole_lines,
            shortened: (scissors.left_out > 0).then(|| ShortenedEvidence {
                bytes_left_out: scissors.left_out as u64,
                calls: self.observation.steps.iter().filter(is_call).count() as u64,
                calls_by_name,
            }),
        }
    }

    /// Lays out texts that the agent was to write as what is graded, and the run as what is beside it.
    /// `shown` may label the texts; `evidence` is what they say themselves.
    pub fn lay_out_texts(&self, shown: &str, evidence: &str) -> Laid {
        let run = self.lay_out();
        let mut scissors = Scissors::default();
        let shown = visible(&scissors.cut(shown, ALL_GRADED));
        Laid {
            shown,
            evidence: visible(&cut(evidence, ALL_GRADED)),
            background: cut(&run.shown, ALL_BACKGROUND),
            headings: &[],
            whole_lines: Vec::new(),
            shortened: scissors.shortened(),
        }
    }

    fn files(&self, most: usize, scissors: &mut Scissors) -> String {
        if self.observation.files.is_empty() {
            return "none\n".to_owned();
        }
        let mut out = String::new();
        for file in &self.observation.files {
            let FileChange { path, change, bytes } = file;
            let word = match change {
                Change::Created => "created",
                Change::Changed => "changed",
                Change::Deleted => "deleted",
            };
            out.push_str(&format!("### {path} ({word}, {bytes} bytes)\n"));
            if *change != Change::Deleted {
                out.push_str(&scissors.cut(&self.file(path), LONGEST_FILE));
                out.push('\n');
            }
            // The rest would be cut away again.
            if out.len() > 2 * most {
                break;
            }
        }
        scissors.cut(&out, most)
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

/// Cuts, and counts what falls off.
#[derive(Default)]
pub(super) struct Scissors {
    pub left_out: usize,
}

impl Scissors {
    /// Head and tail of a long text, with a mark that something is missing between.
    pub fn cut(&mut self, text: &str, most: usize) -> String {
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

impl Scissors {
    /// What was left out of a text, if anything was.
    fn shortened(&self) -> Option<ShortenedEvidence> {
        let bytes_left_out = self.left_out as u64;
        (bytes_left_out > 0).then_some(ShortenedEvidence { bytes_left_out, calls: 0, calls_by_name: 0 })
    }
}

/// A text of at most about so many bytes, cut where others are.
pub fn cut(text: &str, most: usize) -> String {
    Scissors::default().cut(text, most)
}

/// A long text within the window of a judge, where nothing else has to fit.
pub fn within_window(text: &str) -> Laid {
    let mut scissors = Scissors::default();
    let evidence = visible(&scissors.cut(text, WINDOW));
    Laid {
        shown: evidence.clone(),
        evidence,
        background: String::new(),
        headings: &[],
        whole_lines: Vec::new(),
        shortened: scissors.shortened(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Ended, Fate};

    #[test]
    fn a_cut_keeps_head_and_tail_and_says_so() {
        let mut scissors = Scissors::default();
        let text = format!("start{}end", "ü".repeat(1000));
        let short = scissors.cut(&text, 100);
        assert!(
            short.starts_with("start") && short.ends_with("end") && short.contains("left out"),
            "{short}"
        );
        assert!(short.len() < 160);
        assert_eq!(scissors.left_out, text.len() + "\n[…  bytes left out …]\n".len() + 4 - short.len());
        assert_eq!(scissors.cut("short", 100), "short");
    }

    /// Every file is a flood.
    struct Flood;

    impl WorkspaceView for Flood {
        fn read(&self, _path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
            Ok(Some(b"file ".repeat(10_000)))
        }

        fn exists(&self, _path: &RelPath) -> std::io::Result<bool> {
            Ok(true)
        }

        fn folder(&self) -> Option<&std::path::Path> {
            None
        }
    }

    #[test]
    fn files_give_way_before_the_transcript_and_the_whole_has_a_bound() {
        let file = |n: usize| FileChange {
            path: RelPath::new(&format!("f{n}")).expect("a path"),
            change: Change::Created,
            bytes: 1,
        };
        let mut seen = Observation::ended(Ended::Finished);
        seen.files = (0..100).map(file).collect();
        let lay_out = |seen: &Observation| {
            Exhibit { observation: seen, context: None, workspace: &Flood, given: &[] }.lay_out()
        };
        let quiet = lay_out(&seen);
        let in_files = |text: &str| text.len() - text.find("## Files").expect("files");
        assert!((90_000..110_000).contains(&in_files(&quiet.evidence)), "{}", in_files(&quiet.evidence));
        seen.steps = (0..1000).map(|n| Step::Text(format!("{n} {}", "step ".repeat(1000)))).collect();
        seen.output = "out ".repeat(100_000);
        let loud = lay_out(&seen);
        assert!((15_000..65_000).contains(&in_files(&loud.evidence)), "{}", in_files(&loud.evidence));
        let shortened = loud.shortened.expect("it was shortened");
        assert!(loud.evidence.len() < WINDOW + 30_000 && shortened.bytes_left_out > 1_000_000);
        for step in [0, 500, 999] {
            assert!(loud.evidence.contains(&format!("agent: {step} step")), "{step}");
        }
    }

    #[test]
    fn what_became_of_each_given_file_is_told() {
        let given = |path: &str, fate| Given { path: RelPath::new(path).expect("a path"), fate };
        let given =
            [given("in/a", Fate::Unchanged), given("in/b", Fate::Changed), given("in/c", Fate::Deleted)];
        let seen = Observation::ended(Ended::Finished);
        let text =
            Exhibit { observation: &seen, context: None, workspace: &Flood, given: &given }.lay_out().shown;
        assert!(text.ends_with("as they are\nin/a: unchanged\nin/b: changed\nin/c: deleted\n"), "{text}");
    }
}

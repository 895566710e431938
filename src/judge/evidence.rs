//! What the judge may look at, as one text within bounds.

use super::prompt::visible;
use crate::model::{Change, FileChange, Given, Observation, RelPath, Step, WorkspaceView};

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
const LONGEST_STEP: usize = 8_000;
const ALL_STEPS: usize = 200_000;
const LONGEST_OUTPUT: usize = 60_000;
const LONGEST_CONTEXT: usize = 20_000;
const ALL_GIVEN: usize = 10_000;
const WINDOW: usize = 300_000;

/// A trial as a judge reads it.
pub struct Laid {
    pub text: String,
    /// How many bytes were left out to fit its window.
    pub left_out: usize,
}

impl Exhibit<'_> {
    pub fn lay_out(&self) -> Laid {
        let mut scissors = Scissors::default();
        let steps = self.steps(&mut scissors);
        let output = scissors.cut(&self.observation.output, LONGEST_OUTPUT);
        let left = WINDOW.saturating_sub(steps.len() + output.len());
        let files = self.files(left.clamp(LEAST_FOR_FILES, ALL_FILES), &mut scissors);
        let mut text = String::new();
        if let Some(context) = self.context {
            let context = scissors.cut(context, LONGEST_CONTEXT);
            text.push_str(&format!("## For your information, not to be marked\n{context}\n\n"));
        }
        text.push_str(&format!("## What happened\n{steps}\n"));
        text.push_str(&format!("## The last message of the agent\n{output}\n\n"));
        text.push_str(&format!("## Files the agent made or changed\n{files}\n"));
        if !self.given.is_empty() {
            let line = |given: &Given| format!("{}: {}\n", given.path, given.fate.name());
            let given: String = self.given.iter().map(line).collect();
            let given = scissors.cut(&given, ALL_GIVEN);
            text.push_str(&format!("## Files the agent was given, to be left as they are\n{given}"));
        }
        Laid { text: visible(&text), left_out: scissors.left_out }
    }

    fn steps(&self, scissors: &mut Scissors) -> String {
        let mut out = String::new();
        for step in &self.observation.steps {
            let text = match step {
                Step::User(text) => format!("user: {}\n", scissors.cut(text, LONGEST_STEP)),
                Step::Text(text) => format!("agent: {}\n", scissors.cut(text, LONGEST_STEP)),
                Step::Tool(call) => {
                    let result = match (&call.result, call.ok) {
                        (Some(result), Some(false)) => {
                            format!("failed: {}", scissors.cut(result, LONGEST_STEP))
                        }
                        (Some(result), _) => format!("gave: {}", scissors.cut(result, LONGEST_STEP)),
                        (None, _) => "gave nothing that was seen".to_owned(),
                    };
                    let input = scissors.cut(&call.input.to_string(), LONGEST_STEP);
                    let name = scissors.cut(&call.name, LONGEST_STEP);
                    format!("tool {name} with {input}\n  {result}\n")
                }
            };
            out.push_str(&text);
        }
        scissors.cut(&out, ALL_STEPS)
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
struct Scissors {
    left_out: usize,
}

impl Scissors {
    /// Head and tail of a long text, with a mark that something is missing between.
    fn cut(&mut self, text: &str, most: usize) -> String {
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

/// A text of at most about so many bytes, cut where others are.
pub fn cut(text: &str, most: usize) -> String {
    Scissors::default().cut(text, most)
}

/// A long text within the window of a judge, where nothing else has to fit.
pub fn within_window(text: &str) -> Laid {
    let mut scissors = Scissors::default();
    let text = visible(&scissors.cut(text, WINDOW));
    Laid { text, left_out: scissors.left_out }
}

/// A text in which quotes are looked up, line breaks and repeated spaces aside.
pub struct Quotable {
    pub text: String,
    flat: String,
}

impl Quotable {
    pub fn new(text: String) -> Self {
        let flat = flat(&text);
        Self { text, flat }
    }

    pub fn has(&self, quote: &str) -> bool {
        let quote = flat(&visible(quote));
        !quote.is_empty() && self.flat.contains(&quote)
    }
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Ended, Fate};

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
        assert!((90_000..110_000).contains(&in_files(&quiet.text)), "{}", in_files(&quiet.text));
        seen.steps = (0..1000).map(|n| Step::Text(format!("{n} {}", "step ".repeat(1000)))).collect();
        seen.output = "out ".repeat(100_000);
        let loud = lay_out(&seen);
        assert!((15_000..45_000).contains(&in_files(&loud.text)), "{}", in_files(&loud.text));
        assert!(loud.text.len() < WINDOW + 10_000 && loud.left_out > 1_000_000);
        assert!(loud.text.contains("agent: 0 step") && loud.text.contains("agent: 999 step"));
    }

    #[test]
    fn what_became_of_each_given_file_is_told() {
        let given = |path: &str, fate| Given { path: RelPath::new(path).expect("a path"), fate };
        let given =
            [given("in/a", Fate::Unchanged), given("in/b", Fate::Changed), given("in/c", Fate::Deleted)];
        let seen = Observation::ended(Ended::Finished);
        let text =
            Exhibit { observation: &seen, context: None, workspace: &Flood, given: &given }.lay_out().text;
        assert!(text.ends_with("as they are\nin/a: unchanged\nin/b: changed\nin/c: deleted\n"), "{text}");
    }

    #[test]
    fn quotes() {
        let record = Quotable::new(visible("the record\n  says \u{1b}[1mhello"));
        for (quote, expected) in [
            ("record says", true),
            ("says \u{1b}[1mhello", true),
            ("says \\u{1b}[1mhello", true),
            ("says hello", false),
            ("", false),
            (" \n", false),
        ] {
            assert_eq!(record.has(quote), expected, "{quote:?}");
        }
    }
}

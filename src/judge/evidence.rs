//! What the judge may look at, as one text within bounds.

use crate::model::{Change, FileChange, Observation, RelPath, Step, WorkspaceView};

/// One trial laid out for a judge.
pub struct Exhibit<'e> {
    /// What the agent was asked.
    pub observation: &'e Observation,
    /// What the case's author wants the judge to know without marking it.
    pub context: Option<&'e str>,
    pub workspace: &'e dyn WorkspaceView,
    /// What became of the read-only files it was given, where that is worth telling.
    pub fixture_notes: &'e [String],
}

/// Bounds of the parts. Artifacts give way first: the transcript says what was done to them.
const LONGEST_FILE: usize = 20_000;
const ALL_FILES: usize = 100_000;
const LONGEST_STEP: usize = 8_000;
const ALL_STEPS: usize = 200_000;
const LONGEST_OUTPUT: usize = 60_000;

impl Exhibit<'_> {
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some(context) = self.context {
            out.push_str(&format!("## For your information, not to be marked\n{context}\n\n"));
        }
        out.push_str(&format!("## What happened\n{}\n", self.steps()));
        out.push_str(&format!(
            "## The last message of the agent\n{}\n\n",
            cut(&self.observation.output, LONGEST_OUTPUT)
        ));
        out.push_str(&format!("## Files the agent made or changed\n{}\n", self.files()));
        for note in self.fixture_notes {
            out.push_str(note);
            out.push('\n');
        }
        out
    }

    fn steps(&self) -> String {
        let mut out = String::new();
        for step in &self.observation.steps {
            let text = match step {
                Step::User(text) => format!("user: {}\n", cut(text, LONGEST_STEP)),
                Step::Text(text) => format!("agent: {}\n", cut(text, LONGEST_STEP)),
                Step::Tool(call) => {
                    let result = match (&call.result, call.ok) {
                        (Some(result), Some(false)) => format!("failed: {}", cut(result, LONGEST_STEP)),
                        (Some(result), _) => format!("gave: {}", cut(result, LONGEST_STEP)),
                        (None, _) => "gave nothing that was seen".to_owned(),
                    };
                    format!(
                        "tool {} with {}\n  {result}\n",
                        call.name,
                        cut(&call.input.to_string(), LONGEST_STEP)
                    )
                }
            };
            out.push_str(&text);
        }
        cut(&out, ALL_STEPS)
    }

    fn files(&self) -> String {
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
            if *change != Change::Deleted && out.len() < ALL_FILES {
                out.push_str(&self.file(path));
                out.push('\n');
            }
        }
        cut(&out, ALL_FILES + LONGEST_FILE)
    }

    fn file(&self, path: &RelPath) -> String {
        match self.workspace.read(path) {
            Ok(Some(bytes)) => match std::str::from_utf8(&bytes) {
                Ok(text) => cut(text, LONGEST_FILE),
                Err(_) => "(not text)".to_owned(),
            },
            Ok(None) => "(gone)".to_owned(),
            Err(error) => format!("(cannot be read: {error})"),
        }
    }
}

/// Head and tail of a long text, with a mark that something is missing between.
fn cut(text: &str, most: usize) -> String {
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
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_keeps_head_and_tail_and_says_so() {
        let text = format!("start{}end", "ü".repeat(1000));
        let short = cut(&text, 100);
        assert!(
            short.starts_with("start") && short.ends_with("end") && short.contains("left out"),
            "{short}"
        );
        assert!(short.len() < 160);
        assert_eq!(cut("short", 100), "short");
    }
}

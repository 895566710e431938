//! Recognises the text of a skill in what a model receives.
//!
//! A line counts only if it came to the model as the result of a tool, and if it stands nowhere else: not in the
//! user's prompt, not in what the model wrote before, not in the text of another skill.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use aho_corasick::AhoCorasick;
use serde_json::Value;

use crate::llm::{ContentBlock, ModelRequest, Role};
use practicum_core::model::{SkillTextFinding, TextReached};
use practicum_skills::skill::Skill;

/// The least number of letters and digits of a line by which a skill is recognised.
const SHORTEST_LINE: usize = 16;
/// The least number of letters and digits that lines must have together to show a part of a skill.
const LEAST_PART: usize = 40;
/// A text with fewer letters and digits than this is too common to recognise anything by.
const LEAST_TEXT: usize = 6;
/// This many lines of a skill are enough, however long it is.
const ENOUGH_LINES: usize = 5;
/// The most lines of a skill that are looked for.
const MOST_LINES: usize = 2_000;
/// The length up to which a line is looked for. Nobody has the beginning of such a line and not the rest.
const LONGEST_LINE: usize = 500;

/// The lines by which the text of one skill is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillTextLines {
    /// All names of the skill in the workspace.
    pub names: Vec<String>,
    lines: Vec<String>,
    /// Whether the text is so short that only all of it together counts.
    is_short: bool,
}

impl SkillTextLines {
    /// Takes the lines of a skill's body. The frontmatter does not count: agents tell it to the model anyway.
    pub fn new(names: Vec<String>, skill: &Skill) -> Self {
        let told = normalise(&format!("{} {}", skill.name, skill.description.as_deref().unwrap_or_default()));
        // Agents replace variables and commands, and headings are often the same in many files.
        let is_fixed = |line: &&str| !line.contains('$') && !line.contains("!`");
        let all: Vec<String> = skill
            .body
            .lines()
            .filter(is_fixed)
            .filter(|line| !line.trim_start().starts_with("```"))
            .map(|line| normalise(line).chars().take(LONGEST_LINE).collect::<String>())
            .filter(|line| !line.is_empty() && !told.contains(line.as_str()))
            .take(MOST_LINES)
            .collect();
        let is_heading: HashSet<String> =
            skill.body.lines().filter(|line| line.starts_with('#')).map(normalise).collect();
        let is_long = |line: &&String| line.chars().count() >= SHORTEST_LINE && !is_heading.contains(*line);
        let long: Vec<String> = all.iter().filter(is_long).cloned().collect();
        let is_short = weight(&long) < LEAST_PART;
        let mut lines = if is_short { all } else { long };
        lines.sort_unstable();
        lines.dedup();
        if weight(&lines) < LEAST_TEXT {
            lines.clear();
        }
        Self { names, lines, is_short }
    }
}

fn weight(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).sum()
}

/// Keeps letters and digits only, in lower case. Line numbers, colours, line breaks and quotation marks that a
/// program adds then make no difference.
pub(super) fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        // A colour of a terminal: ESC [ … m.
        if char == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            while chars.next().is_some_and(|char| !char.is_ascii_alphabetic()) {}
        } else if char.is_alphanumeric() {
            out.extend(char.to_lowercase());
        }
    }
    out
}

/// Where a text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextSource {
    /// The user or the model wrote it, so it shows nothing.
    Written,
    /// The model received it as the result of a tool.
    ToolResult,
    /// The model received it in another way, for example in its system prompt.
    Elsewhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    NotSeen,
    Written,
    Elsewhere,
    Shown,
}

/// A watch on the texts that a model receives, for the lines of skills.
#[derive(Debug)]
pub struct SkillTextWatch {
    skills: Vec<SkillTextLines>,
    /// For each pattern of the automaton: the skill, and the state of the line.
    lines: Vec<(usize, LineState)>,
    automaton: Option<AhoCorasick>,
    /// The blocks of requests that were read. Each request repeats the conversation before it.
    seen_blocks: HashSet<u64>,
    /// Whether a request could not be read.
    incomplete: bool,
}

/// How much of a skill's text was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShownPart {
    Nothing,
    Part,
    Enough,
}

impl SkillTextWatch {
    /// Watches for these skills. Lines that several of them have show none of them.
    pub fn new(mut skills: Vec<SkillTextLines>) -> Self {
        // Each line is there once in its skill. With hundreds of skills, comparing each with each would take seconds.
        let mut owners: HashMap<String, usize> = HashMap::new();
        for line in skills.iter().flat_map(|skill| &skill.lines) {
            *owners.entry(line.clone()).or_default() += 1;
        }
        for skill in &mut skills {
            skill.lines.retain(|line| owners.get(line) == Some(&1));
        }
        let lines = skills
            .iter()
            .enumerate()
            .flat_map(|(at, skill)| skill.lines.iter().map(move |_| (at, LineState::NotSeen)))
            .collect();
        // Too many lines for one automaton would only mean that nothing is known of the texts.
        let automaton = AhoCorasick::new(skills.iter().flat_map(|skill| &skill.lines)).ok();
        Self { skills, lines, automaton, seen_blocks: HashSet::new(), incomplete: false }
    }

    /// Gives the skills that are watched for.
    pub fn skills(&self) -> &[SkillTextLines] {
        &self.skills
    }

    /// Reads a text. Gives for each skill how many of its lines the text has that the model did not know before.
    pub fn read_text(&mut self, text: &str, source: TextSource) -> Vec<usize> {
        let mut counts = vec![0; self.skills.len()];
        let Some(automaton) = &self.automaton else { return counts };
        let text = normalise(text);
        let mut found = HashSet::new();
        for line in automaton.find_overlapping_iter(&text).map(|found| found.pattern().as_usize()) {
            let (skill, state) = &mut self.lines[line];
            *state = match (*state, source) {
                (LineState::NotSeen, TextSource::Written) => LineState::Written,
                (LineState::NotSeen, TextSource::Elsewhere) => LineState::Elsewhere,
                (LineState::NotSeen | LineState::Elsewhere, TextSource::ToolResult) => LineState::Shown,
                (state, _) => state,
            };
            if *state != LineState::Written && found.insert(line) {
                counts[*skill] += 1;
            }
        }
        counts
    }

    /// Reads every text in a JSON value, for example the input of a tool.
    pub fn read_value(&mut self, value: &Value, source: TextSource) {
        match value {
            Value::String(text) => {
                self.read_text(text, source);
            }
            Value::Array(items) => items.iter().for_each(|item| self.read_value(item, source)),
            Value::Object(fields) => fields.values().for_each(|item| self.read_value(item, source)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Reads a request to a model.
    pub fn read_request(&mut self, request: &ModelRequest) {
        if let Some(text) = &request.system {
            self.read_block(text, TextSource::Elsewhere);
        }
        // Consecutive messages of one role are one turn. Text beside the result of a tool belongs to the result: so
        // Claude Code gives the model the text of a skill.
        for turn in request.messages.chunk_by(|one, next| one.role == next.role) {
            let blocks = || turn.iter().flat_map(|message| &message.blocks);
            let brings_results = blocks().any(|block| matches!(block, ContentBlock::ToolResult { .. }));
            let source = match turn.first().map(|message| message.role) {
                Some(Role::Assistant) => TextSource::Written,
                _ if brings_results => TextSource::ToolResult,
                _ => TextSource::Elsewhere,
            };
            for block in blocks() {
                match block {
                    ContentBlock::Text { text } => self.read_block(text, source),
                    ContentBlock::ToolResult { content, .. } => self.read_block(content, source),
                    ContentBlock::ToolUse { input, .. } => self.read_value(input, TextSource::Written),
                    ContentBlock::Thinking { .. } | ContentBlock::Image { .. } => {}
                }
            }
        }
    }

    /// Notes that a request could not be read, so that a text that was not seen may have been sent.
    pub fn note_unreadable_request(&mut self) {
        self.incomplete = true;
    }

    fn read_block(&mut self, text: &str, source: TextSource) {
        let mut hasher = DefaultHasher::new();
        (text, source).hash(&mut hasher);
        if self.seen_blocks.insert(hasher.finish()) {
            self.read_text(text, source);
        }
    }

    /// Says how much of a skill's text came in tool results. `None` if the skill has no lines of its own.
    pub fn shown_part(&self, skill: usize) -> Option<ShownPart> {
        self.part_of(skill, |state| state == LineState::Shown)
    }

    fn part_of(&self, skill: usize, counts: impl Fn(LineState) -> bool) -> Option<ShownPart> {
        let patterns = self.skills.iter().flat_map(|skill| &skill.lines);
        let own = patterns.zip(&self.lines).filter(|(_, (owner, _))| *owner == skill);
        let (mut all, mut shown, mut all_weight, mut shown_weight) = (0, 0, 0, 0);
        for (line, (_, state)) in own.filter(|(_, (_, state))| *state != LineState::Written) {
            let weight = line.chars().count();
            all += 1;
            all_weight += weight;
            if counts(*state) {
                shown += 1;
                shown_weight += weight;
            }
        }
        let is_short = self.skills[skill].is_short;
        let enough = shown == all || (!is_short && (shown >= ENOUGH_LINES || 2 * shown_weight >= all_weight));
        (all > 0).then_some(match shown_weight {
            0 => ShownPart::Nothing,
            _ if enough => ShownPart::Enough,
            LEAST_PART.. if !is_short => ShownPart::Part,
            _ => ShownPart::Nothing,
        })
    }

    /// Says what a record of everything that the model received shows about each skill, `record` being its name.
    /// A skill without lines of its own is left out.
    pub fn findings(&self, record: &str) -> Vec<SkillTextFinding> {
        let finding = |(at, skill): (usize, &SkillTextLines)| {
            let anywhere = |state| matches!(state, LineState::Shown | LineState::Elsewhere);
            let unknown = |why: &str| TextReached::Unknown { why: why.to_owned() };
            let reached = match (self.shown_part(at)?, self.part_of(at, anywhere)?) {
                (ShownPart::Enough, _) => TextReached::Yes { seen_in: record.to_owned() },
                (ShownPart::Part, _) => unknown("the model received only a few lines of its text"),
                (_, ShownPart::Enough) => unknown("the model received its text, but not from a tool"),
                _ if self.incomplete => unknown("a request to the model could not be read"),
                _ => TextReached::No,
            };
            Some(SkillTextFinding { names: skill.names.clone(), reached })
        };
        self.skills.iter().enumerate().filter_map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ChatMessage;

    const LONG: &str = "# Greeter\n\n1. Look the person up in the address book first.\n2. Answer with an ahoy and the name of the person.\n3. Add the weather in the harbour if it is known to you.\n";

    fn text(name: &str, body: &str) -> SkillTextLines {
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!("---\nname: {name}\ndescription: Greets people by name.\n---\n\n{body}");
        std::fs::write(folder.path().join("SKILL.md"), file).expect("write");
        SkillTextLines::new(vec![name.to_owned()], &Skill::read(folder.path()).expect("a skill"))
    }

    /// Building the search took hours for a skill with a file in base64.
    #[test]
    fn a_very_long_line_does_not_stop_a_run() {
        let body = "a".repeat(1_000_000);
        let mut watch = SkillTextWatch::new(vec![text("greeter", &body)]);
        assert_eq!(watch.read_text(&body, TextSource::ToolResult), [1]);
    }

    #[test]
    fn a_text_is_recognised_however_a_program_prints_it() {
        let numbered = "1:# Greeter\n3:1. Look the person up in the address book first.\n4:2. Answer with an ahoy and the name of the person.";
        let coloured = "\u{1b}[1;32m1. Look the person\u{1b}[0m up in the address\nbook first.\n2. ANSWER WITH an ahoy and the name of the \"person\".";
        for (body, shown, expected) in [
            (LONG, LONG, ShownPart::Enough),
            (LONG, numbered, ShownPart::Enough),
            (LONG, coloured, ShownPart::Enough),
            (LONG, "2. Answer with an ahoy and the name of the person.", ShownPart::Nothing),
            (LONG, "name: greeter\ndescription: Greets people by name.\n# Greeter", ShownPart::Nothing),
            (LONG, "", ShownPart::Nothing),
            ("Say ahoy.\n", "     6\tSay ahoy.", ShownPart::Enough),
            ("Say ahoy.\n", "ahoy", ShownPart::Nothing),
            ("Say ahoy.\nBe brief.\n", "Say ahoy.", ShownPart::Nothing),
        ] {
            let mut watch = SkillTextWatch::new(vec![text("greeter", body)]);
            watch.read_text(shown, TextSource::ToolResult);
            assert_eq!(watch.shown_part(0), Some(expected), "{body:?} in {shown:?}");
        }
        // A text without words of its own proves nothing, and neither does one that another skill has, too.
        for skills in [vec![text("greeter", "Ok.\n")], vec![text("greeter", LONG), text("waver", LONG)]] {
            let watch = SkillTextWatch::new(skills);
            assert_eq!((watch.shown_part(0), watch.findings("x").len()), (None, 0));
        }
    }

    #[test]
    fn a_request_shows_a_text_only_as_the_result_of_a_tool() {
        let result = |content: &str| ChatMessage {
            role: Role::User,
            blocks: vec![ContentBlock::ToolResult {
                tool_use_id: "t".into(),
                content: content.into(),
                is_error: false,
            }],
        };
        let wrote = |content: &str| ChatMessage {
            role: Role::Assistant,
            blocks: vec![ContentBlock::ToolUse {
                id: "t".into(),
                name: "Bash".into(),
                input: serde_json::json!({"command": content}),
            }],
        };
        let user = ChatMessage::user;
        for (system, messages, expected) in [
            (None, vec![user("hi"), wrote("cat x"), result("Say ahoy.")], "yes"),
            // Claude Code puts the text of a skill beside the result of its tool.
            (None, vec![user("hi"), wrote("x"), result("Launching"), user("Say ahoy.")], "yes"),
            (None, vec![user("hi"), wrote("cat x"), result("nothing")], "no"),
            (None, vec![user("hi")], "no"),
            (Some("Say ahoy."), vec![user("hi")], "unknown"),
            (None, vec![user("Say ahoy.")], "unknown"),
            // The model wrote the line itself, so nothing is known about it.
            (None, vec![user("hi"), wrote("echo Say ahoy."), result("Say ahoy.")], "nothing"),
        ] {
            let mut watch = SkillTextWatch::new(vec![text("greeter", "Say ahoy.\n")]);
            let request = ModelRequest {
                model: String::new(),
                system: system.map(str::to_owned),
                messages: messages.clone(),
                tools: Vec::new(),
                tool_choice: None,
                max_tokens: None,
                temperature: None,
                stream: false,
            };
            watch.read_request(&request);
            watch.read_request(&request);
            let findings = watch.findings("a request");
            let word = match findings.first().map(|finding| &finding.reached) {
                Some(TextReached::Yes { .. }) => "yes",
                Some(TextReached::No) => "no",
                Some(TextReached::Unknown { .. }) => "unknown",
                Some(TextReached::NotInStream) => "stream",
                None => "nothing",
            };
            assert_eq!(word, expected, "{system:?} {messages:?}");
        }
    }
}

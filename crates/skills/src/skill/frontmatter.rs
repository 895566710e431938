//! Reads frontmatter as agents read it.
//!
//! In: the text above a body. Out: its keys and values, and a warning for each value that is not valid YAML.
//! Never: refuses what an agent reads.

use std::path::Path;

use practicum_core::model::{Diagnostics, Span};
use practicum_core::tree::{MapEntry, NodeData, SourceFile, SourceSyntax, TreeNode};

/// Splits a text into the part between the leading `---` lines and the rest.
pub fn split_frontmatter(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(start) = end_of_opening_fence(text) else { return (None, text) };
    let inside = &text[start..];
    let mut at = 0;
    for line in inside.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(&inside[..at]), &inside[at + line.len()..]);
        }
        at += line.len();
    }
    (None, text)
}

/// Finds where the line after an opening fence begins; `None` if the text opens with no fence. Agents allow spaces
/// after the dashes.
pub fn end_of_opening_fence(text: &str) -> Option<usize> {
    let end = text.find('\n')? + 1;
    (text.starts_with("---") && text[..end].trim_end() == "---").then_some(end)
}

/// Reads a frontmatter, with or without its opening fence; spans point into `text`. Valid YAML is read as YAML.
/// Otherwise each key is read on its own, and a value that is not valid YAML is read as literal text, as Claude
/// Code, Codex and opencode do; each gets a warning. `None`, with errors, if agents could not find the name and
/// the description either.
pub fn read_frontmatter(file: &Path, text: &str, diagnostics: &mut Diagnostics) -> Option<TreeNode> {
    let mut errors = Diagnostics::default();
    let source = SourceFile::parse(file, text.to_owned(), SourceSyntax::Yaml, &mut errors);
    if let Some(source) = source.filter(|_| !errors.has_errors()) {
        return Some(source.root);
    }
    let mut warnings = Diagnostics::default();
    match read_each_key(file, text, &mut warnings) {
        Some(root) => {
            diagnostics.extend(warnings);
            Some(root)
        }
        None => {
            diagnostics.extend(errors);
            None
        }
    }
}

/// Removes the lines of one top-level key from a frontmatter and keeps everything else.
pub fn remove_key(front: &str, key: &str) -> String {
    let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let outermost = front.lines().find(|line| is_said(line)).map_or(0, indent_of);
    let mut out = String::with_capacity(front.len());
    let mut leaving_out = false;
    for line in front.lines() {
        if is_said(line) && indent_of(line) <= outermost {
            let said = line.split(':').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            leaving_out = said == key;
        }
        if !leaving_out {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// A key at the beginning of a line, with all lines up to the next key.
struct KeyBlock<'t> {
    key: &'t str,
    text: &'t str,
    start: usize,
}

impl KeyBlock<'_> {
    fn key_span(&self) -> Span {
        Span::new(self.start, self.start + self.key.len())
    }

    /// Gives the text after the colon on the key's own line, and the lines below.
    fn value_and_rest(&self) -> (&str, &str) {
        let after = &self.text[self.key.len() + 1..];
        after.split_once('\n').map_or((after.trim(), ""), |(value, rest)| (value.trim(), rest))
    }
}

fn read_each_key(file: &Path, text: &str, warnings: &mut Diagnostics) -> Option<TreeNode> {
    let mut entries: Vec<MapEntry> = Vec::new();
    for block in split_key_blocks(text)? {
        let value = read_block(file, &block, warnings)?;
        if let Some(earlier) = entries.iter().position(|entry| entry.key == block.key) {
            entries.remove(earlier);
            let message = format!("\"{}\" stands here a second time; {DIFFER}", block.key);
            let help = "remove one of the two";
            warnings.warning_with_help("frontmatter-not-yaml", block.key_span(), message, help);
        }
        entries.push(MapEntry { key: block.key.to_owned(), key_span: block.key_span(), value });
    }
    let end = text.len();
    Some(TreeNode { span: Span::new(0, end), data: NodeData::Map(entries) })
}

/// Splits a text into key blocks. `None` if a line belongs to no key.
fn split_key_blocks(text: &str) -> Option<Vec<KeyBlock<'_>>> {
    let mut found: Vec<KeyBlock<'_>> = Vec::new();
    let mut at = end_of_opening_fence(text).unwrap_or(0);
    for line in text[at..].split_inclusive('\n') {
        let goes_on = line.starts_with([' ', '\t', '#', '\r', '\n']) || line.starts_with("- ");
        match (key_of_line(line), found.last_mut()) {
            (Some(key), _) => found.push(KeyBlock { key, text: line, start: at }),
            (None, Some(block)) if goes_on => block.text = &text[block.start..at + line.len()],
            (None, None) if goes_on && line.trim_start().starts_with('#') || line.trim().is_empty() => {}
            (None, _) => return None,
        }
        at += line.len();
    }
    (!found.is_empty()).then_some(found)
}

fn key_of_line(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    (is_name && (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))).then_some(key)
}

const DIFFER: &str = "agents differ in how they read it, and some leave the skill out";

fn read_block(file: &Path, block: &KeyBlock<'_>, warnings: &mut Diagnostics) -> Option<TreeNode> {
    let mut errors = Diagnostics::default();
    if let Some(value) = parse_block_value(file, block.text, block.start, &mut errors) {
        return Some(value);
    }
    let problem = errors.iter().next();
    let why = problem.map_or_else(|| "not valid YAML".to_owned(), |problem| problem.message.clone());
    let at = problem.and_then(|problem| problem.span).map_or(block.start, |span| block.start + span.start);
    let message = format!("\"{}\" is {}; {DIFFER}", block.key, why);
    let (value, rest) = block.value_and_rest();
    let with_lines = |change: &dyn Fn(&str) -> String| {
        let lines: String = rest.lines().map(|line| format!("\n{}", change(line))).collect();
        let text = format!("{}: {value}{lines}", block.key);
        parse_block_value(file, &text, block.start, &mut Diagnostics::default())
    };
    let (read, help) = if rest.contains('\t')
        && let Some(value) = with_lines(&|line| line.replace('\t', "    "))
    {
        (value, "indent with spaces".to_owned())
    } else if value.is_empty()
        && let Some(value) = with_lines(&quote_line_value)
    {
        (value, "put the value in quotes".to_owned())
    } else {
        let read = literal_text(value, rest)?;
        let help = quoting_help(block.key, &read);
        (TreeNode { span: block.key_span(), data: NodeData::Text(read) }, help)
    };
    warnings.warning_with_help("frontmatter-not-yaml", Span::new(at, at), message, help);
    Some(read)
}

/// Reads the value of a block that is valid YAML on its own.
fn parse_block_value(file: &Path, text: &str, start: usize, errors: &mut Diagnostics) -> Option<TreeNode> {
    let source = SourceFile::parse(file, text.to_owned(), SourceSyntax::Yaml, errors)?;
    let NodeData::Map(mut entries) = source.root.data else { return None };
    if errors.has_errors() || entries.len() != 1 {
        return None;
    }
    let mut value = entries.pop()?.value;
    shift_spans(&mut value, start);
    Some(value)
}

/// Moves the spans of a part to their positions in the whole.
fn shift_spans(node: &mut TreeNode, by: usize) {
    let moved = |span: Span| Span::new(span.start + by, span.end + by);
    node.span = moved(node.span);
    match &mut node.data {
        NodeData::List(items) => items.iter_mut().for_each(|item| shift_spans(item, by)),
        NodeData::Map(entries) => {
            for entry in entries {
                entry.key_span = moved(entry.key_span);
                shift_spans(&mut entry.value, by);
            }
        }
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) | NodeData::Text(_) => {}
    }
}

/// Characters that have a meaning in YAML, but none in the value of a line that agents put in quotes.
const YAML_SPECIAL_CHARACTERS: &str = "{}[]*&#!|>%@`:";

/// Gives the literal text that agents read for a value that is not valid YAML. Measured with Claude Code 2.1.325,
/// Codex 0.166.0 and opencode 1.18.33: they read a line with a special character as it is, and one with a colon
/// also if the text continues below; none reads a quote that is not closed, or text after a closed one.
fn literal_text(value: &str, rest: &str) -> Option<String> {
    let in_quotes = ['"', '\''].iter().any(|quote| value.starts_with(*quote) && value.ends_with(*quote));
    if in_quotes || !value.contains(|c| YAML_SPECIAL_CHARACTERS.contains(c)) {
        return None;
    }
    let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if rest.lines().all(is_comment) {
        return Some(value.to_owned());
    }
    let is_plain = value.contains(':') && !value.starts_with(['"', '\'', '|', '>']);
    let lines = rest.lines().map(str::trim).filter(|line| !line.is_empty());
    is_plain.then(|| std::iter::once(value).chain(lines).collect::<Vec<_>>().join("\n"))
}

/// Writes an indented line with its value in quotes, which make it valid YAML.
fn quote_line_value(line: &str) -> String {
    match line.split_once(": ") {
        Some((key, value)) if key_of_line(&format!("{}: ", key.trim())).is_some() => {
            match literal_text(value.trim(), "") {
                Some(value) => format!("{key}: {}", serde_json::Value::from(value)),
                None => line.to_owned(),
            }
        }
        Some(_) | None => line.to_owned(),
    }
}

/// The longest line that a message repeats.
const MAX_SHOWN_LENGTH: usize = 100;

fn quoting_help(key: &str, value: &str) -> String {
    let line = format!("{key}: {}", serde_json::Value::from(value));
    if value.contains('\n') {
        format!("write the text of \"{key}\" below a |, indented")
    } else if line.chars().count() > MAX_SHOWN_LENGTH {
        format!("put the text of \"{key}\" in quotes")
    } else {
        format!("put it in quotes: {line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontmatter_is_split_only_where_it_is_closed() {
        for (text, front, body) in [
            ("---\nname: x\n---\nbody", Some("name: x\n"), "body"),
            ("---\r\nname: x\r\n---\r\nbody", Some("name: x\r\n"), "body"),
            ("---  \nname: x\n--- \nbody", Some("name: x\n"), "body"),
            ("---\n---\n", Some(""), ""),
            ("no front", None, "no front"),
            ("----\nname: x\n----\n", None, "----\nname: x\n----\n"),
            ("\n---\nname: x\n---\n", None, "\n---\nname: x\n---\n"),
            ("---\nnever closed", None, "---\nnever closed"),
            ("text\n---\nname: x\n---\n", None, "text\n---\nname: x\n---\n"),
        ] {
            assert_eq!(split_frontmatter(text), (front, body), "{text:?}");
        }
    }

    /// Gives the description that is read, and the lines of the warnings; `None` if nothing can be read.
    fn read(front: &str) -> Option<(Option<String>, Vec<usize>)> {
        let text = format!("---\nname: n\n{front}\n");
        let mut diagnostics = Diagnostics::default();
        let root = read_frontmatter(Path::new("SKILL.md"), &text, &mut diagnostics)?;
        assert!(!diagnostics.has_errors(), "{front}: {diagnostics:?}");
        assert_eq!(root.get("name").and_then(TreeNode::as_text), Some("n"), "{front}");
        let lines = diagnostics.iter().filter_map(|problem| Some(problem.span?.position(&text).line));
        Some((root.get("description").and_then(TreeNode::as_text).map(str::to_owned), lines.collect()))
    }

    #[test]
    fn what_an_agent_reads_is_read() {
        for (front, description, warned) in [
            ("description: plain", "plain", &[] as &[usize]),
            ("description: Ratio 3:4, http://x.y", "Ratio 3:4, http://x.y", &[]),
            ("description: |\n  One: two\n  three", "One: two\nthree\n", &[]),
            ("description: &d text\nother: *d", "text", &[]),
            ("description: Use when: asked", "Use when: asked", &[3]),
            ("description: It's fine: really", "It's fine: really", &[3]),
            ("description: \"Quoted\" then: more", "\"Quoted\" then: more", &[3]),
            ("description: Path C:\\x: \"q\" done", "Path C:\\x: \"q\" done", &[3]),
            ("description: d\nargument-hint: [x] [y]", "d", &[4]),
            ("description: Use when: x\nargument-hint: [x] [y]", "Use when: x", &[3, 4]),
            ("description: >-\n  folded: one\nargument-hint: <a> [b]: c", "folded: one", &[5]),
            ("description: @mention", "@mention", &[3]),
            ("description: `code` first", "`code` first", &[3]),
            ("description: *bold* first", "*bold* first", &[3]),
            ("description: {template} first", "{template} first", &[3]),
            ("description: > first", "> first", &[3]),
            ("description: [x", "[x", &[3]),
            ("description: - first: x", "- first: x", &[3]),
            ("description: First: x\n  second", "First: x\nsecond", &[3]),
            ("description: Ends with:", "Ends with:", &[3]),
            ("description: one\ndescription: two", "two", &[4]),
            ("description: d\nmetadata:\n\tkey: v", "d", &[5]),
            ("description: d\nmetadata:\n  author: me\n  note: a: b", "d", &[6]),
            ("# about: this\ndescription: Use when: x\nallowed-tools:\n- Read", "Use when: x", &[4]),
            ("description: Use when: x\r\nlicense: MIT\r", "Use when: x", &[3]),
        ] {
            assert_eq!(read(front), Some((Some(description.to_owned()), warned.to_vec())), "{front}");
        }
    }

    #[test]
    fn what_no_agent_reads_is_refused() {
        for front in [
            "description: \"never closed",
            "description: 'It's broken'",
            "description: \"Quoted\" then more",
            "description: \"a\" and: \"b\"",
            "description: - a list",
            "description: Plain\n  goes on: with a colon",
            "description: d\n...\nname: other",
            "description: d\nno key here",
        ] {
            assert_eq!(read(front), None, "{front}");
        }
    }
}

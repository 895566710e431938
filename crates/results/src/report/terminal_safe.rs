//! Text that is safe for a terminal.

/// Makes text from an agent or a file safe for a terminal: only printable text, and no commands to a workflow
/// runner.
pub fn terminal_safe(text: &str) -> String {
    defuse_runner_commands(printable_text(text))
}

/// Writes the characters in a JSON text that control a terminal, and that JSON need not escape, as escapes. The
/// document stays the same.
pub fn terminal_safe_json(json: &str) -> String {
    let is_control = |c: char| (c.is_control() && c > '\u{7e}') || is_direction_mark(c);
    if !json.contains(is_control) {
        return json.to_owned();
    }
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match is_control(c) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => safe.push(c),
        }
    }
    safe
}

/// Removes control characters, escapes and direction marks. Line breaks and tabs stay.
pub fn printable_text(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() || is_direction_mark(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Disarms commands to GitHub's runner, which obeys lines of a log that begin with `::`, and `##[` anywhere. A
/// zero-width space turns them into ordinary text.
fn defuse_runner_commands(text: String) -> String {
    if !text.contains("::") && !text.contains("##[") {
        return text;
    }
    let tamed = |line: &str| match line.trim_start().strip_prefix("::") {
        Some(rest) => format!("{}:\u{200b}:{rest}", &line[..line.len() - rest.len() - 2]),
        None => line.to_owned(),
    };
    let lines: Vec<String> = text.split('\n').map(tamed).collect();
    lines.join("\n").replace("##[", "#\u{200b}#[")
}

pub(super) fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_sequence_reaches_the_terminal() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\u{1b}[31mred\u{1b}[0m", "\u{fffd}[31mred\u{fffd}[0m"),
            ("\u{1b}]0;title\u{7}", "\u{fffd}]0;title\u{fffd}"),
            ("a\u{202e}b\u{9b}c\rd", "a\u{fffd}b\u{fffd}c\u{fffd}d"),
        ] {
            assert_eq!(terminal_safe(text), expected);
        }
    }

    #[test]
    fn no_command_reaches_the_runner_of_a_workflow() {
        for (text, expected) in [
            ("::error::x", ":\u{200b}:error::x"),
            ("a\n \t::add-mask::b\n", "a\n \t:\u{200b}:add-mask::b\n"),
            ("said: ::error::x", "said: ::error::x"),
            ("a ##[error]x", "a #\u{200b}#[error]x"),
            ("std::fs", "std::fs"),
        ] {
            assert_eq!(terminal_safe(text), expected);
        }
    }

    #[test]
    fn json_without_raw_control_characters_is_the_same_document() {
        let document = serde_json::json!({"a": "x\u{9b}31m\u{202e}y\u{7f}\u{1b}", "b": "plain ä"});
        let safe = terminal_safe_json(&document.to_string());
        assert!(!safe.chars().any(|c| c.is_control() || is_direction_mark(c)), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("JSON"), document);
    }
}

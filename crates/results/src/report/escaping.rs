//! Escaping of texts from agents and files, so that a report shows them as text and nothing else.

use super::terminal_safe;

/// Joins a text into one line.
pub fn to_one_line(text: &str) -> String {
    terminal_safe(text).split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Cuts a text to at most this many characters, with a mark if there were more.
pub fn truncate_text(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => {
            let missing = text[end..].chars().count();
            format!("{} […{missing} more characters]", &text[..end])
        }
    }
}

/// Escapes a text as one line of Markdown that is only text wherever it stands: no markup, no HTML, no table cell
/// of its own, and on GitHub no mention, reference or link, which would notify people and appear on other pages.
pub fn escape_markdown(text: &str) -> String {
    // This character is invisible, and ends a name or an address.
    const ZERO_WIDTH_SPACE: char = '\u{200b}';
    let line = to_one_line(text);
    let mut out = String::with_capacity(line.len() + line.len() / 8);
    for (at, c) in line.char_indices() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.extend([c, ZERO_WIDTH_SPACE]),
            '#' => out.extend(['\\', c, ZERO_WIDTH_SPACE]),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '|' | '~' | '!' | '$' | '^' => {
                out.extend(['\\', c]);
            }
            // These characters begin a list, a heading or a rule.
            '-' | '+' | '=' if at == 0 => out.extend(['\\', c]),
            '.' if is_list_marker(&line, at) => out.extend(['\\', c]),
            ':' if line[at..].starts_with("://") => out.extend([c, ZERO_WIDTH_SPACE]),
            '.' if ends_with_www(&line[..at]) => out.extend([ZERO_WIDTH_SPACE, c]),
            _ => out.push(c),
        }
    }
    out
}

/// Says whether the dot ends the number of a list item.
fn is_list_marker(line: &str, dot: usize) -> bool {
    let item = line[dot + 1..].chars().next().is_none_or(char::is_whitespace);
    item && line[..dot].chars().all(|c| c.is_ascii_digit())
}

fn ends_with_www(text: &str) -> bool {
    text.get(text.len().saturating_sub(3)..).is_some_and(|end| end.eq_ignore_ascii_case("www"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser};

    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        for (text, most, expected) in [
            ("short", 10, "short"),
            ("exact", 5, "exact"),
            ("größer", 3, "grö […3 more characters]"),
            ("", 0, ""),
        ] {
            assert_eq!(truncate_text(text, most), expected);
        }
    }

    #[test]
    fn a_text_cannot_write_markdown() {
        for (text, expected) in [
            ("a|b\n# c", "a\\|b \\#\u{200b} c"),
            ("<script>alert('x')</script>", "&lt;script&gt;alert\\('x'\\)&lt;/script&gt;"),
            ("[x](javascript:y) `z`", "\\[x\\]\\(javascript:y\\) \\`z\\`"),
            ("@everyone see octo/cat#7", "@\u{200b}everyone see octo/cat\\#\u{200b}7"),
            ("https://a.b www.c.d", "https:\u{200b}//a.b www\u{200b}.c.d"),
            ("- not a list", "\\- not a list"),
            ("12. nor this", "12\\. nor this"),
            ("\u{1b}[31m\u{202e}", "\u{fffd}\\[31m\u{fffd}"),
        ] {
            assert_eq!(escape_markdown(text), expected, "{text}");
        }
    }

    proptest! {
        /// Parsed again, the escaped text is one paragraph of text and nothing else.
        #[test]
        fn markdown_of_any_text_is_text(text in "\\PC{0,40}|[-+=#*_`~|<>&!\\[\\]()\\\\ \t\n:./w0-9@$]{0,40}") {
            let page = format!("- {}\n", escape_markdown(&text));
            let events: Vec<Event<'_>> = Parser::new_ext(&page, Options::all()).collect();
            for event in &events[2..events.len() - 2] {
                let plain = matches!(event, Event::Text(_));
                prop_assert!(plain, "{:?} in {:?}", event, page);
            }
        }
    }
}

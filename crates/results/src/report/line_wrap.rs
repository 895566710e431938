//! Wraps lines for a terminal that is narrower than they are.

use unicode_width::UnicodeWidthChar;

/// The additional indent of the lines that continue a line.
const HANGING_INDENT: usize = 4;

/// The narrowest terminal for which lines are wrapped. A narrower one breaks lines itself.
const MIN_WIDTH: usize = 40;

/// Breaks lines between words, and indents the continuation. Commands and paths, which users copy, stay whole.
pub fn wrap_lines(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if width < MIN_WIDTH || display_width(line) <= width || is_line_to_copy(line) {
            out.push_str(line);
        } else {
            wrap_line(line, width, &mut out);
        }
        out.push('\n');
    }
    out
}

fn is_line_to_copy(line: &str) -> bool {
    let plain = anstream::adapter::strip_str(line).to_string();
    ["practicum ", "record: ", "reports: "].iter().any(|word| plain.trim_start().starts_with(word))
}

fn wrap_line(line: &str, width: usize, out: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let hanging = indent + HANGING_INDENT;
    out.push_str(&line[..indent]);
    let mut at = indent;
    for (number, part) in
        unbreakable_parts(&line[indent..], width.saturating_sub(hanging)).into_iter().enumerate()
    {
        let wide = display_width(part);
        if number > 0 && at + 1 + wide > width && at > hanging {
            out.push('\n');
            out.push_str(&" ".repeat(hanging));
            at = hanging;
        } else if number > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(part);
        at += wide;
    }
}

/// Splits a line into parts that should stay whole: the text between two dots if it fits a line, otherwise words.
fn unbreakable_parts(line: &str, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    for piece in line.split_inclusive(" · ") {
        let piece = piece.strip_suffix(' ').unwrap_or(piece);
        if display_width(piece) <= room {
            parts.push(piece);
        } else {
            parts.extend(piece.split(' '));
        }
    }
    parts
}

/// Gives the number of columns that a text takes. Styles take none.
pub fn display_width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().chars().map(char_width).sum()
}

/// Gives the number of columns of a character: two for East Asian characters and emoji, none for combining ones.
pub fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns() {
        for (text, columns) in [
            ("", 0),
            ("größer …", 8),
            ("e\u{301}", 1),
            ("✅ ✓ ⚠", 6),
            ("潮汐", 4),
            ("\u{1b}[31mred\u{1b}[0m", 3),
        ] {
            assert_eq!(display_width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn long_lines_go_on_further_in() {
        let id = "x".repeat(50);
        for (text, expected) in [
            ("  short".to_owned(), "  short\n".to_owned()),
            (
                "  one two three four five six seven eight nine ten".to_owned(),
                "  one two three four five six seven\n      eight nine ten\n".to_owned(),
            ),
            (
                "  a rate 0.50 [0.10, 0.90] · another 0.25 [0.01, 0.70]".to_owned(),
                "  a rate 0.50 [0.10, 0.90] ·\n      another 0.25 [0.01, 0.70]\n".to_owned(),
            ),
            // A word that is too long for any line is left to the terminal.
            (format!("  {id} and more"), format!("  {id}\n      and more\n")),
            (format!("  practicum show {id} more"), format!("  practicum show {id} more\n")),
            // Styles take no columns, and wide characters take two.
            (
                "  \u{1b}[31mone\u{1b}[0m two three four five six sev".to_owned(),
                "  \u{1b}[31mone\u{1b}[0m two three four five six sev\n".to_owned(),
            ),
            (
                format!("  {} {}", "潮".repeat(14), "汐".repeat(6)),
                format!("  {}\n      {}\n", "潮".repeat(14), "汐".repeat(6)),
            ),
        ] {
            assert_eq!(wrap_lines(&text, 40), expected);
        }
        assert_eq!(
            wrap_lines("a very narrow terminal breaks lines itself", 20),
            "a very narrow terminal breaks lines itself\n"
        );
    }
}

//! Line ends as checks see them: always `\n`, as Python reads a text file.
//!
//! In: a text as it was written. Out: the same text with `\n` for `\r\n` and for a lone `\r`. So a
//! check gives one answer for files and captured texts from every system.

use std::borrow::Cow;

use practicum_core::model::Rule;

/// The text with `\n` as its only line end.
pub fn unify_line_ends(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text }
}

/// The text as a rule reads it. A rule that itself names a carriage return asks about the line ends,
/// so it reads the text as it was written.
pub fn text_for_rule<'t>(rule: &dyn Rule, text: Cow<'t, str>) -> Cow<'t, str> {
    // Written as JSON, the character and the escape of a pattern both have these two characters.
    if rule.value().to_string().contains(r"\r") { text } else { unify_line_ends(text) }
}

#[cfg(test)]
mod tests {
    use super::super::{ContainsRule, Needle};
    use super::*;

    #[test]
    fn line_ends_are_as_python_reads_them() {
        for (text, expected) in [("a\r\nb\rc\n\r\n", "a\nb\nc\n\n"), ("a\nb", "a\nb"), ("\r\r\n", "\n\n")] {
            assert_eq!(unify_line_ends(Cow::Borrowed(text)), expected);
        }
    }

    #[test]
    fn who_asks_for_a_carriage_return_sees_it() {
        for (needle, expected) in [("a\nb", "a\nb"), ("a\r\nb", "a\r\nb"), (r"a\r", "a\r\nb")] {
            let rule = ContainsRule(Needle::exact(needle));
            assert_eq!(text_for_rule(&rule, Cow::Borrowed("a\r\nb")), expected, "{needle:?}");
        }
    }
}

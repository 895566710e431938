//! Line ends as checks see them: always `\n`, as when Python reads a text file.
//!
//! In: a text as it was written. Out: the text with `\n` in place of `\r\n` and of a lone `\r`. A check therefore
//! gives the same answer for files and captured texts from every system.

use std::borrow::Cow;

use practicum_core::model::Rule;

/// Gives the text with `\n` as its only line end.
pub fn unify_line_ends(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text }
}

/// Gives the text as a rule reads it. A rule that contains a carriage return is about line ends, so it reads the
/// text as it was written.
pub fn text_for_rule<'t>(rule: &dyn Rule, text: Cow<'t, str>) -> Cow<'t, str> {
    // In JSON, both the character itself and its escape in a pattern contain these two characters.
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

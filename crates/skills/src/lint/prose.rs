//! Properties of a text that can be recognised by its words.

use std::sync::LazyLock;

use regex::Regex;

/// Compiles a pattern that is part of this program, so that it is known to be valid.
pub(super) fn compile_pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of our own compiles")
}

/// Gives the beginning of a description that the rules about wording read. A description may be a megabyte long,
/// which another rule reports.
pub(super) fn truncate_description(text: &str) -> &str {
    const MAX_INSPECTED_LENGTH: usize = 2048;
    text.char_indices().nth(MAX_INSPECTED_LENGTH).map_or(text, |(end, _)| &text[..end])
}

/// Replaces quotations by blanks, so that every position stays the same. A quoted user is not the author speaking.
pub(super) fn blank_quotations(text: &str) -> String {
    static QUOTATION: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(r#""[^"\n]*"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»|(?:^|[\s(])'[^'\n]+'(?:$|[\s.,;:)!?])"#)
    });
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for quoted in QUOTATION.find_iter(text) {
        out.push_str(&text[at..quoted.start()]);
        out.extend(std::iter::repeat_n(' ', quoted.len()));
        at = quoted.end();
    }
    out.push_str(&text[at..]);
    out
}

/// Says whether a text is English. The rules about wording know no other language.
pub(super) fn is_english(text: &str) -> bool {
    static COMMON_ENGLISH_WORDS: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?i)\b(?:the|and|with|for|of|to|this|that|from|when|use|uses|using|helps?|an?|or|is|are)\b",
        )
    });
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let ascii = text.chars().filter(char::is_ascii_alphabetic).count();
    ascii * 10 >= letters * 9 && COMMON_ENGLISH_WORDS.is_match(text)
}

/// Says whether a text consists of lowercase words of letters and digits, joined by single hyphens.
pub(super) fn is_kebab(text: &str) -> bool {
    !text.is_empty()
        && text.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// Gives the nearest kebab-case text; `None` if nothing is left of it.
pub(super) fn to_kebab(text: &str, longest: usize) -> Option<String> {
    let spaced: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect();
    let mut kebab = String::new();
    for word in spaced.split_whitespace() {
        let hyphen = if kebab.is_empty() { "" } else { "-" };
        if kebab.len() + hyphen.len() + word.len() > longest {
            break;
        }
        kebab.push_str(hyphen);
        kebab.push_str(word);
    }
    (!kebab.is_empty()).then_some(kebab)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_blanked_and_positions_kept() {
        for (text, expected) in [
            ("says \"I want\" now", "says          now"),
            ("don't touch the user's", "don't touch the user's"),
            ("asks 'help me', then", "asks            then"),
            ("`I` and “x”", "    and        "),
            ("an \"open end", "an \"open end"),
        ] {
            assert_eq!(blank_quotations(text), expected);
            assert_eq!(blank_quotations(text).len(), text.len());
        }
    }

    #[test]
    fn other_languages_are_not_judged() {
        for (text, expected) in [
            ("Writes release notes. Use when asked for a changelog.", true),
            ("处理 PDF 文件 for the user", false),
            ("Schreibt Notizen zur Veröffentlichung", false),
            ("", false),
        ] {
            assert_eq!(is_english(text), expected, "{text:?}");
        }
    }

    #[test]
    fn kebab_case() {
        for (text, is, near) in [
            ("pdf-forms", true, Some("pdf-forms")),
            ("PDF Forms", false, Some("pdf-forms")),
            ("pdf--forms-", false, Some("pdf-forms")),
            ("-a", false, Some("a")),
            ("", false, None),
            ("ü", false, None),
            ("a_b:c", false, Some("a-b-c")),
        ] {
            assert_eq!((is_kebab(text), to_kebab(text, 64).as_deref()), (is, near), "{text:?}");
        }
        assert_eq!(to_kebab(&"word ".repeat(40), 64).map(|kebab| kebab.len()), Some(64));
    }
}

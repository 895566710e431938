//! Characters by name, for `\N{EM DASH}`: the names that people use in patterns, not all of Unicode.

/// Finds a character by its name. Case does not matter.
pub fn find_character(name: &str) -> Option<char> {
    let name = name.to_ascii_uppercase();
    let letter = |prefix: &str| match name.strip_prefix(prefix)?.as_bytes() {
        [letter @ b'A'..=b'Z'] => Some(char::from(*letter)),
        _ => None,
    };
    if let Some(capital) = letter("LATIN CAPITAL LETTER ") {
        return Some(capital);
    }
    if let Some(small) = letter("LATIN SMALL LETTER ") {
        return Some(small.to_ascii_lowercase());
    }
    let at = CHARACTER_NAMES.binary_search_by_key(&name.as_str(), |(known, _)| known).ok()?;
    Some(CHARACTER_NAMES[at].1)
}

/// Names and characters, sorted by name.
static CHARACTER_NAMES: &[(&str, char)] = &[
    ("ALMOST EQUAL TO", '\u{2248}'),
    ("AMPERSAND", '\u{26}'),
    ("APOSTROPHE", '\u{27}'),
    ("ASTERISK", '\u{2a}'),
    ("BALLOT BOX", '\u{2610}'),
    ("BALLOT BOX WITH CHECK", '\u{2611}'),
    ("BALLOT BOX WITH X", '\u{2612}'),
    ("BALLOT X", '\u{2717}'),
    ("BLACK CIRCLE", '\u{25cf}'),
    ("BLACK RIGHT-POINTING TRIANGLE", '\u{25b6}'),
    ("BLACK SMALL SQUARE", '\u{25aa}'),
    ("BLACK SQUARE", '\u{25a0}'),
    ("BLACK STAR", '\u{2605}'),
    ("BULLET", '\u{2022}'),
    ("CHECK MARK", '\u{2713}'),
    ("CIRCUMFLEX ACCENT", '\u{5e}'),
    ("COLON", '\u{3a}'),
    ("COMMA", '\u{2c}'),
    ("COMMERCIAL AT", '\u{40}'),
    ("COPYRIGHT SIGN", '\u{a9}'),
    ("CROSS MARK", '\u{274c}'),
    ("DAGGER", '\u{2020}'),
    ("DEGREE SIGN", '\u{b0}'),
    ("DIGIT EIGHT", '\u{38}'),
    ("DIGIT FIVE", '\u{35}'),
    ("DIGIT FOUR", '\u{34}'),
    ("DIGIT NINE", '\u{39}'),
    ("DIGIT ONE", '\u{31}'),
    ("DIGIT SEVEN", '\u{37}'),
    ("DIGIT SIX", '\u{36}'),
    ("DIGIT THREE", '\u{33}'),
    ("DIGIT TWO", '\u{32}'),
    ("DIGIT ZERO", '\u{30}'),
    ("DIVISION SIGN", '\u{f7}'),
    ("DOLLAR SIGN", '\u{24}'),
    ("DOUBLE DAGGER", '\u{2021}'),
    ("DOUBLE LOW-9 QUOTATION MARK", '\u{201e}'),
    ("DOUBLE PRIME", '\u{2033}'),
    ("DOWNWARDS ARROW", '\u{2193}'),
    ("ELEMENT OF", '\u{2208}'),
    ("EM DASH", '\u{2014}'),
    ("EN DASH", '\u{2013}'),
    ("EQUALS SIGN", '\u{3d}'),
    ("EURO SIGN", '\u{20ac}'),
    ("EXCLAMATION MARK", '\u{21}'),
    ("FOR ALL", '\u{2200}'),
    ("FULL STOP", '\u{2e}'),
    ("GRAVE ACCENT", '\u{60}'),
    ("GREATER-THAN OR EQUAL TO", '\u{2265}'),
    ("GREATER-THAN SIGN", '\u{3e}'),
    ("HEAVY BALLOT X", '\u{2718}'),
    ("HEAVY CHECK MARK", '\u{2714}'),
    ("HORIZONTAL ELLIPSIS", '\u{2026}'),
    ("HYPHEN-MINUS", '\u{2d}'),
    ("INFINITY", '\u{221e}'),
    ("INVERTED QUESTION MARK", '\u{bf}'),
    ("LEFT CURLY BRACKET", '\u{7b}'),
    ("LEFT DOUBLE QUOTATION MARK", '\u{201c}'),
    ("LEFT PARENTHESIS", '\u{28}'),
    ("LEFT RIGHT ARROW", '\u{2194}'),
    ("LEFT SINGLE QUOTATION MARK", '\u{2018}'),
    ("LEFT SQUARE BRACKET", '\u{5b}'),
    ("LEFTWARDS ARROW", '\u{2190}'),
    ("LESS-THAN OR EQUAL TO", '\u{2264}'),
    ("LESS-THAN SIGN", '\u{3c}'),
    ("LOW LINE", '\u{5f}'),
    ("MICRO SIGN", '\u{b5}'),
    ("MIDDLE DOT", '\u{b7}'),
    ("MINUS SIGN", '\u{2212}'),
    ("MULTIPLICATION SIGN", '\u{d7}'),
    ("NO-BREAK SPACE", '\u{a0}'),
    ("NOT EQUAL TO", '\u{2260}'),
    ("NUMBER SIGN", '\u{23}'),
    ("PER MILLE SIGN", '\u{2030}'),
    ("PERCENT SIGN", '\u{25}'),
    ("PLUS SIGN", '\u{2b}'),
    ("PLUS-MINUS SIGN", '\u{b1}'),
    ("PRIME", '\u{2032}'),
    ("QUESTION MARK", '\u{3f}'),
    ("QUOTATION MARK", '\u{22}'),
    ("REGISTERED SIGN", '\u{ae}'),
    ("REPLACEMENT CHARACTER", '\u{fffd}'),
    ("REVERSE SOLIDUS", '\u{5c}'),
    ("RIGHT CURLY BRACKET", '\u{7d}'),
    ("RIGHT DOUBLE QUOTATION MARK", '\u{201d}'),
    ("RIGHT PARENTHESIS", '\u{29}'),
    ("RIGHT SINGLE QUOTATION MARK", '\u{2019}'),
    ("RIGHT SQUARE BRACKET", '\u{5d}'),
    ("RIGHTWARDS ARROW", '\u{2192}'),
    ("RIGHTWARDS DOUBLE ARROW", '\u{21d2}'),
    ("SECTION SIGN", '\u{a7}'),
    ("SEMICOLON", '\u{3b}'),
    ("SINGLE LEFT-POINTING ANGLE QUOTATION MARK", '\u{2039}'),
    ("SINGLE LOW-9 QUOTATION MARK", '\u{201a}'),
    ("SINGLE RIGHT-POINTING ANGLE QUOTATION MARK", '\u{203a}'),
    ("SOLIDUS", '\u{2f}'),
    ("SPACE", '\u{20}'),
    ("SQUARE ROOT", '\u{221a}'),
    ("SUPERSCRIPT THREE", '\u{b3}'),
    ("SUPERSCRIPT TWO", '\u{b2}'),
    ("TILDE", '\u{7e}'),
    ("TRADE MARK SIGN", '\u{2122}'),
    ("UPWARDS ARROW", '\u{2191}'),
    ("VARIATION SELECTOR-16", '\u{fe0f}'),
    ("VERTICAL LINE", '\u{7c}'),
    ("VULGAR FRACTION ONE HALF", '\u{bd}'),
    ("VULGAR FRACTION ONE QUARTER", '\u{bc}'),
    ("VULGAR FRACTION THREE QUARTERS", '\u{be}'),
    ("WARNING SIGN", '\u{26a0}'),
    ("WHITE CIRCLE", '\u{25cb}'),
    ("WHITE HEAVY CHECK MARK", '\u{2705}'),
    ("WHITE MEDIUM STAR", '\u{2b50}'),
    ("WHITE SQUARE", '\u{25a1}'),
    ("WHITE STAR", '\u{2606}'),
    ("ZERO WIDTH JOINER", '\u{200d}'),
    ("ZERO WIDTH NO-BREAK SPACE", '\u{feff}'),
    ("ZERO WIDTH SPACE", '\u{200b}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        assert!(CHARACTER_NAMES.is_sorted());
        for (name, expected) in [
            ("EM DASH", Some('—')),
            ("em dash", Some('—')),
            ("LATIN SMALL LETTER E", Some('e')),
            ("LATIN CAPITAL LETTER Q", Some('Q')),
            ("LATIN CAPITAL LETTER ", None),
            ("SPACE", Some(' ')),
            ("NO SUCH NAME", None),
        ] {
            assert_eq!(find_character(name), expected, "{name}");
        }
    }
}

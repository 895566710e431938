//! Tests of patterns against the results of Python 3.11's `re`.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Pattern, text, first match, number of matches, and whether the pattern matches the whole text.
type Row<'r> = (&'r str, &'r str, Option<(usize, usize)>, usize, bool);

fn compiled(source: &str, flags: PatternFlags) -> PythonPattern {
    PythonPattern::with_flags(source, flags).unwrap_or_else(|error| panic!("{source:?}: {error}"))
}

fn check(rows: &[Row<'_>]) {
    for &(source, text, found, count, full) in rows {
        let pattern = compiled(source, PatternFlags::default());
        let found = Ok(found.map(|(start, end)| start..end));
        assert_eq!(pattern.find(text), found, "find {source:?} in {text:?}");
        assert_eq!(pattern.count(text), Ok(count), "count {source:?} in {text:?}");
        assert_eq!(pattern.is_full_match(text), Ok(full), "{source:?} spans {text:?}");
        // Whichever engine ran, the other must give the same result where it can give one.
        assert_eq!(pattern.backtracker(text).find(0, false), found, "backtracking, {source:?} in {text:?}");
        assert_eq!(
            pattern.backtracker(text).matches_whole_text(),
            Ok(full),
            "backtracking, {source:?} spans {text:?}"
        );
    }
}

#[test]
fn ends_and_lines() {
    check(&[
        ("foo$", "foo\n", Some((0, 3)), 1, false),
        ("foo$", "foo\n\n", None, 0, false),
        ("foo$", "foo\nfoo", Some((4, 7)), 1, false),
        (r"foo\Z", "foo\n", None, 0, false),
        (r"foo\Z", "foo", Some((0, 3)), 1, true),
        ("^b", "a\nb", None, 0, false),
        ("(?m)^b", "a\nb", Some((2, 3)), 1, false),
        ("(?m)a$", "a\nb\na\n", Some((0, 1)), 2, false),
        ("$", "a\n", Some((1, 1)), 2, false),
        (r"$\n", "a\n", Some((1, 2)), 1, false),
        ("(?m:^a)$", "b\na\n", Some((2, 3)), 1, false),
        ("(?m)$", "a\r\nb", Some((2, 2)), 2, false),
        ("[^x]$", "a\n", Some((0, 1)), 2, false),
        ("(?s).$", "a\n", Some((0, 1)), 2, false),
        ("a|b$", "xb\n", Some((1, 2)), 1, false),
        ("$$", "\n", Some((0, 0)), 2, false),
        ("x$", "x\0\n", None, 0, false),
        (r"\s$", "a \n", Some((1, 2)), 2, false),
        ("^$", "", Some((0, 0)), 1, true),
        ("^$", "\n", Some((0, 0)), 1, false),
        ("(?-m:a$)", "a\n", Some((0, 1)), 1, false),
    ]);
}

#[test]
fn words_digits_blanks() {
    check(&[
        (r"\w+", "naïve_1", Some((0, 8)), 1, true),
        (r"^\w+$", "e\u{301}", None, 0, false),
        (r"\bcafe\b", "cafe\u{301}", Some((0, 4)), 1, false),
        (r"\b\w", "⚠\u{fe0f} ok", Some((7, 8)), 1, false),
        (r"\d+", "x١٢ 3", Some((1, 5)), 2, false),
        (r"(?a)\d+", "١٢ 3", Some((5, 6)), 1, false),
        (r"\w", "²", Some((0, 2)), 1, true),
        (r"(?a)\w", "é", None, 0, false),
        (r"\s", "\u{1f}", Some((0, 1)), 1, true),
        (r"(?a)\s", "\u{1f}", None, 0, false),
        (r"a\sb", "a\u{a0}b", Some((0, 4)), 1, true),
        (r"\b", "", None, 0, false),
        (r"\B", "", None, 0, false),
        (r"\B", "ab", Some((1, 1)), 1, false),
        (r"(?a)\bé", "é", None, 0, false),
        (r"(?a)\B", "éa", Some((0, 0)), 1, false),
        (r"\S+", "a\u{2003}b", Some((0, 1)), 2, false),
        (r"[\W_]", "a_b", Some((1, 2)), 1, false),
        (r"\b", "one two", Some((0, 0)), 4, false),
    ]);
}

#[test]
fn quantifiers() {
    check(&[
        ("a{,2}", "aaa", Some((0, 2)), 3, false),
        ("a{2,}", "aaaa", Some((0, 4)), 1, true),
        ("x{,}", "xx", Some((0, 2)), 2, true),
        ("a{}", "a{}", Some((0, 3)), 1, true),
        ("a{x}", "a{x}", Some((0, 4)), 1, true),
        ("a{1,x}", "a{1,x}", Some((0, 6)), 1, true),
        ("{", "{", Some((0, 1)), 1, true),
        ("a{ 1}", "a{ 1}", Some((0, 5)), 1, true),
        ("a{2}{", "aa{", Some((0, 3)), 1, true),
        ("a*?", "baac", Some((0, 0)), 7, false),
        ("a*", "baac", Some((0, 0)), 4, false),
        ("a?", "baac", Some((0, 0)), 5, false),
        ("a|", "xay", Some((0, 0)), 4, false),
        ("(?:X|)", "aXbX", Some((0, 0)), 5, false),
        ("(?:|a)*", "aaa", Some((0, 0)), 7, true),
        ("(?:|a)+", "aaa", Some((0, 0)), 7, true),
        ("(?:a?)*?", "aa", Some((0, 0)), 5, true),
        ("(a*)*", "b", Some((0, 0)), 2, false),
        ("(a*)+", "aab", Some((0, 2)), 3, false),
        ("(A?|[ab]*a)*", "Aaaba", Some((0, 1)), 4, true),
        ("(?:a*?)*?b", "aab", Some((0, 3)), 1, true),
        ("a++", "aaa", Some((0, 3)), 1, true),
        ("a++a", "aaa", None, 0, false),
        ("(?:a|ab){2}+", "abab", None, 0, false),
        ("(?:ab)*+ab", "abab", None, 0, false),
        ("a{2}?", "aaa", Some((0, 2)), 1, false),
        ("(?=a)*a", "a", Some((0, 1)), 1, true),
        ("(?:^)*a", "ba", Some((1, 2)), 1, false),
        ("()*", "x", Some((0, 0)), 2, false),
        ("a{300}", &"a".repeat(300), Some((0, 300)), 1, true),
        ("(?:a{20}){20}", &"a".repeat(400), Some((0, 400)), 1, true),
        ("", "", Some((0, 0)), 1, true),
    ]);
}

#[test]
fn sets() {
    check(&[
        ("[]]", "]", Some((0, 1)), 1, true),
        ("[^]]", "]a", Some((1, 2)), 1, false),
        ("[]-a]+", "]^_`a", Some((0, 5)), 1, true),
        ("[[]", "[", Some((0, 1)), 1, true),
        ("[a&&b]+", "a&b", Some((0, 3)), 1, true),
        ("[+--]+", "+,-a", Some((0, 3)), 1, false),
        ("[~~]", "~", Some((0, 1)), 1, true),
        ("[a-]+", "-a", Some((0, 2)), 1, true),
        ("[-a]+", "a-", Some((0, 2)), 1, true),
        (r"[\w-]+", "a-b", Some((0, 3)), 1, true),
        (r"[\]]", "]", Some((0, 1)), 1, true),
        (r"[\b]", "\u{8}", Some((0, 1)), 1, true),
        (r"[\101\x42]+", "AB", Some((0, 2)), 1, true),
        ("[^\n]+", "a\nb", Some((0, 1)), 2, false),
        ("[^^]", "^a", Some((1, 2)), 1, false),
        ("[.$|(]+", "a.$|(", Some((1, 5)), 1, false),
        (r"[\D\d]+", "a1\n", Some((0, 3)), 1, true),
        ("[[:alpha:]]", "a]", Some((0, 2)), 1, true),
        (r"[\0-\7]", "\u{5}", Some((0, 1)), 1, true),
        ("[🙂-🙄]", "🙃", Some((0, 4)), 1, true),
        (r"[\ud800-\udfff]", "a", None, 0, false),
        (r"[^\ud800]", "a", Some((0, 1)), 1, true),
    ]);
}

#[test]
fn escapes() {
    check(&[
        (r"\x41\u0042\U00000043\104\07", "ABCD\u{7}", Some((0, 5)), 1, true),
        (r"\08", "\08", Some((0, 2)), 1, true),
        (r"\a\f\n\r\t\v", "\u{7}\u{c}\n\r\t\u{b}", Some((0, 6)), 1, true),
        (r"\N{EM DASH}", "—", Some((0, 3)), 1, true),
        (r#"\-\ \#\é\""#, "- #é\"", Some((0, 6)), 1, true),
        (r"\_", "_", Some((0, 1)), 1, true),
        (r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10", "abcdefghijj", Some((0, 11)), 1, true),
        (r"(a)\0601", "a01", Some((0, 3)), 1, true),
    ]);
}

#[test]
fn groups() {
    check(&[
        ("(?P<x>l+)(?P=x)", "hello llll", Some((2, 4)), 2, false),
        (r"(a)|\1b", "b", None, 0, false),
        (r"(?:(a)|b)*\1", "aba", Some((0, 3)), 1, true),
        ("(H)?ello(?(1) W|$)", "Hello W", Some((0, 7)), 1, true),
        ("(H)?ello(?(1) W|$)", "ello\n", Some((0, 4)), 1, false),
        ("(?P<q>['\"])?x(?(q)(?P=q))", "'x'", Some((0, 3)), 1, true),
        ("(a)?(?(1)b)", "b", Some((0, 0)), 2, false),
        ("(?>a+)a", "aaa", None, 0, false),
        ("(?>a|ab)c", "abc", None, 0, false),
        (r"(\w+) \1", "the the", Some((0, 7)), 1, true),
        (r"(?i)(a)\1", "aA", Some((0, 2)), 1, true),
        ("(?<=a)b", "ab", Some((1, 2)), 1, false),
        ("(?<!a)b", "ab b", Some((3, 4)), 1, false),
        (r"(?<=(a))\1", "aa", Some((1, 2)), 1, false),
        (r"(?=(a+))\1b", "aab", Some((0, 3)), 1, true),
        (r"(?!a)\w", "ab", Some((1, 2)), 1, false),
        ("(?<=é🙂)x", "é🙂x", Some((6, 7)), 1, false),
        ("(?=aa)", "aaaa", Some((0, 0)), 3, false),
        ("(?=b)|b", "ab", Some((1, 1)), 2, false),
        ("(?!)", "a", None, 0, false),
        ("(?=)", "a", Some((0, 0)), 2, false),
        (r"(?#note)a(?#other \) )b", "ab", Some((0, 2)), 1, true),
        ("a(?#x)*", "aaa", Some((0, 3)), 2, true),
        ("(?:a|b)(?:c|d)", "bd", Some((0, 2)), 1, true),
        (r"((a)|b)+?\2c", "abac", Some((0, 4)), 1, true),
        ("(?<=a|b)c", "ac", Some((1, 2)), 1, false),
    ]);
}

#[test]
fn flags() {
    check(&[
        ("(?i)straße", "STRASSE", None, 0, false),
        ("(?i)ß", "ẞ", Some((0, 3)), 1, true),
        ("(?i)i", "İ", Some((0, 2)), 1, true),
        ("(?i)ı", "I", Some((0, 1)), 1, true),
        ("(?i)k", "K", Some((0, 1)), 1, true),
        ("(?i)s", "ſ", Some((0, 2)), 1, true),
        ("(?i)σ", "ς", Some((0, 2)), 1, true),
        ("(?i)[a-z]+", "ſK", Some((0, 3)), 1, true),
        ("(?i)[^k]", "K", None, 0, false),
        ("(?ai)k", "K", Some((0, 1)), 1, true),
        ("(?ai)[a-z]+", "ABſ", Some((0, 2)), 1, false),
        ("(?i:A)a", "aA aa", Some((3, 5)), 1, false),
        ("(?i:a(?-i:b))", "AB Ab", Some((3, 5)), 1, false),
        ("(?s).", "\n", Some((0, 1)), 1, true),
        ("(?s:.)(?-s:.)", "\n\n", None, 0, false),
        ("(?x) a b # note\n c", "abc", Some((0, 3)), 1, true),
        (r"(?x)a\ [ ]b", "a  b", Some((0, 4)), 1, true),
        ("(?x)a #c\\\n b", "a", Some((0, 1)), 1, true),
        ("(?x: a b ) c", "ab c", Some((0, 4)), 1, true),
        ("(?x)a (?-x: b)", "a b", Some((0, 3)), 1, true),
        ("(?u)é", "é", Some((0, 2)), 1, true),
        ("(?i)(?m)^B", "a\nb", Some((2, 3)), 1, false),
        ("(?#c)(?i)A", "a", Some((0, 1)), 1, true),
        ("(?im)A|^B", "x\nb", Some((2, 3)), 1, false),
        (r"(?a)x(?u:\w)", "xé", Some((0, 3)), 1, true),
        ("(?i)\u{345}", "ι", Some((0, 2)), 1, true),
        (r"(?i)[\W]", "ι", None, 0, false),
        ("(?i)é", "É", Some((0, 2)), 1, true),
    ]);
}

#[test]
fn what_python_does_not_compile() {
    for (source, expected) in [
        ("[", "unterminated character set"),
        ("[a", "unterminated character set"),
        ("[]", "unterminated character set"),
        ("[^]", "unterminated character set"),
        ("(", "missing ), unterminated subpattern"),
        ("(?", "unexpected end of pattern"),
        ("(?:", "missing ), unterminated subpattern"),
        ("(?P", "unexpected end of pattern"),
        ("(?P<", "missing group name"),
        ("(?P<n", "missing >, unterminated name"),
        ("(?P<n>", "missing ), unterminated subpattern"),
        ("(?P<1>a)", "bad character in group name '1'"),
        ("(?P<>a)", "missing group name"),
        ("(?P<a-b>a)", "bad character in group name 'a-b'"),
        ("(?P<n>a)(?P<n>b)", "redefinition of group name 'n' as group 2; was group 1"),
        ("(?P=n)", "unknown group name 'n'"),
        ("(?P>n)", "unknown extension ?P>"),
        ("(?Px)", "unknown extension ?Px"),
        ("(?<n>a)", "unknown extension ?<n"),
        ("(?<", "unexpected end of pattern"),
        ("(?<a", "unknown extension ?<a"),
        ("(?'n'a)", "unknown extension ?'"),
        ("(?|a)", "unknown extension ?|"),
        ("(?#", "missing ), unterminated comment"),
        (r"(?#a\)", "missing ), unterminated comment"),
        (")", "unbalanced parenthesis"),
        ("a)", "unbalanced parenthesis"),
        ("*", "nothing to repeat"),
        ("*a", "nothing to repeat"),
        ("+", "nothing to repeat"),
        ("?", "nothing to repeat"),
        ("a**", "multiple repeat"),
        ("a*{2}", "multiple repeat"),
        ("a+*", "multiple repeat"),
        ("a???", "multiple repeat"),
        ("a{2}{3}", "multiple repeat"),
        ("a*+*", "multiple repeat"),
        ("^*", "nothing to repeat"),
        ("$+", "nothing to repeat"),
        (r"\b?", "nothing to repeat"),
        ("a|*", "nothing to repeat"),
        ("(*)", "nothing to repeat"),
        ("(?:*)", "nothing to repeat"),
        ("a{2,1}", "min repeat greater than max repeat"),
        ("a{4294967295}", "the repetition number is too large"),
        ("a{99999999999}", "the repetition number is too large"),
        ("\\", "bad escape (end of pattern)"),
        ("a\\", "bad escape (end of pattern)"),
        (r"\h", "bad escape \\h"),
        (r"\z", "bad escape \\z"),
        (r"\G", "bad escape \\G"),
        (r"\K", "bad escape \\K"),
        (r"\Q", "bad escape \\Q"),
        (r"\p{L}", "bad escape \\p"),
        (r"\R", "bad escape \\R"),
        (r"\e", "bad escape \\e"),
        (r"\c", "bad escape \\c"),
        (r"\8", "invalid group reference 8"),
        (r"\1", "invalid group reference 1"),
        (r"(a)\2", "invalid group reference 2"),
        (r"(a\1)", "cannot refer to an open group"),
        ("(?P<n>a(?P=n))", "cannot refer to an open group"),
        (r"\x4", "incomplete escape \\x4"),
        (r"\xg1", "incomplete escape \\x"),
        (r"\u12", "incomplete escape \\u12"),
        (r"\U0011", "incomplete escape \\U0011"),
        (r"\U00110000", "bad escape \\U00110000"),
        (r"\N", "missing {"),
        (r"\N{}", "missing character name"),
        (r"\N{NO SUCH NAME", "missing }, unterminated name"),
        (r"\N{no such name at all}", "undefined character name 'no such name at all'"),
        (r"\400", "octal escape value \\400 outside of range 0-0o377"),
        (r"[\400]", "octal escape value \\400 outside of range 0-0o377"),
        (r"[\8]", "bad escape \\8"),
        (r"[\A]", "bad escape \\A"),
        (r"[\Z]", "bad escape \\Z"),
        (r"[\B]", "bad escape \\B"),
        (r"[\h]", "bad escape \\h"),
        ("[b-a]", "bad character range b-a"),
        (r"[\d-z]", "bad character range \\d-z"),
        (r"[a-\d]", "bad character range a-\\d"),
        ("(?L)a", "bad inline flags: cannot use 'L' flag with a str pattern"),
        ("(?La)", "bad inline flags: cannot use 'L' flag with a str pattern"),
        ("(?au)a", "bad inline flags: flags 'a', 'u' and 'L' are incompatible"),
        ("(?a)(?u)a", "ASCII and UNICODE flags are incompatible"),
        ("a(?i)", "global flags not at the start of the expression"),
        ("(?:(?i)a)", "global flags not at the start of the expression"),
        ("a|(?i)b", "global flags not at the start of the expression"),
        ("(?i", "missing -, : or )"),
        ("(?i-", "missing flag"),
        ("(?i-)", "missing flag"),
        ("(?-)", "missing flag"),
        ("(?-i)", "missing :"),
        ("(?-:a)", "missing flag"),
        ("(?i-i:a)", "bad inline flags: flag turned on and off"),
        ("(?-a:b)", "bad inline flags: cannot turn off flags 'a', 'u' and 'L'"),
        ("(?-u:b)", "bad inline flags: cannot turn off flags 'a', 'u' and 'L'"),
        ("(?q)", "unknown extension ?q"),
        ("(?iq:a)", "unknown flag"),
        ("(?i:a", "missing ), unterminated subpattern"),
        ("(?<=a*)b", "look-behind requires fixed-width pattern"),
        ("(?<=a|bc)d", "look-behind requires fixed-width pattern"),
        ("(?<!a+)b", "look-behind requires fixed-width pattern"),
        (r"(?<=(a)\1)", "cannot refer to group defined in the same lookbehind subpattern"),
        ("(?<=(?P<n>a)(?P=n))", "cannot refer to group defined in the same lookbehind subpattern"),
        ("(?(1)a|b)", "invalid group reference 1"),
        ("(a)(?(1)a|b|c)", "conditional backref with more than two branches"),
        ("(a)(?(0)b)", "bad group number"),
        ("(a)(?(n)b)", "unknown group name 'n'"),
        ("(?(", "missing group name"),
        ("(?()a)", "missing group name"),
        ("(a)(?(-1)b)", "bad character in group name '-1'"),
        ("(a)(?(1)b", "missing ), unterminated subpattern"),
        ("(?>a", "missing ), unterminated subpattern"),
        ("(?=a", "missing ), unterminated subpattern"),
        ("(a)?(?<=(?(2)b|c))(b)", "cannot refer to an open group"),
    ] {
        match PythonPattern::new(source) {
            Ok(_) => panic!("{source:?} compiles"),
            Err(error) => assert!(error.message.starts_with(expected), "{source:?}: {error}"),
        }
    }
}

#[test]
fn flags_beside_the_pattern() {
    let multiline = PatternFlags { multiline: true, ..PatternFlags::default() };
    let ignore_case = PatternFlags { ignore_case: true, ..PatternFlags::default() };
    for (source, flags, text, count) in [
        ("^- ", multiline, "- a\n- b\n  - c\n", 2),
        ("^- ", PatternFlags::default(), "- a\n- b\n", 1),
        ("b$", multiline, "ab\nb\nbc", 2),
        (r"\Ab", multiline, "b\nb", 1),
        ("(?-m:^a)", multiline, "a\na", 1),
        ("$", multiline, "a\r\nb\r\n", 3),
        ("abc", ignore_case, "ABC abc aBc", 3),
        ("(?-i:a)b", ignore_case, "aB AB", 1),
    ] {
        let pattern = compiled(source, flags);
        assert_eq!(pattern.count(text), Ok(count), "{source:?} in {text:?}");
    }
}

#[test]
fn the_linear_engine_takes_what_it_can() {
    for (source, text, linear) in [
        ("(a+)+$", "aab", true),
        ("(a+)+$", "aab\n", true),
        ("a$|(?m:^b)", "b\na\n", false),
        ("a$", "\0a\n", false),
        (r"\bwarn\b", "warn: é", true),
        (r"\bwarn\b", "\u{26a0}\u{fe0f} warn", false),
        (r"(a)\1", "aa", false),
        ("a{60000000}", "a", false),
    ] {
        let pattern = compiled(source, PatternFlags::default());
        assert_eq!(pattern.linear_search(text, false).is_some(), linear, "{source:?} on {text:?}");
    }
}

/// A generous limit, because tests run unoptimized on busy machines. The engine's own limit is the number of
/// steps.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn no_pattern_searches_without_end() {
    let rows = "a".repeat(40) + "b";
    let line = "a".repeat(60_000);
    for (source, text, expected) in [
        ("(a+)+$", rows.as_str(), Ok(false)),
        ("(a|aa)+$", &(rows.clone() + "\n"), Ok(false)),
        ("(a*)*$", &rows, Ok(true)),
        ("(a*)*c", &rows, Ok(false)),
        (r"(?=a)(a+)+$", &rows, Err(TooMuchBacktracking)),
        (r"(?:(a+)+)+\1c", &rows, Err(TooMuchBacktracking)),
        (r"((a*)*)*(?!x)c", &rows, Err(TooMuchBacktracking)),
        (r"(?=.*x)a", &line, Err(TooMuchBacktracking)),
        (r"(?=.*x)y", &line, Ok(false)),
        (r"(?:a|b)*(?=c)", &line, Err(TooMuchBacktracking)),
        (r"(?:a{1,1000}){1,1000}(?<=b)", &line, Err(TooMuchBacktracking)),
        (r"(?:){4000000000}(?=a)", "a", Err(TooMuchBacktracking)),
        (r"(?=a)a{4000000000}", &line, Ok(false)),
        (r"\$(?=[\d,]*\d)[\d,]+", &line, Ok(false)),
    ] {
        let started = Instant::now();
        let pattern = compiled(source, PatternFlags::default());
        assert_eq!(pattern.is_match(text), expected, "{source}");
        assert!(started.elapsed() < SOON, "{source} took {:?}", started.elapsed());
    }
}

#[test]
fn bounds_on_the_pattern_itself() {
    for (source, accepted) in [
        ("(".repeat(150) + &")".repeat(150), true),
        ("(".repeat(5000) + &")".repeat(5000), false),
        ("(?(1)".repeat(5000), false),
        ("a".repeat(30_000), true),
        ("a".repeat(40_000), false),
    ] {
        let pattern = PythonPattern::new(&source);
        assert_eq!(pattern.is_ok(), accepted, "{}…", &source[..5]);
        if let Ok(pattern) = pattern {
            assert!(pattern.find("aaa").is_ok());
        }
    }
}

/// Pieces of patterns, combined in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "é", ".", "^", "$", "(", ")", "(?:", "(?=", "(?!", "(?<=", "(?>", "(?P<n>", "(?P=n)",
        "(?i)", "(?i:", "(?x)", "(?(1)", "(?#", "|", "*", "+", "?", "{2}", "{,1}", "{", "}", "[", "]", "[^",
        "-", "\\", "\\w", "\\b", "\\B", "\\Z", "\\1", "\\0", "\\x41", "\\N{", "\n", " ", "#", "&&", "1",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_pattern_and_text_have_an_answer(source in pieces(), text in "[abé\u{301}\n 1]{0,12}") {
        if let Ok(pattern) = PythonPattern::new(&source) {
            let found = pattern.find(&text);
            prop_assert_eq!(found.clone().map(|found| found.is_some()), pattern.is_match(&text));
            if let Ok(Some(range)) = &found {
                prop_assert!(text.get(range.clone()).is_some());
            }
            if let (Ok(found), Ok(count)) = (&found, pattern.count(&text)) {
                prop_assert_eq!(found.is_some(), count > 0);
                prop_assert!(count <= 2 * text.chars().count() + 1);
            }
            if let (Ok(by_steps), Ok(found)) = (pattern.backtracker(&text).find(0, false), found) {
                prop_assert_eq!(by_steps, found, "{:?} {:?}", source, text);
            }
        }
    }

    #[test]
    fn any_text_as_a_pattern_has_an_answer(source in "\\PC{0,30}", text in "\\PC{0,30}") {
        if let Ok(pattern) = PythonPattern::new(&source) {
            let _ = (pattern.find(&text), pattern.count(&text), pattern.is_full_match(&text));
        }
    }
}

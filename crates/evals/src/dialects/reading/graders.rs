//! What the formats of other tools share when their graders become checks: rules by their native key, patterns of
//! other languages, and reasons why a case cannot run.

use serde_json::{Value, json};

use super::super::rules::{BuiltRule, build_rule};
use super::{UniqueIds, judged_check};
use practicum_core::model::{
    Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, Diagnostics, JudgedStatement, ScoreScale,
    Severity, Span,
};

/// Makes a check of a deterministic rule, given as in a native file. It counts in the score and does not fail a trial
/// by itself. The error says why no such rule can be made.
pub fn scored_rule(id: &str, key: &str, value: &Value) -> Result<Check, String> {
    let mut problems = Diagnostics::default();
    match build_rule(key, value, Span::default(), &mut problems) {
        BuiltRule::Rule(rule, _) => Ok(Check { need: CheckNeed::Advisory, ..Check::by_rule(id, rule) }),
        BuiltRule::Invalid => {
            let error = problems.iter().find(|problem| problem.severity == Severity::Error);
            Err(error.map_or_else(|| format!("\"{key}\" is not valid"), |error| error.message.clone()))
        }
        BuiltRule::NoSuchKind => Err(format!("this version knows no check \"{key}\"")),
    }
}

/// Makes a judged check that counts in the score and does not fail a trial by itself.
pub fn scored_statement(id: &str, statement: &str, scale: ScoreScale, target: CheckTarget) -> Check {
    let check = judged_check(id.to_owned(), statement);
    let kind =
        CheckKind::Judged(JudgedStatement { statement: statement.trim().to_owned(), context: None, scale });
    Check { need: CheckNeed::Advisory, target, kind, ..check }
}

/// The sentences with which a rubric of another tool becomes a statement for a judge.
pub const RUBRIC_INTRODUCTIONS: [&str; 4] = [
    "A reviewer with these instructions would pass the work:",
    "By this rubric, the verdict is PASS:",
    "Score the work by this rubric:",
    "By these instructions, the judge passes the work:",
];

/// Gives the rubric in a statement that a reader made of one; any other statement stays as it is.
pub fn rubric_text(statement: &str) -> &str {
    let introduction = RUBRIC_INTRODUCTIONS.iter().find_map(|words| statement.strip_prefix(words));
    introduction.and_then(|rest| rest.strip_prefix('\n')).unwrap_or(statement)
}

/// Joins rules that must all hold to one rule whose score is 1 or 0. A plain `all` counts with the share that holds.
pub fn all_or_nothing(rules: &Value) -> (&'static str, Value) {
    ("any", json!([{"all": rules}]))
}

/// Gives a number to each check whose id an earlier one has. A grader that becomes several checks makes ids that another
/// grader may have as its name.
pub fn make_ids_unique(checks: &mut [Check]) {
    let mut ids = UniqueIds::default();
    for check in checks {
        check.id = ids.make_unique(&check.id);
    }
}

/// Makes each check required: every one must pass, whatever the score is.
pub fn require_all(checks: &mut [Check]) {
    for check in checks {
        check.need = CheckNeed::Required;
        check.weight = CheckWeight::ONE;
    }
}

/// The reasons why a case cannot run or be graded here. Such a case is loaded and not scored.
#[derive(Debug, Default)]
pub struct Unsupported(Vec<String>);

impl Unsupported {
    /// Adds a reason.
    pub fn add(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.0.contains(&why) {
            self.0.push(why);
        }
    }

    /// Gives all reasons in one sentence; `None` if there is none.
    pub fn into_reason(self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join("; "))
    }
}

/// Rewrites a regular expression of JavaScript, Go or .NET in Python's syntax, with flags as JavaScript writes them.
/// The error says which part has no counterpart.
pub fn portable_pattern(pattern: &str, flags: &str) -> Result<String, String> {
    if let Some(unknown) = flags.chars().find(|flag| !"gimsud".contains(*flag)) {
        return Err(format!("the flag \"{unknown}\" of the pattern is not supported"));
    }
    let kept: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
    let translated = PatternWriter::new(pattern, flags.contains('m')).write()?;
    Ok(if kept.is_empty() { translated } else { format!("(?{kept}){translated}") })
}

/// Writes a text as a pattern that matches only this text.
pub fn escape_pattern(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if letter.is_ascii_punctuation() && letter != '_' {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Writes a pattern in Python's syntax.
struct PatternWriter {
    letters: Vec<char>,
    at: usize,
    out: String,
    /// Whether `$` also matches at the ends of lines.
    multiline: bool,
    /// For each open group, the inline flags that are set in it from here on.
    groups: Vec<Vec<String>>,
}

impl PatternWriter {
    fn new(pattern: &str, multiline: bool) -> Self {
        Self {
            letters: pattern.chars().collect(),
            at: 0,
            out: String::new(),
            multiline,
            groups: vec![Vec::new()],
        }
    }

    fn write(mut self) -> Result<String, String> {
        while let Some(letter) = self.next() {
            match letter {
                '\\' => self.write_escape()?,
                '[' => self.write_class()?,
                '(' => self.write_group_start()?,
                ')' => {
                    let flags = self.groups.pop().unwrap_or_default();
                    self.close(&flags);
                    self.out.push(')');
                    if self.groups.is_empty() {
                        return Err("the pattern closes a group that is not open".to_owned());
                    }
                }
                '|' => {
                    let flags = self.groups.last().cloned().unwrap_or_default();
                    self.close(&flags);
                    self.out.push('|');
                    flags.iter().for_each(|flags| self.out.push_str(&format!("(?{flags}:")));
                }
                // Elsewhere, `$` does not match before a line end that ends the text.
                '$' if !self.multiline => self.out.push_str(r"\Z"),
                other => self.out.push(other),
            }
        }
        let flags = self.groups.pop().unwrap_or_default();
        self.close(&flags);
        Ok(self.out)
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.letters.get(self.at).copied();
        self.at += usize::from(letter.is_some());
        letter
    }

    fn rest(&self) -> String {
        self.letters[self.at..].iter().collect()
    }

    fn close(&mut self, flags: &[String]) {
        flags.iter().for_each(|_| self.out.push(')'));
    }

    fn write_escape(&mut self) -> Result<(), String> {
        let Some(letter) = self.next() else { return Err("the pattern ends with a backslash".to_owned()) };
        match letter {
            'z' => self.out.push_str(r"\Z"),
            'p' | 'P' => return Err("classes of Unicode properties are not supported in patterns".to_owned()),
            'k' if self.rest().starts_with('<') => {
                let name: String = self.letters[self.at + 1..].iter().take_while(|c| **c != '>').collect();
                self.at += name.chars().count() + 2;
                self.out.push_str(&format!("(?P={name})"));
            }
            'u' if self.rest().starts_with('{') => {
                let digits: String = self.letters[self.at + 1..].iter().take_while(|c| **c != '}').collect();
                self.at += digits.chars().count() + 2;
                self.out.push_str(&format!(r"\U{digits:0>8}"));
            }
            // A letter that means nothing after a backslash is itself there, and an error in Python.
            letter if letter.is_ascii_alphabetic() && !"dDwWsSbBnrtfvxuUAZ0".contains(letter) => {
                return Err(format!("\\{letter} is not supported in patterns"));
            }
            letter => {
                self.out.push('\\');
                self.out.push(letter);
            }
        }
        Ok(())
    }

    fn write_class(&mut self) -> Result<(), String> {
        if self.rest().starts_with("^]") {
            self.at += 2;
            self.out.push_str(r"[\s\S]");
            return Ok(());
        }
        self.out.push('[');
        let mut first = true;
        while let Some(letter) = self.next() {
            match letter {
                '\\' => self.write_escape()?,
                ']' if first => return Err("an empty class is not supported in patterns".to_owned()),
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.rest().starts_with(':') => {
                    return Err("classes like [:alpha:] are not supported in patterns".to_owned());
                }
                '[' => self.out.push_str(r"\["),
                '^' if first => {
                    self.out.push('^');
                    continue;
                }
                other => self.out.push(other),
            }
            first = false;
        }
        Err("a class in the pattern is not closed".to_owned())
    }

    fn write_group_start(&mut self) -> Result<(), String> {
        let rest = self.rest();
        if let Some((flags, after)) = inline_flags(&rest) {
            self.multiline |= flags.contains('m');
            self.at += rest.chars().count() - after.chars().count();
            self.out.push_str(&format!("(?{flags}:"));
            if let Some(group) = self.groups.last_mut() {
                group.push(flags.to_owned());
            }
            return Ok(());
        }
        self.groups.push(Vec::new());
        self.out.push('(');
        let named = rest.strip_prefix("?<").filter(|name| !name.starts_with(['=', '!']));
        if named.is_some() {
            self.at += 2;
            self.out.push_str("?P<");
        }
        Ok(())
    }
}

/// Finds flags for the rest of a group at the beginning of a text: `?i)`.
fn inline_flags(text: &str) -> Option<(&str, &str)> {
    let (flags, after) = text.strip_prefix('?')?.split_once(')')?;
    (!flags.is_empty() && flags.chars().all(|flag| "ims".contains(flag))).then_some((flags, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::PythonPattern;

    #[test]
    fn patterns_of_other_languages_match_the_same() {
        for (pattern, flags, text, expected) in [
            ("done$", "", "done", true),
            ("done$", "", "done\n", false),
            ("done$", "m", "done\nmore", true),
            ("(?m)done$", "", "done\nmore", true),
            ("^b", "", "a\nb", false),
            ("B", "i", "b", true),
            ("(?i)FOO|bar", "", "foo", true),
            ("(?i)FOO|bar", "", "BAR", true),
            ("x(?i)y|z", "", "Z", true),
            ("x(?i)y|z", "", "Xy", false),
            ("foo|(?i)bar", "", "FOO", false),
            ("foo|(?i)bar", "", "BAR", true),
            ("(a(?i)b)c", "", "aBc", true),
            ("(a(?i)b)c", "", "aBC", false),
            (r"(?<n>a)\k<n>", "", "aa", true),
            (r"(?<!\d)16\b", "", "216", false),
            (r"a\/b", "", "a/b", true),
            (r"[^]x", "", "\nx", true),
            (r"\u{41}", "u", "A", true),
            ("[[]", "", "[", true),
        ] {
            let python = portable_pattern(pattern, flags).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            let compiled =
                PythonPattern::new(&python).unwrap_or_else(|why| panic!("{pattern} {python}: {why:?}"));
            assert_eq!(compiled.is_match(text).ok(), Some(expected), "{pattern} as {python} on {text:?}");
        }
    }

    #[test]
    fn a_pattern_without_counterpart_is_refused_with_a_reason() {
        for (pattern, flags) in [
            (r"\p{L}", ""),
            ("a", "y"),
            ("a", "v"),
            ("[[:alpha:]]", ""),
            ("[]", ""),
            ("a)", ""),
            ("\\", ""),
            ("[a", ""),
            (r"\Qa\E", ""),
        ] {
            assert!(portable_pattern(pattern, flags).is_err(), "{pattern} {flags}");
        }
    }
}

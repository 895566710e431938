//! Finds the grader of another tool that means the same as a check: a grader is written, read back by the format's own
//! reader, and taken only if the reader makes the same check of it.

use serde_json::{Map, Value, json};

use super::super::reading::graders::{portable_pattern, rubric_text};
use practicum_core::model::{Check, CheckKind, JudgedStatement};

/// A rule in the form in which rules that mean the same are equal, without the negation around it.
pub struct PlainRule {
    /// Whether the rule must not hold.
    pub negated: bool,
    /// The native key of the rule.
    pub key: String,
    /// The value after the key.
    pub value: Value,
}

impl PlainRule {
    /// Gives the rule of a check; `None` if a model decides the check. With `by_score`, rules that count with another
    /// share are different rules.
    pub fn of(check: &Check, by_score: bool) -> Option<Self> {
        let CheckKind::Rule(rule) = &check.kind else { return None };
        let plain = plain_form(rule.key(), &rule.value(), by_score);
        let (negated, inner) = match plain.get("not") {
            Some(inner) => (true, inner),
            None => (false, &plain),
        };
        let (key, value) = inner.as_object()?.iter().next()?;
        Some(Self { negated, key: key.clone(), value: value.clone() })
    }

    /// Gives the text of a rule `contains`, and whether upper and lower case are the same.
    pub fn needle(&self) -> Option<(&str, bool)> {
        let ignore_case = self.value.get("ignore_case") == Some(&json!(true));
        let text = self.value.as_str().or_else(|| self.value.get("text")?.as_str())?;
        (self.key == "contains").then_some((text, ignore_case))
    }

    /// Gives a text of the value.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }

    /// Gives the only text in a list of the value.
    pub fn only_text(&self, key: &str) -> Option<&str> {
        match self.value.get(key)?.as_array()?.as_slice() {
            [only] => only.as_str(),
            _ => None,
        }
    }
}

/// Says whether two checks ask for the same.
pub fn asks_the_same(one: &Check, other: &Check, by_score: bool) -> bool {
    let same_kind = match (&one.kind, &other.kind) {
        (CheckKind::Rule(a), CheckKind::Rule(b)) => {
            plain_form(a.key(), &a.value(), by_score) == plain_form(b.key(), &b.value(), by_score)
        }
        (CheckKind::Judged(a), CheckKind::Judged(b)) => {
            let JudgedStatement { statement, context, scale } = a;
            rubric_text(statement) == rubric_text(&b.statement) && (context, scale) == (&b.context, &b.scale)
        }
        (CheckKind::Activation(a), CheckKind::Activation(b)) => a == b,
        (CheckKind::Sections(a), CheckKind::Sections(b)) => a == b,
        (_, _) => false,
    };
    same_kind && one.target == other.target
}

/// Gives the first of these graders that is read back as the check.
pub fn first_same<G>(
    check: &Check,
    by_score: bool,
    graders: impl IntoIterator<Item = G>,
    read: impl Fn(&G) -> Option<Check>,
) -> Option<G> {
    graders.into_iter().find(|grader| read(grader).is_some_and(|made| asks_the_same(check, &made, by_score)))
}

fn entry(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

fn negated(rule: Value) -> Value {
    match rule.get("not") {
        Some(inner) => inner.clone(),
        None => entry("not", rule),
    }
}

/// Writes a rule, given by its native key and value, in the form in which rules that mean the same are equal.
fn plain_form(key: &str, value: &Value, by_score: bool) -> Value {
    let part = |rule: &Value| match rule.as_object().and_then(|rule| rule.iter().next()) {
        Some((key, value)) => plain_form(key, value, by_score),
        None => rule.clone(),
    };
    let call = |value: &Value| match value.as_str() {
        Some(name) => json!({"name": name}),
        None => with_plain_pattern(value, "input"),
    };
    match key {
        "not" => negated(part(value)),
        "not_contains" => negated(entry("contains", value.clone())),
        "tool_used" => entry("tool_used", call(value)),
        "tool_not_used" => negated(entry("tool_used", call(value))),
        "regex" => match literal_needle(value.as_str().unwrap_or_default()) {
            Some(needle) => entry("contains", needle),
            None => entry("regex", json!(plain_pattern(value.as_str().unwrap_or_default()))),
        },
        "file" => match value.get("matches").and_then(Value::as_str).and_then(literal_text) {
            Some(text) if value.get("contains").is_none() => {
                entry(key, json!({"path": value["path"], "contains": [text]}))
            }
            _ => entry(key, with_plain_pattern(value, "matches")),
        },
        "files" => entry(key, with_plain_pattern(value, "matches")),
        "all" | "any" => {
            let parts: Vec<Value> =
                value.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(part).collect();
            match parts.as_slice() {
                // Where scores count, this form has no part of a score, and a plain `all` has.
                [only] if key == "any" && by_score && only.get("all").is_some() => entry("any", json!(parts)),
                [only] => only.clone(),
                _ => entry(key, Value::Array(parts)),
            }
        }
        _ => entry(key, value.clone()),
    }
}

fn with_plain_pattern(value: &Value, key: &str) -> Value {
    let mut value = value.clone();
    if let Some(pattern) = value.get(key).and_then(Value::as_str).map(plain_pattern) {
        value[key] = json!(pattern);
    }
    value
}

/// Writes a pattern of Python's syntax in the form in which patterns that mean the same are more often equal.
fn plain_pattern(pattern: &str) -> String {
    if matches_at_lines(pattern) {
        return match leading_flags(pattern) {
            (flags, rest) if !flags.is_empty() && !rest.contains('|') => format!("(?{flags}:{rest})"),
            (_, _) => pattern.to_owned(),
        };
    }
    let spelled = with_spelled_ends(pattern, r"\Z");
    portable_pattern(&spelled, "").unwrap_or(spelled)
}

/// Gives the rule `contains` that means the same as a pattern without any sign.
fn literal_needle(pattern: &str) -> Option<Value> {
    let ignoring = pattern.strip_prefix("(?i)");
    let ignoring = ignoring.or_else(|| pattern.strip_prefix("(?i:")?.strip_suffix(')'));
    match ignoring {
        Some(inner) => Some(json!({"text": literal_text(inner)?, "ignore_case": true})),
        None => Some(json!(literal_text(pattern)?)),
    }
}

/// Gives the text that a pattern without any sign matches; `None` if the pattern has signs or is empty.
pub fn literal_text(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().filter(char::is_ascii_punctuation)?),
            '.' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | '[' | ']' | '|' | '(' | ')' => return None,
            letter => text.push(letter),
        }
    }
    (!text.is_empty()).then_some(text)
}

/// Splits the flags at the beginning of a pattern from the rest.
fn leading_flags(pattern: &str) -> (&str, &str) {
    match pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')) {
        Some((flags, rest)) if !flags.is_empty() && flags.chars().all(|flag| "ims".contains(flag)) => {
            (flags, rest)
        }
        _ => ("", pattern),
    }
}

/// Says whether a pattern has the flag with which `^` and `$` match at every line.
fn matches_at_lines(pattern: &str) -> bool {
    let groups = pattern.split("(?").skip(1).map(|rest| rest.split([')', ':']).next().unwrap_or_default());
    groups.into_iter().any(|flags| flags.chars().all(|flag| "ims".contains(flag)) && flags.contains('m'))
}

/// Writes `^` for the beginning of the text. For its end, writes `end`; where Python's `$` also matches before a last
/// line end, that is spelled out. A pattern whose `^` and `$` match at every line stays as it is.
fn with_spelled_ends(pattern: &str, end: &str) -> String {
    if matches_at_lines(pattern) {
        return pattern.to_owned();
    }
    let mut written = String::new();
    let mut letters = pattern.chars();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('A') if !in_class => written.push('^'),
                Some('Z') if !in_class => written.push_str(end),
                next => {
                    written.push(letter);
                    written.extend(next);
                }
            },
            '$' if !in_class => written.push_str(&format!(r"(?=\n?{end})")),
            letter => {
                in_class = (in_class || letter == '[') && letter != ']';
                written.push(letter);
            }
        }
    }
    written
}

/// The language in which a tool reads its patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternLanguage {
    /// JavaScript, which has flags beside the pattern and not inside it.
    JavaScript,
    /// JavaScript with flags at the beginning of the pattern, as in Python.
    JavaScriptWithInnerFlags,
    /// Go, which looks neither forward nor back.
    Go,
}

/// Writes a pattern of Python's syntax in another language, with its flags. `None` if that language has no counterpart of
/// a part of it. The format's reader decides whether the result means the same.
pub fn foreign_pattern(pattern: &str, language: PatternLanguage) -> Option<(String, String)> {
    let (flags, rest) = leading_flags(pattern);
    let (flags, rest) = (flags.to_owned(), rest.to_owned());
    let body = if flags.contains('m') { rest } else { with_spelled_ends(&rest, "$") };
    let unknown: &[&str] = match language {
        PatternLanguage::JavaScript | PatternLanguage::JavaScriptWithInnerFlags => {
            &["(?i", "(?m", "(?s", "(?P", "(?#", r"\A", r"\Z", r"\U"]
        }
        PatternLanguage::Go => &["(?=", "(?!", "(?<", "(?P=", "(?#", r"\Z", r"\1", r"\2", r"\U", r"\u"],
    };
    if unknown.iter().any(|sign| body.contains(sign)) {
        return None;
    }
    Some(match language {
        PatternLanguage::JavaScript => (body, flags),
        PatternLanguage::Go | PatternLanguage::JavaScriptWithInnerFlags if flags.is_empty() => (body, flags),
        PatternLanguage::Go | PatternLanguage::JavaScriptWithInnerFlags => {
            (format!("(?{flags}){body}"), String::new())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::reading::graders::scored_rule;

    fn check(rule: &Value) -> Check {
        let (key, value) = rule.as_object().and_then(|rule| rule.iter().next()).expect("a rule");
        scored_rule("a", key, value).unwrap_or_else(|why| panic!("{why}: {rule}"))
    }

    #[test]
    fn rules_that_mean_the_same_are_equal() {
        for (one, other, expected) in [
            (json!({"not_contains": "a"}), json!({"not": {"contains": "a"}}), true),
            (json!({"not_contains": "a"}), json!({"contains": "a"}), false),
            (json!({"contains": "a"}), json!({"contains": {"text": "a", "ignore_case": true}}), false),
            (json!({"tool_not_used": "read"}), json!({"not": {"tool_used": "read"}}), true),
            (json!({"not": {"not": {"contains": "a"}}}), json!({"any": [{"contains": "a"}]}), true),
            (json!({"regex": "(?i)a+"}), json!({"regex": "(?i:a+)"}), true),
            (json!({"regex": r"a\.b"}), json!({"contains": "a.b"}), true),
            (json!({"regex": "a.b"}), json!({"contains": "a.b"}), false),
            (json!({"regex": "(?i)a"}), json!({"contains": {"text": "a", "ignore_case": true}}), true),
            (json!({"regex": r"\Aa\Z"}), json!({"regex": r"^a\Z"}), true),
            (json!({"regex": "a$"}), json!({"regex": r"a\Z"}), false),
            (json!({"regex": "a$"}), json!({"regex": r"a(?=\n?\Z)"}), true),
            (json!({"regex": "(?m)^a$"}), json!({"regex": "(?m:^a$)"}), true),
            (json!({"regex": "[$^]"}), json!({"regex": r"[\$^]"}), false),
        ] {
            let same = |by_score| asks_the_same(&check(&one), &check(&other), by_score);
            assert_eq!((same(false), same(true)), (expected, expected), "{one} {other}");
        }
        let (all, whole) =
            (json!({"all": [{"contains": "a"}, {"contains": "b"}]}), |all: &Value| json!({"any": [all]}));
        assert!(asks_the_same(&check(&all), &check(&whole(&all)), false));
        assert!(!asks_the_same(&check(&all), &check(&whole(&all)), true));
    }

    #[test]
    fn patterns_are_written_as_other_languages_read_them() {
        use PatternLanguage::{Go, JavaScript};
        for (pattern, language, expected) in [
            ("a+", JavaScript, Some(("a+", ""))),
            ("(?i)a", JavaScript, Some(("a", "i"))),
            ("(?i)a", Go, Some(("(?i)a", ""))),
            (r"\Aa\Z", JavaScript, Some(("^a$", ""))),
            ("a$", JavaScript, Some((r"a(?=\n?$)", ""))),
            ("a$", Go, None),
            ("x(?i:a)", JavaScript, None),
            (r"(a)\1", Go, None),
        ] {
            let written = foreign_pattern(pattern, language);
            let written = written.as_ref().map(|(body, flags)| (body.as_str(), flags.as_str()));
            assert_eq!(written, expected, "{pattern} {language:?}");
        }
    }
}

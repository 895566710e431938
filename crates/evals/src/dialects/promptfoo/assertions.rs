//! Assertions of promptfoo, as checks.

use serde_json::{Value, json};

use super::super::reading::graders::{
    Unsupported, all_or_nothing, escape_pattern, portable_pattern, scored_rule, scored_statement,
};
use super::super::reading::{UniqueIds, UnusedKeys, activation_check};
use super::files::ConfigFiles;
use super::scripts::{ScriptAssertion, ScriptCode, ScriptLanguage, command_value, unknown_context};
use super::template::{TestVariables, render};
use practicum_core::model::{
    ActivationExpectation, Check, CheckNeed, CheckTarget, CheckWeight, Diagnostics, ScoreScale, SkillRef,
};
use practicum_core::tree::{ObjectReader, TreeNode};

/// The types of assertions that are read, for the schema and the documentation.
pub const ASSERTION_TYPES: [&str; 20] = [
    "assert-set",
    "contains",
    "contains-all",
    "contains-any",
    "contains-json",
    "cost",
    "equals",
    "g-eval",
    "icontains",
    "icontains-all",
    "icontains-any",
    "is-json",
    "javascript",
    "latency",
    "llm-rubric",
    "model-graded-closedqa",
    "python",
    "regex",
    "skill-used",
    "starts-with",
];

/// The score that g-eval asks for if the assertion gives none.
const GEVAL_THRESHOLD: f64 = 0.7;

/// The checks of one assertion, or why there are none.
type MadeChecks = Result<Vec<Check>, String>;

/// Reads the assertions of one case.
pub struct PromptfooAssertionReader<'r> {
    pub files: &'r ConfigFiles<'r>,
    pub skills: &'r [SkillRef],
    pub variables: &'r TestVariables,
    /// What code gets beside the output.
    pub context: &'r Value,
    /// Whether the score of the test decides, and not each assertion.
    pub by_score: bool,
    pub ids: UniqueIds,
    pub checks: Vec<Check>,
}

impl PromptfooAssertionReader<'_> {
    /// Reads one assertion, or a set of them. What cannot be checked is a reason not to score the case.
    pub fn read(&mut self, node: &TreeNode, unsupported: &mut Unsupported, diagnostics: &mut Diagnostics) {
        let node = match self.files.dereference(node) {
            Ok(node) => node,
            Err(why) => return unsupported.add(why),
        };
        if node.get("type").and_then(TreeNode::as_text) == Some("assert-set") {
            return self.read_set(node, unsupported, diagnostics);
        }
        let weight = self.read_one(node, unsupported, diagnostics);
        if let Some((made, weight)) = weight {
            let by_score = self.by_score;
            self.checks.extend(made.into_iter().map(|check| weigh(check, weight, by_score)));
        }
    }

    /// Reads a set: its assertions share its weight. If it has a threshold of its own, that must decide, which only
    /// the score of the whole test can.
    fn read_set(&mut self, node: &TreeNode, unsupported: &mut Unsupported, diagnostics: &mut Diagnostics) {
        let Some(mut set) = ObjectReader::new(node, "an assert-set", diagnostics) else { return };
        set.get("type");
        set.get("metric");
        let weight = set.number("weight", 0.0, 1e9, diagnostics).unwrap_or(1.0);
        let threshold = set.number("threshold", 0.0, 1.0, diagnostics);
        let nodes = set.list("assert", diagnostics).unwrap_or_default();
        UnusedKeys::default().collect_unused(&set, "an assert-set", diagnostics);
        if !self.by_score && threshold.is_some_and(|threshold| threshold < 1.0) {
            unsupported.add("an assert-set has a threshold of its own");
        }
        let mut made = Vec::new();
        for node in nodes {
            match self.files.dereference(node) {
                Ok(node) => made.extend(self.read_one(node, unsupported, diagnostics)),
                Err(why) => unsupported.add(why),
            }
        }
        let total: f64 = made.iter().map(|(_, weight)| weight).sum();
        for (checks, own) in made {
            let share = if total > 0.0 { weight * own / total } else { 0.0 };
            let by_score = self.by_score;
            let share = if by_score { share } else { own };
            self.checks.extend(checks.into_iter().map(|check| weigh(check, share, by_score)));
        }
    }

    /// Reads one assertion: its checks and its weight.
    fn read_one(
        &mut self,
        node: &TreeNode,
        unsupported: &mut Unsupported,
        diagnostics: &mut Diagnostics,
    ) -> Option<(Vec<Check>, f64)> {
        let mut assertion = ObjectReader::new(node, "an assertion", diagnostics)?;
        let kind = assertion.required_text("type", diagnostics)?.trim().to_owned();
        let weight = assertion.number("weight", 0.0, 1e9, diagnostics).unwrap_or(1.0);
        let threshold = assertion.number("threshold", f64::MIN, f64::MAX, diagnostics);
        let name = assertion.text("metric", diagnostics).map(str::to_owned);
        let id = self.ids.make_unique(&kind.replace(':', "-"));
        let value = assertion.get("value");
        let config = assertion.get("config").map(TreeNode::to_value);
        let changed = assertion.get_non_null("transform").is_some();
        // These choose the judge, which is chosen on the command line here, or are for people.
        for key in ["provider", "rubricPrompt", "description", "title"] {
            assertion.get(key);
        }
        UnusedKeys::default().collect_unused(&assertion, "an assertion", diagnostics);
        let made = match changed {
            true => Err("it changes the output with \"transform\"".to_owned()),
            false => self.make(&id, &kind, value, threshold, config),
        };
        match made {
            Ok(checks) => {
                let named = |check: Check| Check { name: name.clone().or(check.name.clone()), ..check };
                let parts = checks.len().max(1) as f64;
                Some((checks.into_iter().map(named).collect(), weight / parts))
            }
            // What is only measured cannot change the result.
            Err(_) if weight == 0.0 && !self.by_score => None,
            Err(why) => {
                unsupported.add(format!("assertion {id}: {why}"));
                None
            }
        }
    }

    fn make(
        &self,
        id: &str,
        kind: &str,
        value: Option<&TreeNode>,
        threshold: Option<f64>,
        config: Option<Value>,
    ) -> MadeChecks {
        let (kind, inverse) = match kind.strip_prefix("not-") {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        match kind {
            "skill-used" => self.read_skill_used(id, value, inverse),
            "llm-rubric" | "model-graded-closedqa" | "g-eval" => {
                let threshold = threshold.or((kind == "g-eval").then_some(GEVAL_THRESHOLD));
                self.read_rubric(id, value, threshold, inverse)
            }
            "javascript" => {
                self.read_script(id, ScriptLanguage::JavaScript, value, threshold, config, inverse)
            }
            "python" => self.read_script(id, ScriptLanguage::Python, value, threshold, config, inverse),
            "cost" | "latency" => {
                let least = threshold.filter(|least| *least >= 0.0).ok_or("it has no threshold")?;
                let limit = match kind {
                    "cost" => json!({"cost_usd": least}),
                    _ => json!({"seconds": least / 1000.0}),
                };
                Ok(vec![rule(id, "limit", limit, inverse)?])
            }
            "is-json" | "contains-json" if value.is_some_and(|value| !value.is_null()) => {
                Err("it compares with a JSON Schema, which this version cannot do".to_owned())
            }
            "is-json" => Ok(vec![rule(id, "json", json!({"extent": "whole"}), inverse)?]),
            // promptfoo also takes a text in braces for JSON, so only a text without braces surely has none.
            "contains-json" if inverse => Ok(vec![rule(id, "contains", json!("{"), true)?]),
            "contains-json" => Ok(vec![rule(id, "json", json!({"extent": "part"}), false)?]),
            "equals" | "contains" | "icontains" | "contains-any" | "contains-all" | "icontains-any"
            | "icontains-all" | "regex" | "starts-with" => {
                let value = self.rendered(value.ok_or("it has no value")?)?;
                let (key, value) = text_rule(kind, &value)?;
                Ok(vec![rule(id, key, value, inverse)?])
            }
            _ => Err("its type is not known here".to_owned()),
        }
    }

    /// Gives the value of an assertion: its texts with their variables, or the content of the file that it names.
    fn rendered(&self, node: &TreeNode) -> Result<Value, String> {
        let text = |text: &str| match text.strip_prefix("file://") {
            Some(path) => self.files.read_value(path),
            None => render(text, self.variables).map(Value::String),
        };
        match node.to_value() {
            Value::String(value) => text(&value),
            Value::Array(items) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(value) => text(&value),
                    other => Ok(other),
                })
                .collect::<Result<Vec<Value>, String>>()
                .map(Value::Array),
            other => Ok(other),
        }
    }

    /// Reads which skills the agent must activate, or must not.
    fn read_skill_used(&self, id: &str, value: Option<&TreeNode>, inverse: bool) -> MadeChecks {
        let value = self.rendered(value.ok_or("it names no skill")?)?;
        let names: Vec<&str> = match &value {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            Value::Object(matcher) => return self.read_skill_count(id, matcher, inverse),
            Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
        };
        let names: Vec<String> = names.iter().map(|name| self.own_name(name.trim())).collect();
        if names.is_empty() || names.iter().any(String::is_empty) {
            return Err("it names no skill".to_owned());
        }
        let check =
            |skills: Vec<String>, expect| Check { id: id.to_owned(), ..activation_check(skills, expect) };
        if inverse {
            return Ok(vec![check(names, ActivationExpectation::MustNot)]);
        }
        // All or none of the skills count in the score, which several checks cannot express.
        if self.by_score && names.len() > 1 {
            return Err("it asks for several skills at once, in a test with a threshold".to_owned());
        }
        let each = |(index, name): (usize, String)| {
            let check = check(vec![name], ActivationExpectation::Must);
            if index == 0 { check } else { Check { id: format!("{id}-{}", index + 1), ..check } }
        };
        Ok(names.into_iter().enumerate().map(each).collect())
    }

    fn read_skill_count(
        &self,
        id: &str,
        matcher: &serde_json::Map<String, Value>,
        inverse: bool,
    ) -> MadeChecks {
        let text = |key: &str| {
            matcher.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
        };
        let count = |key: &str| matcher.get(key).and_then(Value::as_u64);
        let names = match (text("name"), text("pattern")) {
            (Some(name), None) => vec![self.own_name(name)],
            (None, Some(pattern)) => self.skills_like(pattern)?,
            (_, _) => return Err("it has no name or pattern, or both".to_owned()),
        };
        let expect = match (inverse, count("min"), count("max")) {
            (true, None, None | Some(0)) | (false, None | Some(0), Some(0)) => ActivationExpectation::MustNot,
            (false, None | Some(1), None) => ActivationExpectation::Must,
            (_, _, _) => return Err("it counts how often a skill is used".to_owned()),
        };
        Ok(vec![Check { id: id.to_owned(), ..activation_check(names, expect) }])
    }

    /// Gives the name of a skill without the plugin before it.
    fn own_name(&self, name: &str) -> String {
        let after = name.rsplit(':').next().unwrap_or(name);
        let of_plugin = |skill: &SkillRef| skill.plugin.is_some() && skill.name == after;
        if self.skills.iter().any(of_plugin) { after.to_owned() } else { name.to_owned() }
    }

    /// Gives the names of the skills that match a pattern with `*` and `?`.
    fn skills_like(&self, pattern: &str) -> Result<Vec<String>, String> {
        let pattern = escape_pattern(pattern).replace(r"\*", ".*").replace(r"\?", ".");
        let pattern =
            crate::checks::PythonPattern::new(&format!(r"\A{pattern}\Z")).map_err(|why| why.to_string())?;
        let fits = |skill: &&SkillRef| {
            let full = skill.plugin.as_ref().map(|plugin| format!("{plugin}:{}", skill.name));
            [Some(skill.name.clone()), full]
                .into_iter()
                .flatten()
                .any(|name| pattern.is_match(&name).unwrap_or(false))
        };
        let names: Vec<String> = self.skills.iter().filter(fits).map(|skill| skill.name.clone()).collect();
        if names.is_empty() { Err("its pattern fits no skill that is known".to_owned()) } else { Ok(names) }
    }

    /// Reads a rubric for a judge; several criteria are several statements.
    fn read_rubric(
        &self,
        id: &str,
        value: Option<&TreeNode>,
        threshold: Option<f64>,
        inverse: bool,
    ) -> MadeChecks {
        let value = self.rendered(value.ok_or("it has no rubric")?)?;
        let rubrics: Vec<String> = match value {
            Value::String(text) => vec![text],
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            other => vec![serde_json::to_string_pretty(&other).unwrap_or_default()],
        };
        if rubrics.is_empty() || rubrics.iter().any(|rubric| rubric.trim().is_empty()) {
            return Err("it has no rubric".to_owned());
        }
        let statement = |rubric: &str| {
            let verdict = match (inverse, threshold.filter(|_| !self.by_score)) {
                (true, _) => "the output does not pass".to_owned(),
                (false, Some(least)) => format!("the output passes, with a score of at least {least} of 1"),
                (false, None) => "the output passes".to_owned(),
            };
            format!("By this rubric, {verdict}:\n{}", rubric.trim())
        };
        let scale = if self.by_score { ScoreScale::Unit } else { ScoreScale::PassFail };
        let check = |(index, rubric): (usize, &String)| {
            let id = if index == 0 { id.to_owned() } else { format!("{id}-{}", index + 1) };
            scored_statement(&id, &statement(rubric), scale, CheckTarget::Output)
        };
        Ok(rubrics.iter().enumerate().map(check).collect())
    }

    fn read_script(
        &self,
        id: &str,
        language: ScriptLanguage,
        value: Option<&TreeNode>,
        threshold: Option<f64>,
        config: Option<Value>,
        inverse: bool,
    ) -> MadeChecks {
        let code = value.and_then(TreeNode::as_text).filter(|code| !code.trim().is_empty());
        let code = code.ok_or("it has no code")?;
        let (code, text) = match code.strip_prefix("file://") {
            Some(reference) => {
                let (path, function) = match reference.split_once(':') {
                    Some((path, function)) => (path, Some(function.to_owned())),
                    None => (reference, None),
                };
                let endings: &[&str] = match language {
                    ScriptLanguage::JavaScript => &[".js", ".mjs", ".cjs"],
                    ScriptLanguage::Python => &[".py"],
                };
                if !endings.iter().any(|ending| path.ends_with(ending)) {
                    return Err(format!("{path} is no script that can be run here"));
                }
                let (full, text) = self.files.read_script(path)?;
                (ScriptCode::File { path: full, function }, text)
            }
            None if code.starts_with("package:") => return Err("its code is in a package".to_owned()),
            None => {
                let code = render(code, self.variables)?;
                (ScriptCode::Inline(code.clone()), code)
            }
        };
        if let Some(word) = unknown_context(&text) {
            return Err(format!("its code needs \"{word}\" of promptfoo's own records"));
        }
        let mut context = self.context.clone();
        if let Some(config) = config {
            context["config"] = config;
        }
        let script = ScriptAssertion {
            language,
            code,
            context: &context,
            inverse,
            threshold,
            by_score: self.by_score,
        };
        Ok(vec![scored_rule(id, "command", &command_value(&script))?])
    }
}

/// Gives a check its weight. A weight of 0 is only measured, and never fails a test.
fn weigh(check: Check, weight: f64, by_score: bool) -> Check {
    let (need, weight) = match (by_score, weight > 0.0) {
        (true, _) => (CheckNeed::Advisory, CheckWeight::new(weight).unwrap_or(CheckWeight::ONE)),
        (false, true) => (CheckNeed::Required, CheckWeight::ONE),
        // Without a threshold there is no score, so there are no weights.
        (false, false) => (CheckNeed::Advisory, CheckWeight::ONE),
    };
    Check { need, weight, ..check }
}

/// Makes a check of a rule, or of its opposite.
fn rule(id: &str, key: &str, value: Value, inverse: bool) -> Result<Check, String> {
    match inverse {
        true => scored_rule(id, "not", &json!({key: value})),
        false => scored_rule(id, key, &value),
    }
}

/// Gives the rule of an assertion about the text of the output.
fn text_rule(kind: &str, value: &Value) -> Result<(&'static str, Value), String> {
    let ignore_case = kind.starts_with("icontains");
    let needle = |text: &str| match ignore_case {
        true => json!({"text": text, "ignore_case": true}),
        false => json!(text),
    };
    let text = match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(bool) if kind == "equals" => Some(bool.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let needed =
        |text: Option<String>| text.filter(|text| !text.is_empty()).ok_or("it has no text".to_owned());
    match kind {
        "equals" => match (text, value) {
            (Some(text), _) => Ok(("regex", json!(format!(r"\A{}\Z", escape_pattern(&text))))),
            (None, Value::Array(_) | Value::Object(_)) => {
                Ok(("json", json!({"extent": "whole", "equals": value})))
            }
            (None, _) => Err("it has no value".to_owned()),
        },
        "contains" | "icontains" => Ok(("contains", needle(&needed(text)?))),
        "starts-with" => Ok(("regex", json!(format!(r"\A{}", escape_pattern(&needed(text)?))))),
        "regex" => {
            let pattern = needed(text)?;
            // JavaScript knows no flags at the beginning of a pattern, so promptfoo fails such an assertion.
            if ["(?i)", "(?s)", "(?m)", "(?x)"].iter().any(|flags| pattern.contains(flags)) {
                return Err("its pattern has a flag like (?i), which JavaScript does not know".to_owned());
            }
            Ok(("regex", json!(portable_pattern(&pattern, "")?)))
        }
        _ => {
            let texts: Vec<String> = match value {
                Value::String(text) => split_list(text)?,
                Value::Array(items) => items
                    .iter()
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                    .collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
            };
            if texts.is_empty() {
                return Err("it has no texts".to_owned());
            }
            let rules: Value = texts.iter().map(|text| json!({"contains": needle(text)})).collect();
            Ok(if kind.ends_with("-all") { all_or_nothing(&rules) } else { ("any", rules) })
        }
    }
}

/// Splits a text at its commas. A part in quotes may contain them.
fn split_list(text: &str) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ',');
    while !rest.is_empty() {
        let after = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (part, after) = split_quoted(quoted).ok_or("a text of its list has no end quote")?;
                parts.push(part);
                let after = after.trim_start();
                if !after.is_empty() && !after.starts_with(',') {
                    return Err("a text of its list goes on after its quotes".to_owned());
                }
                after
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                parts.push(rest[..end].trim().to_owned());
                &rest[end..]
            }
        };
        rest = after.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ',');
    }
    Ok(parts)
}

/// Splits a text after its first quote that is neither doubled nor after a backslash.
fn split_quoted(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        match (letter, next) {
            ('\\', Some('"' | '\\')) | ('"', Some('"')) => {
                part.extend(next);
                letters.next();
            }
            ('"', _) => return Some((part, &text[at + 1..])),
            (other, _) => part.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_one_text_are_split_at_commas_outside_quotes() {
        for (text, expected) in [
            ("a, b,,c", Some(vec!["a", "b", "c"])),
            (r#""a, b", c"#, Some(vec!["a, b", "c"])),
            (r#""say ""hi""", "a\"b""#, Some(vec![r#"say "hi""#, r#"a"b"#])),
            ("one two", Some(vec!["one two"])),
            (r#""open"#, None),
            (r#""a" b"#, None),
        ] {
            let expected = expected.map(|parts| parts.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(split_list(text).ok(), expected, "{text}");
        }
    }
}

//! The graders of vally, and their weights.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::reading::graders::{
    Unsupported, all_or_nothing, portable_pattern, scored_rule, scored_statement,
};
use super::super::reading::{UniqueIds, UnusedKeys, activation_check};
use super::read_duration;
use crate::dialects::copilot_tools::{agent_tool, is_glob, shell_word};
use practicum_core::model::{
    ActivationExpectation, Check, CheckNeed, CheckTarget, CheckWeight, Diagnostics, RelPath, ScoreScale,
    Span, format_duration,
};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode};

/// The types of graders that are read.
pub const GRADER_TYPES: [&str; 24] = [
    "completed",
    "exit-success",
    "output-matches",
    "output-not-matches",
    "output-contains",
    "output-not-contains",
    "file-matches",
    "file-not-matches",
    "file-contains",
    "file-not-contains",
    "file-exists",
    "file-not-exists",
    "prompt",
    "skill-invocation",
    "tool-calls",
    "tool-call-count",
    "run-command",
    "program",
    "wall-time",
    "transcript-contains",
    "transcript-matches",
    "error-count",
    "pairwise",
    "diff-contains",
];

/// Reads the graders of one stimulus.
pub struct VallyGraderReader<'r> {
    rubric: &'r [String],
    turns: usize,
    /// Whether the scores of graders count, and not only whether they pass.
    by_score: bool,
    weights: &'r BTreeMap<String, f64>,
    ids: UniqueIds,
    checks: Vec<Check>,
    has_judge: bool,
}

/// The checks of one grader, or why there are none.
type MadeChecks = Result<Vec<Check>, String>;

impl<'r> VallyGraderReader<'r> {
    pub fn new(
        rubric: &'r [String],
        turns: usize,
        by_score: bool,
        weights: &'r BTreeMap<String, f64>,
    ) -> Self {
        Self {
            rubric,
            turns,
            by_score,
            weights,
            ids: UniqueIds::default(),
            checks: Vec::new(),
            has_judge: false,
        }
    }

    pub fn has_judge(&self) -> bool {
        self.has_judge
    }

    pub fn into_checks(self) -> Vec<Check> {
        self.checks
    }

    pub fn read(&mut self, node: &TreeNode, unsupported: &mut Unsupported, diagnostics: &mut Diagnostics) {
        let Some(mut grader) = ObjectReader::new(node, "a grader", diagnostics) else { return };
        let Some(kind) = grader.required_text("type", diagnostics).map(|kind| kind.trim().to_owned()) else {
            return;
        };
        let name =
            grader.text("name", diagnostics).map_or_else(|| kind.clone(), |name| name.trim().to_owned());
        let id = self.ids.make_unique(&name);
        let own_weight = grader.get_non_null("weight").map(|node| (node.span, node.to_value().as_f64()));
        let turn = grader.get_non_null("turn");
        let negated = grader.bool("negate", diagnostics).unwrap_or(false);
        let empty = TreeNode::from_value(&json!({}), node.span);
        let config = grader.get_non_null("config").unwrap_or(&empty);
        self.has_judge |= kind == "prompt";
        let Some(mut config) = ObjectReader::new(config, "\"config\"", diagnostics) else { return };
        let made = self.make(&id, &kind, &mut config, negated, diagnostics);
        // Keys beside "config" enforce nothing.
        UnusedKeys::default().collect_unused(&grader, "an assertion", diagnostics);
        UnusedKeys::default().collect_unused(&config, "an assertion", diagnostics);
        let made = match (turn.map(|node| &node.data), self.turns) {
            (None, _) | (Some(NodeData::Int(0 | 1)), 1) => made,
            (Some(_), _) => {
                Err("it looks at one turn of several; whether they count from 0 or 1 is not documented"
                    .to_owned())
            }
        };
        let weight = match own_weight {
            Some((span, None)) => {
                diagnostics.error("wrong-type", span, "\"weight\" must be a number");
                1.0
            }
            Some((_, Some(weight))) => weight,
            None => self.weights.get(&kind).copied().unwrap_or(1.0),
        };
        match made {
            Ok(checks) => {
                // The checks of one grader share its weight.
                let share = CheckWeight::new(weight / checks.len() as f64).unwrap_or(CheckWeight::ONE);
                self.checks.extend(checks.into_iter().map(|check| Check { weight: share, ..check }));
            }
            Err(why) => unsupported.add(format!("grader {id}: {why}")),
        }
    }

    fn make(
        &self,
        id: &str,
        kind: &str,
        config: &mut ObjectReader<'_>,
        negated: bool,
        diagnostics: &mut Diagnostics,
    ) -> MadeChecks {
        let negated = config.bool("negate", diagnostics).unwrap_or(false) != negated;
        match kind {
            "completed" | "exit-success" => Ok(vec![scored_rule(id, "min_length", &json!(1))?]),
            "output-matches" => text_check(id, read_pattern(config, diagnostics)?, negated),
            "output-not-matches" => text_check(id, read_pattern(config, diagnostics)?, !negated),
            "output-contains" => text_check(id, read_needle(config, diagnostics)?, negated),
            "output-not-contains" => text_check(id, read_needle(config, diagnostics)?, !negated),
            "transcript-contains" => transcript_check(id, read_needle(config, diagnostics)?, negated),
            "transcript-matches" => transcript_check(id, read_pattern(config, diagnostics)?, negated),
            "file-exists" => file_exists(id, config, !negated, diagnostics),
            "file-not-exists" => file_exists(id, config, negated, diagnostics),
            "file-matches" | "file-not-matches" => {
                let path = read_path(config, diagnostics)?;
                let rule = read_pattern(config, diagnostics)?;
                file_check(id, &path, rule, negated != (kind == "file-not-matches"))
            }
            "file-contains" | "file-not-contains" => {
                let path = read_path(config, diagnostics)?;
                let text = first_text(config, &["value", "substring"], diagnostics)?;
                file_check(id, &path, json!({"contains": text}), negated != (kind == "file-not-contains"))
            }
            _ if negated => {
                Err("it is turned round by \"negate\", which is not read for its type".to_owned())
            }
            "prompt" => self.read_prompt(id, config, diagnostics),
            "skill-invocation" => read_skills(id, config, diagnostics),
            "tool-calls" => read_tool_calls(id, config, diagnostics),
            "tool-call-count" => read_tool_count(id, config, diagnostics),
            "run-command" | "program" => read_command(id, config, diagnostics),
            "wall-time" => {
                let node = config.get_non_null("max").ok_or("it has no \"max\"")?;
                let most = read_duration(node, "max", diagnostics).ok_or("its \"max\" is no duration")?;
                Ok(vec![scored_rule(id, "limit", &json!({"seconds": most.as_secs_f64()}))?])
            }
            other => {
                config.take_unread(&[]);
                Err(format!("its type \"{other}\" cannot be checked here"))
            }
        }
    }

    /// Reads a judged grader: its own prompt, or each item of the stimulus' rubric.
    fn read_prompt(
        &self,
        id: &str,
        config: &mut ObjectReader<'_>,
        diagnostics: &mut Diagnostics,
    ) -> MadeChecks {
        let prompt =
            config.text("prompt", diagnostics).map(str::to_owned).filter(|text| !text.trim().is_empty());
        let scoring = config.text("scoring", diagnostics).map(str::to_owned);
        let has_threshold = config.get_non_null("threshold").is_some();
        for key in ["model", "evidence", "rubric"] {
            config.get(key);
        }
        // Where only passing counts, a scale could pass below the grader's own threshold.
        let scale = match scoring.as_deref() {
            Some("scale_1_5") if self.by_score && !has_threshold => ScoreScale::OneToFive,
            Some("scale_1_10") if self.by_score && !has_threshold => ScoreScale::Unit,
            Some("binary" | "scale_1_5" | "scale_1_10") | None => ScoreScale::PassFail,
            Some(other) => return Err(format!("its scoring \"{other}\" is not known")),
        };
        let target = || CheckTarget::WholeRun;
        match prompt {
            Some(prompt) => {
                let statement =
                    format!("A reviewer with these instructions would pass the work:\n{}", prompt.trim());
                Ok(vec![scored_statement(id, &statement, scale, target())])
            }
            None if self.rubric.is_empty() => {
                Err("it has no prompt, and the stimulus has no rubric".to_owned())
            }
            None => {
                let one = |(index, item): (usize, &String)| {
                    let id = if index == 0 { id.to_owned() } else { format!("{id}-{}", index + 1) };
                    scored_statement(&id, item, scale, target())
                };
                Ok(self.rubric.iter().enumerate().map(one).collect())
            }
        }
    }
}

/// Reads one grader by itself; `None` if it is not read as one check.
pub fn read_grader(grader: &Value, by_score: bool) -> Option<Check> {
    let weights = BTreeMap::new();
    let mut reader = VallyGraderReader::new(&[], 1, by_score, &weights);
    let (mut unsupported, mut diagnostics) = (Unsupported::default(), Diagnostics::default());
    reader.read(&TreeNode::from_value(grader, Span::default()), &mut unsupported, &mut diagnostics);
    let is_read = unsupported.into_reason().is_none() && diagnostics.iter().next().is_none();
    match reader.checks.as_slice() {
        [only] if is_read => Some(only.clone()),
        _ => None,
    }
}

fn first_text(
    config: &mut ObjectReader<'_>,
    keys: &[&'static str],
    diagnostics: &mut Diagnostics,
) -> Result<String, String> {
    let found = keys.iter().find_map(|key| config.text(key, diagnostics));
    found.map(str::to_owned).ok_or_else(|| format!("it has no \"{}\", so it would enforce nothing", keys[0]))
}

fn read_path(config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Result<String, String> {
    first_text(config, &["path"], diagnostics)
}

fn read_pattern(config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Result<Value, String> {
    let pattern = first_text(config, &["pattern"], diagnostics)?;
    let flags = config.text("flags", diagnostics).unwrap_or_default().to_owned();
    Ok(json!({"regex": portable_pattern(&pattern, &flags)?}))
}

fn read_needle(config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Result<Value, String> {
    let text = first_text(config, &["substring", "value"], diagnostics)?;
    let sensitive = config.bool("case_sensitive", diagnostics).unwrap_or(false);
    Ok(json!({"contains": {"text": text, "ignore_case": !sensitive}}))
}

/// Makes a check of one rule, given as a mapping with its key.
fn rule_check(id: &str, rule: &Value) -> Result<Check, String> {
    let (key, value) = rule.as_object().and_then(|rule| rule.iter().next()).ok_or("it asks for nothing")?;
    scored_rule(id, key, value)
}

fn inverted(rule: Value, negated: bool) -> Value {
    if negated { json!({"not": rule}) } else { rule }
}

fn text_check(id: &str, rule: Value, negated: bool) -> MadeChecks {
    Ok(vec![rule_check(id, &inverted(rule, negated))?])
}

fn transcript_check(id: &str, rule: Value, negated: bool) -> MadeChecks {
    let check = rule_check(id, &inverted(rule, negated))?;
    Ok(vec![Check { target: CheckTarget::WholeRun, ..check }])
}

fn file_exists(
    id: &str,
    config: &mut ObjectReader<'_>,
    exists: bool,
    diagnostics: &mut Diagnostics,
) -> MadeChecks {
    let path = read_path(config, diagnostics)?;
    let rule = match is_glob(&path) {
        true => json!({"files": {"path": path, "exists": exists}}),
        false => json!({"file": {"path": path, "exists": exists}}),
    };
    Ok(vec![rule_check(id, &rule)?])
}

/// Makes a check of a file's text. A file that is missing fails it, also if the text must not be there.
fn file_check(id: &str, path: &str, rule: Value, negated: bool) -> MadeChecks {
    if is_glob(path) {
        let check = rule_check(id, &inverted(rule, negated))?;
        return Ok(vec![Check { target: CheckTarget::Files(vec![path.to_owned()]), ..check }]);
    }
    RelPath::new(path).ok_or_else(|| format!("{path:?} is not a path inside the workspace"))?;
    let content = match (rule.get("regex"), rule.get("contains")) {
        (Some(pattern), _) => json!({"file": {"path": path, "matches": pattern}}),
        (None, Some(text)) => json!({"file": {"path": path, "contains": text}}),
        (None, None) => return Err("it asks for nothing".to_owned()),
    };
    let rule = match negated {
        true => json!({"any": [{"all": [{"file": path}, {"not": content}]}]}),
        false => content,
    };
    Ok(vec![rule_check(id, &rule)?])
}

fn read_skills(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let mut checks = Vec::new();
    for (key, expect) in
        [("required", ActivationExpectation::Must), ("disallowed", ActivationExpectation::MustNot)]
    {
        for (skill, _) in config.texts(key, diagnostics).unwrap_or_default() {
            let id = if checks.is_empty() { id.to_owned() } else { format!("{id}-{}", checks.len() + 1) };
            let check = activation_check(vec![skill.to_owned()], expect);
            checks.push(Check { id, need: CheckNeed::Advisory, ..check });
        }
    }
    if checks.is_empty() { Err("it names no skill".to_owned()) } else { Ok(checks) }
}

/// Reads the names that a simple pattern stands for: `^bash$`, `^(bash|run)$`, `bash`.
fn names_of_pattern(pattern: &str) -> Option<Vec<String>> {
    let plain = pattern.strip_prefix("(?i)").unwrap_or(pattern);
    let plain = plain.strip_prefix('^').unwrap_or(plain);
    let plain = plain.strip_suffix('$').unwrap_or(plain);
    let plain = plain.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(plain);
    let names: Vec<&str> = plain.split('|').collect();
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-:".contains(c));
    names.iter().all(is_name).then(|| names.into_iter().map(|name| agent_tool(name).to_owned()).collect())
}

fn read_tool_calls(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let mut rules = Vec::new();
    for (key, rule) in [("required", "tool_used"), ("disallowed", "tool_not_used")] {
        for node in config.list(key, diagnostics).unwrap_or_default() {
            let name = node.as_text().or_else(|| node.get("name")?.as_text()).ok_or("a call has no name")?;
            let names = names_of_pattern(name).ok_or_else(|| format!("the tool \"{name}\" is a pattern"))?;
            let keys = node.as_map().unwrap_or_default().iter().map(|entry| entry.key.as_str());
            if let Some(unknown) = keys.into_iter().find(|key| !["name", "command"].contains(key)) {
                return Err(format!("\"{unknown}\" of a tool call cannot be checked"));
            }
            let input = node.get("command").and_then(TreeNode::as_text);
            let input = match input {
                Some(command) if command.contains(['^', '$', '"']) => {
                    return Err("a pattern for commands with ^, $ or quotes cannot be checked".to_owned());
                }
                Some(command) => Some(portable_pattern(command, "")?),
                None => None,
            };
            let calls = names.iter().map(|name| match &input {
                Some(input) => json!({rule: {"name": name, "input": input}}),
                None => json!({rule: name}),
            });
            let calls: Vec<Value> = calls.collect();
            rules.push(if rule == "tool_used" { json!({"any": calls}) } else { json!({"all": calls}) });
        }
    }
    if rules.is_empty() {
        return Err("it names no tool call".to_owned());
    }
    let (key, value) = all_or_nothing(&Value::Array(rules));
    Ok(vec![scored_rule(id, key, &value)?])
}

fn read_tool_count(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let most = i64::from(u32::MAX);
    let mut rules = Vec::new();
    if let Some(max) = config.int("max", 0, most, diagnostics) {
        rules.push(json!({"limit": {"tool_calls": max}}));
    }
    if let Some(min) = config.int("min", 0, most, diagnostics).filter(|min| *min > 0) {
        rules.push(json!({"not": {"limit": {"tool_calls": min - 1}}}));
    }
    if rules.is_empty() {
        return Err("it has no \"max\" and no \"min\"".to_owned());
    }
    let (key, value) = all_or_nothing(&Value::Array(rules));
    Ok(vec![scored_rule(id, key, &value)?])
}

fn read_command(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let command = first_text(config, &["command"], diagnostics)?;
    let args = config.texts("args", diagnostics).unwrap_or_default();
    let run = match args.is_empty() {
        true => command,
        false => {
            let words = std::iter::once(command.as_str()).chain(args.into_iter().map(|(arg, _)| arg));
            words.map(shell_word).collect::<Vec<_>>().join(" ")
        }
    };
    let exit_code = config.int("expected_exit_code", 0, 255, diagnostics).unwrap_or(0);
    let mut value = json!({"run": run, "exit_code": exit_code});
    if let Some(node) = config.get_non_null("timeout") {
        let timeout = read_duration(node, "timeout", diagnostics).ok_or("its timeout is no duration")?;
        value["timeout"] = json!(format_duration(timeout));
    }
    for key in ["stdout_contains", "stderr_contains"] {
        if let Some(texts) = config.texts(key, diagnostics) {
            value[key] = texts.into_iter().map(|(text, _)| text).collect();
        }
    }
    if let Some(pattern) = config.text("stdout_matches", diagnostics) {
        value["stdout_matches"] = json!(portable_pattern(pattern, "")?);
    }
    Ok(vec![scored_rule(id, "command", &value)?])
}

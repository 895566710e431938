//! The graders of a case: patterns, tool calls, files and statements for a judge, with weights and arms.

use serde_json::{Value, json};

use super::super::reading::graders::{
    Unsupported, all_or_nothing, portable_pattern, scored_rule, scored_statement,
};
use super::super::reading::parts::{self, MarkdownPart};
use super::super::reading::{UniqueIds, activation_check};
use super::mocks::MockedServers;
use crate::checks::PythonPattern;
use practicum_core::model::{
    ActivationExpectation, Check, CheckNeed, CheckTarget, CheckWeight, Diagnostics, RelPath, ScoreScale,
    SkillRef, Span,
};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, closest_word, report_wrong_type};

/// The types of graders.
pub const GRADER_TYPES: [&str; 6] = ["regex", "tool_used", "tool_order", "file_exists", "llm", "baseline"];

/// The values of `arm`.
pub const ARMS: [&str; 2] = ["with-only", "both"];

/// The words that name what a grader looks at.
pub const TARGETS: [&str; 4] = ["last_message", "trace", "files", "mock_calls"];

/// Reads graders into checks.
pub struct PluginEvalGraderReader<'s> {
    skills: &'s [SkillRef],
    mocked: &'s MockedServers,
    /// Whether cases run with and without the skills.
    two_arms: bool,
    ids: UniqueIds,
    read: Vec<ReadGrader>,
    unsupported: Unsupported,
}

/// A grader as a check, and whether it counts in a run with two arms.
struct ReadGrader {
    check: Check,
    counts_in_two_arms: bool,
}

/// What a grader looks at.
enum GraderTarget {
    LastMessage,
    Trace,
    CreatedFiles,
    File(RelPath),
    MockCalls,
}

impl<'s> PluginEvalGraderReader<'s> {
    pub fn new(skills: &'s [SkillRef], mocked: &'s MockedServers, two_arms: bool) -> Self {
        Self {
            skills,
            mocked,
            two_arms,
            ids: UniqueIds::default(),
            read: Vec::new(),
            unsupported: Unsupported::default(),
        }
    }

    /// Reads an entry of the list `graders` in case.yaml.
    pub fn read_entry(&mut self, index: usize, node: &TreeNode, problems: &mut Diagnostics) {
        let Some(mut object) = ObjectReader::new(node, "a grader", problems) else { return };
        let name = object
            .required_text("name", problems)
            .map_or_else(|| format!("grader-{}", index + 1), |name| name.trim().to_owned());
        self.read_object(&name, &mut object, None, problems);
        object.reject_unknown_keys("a grader", problems);
    }

    /// Reads a file of the folder `graders`.
    pub fn read_file(&mut self, name: &str, part: &MarkdownPart, diagnostics: &mut Diagnostics) {
        let file = format!("graders/{name}.md");
        if !part.has_front {
            let message = format!("{file}: a grader begins with a frontmatter that has a \"type\"");
            diagnostics.error("missing-key", None, message);
            return;
        }
        let mut problems = Diagnostics::default();
        if let Some(mut object) = ObjectReader::new(&part.front, "a grader", &mut problems) {
            let body = Some(part.body.as_str()).filter(|body| !body.is_empty());
            self.read_object(name, &mut object, body, &mut problems);
            object.reject_unknown_keys("a grader", &mut problems);
        }
        parts::report_part(&file, &part.front_text, problems, diagnostics);
    }

    fn read_object(
        &mut self,
        name: &str,
        object: &mut ObjectReader<'_>,
        body: Option<&str>,
        problems: &mut Diagnostics,
    ) {
        let id = self.ids.make_unique(name);
        let weight = read_weight(object, problems);
        let arm = read_word(object, "arm", &ARMS, problems);
        let kind = read_word(object, "type", &GRADER_TYPES, problems);
        let Some(kind) = kind else {
            if object.peek("type").is_none() {
                object.report_missing("type", problems);
            }
            object.take_unread(&[]);
            return;
        };
        let is_about_skill = kind == "tool_used"
            && object.peek("tool").and_then(TreeNode::as_text).is_some_and(|tool| tool.trim() == "Skill");
        let made = match kind {
            "regex" => read_regex(&id, object, body, !self.mocked.mocks.is_empty(), problems),
            "tool_used" => self.read_tool_used(&id, object, problems),
            "tool_order" => read_tool_order(&id, object, problems),
            "file_exists" => read_file_exists(&id, object, problems),
            "llm" => read_llm(&id, object, body, !self.mocked.mocks.is_empty(), problems),
            _ => {
                object.text("baseline_file", problems);
                object.text("criteria", problems);
                object.get("focus");
                Err("it compares with a recorded run, which this version cannot do".to_owned())
            }
        };
        let excluded = arm == Some("with-only") || arm.is_none() && is_about_skill;
        match made {
            Ok(check) => {
                self.read.push(ReadGrader { check: Check { weight, ..check }, counts_in_two_arms: !excluded })
            }
            Err(why) => self.unsupported.add(format!("grader {id}: {why}")),
        }
    }

    /// A call of the skill tool by which Claude Code activates a skill becomes a check of activation, which works with
    /// every agent.
    fn read_tool_used(
        &self,
        id: &str,
        object: &mut ObjectReader<'_>,
        problems: &mut Diagnostics,
    ) -> Result<Check, String> {
        let tool = object.required_text("tool", problems).unwrap_or_default().trim().to_owned();
        let input = object.text("input_match", problems);
        let min = object.int("min", 0, i64::from(u32::MAX), problems).unwrap_or(1);
        let max = object.int("max", 0, i64::from(u32::MAX), problems);
        if max.is_some_and(|max| max < min) {
            let message = "\"max\" is less than \"min\" (which is 1 unless given), so no run can pass";
            problems.error("contradiction", object.span, message);
            return Err("its \"max\" is less than its \"min\"".to_owned());
        }
        let input = input.map(|pattern| portable_pattern(pattern, "")).transpose()?;
        if tool == "Skill"
            && let Some(check) = self.activation(id, input.as_deref(), min, max)
        {
            return check;
        }
        if let Some((server, tool)) = self.mocked.find_tool(&tool) {
            return mock_rule(id, server, tool, input.as_deref(), min, max);
        }
        tool_rule(id, &tool, input.as_deref(), min, max)
    }

    /// Makes a check of activation; `None` if the grader counts calls, or names no skill of the plugin.
    fn activation(
        &self,
        id: &str,
        input: Option<&str>,
        min: i64,
        max: Option<i64>,
    ) -> Option<Result<Check, String>> {
        let expect = match (min, max) {
            (1, None) => ActivationExpectation::Must,
            (0, Some(0)) => ActivationExpectation::MustNot,
            _ => return None,
        };
        let pattern = match input.map(PythonPattern::new) {
            Some(Ok(pattern)) => Some(pattern),
            Some(Err(_)) => return None,
            None => None,
        };
        let named = |skill: &&SkillRef| {
            let Some(pattern) = &pattern else { return true };
            let plain = json!({"skill": skill.name}).to_string();
            let with_plugin = skill.plugin.as_ref();
            let with_plugin =
                with_plugin.map(|plugin| json!({"skill": format!("{plugin}:{}", skill.name)}).to_string());
            [Some(plain), with_plugin]
                .into_iter()
                .flatten()
                .any(|text| pattern.is_match(&text).unwrap_or(false))
        };
        let skills: Vec<String> = self.skills.iter().filter(named).map(|skill| skill.name.clone()).collect();
        (!skills.is_empty()).then(|| {
            Ok(Check { id: id.to_owned(), need: CheckNeed::Advisory, ..activation_check(skills, expect) })
        })
    }

    /// Gives the checks of the case. In a run with two arms, a grader about the skill does not count, unless nothing
    /// else would. A case without graders is an error.
    pub fn finish(
        self,
        max_turns: Option<i64>,
        unsupported: &mut Unsupported,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Check> {
        if let Some(why) = self.unsupported.into_reason() {
            unsupported.add(why);
        } else if self.read.is_empty() && !diagnostics.has_errors() {
            diagnostics.error("no-checks", None, "the case has no graders");
        }
        let any_counts = self.read.iter().any(|grader| grader.counts_in_two_arms);
        let excludes = self.two_arms && any_counts;
        let mut checks: Vec<Check> = self
            .read
            .into_iter()
            .map(|grader| match excludes && !grader.counts_in_two_arms {
                true => Check { weight: CheckWeight::ZERO, ..grader.check },
                false => grader.check,
            })
            .collect();
        // The limit is shown and does not count: here it does not stop the agent.
        let mut ids = self.ids;
        if let Some(turns) = max_turns
            && let Ok(check) = scored_rule(&ids.make_unique("max_turns"), "limit", &json!({"turns": turns}))
        {
            checks.push(Check { weight: CheckWeight::ZERO, ..check });
        }
        checks
    }
}

/// Reads one grader of a case without mocks by itself; `None` if it is not read as a check.
pub fn read_grader(grader: &Value, skills: &[SkillRef]) -> Option<Check> {
    let mocked = MockedServers::default();
    let mut named = grader.clone();
    named["name"] = json!("grader");
    let mut problems = Diagnostics::default();
    let mut reader = PluginEvalGraderReader::new(skills, &mocked, false);
    reader.read_entry(0, &TreeNode::from_value(&named, Span::default()), &mut problems);
    match reader.read.as_slice() {
        [only] if problems.iter().next().is_none() => Some(only.check.clone()),
        _ => None,
    }
}

fn read_weight(object: &mut ObjectReader<'_>, problems: &mut Diagnostics) -> CheckWeight {
    let Some(node) = object.get_non_null("weight") else { return CheckWeight::ONE };
    let number = match node.data {
        NodeData::Int(number) => Some(number as f64),
        NodeData::Float(number) => Some(number),
        _ => None,
    };
    match number.filter(|number| *number > 0.0).and_then(CheckWeight::new) {
        Some(weight) => weight,
        None => {
            problems.error("out-of-range", node.span, "\"weight\" must be a number above 0");
            CheckWeight::ONE
        }
    }
}

/// Reads a text that must be one of these words.
fn read_word<'w>(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    words: &[&'w str],
    problems: &mut Diagnostics,
) -> Option<&'w str> {
    let node = object.get_non_null(key)?;
    let Some(text) = node.as_text() else {
        report_wrong_type(node, key, "text", problems);
        return None;
    };
    let found = words.iter().find(|word| **word == text.trim()).copied();
    if found.is_none() {
        let help = closest_word(text, words).map_or_else(
            || format!("it may be {}", words.join(", ")),
            |word| format!("did you mean \"{word}\"?"),
        );
        problems.error_with_help("unknown-value", node.span, format!("\"{key}\" cannot be \"{text}\""), help);
    }
    found
}

fn read_target(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    problems: &mut Diagnostics,
) -> Result<GraderTarget, String> {
    let Some(node) = object.get_non_null(key) else { return Ok(GraderTarget::LastMessage) };
    if node.as_map().is_some() {
        let Some(mut target) = ObjectReader::new(node, key, problems) else {
            return Err("no target".to_owned());
        };
        let source = read_word(&mut target, "source", &["file"], problems);
        let path = target.required_text("path", problems);
        target.reject_unknown_keys("a target", problems);
        let path = path.filter(|_| source.is_some()).and_then(RelPath::new);
        return path.map(GraderTarget::File).ok_or_else(|| "it names no file of the workspace".to_owned());
    }
    match read_word(object, key, &TARGETS, problems) {
        Some("last_message") => Ok(GraderTarget::LastMessage),
        Some("trace") => Ok(GraderTarget::Trace),
        Some("files") => Ok(GraderTarget::CreatedFiles),
        Some("mock_calls") => Ok(GraderTarget::MockCalls),
        Some(_) | None => Err(format!("its \"{key}\" is not known")),
    }
}

/// How often a pattern must match.
enum WantedMatches {
    Some,
    None,
    Exactly(u32),
}

fn read_match(object: &mut ObjectReader<'_>, problems: &mut Diagnostics) -> Result<WantedMatches, String> {
    let Some(node) = object.get_non_null("match") else { return Ok(WantedMatches::Some) };
    let text = node.as_text().unwrap_or_default();
    let count = text.strip_prefix("count:").and_then(|count| count.trim().parse().ok());
    match (text, count) {
        ("contains", _) => Ok(WantedMatches::Some),
        ("not_contains", _) => Ok(WantedMatches::None),
        (_, Some(count)) => Ok(WantedMatches::Exactly(count)),
        (_, None) => {
            let message = "\"match\" must be contains, not_contains or \"count:N\"";
            problems.error("unknown-value", node.span, message);
            Err("its \"match\" is not known".to_owned())
        }
    }
}

fn read_regex(
    id: &str,
    object: &mut ObjectReader<'_>,
    body: Option<&str>,
    has_mocks: bool,
    problems: &mut Diagnostics,
) -> Result<Check, String> {
    let said = object.text("pattern", problems);
    let flags = object.text("flags", problems).unwrap_or_default();
    let wanted = read_match(object, problems);
    let target = read_target(object, "target", problems);
    let Some(source) = said.or(body) else {
        object.report_missing("pattern", problems);
        return Err("it has no pattern".to_owned());
    };
    let (wanted, target) = (wanted?, target?);
    let pattern = portable_pattern(source, flags)?;
    let is_trace = matches!(target, GraderTarget::Trace);
    // The session is written differently here, so a pattern for its JSON says nothing if it does not match.
    if is_trace && !matches!(wanted, WantedMatches::Some) && source.contains(['"', '\\', '{', '}']) {
        return Err("it forbids a form of Claude Code's own session records".to_owned());
    }
    let counted = |count: u32| {
        let lines = json!({"pattern": whole_text_anchors(&pattern, flags), "count": count});
        let more = json!({"pattern": whole_text_anchors(&pattern, flags), "count": u64::from(count) + 1});
        all_or_nothing(&json!([{"min_count": lines}, {"not": {"min_count": more}}]))
    };
    let (key, value, target) = match (target, wanted) {
        (GraderTarget::MockCalls, _) if !has_mocks => {
            return Err("it looks at calls of mocks, and the case has none".to_owned());
        }
        (GraderTarget::MockCalls, WantedMatches::Some) => {
            ("mock_calls_match", json!({"pattern": pattern, "expect": "present"}), None)
        }
        (GraderTarget::MockCalls, WantedMatches::None) => {
            ("mock_calls_match", json!({"pattern": pattern, "expect": "absent"}), None)
        }
        (GraderTarget::MockCalls, WantedMatches::Exactly(_)) => {
            return Err("it counts matches in the calls of mocks".to_owned());
        }
        (GraderTarget::CreatedFiles, WantedMatches::Some) => {
            ("files", json!({"matches": pattern, "created": true}), None)
        }
        (GraderTarget::CreatedFiles, WantedMatches::None) => {
            ("files", json!({"matches": pattern, "created": true, "exists": false}), None)
        }
        (GraderTarget::CreatedFiles, WantedMatches::Exactly(_)) => {
            return Err("it counts matches in the list of files".to_owned());
        }
        (GraderTarget::File(path), WantedMatches::Some) => {
            ("file", json!({"path": path.as_str(), "matches": pattern}), None)
        }
        // A file that is not there does not prove that the text is not in it.
        (GraderTarget::File(path), WantedMatches::None) => {
            let path = path.as_str();
            let rules = json!([{"file": path}, {"not": {"file": {"path": path, "matches": pattern}}}]);
            let (key, value) = all_or_nothing(&rules);
            (key, value, None)
        }
        (GraderTarget::File(path), WantedMatches::Exactly(count)) => {
            let (key, value) = counted(count);
            (key, value, Some(CheckTarget::File(path)))
        }
        (text, wanted) => {
            let target = match text {
                GraderTarget::Trace => CheckTarget::WholeRun,
                _ => CheckTarget::Output,
            };
            let (key, value) = match wanted {
                WantedMatches::Some => ("regex", json!(pattern)),
                WantedMatches::None => ("not", json!({"regex": pattern})),
                WantedMatches::Exactly(count) => counted(count),
            };
            (key, value, Some(target))
        }
    };
    let check = scored_rule(id, key, &value)?;
    Ok(match target {
        Some(target) => Check { target, ..check },
        None => check,
    })
}

/// Makes `^` mean the beginning of the text in a pattern that is counted, where it would mean that of each line.
fn whole_text_anchors(pattern: &str, flags: &str) -> String {
    if flags.contains('m') || pattern.contains("(?m") {
        return pattern.to_owned();
    }
    let mut out = String::new();
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                out.push(letter);
                out.extend(letters.next());
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '^' if !in_class => {
                out.push_str(r"\A");
                continue;
            }
            _ => {}
        }
        out.push(letter);
    }
    out
}

/// The tools of Claude Code that other agents have under other names, each with its role.
pub const ROLES: [(&str, &str); 4] =
    [("Read", "read"), ("Write", "write"), ("Edit", "edit"), ("Bash", "shell")];

/// Gives the role of a tool of Claude Code, or its own name.
fn tool_or_role(tool: &str) -> &str {
    ROLES.iter().find(|(name, _)| *name == tool).map_or(tool, |(_, role)| role)
}

fn call_value(tool: &str, input: Option<&str>) -> Value {
    match input {
        Some(input) => json!({"name": tool_or_role(tool), "input": input}),
        None => json!({"name": tool_or_role(tool)}),
    }
}

fn tool_rule(id: &str, tool: &str, input: Option<&str>, min: i64, max: Option<i64>) -> Result<Check, String> {
    let mut value = call_value(tool, input);
    if (min, max) == (0, Some(0)) {
        return scored_rule(id, "tool_not_used", &value);
    }
    value["min"] = json!(min);
    if let Some(max) = max {
        value["max"] = json!(max);
    }
    scored_rule(id, "tool_used", &value)
}

/// Makes a check of the calls that the mock of a tool got. It works with every agent, whatever its names of tools are.
fn mock_rule(
    id: &str,
    server: &str,
    tool: &str,
    input: Option<&str>,
    min: i64,
    max: Option<i64>,
) -> Result<Check, String> {
    let mut value = json!({"server": server, "tool": tool});
    if let Some(input) = input {
        value["input_match"] = json!(input);
    }
    if (min, max) == (0, Some(0)) {
        return scored_rule(id, "mock_not_called", &value);
    }
    value["min"] = json!(min);
    if let Some(max) = max {
        value["max"] = json!(max);
    }
    scored_rule(id, "mock_called", &value)
}

fn read_tool_order(
    id: &str,
    object: &mut ObjectReader<'_>,
    problems: &mut Diagnostics,
) -> Result<Check, String> {
    let mut calls = Vec::new();
    for key in ["before", "after"] {
        let Some(node) = object.get_non_null(key) else {
            object.report_missing(key, problems);
            continue;
        };
        calls.push(read_call(node, key, problems)?);
    }
    if calls.len() < 2 {
        return Err("it needs \"before\" and \"after\"".to_owned());
    }
    scored_rule(id, "tool_order", &json!({"calls": calls, "first": true}))
}

fn read_call(node: &TreeNode, key: &str, problems: &mut Diagnostics) -> Result<Value, String> {
    if let Some(tool) = node.as_text() {
        return Ok(call_value(tool.trim(), None));
    }
    let wrong = || format!("its \"{key}\" names no tool");
    let mut object = ObjectReader::new(node, key, problems).ok_or_else(wrong)?;
    let tool = object.required_text("tool", problems);
    let input = object.text("input_match", problems);
    object.reject_unknown_keys("a tool call", problems);
    let input = input.map(|pattern| portable_pattern(pattern, "")).transpose()?;
    Ok(call_value(tool.ok_or_else(wrong)?.trim(), input.as_deref()))
}

fn read_file_exists(
    id: &str,
    object: &mut ObjectReader<'_>,
    problems: &mut Diagnostics,
) -> Result<Check, String> {
    let path = object.required_text("path", problems).unwrap_or_default().trim();
    let exists = object.bool("exists", problems).unwrap_or(true);
    // Whether a name without folders matches in every folder is not documented. A file that must not be there must
    // then be nowhere.
    let glob = if exists || path.contains('/') { path.to_owned() } else { format!("**/{path}") };
    scored_rule(id, "files", &json!({"path": glob, "created": true, "exists": exists}))
}

fn read_llm(
    id: &str,
    object: &mut ObjectReader<'_>,
    body: Option<&str>,
    has_mocks: bool,
    problems: &mut Diagnostics,
) -> Result<Check, String> {
    let criteria = object.text("criteria", problems).filter(|text| !text.trim().is_empty());
    let focus = read_target(object, "focus", problems);
    let Some(rubric) = criteria.or(body) else {
        object.report_missing("criteria", problems);
        return Err("it has no criteria".to_owned());
    };
    let target = match focus? {
        GraderTarget::LastMessage => CheckTarget::Output,
        GraderTarget::MockCalls if !has_mocks => {
            return Err("it looks at calls of mocks, and the case has none".to_owned());
        }
        // The judge is shown the whole run, with its calls of mocks.
        GraderTarget::Trace | GraderTarget::CreatedFiles | GraderTarget::MockCalls => CheckTarget::WholeRun,
        GraderTarget::File(path) => CheckTarget::File(path),
    };
    let statement = format!("By this rubric, the verdict is PASS:\n{}", rubric.trim());
    Ok(scored_statement(id, &statement, ScoreScale::PassFail, target))
}

//! The graders of waza: texts, code, files, tools, skills, limits, and a judge.

use std::path::Path;

use serde_json::{Value, json};

use super::super::EvalFolder;
use super::super::copilot_tools::{agent_tool, is_glob, shell_word};
use super::super::reading::graders::{
    Unsupported, escape_pattern, portable_pattern, scored_rule, scored_statement,
};
use super::super::reading::{UniqueIds, UnusedKeys, activation_check};
use practicum_core::model::{
    ActivationExpectation, Check, CheckTarget, Diagnostics, RelPath, ScoreScale, SkillRef, Span,
};
use practicum_core::tree::{ObjectReader, TreeNode};

/// The types of graders that are read.
pub const GRADER_TYPES: [&str; 13] = [
    "text",
    "regex",
    "code",
    "prompt",
    "llm",
    "file",
    "diff",
    "json_schema",
    "program",
    "behavior",
    "action_sequence",
    "skill_invocation",
    "tool_constraint",
];

/// Reads graders into checks.
pub struct WazaGraderReader<'r> {
    folder: &'r EvalFolder,
    skill: &'r SkillRef,
    context_dir: Option<&'r str>,
    ids: UniqueIds,
    unsupported: Unsupported,
}

/// The checks of one grader, or why there are none.
type MadeChecks = Result<Vec<Check>, String>;

impl<'r> WazaGraderReader<'r> {
    pub fn new(folder: &'r EvalFolder, skill: &'r SkillRef, context_dir: Option<&'r str>) -> Self {
        Self { folder, skill, context_dir, ids: UniqueIds::default(), unsupported: Unsupported::default() }
    }

    pub fn unique_id(&mut self, wanted: &str) -> String {
        self.ids.make_unique(wanted)
    }

    pub fn report_unsupported(&mut self, why: &str) {
        self.unsupported.add(why);
    }

    /// Reads one grader. What cannot be graded is a reason not to score the case.
    pub fn read(
        &mut self,
        node: &TreeNode,
        checks: &mut Vec<Check>,
        unsupported: &mut Unsupported,
        diagnostics: &mut Diagnostics,
    ) {
        let Some(mut grader) = ObjectReader::new(node, "a grader", diagnostics) else { return };
        let kind = grader.text("type", diagnostics).map(str::to_owned);
        let name = grader.text("name", diagnostics).or(kind.as_deref()).unwrap_or("grader").trim().to_owned();
        let id = self.unique_id(&name);
        grader.get("weight");
        let empty = TreeNode::from_value(&json!({}), node.span);
        let config = grader.get_non_null("config").unwrap_or(&empty);
        UnusedKeys::default().collect_unused(&grader, "a grader", diagnostics);
        let Some(kind) = kind else {
            unsupported.add(format!("grader {id} has no \"type\""));
            return;
        };
        let Some(mut config) = ObjectReader::new(config, "\"config\"", diagnostics) else { return };
        let made = match kind.as_str() {
            "text" | "regex" => read_text(&id, &mut config, diagnostics),
            "code" => read_code(&id, &mut config, diagnostics),
            "prompt" | "llm" => read_prompt(&id, &mut config, diagnostics),
            "file" => read_file(&id, &mut config, diagnostics),
            "diff" => self.read_diff(&id, &mut config, diagnostics),
            "json_schema" => {
                config.take_unread(&[]);
                Err("it compares with a JSON Schema, which this version cannot do".to_owned())
            }
            "program" => self.read_program(&id, &mut config, diagnostics),
            "behavior" => read_behavior_rules(&mut config, diagnostics).and_then(|rules| all_of(&id, rules)),
            "action_sequence" => read_action_sequence(&id, &mut config, diagnostics),
            "skill_invocation" => read_skill_invocation(&id, &mut config, diagnostics),
            "tool_constraint" => read_tool_constraint(&id, &mut config, diagnostics),
            "trigger" => self.read_trigger(&id, &mut config, diagnostics),
            other => {
                config.take_unread(&[]);
                Err(format!("its type \"{other}\" is not known"))
            }
        };
        UnusedKeys::default().collect_unused(&config, "\"config\"", diagnostics);
        match made {
            Ok(made) => checks.extend(made),
            Err(why) => unsupported.add(format!("grader {id}: {why}")),
        }
        if let Some(why) = std::mem::take(&mut self.unsupported).into_reason() {
            unsupported.add(why);
        }
    }

    /// Reads the limits of a run, as a grader or under `expected`.
    pub fn read_behavior(
        &mut self,
        name: &str,
        node: &TreeNode,
        checks: &mut Vec<Check>,
        diagnostics: &mut Diagnostics,
    ) {
        let Some(mut config) = ObjectReader::new(node, "\"behavior\"", diagnostics) else { return };
        let rules = read_behavior_rules(&mut config, diagnostics);
        UnusedKeys::default().collect_unused(&config, "\"behavior\"", diagnostics);
        let id = self.unique_id(name);
        checks.extend(rules.and_then(|rules| all_of(&id, rules)).unwrap_or_default());
    }

    /// Reads expected files: texts that they contain or must not contain, or a whole file to compare with.
    fn read_diff(
        &self,
        id: &str,
        config: &mut ObjectReader<'_>,
        diagnostics: &mut Diagnostics,
    ) -> MadeChecks {
        let own_context = config.text("context_dir", diagnostics);
        let mut rules = Vec::new();
        for node in config.list("expected_files", diagnostics).unwrap_or_default() {
            let Some(mut file) = ObjectReader::new(node, "an expected file", diagnostics) else { continue };
            let path = file.required_text("path", diagnostics).unwrap_or_default().to_owned();
            let snapshot = file.text("snapshot", diagnostics);
            let texts = file.texts("contains", diagnostics).unwrap_or_default();
            UnusedKeys::default().collect_unused(&file, "an expected file", diagnostics);
            rules.push(json!({"file": path}));
            for (text, _) in texts {
                rules.push(match (text.strip_prefix('+'), text.strip_prefix('-')) {
                    (Some(must), _) => json!({"file": {"path": path, "contains": must}}),
                    (None, Some(must_not)) => json!({"not": {"file": {"path": path, "contains": must_not}}}),
                    (None, None) => json!({"file": {"path": path, "contains": text}}),
                });
            }
            if let Some(snapshot) = snapshot {
                let context = own_context.or(self.context_dir).unwrap_or("fixtures");
                let text = RelPath::new(&format!("{context}/{snapshot}"))
                    .or_else(|| RelPath::new(snapshot))
                    .and_then(|path| self.folder.read_text(&path).ok())
                    .or_else(|| self.folder.read_text(&RelPath::new(snapshot)?).ok())
                    .ok_or_else(|| format!("the snapshot {snapshot} cannot be read"))?;
                rules.push(
                    json!({"file": {"path": path, "matches": format!(r"\A{}\Z", escape_pattern(&text))}}),
                );
            }
        }
        all_of(id, rules)
    }

    /// Reads a program that gets the answer on its input and decides by its exit code.
    fn read_program(
        &self,
        id: &str,
        config: &mut ObjectReader<'_>,
        diagnostics: &mut Diagnostics,
    ) -> MadeChecks {
        let command = config.required_text("command", diagnostics).unwrap_or_default().to_owned();
        let args = config.texts("args", diagnostics).unwrap_or_default();
        let timeout = config.int("timeout", 1, 3600, diagnostics).unwrap_or(30);
        let words = std::iter::once(command.as_str()).chain(args.into_iter().map(|(arg, _)| arg));
        let words: Vec<String> = words.map(|word| shell_word(&self.own_file(word))).collect();
        let run = format!("WAZA_WORKSPACE_DIR=\"$PWD\" {}", words.join(" "));
        let value = json!({"run": run, "gets_output": true, "timeout": format!("{timeout}s")});
        Ok(vec![scored_rule(id, "command", &value)?])
    }

    /// Gives the full path of a file that lies beside the spec; any other word stays as it is.
    fn own_file(&self, word: &str) -> String {
        let here = RelPath::new(word).map(|path| path.join_to(self.folder.path()));
        let here = here.filter(|path| word.contains(['/', '.']) && path.is_file());
        here.map_or_else(|| word.to_owned(), |path| path.to_string_lossy().into_owned())
    }

    /// Reads a grader that compares the words of prompt and skill. Its author wants to know whether the skill is
    /// activated, so that is checked.
    fn read_trigger(
        &self,
        id: &str,
        config: &mut ObjectReader<'_>,
        diagnostics: &mut Diagnostics,
    ) -> MadeChecks {
        let path = config.text("skill_path", diagnostics);
        let mode = config.text("mode", diagnostics);
        config.get("threshold");
        let named = path.and_then(|path| Path::new(path).parent()?.file_name()?.to_str().map(str::to_owned));
        let skill = named.unwrap_or_else(|| self.skill.name.clone());
        let expect = match mode {
            Some("positive") | None => ActivationExpectation::Must,
            Some("negative") => ActivationExpectation::MustNot,
            Some(other) => return Err(format!("its mode \"{other}\" is not known")),
        };
        let message = "waza compares the words of the prompt and the skill; here it is checked whether the agent \
                       activates the skill";
        diagnostics.notice("stricter-than-original", config.span, message);
        Ok(vec![Check { id: id.to_owned(), ..activation_check(vec![skill], expect) }])
    }
}

/// Reads one grader by itself; `None` if it is not read as one check, or needs files beside it.
pub fn read_grader(grader: &Value) -> Option<Check> {
    let (span, mut diagnostics) = (Span::default(), Diagnostics::default());
    let node = TreeNode::from_value(grader.get("config")?, span);
    let mut config = ObjectReader::new(&node, "\"config\"", &mut diagnostics)?;
    let (id, config) = ("grader", &mut config);
    let made = match grader.get("type")?.as_str()? {
        "text" => read_text(id, config, &mut diagnostics),
        "code" => read_code(id, config, &mut diagnostics),
        "file" => read_file(id, config, &mut diagnostics),
        "behavior" => read_behavior_rules(config, &mut diagnostics).and_then(|rules| all_of(id, rules)),
        "action_sequence" => read_action_sequence(id, config, &mut diagnostics),
        "skill_invocation" => read_skill_invocation(id, config, &mut diagnostics),
        "tool_constraint" => read_tool_constraint(id, config, &mut diagnostics),
        _ => return None,
    };
    match made.ok()?.as_slice() {
        [only] if diagnostics.iter().next().is_none() => Some(only.clone()),
        _ => None,
    }
}

/// Makes one check of several rules, all of which must hold. A grader without any is not valid.
fn all_of(id: &str, rules: Vec<Value>) -> MadeChecks {
    let check = match rules.as_slice() {
        [] => return Err("it asks for nothing that is known here".to_owned()),
        [Value::Object(only)] => match only.iter().next() {
            Some((key, value)) => scored_rule(id, key, value)?,
            None => return Err("it asks for nothing".to_owned()),
        },
        _ => scored_rule(id, "all", &Value::Array(rules))?,
    };
    Ok(vec![check])
}

fn read_text(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let mut rules = Vec::new();
    let texts = |config: &mut ObjectReader<'_>, key: &'static str, diagnostics: &mut Diagnostics| {
        let found = config.texts(key, diagnostics).unwrap_or_default();
        found.into_iter().map(|(text, _)| text.to_owned()).collect::<Vec<String>>()
    };
    for (key, rule, ignore_case) in [
        ("contains", "contains", true),
        ("not_contains", "not_contains", true),
        ("contains_cs", "contains", false),
        ("not_contains_cs", "not_contains", false),
    ] {
        for text in texts(config, key, diagnostics) {
            rules.push(json!({rule: {"text": text, "ignore_case": ignore_case}}));
        }
    }
    // The two older names come from the obsolete type "regex".
    for key in ["regex_match", "must_match"] {
        for pattern in texts(config, key, diagnostics) {
            rules.push(json!({"regex": portable_pattern(&pattern, "")?}));
        }
    }
    for key in ["regex_not_match", "must_not_match"] {
        for pattern in texts(config, key, diagnostics) {
            rules.push(json!({"not": {"regex": portable_pattern(&pattern, "")?}}));
        }
    }
    all_of(id, rules)
}

/// Reads assertions in Python or JavaScript. The simplest ones become checks of their own; the others run as code.
fn read_code(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let language = config.text("language", diagnostics).unwrap_or("python").to_owned();
    let assertions = config.texts("assertions", diagnostics).unwrap_or_default();
    let assertions: Vec<&str> = assertions.into_iter().map(|(text, _)| text.trim()).collect();
    let unknown = ["outcome", "transcript", "tool_calls", "errors", "duration_ms"];
    let mut rules = Vec::new();
    let mut code = Vec::new();
    for assertion in &assertions {
        match simple_assertion(assertion).filter(|_| language == "python") {
            Some(rule) => rules.push(rule),
            None => code.push(*assertion),
        }
    }
    let has_word = |text: &str, word: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
    };
    if let Some(name) = unknown.into_iter().find(|name| code.iter().any(|text| has_word(text, name))) {
        return Err(format!("its code uses \"{name}\", which it does not get here"));
    }
    if !code.is_empty() {
        let list = json!(code).to_string();
        let run = match language.as_str() {
            "python" => format!("python3 -c {} {}", shell_word(PYTHON_ASSERTIONS), shell_word(&list)),
            "javascript" => format!("node -e {} {}", shell_word(JAVASCRIPT_ASSERTIONS), shell_word(&list)),
            other => return Err(format!("code in {other} is not run")),
        };
        rules.push(json!({"command": {"run": run, "gets_output": true, "score": 1.0}}));
    }
    all_of(id, rules)
}

/// Evaluates assertions on the answer, and prints the share that holds.
const PYTHON_ASSERTIONS: &str = r#"import json, re, sys
output = sys.stdin.read()
def holds(text):
    try:
        return bool(eval(text, {"output": output, "re": re, "json": json}))
    except Exception as error:
        return False
items = json.loads(sys.argv[1])
failed = [text for text in items if not holds(text)]
print(json.dumps({"score": 1 - len(failed) / len(items), "details": "; ".join(failed)}))"#;

/// Evaluates assertions on the answer, and prints the share that holds.
const JAVASCRIPT_ASSERTIONS: &str = r#"const output = require("fs").readFileSync(0, "utf8");
const items = JSON.parse(process.argv[1]);
const failed = items.filter(text => { try { return !eval(text); } catch (error) { return true; } });
console.log(JSON.stringify({score: 1 - failed.length / items.length, details: failed.join("; ")}));"#;

/// Gives the check that says the same as an assertion about the length or a part of the answer.
fn simple_assertion(assertion: &str) -> Option<Value> {
    for (beginning, more) in [("len(output) >= ", 0), ("len(output) > ", 1)] {
        if let Some(number) = assertion.strip_prefix(beginning).and_then(|number| number.parse::<i64>().ok())
        {
            return Some(json!({"min_length": number + more}));
        }
    }
    let quote = assertion.chars().next().filter(|quote| *quote == '\'' || *quote == '"')?;
    let (text, rest) = assertion[1..].split_once(quote)?;
    if text.contains('\\') {
        return None;
    }
    let is_lower = text == text.to_lowercase();
    match rest {
        " in output" => Some(json!({"contains": text})),
        " not in output" => Some(json!({"not_contains": text})),
        " in output.lower()" if is_lower => Some(json!({"contains": {"text": text, "ignore_case": true}})),
        " not in output.lower()" if is_lower => {
            Some(json!({"not_contains": {"text": text, "ignore_case": true}}))
        }
        _ => None,
    }
}

fn read_prompt(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let prompt = config.required_text("prompt", diagnostics).map(str::to_owned);
    let mode = config.text("mode", diagnostics).map(str::to_owned);
    for key in ["model", "continue_session", "rubric", "threshold"] {
        config.get(key);
    }
    match (prompt, mode.as_deref()) {
        (_, Some("pairwise")) => Err("it compares with the run without the skill".to_owned()),
        (None, _) => Err("it has no prompt".to_owned()),
        (Some(prompt), _) => {
            let statement =
                format!("A reviewer with these instructions would pass the work:\n{}", prompt.trim());
            Ok(vec![scored_statement(id, &statement, ScoreScale::PassFail, CheckTarget::WholeRun)])
        }
    }
}

fn file_exists(path: &str, exists: bool) -> Value {
    match is_glob(path) {
        true => json!({"files": {"path": path, "exists": exists}}),
        false => json!({"file": {"path": path, "exists": exists}}),
    }
}

fn read_file(id: &str, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> MadeChecks {
    let mut rules = Vec::new();
    for (key, exists) in [("must_exist", true), ("must_not_exist", false)] {
        for (path, _) in config.texts(key, diagnostics).unwrap_or_default() {
            rules.push(file_exists(path, exists));
        }
    }
    for node in config.list("content_patterns", diagnostics).unwrap_or_default() {
        let Some(mut entry) = ObjectReader::new(node, "a content pattern", diagnostics) else { continue };
        let path = entry.required_text("path", diagnostics).unwrap_or_default().to_owned();
        let must = entry.texts("must_match", diagnostics).unwrap_or_default();
        let must_not = entry.texts("must_not_match", diagnostics).unwrap_or_default();
        UnusedKeys::default().collect_unused(&entry, "a content pattern", diagnostics);
        if is_glob(&path) {
            return Err("it looks into files by a glob".to_owned());
        }
        rules.push(json!({"file": path}));
        for (pattern, _) in must {
            rules.push(json!({"file": {"path": path, "matches": portable_pattern(pattern, "")?}}));
        }
        for (pattern, _) in must_not {
            rules.push(json!({"not": {"file": {"path": path, "matches": portable_pattern(pattern, "")?}}}));
        }
    }
    all_of(id, rules)
}

fn read_behavior_rules(
    config: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<Value>, String> {
    let mut rules = Vec::new();
    let most = i64::from(u32::MAX);
    for (key, measure) in
        [("max_tool_calls", "tool_calls"), ("max_tokens", "tokens"), ("max_iterations", "turns")]
    {
        if let Some(number) = config.int(key, 0, most, diagnostics).filter(|number| *number > 0) {
            rules.push(json!({"limit": {measure: number}}));
        }
    }
    for key in ["max_duration_ms", "max_response_time_ms"] {
        if let Some(number) = config.int(key, 0, most, diagnostics).filter(|number| *number > 0) {
            rules.push(json!({"limit": {"seconds": number as f64 / 1000.0}}));
        }
    }
    for (key, rule) in [("required_tools", "tool_used"), ("forbidden_tools", "tool_not_used")] {
        for (tool, _) in config.texts(key, diagnostics).unwrap_or_default() {
            rules.push(json!({rule: agent_tool(tool)}));
        }
    }
    Ok(rules)
}

fn read_action_sequence(
    id: &str,
    config: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> MadeChecks {
    let mode = config.text("matching_mode", diagnostics).unwrap_or("in_order_match").to_owned();
    let actions = config.texts("expected_actions", diagnostics).unwrap_or_default();
    let actions: Vec<&str> = actions.into_iter().map(|(action, _)| agent_tool(action)).collect();
    let value = match mode.as_str() {
        "exact_match" => json!([{"tool_order": {"calls": actions, "only": true}}]),
        "in_order_match" => json!([{"tool_order": actions}]),
        "any_order_match" => {
            let count = |tool: &str| actions.iter().filter(|other| **other == tool).count();
            actions.iter().map(|tool| json!({"tool_used": {"name": tool, "min": count(tool)}})).collect()
        }
        other => return Err(format!("its mode \"{other}\" is not known")),
    };
    all_of(id, value.as_array().cloned().unwrap_or_default())
}

/// Reads which skills must be activated. Their order, and skills beside them, cannot be checked.
fn read_skill_invocation(
    id: &str,
    config: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> MadeChecks {
    let mode = config.text("mode", diagnostics).unwrap_or("any_order").to_owned();
    let allow_extra = config.bool("allow_extra", diagnostics).unwrap_or(true);
    let names = |key, config: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics| {
        let found = config.texts(key, diagnostics).unwrap_or_default();
        found.into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<String>>()
    };
    let required = names("required_skills", config, diagnostics);
    let forbidden = names("forbidden_skills", config, diagnostics);
    if mode != "any_order" && required.len() > 1 {
        return Err("the order of activated skills is not checked".to_owned());
    }
    if !allow_extra || mode == "exact_match" {
        return Err("that no other skill is activated is not checked".to_owned());
    }
    let mut checks = Vec::new();
    for (index, skill) in required.iter().enumerate() {
        let id = if index == 0 { id.to_owned() } else { format!("{id}-{}", index + 1) };
        checks.push(Check { id, ..activation_check(vec![skill.clone()], ActivationExpectation::Must) });
    }
    if !forbidden.is_empty() {
        let id = if checks.is_empty() { id.to_owned() } else { format!("{id}-forbidden") };
        checks.push(Check { id, ..activation_check(forbidden, ActivationExpectation::MustNot) });
    }
    match checks.is_empty() {
        true => Err("it names no skill".to_owned()),
        false => Ok(checks),
    }
}

fn read_tool_constraint(
    id: &str,
    config: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> MadeChecks {
    let mut rules = Vec::new();
    for (key, rule) in [("expect_tools", "tool_used"), ("reject_tools", "tool_not_used")] {
        for node in config.list(key, diagnostics).unwrap_or_default() {
            let owned;
            let node = match node.as_text() {
                Some(tool) => {
                    owned = TreeNode::from_value(&json!({"tool": tool}), node.span);
                    &owned
                }
                None => node,
            };
            let Some(mut call) = ObjectReader::new(node, "a tool", diagnostics) else { continue };
            let tool = call.required_text("tool", diagnostics).unwrap_or_default().to_owned();
            let mut patterns = Vec::new();
            for key in ["command_pattern", "skill_pattern", "path_pattern"] {
                patterns.extend(call.text(key, diagnostics).map(str::to_owned));
            }
            UnusedKeys::default().collect_unused(&call, "a tool", diagnostics);
            let plain = tool.trim_start_matches('^').trim_end_matches('$');
            if plain.is_empty() || !plain.chars().all(|c| c.is_alphanumeric() || "_-".contains(c)) {
                return Err(format!("the tool \"{tool}\" is a pattern, which cannot be checked"));
            }
            if patterns.len() > 1 || patterns.iter().any(|pattern| pattern.contains(['^', '$'])) {
                return Err("its patterns for arguments cannot be checked".to_owned());
            }
            let name = agent_tool(plain);
            rules.push(match patterns.first() {
                Some(pattern) => json!({rule: {"name": name, "input": portable_pattern(pattern, "i")?}}),
                None => json!({rule: name}),
            });
        }
    }
    all_of(id, rules)
}

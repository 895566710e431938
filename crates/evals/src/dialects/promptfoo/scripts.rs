//! Assertions of promptfoo that are code: commands that run them with Node.js or Python, and print a score.

use serde_json::{Value, json};

use super::super::copilot_tools::shell_word;

/// The languages of assertions that are code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptLanguage {
    JavaScript,
    Python,
}

/// The code of an assertion.
#[derive(Debug, Clone)]
pub enum ScriptCode {
    /// The code itself.
    Inline(String),
    /// A file, and the function in it that is called; `None` for its usual one.
    File { path: String, function: Option<String> },
}

/// An assertion that is code.
pub struct ScriptAssertion<'s> {
    pub language: ScriptLanguage,
    pub code: ScriptCode,
    /// What the code gets beside the output.
    pub context: &'s Value,
    /// Whether the answer is turned round.
    pub inverse: bool,
    pub threshold: Option<f64>,
    /// Whether the score of the answer counts, and not whether it passes.
    pub by_score: bool,
}

/// Runs an assertion in JavaScript: the output comes on the standard input, the rest as an argument. What the code
/// prints goes to the standard error, so that it is not taken for the score.
const RUN_JAVASCRIPT: &str = r#"
const data = JSON.parse(process.argv[1]);
const print = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
const report = (pass, score, details) =>
  print(JSON.stringify({ score: data.by_score ? score : pass ? 1 : 0, details: String(details) }) + "\n");
(async () => {
  const output = require("fs").readFileSync(0, "utf8");
  let run;
  if (data.file) {
    const loaded = await import(require("url").pathToFileURL(data.file));
    const home = loaded.default ?? loaded;
    run = data.function ? (loaded[data.function] ?? home[data.function]) : typeof home === "function" ? home : home.default;
  } else {
    run = new Function("output", "context", "process", data.code);
  }
  const result = await run(output, data.context, process);
  if (typeof result === "boolean") {
    const pass = result !== data.inverse;
    report(pass, pass ? 1 : 0, "returned " + result);
  } else if (typeof result === "number") {
    const raw = data.threshold === null ? result > 0 : result >= data.threshold;
    report(raw !== data.inverse, result, "returned " + result);
  } else if (result && typeof result.pass === "boolean" && typeof result.score === "number") {
    report(result.pass !== data.inverse, result.score, result.reason ?? "");
  } else {
    report(false, 0, "the code must return a boolean, a number, or {pass, score, reason}");
  }
})().catch((error) => report(false, 0, "the code threw " + error));
"#;

/// Runs an assertion in Python, in the same way.
const RUN_PYTHON: &str = r#"
import importlib.util, json, sys
data = json.loads(sys.argv[1])
output = sys.stdin.buffer.read().decode("utf-8")
printed, sys.stdout = sys.stdout, sys.stderr

def report(passed, score, details):
    score = score if data["by_score"] else (1 if passed else 0)
    print(json.dumps({"score": score, "details": str(details)}), file=printed)

try:
    if data.get("file"):
        spec = importlib.util.spec_from_file_location("assertion", data["file"])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        run = getattr(module, data.get("function") or "get_assert")
    else:
        names = {}
        exec(data["code"], names)
        run = names["main"]
    result = run(output, data["context"])
    if isinstance(result, str):
        low = result.strip().lower()
        result = {"true": True, "false": False}[low] if low in ("true", "false") else json.loads(result)
    inverse, least = data["inverse"], data["threshold"]
    if isinstance(result, bool):
        passed = result != inverse
        report(passed, 1 if passed else 0, "returned %s" % result)
    elif isinstance(result, (int, float)):
        raw = result > 0 if least is None else result >= least
        report(raw != inverse, result, "returned %s" % result)
    else:
        passed, score = result.get("pass", result.get("pass_")), result.get("score")
        if not isinstance(passed, bool) or isinstance(score, bool) or not isinstance(score, (int, float)):
            raise ValueError("the code must return a bool, a number, or {pass, score, reason}")
        if least is not None and score < least:
            passed = False
        report(passed != inverse, score, result.get("reason", ""))
except BaseException as error:
    report(False, 0, "the code raised %r" % error)
"#;

/// Words in the code of an assertion that name what only promptfoo has: calls of tools and skills, traces, answers of
/// its providers.
const UNKNOWN_CONTEXT: [&str; 5] =
    ["providerResponse", "logProbs", "skillCalls", "toolCalls", "context.trace"];

/// Gives the word of a code that names what there is not here, if there is one.
pub fn unknown_context(code: &str) -> Option<&'static str> {
    let own = code.replace("test.metadata", "").replace("test?.metadata", "");
    match own.contains("metadata") {
        true => Some("metadata"),
        false => UNKNOWN_CONTEXT.into_iter().find(|word| code.contains(word)),
    }
}

/// Gives the value of a native `command` check that runs an assertion.
pub fn command_value(script: &ScriptAssertion<'_>) -> Value {
    let mut data = json!({
        "context": script.context,
        "inverse": script.inverse,
        "threshold": script.threshold,
        "by_score": script.by_score,
    });
    match &script.code {
        ScriptCode::Inline(code) => {
            data["code"] = match script.language {
                ScriptLanguage::JavaScript => json!(javascript_body(code.trim_end())),
                ScriptLanguage::Python => json!(python_function(code)),
            };
        }
        ScriptCode::File { path, function } => {
            data["file"] = json!(path);
            data["function"] = json!(function);
        }
    }
    let (program, wrapper) = match script.language {
        ScriptLanguage::JavaScript => ("node -e", RUN_JAVASCRIPT),
        ScriptLanguage::Python => ("python3 -c", RUN_PYTHON),
    };
    let run = format!("{program} {} {}", shell_word(wrapper.trim()), shell_word(&data.to_string()));
    let least = if script.by_score { script.threshold.unwrap_or(0.5).clamp(0.0, 1.0) } else { 1.0 };
    json!({"run": run, "gets_output": true, "score": least})
}

/// Makes the body of a function of code in one line, which is an expression, perhaps after declarations. Code of several
/// lines is a body already.
fn javascript_body(code: &str) -> String {
    if code.contains('\n') {
        return code.to_owned();
    }
    let code = code.trim().trim_end_matches([';', ' ']);
    let declares = ["const ", "let ", "var "].iter().any(|word| code.starts_with(word));
    match last_semicolon(code).filter(|_| declares) {
        Some(at) => format!("{} return {}", &code[..=at], code[at + 1..].trim()),
        None if declares => code.to_owned(),
        None => format!("return {code}"),
    }
}

/// Finds the last semicolon that is not in quotes.
fn last_semicolon(code: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    let mut last = None;
    for (at, letter) in code.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ';') => last = Some(at),
            (None | Some(_), _) => {}
        }
    }
    last
}

/// Makes a function `main` of Python code: one line is an expression, several lines are its body.
fn python_function(code: &str) -> String {
    if !code.contains('\n') {
        return format!("import json\n\ndef main(output, context):\n    return {code}\n");
    }
    let indented = |line: &&str| line.starts_with([' ', '\t']) && !line.trim().is_empty();
    let indent =
        code.lines().find(indented).map_or("    ", |line| &line[..line.len() - line.trim_start().len()]);
    let lines: Vec<String> = code.split('\n').map(|line| format!("{indent}{line}")).collect();
    format!("import json\n\ndef main(output, context):\n{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_an_expression_and_several_are_a_body() {
        for (code, expected) in [
            ("output === 'a;b'", "return output === 'a;b'"),
            ("output.length > 3;", "return output.length > 3"),
            ("const n = output.length; n > 3", "const n = output.length; return n > 3"),
            ("const s = 'a;'; s === output", "const s = 'a;'; return s === output"),
            ("const n = 1", "const n = 1"),
            ("const n = 1;\nreturn n > 0;", "const n = 1;\nreturn n > 0;"),
        ] {
            assert_eq!(javascript_body(code), expected);
        }
        assert!(python_function("len(output) > 3").ends_with("    return len(output) > 3\n"));
        assert!(
            python_function("if output:\n  return True\nreturn False").contains("\n  if output:\n    return")
        );
    }

    #[test]
    fn code_that_needs_what_only_promptfoo_has_is_found() {
        for (code, expected) in [
            ("context.metadata.skillCalls.length === 0", true),
            ("const { metadata } = context; return !metadata", true),
            ("context.test.metadata.kind === 'a'", false),
            ("context.vars.name === output", false),
            ("context.providerResponse.tokenUsage", true),
        ] {
            assert_eq!(unknown_context(code).is_some(), expected, "{code}");
        }
    }
}

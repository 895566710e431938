//! Finds the skills that a tool call has loaded or shown to the model: one rule for the tools of all agents.

use serde_json::Value;

use super::shell_reads::{ReadProof, files_shown_by_script};
use super::skill_paths::skill_of_path;
use super::skill_text::{ShownPart, SkillTextLines, SkillTextWatch, TextSource};
use practicum_core::model::{
    ActivatedSkill, ActivationEvidence, SkillTextFinding, Step, TextReached, ToolCall, UncertainActivation,
};
use practicum_skills::skill::SKILL_FILE;

/// The tools with which agents run a shell command.
const SHELL_TOOLS: [&str; 7] =
    ["Bash", "bash", "shell", "exec_command", "local_shell", "command_execution", "run_shell_command"];

/// The tools with which agents load a skill.
const SKILL_TOOLS: [&str; 5] = ["Skill", "skill", "skills", "activate_skill", "load_skill"];
/// The keys under which the input of such a tool names the skill.
const SKILL_KEYS: [&str; 2] = ["skill", "name"];
/// The tools with which agents read a file.
const READ_TOOLS: [&str; 4] = ["Read", "read", "read_file", "view"];
const PATH_KEYS: [&str; 4] = ["file_path", "filePath", "absolute_path", "path"];
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];

/// The tools with which agents give work to another agent.
const SUBAGENT_TOOLS: [&str; 11] = [
    "Agent",
    "Task",
    "Workflow",
    "agent",
    "task",
    "delegate",
    "subagent",
    "dynamic_task__create_task",
    "spawn_agent",
    "delegate_to_agent",
    "codebase_investigator",
];

/// Says whether a tool gives work to another agent.
pub fn is_subagent_tool(name: &str) -> bool {
    SUBAGENT_TOOLS.contains(&name)
}

/// Says that a subagent may have activated any skill.
pub fn hidden_subagent() -> UncertainActivation {
    UncertainActivation {
        skill: None,
        why: "the agent's stream does not show what its subagent did".to_owned(),
    }
}

/// Says whether a tool loads a skill.
pub fn is_skill_tool(name: &str) -> bool {
    SKILL_TOOLS.contains(&name)
}

/// Says whether a tool reads a file.
pub fn is_read_tool(name: &str) -> bool {
    READ_TOOLS.contains(&name)
}

/// Says whether a tool runs a shell command.
pub fn is_shell_tool(name: &str) -> bool {
    SHELL_TOOLS.contains(&name)
}

/// Gives the name of the skill that a call of a skill tool asks for; `None` for other tools.
pub fn called_skill(call: &ToolCall) -> Option<&str> {
    let named =
        SKILL_KEYS.iter().find_map(|key| call.input[*key].as_str()).filter(|_| is_skill_tool(&call.name))?;
    // A path below the skill's name asks for one of its files.
    named.trim_start_matches('/').split('/').next().filter(|name| !name.is_empty())
}

/// A skill whose SKILL.md a call may have shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SkillRead {
    /// The name of the skill's folder; `None` if the call does not say which skill.
    skill: Option<String>,
    proof: ReadProof,
}

/// Finds the skills that a call would show if it succeeded.
fn skills_read_by_call(call: &ToolCall) -> Vec<SkillRead> {
    let text = |key: &&str| call.input[*key].as_str();
    if READ_TOOLS.contains(&call.name.as_str()) {
        let path = PATH_KEYS.iter().find_map(text).unwrap_or_default();
        let is_skill = path.rsplit('/').next() == Some(SKILL_FILE);
        return is_skill
            .then(|| SkillRead { skill: skill_of_path(path), proof: ReadProof::Certain })
            .into_iter()
            .collect();
    }
    if !SHELL_TOOLS.contains(&call.name.as_str()) {
        return Vec::new();
    }
    let script = match COMMAND_KEYS.iter().find_map(|key| call.input.get(*key)) {
        Some(Value::String(script)) => script.clone(),
        // Some agents give a command as a list of words.
        Some(Value::Array(words)) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.last().copied().filter(|_| words.len() == 3).unwrap_or_default().to_owned()
        }
        _ => return Vec::new(),
    };
    let reads = files_shown_by_script(&script);
    reads
        .into_iter()
        .map(|read| SkillRead { skill: read.path.as_deref().and_then(skill_of_path), proof: read.proof })
        .collect()
}

/// Finds the names in the frontmatter of skills in this text: `---`, then `name: …`.
fn skill_names_in(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    let names = lines.windows(2).filter_map(|pair| match pair {
        ["---", second] => second.strip_prefix("name:").map(|name| name.trim().trim_matches(['"', '\''])),
        _ => None,
    });
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Finds the skills whose files the calls among these steps have shown, as far as the calls and their results say
/// it without knowing the text of the skills.
pub fn skills_read_in(steps: &[Step]) -> Vec<ActivatedSkill> {
    let mut found: Vec<ActivatedSkill> = Vec::new();
    for call in tool_calls(steps) {
        let reads = skills_read_by_call(call);
        if reads.is_empty() {
            continue;
        }
        let result = call.result.as_deref().unwrap_or_default();
        let proven = reads
            .into_iter()
            .filter(|read| read.proof == ReadProof::Certain && call.ok == Some(true) && !result.is_empty());
        let skills = proven.filter_map(|read| read.skill).chain(skill_names_in(result));
        for skill in skills {
            let evidence = ActivationEvidence::ReadSkillFile { tool: call.name.clone() };
            let activated = ActivatedSkill { skill, plugin: None, evidence };
            if !found.contains(&activated) {
                found.push(activated);
            }
        }
    }
    found
}

/// Finds the calls without a result that may have activated a skill.
pub fn unanswered_calls_in(steps: &[Step]) -> Vec<UncertainActivation> {
    let mut doubts = Vec::new();
    for call in tool_calls(steps).filter(|call| call.ok.is_none()) {
        let why = match call.result {
            None => format!("the stream has no result of a call of {}", call.name),
            Some(_) => format!("nothing says whether a call of {} succeeded", call.name),
        };
        let loaded = called_skill(call).map(|skill| Some(skill.to_owned()));
        let read = skills_read_by_call(call).into_iter().map(|read| read.skill);
        let skills = loaded.into_iter().chain(read);
        doubts.extend(skills.map(|skill| UncertainActivation { skill, why: why.clone() }));
    }
    doubts
}

fn tool_calls(steps: &[Step]) -> impl Iterator<Item = &ToolCall> {
    steps.iter().filter_map(|step| match step {
        Step::Tool(call) => Some(call),
        Step::User(_) | Step::Text(_) => None,
    })
}

/// What the calls of a stream show about one skill.
#[derive(Debug, Clone, Default)]
struct StreamEvidence {
    /// The tool whose result showed the skill.
    shown_by: Option<String>,
    /// Why it may have been shown, although nothing of it was seen.
    doubt: Option<String>,
    /// Whether a call has shown it in a form in which it is not recognised.
    is_encoded: bool,
}

/// Decides for each skill whether its text reached the model. `record` is what a record of everything that the
/// model received shows, if there is one.
pub fn text_findings(
    skills: &[SkillTextLines],
    steps: &[Step],
    record: Option<Vec<SkillTextFinding>>,
) -> Vec<SkillTextFinding> {
    let mut watch = SkillTextWatch::new(skills.to_vec());
    let mut evidence = vec![StreamEvidence::default(); skills.len()];
    for step in steps {
        match step {
            Step::User(text) | Step::Text(text) => {
                watch.read_text(text, TextSource::Written);
            }
            Step::Tool(call) => read_call(call, &mut watch, &mut evidence),
        }
    }
    let decide = |(at, (skill, seen)): (usize, (&SkillTextLines, &StreamEvidence))| {
        let recorded = record.iter().flatten().find(|finding| finding.names == skill.names);
        let part = watch.shown_part(at)?;
        let reached = match (recorded.map(|finding| &finding.reached), &seen.shown_by) {
            (Some(TextReached::Unknown { .. }), Some(tool)) | (None, Some(tool)) => {
                TextReached::Yes { seen_in: format!("the result of {tool}") }
            }
            (Some(TextReached::No), _) if seen.is_encoded => encoded(),
            (Some(reached), _) => reached.clone(),
            (None, None) if seen.is_encoded => encoded(),
            (None, None) => match (&seen.doubt, part) {
                (Some(why), _) => TextReached::Unknown { why: why.clone() },
                (None, ShownPart::Part) => {
                    TextReached::Unknown { why: "the model received only a few lines of its text".to_owned() }
                }
                (None, _) => TextReached::NotInStream,
            },
        };
        Some(SkillTextFinding { names: skill.names.clone(), reached })
    };
    skills.iter().zip(&evidence).enumerate().filter_map(decide).collect()
}

fn encoded() -> TextReached {
    TextReached::Unknown { why: "a command has shown its SKILL.md in an encoded form".to_owned() }
}

/// Reads one call: its input is what the model wrote, its result is what the model received.
fn read_call(call: &ToolCall, watch: &mut SkillTextWatch, evidence: &mut [StreamEvidence]) {
    watch.read_value(&call.input, TextSource::Written);
    let counts = call.result.as_deref().map(|result| watch.read_text(result, TextSource::ToolResult));
    let is_cut = call.result.as_deref().is_none_or(is_cut_result);
    let reads = skills_read_by_call(call);
    for (at, seen) in evidence.iter_mut().enumerate() {
        let names = &watch.skills()[at].names;
        let is_meant = |read: &&SkillRead| read.skill.as_ref().is_none_or(|skill| names.contains(skill));
        let shows_line = counts.as_ref().is_some_and(|counts| counts[at] > 0);
        if watch.shown_part(at) == Some(ShownPart::Enough) && shows_line {
            seen.shown_by.get_or_insert_with(|| call.name.clone());
        }
        for read in reads.iter().filter(is_meant) {
            match read.proof {
                ReadProof::Encoded => seen.is_encoded |= call.ok != Some(false),
                _ if shows_line => {
                    seen.shown_by.get_or_insert_with(|| call.name.clone());
                }
                ReadProof::Certain if is_cut && call.ok == Some(true) && read.skill.is_some() => {
                    seen.shown_by.get_or_insert_with(|| call.name.clone());
                }
                _ if is_cut && call.ok != Some(false) => {
                    let why = "the stream does not show all of the output of a command that may have read it";
                    seen.doubt.get_or_insert_with(|| why.to_owned());
                }
                ReadProof::Certain | ReadProof::Possible => {}
            }
        }
    }
}

/// Says whether an agent has shortened this result.
fn is_cut_result(result: &str) -> bool {
    let marks = ["truncated", "omitted", "Output too large", "persisted-output"];
    marks.iter().any(|mark| result.contains(mark))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use practicum_skills::skill::Skill;

    const HEAD: &str = "---\nname: greeter\ndescription: d\n---\nbody\n";

    fn shell(command: &str, result: Option<&str>, ok: Option<bool>) -> Step {
        let input = json!({"command": command});
        Step::Tool(ToolCall { name: "Bash".into(), input, result: result.map(str::to_owned), ok })
    }

    #[test]
    fn a_skill_that_was_only_mentioned_was_not_read() {
        let file = ".agents/skills/greeter/SKILL.md";
        for (command, output, succeeded, expected) in [
            (format!("cat {file}"), "body", true, "greeter"),
            (format!("/bin/bash -lc 'cat {file}'"), "body", true, "greeter"),
            (format!("bash -lc \"sed -n '10,200p' /w/{file}\""), "body", true, "greeter"),
            (format!("cat '{file}' | head -5"), "body", true, "greeter"),
            (format!("cd /w && cat {file} 2>&1"), "body", true, "greeter"),
            (format!("cat {file};"), "body", true, "greeter"),
            (format!("cat {file}"), "No such file", false, ""),
            (format!("cat {file}"), "", true, ""),
            // The exit code is not that of the reader.
            (format!("cat {file}; echo done"), "No such file\ndone", true, ""),
            (format!("cat {file} || echo none"), "none", true, ""),
            (format!("cat {file} &\ntrue"), "", true, ""),
            // But a file that was shown was read.
            (format!("cat {file}; echo done"), HEAD, true, "greeter"),
            (format!("cat {file}; false"), HEAD, false, "greeter"),
            (format!("python3 -c 'print(open(\"{file}\").read())'"), HEAD, true, "greeter"),
            ("cat SKILL.md".to_owned(), HEAD, true, "greeter"),
            ("cat .agents/skills/*/SKILL.md".to_owned(), HEAD, true, "greeter"),
            ("cat .agents/skills/*/SKILL.md".to_owned(), "", true, ""),
            ("cat notes.md".to_owned(), HEAD, true, ""),
            // These commands look at the file, or write it.
            (format!("ls -l {file}"), file, true, ""),
            (format!("rg -l hello {file}"), file, true, ""),
            (format!("echo 'cat {file}'"), file, true, ""),
            (format!("cat > {file}"), "", true, ""),
            (format!("sed -i s/a/b/ {file}"), "", true, ""),
            (format!("cat {} {file}", "/h/.agents/skills/other/SKILL.md"), "x", true, "other greeter"),
            ("SKILL.md \"\\".to_owned(), "---", true, ""),
        ] {
            let found = skills_read_in(&[shell(&command, Some(output), Some(succeeded))]);
            let found: Vec<&str> = found.iter().map(|one| one.skill.as_str()).collect();
            assert_eq!(found.join(" "), expected, "{command} -> {output:?}");
        }
    }

    #[test]
    fn a_call_without_a_result_leaves_activation_open() {
        let call = |name: &str, input: Value, ok| {
            Step::Tool(ToolCall { name: name.into(), input, result: None, ok })
        };
        for (step, expected) in [
            (call("Skill", json!({"skill": "acme:greet"}), None), Some(Some("acme:greet"))),
            (call("Skill", json!({"skill": "greet"}), Some(true)), None),
            (call("Read", json!({"file_path": "/w/skills/greet/./SKILL.md"}), None), Some(Some("greet"))),
            (shell("find . -exec cat {} +", None, None), Some(None)),
            (shell("ls", None, None), None),
        ] {
            let doubts = unanswered_calls_in(std::slice::from_ref(&step));
            let found = doubts.first().map(|doubt| doubt.skill.as_deref());
            assert_eq!(found, expected, "{step:?}");
        }
    }

    #[test]
    fn the_result_of_a_call_says_more_than_its_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let body = "Look the person up in the crew list first.\nAnswer with a hearty ahoy and the name.\n\
                    Close with the state of the tide in the harbour.\n";
        let file = format!("---\nname: greet\ndescription: Greets.\n---\n\n{body}");
        std::fs::write(folder.path().join("SKILL.md"), &file).expect("write");
        let skill = Skill::read(folder.path()).expect("a skill");
        let skills = [SkillTextLines::new(vec!["greet".to_owned()], &skill)];
        let cat = "cat skills/greet/SKILL.md";
        let one = "2:Answer with a hearty ahoy and the name.";
        let finding = |reached| Some(vec![SkillTextFinding { names: vec!["greet".into()], reached }]);
        let part = || TextReached::Unknown { why: "a few lines".into() };
        for (command, result, ok, record, expected) in [
            (cat, Some(body), Some(true), None, "yes"),
            ("./show-it", Some(body), Some(true), None, "yes"),
            ("cat copy; exit 3", Some(body), Some(false), None, "yes"),
            ("head -3 skills/greet/SKILL.md", Some("---\nname: greet\n"), Some(true), None, "stream"),
            // The output is missing or cut, so the command decides.
            (cat, None, Some(true), None, "yes"),
            (cat, Some("[30000 characters truncated]"), Some(true), None, "yes"),
            ("cat */SKILL.md", Some("[30000 characters truncated]"), Some(true), None, "unknown"),
            (cat, Some("No such file"), Some(false), None, "stream"),
            // A line of the text, with and without a command that reads it.
            ("grep -n hearty skills/greet/SKILL.md", Some(one), Some(true), None, "yes"),
            ("./show-it", Some(one), Some(true), None, "stream"),
            ("base64 skills/greet/SKILL.md", Some("LS0t"), Some(true), None, "unknown"),
            // The model wrote the text itself.
            (body, Some(body), Some(true), None, "nothing"),
            // A record of the requests decides.
            (cat, Some("[truncated]"), Some(true), finding(TextReached::No), "no"),
            ("base64 skills/greet/SKILL.md", Some("LS0t"), Some(true), finding(TextReached::No), "unknown"),
            ("ls", Some("x"), Some(true), finding(TextReached::Yes { seen_in: "r".into() }), "yes"),
            ("ls", Some("x"), Some(true), finding(part()), "unknown"),
            (cat, Some(body), Some(true), finding(part()), "yes"),
        ] {
            let found = text_findings(&skills, &[shell(command, result, ok)], record.clone());
            let word = match found.first().map(|finding| &finding.reached) {
                Some(TextReached::Yes { .. }) => "yes",
                Some(TextReached::No) => "no",
                Some(TextReached::NotInStream) => "stream",
                Some(TextReached::Unknown { .. }) => "unknown",
                None => "nothing",
            };
            assert_eq!(word, expected, "{command} -> {result:?} {ok:?} {record:?}");
        }
    }
}

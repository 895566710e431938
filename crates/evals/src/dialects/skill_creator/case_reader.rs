//! Reads the evals of one file into cases.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::super::EvalFileLocation;
use super::super::reading::case_keys::EXPECTED_TEXT_KEYS;
use super::super::reading::{self, SkillHint, UniqueIds, UnusedKeys, slug};
use super::ASSERTIONS_META_KEY;
use super::prompt::read_prompt;
use super::statements::{Expected, read_expected};
use practicum_core::model::{
    Case, CasePrompt, Check, Diagnostics, MAX_DURATION, RelPath, SkillRef, WorkspaceSpec,
};
use practicum_core::tree::{NodeData, ObjectReader, SourceFile, TreeNode};

/// A reader for the evals of one file, with what they share.
pub struct CaseReader {
    pub skill: SkillRef,
    pub ids: UniqueIds,
    pub unused_keys: UnusedKeys,
    files: reading::FixtureFolders,
    folder: PathBuf,
}

impl CaseReader {
    pub fn new(
        source: &SourceFile,
        place: &EvalFileLocation,
        hint: Option<SkillHint<'_>>,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let folder = source.folder();
        let skill = reading::skill_beside(folder, place, hint, diagnostics);
        // Paths are relative to the skill's folder. The evals folder lies there even if there is no skill yet.
        let root = skill.path.as_deref().or_else(|| folder.parent()).unwrap_or(folder).to_owned();
        let files = reading::FixtureFolders {
            roots: vec![root, folder.to_owned()],
            own_folder: Some(reading::FolderPrefix { folder: folder.to_owned(), names: Vec::new() }),
        };
        let (ids, unused_keys) = (UniqueIds::default(), UnusedKeys::with_silent_underscores());
        Self { skill, ids, unused_keys, files, folder: folder.to_owned() }
    }

    /// Reads a list of evals. `list` is the key of a list that is not the first of its file. If some evals expect
    /// nothing, they are not scored; if all do, that is an error.
    pub fn read_cases(
        &mut self,
        nodes: &[TreeNode],
        list: Option<&str>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut unchecked = Vec::new();
        let mut has_checks = false;
        for node in nodes {
            let Some(reading) = self.read_case(node, list, diagnostics) else { continue };
            match reading.expects_nothing {
                true => unchecked.push(node.span),
                false => has_checks = true,
            }
            cases.extend(reading.case);
        }
        for span in unchecked {
            let help = "add \"expectations\", \"assertions\" or at least \"expected_output\"";
            match has_checks {
                true => diagnostics.warning_with_help(
                    "no-checks",
                    span,
                    "this eval expects nothing, so it is not run and not scored",
                    help,
                ),
                false => diagnostics.error_with_help(
                    "no-checks",
                    span,
                    "this eval expects nothing, so a do-nothing agent would pass it",
                    help,
                ),
            }
        }
        cases
    }

    fn read_case(
        &mut self,
        node: &TreeNode,
        list: Option<&str>,
        diagnostics: &mut Diagnostics,
    ) -> Option<CaseReading> {
        let mut eval = ObjectReader::new(node, "an eval", diagnostics)?;
        let name = self.read_name(&mut eval, diagnostics);
        let prompt = read_prompt(&mut eval, diagnostics);
        let said = prompt.as_ref().and_then(|prompt| prompt.turns.first()).map(String::as_str);
        let id = self.read_id(&mut eval, list, name.as_deref().or(said), diagnostics);
        let (files, inline_files) = match self.files_root(&mut eval) {
            Some(root) => reading::read_files(&mut eval, &root, diagnostics),
            None => reading::read_files(&mut eval, &self.files, diagnostics),
        };
        let skills = std::slice::from_ref(&self.skill.name);
        let activation = reading::expected_activation(&mut eval, skills, diagnostics);
        let mut expected = read_expected(&mut eval, skills, diagnostics);
        add_expected_script(&mut eval, &mut expected);
        let texts = read_expected_texts(&mut eval, &expected, diagnostics);
        let refused = expected.reader.has_errors;
        let mut checks: Vec<Check> = activation.checks;
        checks.append(&mut expected.activation);
        let mut context = (!texts.is_empty()).then(|| texts.join("\n\n"));
        if expected.reader.checks.is_empty() && !refused {
            match (&context, checks.is_empty().then(|| description(&mut eval)).flatten()) {
                // Authors often leave an eval like this before they write assertions. A judge can at least use the
                // expected output; a case without checks would pass if the agent did nothing.
                (Some(text), _) => {
                    diagnostics.notice(
                        "no-assertions",
                        node.span,
                        "this eval has no assertions; it is judged by its expected_output",
                    );
                    checks.push(reading::judged_check("expected-output".to_owned(), text));
                    context = None;
                }
                (None, Some(text)) => {
                    diagnostics.warning(
                        "no-assertions",
                        node.span,
                        "this eval has no assertions and no expected output; it is judged by its description",
                    );
                    checks.push(reading::judged_check("description".to_owned(), text));
                }
                (None, None) => {}
            }
        }
        let (repeat, timeout) = (read_repeat(&mut eval, diagnostics), read_timeout(&mut eval, diagnostics));
        let is_forced = force_invocation(&mut eval, diagnostics);
        let mut meta = self.unused_keys.collect_unused(&eval, "an eval", diagnostics);
        if let Some(more) = expected.reader.collect_unused(&mut self.unused_keys, diagnostics) {
            meta.insert(ASSERTIONS_META_KEY.to_owned(), more);
        }
        checks.append(&mut expected.reader.checks);
        let expects_nothing = checks.is_empty() && !refused && !activation.is_given;
        let case = id.zip(prompt).map(|(id, prompt)| Case {
            note: name,
            prompt: CasePrompt::Turns(match is_forced {
                true => name_skill(prompt.turns, &self.skill.name),
                false => prompt.turns,
            }),
            user: prompt.user,
            workspace: WorkspaceSpec { files, inline_files, ..WorkspaceSpec::default() },
            checks,
            context,
            repeat,
            timeout,
            unsupported: prompt.unsupported,
            meta,
            ..reading::blank_case(id, String::new())
        });
        Some(CaseReading { case, expects_nothing })
    }

    /// Reads a name for people. The usual key is asked for always, the others only where they are.
    fn read_name(&self, eval: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<String> {
        let is_text = |key: &str| eval.peek(key).is_some_and(|node| node.as_text().is_some());
        let other = ["eval_name", "title"].into_iter().find(|key| !is_text("name") && is_text(key));
        let name = eval.text("name", diagnostics);
        other.map_or(name, |key| eval.text(key, diagnostics)).map(str::to_owned)
    }

    /// Reads the id of an eval, or makes one of its name or prompt. Two lists of one file may use the same ids.
    fn read_id(
        &mut self,
        eval: &mut ObjectReader<'_>,
        list: Option<&str>,
        words: Option<&str>,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        let given = match eval.get_non_null("id").map(|node| &node.data) {
            None => return words.map(|words| self.ids.make_unique(&slug(words, "case"))),
            Some(NodeData::Text(id)) => Some(id.trim().to_owned()),
            Some(NodeData::Int(id)) => Some(id.to_string()),
            Some(_) => None,
        };
        match (given, list) {
            (Some(id), Some(list)) if self.ids.contains(&id) => {
                Some(self.ids.make_unique(&format!("{list}-{id}")))
            }
            _ => self.ids.read_id(eval, diagnostics),
        }
    }

    /// Gives the folder that the files of an eval are relative to, if it names one.
    fn files_root(&self, eval: &mut ObjectReader<'_>) -> Option<reading::FixtureFolders> {
        let root = RelPath::new(eval.peek("files_root")?.as_text()?)?;
        eval.get("files_root");
        Some(reading::FixtureFolders { roots: vec![root.join_to(&self.folder)], own_folder: None })
    }
}

/// An eval after reading.
struct CaseReading {
    /// The case; `None` if it has an error.
    case: Option<Case>,
    expects_nothing: bool,
}

/// Adds a check that a script of the skill is run, if the eval names one.
fn add_expected_script(eval: &mut ObjectReader<'_>, expected: &mut Expected<'_>) {
    const KEY: &str = "expected_script";
    let Some(node) = eval.peek(KEY) else { return };
    eval.get(KEY);
    if let Some(script) = node.as_text().map(str::trim).filter(|script| !script.is_empty()) {
        let value = json!({"name": "shell", "args": {"command": format!("*{script}*")}});
        expected.reader.add_rule("tool_used", &value, &format!("The agent runs {script}."), node);
    }
}

/// Reads the texts about what success looks like. The usual key is asked for always, the others only where they are.
fn read_expected_texts<'n>(
    eval: &mut ObjectReader<'n>,
    expected: &Expected<'n>,
    diagnostics: &mut Diagnostics,
) -> Vec<&'n str> {
    let mut texts = Vec::new();
    for key in EXPECTED_TEXT_KEYS {
        if key == EXPECTED_TEXT_KEYS[0] || eval.peek(key).is_some() {
            texts.extend(eval.text(key, diagnostics));
        }
    }
    texts.extend(expected.text);
    texts.into_iter().map(str::trim).filter(|text| !text.is_empty()).collect()
}

fn description<'n>(eval: &mut ObjectReader<'n>) -> Option<&'n str> {
    let text = eval.peek("description")?.as_text().map(str::trim).filter(|text| !text.is_empty())?;
    eval.get("description");
    Some(text)
}

fn read_repeat(eval: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<u32> {
    eval.peek("runs")?;
    eval.int("runs", 1, 1000, diagnostics).and_then(|runs| u32::try_from(runs).ok())
}

fn read_timeout(eval: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Duration> {
    eval.get("timeout");
    let key = ["timeout", "timeout_seconds"].into_iter().find(|key| eval.peek(key).is_some())?;
    let seconds = eval.int(key, 1, MAX_DURATION.as_secs().cast_signed(), diagnostics)?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// Reads whether the prompt must name the skill, and warns about fixtures that should be staged in git.
fn force_invocation(eval: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> bool {
    const STAGE: &str = "stage_files";
    if let Some(TreeNode { data: NodeData::Bool(asked), span }) = eval.peek(STAGE) {
        eval.get(STAGE);
        if *asked {
            let message =
                "\"stage_files\" is not done: the files lie in the workspace, but not in git's index";
            diagnostics.warning("unread-setup", *span, message);
        }
    }
    const FORCE: &str = "force_skill_invocation";
    eval.peek(FORCE).is_some() && eval.bool(FORCE, diagnostics) == Some(true)
}

/// Puts a sentence that names the skill before the first message, unless the message begins with its command.
fn name_skill(mut turns: Vec<String>, skill: &str) -> Vec<String> {
    if let Some(first) = turns.first_mut().filter(|first| !first.trim_start().starts_with('/')) {
        *first = format!("Use the skill {skill} for this.\n\n{first}");
    }
    turns
}

//! The tasks of a waza suite: prompts, files, and what grades them.

use std::time::Duration;

use super::super::EvalFolder;
use super::super::reading::graders::{Unsupported, make_ids_unique, require_all};
use super::super::reading::{self, FixtureFolders, UniqueIds, UnusedKeys};
use super::LONGEST_TIMEOUT;
use super::expected::{EXPECTED_NOTICE, read_expected};
use super::graders::WazaGraderReader;
use practicum_core::model::{Case, CasePrompt, Diagnostics, RelPath, SkillRef, WorkspaceSpec};
use practicum_core::tree::{ObjectReader, TreeNode};

/// Reads tasks into cases.
pub struct TaskReader<'r> {
    folder: &'r EvalFolder,
    skill: SkillRef,
    /// The graders of the suite, which grade every task.
    shared: Option<&'r [&'r TreeNode]>,
    ids: UniqueIds,
    said_about_expected: bool,
}

impl<'r> TaskReader<'r> {
    pub fn new(folder: &'r EvalFolder, skill: SkillRef, shared: Option<&'r Vec<&'r TreeNode>>) -> Self {
        let shared = shared.map(Vec::as_slice);
        Self { folder, skill, shared, ids: UniqueIds::default(), said_about_expected: false }
    }

    /// Reads one task; `None` if it is switched off or has no prompt.
    pub fn read(&mut self, root: &TreeNode, file: &str, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut task = ObjectReader::new(root, "a task", diagnostics)?;
        let id = self.ids.read_id(&mut task, diagnostics)?;
        let note = task.text("name", diagnostics).map(|name| name.trim().to_owned());
        let note = note.filter(|name| *name != id);
        if task.bool("enabled", diagnostics) == Some(false) {
            diagnostics.warning("task-disabled", None, format!("the task {id} is switched off and left out"));
            task.take_unread(&[]);
            return None;
        }
        let timeout = task.int("timeout_seconds", 1, LONGEST_TIMEOUT, diagnostics);
        let context_dir = task.text("context_dir", diagnostics);
        let mut unsupported = Unsupported::default();
        let inputs = task.get_non_null("inputs");
        let roots = self.fixture_roots(context_dir);
        let (turns, workspace) = match inputs {
            Some(node) => read_inputs(node, roots, &mut unsupported, diagnostics)?,
            None => {
                task.report_missing("inputs", diagnostics);
                return None;
            }
        };
        let mut checks = Vec::new();
        let mut graders = WazaGraderReader::new(self.folder, &self.skill, context_dir);
        for node in self.shared.unwrap_or_default() {
            // The suite itself reports what is wrong with its graders, once.
            graders.read(node, &mut checks, &mut unsupported, &mut Diagnostics::default());
        }
        for node in task.list("graders", diagnostics).unwrap_or_default() {
            graders.read(node, &mut checks, &mut unsupported, diagnostics);
        }
        if let Some(node) = task.get_non_null("expected") {
            let said = read_expected(node, &self.skill, &mut graders, &mut checks, diagnostics);
            if said && !std::mem::replace(&mut self.said_about_expected, true) {
                diagnostics.notice("stricter-than-original", node.span, EXPECTED_NOTICE);
            }
        }
        require_all(&mut checks);
        make_ids_unique(&mut checks);
        let mut meta = std::collections::BTreeMap::new();
        for key in ["tags", "description"] {
            if let Some(node) = task.get_non_null(key) {
                meta.insert(key.to_owned(), node.to_value());
            }
        }
        meta.extend(UnusedKeys::default().collect_unused(&task, "a task", diagnostics));
        let seconds = timeout.and_then(|seconds| u64::try_from(seconds).ok());
        let group =
            file.rsplit_once('/').map(|(folder, _)| folder.trim_start_matches("tasks").trim_matches('/'));
        Some(Case {
            group: group.filter(|group| !group.is_empty()).map(str::to_owned),
            note,
            prompt: CasePrompt::Turns(turns),
            workspace,
            checks,
            timeout: seconds.map(Duration::from_secs),
            unsupported: unsupported.into_reason(),
            meta,
            ..reading::blank_case(id, String::new())
        })
    }

    /// Gives the folders in which the files of a task lie.
    fn fixture_roots(&self, context_dir: Option<&str>) -> FixtureFolders {
        let named = context_dir.and_then(RelPath::new).map(|path| path.join_to(self.folder.path()));
        let usual = self.folder.path().join("fixtures");
        FixtureFolders { roots: named.into_iter().chain([usual]).collect(), own_folder: None }
    }
}

/// Reads the messages and the files of a task.
fn read_inputs(
    node: &TreeNode,
    roots: FixtureFolders,
    unsupported: &mut Unsupported,
    diagnostics: &mut Diagnostics,
) -> Option<(Vec<String>, WorkspaceSpec)> {
    let mut inputs = ObjectReader::new(node, "\"inputs\"", diagnostics)?;
    let prompt = inputs.required_text("prompt", diagnostics).map(|prompt| prompt.trim().to_owned());
    let more = inputs.texts("follow_up_prompts", diagnostics).unwrap_or_default();
    let more = more.into_iter().map(|(prompt, _)| prompt.trim().to_owned()).filter(|turn| !turn.is_empty());
    let turns: Vec<String> = prompt.into_iter().chain(more).collect();
    let (files, inline_files) = reading::read_files(&mut inputs, &roots, diagnostics);
    if let Some(node) = inputs.get_non_null("environment")
        && !node.as_map().is_some_and(<[_]>::is_empty)
    {
        unsupported.add("\"environment\": environment variables cannot be given to the agent");
    }
    // The runner keeps the context and gives it to no agent.
    inputs.get("context");
    UnusedKeys::default().collect_unused(&inputs, "\"inputs\"", diagnostics);
    let workspace = WorkspaceSpec { files, inline_files, ..WorkspaceSpec::default() };
    (!turns.is_empty()).then_some((turns, workspace))
}

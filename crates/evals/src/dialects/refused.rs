//! Formats that are recognised by name and refused, with the reason: an author should not have to guess.

use std::path::Path;

use serde_json::{Value, json};

use super::writing;
use super::{Dialect, EvalFileLocation, EvalFolder, ExportedSuite, FormatMatch};
use practicum_core::model::{Diagnostics, Suite};
use practicum_core::tree::{SourceFile, TreeNode};

/// The adapter that refuses tasks of Harbor and SkillsBench.
pub struct Harbor;

/// The adapter that refuses files of skill-validator, as dotnet/skills had until the middle of 2026.
pub struct SkillValidator;

impl Dialect for Harbor {
    fn name(&self) -> &'static str {
        "harbor"
    }

    fn recognition_rule(&self) -> &'static str {
        "a folder with task.toml and instruction.md; refused, because it needs a container"
    }

    fn recognise(&self, _source: &SourceFile) -> FormatMatch {
        FormatMatch::NO
    }

    fn lower(&self, _: &SourceFile, _: &EvalFileLocation, diagnostics: &mut Diagnostics) -> Option<Suite> {
        refuse_harbor(diagnostics)
    }

    fn reads_folders(&self) -> bool {
        true
    }

    fn recognise_folder(&self, folder: &EvalFolder) -> FormatMatch {
        match folder.has("task.toml") && folder.has("instruction.md") {
            true => FormatMatch::sure("the folder has a task.toml and an instruction.md"),
            false => FormatMatch::NO,
        }
    }

    fn lower_folder(
        &self,
        _: &EvalFolder,
        _: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        refuse_harbor(diagnostics)
    }

    fn schema(&self) -> Value {
        refused_schema("Harbor task (refused)")
    }

    fn export_suite(&self, suite: &Suite, _folder: &Path) -> ExportedSuite {
        writing::only_read(suite, self.name())
    }
}

/// The schema of a format that is refused: no document fits it.
fn refused_schema(title: &str) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": "Such files are recognised and refused, so no document fits this schema.",
        "not": {},
    })
}

fn refuse_harbor(diagnostics: &mut Diagnostics) -> Option<Suite> {
    diagnostics.error_with_help(
        "unsupported-format",
        None,
        "this is a task of Harbor, whose environment and tests run in a container, which practicum has not",
        "run it with harbor, or write the prompt and its checks in a native file",
    );
    None
}

impl Dialect for SkillValidator {
    fn name(&self) -> &'static str {
        "skill-validator"
    }

    fn recognition_rule(&self) -> &'static str {
        "a file with \"scenarios\" that have a setup, assertions or a rubric; refused, because vally replaced it"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let scenarios = source.root.get("scenarios").and_then(TreeNode::as_list).unwrap_or_default();
        let is_scenario = |item: &TreeNode| {
            item.has("prompt") && (item.has("assertions") || item.has("rubric") || item.has("setup"))
        };
        let is_yaml = source.path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
        match is_yaml && !scenarios.is_empty() && scenarios.iter().any(is_scenario) {
            true => FormatMatch::with_points(150, "it has \"scenarios\" with assertions or a rubric"),
            false => FormatMatch::NO,
        }
    }

    fn lower(
        &self,
        source: &SourceFile,
        _: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        diagnostics.error_with_help(
            "unsupported-format",
            source.root.span,
            "this is a file of skill-validator, which compared runs in pairs and has been replaced by vally",
            "write its scenarios as the \"stimuli\" of vally, or in a native file",
        );
        None
    }

    fn schema(&self) -> Value {
        refused_schema("skill-validator file (refused)")
    }

    fn export_suite(&self, suite: &Suite, _folder: &Path) -> ExportedSuite {
        writing::only_read(suite, self.name())
    }
}

#[cfg(test)]
mod tests {
    use crate::dialects::{load_eval_file, testing};

    #[test]
    fn both_are_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let task = folder.path().join("task");
        std::fs::create_dir(&task).expect("create");
        std::fs::write(task.join("task.toml"), "version = \"1\"").expect("write");
        std::fs::write(task.join("instruction.md"), "Do it.").expect("write");
        let file = folder.path().join("eval.yaml");
        std::fs::write(&file, "scenarios:\n- name: a\n  prompt: p\n  rubric: [x]\n").expect("write");
        for (path, name, part) in [(&task, "harbor", "container"), (&file, "skill-validator", "vally")] {
            let loaded = load_eval_file(path, &testing::location_in(folder.path()), None);
            assert_eq!(loaded.dialect, Some(name));
            let found = loaded.lowered.diagnostics.iter().find(|found| found.code == "unsupported-format");
            assert!(
                found.is_some_and(|found| found.message.contains(part)),
                "{:?}",
                loaded.lowered.diagnostics
            );
        }
    }
}

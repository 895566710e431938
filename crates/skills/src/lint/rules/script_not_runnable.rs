//! The rule that a script run by its path alone is executable and has a shebang line.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use crate::lint::reference::{FileMention, ReferencedPath, leading_mention, resolve_reference};
use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::{Severity, Span};
use practicum_core::tree::open_regular;

pub static RULE: LintRule = LintRule {
    code: "script-not-runnable",
    severity: Severity::Warning,
    summary: "A script that is run by its path alone is executable and says what runs it.",
    rationale: "Run as ./scripts/extract.py, a file needs the executable bit and a first line like \
          #!/usr/bin/env python3. Archives and some installers lose the bit, so naming the \
          interpreter is the safer way.",
    bad_example: "Run `./scripts/extract.py FILE`.      (the file is not executable)",
    good_example: "Run `python3 scripts/extract.py FILE`.",
    convention: None,
    check,
};

const SHELL_LANGUAGES: &[&str] = &["bash", "sh", "shell", "zsh", "console", "shell-session", "terminal"];

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let mut seen = HashSet::new();
    for mention in scripts_run_directly(draft) {
        if !seen.insert(mention.path.clone()) {
            continue;
        }
        let ReferencedPath::File(file) = resolve_reference(draft.folder(), &mention.path) else { continue };
        let problem = if !is_executable(&file) {
            "is run by its path alone, and it is not executable"
        } else if !has_shebang_or_is_binary(&file) {
            "is run by its path alone, and its first line names no interpreter"
        } else {
            continue;
        };
        findings.add_with_help(
            mention.span,
            format!("\"{}\" {problem}", mention.path.display()),
            "name the interpreter in the command, or make it executable with a #! line",
        );
    }
}

/// Finds the scripts that commands begin with. In shell blocks that is any script; elsewhere only those written
/// `./scripts/…` or with arguments, because a bare path may be just a name.
fn scripts_run_directly(draft: &SkillFileDraft) -> Vec<FileMention> {
    let mut found = Vec::new();
    for block in &draft.markdown.code_blocks {
        let shell = SHELL_LANGUAGES.contains(&block.language.as_str());
        if shell || block.language.is_empty() {
            found.extend(commands(draft, block.span).filter_map(|(command, at)| {
                (shell || command.starts_with("./")).then(|| leading_mention(command, at)).flatten()
            }));
        }
    }
    for span in &draft.markdown.code_spans {
        found.extend(commands(draft, *span).filter_map(|(command, at)| {
            let is_run = command.starts_with("./") || command.trim_end().contains(' ');
            is_run.then(|| leading_mention(command, at)).flatten()
        }));
    }
    found.retain(|mention| mention.path.starts_with("scripts"));
    found
}

/// Gives the commands within a span and where each begins, without prompts and assignments.
fn commands(draft: &SkillFileDraft, within: Span) -> impl Iterator<Item = (&str, usize)> {
    let source = draft.text.get(within.start..within.end).unwrap_or_default();
    let mut next = within.start;
    source.split(['\n', ';', '|', '&', '`']).map(move |piece| {
        let end = next + piece.len();
        // Each of the separators is one byte.
        next = end + 1;
        let mut command = piece.trim_start();
        while let Some(word) = command.split(' ').next().filter(|word| is_command_prefix(word)) {
            command = command[word.len()..].trim_start();
        }
        (command, end - command.len())
    })
}

/// Says whether a word is a prompt, an assignment, or a word that runs the command after it.
fn is_command_prefix(word: &str) -> bool {
    matches!(word, "$" | "%" | "sudo" | "exec" | "time") || word.contains('=') && !word.contains('/')
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// Always true: only Unix has an executable bit.
#[cfg(not(unix))]
fn executable(_: &Path) -> bool {
    true
}

/// Says whether a file has a shebang line or is a binary, which needs none.
fn has_shebang_or_is_binary(file: &Path) -> bool {
    if !file.is_file() {
        return true;
    }
    let mut head = Vec::new();
    let read = open_regular(file).and_then(|file| file.take(256).read_to_end(&mut head));
    read.is_err() || head.starts_with(b"#!") || head.contains(&0)
}

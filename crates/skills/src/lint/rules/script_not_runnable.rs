use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use crate::lint::reference::{Mention, Standing, leading_mention, standing};
use crate::lint::{Draft, Findings, LintRule};
use practicum_core::model::{Severity, Span};

pub static RULE: LintRule = LintRule {
    code: "script-not-runnable",
    severity: Severity::Warning,
    summary: "A script that is run by its path alone is executable and says what runs it.",
    why: "Run as ./scripts/extract.py, a file needs the executable bit and a first line like \
          #!/usr/bin/env python3. Archives and some installers lose the bit, so naming the \
          interpreter is the safer way.",
    bad: "Run `./scripts/extract.py FILE`.      (the file is not executable)",
    good: "Run `python3 scripts/extract.py FILE`.",
    convention: None,
    check,
};

const SHELLS: &[&str] = &["bash", "sh", "shell", "zsh", "console", "shell-session", "terminal"];

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for mention in runs(draft) {
        if !seen.insert(mention.path.clone()) {
            continue;
        }
        let Standing::File(file) = standing(draft.folder(), &mention.path) else { continue };
        let problem = if !executable(&file) {
            "is run by its path alone, and it is not executable"
        } else if !names_interpreter(&file) {
            "is run by its path alone, and its first line names no interpreter"
        } else {
            continue;
        };
        findings.add_help(
            mention.span,
            format!("\"{}\" {problem}", mention.path.display()),
            "name the interpreter in the command, or make it executable with a #! line",
        );
    }
}

/// The scripts that commands begin with: in shell blocks any, elsewhere those written `./scripts/…`
/// or with arguments, because a bare path may just be a name.
fn runs(draft: &Draft) -> Vec<Mention> {
    let mut found = Vec::new();
    for block in &draft.page.code_blocks {
        let shell = SHELLS.contains(&block.language.as_str());
        if shell || block.language.is_empty() {
            found.extend(commands(draft, block.span).filter_map(|(command, at)| {
                (shell || command.starts_with("./")).then(|| leading_mention(command, at)).flatten()
            }));
        }
    }
    for span in &draft.page.code_spans {
        found.extend(commands(draft, *span).filter_map(|(command, at)| {
            let is_run = command.starts_with("./") || command.trim_end().contains(' ');
            is_run.then(|| leading_mention(command, at)).flatten()
        }));
    }
    found.retain(|mention| mention.path.starts_with("scripts"));
    found
}

/// The commands within a span and where each begins, without prompts and assignments.
fn commands(draft: &Draft, within: Span) -> impl Iterator<Item = (&str, usize)> {
    let source = draft.text.get(within.start..within.end).unwrap_or_default();
    let mut next = within.start;
    source.split(['\n', ';', '|', '&', '`']).map(move |piece| {
        let end = next + piece.len();
        // Each of the separators is one byte.
        next = end + 1;
        let mut command = piece.trim_start();
        while let Some(word) = command.split(' ').next().filter(|word| is_prefix(word)) {
            command = command[word.len()..].trim_start();
        }
        (command, end - command.len())
    })
}

/// A prompt, an assignment, or a word that runs the command after it.
fn is_prefix(word: &str) -> bool {
    matches!(word, "$" | "%" | "sudo" | "exec" | "time") || word.contains('=') && !word.contains('/')
}

#[cfg(unix)]
fn executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// Elsewhere there is no such bit.
#[cfg(not(unix))]
fn executable(_: &Path) -> bool {
    true
}

/// A program that is no text needs no first line.
fn names_interpreter(file: &Path) -> bool {
    if !file.is_file() {
        return true;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(256).read_to_end(&mut head));
    read.is_err() || head.starts_with(b"#!") || head.contains(&0)
}

//! The findings of `check` and `lint` in the forms that other programs read: SARIF, and annotations of GitHub.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::github::{escape_data, escape_property};
use super::{display_path, terminal_safe};
use practicum_core::model::{Diagnostic, Diagnostics, Severity};

/// A file and what was found in it.
#[derive(Clone, Copy)]
pub struct FileFindings<'f> {
    /// The path of the file.
    pub path: &'f Path,
    /// The text that the positions point into.
    pub text: &'f str,
    /// What was found.
    pub diagnostics: &'f Diagnostics,
}

/// Writes findings as a SARIF 2.1.0 document, which code scanning and editors read.
pub fn render_sarif(files: &[FileFindings]) -> Value {
    let all = || files.iter().flat_map(|file| file.diagnostics.iter().map(move |found| (file, found)));
    let codes: BTreeSet<&str> = all().map(|(_, found)| found.code).collect();
    let rules: Vec<Value> = codes.iter().map(|code| json!({ "id": code })).collect();
    let results: Vec<Value> = all().map(|(file, found)| sarif_result(file, found)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "practicum",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn sarif_result(file: &FileFindings, found: &Diagnostic) -> Value {
    let level = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Notice => "note",
    };
    let mut location = json!({ "artifactLocation": { "uri": path_as_uri(file.path) } });
    if let Some(position) = found.span.map(|span| span.position(file.text)) {
        location["region"] = json!({ "startLine": position.line, "startColumn": position.column });
    }
    json!({
        "ruleId": found.code,
        "level": level,
        "message": { "text": message_with_help(found) },
        "locations": [{ "physicalLocation": location }],
    })
}

/// Gives the path as a relative reference: from this folder, with everything encoded that is not plain.
fn path_as_uri(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    let uri: Vec<String> = below
        .unwrap_or(path)
        .iter()
        .map(|part| {
            percent_encoding::percent_encode(
                std::os::unix::ffi::OsStrExt::as_bytes(part),
                percent_encoding::NON_ALPHANUMERIC,
            )
            .to_string()
        })
        .map(|part| part.replace("%2E", ".").replace("%2D", "-").replace("%5F", "_").replace("%2F", "/"))
        .collect();
    match uri.first().map(String::as_str) {
        Some("/") => format!("file:///{}", uri[1..].join("/")),
        _ => uri.join("/"),
    }
}

/// Writes findings as commands that GitHub Actions shows beside the lines of a pull request.
pub fn render_github_annotations(files: &[FileFindings]) -> String {
    let mut out = String::new();
    for file in files {
        for found in file.diagnostics.iter() {
            let command = match found.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Notice => "notice",
            };
            let position = found.span.map(|span| span.position(file.text));
            let place = position.map_or_else(String::new, |position| {
                format!(",line={},col={}", position.line, position.column)
            });
            out.push_str(&format!(
                "::{command} file={}{place},title={}::{}\n",
                escape_property(&display_path(file.path)),
                escape_property(found.code),
                escape_data(&terminal_safe(&message_with_help(found))),
            ));
        }
    }
    out
}

fn message_with_help(found: &Diagnostic) -> String {
    match &found.help {
        Some(help) => format!("{}; {help}", found.message),
        None => found.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use practicum_core::model::Span;

    use super::*;

    fn findings() -> Diagnostics {
        let mut found = Diagnostics::default();
        found.error("bad-key", Span { start: 4, end: 5 }, "no \"b\"\n::error::x");
        found.warning_with_help("few-cases", None, "one case", "add cases");
        found
    }

    #[test]
    fn a_message_cannot_start_a_command_of_its_own() {
        let found = findings();
        let files = [FileFindings { path: Path::new("a,b.yaml"), text: "a: \nb: 1", diagnostics: &found }];
        let printed = render_github_annotations(&files);
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), 2, "{printed}");
        assert!(lines[0].starts_with("::error file=a%2Cb.yaml,line=2,col=1,title=bad-key::no"), "{printed}");
        assert_eq!(lines[1], "::warning file=a%2Cb.yaml,title=few-cases::one case; add cases");
    }

    #[test]
    fn sarif_has_a_place_and_a_rule_for_each_finding() {
        let found = findings();
        let files =
            [FileFindings { path: Path::new("my evals/ü.yaml"), text: "a: \nb: 1", diagnostics: &found }];
        let run = &render_sarif(&files)["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"], json!([{ "id": "bad-key" }, { "id": "few-cases" }]));
        let place = &run["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20evals/%C3%BC.yaml");
        assert_eq!(place["region"], json!({ "startLine": 2, "startColumn": 1 }));
        assert_eq!(run["results"][1]["level"], "warning");
        assert_eq!(path_as_uri(Path::new("/a b/c")), "file:///a%20b/c");
    }
}

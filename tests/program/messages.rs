//! The page of messages: every code of a finding, every lint rule and every error of the program is on it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;

const PAGE: &str = include_str!("../../docs/messages.md");

/// The sources of the program without their tests, which name codes that do not exist.
fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open: Vec<PathBuf> = vec![root.join("src"), root.join("crates")];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !["tests", "testing", "benches"].contains(&name.as_str()) {
            open.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            found.push(own.to_owned());
        }
    }
    assert!(found.len() > 300, "{} sources", found.len());
    found
}

fn anchors() -> BTreeSet<&'static str> {
    let anchor = Regex::new(r#"<a id="([^"]+)"></a>"#).expect("a pattern");
    let all: Vec<&str> =
        anchor.captures_iter(PAGE).map(|found| found.get(1).expect("an id").as_str()).collect();
    let once: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(all.len(), once.len(), "each anchor is there once");
    once
}

#[test]
fn every_code_of_a_finding_is_on_the_page() {
    let reported = Regex::new(
        r#"\.(?:error|error_with_help|warning|warning_with_help|notice)\(\s*"([a-z0-9]+(?:-[a-z0-9]+)*)""#,
    );
    let reported = reported.expect("a pattern");
    let sources = sources();
    let codes: BTreeSet<&str> = sources
        .iter()
        .flat_map(|text| reported.captures_iter(text))
        .map(|found| found.get(1).expect("a code").as_str())
        .collect();
    let rules = practicum::lint::RULES.iter().map(|rule| rule.code);
    let codes: BTreeSet<&str> = codes.into_iter().chain(rules).collect();
    assert!(codes.len() > 140, "{codes:?}");
    let anchors = anchors();
    let missing: Vec<&&str> = codes.iter().filter(|code| !anchors.contains(**code)).collect();
    assert!(missing.is_empty(), "docs/messages.md says nothing of {missing:?}");
    // A code that the program no longer has is no help.
    let row = Regex::new(r#"(?m)^\| <a id="[^"]+"></a>`([^`]+)`"#).expect("a pattern");
    let stale: Vec<&str> = row
        .captures_iter(PAGE)
        .map(|found| found.get(1).expect("a code").as_str())
        .filter(|code| !codes.contains(code))
        .collect();
    assert!(stale.is_empty(), "no finding has the codes {stale:?}");
}

#[test]
fn every_error_is_on_the_page() {
    let declared = Regex::new(r#"#\[error\("((?:[^"\\]|\\.)+)""#).expect("a pattern");
    let row = Regex::new(r#"(?m)^\| <a id="[^"]+"></a>([^`|][^|]*?) \|"#).expect("a pattern");
    let known: Vec<&str> =
        row.captures_iter(PAGE).map(|found| found.get(1).expect("words").as_str()).collect();
    assert!(known.len() > 50, "{known:?}");
    let value = Regex::new(r"\{[^}]*\}").expect("a pattern");
    let (mut missing, mut errors) = (Vec::new(), 0);
    for source in &sources() {
        for message in declared.captures_iter(source).map(|found| found[1].to_owned()) {
            // A message that has no words of its own passes on another one.
            let words = value.replace_all(&message, "").chars().filter(|c| c.is_alphabetic()).count();
            if words < 6 {
                continue;
            }
            errors += 1;
            if !known.iter().any(|part| message.contains(part)) {
                missing.push(message);
            }
        }
    }
    assert!(errors > 60, "{errors}");
    assert!(missing.is_empty(), "docs/messages.md says nothing of {missing:#?}");
}

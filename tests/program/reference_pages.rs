//! The pages that list every command and every setting, made from the help and the schema of the program.
//!
//! `PRACTICUM_UPDATE_DOCS=1 cargo test --test program reference_pages` writes them.

use std::fmt::Write;
use std::path::Path;

use crate::common::Project;
use serde_json::Value;

/// Gives the commands that a help text lists, in its order.
fn listed_commands(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

fn commands_page() -> String {
    let project = Project::new(&[]);
    let help = |words: &[&str]| project.run(&[words, &["--help"]].concat()).exits(0).stdout;
    let general = help(&[]);
    let commands = listed_commands(&general);
    assert!(commands.len() > 40, "{commands:?}");
    let mut page = "# Every command\n\nThis page is the help of the program. `practicum help COMMAND` prints one part of it.\n\n".to_owned();
    let rows = commands.iter().map(|name| format!("[`{name}`](#{name})")).collect::<Vec<_>>().join(" · ");
    let _ = write!(page, "{rows}\n\n```text\n{}\n```\n", general.trim_end());
    for name in &commands {
        let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", help(&[name]).trim_end());
    }
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// Adds a row for each property of a schema, those of tables below their table.
fn add_settings(schema: &Value, prefix: &str, rows: &mut String) {
    for (key, part) in schema["properties"].as_object().into_iter().flatten() {
        let name = format!("{prefix}{key}");
        let text = part["description"].as_str().unwrap_or_default().replace('|', "\\|").replace('\n', " ");
        // Another spelling of a key is accepted, and needs no row.
        if text.starts_with("The same as ") {
            continue;
        }
        let _ = writeln!(rows, "| `{name}` | {text} | {} |", accepted_values(part));
        add_settings(part, &format!("{name}."), rows);
        add_settings(&part["additionalProperties"], &format!("{name}.NAME."), rows);
    }
}

/// Says in a word or two what a setting accepts.
fn accepted_values(part: &Value) -> String {
    let list = |values: &Value| {
        let texts = values.as_array().into_iter().flatten().map(|value| format!("`{value}`"));
        texts.collect::<Vec<_>>().join(", ")
    };
    if part.get("enum").is_some() {
        return list(&part["enum"]);
    }
    if part.get("examples").is_some() {
        return format!("for example {}", list(&part["examples"]));
    }
    let kinds = std::iter::once(part).chain(part["anyOf"].as_array().into_iter().flatten());
    let named = kinds.filter_map(|part| match part["type"].as_str()? {
        "string" => Some("text"),
        "integer" => Some("whole number"),
        "number" => Some("number"),
        "boolean" => Some("true or false"),
        "array" => Some("list"),
        "object" => Some("table"),
        _ => None,
    });
    let mut named: Vec<&str> = named.collect();
    named.dedup();
    named.join(" or ")
}

fn settings_page() -> String {
    let schema = Project::new(&[]).run(&["schema", "project"]).exits(0).json();
    let mut rows = String::new();
    add_settings(&schema, "", &mut rows);
    assert!(rows.lines().count() > 30, "{rows}");
    format!(
        "# Every setting\n\nThe keys of `practicum.toml`, made from its schema (`practicum schema project`). \
         [Settings and agents](settings.md) explains where settings come from and which one wins.\n\n\
         | key | meaning | value |\n|---|---|---|\n{rows}"
    )
}

#[test]
fn the_pages_of_commands_and_settings_are_what_the_program_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut wrong = Vec::new();
    for (name, right) in [("commands.md", commands_page()), ("all-settings.md", settings_page())] {
        let path = docs.join(name);
        if std::fs::read_to_string(&path).unwrap_or_default() != right {
            match std::env::var_os("PRACTICUM_UPDATE_DOCS") {
                Some(_) => std::fs::write(&path, right).expect("write"),
                None => wrong.push(name),
            }
        }
    }
    assert_eq!(wrong, Vec::<&str>::new(), "run this test with PRACTICUM_UPDATE_DOCS=1");
}

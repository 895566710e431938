//! Reads and writes recordings of MCP servers: the keys of a mocked server that name one, and the file itself.
//!
//! ```yaml
//! practicum_recording: 1
//! tools:
//!   list_fruit:
//!     answers:
//!       - { input: {}, result: "[]" }
//! ```

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::reading::parts::report_part;
use super::encode::relative_path;
use super::mocks::{decode_tool, encode_tool, named_entries};
use practicum_core::model::{Diagnostics, McpToolMock, ServerRecording, Span};
use practicum_core::tree::json_schema::{self, MappingSchema};
use practicum_core::tree::{NodeData, ObjectReader, SourceFile, to_yaml};
use practicum_skills::skill::normalise_path;

/// The key that names the file.
pub const FILE_KEY: &str = "recorded";

/// The key of the file's version.
const VERSION_KEY: &str = "practicum_recording";

/// Reads `recorded`, `command` and `env` of a mocked server. `None` if it has no recording.
pub fn decode(
    object: &mut ObjectReader<'_>,
    folder: &Path,
    diagnostics: &mut Diagnostics,
) -> Option<ServerRecording> {
    let file = object.text(FILE_KEY, diagnostics).map(str::to_owned);
    let texts = |found: Option<Vec<(&str, Span)>>| -> Vec<String> {
        found.unwrap_or_default().into_iter().map(|(text, _)| text.to_owned()).collect()
    };
    let command = texts(object.texts("command", diagnostics));
    let pass_env = texts(object.texts("env", diagnostics));
    let Some(file) = file else {
        if !command.is_empty() || !pass_env.is_empty() {
            let message = format!("\"command\" and \"env\" are for a server with \"{FILE_KEY}\"");
            diagnostics.error("missing-key", object.span, message);
        }
        return None;
    };
    Some(ServerRecording {
        file: normalise_path(&folder.join(file)),
        folder: folder.to_owned(),
        command,
        pass_env,
    })
}

/// Writes the keys of a recording, with its path from a folder.
pub fn encode(recording: &ServerRecording, folder: &Path) -> Map<String, Value> {
    let ServerRecording { file, folder: _, command, pass_env } = recording;
    let mut map = Map::new();
    map.insert(FILE_KEY.to_owned(), json!(relative_path(file, folder)));
    for (key, words) in [("command", command), ("env", pass_env)] {
        if !words.is_empty() {
            map.insert(key.to_owned(), json!(words));
        }
    }
    map
}

/// Adds the keys of a recording to the schema of a server.
pub fn add_keys(server: MappingSchema) -> MappingSchema {
    server
        .optional(
            FILE_KEY,
            "The file with recorded answers of the real server.",
            json_schema::nonempty_text(),
        )
        .optional(
            "command",
            "The program of the real server and its arguments. It is started only with --record-mocks.",
            json_schema::text_or_texts(),
        )
        .optional(
            "env",
            "Variables of your environment that the real server gets.",
            json_schema::text_or_texts(),
        )
}

/// Reads the tools in the file of a recording. A file that is not there yet is reported at the server that names it.
pub fn read_file(recording: &ServerRecording, at: Span, diagnostics: &mut Diagnostics) -> Vec<McpToolMock> {
    let shown = recording.file.display().to_string();
    if !recording.file.exists() {
        let message = format!("{shown} does not exist; run the cases once with --record-mocks");
        diagnostics.warning("not-recorded", at, message);
        return Vec::new();
    }
    let mut problems = Diagnostics::default();
    let (text, source) = SourceFile::read(&recording.file, &mut problems);
    let tools = source.map(|source| decode_file(&source, &mut problems)).unwrap_or_default();
    report_part(&shown, &text, problems, diagnostics);
    tools
}

/// Reads the tools in a recording.
pub fn decode_file(source: &SourceFile, diagnostics: &mut Diagnostics) -> Vec<McpToolMock> {
    let Some(mut file) = ObjectReader::new(&source.root, "a recording", diagnostics) else {
        return Vec::new();
    };
    match file.get(VERSION_KEY).map(|node| (&node.data, node.span)) {
        Some((NodeData::Int(1), _)) => {}
        Some((_, span)) => {
            let message = format!("this version is not known; \"{VERSION_KEY}: 1\" is");
            diagnostics.error("unknown-version", span, message);
        }
        None => file.report_missing(VERSION_KEY, diagnostics),
    }
    let tools = named_entries(file.get_non_null("tools"), "tools", diagnostics);
    file.reject_unknown_keys("a recording", diagnostics);
    tools.into_iter().filter_map(|entry| decode_tool(entry, None, diagnostics)).collect()
}

/// Writes a recording.
pub fn encode_file(tools: &[McpToolMock]) -> String {
    let tools: Map<String, Value> = tools.iter().map(encode_tool).collect();
    to_yaml(&json!({VERSION_KEY: 1, "tools": tools}))
}

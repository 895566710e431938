//! The conversation so far, kept in a file between runs.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::llm::ChatMessage;
use practicum_core::tree::open_regular;

const SCHEMA_VERSION: u32 = 1;
const LARGEST_SESSION_FILE: u64 = 64 * 1024 * 1024;

/// The stored conversation of the built-in agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuiltinSession {
    schema_version: u32,
    pub id: String,
    pub messages: Vec<ChatMessage>,
}

impl BuiltinSession {
    pub fn new() -> Self {
        Self { schema_version: SCHEMA_VERSION, id: uuid::Uuid::new_v4().to_string(), messages: Vec::new() }
    }

    /// Reads the conversation. A missing file is a conversation that has not begun.
    pub fn load(path: &Path) -> io::Result<Self> {
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::new()),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(LARGEST_SESSION_FILE).read_to_string(&mut text)?;
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let session: BuiltinSession = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("{} is not a session file: {error}", path.display())))?;
        if session.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!(
                "{} is a session of version {}, not {SCHEMA_VERSION}",
                path.display(),
                session.schema_version
            )));
        }
        Ok(session)
    }

    /// Writes the file completely or not at all, because a run may be killed at any moment.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{ContentBlock, Role};
    use serde_json::json;

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/session.json");
        assert_eq!(BuiltinSession::load(&path).expect("new").messages, []);
        let mut session = BuiltinSession::new();
        session.messages = vec![
            ChatMessage::user("hi"),
            ChatMessage {
                role: Role::Assistant,
                blocks: vec![
                    ContentBlock::Thinking { text: "hm".to_owned(), signature: None },
                    ContentBlock::ToolUse {
                        id: "a".to_owned(),
                        name: "b".to_owned(),
                        input: json!({"c": 1}),
                    },
                ],
            },
        ];
        session.save(&path).expect("saved");
        assert_eq!(BuiltinSession::load(&path).expect("loaded"), session);
    }

    #[test]
    fn what_is_no_session_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("session.json");
        for text in ["", "{}", r#"{"schema_version":2,"id":"x","messages":[]}"#] {
            fs::write(&path, text).expect("written");
            assert!(BuiltinSession::load(&path).is_err(), "{text}");
        }
    }
}

//! Removes secrets from everything that is stored.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use practicum_core::tree::{open_regular, read_regular, write_unlinked};
use serde_json::Value;

/// Removes the user's secrets from stored files. An agent's shell can see its own key, so a key may appear in any
/// file or text that it writes.
#[derive(Debug, Clone, Default)]
pub struct Scrubber {
    secrets: Vec<Vec<u8>>,
}

/// The shortest value that counts as a secret. Shorter ones would match by accident.
const SHORTEST_SECRET: usize = 8;

const CHUNK_BYTES: usize = 64 * 1024;

const MASK: &[u8] = b"[secret]";

impl Scrubber {
    /// Makes a scrubber for the values of variables whose names suggest a secret.
    pub fn new(environment: &BTreeMap<String, String>) -> Self {
        let telling = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
        let secrets = environment
            .iter()
            .filter(|(name, value)| {
                value.len() >= SHORTEST_SECRET
                    && telling.iter().any(|word| name.to_uppercase().contains(word))
            })
            .map(|(_, value)| value.as_bytes().to_vec())
            .collect();
        Self { secrets }
    }

    /// Adds the secrets of a login file: every text in it that is long enough to be a token.
    pub(crate) fn with_secrets_in_file(mut self, path: &Path) -> Self {
        let logins = read_regular(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(logins) = logins {
            collect_tokens(&logins, &mut self.secrets);
        }
        self
    }

    /// Replaces the known secrets in a text.
    pub fn scrub_text(&self, text: &str) -> String {
        match self.scrub_bytes(text.as_bytes()) {
            Some(clean) => String::from_utf8_lossy(&clean).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Gives the bytes without secrets, or `None` if there were none.
    pub(crate) fn scrub_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut clean: Option<Vec<u8>> = None;
        for secret in &self.secrets {
            let from = clean.as_deref().unwrap_or(bytes);
            if let Some(replaced) = replace(from, secret) {
                clean = Some(replaced);
            }
        }
        clean
    }

    /// Scrubs a file in place.
    pub(crate) fn scrub_file(&self, path: &Path) -> std::io::Result<()> {
        if self.secrets.is_empty() {
            return Ok(());
        }
        if !self.file_has_secret(path)? {
            return Ok(());
        }
        match self.scrub_bytes(&read_regular(path)?) {
            Some(clean) => write_unlinked(path, clean),
            None => Ok(()),
        }
    }

    /// Says whether a file contains a secret. A missing file does not.
    pub(crate) fn file_has_secret(&self, path: &Path) -> std::io::Result<bool> {
        match open_regular(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            file => self.stream_has_secret(file?),
        }
    }

    /// Says whether a stream contains a secret. Only a part of it is in memory at a time, because hardly any file
    /// contains one and some are large.
    fn stream_has_secret(&self, mut stream: impl Read) -> std::io::Result<bool> {
        let overlap = self.secrets.iter().map(Vec::len).max().unwrap_or(1) - 1;
        let mut buffer = vec![0; CHUNK_BYTES + overlap];
        let mut held = 0;
        loop {
            let count = stream.read(&mut buffer[held..])?;
            if count == 0 {
                return Ok(false);
            }
            let seen = &buffer[..held + count];
            if self.secrets.iter().any(|secret| find(seen, secret).is_some()) {
                return Ok(true);
            }
            // A secret may begin at the end of one part and continue in the next.
            let from = seen.len().saturating_sub(overlap);
            let until = seen.len();
            buffer.copy_within(from..until, 0);
            held = until - from;
        }
    }

    /// Scrubs every file below a folder.
    pub(crate) fn scrub_folder(&self, folder: &Path) -> std::io::Result<()> {
        if self.secrets.is_empty() {
            return Ok(());
        }
        // A list instead of recursion: an agent may have made thousands of folders inside each other.
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)?.flatten() {
                match entry.file_type()? {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => self.scrub_file(&entry.path())?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The shortest token. Names and scopes are shorter.
const SHORTEST_TOKEN: usize = 20;

fn collect_tokens(value: &Value, secrets: &mut Vec<Vec<u8>>) {
    match value {
        Value::String(text) if text.len() >= SHORTEST_TOKEN => secrets.push(text.as_bytes().to_vec()),
        Value::Array(items) => items.iter().for_each(|item| collect_tokens(item, secrets)),
        Value::Object(entries) => entries.values().for_each(|value| collect_tokens(value, secrets)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replace(bytes: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut rest = bytes;
    while let Some(at) = find(rest, secret) {
        let out = out.get_or_insert_with(Vec::new);
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(MASK);
        rest = &rest[at + secret.len()..];
    }
    if let Some(out) = &mut out {
        out.extend_from_slice(rest);
    }
    out
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = haystack[from..].iter().position(|&byte| byte == first) {
        let at = from + at;
        if haystack[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_stored() {
        let environment =
            [("ANTHROPIC_API_KEY", "sk-ant-123456"), ("PATH", "/usr/bin:/bin"), ("MY_TOKEN", "short")];
        let scrubber =
            Scrubber::new(&environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        for (text, expected) in [
            ("key sk-ant-123456 and sk-ant-123456!", "key [secret] and [secret]!"),
            ("nothing here", "nothing here"),
            ("ssk-ant-123456", "s[secret]"),
            ("/usr/bin:/bin short", "/usr/bin:/bin short"),
        ] {
            assert_eq!(scrubber.scrub_text(text), expected);
        }
    }

    #[test]
    fn a_secret_is_found_wherever_the_parts_of_a_file_meet() {
        let scrubber =
            Scrubber { secrets: vec![b"sk-ant-123456".to_vec(), b"longer-than-the-other".to_vec()] };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        for before in (CHUNK_BYTES - 40)..(CHUNK_BYTES + 40) {
            std::fs::write(&path, format!("{}sk-ant-123456 end", "s".repeat(before))).expect("written");
            scrubber.scrub_file(&path).expect("scrubbed");
            let text = std::fs::read_to_string(&path).expect("kept");
            assert!(text.ends_with("s[secret] end"), "{before}");
        }
        std::fs::write(&path, "sk-ant-12345").expect("written");
        scrubber.scrub_file(&path).expect("scrubbed");
        assert_eq!(std::fs::read_to_string(&path).expect("kept"), "sk-ant-12345");
    }
}

//! Removes secrets from everything that is stored.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use practicum_core::tree::{open_regular, read_bounded, read_regular, write_unlinked};

use super::secret_forms::{SHORTEST_TOKEN, collect_tokens, forms_of, secrets_of};

/// Removes the user's secrets from stored files. An agent's shell can see its own key, so a key may appear in any
/// file or text that it writes.
#[derive(Debug, Clone, Default)]
pub struct Scrubber {
    secrets: Vec<String>,
    forms: Arc<SecretForms>,
}

/// All forms of all secrets.
#[derive(Debug, Default)]
struct SecretForms {
    /// The forms by their first byte, the longest first: a secret may be the beginning of another one.
    by_first_byte: Vec<Vec<Vec<u8>>>,
    longest: usize,
}

const CHUNK_BYTES: usize = 64 * 1024;

const MASK: &[u8] = b"[secret]";

/// The largest login file, in bytes, and the most words of it that count as tokens. An agent may write anything into the
/// copy in its home, and each word is searched for in many forms. Real logins have a few tokens.
const LARGEST_LOGIN: u64 = 1024 * 1024;
const MOST_TOKENS: usize = 200;

impl SecretForms {
    fn new(secrets: &[String]) -> Self {
        let mut by_first_byte = vec![Vec::new(); if secrets.is_empty() { 0 } else { 256 }];
        let mut longest = 0;
        for form in secrets.iter().flat_map(|secret| forms_of(secret)) {
            longest = longest.max(form.len());
            let same: &mut Vec<Vec<u8>> = &mut by_first_byte[usize::from(form[0])];
            same.push(form);
        }
        for same in &mut by_first_byte {
            same.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            same.dedup();
        }
        Self { by_first_byte, longest }
    }

    /// Finds the first secret that begins at a position in a range: where it begins, and where it ends.
    fn find(&self, bytes: &[u8], mut starts: Range<usize>) -> Option<(usize, usize)> {
        if self.longest == 0 {
            return None;
        }
        starts.find_map(|at| {
            let same = &self.by_first_byte[usize::from(bytes[at])];
            let found = same.iter().find(|form| bytes[at..].starts_with(form))?;
            Some((at, at + found.len()))
        })
    }
}

impl Scrubber {
    /// Makes a scrubber for the secrets of an environment: variables whose names suggest one, and passwords in addresses.
    pub fn new(environment: &BTreeMap<String, String>) -> Self {
        Self::with_declared(environment, &[])
    }

    /// Makes a scrubber that also knows the values of the `declared` variables, whatever their names.
    pub fn with_declared(environment: &BTreeMap<String, String>, declared: &[String]) -> Self {
        Self::of_secrets(secrets_of(environment, declared))
    }

    fn of_secrets(secrets: Vec<String>) -> Self {
        let forms = Arc::new(SecretForms::new(&secrets));
        Self { secrets, forms }
    }

    /// Adds the secrets of a login file: every word in it that is long enough to be a token.
    #[must_use]
    pub fn with_secrets_in_file(self, path: &Path) -> Self {
        let bytes = read_bounded(path, LARGEST_LOGIN).ok();
        let logins = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut found = Vec::new();
        if let Some(logins) = logins {
            collect_tokens(&logins, &mut found);
        }
        // Tokens are words. A sentence that an agent writes there would otherwise be removed from its own record.
        let words = found.iter().flat_map(|text| text.split_whitespace());
        let words = words.filter(|word| word.len() >= SHORTEST_TOKEN).take(MOST_TOKENS);
        let mut found: Vec<String> = words.map(str::to_owned).collect();
        found.retain(|secret| !self.secrets.contains(secret));
        match found.is_empty() {
            true => self,
            false => Self::of_secrets([self.secrets, found].concat()),
        }
    }

    /// Replaces the known secrets in a text.
    pub fn scrub_text(&self, text: &str) -> String {
        match self.scrub_bytes(text.as_bytes()) {
            Some(clean) => String::from_utf8_lossy(&clean).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Gives the bytes without secrets, or `None` if there were none.
    pub fn scrub_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut found = self.forms.find(bytes, 0..bytes.len())?;
        let mut clean = Vec::with_capacity(bytes.len());
        let mut from = 0;
        loop {
            clean.extend_from_slice(&bytes[from..found.0]);
            clean.extend_from_slice(MASK);
            from = found.1;
            match self.forms.find(bytes, from..bytes.len()) {
                Some(next) => found = next,
                None => break,
            }
        }
        clean.extend_from_slice(&bytes[from..]);
        Some(clean)
    }

    /// Scrubs a file in place. Says whether it had a secret.
    pub fn scrub_file(&self, path: &Path) -> std::io::Result<bool> {
        if !self.file_has_secret(path)? {
            return Ok(false);
        }
        match self.scrub_bytes(&read_regular(path)?) {
            Some(clean) => write_unlinked(path, clean).map(|()| true),
            None => Ok(false),
        }
    }

    /// Says whether a file contains a secret. A missing file does not.
    pub fn file_has_secret(&self, path: &Path) -> std::io::Result<bool> {
        if self.secrets.is_empty() {
            return Ok(false);
        }
        match open_regular(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            file => self.stream_has_secret(file?),
        }
    }

    /// Says whether a stream contains a secret. Only a part of it is in memory at a time, because hardly any file
    /// contains one and some are large.
    fn stream_has_secret(&self, mut stream: impl Read) -> std::io::Result<bool> {
        let overlap = self.forms.longest.saturating_sub(1);
        let mut buffer = vec![0; CHUNK_BYTES + overlap];
        let mut held = 0;
        loop {
            let count = stream.read(&mut buffer[held..])?;
            if count == 0 {
                return Ok(false);
            }
            let seen = &buffer[..held + count];
            if self.forms.find(seen, 0..seen.len()).is_some() {
                return Ok(true);
            }
            // A secret may begin at the end of one part and continue in the next.
            let from = seen.len().saturating_sub(overlap);
            let until = seen.len();
            buffer.copy_within(from..until, 0);
            held = until - from;
        }
    }

    /// Scrubs every file below a folder. Says whether any had a secret.
    pub fn scrub_folder(&self, folder: &Path) -> std::io::Result<bool> {
        let mut found = false;
        if self.secrets.is_empty() {
            return Ok(found);
        }
        // A list instead of recursion: an agent may have made thousands of folders inside each other.
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)?.flatten() {
                match entry.file_type()? {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => found |= self.scrub_file(&entry.path())?,
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// Starts to scrub a stream, so that no secret of it is ever on disk.
    pub fn stream(&self) -> StreamScrubber {
        StreamScrubber { forms: Arc::clone(&self.forms), held: Vec::new() }
    }

    /// Copies a stream without its secrets. Gives the number of bytes that were read.
    pub fn copy(&self, mut from: impl Read, mut to: impl Write) -> std::io::Result<u64> {
        let mut stream = self.stream();
        let (mut buffer, mut clean, mut total) = (vec![0; CHUNK_BYTES], Vec::new(), 0);
        loop {
            let count = from.read(&mut buffer)?;
            clean.clear();
            match count {
                0 => stream.finish(&mut clean),
                _ => stream.push(&buffer[..count], &mut clean),
            }
            to.write_all(&clean)?;
            total += count as u64;
            if count == 0 {
                return Ok(total);
            }
        }
    }
}

/// A scrubber of one stream. It holds back the last bytes until it is known whether a secret begins in them.
#[derive(Debug)]
pub struct StreamScrubber {
    forms: Arc<SecretForms>,
    held: Vec<u8>,
}

impl StreamScrubber {
    /// Takes the next bytes, and appends to `clean` what can be written.
    pub fn push(&mut self, bytes: &[u8], clean: &mut Vec<u8>) {
        if self.forms.longest == 0 {
            clean.extend_from_slice(bytes);
            return;
        }
        self.held.extend_from_slice(bytes);
        // Every secret that begins before this position is here as a whole.
        let safe = self.held.len().saturating_sub(self.forms.longest - 1);
        self.write_until(safe, clean);
    }

    /// Appends the rest to `clean`.
    pub fn finish(&mut self, clean: &mut Vec<u8>) {
        self.write_until(self.held.len(), clean);
    }

    fn write_until(&mut self, safe: usize, clean: &mut Vec<u8>) {
        let mut from = 0;
        // Only until there, so that a stream of many small parts is not searched again with each of them.
        while let Some((start, end)) = self.forms.find(&self.held, from..safe) {
            clean.extend_from_slice(&self.held[from..start]);
            clean.extend_from_slice(MASK);
            from = end;
        }
        let until = safe.max(from);
        clean.extend_from_slice(&self.held[from..until]);
        self.held.drain(..until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubber(pairs: &[(&str, &str)]) -> Scrubber {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Scrubber::new(&pairs.collect())
    }

    #[test]
    fn a_secret_is_never_stored() {
        let scrubber = scrubber(&[
            ("ANTHROPIC_API_KEY", "sk-ant-123456"),
            ("PATH", "/usr/bin:/bin"),
            ("PWD", "/home/someone/project"),
            ("MY_TOKEN", "short"),
        ]);
        for (text, expected) in [
            ("key sk-ant-123456 and sk-ant-123456!", "key [secret] and [secret]!"),
            ("nothing here", "nothing here"),
            ("ssk-ant-123456", "s[secret]"),
            ("/usr/bin:/bin short", "/usr/bin:/bin short"),
            ("/home/someone/project", "/home/someone/project"),
        ] {
            assert_eq!(scrubber.scrub_text(text), expected);
        }
    }

    #[test]
    fn of_two_secrets_with_the_same_beginning_nothing_of_the_longer_is_left() {
        for names in [["A_TOKEN", "B_TOKEN"], ["B_TOKEN", "A_TOKEN"]] {
            let scrubber = scrubber(&[(names[0], "token-1234"), (names[1], "token-1234-and-the-rest")]);
            let clean = scrubber.scrub_text("a token-1234-and-the-rest b token-1234 c");
            assert_eq!(clean, "a [secret] b [secret] c");
        }
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B/+\"x\\y\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";
        let document = format!("{{\"client\": {}}}", serde_json::json!(key));
        let secret = "päss/wo+rd \"1\"";
        let scrubber = scrubber(&[("A_PASSWD", secret), ("DEPLOY_KEY", key), ("GCP_CREDENTIALS", &document)]);
        let json = serde_json::json!({ "a": secret, "k": key }).to_string();
        let in_json = serde_json::json!({ "text": json }).to_string();
        let leaks = ["wo+rd", "wo%2Brd", "wo%2brd", "MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB"];
        for text in [
            secret.to_owned(),
            json,
            in_json,
            "\"p\\u00e4ss/wo+rd \\\"1\\\"\"".to_owned(),
            "p%C3%A4ss%2Fwo%2Brd%20%221%22".to_owned(),
            "p%c3%a4ss%2fwo%2brd+%221%22".to_owned(),
            key.to_owned(),
            key.replace('\n', "\r\n"),
            key.lines().map(|line| format!("  {line}\n")).collect(),
            document,
        ] {
            let clean = scrubber.scrub_text(&text);
            assert!(
                clean.contains("[secret]") && !leaks.iter().any(|leak| clean.contains(leak)),
                "{text}: {clean}"
            );
        }
    }

    #[test]
    fn a_login_with_many_texts_takes_the_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("login.json");
        let texts: Vec<String> = (0..40_000).map(|n| format!("a-token-of-the-agent-{n:06}")).collect();
        for (count, known) in [(3, true), (20_000, true), (40_000, false)] {
            std::fs::write(&path, serde_json::json!(texts[..count]).to_string()).expect("written");
            let scrubber = scrubber(&[]).with_secrets_in_file(&path);
            assert!(scrubber.secrets.len() <= MOST_TOKENS, "{}", scrubber.secrets.len());
            assert_eq!(scrubber.scrub_text(&texts[0]) == "[secret]", known, "{count}");
        }
    }

    #[test]
    fn an_agent_hides_what_it_said_as_a_login() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("login.json");
        let said = "I have deleted all of the files.";
        let login = serde_json::json!({"a": said, "header": "Bearer abcdefghijklmnopqrstuvwxyz"});
        std::fs::write(&path, login.to_string()).expect("written");
        let scrubber = scrubber(&[]).with_secrets_in_file(&path);
        assert_eq!(scrubber.scrub_text(said), said);
        assert_eq!(scrubber.scrub_text("x abcdefghijklmnopqrstuvwxyz"), "x [secret]");
    }

    #[test]
    fn a_secret_is_found_wherever_the_parts_of_a_file_meet() {
        let scrubber = scrubber(&[("A_KEY", "sk-ant-123456"), ("B_KEY", "longer-than-the-other")]);
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

    #[test]
    fn a_stream_in_parts_of_any_size_is_scrubbed_like_the_whole() {
        let scrubber = scrubber(&[("A_TOKEN", "token-1234"), ("B_TOKEN", "token-1234-and-the-rest")]);
        let text = "x token-1234 token-1234-and-the-rest token-1234-and-the tokentoken-1234-and-the-resttail token-12";
        let whole = scrubber.scrub_text(text);
        for size in 1..text.len() {
            let (mut stream, mut clean) = (scrubber.stream(), Vec::new());
            text.as_bytes().chunks(size).for_each(|part| stream.push(part, &mut clean));
            stream.finish(&mut clean);
            assert_eq!(String::from_utf8(clean).expect("text"), whole, "parts of {size}");
        }
    }
}

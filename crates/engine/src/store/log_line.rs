//! The checksum at the end of each line of the event log.

use super::record_key::{MarkKind, RecordKey};

/// The key and the run with which lines are marked.
#[derive(Debug, Clone)]
pub struct LineMarker {
    key: Option<RecordKey>,
    run: String,
}

/// Characters of the checksum. It finds damage; only the mark finds forgery.
const CHECKSUM_LENGTH: usize = 16;

const CHECKSUM: &[u8] = b",\"checksum\":\"";

const MARK: &[u8] = b"\",\"mark\":\"";

impl LineMarker {
    /// Makes the marker of a run's log. Without a key, lines have only a checksum.
    pub fn new(run: &str, key: Option<RecordKey>) -> Self {
        Self { key, run: run.to_owned() }
    }

    /// Adds the checksum, and the mark of the installation, to a line that is one JSON object.
    pub fn add_to(&self, line: &mut Vec<u8>) {
        let sum = checksum(line);
        let mark = self.key.as_ref().map(|key| key.mark(MarkKind::LogLine, [self.run.as_bytes(), line]));
        line.pop();
        line.extend_from_slice(CHECKSUM);
        line.extend_from_slice(sum.as_bytes());
        if let Some(mark) = mark {
            line.extend_from_slice(MARK);
            line.extend_from_slice(mark.as_bytes());
        }
        line.extend_from_slice(b"\"}");
    }

    /// Says whether this installation wrote the line, for this run.
    pub fn is_made_here(&self, line: &[u8]) -> bool {
        let Some((content, tail)) = split_checksum(line) else { return false };
        let at = tail.windows(MARK.len()).position(|part| part == MARK);
        let mark = at.and_then(|at| tail[at + MARK.len()..].strip_suffix(b"\"}"));
        let mark = mark.and_then(|mark| std::str::from_utf8(mark).ok()).unwrap_or_default();
        let key = self.key.as_ref();
        key.is_some_and(|key| key.is_mark(mark, MarkKind::LogLine, [self.run.as_bytes(), &content]))
    }
}

/// Says whether a line was changed after it was written. A line without a checksum is of an earlier version.
pub fn is_damaged(line: &[u8]) -> bool {
    split_checksum(line).is_some_and(|(content, tail)| !tail.starts_with(checksum(&content).as_bytes()))
}

/// Gives a line as it was before a checksum was added.
pub fn without_checksum(line: &[u8]) -> Vec<u8> {
    split_checksum(line).map_or_else(|| line.to_vec(), |(content, _)| content)
}

fn checksum(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..CHECKSUM_LENGTH].to_owned()
}

/// Gives the object as it was before the checksum was added, and the checksum with what follows. `None` if the line has
/// no checksum.
fn split_checksum(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let line = line.trim_ascii_end();
    // The checksum and a mark are at most this long, so a text in the event is not taken for them.
    let longest = CHECKSUM.len() + CHECKSUM_LENGTH + MARK.len() + 64 + 2;
    let from = line.len().saturating_sub(longest);
    let at = from + line[from..].windows(CHECKSUM.len()).rposition(|part| part == CHECKSUM)?;
    let mut content = line[..at].to_vec();
    content.push(b'}');
    Some((content, &line[at + CHECKSUM.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_and_forgery_of_a_line_are_noticed() {
        let own = LineMarker::new("run-1", Some(RecordKey::temporary()));
        let mut line = br#"{"event":"notice","text":"x"}"#.to_vec();
        assert!(!is_damaged(&line), "earlier versions wrote no checksum");
        assert!(!own.is_made_here(&line));
        own.add_to(&mut line);
        serde_json::from_slice::<serde_json::Value>(&line).expect("still one object");
        assert!(!is_damaged(&line) && own.is_made_here(&line));
        line.push(b'\n');
        assert!(!is_damaged(&line) && own.is_made_here(&line));
        let end = line.windows(CHECKSUM.len()).position(|part| part == CHECKSUM).expect("a checksum");
        for at in 0..end {
            let mut changed = line.clone();
            changed[at] ^= 1;
            assert!(is_damaged(&changed) && !own.is_made_here(&changed), "{at}");
        }
        let other = LineMarker::new("run-1", Some(RecordKey::temporary()));
        let elsewhere = LineMarker { run: "run-2".to_owned(), ..own.clone() };
        assert!(!other.is_made_here(&line) && !elsewhere.is_made_here(&line));
        // A forger can compute the checksum, but not the mark.
        let mut forged = br#"{"event":"notice","text":"y"}"#.to_vec();
        LineMarker::new("run-1", None).add_to(&mut forged);
        assert!(!is_damaged(&forged) && !own.is_made_here(&forged));
    }

    #[test]
    fn a_checksum_in_a_text_of_the_event_is_no_checksum() {
        let own = LineMarker::new("r", Some(RecordKey::temporary()));
        let mut line =
            serde_json::to_vec(&serde_json::json!({"event": "notice", "text": ",\"checksum\":\"00\""}))
                .expect("JSON");
        assert!(!is_damaged(&line));
        own.add_to(&mut line);
        assert!(!is_damaged(&line) && own.is_made_here(&line));
    }
}

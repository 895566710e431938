//! Server-sent events, as model APIs stream their replies: both directions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LARGEST_REPLY, text_field};

/// One server-sent event. Data that is not JSON is kept as text: OpenAI's `[DONE]`. Chat Completions does not name its
/// events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SseEvent {
    #[serde(rename = "event", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub data: Value,
}

impl SseEvent {
    pub fn unnamed(data: Value) -> Self {
        Self { name: None, data }
    }

    pub fn named_by_type(data: Value) -> Self {
        Self { name: Some(text_field(&data, "type").to_owned()), data }
    }

    /// Reads all events of a stream that has ended.
    pub fn read_all(stream: &[u8]) -> Vec<Self> {
        let mut reader = SseReader::default();
        let mut texts = reader.feed(stream);
        texts.extend(reader.finish());
        let data = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        texts.into_iter().map(|text| Self { name: text.name, data: data(text.data) }).collect()
    }

    /// Gives the event as it is sent. JSON on one line never contains a line break.
    pub fn render(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        match &self.data {
            Value::String(text) => format!("{name}data: {text}\n\n"),
            json => format!("{name}data: {json}\n\n"),
        }
    }
}

/// An event whose data was not parsed yet.
#[derive(Debug, PartialEq, Eq)]
pub struct SseText {
    pub name: Option<String>,
    pub data: String,
}

/// A reader of events from bytes in pieces of any size. It leaves out an event that is larger than any reply.
#[derive(Debug, Default)]
pub struct SseReader {
    line: Vec<u8>,
    name: Option<String>,
    data: Option<String>,
    too_large: bool,
}

impl SseReader {
    /// Gives the events that these bytes complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<SseText> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = (LARGEST_REPLY - self.line.len()).min(piece.len());
            self.too_large |= room < piece.len();
            self.line.extend_from_slice(&piece[..room]);
            if piece.ends_with(b"\n") {
                events.extend(self.end_line());
            }
        }
        events
    }

    /// Gives the event that the end of the stream cut off, if it has data.
    pub fn finish(&mut self) -> Option<SseText> {
        self.end_line().or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<SseText> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return self.end_event();
        }
        match line.split_once(':').map(|(field, value)| (field, value.strip_prefix(' ').unwrap_or(value))) {
            Some(("event", name)) => self.name = Some(name.to_owned()),
            Some(("data", more)) => match &mut self.data {
                Some(data) if data.len() + more.len() < LARGEST_REPLY => data.extend(["\n", more]),
                Some(_) => self.too_large = true,
                None => self.data = Some(more.to_owned()),
            },
            Some(_) | None => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseText> {
        let Self { name, data, too_large, .. } = std::mem::take(self);
        data.filter(|_| !too_large).map(|data| SseText { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_in_pieces_of_any_size() {
        let text =
            |name: Option<&str>, data: &str| SseText { name: name.map(str::to_owned), data: data.to_owned() };
        for (stream, expected) in [
            (
                "event: a\ndata: {\"x\": 1}\n\ndata: [DONE]\n\n",
                vec![text(Some("a"), "{\"x\": 1}"), text(None, "[DONE]")],
            ),
            (": comment\nid: 7\n\nevent: ping\n\ndata:1\ndata: 2\ndata:\n\n", vec![text(None, "1\n2\n")]),
            ("\n\n\ndata: é\n\n\n", vec![text(None, "é")]),
            // The end of the stream ends the event, and the name of one event is not that of the next.
            ("event: a\ndata: 1\n\ndata: 2\n", vec![text(Some("a"), "1"), text(None, "2")]),
            ("data: cut {", vec![text(None, "cut {")]),
            ("database: 1\ndata\n\n", vec![]),
            ("", vec![]),
        ] {
            for stream in [stream.to_owned(), stream.replace('\n', "\r\n")] {
                for size in [1, 2, 5, 100] {
                    let mut reader = SseReader::default();
                    let mut read: Vec<SseText> =
                        stream.as_bytes().chunks(size).flat_map(|chunk| reader.feed(chunk)).collect();
                    read.extend(reader.finish());
                    assert_eq!(read, expected, "{stream:?} in pieces of {size}");
                }
            }
        }
    }

    #[test]
    fn an_event_that_is_too_large_is_left_out_and_the_next_is_read() {
        let piece = vec![b'x'; LARGEST_REPLY / 2 + 8];
        for separator in ["", "\ndata: "] {
            let mut reader = SseReader::default();
            let mut read = reader.feed(b"data: ");
            for _ in 0..3 {
                read.extend(reader.feed(&piece));
                read.extend(reader.feed(separator.as_bytes()));
                assert!(reader.line.len() <= LARGEST_REPLY);
            }
            read.extend(reader.feed(b"\n\ndata: next\n\n"));
            assert_eq!(read, [SseText { name: None, data: "next".to_owned() }]);
        }
    }
}

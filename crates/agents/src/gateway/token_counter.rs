//! Counts the tokens of a reply while it passes through.

use super::LARGEST_REPLY;
use crate::llm::{ModelApi, ReplyCounts};

/// A counter of tokens that reads bytes in pieces of any size.
pub struct TokenCounter {
    api: ModelApi,
    streaming: bool,
    /// The incomplete line, or the whole body if the reply is not a stream.
    buffer: Vec<u8>,
    /// Whether more came than may be kept in memory.
    too_large: bool,
    counts: ReplyCounts,
    pub bytes: u64,
}

impl TokenCounter {
    pub fn new(api: ModelApi, streaming: bool) -> Self {
        Self {
            api,
            streaming,
            buffer: Vec::new(),
            too_large: false,
            counts: ReplyCounts::default(),
            bytes: 0,
        }
    }

    pub fn feed(&mut self, mut bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.streaming {
            while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                self.buffer_bytes(&bytes[..end]);
                self.count_line();
                bytes = &bytes[end + 1..];
            }
        }
        self.buffer_bytes(bytes);
    }

    fn buffer_bytes(&mut self, bytes: &[u8]) {
        self.too_large |= self.buffer.len() + bytes.len() > LARGEST_REPLY;
        if !self.too_large {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn count_line(&mut self) {
        let line = std::mem::take(&mut self.buffer);
        if std::mem::take(&mut self.too_large) {
            return;
        }
        // Most events contain no token counts, and need not be parsed.
        if let Some(data) = line.strip_prefix(b"data:")
            && contains(data, b"\"usage\"")
        {
            self.count_json(data);
        }
    }

    fn count_json(&mut self, json: &[u8]) {
        if let Ok(json) = serde_json::from_slice(json) {
            self.counts.add_json(self.api, &json);
        }
    }

    /// Gives the counts so far.
    pub fn finish(&mut self) -> ReplyCounts {
        if self.streaming {
            self.count_line();
        } else if !self.too_large {
            let body = std::mem::take(&mut self.buffer);
            self.count_json(&body);
        }
        std::mem::take(&mut self.counts)
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{ContentBlock, ModelReply, SseEvent, StopReason};
    use practicum_core::model::TokenUsage;

    #[test]
    fn every_api_is_counted_streaming_and_not_in_pieces_of_any_size() {
        for api in ModelApi::ALL {
            let cache_write = if api == ModelApi::AnthropicMessages { 4 } else { 0 };
            let usage = TokenUsage { input: 100, output: 20, cache_read: 3, cache_write };
            let reply = ModelReply {
                id: "r".into(),
                model: "m-1".into(),
                blocks: vec![ContentBlock::Text { text: "about \"usage\" and such".into() }],
                stop: StopReason::EndTurn,
                usage,
            };
            let stream: String =
                api.wire_format().reply_to_events(&reply).iter().map(SseEvent::render).collect();
            let body = api.wire_format().reply_to_json(&reply).to_string();
            for (streaming, text) in
                [(true, stream.clone()), (true, stream.replace('\n', "\r\n")), (false, body)]
            {
                for size in [1, 7, text.len()] {
                    let mut counter = TokenCounter::new(api, streaming);
                    text.as_bytes().chunks(size).for_each(|chunk| counter.feed(chunk));
                    let counted = counter.finish();
                    assert_eq!(counted.usage, Some(usage), "{api:?} {streaming} {size}");
                    assert_eq!(counted.model.as_deref(), Some("m-1"), "{api:?} {streaming} {size}");
                }
            }
        }
    }

    #[test]
    fn no_counts_are_not_zero() {
        for (streaming, text) in [
            (true, "data: {\"type\":\"ping\"}\n\ndata: [DONE]\n\n"),
            (true, "data: {\"usage\": null}\n\n"),
            (false, "{\"error\":{}}"),
            (false, "<html>"),
        ] {
            let mut counter = TokenCounter::new(ModelApi::OpenAiChat, streaming);
            counter.feed(text.as_bytes());
            assert_eq!(counter.finish().usage, None, "{text}");
        }
    }
}

//! Counts the tokens of a reply while it passes through.

use crate::llm::{LARGEST_REPLY, ModelApi, ReplyCounts, SseReader};

/// A counter of tokens that reads bytes in pieces of any size.
pub struct TokenCounter {
    api: ModelApi,
    streaming: bool,
    events: SseReader,
    /// The body so far, if the reply is not a stream; `None` if it is larger than may be kept in memory.
    body: Option<Vec<u8>>,
    counts: ReplyCounts,
    pub bytes: u64,
}

impl TokenCounter {
    pub fn new(api: ModelApi, streaming: bool) -> Self {
        let (events, counts) = Default::default();
        Self { api, streaming, events, body: Some(Vec::new()), counts, bytes: 0 }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.streaming {
            self.events.feed(bytes).iter().for_each(|event| self.count_event(&event.data));
        } else if self.bytes > LARGEST_REPLY as u64 {
            self.body = None;
        } else if let Some(body) = &mut self.body {
            body.extend_from_slice(bytes);
        }
    }

    fn count_event(&mut self, data: &str) {
        // Most events contain no token counts, and need not be parsed.
        if data.contains("\"usage\"") || data.contains("\"usageMetadata\"") {
            self.count_json(data.as_bytes());
        }
    }

    fn count_json(&mut self, json: &[u8]) {
        if let Ok(json) = serde_json::from_slice(json) {
            self.counts.add_json(self.api, &json);
        }
    }

    /// Gives the counts so far.
    pub fn finish(&mut self) -> ReplyCounts {
        if let Some(event) = self.events.finish() {
            self.count_event(&event.data);
        }
        let body = self.body.take().unwrap_or_default();
        self.count_json(&body);
        std::mem::take(&mut self.counts)
    }
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

//! Passes requests on, and records requests and responses on a cassette.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderMap;
use futures_util::{StreamExt, stream};

use super::cassette::{
    CassetteError, CassetteExchange, CassetteLine, RecordedBody, RecordedResponse, RequestPart,
    SCHEMA_VERSION, join_text_pieces,
};
use super::normalise::{self, PathPlaceholders, map_texts};
use super::{
    AnswerForm, AnswerFuture, AuxiliaryCall, AuxiliaryFuture, GatewayCall, PassedResponse, Responder,
    Upstream,
};
use crate::llm::{LARGEST_REPLY, ModelRequest, SseEvent};
use practicum_core::model::Digest;

/// A function that removes secrets from a text.
pub type SecretScrubber = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The response headers that agents may use.
const RECORDED_HEADERS: [&str; 6] =
    ["content-type", "retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id"];

/// A responder that asks the real model and records its answers in a cassette.
pub struct CassetteRecorder {
    upstream: Upstream,
    writer: Arc<CassetteWriter>,
}

/// The cassette's file. Each line is written with one call, so a kill leaves whole lines.
struct CassetteWriter {
    file: Mutex<CassetteFile>,
    scrub: SecretScrubber,
}

struct CassetteFile {
    file: File,
    texts: HashSet<Digest>,
    failed: bool,
}

impl CassetteRecorder {
    /// Creates a new file. An existing one is not overwritten, because recording it may have cost money.
    pub fn create(path: &Path, upstream: Upstream, scrub: SecretScrubber) -> Result<Self, CassetteError> {
        let error = CassetteError::for_path(path);
        let file = File::create_new(path).map_err(|problem| error(problem.to_string()))?;
        let secrets: Vec<String> =
            upstream.secrets().into_iter().filter(|secret| !secret.is_empty()).collect();
        let scrub: SecretScrubber = Arc::new(move |text| {
            secrets.iter().fold(scrub(text), |text, secret| text.replace(secret, "[secret]"))
        });
        let written = CassetteFile { file, texts: HashSet::new(), failed: false };
        let tape = CassetteWriter { file: Mutex::new(written), scrub };
        let first = CassetteLine::Cassette {
            schema_version: SCHEMA_VERSION,
            practicum: env!("CARGO_PKG_VERSION").to_owned(),
            recorded: jiff::Timestamp::now().to_string(),
        };
        tape.write_line(Vec::new(), &first).map_err(|problem| error(problem.to_string()))?;
        Ok(Self { upstream, writer: Arc::new(tape) })
    }
}

impl Responder for CassetteRecorder {
    fn answer<'a>(&'a self, call: GatewayCall<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            match self.upstream.forward(&call).await {
                // There was no response to record. If the agent asks again, that request is recorded.
                Err(refusal) => AnswerForm::Refused(refusal).into(),
                Ok(passed) => AnswerForm::PassedThrough(self.record_response(&call, passed)).into(),
            }
        })
    }

    fn answer_auxiliary<'a>(&'a self, aside: AuxiliaryCall<'a>) -> AuxiliaryFuture<'a> {
        Box::pin(async move { Some(self.upstream.forward_auxiliary(&aside).await) })
    }

    fn closing_note(&self, _scope: &super::ScopeAccount) -> Option<String> {
        let failed = self.writer.file.lock().unwrap_or_else(PoisonError::into_inner).failed;
        failed.then(|| "the cassette could not be written; it is not complete".to_owned())
    }
}

impl CassetteRecorder {
    fn record_response(&self, call: &GatewayCall<'_>, passed: PassedResponse) -> PassedResponse {
        let PassedResponse { status, headers, body } = passed;
        let listener = ExchangeRecorder {
            writer: Arc::clone(&self.writer),
            placeholders: PathPlaceholders::new(&call.scope.vars),
            request: call.request.clone(),
            exchange: CassetteExchange {
                trial: call.scope.name.clone(),
                kind: call.scope.kind,
                number: call.number,
                api: call.api,
                digest: Digest::of_bytes(b""),
                request: Vec::new(),
                response: RecordedResponse {
                    status,
                    headers: recorded_headers(&headers),
                    body: RecordedBody::Text(String::new()),
                    cut: true,
                },
            },
            received: Vec::new(),
            too_large: false,
        };
        let body = stream::unfold(Some((body, listener)), |state| async move {
            let (mut body, mut listener) = state?;
            match body.next().await {
                None => {
                    listener.exchange.response.cut = false;
                    None
                }
                Some(Ok(chunk)) => {
                    listener.receive_chunk(&chunk);
                    Some((Ok(chunk), Some((body, listener))))
                }
                Some(Err(error)) => Some((Err(error), None)),
            }
        });
        PassedResponse { status, headers, body: Box::pin(body) }
    }
}

fn recorded_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    RECORDED_HEADERS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned())))
        .collect()
}

/// The recorder of one exchange. It writes the exchange after the last byte, or when the agent no longer listens.
struct ExchangeRecorder {
    writer: Arc<CassetteWriter>,
    placeholders: PathPlaceholders,
    request: ModelRequest,
    exchange: CassetteExchange,
    received: Vec<u8>,
    too_large: bool,
}

impl ExchangeRecorder {
    fn receive_chunk(&mut self, chunk: &Bytes) {
        self.too_large |= self.received.len() + chunk.len() > LARGEST_REPLY;
        if !self.too_large {
            self.received.extend_from_slice(chunk);
        }
    }

    fn recorded_body(&self) -> RecordedBody {
        let hide = |text: &str| self.placeholders.insert_placeholders(&(self.writer.scrub)(text));
        if self.too_large {
            return RecordedBody::Withheld("it was too large".to_owned());
        }
        let Ok(text) = std::str::from_utf8(&self.received) else {
            return RecordedBody::Withheld("it was no text".to_owned());
        };
        let kind = self.exchange.response.headers.get("content-type").map_or("", String::as_str);
        if kind.starts_with("text/event-stream") {
            let mut events = join_text_pieces(SseEvent::read_all(text.as_bytes()));
            events.iter_mut().for_each(|event| map_texts(&mut event.data, &hide));
            return RecordedBody::Events(events);
        }
        match serde_json::from_str(text) {
            Ok(mut json) => {
                map_texts(&mut json, &hide);
                RecordedBody::Json(json)
            }
            Err(_) => RecordedBody::Text(hide(text)),
        }
    }
}

impl Drop for ExchangeRecorder {
    fn drop(&mut self) {
        let scrub = Arc::clone(&self.writer.scrub);
        let parts = normalise::request_parts(&self.request, &self.placeholders, &|text| scrub(text));
        let (digest, request) = digest_parts(&parts);
        self.exchange.digest = digest;
        self.exchange.request = request;
        self.exchange.response.body = self.recorded_body();
        let texts = parts.into_iter().map(|(_, text)| text).collect();
        // If writing fails, `closing_note` reports it.
        let _ = self.writer.write_line(texts, &CassetteLine::Exchange(self.exchange.clone()));
    }
}

/// Gives the digest of the whole request, and those of its parts.
pub fn digest_parts(parts: &[(String, String)]) -> (Digest, Vec<RequestPart>) {
    let whole = Digest::of_parts(parts.iter().flat_map(|(at, text)| [at.as_bytes(), text.as_bytes()]));
    let each = parts
        .iter()
        .map(|(at, text)| RequestPart { at: at.clone(), digest: Digest::of_bytes(text.as_bytes()) });
    (whole, each.collect())
}

impl CassetteWriter {
    fn write_line(&self, texts: Vec<String>, line: &CassetteLine) -> std::io::Result<()> {
        let mut written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = String::new();
        for text in texts {
            let digest = Digest::of_bytes(text.as_bytes());
            if written.texts.insert(digest.clone()) {
                bytes.push_str(&serde_json::to_string(&CassetteLine::Text { digest, text })?);
                bytes.push('\n');
            }
        }
        // The whole line is scrubbed again, because names of fields could also contain a secret.
        bytes.push_str(&(self.scrub)(&serde_json::to_string(line)?));
        bytes.push('\n');
        let result = written.file.write_all(bytes.as_bytes());
        written.failed |= result.is_err();
        result
    }
}

//! Passes requests on, and writes what was asked and answered onto a cassette.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderMap;
use futures_util::{StreamExt, stream};

use super::cassette::{Body, CassetteError, Exchange, Line, Part, Response, SCHEMA_VERSION, events, joined};
use super::normal::{self, Places, each_text};
use super::{Answer, Answering, Aside, Asides, Call, Delivery, LARGEST_REPLY, Passed, Upstream};
use crate::llm::Request;
use practicum_core::model::Digest;

/// Takes secrets out of a text.
pub type Scrub = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What of a response's headers an agent may go by.
const KEPT: [&str; 6] =
    ["content-type", "retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id"];

pub struct Record {
    upstream: Upstream,
    tape: Arc<Tape>,
}

/// The file that is written. A line is written with one call, so a kill leaves whole lines.
struct Tape {
    file: Mutex<Written>,
    scrub: Scrub,
}

struct Written {
    file: File,
    texts: HashSet<Digest>,
    failed: bool,
}

impl Record {
    /// Onto a new file: what was recorded with real money is not overwritten.
    pub fn create(path: &Path, upstream: Upstream, scrub: Scrub) -> Result<Self, CassetteError> {
        let error = CassetteError::at(path);
        let file = File::create_new(path).map_err(|problem| error(problem.to_string()))?;
        let secrets: Vec<String> =
            upstream.secrets().into_iter().filter(|secret| !secret.is_empty()).collect();
        let scrub: Scrub = Arc::new(move |text| {
            secrets.iter().fold(scrub(text), |text, secret| text.replace(secret, "[secret]"))
        });
        let written = Written { file, texts: HashSet::new(), failed: false };
        let tape = Tape { file: Mutex::new(written), scrub };
        let first = Line::Cassette {
            schema_version: SCHEMA_VERSION,
            practicum: env!("CARGO_PKG_VERSION").to_owned(),
            recorded: jiff::Timestamp::now().to_string(),
        };
        tape.write(Vec::new(), &first).map_err(|problem| error(problem.to_string()))?;
        Ok(Self { upstream, tape: Arc::new(tape) })
    }
}

impl Answer for Record {
    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a> {
        Box::pin(async move {
            match self.upstream.forward(&call).await {
                // Nobody answered, so there is nothing to keep; if the agent asks again, that is kept.
                Err(refusal) => Delivery::Refused(refusal).into(),
                Ok(passed) => Delivery::Passed(self.listen(&call, passed)).into(),
            }
        })
    }

    fn aside<'a>(&'a self, aside: Aside<'a>) -> Asides<'a> {
        Box::pin(async move { Some(self.upstream.forward_aside(&aside).await) })
    }

    fn left_over(&self, _scope: &super::TrialScope) -> Option<String> {
        let failed = self.tape.file.lock().unwrap_or_else(PoisonError::into_inner).failed;
        failed.then(|| "the cassette could not be written; it is not complete".to_owned())
    }
}

impl Record {
    fn listen(&self, call: &Call<'_>, passed: Passed) -> Passed {
        let Passed { status, headers, body } = passed;
        let listener = Listener {
            tape: Arc::clone(&self.tape),
            places: Places::new(&call.scope.vars),
            request: call.request.clone(),
            exchange: Exchange {
                trial: call.scope.name.clone(),
                kind: call.scope.kind,
                number: call.number,
                api: call.api,
                digest: Digest::of(b""),
                request: Vec::new(),
                response: Response {
                    status,
                    headers: kept(&headers),
                    body: Body::Text(String::new()),
                    cut: true,
                },
            },
            heard: Vec::new(),
            too_much: false,
        };
        let body = stream::unfold(Some((body, listener)), |state| async move {
            let (mut body, mut listener) = state?;
            match body.next().await {
                None => {
                    listener.exchange.response.cut = false;
                    None
                }
                Some(Ok(chunk)) => {
                    listener.hear(&chunk);
                    Some((Ok(chunk), Some((body, listener))))
                }
                Some(Err(error)) => Some((Err(error), None)),
            }
        });
        Passed { status, headers, body: Box::pin(body) }
    }
}

fn kept(headers: &HeaderMap) -> BTreeMap<String, String> {
    KEPT.iter()
        .filter_map(|name| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned())))
        .collect()
}

/// One exchange, until its last byte was heard or nobody listens any more. Then it is written.
struct Listener {
    tape: Arc<Tape>,
    places: Places,
    request: Request,
    exchange: Exchange,
    heard: Vec<u8>,
    too_much: bool,
}

impl Listener {
    fn hear(&mut self, chunk: &Bytes) {
        self.too_much |= self.heard.len() + chunk.len() > LARGEST_REPLY;
        if !self.too_much {
            self.heard.extend_from_slice(chunk);
        }
    }

    fn body(&self) -> Body {
        let hide = |text: &str| self.places.hide(&(self.tape.scrub)(text));
        if self.too_much {
            return Body::Withheld("it was too large".to_owned());
        }
        let Ok(text) = std::str::from_utf8(&self.heard) else {
            return Body::Withheld("it was no text".to_owned());
        };
        let kind = self.exchange.response.headers.get("content-type").map_or("", String::as_str);
        if kind.starts_with("text/event-stream") {
            let mut events = joined(events(text));
            events.iter_mut().for_each(|event| each_text(&mut event.data, &hide));
            return Body::Events(events);
        }
        match serde_json::from_str(text) {
            Ok(mut json) => {
                each_text(&mut json, &hide);
                Body::Json(json)
            }
            Err(_) => Body::Text(hide(text)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let scrub = Arc::clone(&self.tape.scrub);
        let parts = normal::parts(&self.request, &self.places, &|text| scrub(text));
        let (digest, request) = digests(&parts);
        self.exchange.digest = digest;
        self.exchange.request = request;
        self.exchange.response.body = self.body();
        let texts = parts.into_iter().map(|(_, text)| text).collect();
        // Where it failed, `left_over` says so.
        let _ = self.tape.write(texts, &Line::Exchange(self.exchange.clone()));
    }
}

/// The digests of a request's parts, and of the whole.
pub fn digests(parts: &[(String, String)]) -> (Digest, Vec<Part>) {
    let whole = Digest::of_parts(parts.iter().flat_map(|(at, text)| [at.as_bytes(), text.as_bytes()]));
    let each = parts.iter().map(|(at, text)| Part { at: at.clone(), digest: Digest::of(text.as_bytes()) });
    (whole, each.collect())
}

impl Tape {
    fn write(&self, texts: Vec<String>, line: &Line) -> std::io::Result<()> {
        let mut written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = String::new();
        for text in texts {
            let digest = Digest::of(text.as_bytes());
            if written.texts.insert(digest.clone()) {
                bytes.push_str(&serde_json::to_string(&Line::Text { digest, text })?);
                bytes.push('\n');
            }
        }
        // Once more over the whole line: names of fields are no texts, and could hold one too.
        bytes.push_str(&(self.scrub)(&serde_json::to_string(line)?));
        bytes.push('\n');
        let result = written.file.write_all(bytes.as_bytes());
        written.failed |= result.is_err();
        result
    }
}

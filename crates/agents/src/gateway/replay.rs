//! Answers from a cassette, and reports requests that differ from the recorded ones.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use futures_util::stream;

use super::cassette::{Cassette, CassetteExchange, RecordedBody, RecordedResponse, RequestPart};
use super::normalise::{self, PathPlaceholders, map_texts};
use super::record::{SecretScrubber, digest_parts};
use super::{
    AnswerForm, AnswerFuture, GatewayCall, GatewayHalt, GatewayRefusal, PassedResponse, Responder,
    ScopeAccount, ScopeKind,
};
use crate::llm::SseEvent;
use practicum_core::model::Digest;

/// The number of characters that are shown before and after a difference.
const SHOWN_BEFORE_DIFFERENCE: usize = 30;
const SHOWN_AFTER_DIFFERENCE: usize = 50;

/// A responder that answers from a cassette.
pub struct CassetteReplay {
    texts: HashMap<Digest, String>,
    exchanges_by_scope: Mutex<BTreeMap<(ScopeKind, String), Vec<ReplayableExchange>>>,
    scrub: SecretScrubber,
}

struct ReplayableExchange {
    exchange: CassetteExchange,
    used: bool,
}

impl CassetteReplay {
    pub fn new(cassette: Cassette, scrub: SecretScrubber) -> Self {
        let mut tapes: BTreeMap<_, Vec<ReplayableExchange>> = BTreeMap::new();
        for exchange in cassette.exchanges {
            let of = tapes.entry((exchange.kind, exchange.trial.clone())).or_default();
            of.push(ReplayableExchange { exchange, used: false });
        }
        for tape in tapes.values_mut() {
            tape.sort_by_key(|taped| taped.exchange.number);
        }
        Self { texts: cassette.texts, exchanges_by_scope: Mutex::new(tapes), scrub }
    }

    /// Finds the recorded response. The error says how the request differs.
    fn find_response(
        &self,
        call: &GatewayCall<'_>,
        places: &PathPlaceholders,
    ) -> Result<RecordedResponse, String> {
        let parts = normalise::request_parts(call.request, places, &|text| (self.scrub)(text));
        let (digest, _) = digest_parts(&parts);
        let mut tapes = self.exchanges_by_scope.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tape) = tapes.get_mut(&(call.scope.kind, call.scope.name.clone())) else {
            return Err("the cassette has nothing of this trial".to_owned());
        };
        // Requests that were open at the same time may come in another order, so a request is found by its digest.
        let same = |taped: &&mut ReplayableExchange| !taped.used && taped.exchange.digest == digest;
        if let Some(taped) = tape.iter_mut().find(same) {
            taped.used = true;
            return Ok(taped.exchange.response.clone());
        }
        let unused = || tape.iter().filter(|taped| !taped.used);
        let meant = unused().find(|taped| taped.exchange.number == call.number).or_else(|| unused().next());
        match meant {
            Some(taped) => {
                let difference = self.describe_difference(&taped.exchange.request, &parts);
                Err(format!(
                    "request {} is not the one on the cassette (there it is {}): {difference}",
                    call.number, taped.exchange.number
                ))
            }
            None => Err(format!(
                "request {} is not on the cassette: all {} of this trial were answered",
                call.number,
                tape.len()
            )),
        }
    }

    /// Describes the first difference.
    fn describe_difference(&self, recorded: &[RequestPart], now: &[(String, String)]) -> String {
        for (was, (at, text)) in recorded.iter().zip(now) {
            if was.at != *at {
                return format!("it has {at} in place of {}", was.at);
            }
            if was.digest != Digest::of_bytes(text.as_bytes()) {
                let was = self.texts.get(&was.digest).map_or("", String::as_str);
                let (was, is) = texts_around_difference(was, text);
                return format!("{at} differs: it was {was:?} and is {is:?}");
            }
        }
        match (recorded.get(now.len()), now.get(recorded.len())) {
            (Some(was), _) => format!("{} is missing", was.at),
            (None, Some((at, _))) => format!("{at} is new"),
            (None, None) => "its parts are the same, in another order".to_owned(),
        }
    }
}

/// Gives both texts around the place where they begin to differ.
fn texts_around_difference(was: &str, is: &str) -> (String, String) {
    let same = was.chars().zip(is.chars()).take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(SHOWN_BEFORE_DIFFERENCE);
    let cut =
        |text: &str| text.chars().skip(from).take(SHOWN_BEFORE_DIFFERENCE + SHOWN_AFTER_DIFFERENCE).collect();
    (cut(was), cut(is))
}

impl Responder for CassetteReplay {
    fn answer<'a>(&'a self, call: GatewayCall<'a>) -> AnswerFuture<'a> {
        let places = PathPlaceholders::new(&call.scope.vars);
        let found =
            self.find_response(&call, &places).and_then(|response| replay_response(response, &places));
        let form = match found {
            Ok(passed) => AnswerForm::PassedThrough(passed),
            Err(problem) => {
                call.scope.record_halt(GatewayHalt::Unanswered(problem.clone()));
                AnswerForm::Refused(GatewayRefusal::with_status(409, problem).without_retry())
            }
        };
        Box::pin(std::future::ready(form.into()))
    }

    fn closing_note(&self, scope: &ScopeAccount) -> Option<String> {
        let tapes = self.exchanges_by_scope.lock().unwrap_or_else(PoisonError::into_inner);
        let tape = tapes.get(&(scope.kind, scope.name.clone()))?;
        let left = tape.iter().filter(|taped| !taped.used).count();
        (left > 0).then(|| format!("{left} of {} recorded requests were not asked this time", tape.len()))
    }
}

fn replay_response(response: RecordedResponse, places: &PathPlaceholders) -> Result<PassedResponse, String> {
    let show = |text: &str| places.restore_paths(text);
    let mut pieces = match response.body {
        RecordedBody::Events(mut events) => {
            events.iter_mut().for_each(|event| map_texts(&mut event.data, &show));
            events.iter().map(SseEvent::render).collect()
        }
        RecordedBody::Json(mut json) => {
            map_texts(&mut json, &show);
            vec![json.to_string()]
        }
        RecordedBody::Text(text) => vec![show(&text)],
        RecordedBody::Withheld(why) => return Err(format!("the reply is not on the cassette: {why}")),
    }
    .into_iter()
    .map(|piece: String| Ok(Bytes::from(piece)))
    .collect::<Vec<io::Result<Bytes>>>();
    if response.cut {
        pieces.push(Err(io::ErrorKind::ConnectionAborted.into()));
    }
    let headers: HeaderMap = response
        .headers
        .iter()
        .filter_map(|(name, value)| {
            Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
        })
        .collect();
    Ok(PassedResponse { status: response.status, headers, body: Box::pin(stream::iter(pieces)) })
}

//! Answers from a cassette, and says so where a request is not the one that was recorded.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use futures_util::stream;

use super::cassette::{Body, Cassette, Event, Exchange, Part, Response};
use super::normal::{self, Places, each_text};
use super::record::{Scrub, digests};
use super::{Answer, Answering, Call, Delivery, Halt, Passed, Refusal, ScopeKind, TrialScope};
use practicum_core::model::Digest;

/// How much of a difference is shown, on each side of it.
const BEFORE: usize = 30;
const AFTER: usize = 50;

pub struct Replay {
    texts: HashMap<Digest, String>,
    tapes: Mutex<BTreeMap<(ScopeKind, String), Vec<Taped>>>,
    scrub: Scrub,
}

struct Taped {
    exchange: Exchange,
    used: bool,
}

impl Replay {
    pub fn new(cassette: Cassette, scrub: Scrub) -> Self {
        let mut tapes: BTreeMap<_, Vec<Taped>> = BTreeMap::new();
        for exchange in cassette.exchanges {
            let of = tapes.entry((exchange.kind, exchange.trial.clone())).or_default();
            of.push(Taped { exchange, used: false });
        }
        for tape in tapes.values_mut() {
            tape.sort_by_key(|taped| taped.exchange.number);
        }
        Self { texts: cassette.texts, tapes: Mutex::new(tapes), scrub }
    }

    /// The recorded response, or what is wrong with the request.
    fn find(&self, call: &Call<'_>, places: &Places) -> Result<Response, String> {
        let parts = normal::parts(call.request, places, &|text| (self.scrub)(text));
        let (digest, _) = digests(&parts);
        let mut tapes = self.tapes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tape) = tapes.get_mut(&(call.scope.kind, call.scope.name.clone())) else {
            return Err("the cassette has nothing of this trial".to_owned());
        };
        // Requests that were open at once may come in another order; the same request is the same.
        let same = |taped: &&mut Taped| !taped.used && taped.exchange.digest == digest;
        if let Some(taped) = tape.iter_mut().find(same) {
            taped.used = true;
            return Ok(taped.exchange.response.clone());
        }
        let unused = || tape.iter().filter(|taped| !taped.used);
        let meant = unused().find(|taped| taped.exchange.number == call.number).or_else(|| unused().next());
        match meant {
            Some(taped) => {
                let difference = self.difference(&taped.exchange.request, &parts);
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

    /// What differs first, in words.
    fn difference(&self, recorded: &[Part], now: &[(String, String)]) -> String {
        for (was, (at, text)) in recorded.iter().zip(now) {
            if was.at != *at {
                return format!("{at} stands where {} stood", was.at);
            }
            if was.digest != Digest::of(text.as_bytes()) {
                let was = self.texts.get(&was.digest).map_or("", String::as_str);
                let (was, is) = around_difference(was, text);
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

/// Both texts around the place where they part.
fn around_difference(was: &str, is: &str) -> (String, String) {
    let same = was.chars().zip(is.chars()).take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(BEFORE);
    let cut = |text: &str| text.chars().skip(from).take(BEFORE + AFTER).collect();
    (cut(was), cut(is))
}

impl Answer for Replay {
    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a> {
        let places = Places::new(&call.scope.vars);
        let found = self.find(&call, &places).and_then(|response| played(response, &places));
        let delivery = match found {
            Ok(passed) => Delivery::Passed(passed),
            Err(problem) => {
                call.scope.halt(Halt::Unanswered(problem.clone()));
                Delivery::Refused(Refusal::with_status(409, problem).for_good())
            }
        };
        Box::pin(std::future::ready(delivery.into()))
    }

    fn left_over(&self, scope: &TrialScope) -> Option<String> {
        let tapes = self.tapes.lock().unwrap_or_else(PoisonError::into_inner);
        let tape = tapes.get(&(scope.kind, scope.name.clone()))?;
        let left = tape.iter().filter(|taped| !taped.used).count();
        (left > 0).then(|| format!("{left} of {} recorded requests were not asked this time", tape.len()))
    }
}

fn played(response: Response, places: &Places) -> Result<Passed, String> {
    let show = |text: &str| places.show(text);
    let mut pieces = match response.body {
        Body::Events(mut events) => {
            events.iter_mut().for_each(|event| each_text(&mut event.data, &show));
            events.iter().map(Event::render).collect()
        }
        Body::Json(mut json) => {
            each_text(&mut json, &show);
            vec![json.to_string()]
        }
        Body::Text(text) => vec![show(&text)],
        Body::Withheld(why) => return Err(format!("the reply is not on the cassette: {why}")),
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
    Ok(Passed { status: response.status, headers, body: Box::pin(stream::iter(pieces)) })
}

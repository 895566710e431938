//! Sends traces to a receiver of OpenTelemetry's protocol over HTTP.

use std::time::Duration;

use practicum_agents::llm::{HttpAddress, describe_error};
use serde_json::Value;

use super::protobuf::{encode_request, rejected_spans};

/// The longest time for one request.
const REQUEST_TIME: Duration = Duration::from_secs(60);
/// The most bytes of an answer that are read.
const LONGEST_ANSWER: usize = 16 * 1024;
/// The most characters of an answer that are shown.
const LONGEST_SHOWN: usize = 300;
/// The path of a receiver for traces, below the address that its user knows.
const TRACES_PATH: &str = "/v1/traces";

/// A receiver of traces.
pub struct TraceReceiver {
    address: HttpAddress,
    headers: Vec<(String, String)>,
}

impl TraceReceiver {
    /// Makes a receiver. An address without a path gets the usual one. `headers` are further headers of each request, as
    /// OpenTelemetry's variable `OTEL_EXPORTER_OTLP_HEADERS` has them: `name=value,name=value`.
    pub fn new(address: &str, headers: Option<&str>) -> Result<Self, String> {
        let mut address = HttpAddress::parse(address)?;
        if address.has_no_path() {
            address =
                HttpAddress::parse(&format!("{}{TRACES_PATH}", address.as_str().trim_end_matches('/')))?;
        }
        let pairs = headers.unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty());
        let decode =
            |text: &str| percent_encoding::percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
        let headers: Option<Vec<(String, String)>> = pairs
            .map(|pair| pair.split_once('=').map(|(name, value)| (name.trim().to_owned(), decode(value))))
            .collect();
        let headers = headers.ok_or("OTEL_EXPORTER_OTLP_HEADERS is not of the form name=value,name=value")?;
        Ok(Self { address, headers })
    }

    /// Gives the full address of the receiver.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Sends one request, which is given in its JSON form. The error says in words what went wrong.
    pub async fn send(&self, request: &Value) -> Result<(), String> {
        let client = self.address.http_client().map_err(|error| error.to_string())?;
        let mut post = client
            .post(self.address.as_str())
            .timeout(REQUEST_TIME)
            .header("content-type", "application/x-protobuf")
            .body(encode_request(request));
        for (name, value) in &self.headers {
            post = post.header(name, value);
        }
        let mut answer = post.send().await.map_err(|error| describe_error(&error.without_url()))?;
        let status = answer.status();
        let mut body = Vec::new();
        while body.len() < LONGEST_ANSWER {
            match answer.chunk().await.map_err(|error| describe_error(&error.without_url()))? {
                Some(part) => body.extend_from_slice(&part),
                None => break,
            }
        }
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).trim().chars().take(LONGEST_SHOWN).collect();
            return Err(format!("it answered with {status}: {said}").trim_end_matches([':', ' ']).to_owned());
        }
        match rejected_spans(&body) {
            0 => Ok(()),
            count => Err(format!("it refused {count} of the spans")),
        }
    }
}

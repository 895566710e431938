//! Sends requests to a model, with a limited number of retries.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;

use super::retry::{ApiRetries, ApiRetryPolicy, FailedAttempt, RateLimitGate, RetryAdvice};
use super::{Endpoint, ModelApi, ModelReply, ModelRequest};

/// The largest answer to a question of this program. Judges write a few thousand characters.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

/// The longest part of a failure's body that a message shows.
const LONGEST_MESSAGE: usize = 500;

/// An error: a model gave no usable answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LlmError {
    #[error("rate limited by the model API{}", describe_retry_after(.retry_after))]
    RateLimited { retry_after: Option<Duration> },
    #[error("the model API refused the login: {0}")]
    Auth(String),
    #[error("the model API failed with status {status}: {message}")]
    Api { status: u16, message: String },
    #[error("the model API cannot be reached: {0}")]
    Network(String),
    #[error("the model API sent an answer that cannot be read: {0}")]
    Malformed(String),
}

fn describe_retry_after(retry_after: &Option<Duration>) -> String {
    retry_after.map(|wait| format!("; try again in {} s", wait.as_secs())).unwrap_or_default()
}

/// A client of one endpoint, without streaming.
#[derive(Debug, Clone)]
pub struct ModelClient {
    endpoint: Endpoint,
    http: reqwest::Client,
    retries: ApiRetries,
    timeout: Duration,
}

impl ModelClient {
    pub fn new(endpoint: Endpoint) -> Result<Self, LlmError> {
        let http = endpoint.http_client()?;
        Ok(Self { endpoint, http, retries: ApiRetries::default(), timeout: Duration::from_secs(600) })
    }

    #[must_use]
    pub fn with_retry_policy(mut self, retry: ApiRetryPolicy) -> Self {
        self.retries.policy = retry;
        self
    }

    /// Shares a gate: when one client is rate limited, all clients that share the gate wait.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<RateLimitGate>) -> Self {
        self.retries.gate = gate;
        self
    }

    /// Sets the time limit of one attempt, from connecting to the last byte.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub async fn send(&self, request: &ModelRequest) -> Result<ModelReply, LlmError> {
        let mut json = self.endpoint.api.wire_format().request_to_json(request);
        if let Some(fields) = json.as_object_mut() {
            fields.retain(|key, _| key != "stream" && key != "stream_options");
        }
        let body = json.to_string();
        let mut tries = self.retries.start_attempts();
        loop {
            tries.wait_for_next().await;
            match self.send_once(&body).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => tries.record_failure(failed)?,
            }
        }
    }

    async fn send_once(&self, body: &str) -> Result<ModelReply, FailedAttempt> {
        let url = self.endpoint.url().map_err(FailedAttempt::permanent)?;
        let headers = self.headers().map_err(FailedAttempt::permanent)?;
        let sent =
            self.http.post(url).headers(headers).body(body.to_owned()).timeout(self.timeout).send().await;
        let mut response = sent.map_err(|error| self.connection_failure(error))?;
        let status = response.status().as_u16();
        let asked = requested_wait(response.headers());
        let too_large = || FailedAttempt::permanent(LlmError::Malformed("the reply is too large".to_owned()));
        if response.content_length().is_some_and(|length| length > LARGEST_ANSWER as u64) {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.connection_failure(error))? {
            if bytes.len() + chunk.len() > LARGEST_ANSWER {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        if !(200..300).contains(&status) {
            return Err(self.status_failure(status, asked, &bytes));
        }
        let malformed = |what: String| FailedAttempt::permanent(LlmError::Malformed(what));
        let json: Value = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        self.endpoint.api.wire_format().reply_from_json(&json).map_err(|problem| malformed(problem.0))
    }

    fn headers(&self) -> Result<HeaderMap, LlmError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.endpoint.api {
            ModelApi::AnthropicMessages => {
                headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
            }
            ModelApi::OpenAiResponses | ModelApi::OpenAiChat | ModelApi::Gemini => {}
        }
        self.endpoint.add_credential(&mut headers)?;
        Ok(headers)
    }

    /// Makes the same client for another address.
    pub fn with_base_url(&self, base_url: String) -> Self {
        let endpoint = Endpoint { base_url, ..self.endpoint.clone() };
        Self { endpoint, ..self.clone() }
    }

    fn connection_failure(&self, error: reqwest::Error) -> FailedAttempt {
        let again = if error.is_timeout() || error.is_builder() {
            RetryAdvice::Never
        } else {
            RetryAdvice::WithBackoff
        };
        let what = if error.is_timeout() {
            format!("no answer within {} s", self.timeout.as_secs())
        } else {
            describe_error(&error.without_url())
        };
        FailedAttempt { error: LlmError::Network(what), retry: again }
    }

    fn status_failure(&self, status: u16, asked: Option<Duration>, body: &[u8]) -> FailedAttempt {
        let message = self.remove_key(error_message(body));
        let soon = asked.map_or(RetryAdvice::WithBackoff, RetryAdvice::After);
        match status {
            429 => FailedAttempt { error: LlmError::RateLimited { retry_after: asked }, retry: soon },
            401 | 403 => FailedAttempt::permanent(LlmError::Auth(message)),
            500 | 502 | 503 | 504 | 529 => {
                FailedAttempt { error: LlmError::Api { status, message }, retry: soon }
            }
            _ => FailedAttempt::permanent(LlmError::Api { status, message }),
        }
    }

    /// Removes the key from a message, because some servers repeat the key they refuse.
    fn remove_key(&self, message: String) -> String {
        match &self.endpoint.credential {
            Some(credential) if !credential.secret().reveal().is_empty() => {
                message.replace(credential.secret().reveal(), "***")
            }
            Some(_) | None => message,
        }
    }
}

/// Describes an error with all its causes. The last cause is the one on which a person can act.
pub fn describe_error(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = format!("{words}: {inner}");
        cause = inner.source();
    }
    words
}

fn error_message(body: &[u8]) -> String {
    let said = serde_json::from_slice::<Value>(body).ok().and_then(|json| {
        let error = json.get("error")?;
        error.get("message").unwrap_or(error).as_str().map(str::to_owned)
    });
    let whole = said.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    whole.chars().take(LONGEST_MESSAGE).collect()
}

/// Reads how long the API asks to wait. `retry-after` is seconds or a date; `retry-after-ms` is more exact, if
/// present.
fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    let get = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(ms) = get("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let text = get("retry-after")?;
    match number(text) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            let when = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
            Some(Duration::try_from(when.duration_since(jiff::Timestamp::now())).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChatMessage, Credential, Secret};
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const FINE: &str =
        r#"{"id":"m","model":"x","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;

    /// Starts a server that gives each connection the next of these answers, and returns the requests.
    async fn serve(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            let mut seen = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut request = Vec::new();
                // Every request here ends with the brace of its JSON.
                while !request.ends_with(b"}") {
                    let read = stream.read_buf(&mut request).await.expect("a request");
                    assert!(read > 0, "the request broke off");
                }
                seen.push(String::from_utf8_lossy(&request).into_owned());
                stream.write_all(answer.as_bytes()).await.expect("written");
            }
            seen
        });
        (address, task)
    }

    fn answer(status: u16, headers: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")
    }

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            system: None,
            messages: vec![ChatMessage::user("hello")],
            tools: Vec::new(),
            tool_choice: None,
            max_tokens: None,
            temperature: None,
            stream: true,
        }
    }

    async fn ask(answers: Vec<String>) -> (Result<ModelReply, LlmError>, Vec<String>) {
        let (base_url, server) = serve(answers).await;
        let endpoint = Endpoint {
            api: ModelApi::AnthropicMessages,
            base_url,
            credential: Some(Credential::ApiKey(Secret::new("sk-secret"))),
        };
        let retry = ApiRetryPolicy {
            max_attempts: 3,
            first_wait: Duration::from_millis(5),
            longest_wait: Duration::from_millis(200),
        };
        let client = ModelClient::new(endpoint).expect("a client").with_retry_policy(retry);
        let result = client.send(&request()).await;
        let seen = tokio::time::timeout(Duration::from_secs(5), server).await;
        (result, seen.expect("every answer was fetched").expect("no panic"))
    }

    #[tokio::test]
    async fn an_answer_of_more_than_4_mb_is_refused() {
        let padded = |length: usize| format!("{}{FINE}", " ".repeat(length - FINE.len()));
        // An answer in parts does not say its length in advance.
        let in_parts = |body: &str| {
            format!(
                "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            )
        };
        let (largest, too_large) = (padded(LARGEST_ANSWER), padded(LARGEST_ANSWER + 1));
        for (answer, is_taken) in [
            (answer(200, "", &largest), true),
            (in_parts(&largest), true),
            (answer(200, "", &too_large), false),
            (in_parts(&too_large), false),
            (answer(500, "", &too_large), false),
        ] {
            let (base_url, server) = serve(vec![answer]).await;
            let endpoint = Endpoint { api: ModelApi::AnthropicMessages, base_url, credential: None };
            let result = ModelClient::new(endpoint).expect("a client").send(&request()).await;
            // The server cannot write all of an answer that is refused.
            server.abort();
            match is_taken {
                true => assert_eq!(result.expect("taken").text(), "hi"),
                false => {
                    assert_eq!(result.err(), Some(LlmError::Malformed("the reply is too large".to_owned())));
                }
            }
        }
    }

    #[tokio::test]
    async fn tries_again_where_it_helps() {
        let failure = r#"{"error":{"type":"x","message":"bad sk-secret"}}"#;
        let api = |status| Err(LlmError::Api { status, message: "bad ***".to_owned() });
        let fine = || answer(200, "", FINE);
        for (answers, expected) in [
            (vec![fine()], Ok("hi")),
            (vec![answer(429, "retry-after: 0\r\n", failure), fine()], Ok("hi")),
            (vec![answer(529, "", failure), answer(503, "", failure), fine()], Ok("hi")),
            (vec![String::new(), fine()], Ok("hi")),
            (vec!["HTTP/1.1 200 X\r\ncontent-length: 99\r\n\r\n{".to_owned(), fine()], Ok("hi")),
            (vec![answer(529, "", failure); 3], api(529)),
            (vec![answer(429, "", failure); 3], Err(LlmError::RateLimited { retry_after: None })),
            (
                vec![answer(429, "retry-after: 7\r\n", failure)],
                Err(LlmError::RateLimited { retry_after: Some(Duration::from_secs(7)) }),
            ),
            (vec![answer(401, "", failure)], Err(LlmError::Auth("bad ***".to_owned()))),
            (vec![answer(403, "", failure)], Err(LlmError::Auth("bad ***".to_owned()))),
            (vec![answer(400, "", failure)], api(400)),
            (vec![answer(302, "location: http://127.0.0.1:1/\r\n", failure)], api(302)),
            (vec![answer(404, "", "plain")], Err(LlmError::Api { status: 404, message: "plain".to_owned() })),
            (vec![answer(200, "", "{}")], Err(LlmError::Malformed("the reply has no content".to_owned()))),
        ] {
            let tries = answers.len();
            let (result, seen) = ask(answers.clone()).await;
            assert_eq!(result.map(|reply| reply.text()), expected.map(str::to_owned), "{answers:?}");
            assert_eq!(seen.len(), tries, "{answers:?}");
            let first = seen.first().expect("a request").to_lowercase();
            assert!(first.starts_with("post /v1/messages "), "{first}");
            assert!(first.contains("x-api-key: sk-secret") && first.contains("anthropic-version"), "{first}");
            assert!(!first.contains("\"stream\""), "{first}");
        }
    }

    #[tokio::test]
    async fn nobody_there_and_nobody_answering() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base_url = format!("http://{}", listener.local_addr().expect("an address"));
        let endpoint = Endpoint { api: ModelApi::OpenAiChat, base_url, credential: None };
        let retry = ApiRetryPolicy {
            max_attempts: 2,
            first_wait: Duration::from_millis(1),
            ..ApiRetryPolicy::default()
        };
        let client = ModelClient::new(endpoint)
            .expect("a client")
            .with_retry_policy(retry)
            .with_timeout(Duration::from_millis(100));
        // The listener never accepts: the request times out, and is not retried.
        let error = client.send(&request()).await.expect_err("no answer");
        assert!(matches!(&error, LlmError::Network(what) if what.contains("no answer")), "{error}");
        drop(listener);
        let error = client.send(&request()).await.expect_err("no server");
        assert!(matches!(&error, LlmError::Network(_)), "{error}");
    }

    #[test]
    fn waits_that_servers_ask_for() {
        for (name, value, expected) in [
            ("retry-after", "3", Some(3000)),
            ("retry-after", "0.25", Some(250)),
            ("retry-after-ms", "40", Some(40)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", Some(0)),
            ("retry-after", "-5", None),
            ("retry-after", "soon", None),
            ("retry-after", "1e300", None),
            ("other", "3", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            let found = requested_wait(&headers).map(|wait| wait.as_millis());
            assert_eq!(found, expected, "{name}: {value}");
        }
    }
}

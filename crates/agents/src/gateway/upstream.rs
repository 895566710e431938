//! The real model APIs behind the gateway. The user's credential is added here and nowhere else.

use std::collections::BTreeMap;
use std::io;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use futures_util::{StreamExt, stream};

use super::{AuxiliaryCall, GatewayCall, GatewayRefusal, PassedResponse};
use crate::llm::{Endpoint, ModelApi, describe_error, gemini_request_path};

/// Headers that are only for one connection, or no longer right once a request has passed through the gateway.
const HEADERS_NOT_FORWARDED: [&str; 15] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    // A response must not be compressed, so that its tokens can be counted.
    "accept-encoding",
    "expect",
    "cookie",
    "set-cookie",
];

/// The headers with the agent's own credential, which is only a placeholder.
const LOGIN_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// The longest body of a failure that is passed on; a longer one is cut.
const LONGEST_FAILURE: usize = 1024 * 1024;

/// The beta header without which Anthropic refuses the tokens of subscriptions.
const OAUTH_BETA: &str = "oauth-2025-04-20";

/// The addresses and keys of the real model APIs.
pub struct Upstream {
    hosts: Vec<(ModelApi, Result<UpstreamHost, String>)>,
}

struct UpstreamHost {
    endpoint: Endpoint,
    http: reqwest::Client,
    oauth: bool,
}

impl Upstream {
    /// Reads the addresses and credentials from the vendors' own variables.
    pub fn from_env(env: &BTreeMap<String, String>) -> Self {
        let host = |api: ModelApi| (api, UpstreamHost::from_env(api, env));
        Self { hosts: ModelApi::SERVED.into_iter().map(host).collect() }
    }

    /// Uses one address for all APIs, with or without `/v1` at its end.
    pub fn for_url(url: &str, env: &BTreeMap<String, String>) -> Self {
        let root = url.trim_end_matches('/');
        let root = root.strip_suffix("/v1").unwrap_or(root);
        let mut env = env.clone();
        env.insert("ANTHROPIC_BASE_URL".to_owned(), root.to_owned());
        env.insert("OPENAI_BASE_URL".to_owned(), format!("{root}/v1"));
        env.insert("GOOGLE_GEMINI_BASE_URL".to_owned(), root.to_owned());
        Self::from_env(&env)
    }

    /// Gives every credential that could be sent.
    pub fn secrets(&self) -> Vec<String> {
        let hosts = self.hosts.iter().filter_map(|(_, host)| host.as_ref().ok());
        let secrets = hosts.filter_map(|host| host.endpoint.credential.as_ref());
        secrets.map(|credential| credential.secret().reveal().to_owned()).collect()
    }

    fn host(&self, api: ModelApi) -> Result<&UpstreamHost, GatewayRefusal> {
        let found = self.hosts.iter().find(|(of, _)| *of == api).map(|(_, host)| host);
        match found {
            Some(Ok(host)) => Ok(host),
            Some(Err(why)) => Err(GatewayRefusal::with_status(401, why)),
            None => Err(GatewayRefusal::with_status(502, "the gateway has no upstream for this API")),
        }
    }

    /// Sends a request on. The response is passed through as it comes.
    pub async fn forward(&self, call: &GatewayCall<'_>) -> Result<PassedResponse, GatewayRefusal> {
        let host = self.host(call.api)?;
        let mut url =
            host.endpoint.url().map_err(|error| GatewayRefusal::with_status(502, error.to_string()))?;
        if call.api == ModelApi::Gemini {
            // The model is part of the path, and the base address may have a path of its own.
            let path = gemini_request_path(&call.request.model, call.request.stream);
            let base = host.endpoint.base_url.trim_end_matches('/');
            url = reqwest::Url::parse(&format!("{base}{path}"))
                .map_err(|error| GatewayRefusal::with_status(502, error.to_string()))?;
        }
        url.set_query(call.query);
        let passed = host.send(host.http.post(url).body(call.raw_body.to_vec()), call.headers).await;
        passed.inspect_err(|refusal| call.scope.add_note(&refusal.message))
    }

    /// Sends on a request that needs no model.
    pub async fn forward_auxiliary(
        &self,
        aside: &AuxiliaryCall<'_>,
    ) -> Result<PassedResponse, GatewayRefusal> {
        let host = self.host(aside.api)?;
        let base = host.endpoint.base_url.trim_end_matches('/');
        let path = match aside.api {
            ModelApi::AnthropicMessages => format!("/v1/{}", aside.path),
            ModelApi::Gemini => format!("/v1beta/{}", aside.path),
            ModelApi::OpenAiResponses | ModelApi::OpenAiChat => format!("/{}", aside.path),
        };
        let mut url = reqwest::Url::parse(&format!("{base}{path}"))
            .map_err(|error| GatewayRefusal::with_status(502, error.to_string()))?;
        url.set_query(aside.query);
        let request = match aside.body {
            Some(body) => host.http.post(url).body(body.to_vec()),
            None => host.http.get(url),
        };
        host.send(request, aside.headers).await
    }
}

impl UpstreamHost {
    fn from_env(api: ModelApi, env: &BTreeMap<String, String>) -> Result<Self, String> {
        let set = |name: &str| env.get(name).filter(|value| !value.trim().is_empty());
        let token = set("CLAUDE_CODE_OAUTH_TOKEN").filter(|_| {
            api == ModelApi::AnthropicMessages
                && set("ANTHROPIC_API_KEY").is_none()
                && set("ANTHROPIC_AUTH_TOKEN").is_none()
        });
        let mut env = env.clone();
        if let Some(token) = token {
            env.insert("ANTHROPIC_AUTH_TOKEN".to_owned(), token.clone());
        }
        let endpoint = Endpoint::from_env(api, &env).map_err(|error| error.to_string())?;
        let http = endpoint.http_client().map_err(|error| error.to_string())?;
        Ok(Self { endpoint, http, oauth: token.is_some() })
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        sent: &HeaderMap,
    ) -> Result<PassedResponse, GatewayRefusal> {
        let failed = |status: u16, what: String| GatewayRefusal::with_status(status, what);
        let mut headers = forwarded_headers(sent);
        self.endpoint.add_credential(&mut headers).map_err(|error| failed(401, error.to_string()))?;
        if self.oauth {
            let beta = sent.get("anthropic-beta").and_then(|value| value.to_str().ok()).unwrap_or_default();
            let both = if beta.is_empty() { OAUTH_BETA.to_owned() } else { format!("{beta},{OAUTH_BETA}") };
            if let Ok(value) = HeaderValue::from_str(&both) {
                headers.insert(HeaderName::from_static("anthropic-beta"), value);
            }
        }
        let response = request.headers(headers).send().await.map_err(|error| {
            failed(502, format!("the model API cannot be reached: {}", describe_error(&error.without_url())))
        })?;
        let status = response.status().as_u16();
        let headers = forwarded_headers(response.headers());
        if !(200..300).contains(&status) {
            let body = self.read_failure_body(response).await;
            let body = Box::pin(stream::iter([Ok(body)]));
            return Ok(PassedResponse { status, headers, body });
        }
        let body = response.bytes_stream().map(|chunk| {
            chunk.map_err(|error| io::Error::new(io::ErrorKind::ConnectionAborted, error.without_url()))
        });
        Ok(PassedResponse { status, headers, body: Box::pin(body) })
    }

    /// Reads the body of a failure and removes the key, because some servers repeat the key they refuse, and the
    /// agent must not see it.
    async fn read_failure_body(&self, mut response: reqwest::Response) -> Bytes {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST_FAILURE {
                body.truncate(LONGEST_FAILURE);
                break;
            }
        }
        match self.endpoint.credential.as_ref().map(|credential| credential.secret().reveal()) {
            Some(secret) if !secret.is_empty() => {
                String::from_utf8_lossy(&body).replace(secret, "[secret]").into_bytes().into()
            }
            Some(_) | None => body.into(),
        }
    }
}

fn forwarded_headers(headers: &HeaderMap) -> HeaderMap {
    // Headers that `connection` names are also for one connection only.
    let named: Vec<String> = headers
        .get_all("connection")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_lowercase())
        .collect();
    headers
        .iter()
        .filter(|(name, _)| {
            let name = name.as_str();
            !HEADERS_NOT_FORWARDED.contains(&name)
                && !LOGIN_HEADERS.contains(&name)
                && !named.iter().any(|one| one == name)
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

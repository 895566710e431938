//! The address and credential of a model, read from the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Url, redirect};

use super::{LlmError, ModelApi, describe_error};

/// A text that must not be shown: it is printed as stars.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Gives the text, for the one place that sends it, and for scrubbing.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The credential that is sent with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A key, sent in the header that the API prefers for keys.
    ApiKey(Secret),
    /// A token, sent as `Authorization: Bearer`.
    Bearer(Secret),
}

impl Credential {
    pub fn secret(&self) -> &Secret {
        match self {
            Credential::ApiKey(secret) | Credential::Bearer(secret) => secret,
        }
    }
}

/// The address of a model, and the credential for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub api: ModelApi,
    /// The address in the form of the vendors' variables: without `/v1` for Anthropic, with it for OpenAI.
    pub base_url: String,
    pub credential: Option<Credential>,
}

impl Endpoint {
    /// Reads the variables that the vendors' own programs read. A server on this machine needs no key.
    pub fn from_env(api: ModelApi, env: &BTreeMap<String, String>) -> Result<Self, LlmError> {
        let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let (url_variable, default_url, key_variables) = match api {
            ModelApi::AnthropicMessages => (
                "ANTHROPIC_BASE_URL",
                "https://api.anthropic.com",
                "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
            ),
            ModelApi::OpenAiResponses | ModelApi::OpenAiChat => {
                ("OPENAI_BASE_URL", "https://api.openai.com/v1", "OPENAI_API_KEY")
            }
            ModelApi::Gemini => (
                "GOOGLE_GEMINI_BASE_URL",
                "https://generativelanguage.googleapis.com",
                "GEMINI_API_KEY or GOOGLE_API_KEY",
            ),
        };
        let credential = match api {
            ModelApi::AnthropicMessages => get("ANTHROPIC_API_KEY")
                .map(|key| Credential::ApiKey(Secret::new(key)))
                .or_else(|| get("ANTHROPIC_AUTH_TOKEN").map(|token| Credential::Bearer(Secret::new(token)))),
            ModelApi::OpenAiResponses | ModelApi::OpenAiChat => {
                get("OPENAI_API_KEY").map(|key| Credential::Bearer(Secret::new(key)))
            }
            ModelApi::Gemini => {
                let key = get("GEMINI_API_KEY").or_else(|| get("GOOGLE_API_KEY"));
                key.map(|key| Credential::ApiKey(Secret::new(key)))
            }
        };
        let base_url = get(url_variable).unwrap_or(default_url).trim_end_matches('/').to_owned();
        let endpoint = Self { api, base_url, credential };
        let url = endpoint.url()?;
        if endpoint.credential.is_none() && !is_loopback(&url) {
            return Err(LlmError::Auth(format!("no API key: set {key_variables}")));
        }
        Ok(endpoint)
    }

    /// Gives the full address that requests go to.
    pub fn url(&self) -> Result<Url, LlmError> {
        let address = format!("{}{}", self.base_url.trim_end_matches('/'), self.api.wire_format().path());
        match Url::parse(&address) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
            Ok(_) | Err(_) => Err(LlmError::Network(format!("{:?} is not a web address", self.base_url))),
        }
    }
}

impl Endpoint {
    /// Makes an HTTP client that connects to this endpoint and to nowhere else.
    pub fn http_client(&self) -> Result<reqwest::Client, LlmError> {
        http_client_for(&self.url()?)
    }

    /// Adds the credential in the header that the API expects.
    pub fn add_credential(&self, headers: &mut HeaderMap) -> Result<(), LlmError> {
        match (&self.credential, self.api) {
            (Some(Credential::ApiKey(key)), ModelApi::AnthropicMessages) => {
                headers.insert("x-api-key", sensitive_header(key.reveal())?);
            }
            (Some(Credential::ApiKey(key)), ModelApi::Gemini) => {
                headers.insert("x-goog-api-key", sensitive_header(key.reveal())?);
            }
            (Some(Credential::ApiKey(secret)), ModelApi::OpenAiResponses | ModelApi::OpenAiChat)
            | (Some(Credential::Bearer(secret)), _) => {
                headers.insert(AUTHORIZATION, sensitive_header(&format!("Bearer {}", secret.reveal()))?);
            }
            (None, _) => {}
        }
        Ok(())
    }
}

fn sensitive_header(text: &str) -> Result<HeaderValue, LlmError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| LlmError::Auth("the API key has invalid characters".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Makes an HTTP client for requests to this address.
fn http_client_for(url: &Url) -> Result<reqwest::Client, LlmError> {
    // A redirect would carry the key and the conversation to another host.
    let mut builder = reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(Duration::from_secs(20))
        .user_agent(concat!("practicum/", env!("CARGO_PKG_VERSION")));
    if url.scheme() == "http" {
        // A sandbox may contain no certificates, and none are needed here.
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| LlmError::Network(describe_error(&error)))
}

/// The address of a server that is no model: a web address without a login in it.
#[derive(Debug, Clone)]
pub struct HttpAddress(Url);

impl HttpAddress {
    /// Reads an address. The error says in words what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match Url::parse(text) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
                Err(format!("{text:?} is not an address with http:// or https://"))
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Err("the address must not contain a login".to_owned())
            }
            Ok(url) => Ok(Self(url)),
            Err(_) => Err(format!("{text:?} is not a web address")),
        }
    }

    /// Gives the address as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Says whether the address names only a server.
    pub fn has_no_path(&self) -> bool {
        matches!(self.0.path(), "" | "/") && self.0.query().is_none()
    }

    /// Makes an HTTP client for requests to this address. It follows no redirects.
    pub fn http_client(&self) -> Result<reqwest::Client, LlmError> {
        http_client_for(&self.0)
    }
}

pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let endpoint = Endpoint {
            api: ModelApi::AnthropicMessages,
            base_url: "http://localhost".to_owned(),
            credential: Some(Credential::ApiKey(Secret::new("sk-very-secret"))),
        };
        let printed = format!("{endpoint:?}");
        assert!(printed.contains("***") && !printed.contains("secret"), "{printed}");
    }

    #[test]
    fn the_environment_says_where() {
        use ModelApi::{AnthropicMessages, OpenAiChat, OpenAiResponses};
        let key = |text: &str| Some(Credential::ApiKey(Secret::new(text)));
        let bearer = |text: &str| Some(Credential::Bearer(Secret::new(text)));
        for (api, env, expected) in [
            (
                AnthropicMessages,
                &[("ANTHROPIC_API_KEY", "k")][..],
                Ok(("https://api.anthropic.com/v1/messages", key("k"))),
            ),
            (
                AnthropicMessages,
                &[("ANTHROPIC_API_KEY", " "), ("ANTHROPIC_AUTH_TOKEN", "t")],
                Ok(("https://api.anthropic.com/v1/messages", bearer("t"))),
            ),
            (
                AnthropicMessages,
                &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/t/x/")],
                Ok(("http://127.0.0.1:1/t/x/v1/messages", None)),
            ),
            (
                OpenAiResponses,
                &[("OPENAI_API_KEY", "k")],
                Ok(("https://api.openai.com/v1/responses", bearer("k"))),
            ),
            (
                OpenAiChat,
                &[("OPENAI_BASE_URL", "http://[::1]:8/v1")],
                Ok(("http://[::1]:8/v1/chat/completions", None)),
            ),
            (AnthropicMessages, &[], Err("ANTHROPIC_API_KEY")),
            (OpenAiChat, &[("ANTHROPIC_API_KEY", "k")], Err("OPENAI_API_KEY")),
            (OpenAiChat, &[("OPENAI_BASE_URL", "http://192.168.0.9/v1")], Err("OPENAI_API_KEY")),
            (OpenAiChat, &[("OPENAI_BASE_URL", "ftp://localhost")], Err("not a web address")),
            (OpenAiChat, &[("OPENAI_BASE_URL", "localhost:80")], Err("not a web address")),
        ] {
            let map = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let found = Endpoint::from_env(api, &map);
            match (found, expected) {
                (Ok(endpoint), Ok((url, credential))) => {
                    assert_eq!(endpoint.url().expect("a URL").as_str(), url);
                    assert_eq!(endpoint.credential, credential);
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, expected) => panic!("{env:?}: {found:?}, expected {expected:?}"),
            }
        }
    }
}

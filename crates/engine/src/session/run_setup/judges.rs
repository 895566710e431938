//! Chooses the judge of a suite, and connects to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::RunSetupError;
use crate::grade::judge::{AnswerCache, CliJudge, Judge, JudgeConnection as Way, JudgeLimits, NO_PICTURES};
use crate::grade::{GatewayRole, SuiteServices};
use crate::plan::PlannedSuite;
use crate::plan::settings::{JUDGE_JOBS, SettingLayers, Settings};
use crate::store::RecordKey;
use crate::workspace::pictures::PictureRenderer;
use practicum_agents::agents::{default_judge_model, model_cli_of};
use practicum_agents::gateway::{Gateway, SecretScrubber};
use practicum_agents::llm::{Credential, Endpoint, ModelApi, ModelClient, Secret};
use practicum_core::model::{Case, Check, CheckKind, JudgeTransportChoice, Provider, Suite};

/// The limits, cache and scrubber that all judges of a run share.
pub struct JudgePool {
    pub limits: JudgeLimits,
    /// The cache of answers, unless the user wants to ask again.
    pub cache: Option<AnswerCache>,
    pub scrub: SecretScrubber,
    /// Makes the pictures that judges are shown.
    pub renderer: PictureRenderer,
}

impl JudgePool {
    /// Makes the pool of a project from its settings. With `fresh`, stored answers are not used.
    pub fn for_project(
        project: &Path,
        layers: &SettingLayers,
        scrub: &SecretScrubber,
        fresh: bool,
    ) -> Result<Self, RunSetupError> {
        let at_once = layers.resolve_global(&JUDGE_JOBS)?.value;
        // Without a key, answers are used again only within this process.
        let key = RecordKey::of_user(layers.environment()).unwrap_or_else(|_| RecordKey::temporary());
        let kept = || AnswerCache::new(project.join(".practicum/cache/judge"), Arc::clone(scrub), key);
        Ok(Self {
            limits: JudgeLimits::new(at_once),
            cache: (!fresh).then(kept),
            scrub: Arc::clone(scrub),
            renderer: PictureRenderer::new(layers.environment()),
        })
    }

    /// Connects a judge. With `needs_pictures` it must be one that can be shown pictures.
    pub(super) fn connect_judge(
        &self,
        settings: &Settings,
        needs_pictures: bool,
        gateway: Option<&Gateway>,
        stand: Option<GatewayRole>,
        env: &BTreeMap<String, String>,
    ) -> Result<Judge, String> {
        let model = settings.judge_model.value.as_deref();
        let provider = resolve_provider(settings.judge_provider.value, model)?;
        let oracle = model_cli_of(provider);
        let installed = oracle.agent().installed_path(env);
        let transport = match settings.judge_transport.value {
            JudgeTransportChoice::Cli if needs_pictures => return Err(NO_PICTURES.to_owned()),
            JudgeTransportChoice::Auto if needs_pictures => JudgeTransportChoice::Api,
            transport => transport,
        };
        let way = match uses_cli(transport, provider, installed.is_ok(), stand) {
            true => {
                installed.map_err(|error| format!("{error}; --transport api needs none"))?;
                Way::cli(CliJudge::new(oracle, env.clone()), self.limits.clone())
            }
            false => {
                let endpoint = judge_endpoint(provider, gateway.zip(stand), env)?;
                let client = ModelClient::new(endpoint).map_err(|error| error.to_string())?;
                Way::api(client, self.limits.clone())
            }
        };
        let judge = Judge::new(way, model.unwrap_or(default_judge_model(provider)).to_owned());
        let judge = judge.with_votes(settings.judge_votes.value).with_scrub(Arc::clone(&self.scrub));
        let judge = judge.with_unsupported(settings.judge_unsupported.value);
        let judge = judge.with_renderer(self.renderer.clone());
        // The answers of a script or a cassette are not those of the model, so they are not cached. A cached
        // answer would also keep the question from reaching the script or cassette.
        let real = match stand {
            None | Some(GatewayRole::Meter) => true,
            Some(GatewayRole::Script | GatewayRole::Replay | GatewayRole::Record) => false,
        };
        Ok(match self.cache.as_ref().filter(|_| real) {
            Some(cache) => judge.with_cache(cache.clone()),
            None => judge,
        })
    }
}

/// Says whether a CLI is the judge. By default only that of Anthropic's models is used, if it is installed. A script or cassette
/// must not depend on what is installed.
fn uses_cli(
    said: JudgeTransportChoice,
    provider: Provider,
    installed: bool,
    stand: Option<GatewayRole>,
) -> bool {
    match said {
        JudgeTransportChoice::Api => false,
        JudgeTransportChoice::Cli => true,
        JudgeTransportChoice::Auto => provider != Provider::Openai && installed && stand.is_none(),
    }
}

fn judge_endpoint(
    provider: Provider,
    gateway: Option<(&Gateway, GatewayRole)>,
    env: &BTreeMap<String, String>,
) -> Result<Endpoint, String> {
    let api = match (provider, gateway) {
        (Provider::Anthropic | Provider::Auto, _) => ModelApi::AnthropicMessages,
        // Servers that are compatible with OpenAI have only its older API.
        (Provider::Openai, None) if is_custom_openai_url(env.get("OPENAI_BASE_URL")) => ModelApi::OpenAiChat,
        (Provider::Openai, _) => ModelApi::OpenAiResponses,
    };
    match gateway {
        // Each trial's judge gets its own gateway address later. Until then it has the address of the service that
        // answers in the end, by which cached answers are identified.
        Some((gateway, stand)) => {
            let own = Endpoint::from_env(api, env).map(|endpoint| endpoint.base_url);
            // A gateway that passes requests on needs a credential.
            match (stand, &own) {
                (GatewayRole::Record | GatewayRole::Meter, Err(error)) => return Err(error.to_string()),
                (GatewayRole::Record | GatewayRole::Meter | GatewayRole::Script | GatewayRole::Replay, _) => {
                }
            }
            let base_url = own.unwrap_or_else(|_| format!("http://{}", gateway.address()));
            Ok(Endpoint { api, base_url, credential: Some(Credential::ApiKey(Secret::new("gateway"))) })
        }
        None => Endpoint::from_env(api, env).map_err(|error| error.to_string()),
    }
}

fn is_custom_openai_url(base_url: Option<&String>) -> bool {
    base_url.is_some_and(|url| !url.trim().is_empty() && !url.contains("://api.openai.com"))
}

/// Refuses to start if a case needs a judge and there is none: the agents would cost money without being graded.
/// Each case comes with the index of its suite.
pub fn require_judges<'c>(
    cases: impl IntoIterator<Item = (usize, &'c Case)>,
    suites: &[PlannedSuite],
    means: &[SuiteServices],
) -> Result<(), RunSetupError> {
    let mut problems = Vec::new();
    for (at, case) in cases {
        if let Err(why) = &means[at].judge
            && case.needs_model()
        {
            let problem = format!("suite {}: {why}", suites[at].suite.name);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(RunSetupError::NoJudge(problems)) }
}

/// Explains why no judge can be asked, if the settings of a suite alone show it. The user is told before anything
/// is spent.
pub fn unknown_provider_reason(settings: &Settings, suite: &Suite) -> Option<String> {
    let asks = |check: &Check| matches!(check.kind, CheckKind::Judged(_) | CheckKind::Sections(_));
    let judged = suite.cases.iter().any(|case| case.checks.iter().any(asks));
    let model = settings.judge_model.value.as_deref();
    let why = resolve_provider(settings.judge_provider.value, model).err().filter(|_| judged)?;
    Some(format!("suite {}: {why}", suite.name))
}

/// Gives the provider of a model, from its name if the settings do not say.
fn resolve_provider(said: Provider, model: Option<&str>) -> Result<Provider, String> {
    match (said, model) {
        (Provider::Anthropic | Provider::Openai, _) => Ok(said),
        (Provider::Auto, None) => Ok(Provider::Anthropic),
        (Provider::Auto, Some(model)) => Provider::of_model(model).ok_or_else(|| {
            format!("unknown provider for model \"{model}\"; name it with --grading-provider")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_tells_its_provider() {
        for (model, expected) in [
            (None, Some(Provider::Anthropic)),
            (Some("claude-opus-4-1"), Some(Provider::Anthropic)),
            (Some("gpt-5.4-mini"), Some(Provider::Openai)),
            (Some("o3"), Some(Provider::Openai)),
            (Some("o4-mini"), Some(Provider::Openai)),
            (Some("opus"), None),
            (Some("llama-3"), None),
        ] {
            assert_eq!(resolve_provider(Provider::Auto, model).ok(), expected, "{model:?}");
        }
    }

    #[test]
    fn a_cli_is_asked_when_told_or_when_there_is_claude() {
        use JudgeTransportChoice::{Api, Auto, Cli};
        use Provider::{Anthropic, Openai};
        for (said, provider, installed, stand, expected) in [
            (Auto, Anthropic, true, None, true),
            (Auto, Anthropic, false, None, false),
            (Auto, Openai, true, None, false),
            (Auto, Anthropic, true, Some(GatewayRole::Script), false),
            (Auto, Anthropic, true, Some(GatewayRole::Meter), false),
            (Cli, Anthropic, false, None, true),
            (Cli, Openai, true, Some(GatewayRole::Script), true),
            (Api, Anthropic, true, None, false),
        ] {
            let found = uses_cli(said, provider, installed, stand);
            assert_eq!(found, expected, "{said:?} {provider:?} {installed} {stand:?}");
        }
    }

    #[test]
    fn compatible_servers_are_asked_in_the_older_way() {
        let api = |url: Option<&str>| {
            let env = [("OPENAI_API_KEY", Some("k")), ("OPENAI_BASE_URL", url)];
            let env = env.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
            judge_endpoint(Provider::Openai, None, &env.collect()).map(|endpoint| endpoint.api)
        };
        for (url, expected) in [
            (None, ModelApi::OpenAiResponses),
            (Some(""), ModelApi::OpenAiResponses),
            (Some("https://api.openai.com/v1"), ModelApi::OpenAiResponses),
            (Some("http://localhost:11434/v1"), ModelApi::OpenAiChat),
        ] {
            assert_eq!(api(url), Ok(expected), "{url:?}");
        }
    }
}

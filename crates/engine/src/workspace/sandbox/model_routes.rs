//! Finds out how an agent reaches its model from a sandbox without network.

use std::collections::BTreeMap;

use reqwest::Url;

use practicum_agents::agents::AgentCli;

/// One connection out of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelRoute {
    /// A port of this machine, at the same address inside the sandbox.
    Port(u16),
    /// Servers elsewhere, reached by name through a proxy.
    Proxy(Vec<ServerAddress>),
}

/// The host name and the port of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub name: String,
    pub port: u16,
}

/// Gives the routes to the gateway, or else to the endpoints of the agent.
pub fn model_routes(
    agent: &AgentCli,
    gateway: Option<&str>,
    user_env: &BTreeMap<String, String>,
) -> Result<Vec<ModelRoute>, String> {
    let addresses: Vec<String> = match gateway {
        Some(gateway) => vec![gateway.to_owned()],
        None => agent.model_addresses(user_env),
    };
    let mut ways = Vec::new();
    let mut hosts = Vec::new();
    for address in addresses {
        let no_address = || format!("\"{address}\" is no address of a model");
        let url = Url::parse(&address).map_err(|_| no_address())?;
        let port = url.port_or_known_default().ok_or_else(no_address)?;
        let name = url.host_str().ok_or_else(no_address)?.to_ascii_lowercase();
        if !is_loopback(&name) {
            hosts.push(ServerAddress { name, port });
        } else if port < 1024 {
            return Err(format!(
                "{address} has a port below 1024, which a sandbox without network cannot have"
            ));
        } else if !ways.contains(&ModelRoute::Port(port)) {
            ways.push(ModelRoute::Port(port));
        }
    }
    if !hosts.is_empty() {
        ways.push(ModelRoute::Proxy(hosts));
    }
    Ok(ways)
}

fn is_loopback(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_agents::agents::find_agent;

    #[test]
    fn an_agent_reaches_its_model_and_nothing_else() {
        let proxy = |name: &str, port| ModelRoute::Proxy(vec![ServerAddress { name: name.to_owned(), port }]);
        for (gateway, base_url, expected) in [
            (Some("http://127.0.0.1:4711/t/x"), None, Ok(vec![ModelRoute::Port(4711)])),
            (Some("http://127.0.0.1:4711/t/x"), Some("https://elsewhere"), Ok(vec![ModelRoute::Port(4711)])),
            (None, None, Ok(vec![proxy("api.anthropic.com", 443)])),
            (None, Some("http://localhost:8080"), Ok(vec![ModelRoute::Port(8080)])),
            (None, Some("https://[::1]:8443/v1"), Ok(vec![ModelRoute::Port(8443)])),
            (None, Some("http://Model.Lan:9000"), Ok(vec![proxy("model.lan", 9000)])),
            (None, Some("http://localhost"), Err(())),
            (None, Some("not an address"), Err(())),
        ] {
            let env: BTreeMap<String, String> =
                base_url.map(|url| ("ANTHROPIC_BASE_URL".to_owned(), url.to_owned())).into_iter().collect();
            let claude = find_agent("claude").expect("known");
            assert_eq!(
                model_routes(&claude, gateway, &env).map_err(|_| ()),
                expected,
                "{gateway:?} {base_url:?}"
            );
        }
    }
}

//! Agent CLIs as data, and the process that one turn starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::DecoderKind;
use super::credentials::{AgentCredentials, AgentLogin};
use super::given_tools::{
    COMMANDS_VARIABLE, McpServerCommand, SERVERS_PLACEHOLDER, shell_profiles, write_servers,
};
use super::programs::find_program;
use practicum_core::model::RelPath;

/// An agent CLI as data. The built-in ones and those of a project file have the same type.
#[derive(Clone)]
pub struct AgentCli {
    /// The name of the agent, as `--agent` takes it.
    pub name: String,
    /// The program to start.
    pub program: AgentProgram,
    /// Arguments of the first turn. A group is left out if a `{placeholder}` in it has no value. If no argument
    /// contains `{prompt}`, the prompt goes to standard input.
    pub first_turn_args: Vec<Vec<String>>,
    /// Arguments of later turns; empty if the agent cannot continue a session.
    pub later_turn_args: Vec<Vec<String>>,
    /// The kind of decoder that reads the agent's output.
    pub decoder: &'static DecoderKind,
    /// The folder in which the agent looks for a project's skills.
    pub skills_dir: RelPath,
    /// Variables set for every run; values may contain placeholders.
    pub env: Vec<(String, String)>,
    /// Variables passed on if the user has set them.
    pub pass_env: Vec<String>,
    /// The ways to log the agent in.
    pub credentials: AgentCredentials,
    /// The way to point the agent at a gateway; `None` if it cannot be.
    pub route: Option<GatewayRoute>,
    /// The addresses of its models, as far as they are known.
    pub models: Vec<ModelAddress>,
    /// A function that writes the command for a skill by its name; `None` if the agent has no such command.
    pub skill_command: Option<fn(&str, &str) -> String>,
    /// Files that the agent needs in its home, for settings that no argument and no variable can set.
    pub home_files: Option<HomeFiles>,
    /// The skills that the agent itself brings along.
    pub own_skills: &'static [&'static str],
    /// The place among the agents that `auto` tries, the smallest first; `None` if the agent must be named.
    pub auto: Option<u8>,
}

/// A function that makes the files of the agent's home from the environment that it will have, and from whether
/// its own login is linked there.
pub type HomeFiles = fn(&BTreeMap<String, String>, bool) -> Vec<(RelPath, String)>;

/// The program of an agent: how it is found.
#[derive(Clone)]
pub enum AgentProgram {
    /// A program of this name, found on `PATH`.
    OnPath(String),
    /// This program itself.
    ThisProgram,
}

/// The variables that point an agent at another model endpoint.
#[derive(Clone)]
pub struct GatewayRoute {
    /// The variable for the address of the model API.
    pub base_url_variable: String,
    /// The suffix that this agent needs after the gateway's URL.
    pub suffix: &'static str,
    /// The variable for the key. Any value does, because the gateway needs no key.
    pub key_variable: String,
    /// The prefixes of the models that use this route; empty if all do.
    pub model_prefixes: &'static [&'static str],
    /// Other variables that this route needs, for example one that chooses the vendor.
    pub also_set: &'static [(&'static str, &'static str)],
}

impl GatewayRoute {
    /// Says whether this route is known to lead to the model. If the agent chooses its own model, that is known
    /// only if all models use this route.
    pub fn reaches_model(&self, model: Option<&str>) -> bool {
        self.model_prefixes.is_empty()
            || model.is_some_and(|model| self.model_prefixes.iter().any(|start| model.starts_with(start)))
    }
}

/// The address of a model: the value of the variable, else the vendor's own address.
#[derive(Clone)]
pub struct ModelAddress {
    /// The variable that can name another address.
    pub variable: Option<String>,
    /// The address that is used if the variable is not set.
    pub default: String,
}

impl ModelAddress {
    /// Makes the address that a variable names, or the given one if it is not set.
    pub fn from_variable(variable: &str, default: &str) -> Self {
        Self { variable: Some(variable.to_owned()), default: default.to_owned() }
    }
}

/// The data for one turn of one trial.
#[derive(Debug, Clone)]
pub struct AgentTurn<'t> {
    /// The user's message.
    pub prompt: &'t str,
    /// The folder that the agent works in.
    pub workspace: &'t Path,
    /// The folder that the agent has as its home.
    pub home: &'t Path,
    /// The folder for temporary files.
    pub tmp: &'t Path,
    /// The model to use; `None` leaves the choice to the agent.
    pub model: Option<&'t str>,
    /// The session's id. `None` in the first turn of an agent that names its own sessions.
    pub session: Option<&'t str>,
    /// Whether the turn continues a session.
    pub is_later: bool,
    /// Text added to the agent's own system prompt.
    pub append_system_prompt: Option<&'t str>,
    /// The only tools that the agent may use, separated by commas.
    pub tools: Option<&'t str>,
    /// The gateway to use instead of the agent's own endpoint.
    pub gateway: Option<&'t str>,
    /// Whether the agent runs in this program's sandbox. An agent cannot start its own sandbox inside it.
    pub sandboxed: bool,
    /// The folders of the plugins that the agent is to load.
    pub plugins: &'t [PathBuf],
    /// The file with the start commands of these plugins' MCP servers, if they may be started.
    pub plugin_servers: Option<&'t Path>,
    /// Further MCP servers that the agent is to start.
    pub mcp_servers: &'t [McpServerCommand],
    /// A folder of commands that the agent must find before all others.
    pub commands_folder: Option<&'t Path>,
}

/// The variable that tells the functions of `HomeFiles` that the agent runs in a sandbox.
pub const SANDBOX_VARIABLE: &str = "PRACTICUM_WALLED";

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The path of the program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// Files written before the process starts.
    pub files: Vec<(PathBuf, String)>,
    /// The file in which the agent looks for its login, and the user's own file with that login.
    pub login_file: Option<(PathBuf, PathBuf)>,
    /// The text on standard input, if there is one.
    pub stdin: Option<String>,
}

/// An error: an agent cannot be started.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LaunchError {
    /// The agent's program is not on `PATH`.
    #[error("{agent} is not installed: no \"{program}\" on PATH")]
    NotInstalled {
        /// The name of the agent.
        agent: String,
        /// The program that was looked for.
        program: String,
    },
    /// The agent of this name cannot continue a session.
    #[error("{0} cannot continue a session, and this case has several turns")]
    NoLaterTurns(String),
    /// The agent of this name cannot be pointed at a gateway.
    #[error("{0} cannot be pointed at a gateway")]
    NoRoute(String),
    /// The agent cannot be pointed at a gateway with this model.
    #[error("{agent} cannot be pointed at a gateway with the model {model}; it can with {ways}")]
    NoRouteFor {
        /// The name of the agent.
        agent: String,
        /// The model that was asked for.
        model: String,
        /// The models with which it can be, in words.
        ways: String,
    },
}

/// Variables that are inherited if they are set: the path of programs, language, time zone, certificates.
const INHERITED_VARIABLES: [&str; 8] =
    ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "TERM"];

impl AgentCli {
    /// Makes an agent whose program is found on `PATH`. It gets the prompt on standard input and no arguments, looks
    /// for skills in `.agents/skills`, and needs no login. The other fields can be set afterwards.
    pub fn new(name: impl Into<String>, program: impl Into<String>, decoder: &'static DecoderKind) -> Self {
        Self {
            name: name.into(),
            program: AgentProgram::OnPath(program.into()),
            first_turn_args: Vec::new(),
            later_turn_args: Vec::new(),
            decoder,
            skills_dir: RelPath::new(".agents/skills").expect("a relative path"),
            env: Vec::new(),
            pass_env: Vec::new(),
            credentials: AgentCredentials::from_variables(Vec::new()),
            route: None,
            models: Vec::new(),
            skill_command: None,
            home_files: None,
            own_skills: &[],
            auto: None,
        }
    }

    /// Says whether the agent offers command files (`.claude/commands`) to its model, as far as that is known.
    pub fn offers_commands(&self) -> bool {
        self.skill_command.is_some() || self.skills_dir.as_str() == ".claude/skills"
    }

    /// Says whether the agent's command line has an option for plugins.
    pub fn can_load_plugins(&self) -> bool {
        self.first_turn_args.iter().flatten().any(|argument| argument.contains(PLUGIN_PLACEHOLDER))
    }

    /// Says whether the agent can be given MCP servers.
    pub fn can_use_mcp_servers(&self) -> bool {
        let values = self.env.iter().map(|(_, value)| value);
        self.first_turn_args.iter().flatten().chain(values).any(|text| text.contains(SERVERS_PLACEHOLDER))
    }

    /// Says whether the agent accepts a text to add to its own system prompt.
    pub fn can_append_system_prompt(&self) -> bool {
        self.first_turn_args.iter().flatten().any(|argument| argument.contains("{append_system}"))
    }

    /// Says whether the agent can be limited to some of its tools.
    pub fn can_limit_tools(&self) -> bool {
        self.first_turn_args.iter().flatten().any(|argument| argument.contains("{tools}"))
    }

    /// Says whether this program itself is the agent.
    pub fn is_this_program(&self) -> bool {
        matches!(self.program, AgentProgram::ThisProgram)
    }

    /// Gives the path of the agent's program. Fails if the program is not installed.
    pub fn installed_path(&self, user_env: &BTreeMap<String, String>) -> Result<PathBuf, LaunchError> {
        let missing = |program: &str| LaunchError::NotInstalled {
            agent: self.name.clone(),
            program: program.to_owned(),
        };
        match &self.program {
            AgentProgram::ThisProgram => std::env::current_exe().map_err(|_| missing("practicum")),
            AgentProgram::OnPath(name) => find_program(name, user_env).ok_or_else(|| missing(name)),
        }
    }

    /// Gives the addresses that the agent has to reach without a gateway.
    pub fn model_addresses(&self, user_env: &BTreeMap<String, String>) -> Vec<String> {
        let said = |variable: &String| user_env.get(variable).filter(|value| !value.is_empty());
        let addresses = self.models.iter().map(|model| {
            let said = model.variable.as_ref().and_then(said);
            said.unwrap_or(&model.default).clone()
        });
        addresses.collect()
    }

    /// Gives the process that one turn of this agent starts.
    pub fn launch(
        &self,
        turn: &AgentTurn<'_>,
        user_env: &BTreeMap<String, String>,
    ) -> Result<Launch, LaunchError> {
        let program = self.installed_path(user_env)?;
        let groups = match turn.is_later {
            false => &self.first_turn_args,
            // A client asks the same program to continue the session.
            true if self.decoder.new_client.is_some() => &self.first_turn_args,
            true if self.later_turn_args.is_empty() => {
                return Err(LaunchError::NoLaterTurns(self.name.clone()));
            }
            true => &self.later_turn_args,
        };
        let args = groups.iter().flat_map(|group| group_args(group, turn)).collect();
        let has_prompt = groups.iter().flatten().any(|arg| arg.contains("{prompt}"));
        let is_given = has_prompt || self.decoder.new_client.is_some();
        let stdin = (!is_given).then(|| turn.prompt.to_owned());
        let env = self.environment(turn, user_env)?;
        let link = self.login_file(turn, user_env);
        let files = self.files_to_write(turn, &env, link.is_some());
        Ok(Launch { program, args, env, files, login_file: link, stdin })
    }

    /// Gives the files to write before the turn. Only the first turn has any: after it the home belongs to the
    /// agent, and a folder there may be a link to somewhere else.
    fn files_to_write(
        &self,
        turn: &AgentTurn<'_>,
        env: &BTreeMap<String, String>,
        by_file: bool,
    ) -> Vec<(PathBuf, String)> {
        let files = match self.home_files {
            Some(files) if !turn.is_later => files(env, by_file),
            Some(_) | None => Vec::new(),
        };
        let profiles = turn.commands_folder.filter(|_| !turn.is_later).map(shell_profiles);
        let files = files.into_iter().chain(profiles.into_iter().flatten());
        files.map(|(path, content)| (path.join_to(turn.home), content)).collect()
    }

    /// Gives the place of the agent's own login and the user's file, if nothing else logs it in. As with files, only the first turn
    /// makes it, and a run with a gateway needs none.
    fn login_file(
        &self,
        turn: &AgentTurn<'_>,
        user_env: &BTreeMap<String, String>,
    ) -> Option<(PathBuf, PathBuf)> {
        let file = self.credentials.file.as_ref().filter(|_| !turn.is_later && turn.gateway.is_none())?;
        match self.credentials.find_login(user_env)? {
            AgentLogin::Variable(_) => None,
            AgentLogin::File(path) => Some((turn.home.join(file.folder).join(file.name), path)),
        }
    }

    fn environment(
        &self,
        turn: &AgentTurn<'_>,
        user_env: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, LaunchError> {
        let mut env = BTreeMap::new();
        let mut inherit = |name: &str| {
            if let Some(value) = user_env.get(name) {
                env.insert(name.to_owned(), value.clone());
            }
        };
        INHERITED_VARIABLES.iter().for_each(|name| inherit(name));
        self.pass_env.iter().for_each(|name| inherit(name));
        if let Some(AgentLogin::Variable(name)) = self.credentials.find_login(user_env) {
            inherit(&name);
        }
        env.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
        env.insert("HOME".to_owned(), turn.home.display().to_string());
        env.insert("TMPDIR".to_owned(), turn.tmp.display().to_string());
        if let Some(commands) = turn.commands_folder {
            let path = env.get("PATH").map(|path| format!(":{path}")).unwrap_or_default();
            env.insert("PATH".to_owned(), format!("{}{path}", commands.display()));
            env.insert(COMMANDS_VARIABLE.to_owned(), "1".to_owned());
        }
        if turn.sandboxed {
            env.insert(SANDBOX_VARIABLE.to_owned(), "1".to_owned());
        }
        if let Some(gateway) = turn.gateway {
            let route = self.route.as_ref().ok_or_else(|| LaunchError::NoRoute(self.name.clone()))?;
            if let Some(model) = turn.model.filter(|model| !route.reaches_model(Some(model))) {
                return Err(LaunchError::NoRouteFor {
                    agent: self.name.clone(),
                    model: model.to_owned(),
                    ways: route
                        .model_prefixes
                        .iter()
                        .map(|start| format!("{start}…"))
                        .collect::<Vec<_>>()
                        .join(" and "),
                });
            }
            // The user's own key stays out of a run that does not need it.
            for name in &self.credentials.variables {
                env.remove(name);
            }
            // An agent that knows several vendors must not bypass the gateway.
            for (name, suffix) in [("ANTHROPIC_BASE_URL", ""), ("OPENAI_BASE_URL", "/v1")] {
                if self.pass_env.iter().any(|passed| passed == name) {
                    env.insert(name.to_owned(), format!("{gateway}{suffix}"));
                }
            }
            env.insert(route.base_url_variable.clone(), format!("{gateway}{}", route.suffix));
            env.insert(route.key_variable.clone(), "gateway".to_owned());
            env.extend(route.also_set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        }
        // These come last, because the model that was asked for replaces the one of the route.
        for (name, value) in &self.env {
            if let Some(value) = fill_placeholders(value, turn) {
                env.insert(name.clone(), value);
            }
        }
        Ok(env)
    }
}

/// The placeholder of a group that is repeated for each plugin.
const PLUGIN_PLACEHOLDER: &str = "{plugin}";

/// Gives the arguments of a group; none if a placeholder has no value.
fn group_args(group: &[String], turn: &AgentTurn<'_>) -> Vec<String> {
    let filled = |plugin: Option<&Path>| -> Option<Vec<String>> {
        let with_plugin = |arg: &String| match plugin {
            Some(plugin) => arg.replace(PLUGIN_PLACEHOLDER, &plugin.display().to_string()),
            None => arg.clone(),
        };
        group.iter().map(|arg| fill_placeholders(&with_plugin(arg), turn)).collect()
    };
    if group.iter().any(|arg| arg.contains(PLUGIN_PLACEHOLDER)) {
        return turn.plugins.iter().filter_map(|plugin| filled(Some(plugin))).flatten().collect();
    }
    filled(None).unwrap_or_default()
}

/// Replaces the placeholders of a text. `None` if one of them has no value.
fn fill_placeholders(text: &str, turn: &AgentTurn<'_>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let after = &rest[open + 1..];
        let Some(close) = after.find('}') else { break };
        out.push_str(&rest[..open]);
        let value = match &after[..close] {
            "prompt" => Some(turn.prompt.to_owned()),
            "workspace" => Some(turn.workspace.display().to_string()),
            "home" => Some(turn.home.display().to_string()),
            "tmp" => Some(turn.tmp.display().to_string()),
            "model" => Some(turn.model?.to_owned()),
            "session" => Some(turn.session?.to_owned()),
            "append_system" => Some(turn.append_system_prompt?.to_owned()),
            "tools" => Some(turn.tools?.to_owned()),
            "gateway" => Some(turn.gateway?.to_owned()),
            form if form.starts_with(SERVERS_PLACEHOLDER) => Some(write_servers(form, turn.mcp_servers)?),
            "plugin_servers" => Some(turn.plugin_servers?.display().to_string()),
            _ => None,
        };
        match value {
            Some(value) => {
                out.push_str(&value);
                rest = &after[close + 1..];
            }
            // Braces that are no placeholder stay as they are.
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn<'t>(prompt: &'t str) -> AgentTurn<'t> {
        AgentTurn {
            prompt,
            workspace: Path::new("/w"),
            home: Path::new("/h"),
            tmp: Path::new("/t"),
            model: None,
            session: Some("s-1"),
            is_later: false,
            append_system_prompt: None,
            tools: None,
            gateway: None,
            sandboxed: false,
            plugins: &[],
            plugin_servers: None,
            mcp_servers: &[],
            commands_folder: None,
        }
    }

    #[test]
    fn a_group_stands_once_for_each_plugin() {
        let group = ["--plugin-dir", "{plugin}"].map(str::to_owned);
        let plugins = ["/r/a", "/r/b"].map(PathBuf::from);
        assert_eq!(group_args(&group, &turn("x")), [""; 0]);
        let both = group_args(&group, &AgentTurn { plugins: &plugins, ..turn("x") });
        assert_eq!(both, ["--plugin-dir", "/r/a", "--plugin-dir", "/r/b"]);
    }

    #[test]
    fn placeholders() {
        for (text, expected) in [
            ("{prompt}", Some("say {model} hi")),
            ("--dir={workspace}/x", Some("--dir=/w/x")),
            ("{model}", None),
            ("{session}", Some("s-1")),
            ("{\"json\": {prompt}}", Some("{\"json\": say {model} hi}")),
            ("{unknown} {", Some("{unknown} {")),
        ] {
            assert_eq!(fill_placeholders(text, &turn("say {model} hi")).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn an_own_login_is_linked_where_nothing_else_logs_in() {
        let agent = super::super::find_agent("codex").expect("known");
        let home = tempfile::tempdir().expect("a folder");
        let own = home.path().join("elsewhere");
        std::fs::create_dir_all(&own).expect("made");
        std::fs::write(own.join("auth.json"), "{}").expect("written");
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let home = set("HOME", &home.path().display().to_string());
        let folder = set("CODEX_HOME", &own.display().to_string());
        let key = set("OPENAI_API_KEY", "sk-1");
        let gateway = AgentTurn { gateway: Some("http://127.0.0.1:1"), ..turn("x") };
        let later = AgentTurn { is_later: true, ..turn("x") };
        let link = Some((PathBuf::from("/h/.codex/auth.json"), own.join("auth.json")));
        for (turn, env, expected) in [
            (turn("x"), vec![home.clone(), folder.clone()], link),
            (turn("x"), vec![home.clone()], None),
            (turn("x"), vec![home.clone(), folder.clone(), key], None),
            (gateway, vec![home.clone(), folder.clone()], None),
            (later, vec![home, folder], None),
        ] {
            let env = env.into_iter().collect();
            assert_eq!(agent.login_file(&turn, &env), expected, "{env:?}");
        }
    }

    #[test]
    fn the_environment_is_built_from_nothing_with_one_login() {
        let agent = super::super::find_agent("claude").expect("known");
        let user: BTreeMap<String, String> = [
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("ANTHROPIC_API_KEY", "sk-1"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "tok"),
            ("AWS_SECRET_ACCESS_KEY", "no"),
            ("ANTHROPIC_BASE_URL", "http://own"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let env = agent.environment(&turn("x"), &user).expect("an environment");
        assert_eq!(env.get("HOME").map(String::as_str), Some("/h"));
        assert_eq!(env.get("ANTHROPIC_BASE_URL").map(String::as_str), Some("http://own"));
        assert!(!env.contains_key("AWS_SECRET_ACCESS_KEY"));
        let logins = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"];
        assert_eq!(logins.iter().filter(|name| env.contains_key(**name)).count(), 1);

        let scripted = AgentTurn { gateway: Some("http://127.0.0.1:1/t/x"), ..turn("x") };
        let env = agent.environment(&scripted, &user).expect("an environment");
        assert_eq!(env.get("ANTHROPIC_BASE_URL").map(String::as_str), Some("http://127.0.0.1:1/t/x"));
        assert!(
            !env.values().any(|value| value == "sk-1" || value == "tok"),
            "a scripted run gets no real key"
        );

        let agent = super::super::find_agent("builtin").expect("known");
        let user = BTreeMap::from([("OPENAI_BASE_URL".to_owned(), "http://own/v1".to_owned())]);
        let env = agent.environment(&scripted, &user).expect("an environment");
        assert_eq!(env.get("OPENAI_BASE_URL").map(String::as_str), Some("http://127.0.0.1:1/t/x/v1"));
    }

    #[test]
    fn a_gateway_is_asked_only_in_the_name_of_vendors_that_it_speaks_for() {
        let agent = super::super::find_agent("opencode").expect("known");
        let route = agent.route.clone().expect("a way");
        let gateway = Some("http://127.0.0.1:1/t/x");
        for (model, known, refused) in [
            (Some("anthropic/claude-sonnet-4-5"), true, false),
            (Some("openai/gpt-5"), true, false),
            (Some("openrouter/openai/gpt-5"), false, true),
            // The model that it would choose by itself depends on how the user is logged in.
            (None, false, false),
        ] {
            assert_eq!(route.reaches_model(model), known, "{model:?}");
            let env = agent.environment(&AgentTurn { model, gateway, ..turn("x") }, &BTreeMap::new());
            assert_eq!(env.is_err(), refused, "{model:?}");
        }
        let model = Some("google/x");
        let refused = agent.environment(&AgentTurn { model, gateway, ..turn("x") }, &BTreeMap::new());
        assert_eq!(
            refused.expect_err("no way").to_string(),
            "opencode cannot be pointed at a gateway with the model google/x; \
             it can with anthropic/… and openai/…"
        );
        let claude = super::super::find_agent("claude").and_then(|agent| agent.route).expect("a way");
        assert!(claude.reaches_model(None) && claude.reaches_model(Some("whatever")));
    }

    #[test]
    fn files_come_with_the_first_turn_only() {
        let env = BTreeMap::from([("CODEX_API_KEY".to_owned(), "sk-1".to_owned())]);
        for (name, later, expected) in [
            ("claude", false, vec![]),
            ("codex", false, vec![PathBuf::from("/h/.codex/config.toml")]),
            ("codex", true, vec![]),
        ] {
            let agent = super::super::find_agent(name).expect("known");
            let files = agent.files_to_write(&AgentTurn { is_later: later, ..turn("x") }, &env, false);
            assert_eq!(files.into_iter().map(|(path, _)| path).collect::<Vec<PathBuf>>(), expected, "{name}");
        }
    }
}

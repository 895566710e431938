//! An agent CLI used as a mere model: no tools, no memory, the prompt on standard input.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{AgentCli, AgentTurn, Launch, LaunchError, claude, codex};
use practicum_core::model::Provider;

/// A CLI that can be asked one question.
#[derive(Clone)]
pub struct ModelCli {
    agent: AgentCli,
    schema_passing: SchemaPassing,
}

/// The way to tell the CLI the schema of the answer.
#[derive(Clone, Copy)]
enum SchemaPassing {
    /// In an argument; the answer comes as a call of this tool.
    Argument { flag: &'static str, tool: &'static str },
    /// In a file; the answer is the last message.
    File { flag: &'static str },
}

/// One question to a CLI.
pub struct ModelCliRequest<'i> {
    /// The system prompt.
    pub system_prompt: &'i str,
    /// The question for the model.
    pub prompt: &'i str,
    /// The JSON Schema of the answer.
    pub schema: &'i Value,
    /// The model to ask.
    pub model: &'i str,
    /// An empty folder, used for this question alone. So are `home` and `tmp`.
    pub folder: &'i Path,
    /// The folder that the program has as its home.
    pub home: &'i Path,
    /// The folder for temporary files.
    pub tmp: &'i Path,
    /// The gateway to use instead of the vendor's API.
    pub gateway: Option<&'i str>,
}

/// The longest argument that the kernel accepts, with a margin.
const LONGEST_ARGUMENT: usize = 120_000;

const SYSTEM_FILE: &str = "instructions.md";

/// Gives the CLI that is asked in place of a provider's API.
pub fn model_cli_of(provider: Provider) -> ModelCli {
    match provider {
        Provider::Openai => codex_model_cli(),
        Provider::Anthropic | Provider::Auto => claude_model_cli(),
    }
}

/// Gives the model of a provider that judges if none is named.
pub fn default_judge_model(provider: Provider) -> &'static str {
    match provider {
        Provider::Openai => "gpt-5.4",
        Provider::Anthropic | Provider::Auto => "claude-sonnet-4-6",
    }
}

/// Gives the way to ask a model through the Claude CLI, without tools.
pub fn claude_model_cli() -> ModelCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let mut agent = claude::agent();
    agent.first_turn_args = vec![
        words(&["-p", "--output-format", "stream-json", "--verbose"]),
        words(&["--tools", "", "--disable-slash-commands", "--strict-mcp-config"]),
        words(&["--setting-sources", "", "--no-session-persistence"]),
        words(&["--system-prompt", "{append_system}"]),
        words(&["--model", "{model}"]),
    ];
    agent.later_turn_args = Vec::new();
    // The caller retries and coordinates all retries, so the CLI need not.
    agent.env.retain(|(name, _)| name != "CLAUDE_CODE_MAX_RETRIES");
    agent.env.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".to_owned()));
    ModelCli {
        agent,
        schema_passing: SchemaPassing::Argument { flag: "--json-schema", tool: "StructuredOutput" },
    }
}

/// Gives the way to ask a model through the Codex CLI, without tools.
pub fn codex_model_cli() -> ModelCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let settings = [
        "sandbox_mode=\"read-only\"",
        "web_search=\"disabled\"",
        "include_permissions_instructions=false",
        "include_environment_context=false",
        "features.shell_tool=false",
        "features.unified_exec=false",
        "features.multi_agent=false",
        "features.goals=false",
        "features.image_generation=false",
        "features.view_image=false",
        "model_providers.practicum.request_max_retries=0",
        "model_providers.practicum.stream_max_retries=0",
    ];
    let mut agent = codex::agent();
    agent.first_turn_args = vec![words(&["exec", "--json", "--skip-git-repo-check", "--ephemeral"])];
    agent.first_turn_args.extend(settings.map(|setting| words(&["-c", setting])));
    agent
        .first_turn_args
        .push(words(&["-c", &format!("model_instructions_file=\"{{home}}/{SYSTEM_FILE}\"")]));
    agent.first_turn_args.push(words(&["-m", "{model}"]));
    agent.later_turn_args = Vec::new();
    ModelCli { agent, schema_passing: SchemaPassing::File { flag: "--output-schema" } }
}

impl ModelCli {
    /// Gives the name of the agent whose CLI is used.
    pub fn name(&self) -> &str {
        &self.agent.name
    }

    /// Gives the agent whose CLI is used.
    pub fn agent(&self) -> &AgentCli {
        &self.agent
    }

    /// Gives the tool whose input is the answer; `None` if the answer is the last message.
    pub fn answer_tool(&self) -> Option<&'static str> {
        match self.schema_passing {
            SchemaPassing::Argument { tool, .. } => Some(tool),
            SchemaPassing::File { .. } => None,
        }
    }

    /// Gives the process to start, with its files in the home of the request.
    pub fn launch(
        &self,
        inquiry: &ModelCliRequest<'_>,
        user_env: &BTreeMap<String, String>,
    ) -> Result<Launch, LaunchError> {
        let turn = AgentTurn {
            prompt: inquiry.prompt,
            workspace: inquiry.folder,
            home: inquiry.home,
            tmp: inquiry.tmp,
            model: Some(inquiry.model),
            session: None,
            is_later: false,
            append_system_prompt: Some(inquiry.system_prompt),
            tools: None,
            gateway: inquiry.gateway,
            sandboxed: false,
            plugins: &[],
            plugin_servers: None,
            mcp_servers: &[],
            commands_folder: None,
        };
        let mut launch = self.agent.launch(&turn, user_env)?;
        if launch.login_file.is_some() {
            remove_own_provider(&mut launch.args);
        }
        let schema = inquiry.schema.to_string();
        match self.schema_passing {
            SchemaPassing::Argument { flag, .. } if schema.len() <= LONGEST_ARGUMENT => {
                launch.args.extend([flag.to_owned(), schema]);
            }
            // The prompt also describes the answer.
            SchemaPassing::Argument { .. } => {}
            SchemaPassing::File { flag } => {
                let path = inquiry.home.join("schema.json");
                launch.args.extend([flag.to_owned(), path.display().to_string(), "-".to_owned()]);
                launch.files.push((path, schema));
                launch.files.push((inquiry.home.join(SYSTEM_FILE), inquiry.system_prompt.to_owned()));
            }
        }
        Ok(launch)
    }
}

/// Removes the settings of this program's own provider, which do not work with the user's login.
fn remove_own_provider(args: &mut Vec<String>) {
    while let Some(at) = args.iter().position(|arg| arg.starts_with("model_providers.")) {
        args.drain(at.saturating_sub(1)..=at);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_question_is_on_standard_input_and_nowhere_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for program in ["claude", "codex"] {
            let path = folder.path().join(program);
            std::fs::write(&path, "#!/bin/sh\n").expect("written");
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        }
        let env = |key: &str| {
            BTreeMap::from([
                ("PATH".to_owned(), folder.path().display().to_string()),
                ("HOME".to_owned(), "/nowhere".to_owned()),
                ("AWS_SECRET_ACCESS_KEY".to_owned(), "no".to_owned()),
                (key.to_owned(), "sk-1".to_owned()),
            ])
        };
        for (oracle, key) in
            [(claude_model_cli(), "ANTHROPIC_API_KEY"), (codex_model_cli(), "OPENAI_API_KEY")]
        {
            let inquiry = ModelCliRequest {
                system_prompt: "judge",
                prompt: "the question",
                schema: &json!({"type": "object"}),
                model: "m",
                folder: Path::new("/f"),
                home: Path::new("/h"),
                tmp: Path::new("/t"),
                gateway: None,
            };
            let launch = oracle.launch(&inquiry, &env(key)).expect("a launch");
            assert!(!launch.args.iter().any(|arg| arg.contains("the question")), "{:?}", launch.args);
            assert_eq!(launch.stdin.as_deref(), Some("the question"));
            assert!(
                !launch.files.iter().any(|(_, text)| text.contains("the question")),
                "{:?}",
                launch.files
            );
            assert_eq!(launch.env.get(key).map(String::as_str), Some("sk-1"));
            assert!(!launch.env.contains_key("AWS_SECRET_ACCESS_KEY"));
            assert_eq!(launch.env.get("HOME").map(String::as_str), Some("/h"));
            assert!(!launch.args.iter().any(|arg| arg.contains("dangerously")), "{:?}", launch.args);
            assert_eq!(launch.login_file, None, "a key is enough");
        }
    }

    #[test]
    fn a_login_of_the_users_own_goes_with_the_vendors_own_provider() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join(".codex/auth.json");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(&file, "{}").expect("written");
        let program = home.path().join("codex");
        std::fs::write(&program, "#!/bin/sh\n").expect("written");
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let path = home.path().display().to_string();
        let user = BTreeMap::from([("HOME".to_owned(), path.clone()), ("PATH".to_owned(), path)]);
        let inquiry = ModelCliRequest {
            system_prompt: "judge",
            prompt: "the question",
            schema: &json!({"type": "object"}),
            model: "m",
            folder: Path::new("/f"),
            home: Path::new("/h"),
            tmp: Path::new("/t"),
            gateway: None,
        };
        let launch = codex_model_cli().launch(&inquiry, &user).expect("a launch");
        assert_eq!(launch.login_file, Some((PathBuf::from("/h/.codex/auth.json"), file)));
        assert!(!launch.args.iter().any(|arg| arg.contains("model_providers")), "{:?}", launch.args);
    }
}

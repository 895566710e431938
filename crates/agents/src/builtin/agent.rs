//! One execution of the builtin agent: model and tools take turns from the prompt to the ending.

use std::io::{self, Write};

use super::allowed_folders::AllowedFolders;
use super::events::{ActivationMeans, JsonlEnding, JsonlEvent, SCHEMA_VERSION};
use super::session::BuiltinSession;
use super::skills::{self, AvailableSkill};
use super::tools::{self, Toolbox};
use super::{BuiltinOptions, ending_for_error, write_event};
use crate::llm::{
    ChatMessage, ContentBlock, ModelApi, ModelClient, ModelReply, ModelRequest, Role, StopReason,
    ToolDefinition,
};
use practicum_core::model::count_with_noun;

const MAX_TOKENS: u32 = 16_000;

/// The built-in agent during one run.
pub struct BuiltinAgent<'a, W> {
    options: &'a BuiltinOptions,
    out: &'a mut W,
    toolbox: Toolbox,
    session: BuiltinSession,
    model: String,
    turns: u32,
}

struct RequestedToolCall {
    id: String,
    name: String,
    input: serde_json::Value,
}

impl<'a, W: Write> BuiltinAgent<'a, W> {
    pub fn prepare(options: &'a BuiltinOptions, out: &'a mut W) -> io::Result<Self> {
        let skills = skills::find_skills(&options.skills_dir);
        // A skill may be a link to the folder where its author keeps it.
        let folders = skills.iter().filter_map(|skill| skill.folder.clone());
        let fence = AllowedFolders::new(&options.workspace, folders.chain([options.skills_dir.clone()]))?;
        let session = match &options.session_file {
            Some(file) => BuiltinSession::load(file)?,
            None => BuiltinSession::new(),
        };
        let default_model = match options.endpoint.api {
            ModelApi::AnthropicMessages => "claude-sonnet-4-6",
            ModelApi::OpenAiResponses | ModelApi::OpenAiChat => "gpt-5.5",
            ModelApi::Gemini => "gemini-2.5-pro",
        };
        Ok(Self {
            options,
            out,
            toolbox: Toolbox { skills, allowed_folders: fence },
            session,
            model: options.model.clone().unwrap_or_else(|| default_model.to_owned()),
            turns: 0,
        })
    }

    pub fn emit_start(&mut self) -> io::Result<()> {
        let start = JsonlEvent::Start {
            schema_version: SCHEMA_VERSION,
            agent: Some("builtin".to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            model: Some(self.model.clone()),
            skills: Some(self.toolbox.skills.iter().map(|skill| skill.name.clone()).collect()),
            tools: Some(self.allowed_tools().into_iter().map(|tool| tool.name).collect()),
            session: Some(self.session.id.clone()),
        };
        write_event(self.out, &start)?;
        let prompt = self.prompt_message();
        self.session.messages.push(prompt);
        Ok(())
    }

    pub async fn run_conversation(
        &mut self,
        client: &ModelClient,
    ) -> io::Result<(JsonlEnding, Option<String>)> {
        while self.turns < self.options.max_turns {
            self.turns += 1;
            let reply = match client.send(&self.build_request()).await {
                Ok(reply) => reply,
                Err(error) => return Ok((ending_for_error(&error), Some(error.to_string()))),
            };
            let cut_off = reply.stop == StopReason::MaxTokens;
            let calls = self.record_reply(reply)?;
            if cut_off {
                let message = format!("the model's answer was cut off at {MAX_TOKENS} tokens");
                return Ok((JsonlEnding::OverBudget, Some(message)));
            }
            if calls.is_empty() {
                return Ok((JsonlEnding::Finished, None));
            }
            let mut results = Vec::new();
            for call in calls {
                results.push(self.run_tool_call(call).await?);
            }
            self.session.messages.push(ChatMessage { role: Role::User, blocks: results });
        }
        let message = format!("not done after {}", count_with_noun(self.options.max_turns, "turn"));
        Ok((JsonlEnding::OverBudget, Some(message)))
    }

    pub fn emit_end(&mut self, ending: JsonlEnding, message: Option<String>) -> io::Result<()> {
        if let Some(file) = &self.options.session_file {
            self.session.save(file)?;
        }
        write_event(self.out, &JsonlEvent::End { ending, message, turns: u64::from(self.turns) })
    }

    /// Gives the message for the prompt. If the prompt is the command of a skill, the message contains the skill's
    /// instructions.
    fn prompt_message(&self) -> ChatMessage {
        let prompt = &self.options.prompt;
        let mut message = ChatMessage::user(prompt.clone());
        if let Some((skill, args)) = skills::find_command(&self.toolbox.skills, prompt) {
            let text = format!(
                "The user invoked the skill {:?}. Follow its instructions.\n\n{}",
                skill.name,
                skill.instructions(args)
            );
            message.blocks.push(ContentBlock::Text { text });
        }
        message
    }

    /// Gives the tools that the agent may use.
    fn allowed_tools(&self) -> Vec<ToolDefinition> {
        let allowed = |name: &String| self.options.tools.as_ref().is_none_or(|tools| tools.contains(name));
        tools::tool_definitions().into_iter().filter(|tool| allowed(&tool.name)).collect()
    }

    fn build_request(&self) -> ModelRequest {
        ModelRequest {
            model: self.model.clone(),
            system: Some(self.system_prompt()),
            messages: self.session.messages.clone(),
            tools: self.allowed_tools(),
            tool_choice: None,
            max_tokens: Some(MAX_TOKENS),
            temperature: None,
            stream: false,
        }
    }

    fn system_prompt(&self) -> String {
        let mut parts = vec![format!(
            "You are an agent that works in the folder {} with the tools you are given. Do what the user \
             asks, then say what you did. Nobody can answer questions while you work: where something is \
             left open, choose what is most sensible.",
            self.toolbox.allowed_folders.workspace().display()
        )];
        let offered: Vec<&AvailableSkill> =
            self.toolbox.skills.iter().filter(|skill| skill.model_may_use).collect();
        if !offered.is_empty() {
            let list: Vec<String> =
                offered.iter().map(|skill| format!("- {}: {}", skill.name, skill.description)).collect();
            parts.push(format!(
                "These skills hold instructions for certain tasks. If one fits what the user asks, take it \
                 up with the Skill tool before you do anything else:\n{}",
                list.join("\n")
            ));
        }
        parts.extend(self.options.append_system.clone());
        parts.join("\n\n")
    }

    /// Writes the model's reply to the stream, adds it to the conversation, and gives the tool calls in it.
    fn record_reply(&mut self, reply: ModelReply) -> io::Result<Vec<RequestedToolCall>> {
        let usage = reply.usage;
        write_event(
            self.out,
            &JsonlEvent::Usage {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
            },
        )?;
        let mut kept = Vec::new();
        let mut calls = Vec::new();
        for block in reply.blocks {
            match &block {
                // The APIs refuse blank text when it is sent back to them.
                ContentBlock::Text { text } if text.trim().is_empty() => continue,
                ContentBlock::Text { text } => {
                    write_event(self.out, &JsonlEvent::Text { text: text.clone() })?
                }
                ContentBlock::ToolUse { id, name, input } => {
                    calls.push(RequestedToolCall {
                        id: id.clone(),
                        name: name.clone(),
                        input: input.clone(),
                    });
                }
                ContentBlock::Thinking { .. } => {}
                ContentBlock::Image { .. } | ContentBlock::ToolResult { .. } => continue,
            }
            kept.push(block);
        }
        if !kept.is_empty() {
            self.session.messages.push(ChatMessage { role: Role::Assistant, blocks: kept });
        }
        Ok(calls)
    }

    async fn run_tool_call(&mut self, call: RequestedToolCall) -> io::Result<ContentBlock> {
        let RequestedToolCall { id, name, input } = call;
        write_event(
            self.out,
            &JsonlEvent::Tool { id: id.clone(), name: name.clone(), input: input.clone() },
        )?;
        let allowed: Vec<String> = self.allowed_tools().into_iter().map(|tool| tool.name).collect();
        let outcome = match tools::TOOL_NAMES.contains(&name.as_str()) && !allowed.contains(&name) {
            true => Err(format!("the tool {name} may not be used; there are {}", allowed.join(", "))).into(),
            false => self.toolbox.call_tool(&name, &input).await,
        };
        let ok = outcome.result.is_ok();
        let (Ok(content) | Err(content)) = outcome.result;
        write_event(self.out, &JsonlEvent::ToolResult { id: id.clone(), ok, content: content.clone() })?;
        if let Some(name) = outcome.skill {
            write_event(self.out, &JsonlEvent::Skill { name, via: ActivationMeans::Tool })?;
        }
        Ok(ContentBlock::ToolResult { tool_use_id: id, content, is_error: !ok })
    }
}

//! One run: the prompt goes in, model and tools take turns, the ending comes out.

use std::io::{self, Write};

use super::events::{Ending, Event, SCHEMA_VERSION, Via};
use super::fence::Fence;
use super::session::Session;
use super::skills::{self, Skill};
use super::tools::{self, Toolbox};
use super::{Options, emit, ending_of};
use crate::llm::{Api, Block, Client, Message, Reply, Request, Role, Stop, Tool};
use practicum_core::model::counted;

const MAX_TOKENS: u32 = 16_000;

pub struct Agent<'a, W> {
    options: &'a Options,
    out: &'a mut W,
    toolbox: Toolbox,
    session: Session,
    model: String,
    turns: u32,
}

struct ToolCall {
    id: String,
    name: String,
    input: serde_json::Value,
}

impl<'a, W: Write> Agent<'a, W> {
    pub fn prepare(options: &'a Options, out: &'a mut W) -> io::Result<Self> {
        let skills = skills::find(&options.skills_dir);
        // A skill may be a link to where its author keeps it.
        let folders = skills.iter().filter_map(|skill| skill.folder.clone());
        let fence = Fence::new(&options.workspace, folders.chain([options.skills_dir.clone()]))?;
        let session = match &options.session_file {
            Some(file) => Session::load(file)?,
            None => Session::new(),
        };
        let default_model = match options.endpoint.api {
            Api::AnthropicMessages => "claude-sonnet-4-6",
            Api::OpenAiResponses | Api::OpenAiChat => "gpt-5.5",
        };
        Ok(Self {
            options,
            out,
            toolbox: Toolbox { skills, fence },
            session,
            model: options.model.clone().unwrap_or_else(|| default_model.to_owned()),
            turns: 0,
        })
    }

    pub fn begin(&mut self) -> io::Result<()> {
        let start = Event::Start {
            schema_version: SCHEMA_VERSION,
            agent: Some("builtin".to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            model: Some(self.model.clone()),
            skills: Some(self.toolbox.skills.iter().map(|skill| skill.name.clone()).collect()),
            tools: Some(self.tools().into_iter().map(|tool| tool.name).collect()),
            session: Some(self.session.id.clone()),
        };
        emit(self.out, &start)?;
        let prompt = self.prompt();
        self.session.messages.push(prompt);
        Ok(())
    }

    pub async fn converse(&mut self, client: &Client) -> io::Result<(Ending, Option<String>)> {
        while self.turns < self.options.max_turns {
            self.turns += 1;
            let reply = match client.send(&self.request()).await {
                Ok(reply) => reply,
                Err(error) => return Ok((ending_of(&error), Some(error.to_string()))),
            };
            let cut_off = reply.stop == Stop::MaxTokens;
            let calls = self.take_in(reply)?;
            if cut_off {
                let message = format!("the model's answer was cut off at {MAX_TOKENS} tokens");
                return Ok((Ending::OverBudget, Some(message)));
            }
            if calls.is_empty() {
                return Ok((Ending::Finished, None));
            }
            let mut results = Vec::new();
            for call in calls {
                results.push(self.call(call).await?);
            }
            self.session.messages.push(Message { role: Role::User, blocks: results });
        }
        let message = format!("not done after {}", counted(self.options.max_turns, "turn"));
        Ok((Ending::OverBudget, Some(message)))
    }

    pub fn finish(&mut self, ending: Ending, message: Option<String>) -> io::Result<()> {
        if let Some(file) = &self.options.session_file {
            self.session.save(file)?;
        }
        emit(self.out, &Event::End { ending, message, turns: u64::from(self.turns) })
    }

    /// A command for a skill brings the skill's instructions with it.
    fn prompt(&self) -> Message {
        let prompt = &self.options.prompt;
        let mut message = Message::user(prompt.clone());
        if let Some((skill, args)) = skills::commanded(&self.toolbox.skills, prompt) {
            let text = format!(
                "The user invoked the skill {:?}. Follow its instructions.\n\n{}",
                skill.name,
                skill.instructions(args)
            );
            message.blocks.push(Block::Text { text });
        }
        message
    }

    /// The tools that it may use.
    fn tools(&self) -> Vec<Tool> {
        let allowed = |name: &String| self.options.tools.as_ref().is_none_or(|tools| tools.contains(name));
        tools::definitions().into_iter().filter(|tool| allowed(&tool.name)).collect()
    }

    fn request(&self) -> Request {
        Request {
            model: self.model.clone(),
            system: Some(self.system()),
            messages: self.session.messages.clone(),
            tools: self.tools(),
            tool_choice: None,
            max_tokens: Some(MAX_TOKENS),
            temperature: None,
            stream: false,
        }
    }

    fn system(&self) -> String {
        let mut parts = vec![format!(
            "You are an agent that works in the folder {} with the tools you are given. Do what the user \
             asks, then say what you did. Nobody can answer questions while you work: where something is \
             left open, choose what is most sensible.",
            self.toolbox.fence.workspace().display()
        )];
        let offered: Vec<&Skill> = self.toolbox.skills.iter().filter(|skill| skill.model_may_use).collect();
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

    /// Tells what the model said, remembers it, and gives back what it wants done.
    fn take_in(&mut self, reply: Reply) -> io::Result<Vec<ToolCall>> {
        let usage = reply.usage;
        emit(
            self.out,
            &Event::Usage {
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
                // The APIs refuse blank text when it comes back to them.
                Block::Text { text } if text.trim().is_empty() => continue,
                Block::Text { text } => emit(self.out, &Event::Text { text: text.clone() })?,
                Block::ToolUse { id, name, input } => {
                    calls.push(ToolCall { id: id.clone(), name: name.clone(), input: input.clone() });
                }
                Block::Thinking { .. } => {}
                Block::ToolResult { .. } => continue,
            }
            kept.push(block);
        }
        if !kept.is_empty() {
            self.session.messages.push(Message { role: Role::Assistant, blocks: kept });
        }
        Ok(calls)
    }

    async fn call(&mut self, call: ToolCall) -> io::Result<Block> {
        let ToolCall { id, name, input } = call;
        emit(self.out, &Event::Tool { id: id.clone(), name: name.clone(), input: input.clone() })?;
        let allowed: Vec<String> = self.tools().into_iter().map(|tool| tool.name).collect();
        let outcome = match tools::NAMES.contains(&name.as_str()) && !allowed.contains(&name) {
            true => Err(format!("the tool {name} may not be used; there are {}", allowed.join(", "))).into(),
            false => self.toolbox.call(&name, &input).await,
        };
        let ok = outcome.result.is_ok();
        let (Ok(content) | Err(content)) = outcome.result;
        emit(self.out, &Event::ToolResult { id: id.clone(), ok, content: content.clone() })?;
        if let Some(name) = outcome.skill {
            emit(self.out, &Event::Skill { name, via: Via::Tool })?;
        }
        Ok(Block::ToolResult { tool_use_id: id, content, is_error: !ok })
    }
}

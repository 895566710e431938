//! One question with a form for its answer: asked, and sent back once if the form is broken.

use serde_json::Value;

use super::Sitting;
use super::cache::Cache;
use super::transport::{Transport, Unasked};
use practicum_agents::llm::{Block, Message, Reply, Request, Role, Stop, Tool};
use practicum_core::model::{Digest, Ended, Usage, Why};

/// How long an answer may be. Long enough for dozens of statements with quotes.
const MOST_TOKENS: u32 = 16_000;

/// How much JSON is looked for in an answer that is prose.
const MOST_TRIES: usize = 1_000;

/// Bump when the same question is answered or read in another way.
const GENERATION: &str = "1";

pub struct Question {
    pub system: String,
    pub text: String,
    /// Random, so it is no part of what is asked.
    pub fence: String,
    /// The form of the answer, as a tool that takes it.
    pub tool: Tool,
    /// The same question asked for another vote is another question.
    pub vote: u32,
}

/// Takes answers in, one after the other, and keeps what can be used of them.
pub trait Reading: Send {
    /// Whether an object is meant as the answer, right or wrong.
    fn is_meant(&self, answer: &Value) -> bool;

    /// Reads the answer of a round; the first round is 0. `Err` says what is missing or wrong.
    fn take_in(&mut self, answer: &Value, round: usize) -> Result<(), Problem>;

    /// Forgets all answers.
    fn start_over(&mut self);
}

/// What is missing or wrong in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub what: String,
    /// The request for a better answer; `None` if another round would not help.
    pub request: Option<String>,
}

impl Problem {
    /// A broken form: asked for again once, as a whole.
    pub fn of_form(what: String, round: usize) -> Self {
        let whole = || "Answer again, in the given form and completely.".to_owned();
        Self { what, request: (round == 0).then(whole) }
    }
}

/// The most often that one question is asked: at first, for a broken form, and for support.
const MOST_ROUNDS: usize = 3;

/// What became of a question.
pub struct Settled {
    pub usage: Usage,
    /// Why not everything has an answer.
    pub missing: Option<Why>,
}

impl Question {
    /// Asks, and asks again with what was wrong. What was answered before costs nothing.
    pub async fn settle(
        &self,
        transport: &Transport,
        model: &str,
        cache: Option<&Cache>,
        reading: &mut dyn Reading,
        sitting: &Sitting<'_>,
    ) -> Settled {
        let key = self.key(transport, model);
        let known = cache.and_then(|cache| cache.find(&key));
        if let Some(answers) = known {
            if replay(&answers, reading) {
                return Settled { usage: Usage::default(), missing: None };
            }
            reading.start_over();
        }
        let mut request = self.request(model);
        let mut usage = Usage::default();
        let mut answers = Vec::new();
        let mut problem = String::new();
        for round in 0..MOST_ROUNDS {
            let reply = match transport.ask(&request, sitting).await {
                Ok(reply) => reply,
                Err(Unasked::Cancelled) => {
                    return Settled { usage, missing: Some(Why::Ended(Ended::Cancelled)) };
                }
                Err(Unasked::Failed(error)) => {
                    problem = error.to_string();
                    break;
                }
            };
            usage.add(reply.usage);
            let answer = answer_in(&reply, reading);
            // One that could not be understood has its place too: it was a round.
            answers.push(answer.clone().unwrap_or_default());
            let read = match answer {
                Ok(answer) => reading.take_in(&answer, round),
                Err(what) => Err(Problem::of_form(what, round)),
            };
            let Err(wrong) = read else {
                if let Some(cache) = cache {
                    cache.keep(&key, &answers);
                }
                return Settled { usage, missing: None };
            };
            problem = wrong.what;
            let Some(again) = wrong.request else { break };
            request.messages.extend(repair(&reply, &format!("That cannot be used: {problem}. {again}")));
        }
        Settled { usage, missing: Some(Why::JudgeFailed(problem)) }
    }

    /// Everything that decides the answer.
    fn key(&self, transport: &Transport, model: &str) -> Digest {
        let text = self.text.replace(&self.fence, "fence");
        let vote = self.vote.to_string();
        let schema = self.tool.input_schema.to_string();
        let parts =
            [GENERATION, transport.identity(), model, &self.system, &text, &self.tool.name, &schema, &vote];
        Digest::of_parts(parts.map(str::as_bytes))
    }

    fn request(&self, model: &str) -> Request {
        Request {
            model: model.to_owned(),
            system: Some(self.system.clone()),
            messages: vec![Message::user(self.text.clone())],
            tools: vec![self.tool.clone()],
            tool_choice: Some(self.tool.name.clone()),
            max_tokens: Some(MOST_TOKENS),
            temperature: Some(0.0),
            stream: false,
        }
    }
}

/// Whether earlier answers are still enough.
fn replay(answers: &[Value], reading: &mut dyn Reading) -> bool {
    let mut enough = false;
    for (round, answer) in answers.iter().enumerate() {
        enough = reading.take_in(answer, round).is_ok();
    }
    enough
}

/// The tool's input, or the one object in the text that is meant as the answer.
fn answer_in(reply: &Reply, reading: &dyn Reading) -> Result<Value, String> {
    let called = reply.blocks.iter().find_map(|block| match block {
        Block::ToolUse { input, .. } if input.is_object() => Some(input.clone()),
        Block::ToolUse { .. } | Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } => {
            None
        }
    });
    if let Some(called) = called {
        return Ok(called);
    }
    let mut meant = objects_in(&reply.text());
    meant.retain(|object| reading.is_meant(object));
    meant.dedup();
    match (meant.len(), &reply.stop) {
        (1, _) => Ok(meant.remove(0)),
        (2.., _) => Err("there are several answers".to_owned()),
        (_, Stop::Refusal) => Err("the judge refused to answer".to_owned()),
        (_, Stop::MaxTokens) => Err("the answer was cut off".to_owned()),
        (_, Stop::EndTurn | Stop::ToolUse | Stop::Other(_)) => {
            Err("the answer is not the JSON that was asked for".to_owned())
        }
    }
}

/// Every JSON object in a text that is not part of another.
fn objects_in(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut from = 0;
    for _ in 0..MOST_TRIES {
        let Some(open) = text[from..].find('{').map(|at| from + at) else { break };
        let mut objects = serde_json::Deserializer::from_str(&text[open..]).into_iter::<Value>();
        match objects.next() {
            Some(Ok(object)) => {
                found.push(object);
                from = open + objects.byte_offset();
            }
            Some(Err(_)) | None => from = open + 1,
        }
    }
    found
}

/// The judge's own answer and what is said about it, as the conversation goes on.
fn repair(reply: &Reply, text: &str) -> Vec<Message> {
    let text = text.to_owned();
    let results: Vec<Block> = reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { id, .. } => {
                Some(Block::ToolResult { tool_use_id: id.clone(), content: text.clone(), is_error: true })
            }
            Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } => None,
        })
        .collect();
    // An answer without any block cannot stand in a conversation.
    if reply.blocks.is_empty() {
        return Vec::new();
    }
    let answered = Message { role: Role::Assistant, blocks: reply.blocks.clone() };
    let back =
        if results.is_empty() { Message::user(text) } else { Message { role: Role::User, blocks: results } };
    vec![answered, back]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Means objects with `a`.
    struct Meant;

    impl Reading for Meant {
        fn is_meant(&self, answer: &Value) -> bool {
            answer.get("a").is_some()
        }

        fn take_in(&mut self, _answer: &Value, _round: usize) -> Result<(), Problem> {
            Ok(())
        }

        fn start_over(&mut self) {}
    }

    #[test]
    fn an_answer_is_found_where_there_is_exactly_one() {
        let text = |text: &str| vec![Block::Text { text: text.to_owned() }];
        let call = |input: Value| vec![Block::ToolUse { id: "t".into(), name: "n".into(), input }];
        for (blocks, stop, expected) in [
            (call(json!({"a": 1})), Stop::ToolUse, Ok(json!({"a": 1}))),
            (
                text("Here:\n```json\n{\"a\": {\"b\": 2}}\n``` as {asked}"),
                Stop::EndTurn,
                Ok(json!({"a": {"b": 2}})),
            ),
            (text("It says {\"b\": 1}, so {\"a\": 1}"), Stop::EndTurn, Ok(json!({"a": 1}))),
            (text("{\"a\": 1} {\"a\": 1}"), Stop::EndTurn, Ok(json!({"a": 1}))),
            (text("The agent wrote {\"a\": 1}; I say {\"a\": 2}"), Stop::EndTurn, Err("several")),
            (text("{\"a\": [1,"), Stop::MaxTokens, Err("cut off")),
            (text("I can't."), Stop::Refusal, Err("refused")),
            (call(json!("{")), Stop::ToolUse, Err("not the JSON")),
            (text("It passes."), Stop::EndTurn, Err("not the JSON")),
            (text(&"{".repeat(100_000)), Stop::EndTurn, Err("not the JSON")),
            (vec![], Stop::EndTurn, Err("not the JSON")),
        ] {
            let reply = Reply { id: "m".into(), model: "m".into(), blocks, stop, usage: Usage::default() };
            match (answer_in(&reply, &Meant), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_fence_is_no_part_of_a_question() {
        let question = |fence: &str, vote| Question {
            system: "s".into(),
            text: format!("{fence}\nrecord\n{fence}\n"),
            fence: fence.to_owned(),
            tool: Tool { name: "t".into(), description: String::new(), input_schema: json!({}) },
            vote,
        };
        let transport = Transport::nowhere();
        let key = |question: Question, model: &str| question.key(&transport, model);
        assert_eq!(key(question("fence-1", 0), "m"), key(question("fence-2", 0), "m"));
        assert_ne!(key(question("fence-1", 0), "m"), key(question("fence-1", 1), "m"));
        assert_ne!(key(question("fence-1", 0), "m"), key(question("fence-1", 0), "n"));
    }
}

//! One question with a required form of answer. The judge is asked again if an answer cannot be used.

use std::sync::Arc;

use serde_json::Value;

use super::JudgeContext;
use super::answer_cache::AnswerCache;
use super::connection::{JudgeCallError, JudgeConnection};
use crate::workspace::pictures::JudgePicture;
use practicum_agents::llm::{
    ChatMessage, ContentBlock, ModelReply, ModelRequest, Role, StopReason, ToolDefinition,
};
use practicum_core::model::{AgentEnding, Digest, NotScoredReason, TokenUsage};

/// The longest answer in tokens: long enough for dozens of statements with quotes.
const MOST_TOKENS: u32 = 16_000;

/// The most places in a prose answer at which a JSON object is looked for.
const MOST_JSON_CANDIDATES: usize = 1_000;

/// The version of how questions are asked and answers read. Increase it when either changes, so that cached
/// answers are no longer used.
const ANSWER_GENERATION: &str = "1";

/// A question as it is sent to a judge.
pub struct JudgeQuestion {
    pub system: String,
    pub text: String,
    /// Pictures that belong to the question; may be empty.
    pub pictures: Arc<Vec<JudgePicture>>,
    /// The fence line in `text`. It is random, so it is not part of the cache key.
    pub fence: String,
    /// The form of the answer, as a tool whose input is the answer.
    pub tool: ToolDefinition,
    /// The number of the vote. Each vote is a separate question in the cache.
    pub vote: u32,
}

/// Reads the answers to one question, one after the other, and keeps the usable parts.
pub trait AnswerReader: Send {
    /// Says whether an object is meant as the answer, right or wrong.
    fn looks_like_answer(&self, answer: &Value) -> bool;

    /// Reads the answer of a round; the first round is 0. `Err` says what is missing or wrong.
    fn read_answer(&mut self, answer: &Value, round: usize) -> Result<(), AnswerProblem>;

    /// Forgets all answers.
    fn reset(&mut self);
}

/// A description of what is missing or wrong in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerProblem {
    pub description: String,
    /// The request for a better answer; `None` if another round would not help.
    pub request: Option<String>,
}

impl AnswerProblem {
    /// Makes the problem of a broken form. The complete answer is requested again, but only once.
    pub fn broken_form(what: String, round: usize) -> Self {
        let whole = || "Answer again, in the given form and completely.".to_owned();
        Self { description: what, request: (round == 0).then(whole) }
    }
}

/// The most rounds of one question: the first, one for a broken form, and one for missing support.
const MOST_ROUNDS: usize = 3;

/// The result of asking a question.
pub struct QuestionResult {
    pub usage: TokenUsage,
    /// The reason why some parts have no answer.
    pub missing: Option<NotScoredReason>,
}

impl JudgeQuestion {
    /// Asks the question, and asks again with a description of what was wrong. A cached answer costs nothing.
    pub async fn ask(
        &self,
        transport: &JudgeConnection,
        model: &str,
        cache: Option<&AnswerCache>,
        reading: &mut dyn AnswerReader,
        sitting: &JudgeContext<'_>,
    ) -> QuestionResult {
        let key = self.key(transport, model);
        let known = cache.and_then(|cache| cache.find(&key));
        if let Some(answers) = known {
            if replay(&answers, reading) {
                return QuestionResult { usage: TokenUsage::default(), missing: None };
            }
            reading.reset();
        }
        let mut request = self.build_request(model);
        let mut usage = TokenUsage::default();
        let mut answers = Vec::new();
        let mut problem = String::new();
        for round in 0..MOST_ROUNDS {
            let reply = match transport.ask(&request, sitting).await {
                Ok(reply) => reply,
                Err(JudgeCallError::Cancelled) => {
                    return QuestionResult {
                        usage,
                        missing: Some(NotScoredReason::Ended(AgentEnding::Cancelled)),
                    };
                }
                Err(JudgeCallError::Failed(error)) => {
                    problem = error.to_string();
                    break;
                }
            };
            usage.add(reply.usage);
            let answer = find_answer(&reply, reading);
            // An answer without a usable object is stored too, because the rounds are counted when answers are
            // replayed.
            answers.push(answer.clone().unwrap_or_default());
            let read = match answer {
                Ok(answer) => reading.read_answer(&answer, round),
                Err(what) => Err(AnswerProblem::broken_form(what, round)),
            };
            let Err(wrong) = read else {
                if let Some(cache) = cache {
                    cache.store(&key, &answers);
                }
                return QuestionResult { usage, missing: None };
            };
            problem = wrong.description;
            let Some(again) = wrong.request else { break };
            request
                .messages
                .extend(repair_messages(&reply, &format!("That cannot be used: {problem}. {again}")));
        }
        QuestionResult { usage, missing: Some(NotScoredReason::JudgeFailed(problem)) }
    }

    /// Gives the cache key: a digest of everything that the answer depends on.
    fn key(&self, transport: &JudgeConnection, model: &str) -> Digest {
        let text = self.text.replace(&self.fence, "fence");
        let vote = self.vote.to_string();
        let schema = self.tool.input_schema.to_string();
        let parts = [
            ANSWER_GENERATION,
            transport.identity(),
            model,
            &self.system,
            &text,
            &self.tool.name,
            &schema,
            &vote,
        ];
        let pictures = self.pictures.iter().map(|picture| picture.data.as_bytes());
        Digest::of_parts(parts.map(str::as_bytes).into_iter().chain(pictures))
    }

    /// Gives the text of the question, and each picture below its number.
    fn message(&self) -> ChatMessage {
        let mut message = ChatMessage::user(self.text.clone());
        for (at, JudgePicture { media_type, data, label: _ }) in self.pictures.iter().enumerate() {
            message.blocks.push(ContentBlock::Text { text: format!("Picture {}:", at + 1) });
            let media_type = (*media_type).to_owned();
            message.blocks.push(ContentBlock::Image { media_type, data: data.clone() });
        }
        message
    }

    fn build_request(&self, model: &str) -> ModelRequest {
        ModelRequest {
            model: model.to_owned(),
            system: Some(self.system.clone()),
            messages: vec![self.message()],
            tools: vec![self.tool.clone()],
            tool_choice: Some(self.tool.name.clone()),
            max_tokens: Some(MOST_TOKENS),
            temperature: Some(0.0),
            stream: false,
        }
    }
}

/// Reads cached answers again and says whether they still answer the question completely.
fn replay(answers: &[Value], reading: &mut dyn AnswerReader) -> bool {
    let mut enough = false;
    for (round, answer) in answers.iter().enumerate() {
        enough = reading.read_answer(answer, round).is_ok();
    }
    enough
}

/// Finds the answer in a reply: the tool's input, or the only object in the text that is meant as the answer.
fn find_answer(reply: &ModelReply, reading: &dyn AnswerReader) -> Result<Value, String> {
    let called = reply.blocks.iter().find_map(|block| match block {
        ContentBlock::ToolUse { input, .. } if input.is_object() => Some(input.clone()),
        ContentBlock::ToolUse { .. }
        | ContentBlock::Text { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolResult { .. } => None,
    });
    if let Some(called) = called {
        return Ok(called);
    }
    let mut meant = find_json_objects(&reply.text());
    meant.retain(|object| reading.looks_like_answer(object));
    meant.dedup();
    match (meant.len(), &reply.stop) {
        (1, _) => Ok(meant.remove(0)),
        (2.., _) => Err("there are several answers".to_owned()),
        (_, StopReason::Refusal) => Err("the judge refused to answer".to_owned()),
        (_, StopReason::MaxTokens) => Err("the answer was cut off".to_owned()),
        (_, StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_)) => {
            Err("the answer is not the JSON that was asked for".to_owned())
        }
    }
}

/// Finds every JSON object in a text that is not inside another.
fn find_json_objects(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut from = 0;
    for _ in 0..MOST_JSON_CANDIDATES {
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

/// Makes the messages that continue the conversation: the judge's own answer, and what was wrong with it.
fn repair_messages(reply: &ModelReply, text: &str) -> Vec<ChatMessage> {
    let text = text.to_owned();
    let results: Vec<ContentBlock> = reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::ToolUse { id, .. } => Some(ContentBlock::ToolResult {
                tool_use_id: id.clone(),
                content: text.clone(),
                is_error: true,
            }),
            ContentBlock::Text { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolResult { .. } => None,
        })
        .collect();
    // A message without any block is not allowed in a conversation.
    if reply.blocks.is_empty() {
        return Vec::new();
    }
    let answered = ChatMessage { role: Role::Assistant, blocks: reply.blocks.clone() };
    let back = if results.is_empty() {
        ChatMessage::user(text)
    } else {
        ChatMessage { role: Role::User, blocks: results }
    };
    vec![answered, back]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A reader that takes any object with the key `a` for an answer.
    struct Meant;

    impl AnswerReader for Meant {
        fn looks_like_answer(&self, answer: &Value) -> bool {
            answer.get("a").is_some()
        }

        fn read_answer(&mut self, _answer: &Value, _round: usize) -> Result<(), AnswerProblem> {
            Ok(())
        }

        fn reset(&mut self) {}
    }

    #[test]
    fn an_answer_is_found_where_there_is_exactly_one() {
        let text = |text: &str| vec![ContentBlock::Text { text: text.to_owned() }];
        let call = |input: Value| vec![ContentBlock::ToolUse { id: "t".into(), name: "n".into(), input }];
        for (blocks, stop, expected) in [
            (call(json!({"a": 1})), StopReason::ToolUse, Ok(json!({"a": 1}))),
            (
                text("Here:\n```json\n{\"a\": {\"b\": 2}}\n``` as {asked}"),
                StopReason::EndTurn,
                Ok(json!({"a": {"b": 2}})),
            ),
            (text("It says {\"b\": 1}, so {\"a\": 1}"), StopReason::EndTurn, Ok(json!({"a": 1}))),
            (text("{\"a\": 1} {\"a\": 1}"), StopReason::EndTurn, Ok(json!({"a": 1}))),
            (text("The agent wrote {\"a\": 1}; I say {\"a\": 2}"), StopReason::EndTurn, Err("several")),
            (text("{\"a\": [1,"), StopReason::MaxTokens, Err("cut off")),
            (text("I can't."), StopReason::Refusal, Err("refused")),
            (call(json!("{")), StopReason::ToolUse, Err("not the JSON")),
            (text("It passes."), StopReason::EndTurn, Err("not the JSON")),
            (text(&"{".repeat(100_000)), StopReason::EndTurn, Err("not the JSON")),
            (vec![], StopReason::EndTurn, Err("not the JSON")),
        ] {
            let reply =
                ModelReply { id: "m".into(), model: "m".into(), blocks, stop, usage: TokenUsage::default() };
            match (find_answer(&reply, &Meant), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_fence_is_no_part_of_a_question() {
        let question = |fence: &str, vote| JudgeQuestion {
            system: "s".into(),
            text: format!("{fence}\nrecord\n{fence}\n"),
            pictures: Arc::default(),
            fence: fence.to_owned(),
            tool: ToolDefinition { name: "t".into(), description: String::new(), input_schema: json!({}) },
            vote,
        };
        let transport = JudgeConnection::for_tests();
        let key = |question: JudgeQuestion, model: &str| question.key(&transport, model);
        assert_eq!(key(question("fence-1", 0), "m"), key(question("fence-2", 0), "m"));
        assert_ne!(key(question("fence-1", 0), "m"), key(question("fence-1", 1), "m"));
        assert_ne!(key(question("fence-1", 0), "m"), key(question("fence-1", 0), "n"));
        let picture = |data: &str| {
            let picture = JudgePicture { label: "a".into(), media_type: "image/png", data: data.into() };
            JudgeQuestion { pictures: Arc::new(vec![picture]), ..question("fence-1", 0) }
        };
        assert_ne!(key(picture("AAAA"), "m"), key(question("fence-1", 0), "m"));
        assert_ne!(
            key(picture("AAAA"), "m"),
            key(picture("BBBB"), "m"),
            "another picture is another question"
        );
    }
}

//! Statements that only a reader can decide.
//!
//! In: a case, what was seen, the statements. Out: a `Finding` for each, with quotes that were
//! checked. Never: sees which arm, version or agent it is judging.

mod answer;
mod evidence;
mod prompt;
mod votes;

use std::sync::Arc;

use tokio::sync::Semaphore;

pub use evidence::Exhibit;

use crate::llm::{Api, Block, Client, LlmError, Message, Reply, Request, Role, Tool};
use crate::model::{Check, CheckKind, Finding, Judged, Usage, Verdict, Why};

/// A judge that can be asked.
pub struct Judge {
    client: Client,
    model: String,
    votes: u32,
    /// Judges have a limit of their own: they are cheaper than agents and rate limited apart.
    permits: Arc<Semaphore>,
}

/// How many judge calls are open at once.
const AT_ONCE: usize = 16;

/// How long an answer may be. Long enough for dozens of statements with quotes.
const MOST_TOKENS: u32 = 16_000;

/// One statement to decide, under the id of its check.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'s> {
    pub id: &'s str,
    pub judged: &'s Judged,
}

/// A statement decided, or the reason why it was not.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub id: String,
    pub finding: Finding,
    pub flags: Vec<String>,
}

/// What judging one trial gave and cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Marks {
    pub marks: Vec<Mark>,
    pub usage: Usage,
}

/// The judged checks among these.
pub fn statements<'c>(checks: impl IntoIterator<Item = &'c Check>) -> Vec<Statement<'c>> {
    let judged = checks.into_iter().filter_map(|check| match &check.kind {
        CheckKind::Judged(judged) => Some(Statement { id: &check.id, judged }),
        CheckKind::Exact(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    });
    judged.collect()
}

/// The same reason for every statement.
pub fn none_marked(statements: &[Statement<'_>], why: &Why) -> Marks {
    let mark = |statement: &Statement<'_>| Mark {
        id: statement.id.to_owned(),
        finding: Finding::not_scored(why.clone()),
        flags: Vec::new(),
    };
    Marks { marks: statements.iter().map(mark).collect(), usage: Usage::default() }
}

impl Judge {
    pub fn new(client: Client, model: String) -> Self {
        Self { client, model, votes: 1, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Asked this often about the same; the majority decides.
    #[must_use]
    pub fn with_votes(mut self, votes: u32) -> Self {
        self.votes = votes.max(1);
        self
    }

    /// The same judge, asked at another address. Both keep to one limit.
    pub fn at(&self, address: impl FnOnce(Api) -> String) -> Self {
        let client = self.client.at(address(self.client.endpoint().api));
        Self { client, model: self.model.clone(), votes: self.votes, permits: Arc::clone(&self.permits) }
    }

    pub async fn mark(&self, statements: &[Statement<'_>], exhibit: &Exhibit<'_>) -> Marks {
        let mut usage = Usage::default();
        let mut rounds = Vec::new();
        for _ in 0..self.votes {
            let marks = self.vote(statements, exhibit).await;
            usage.add(marks.usage);
            rounds.push(marks.marks);
        }
        Marks { marks: votes::majority(rounds), usage }
    }

    /// Asks about all statements in one call. An answer that breaks the contract is sent back
    /// once with what is wrong; what is still missing then stays unscored.
    async fn vote(&self, statements: &[Statement<'_>], exhibit: &Exhibit<'_>) -> Marks {
        let evidence = exhibit.text();
        let fence = prompt::fence(&evidence);
        let mut request = self.request(prompt::question(statements, &evidence, &fence));
        let mut usage = Usage::default();
        let mut decided: Vec<Mark> = Vec::new();
        let mut problem = String::new();
        for attempt in 0..2 {
            let reply = match self.ask(&request).await {
                Ok(reply) => reply,
                Err(error) => {
                    problem = error.to_string();
                    break;
                }
            };
            usage.add(reply.usage);
            let open: Vec<Statement<'_>> = statements
                .iter()
                .filter(|one| !decided.iter().any(|mark| mark.id == one.id))
                .copied()
                .collect();
            let read = answer::read(&reply, &open, &evidence);
            decided.extend(read.marks);
            match read.problem {
                None => break,
                Some(wrong) => problem = wrong,
            }
            if attempt == 0 {
                request.messages.extend(repair(&reply, &problem));
            }
        }
        let marks = statements
            .iter()
            .map(|statement| match decided.iter().find(|mark| mark.id == statement.id) {
                Some(mark) => mark.clone(),
                None => Mark {
                    id: statement.id.to_owned(),
                    finding: Finding::not_scored(Why::JudgeFailed(problem.clone())),
                    flags: Vec::new(),
                },
            })
            .collect();
        Marks { marks, usage }
    }

    async fn ask(&self, request: &Request) -> Result<Reply, LlmError> {
        // The semaphore is never closed; if it were, asking unlimited is the lesser harm.
        let _permit = self.permits.acquire().await.ok();
        self.client.send(request).await
    }

    fn request(&self, question: String) -> Request {
        Request {
            model: self.model.clone(),
            system: Some(prompt::SYSTEM.to_owned()),
            messages: vec![Message::user(question)],
            tools: vec![Tool {
                name: answer::TOOL.to_owned(),
                description: "Report the mark of every statement.".to_owned(),
                input_schema: answer::schema(),
            }],
            tool_choice: Some(answer::TOOL.to_owned()),
            max_tokens: Some(MOST_TOKENS),
            temperature: Some(0.0),
            stream: false,
        }
    }
}

/// The judge's own answer and what is wrong with it, as the conversation goes on.
fn repair(reply: &Reply, problem: &str) -> Vec<Message> {
    let text = format!("That cannot be used: {problem}. Report again, every statement once, by its id.");
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

impl Mark {
    pub fn passed(&self) -> bool {
        self.finding.verdict == Verdict::Pass
    }
}

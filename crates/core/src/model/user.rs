//! A simulated user, who answers the agent in place of a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JudgeUsage;

/// The number of replies of a simulated user, if its case does not say another.
pub const DEFAULT_USER_TURNS: u32 = 8;

/// Who answers the agent after the messages of the case are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulatedUser {
    /// Answers that are sent in this order.
    Answers(Vec<ScriptedAnswer>),
    /// Answers that depend on what the agent says.
    Rules(ReplyRules),
    /// A model that plays a person.
    Model(UserPersona),
}

impl SimulatedUser {
    /// Says whether a model is asked for the replies.
    pub fn needs_model(&self) -> bool {
        matches!(self, SimulatedUser::Model(_))
    }

    /// Gives the most replies that the user sends.
    pub fn max_turns(&self) -> u32 {
        match self {
            SimulatedUser::Answers(answers) => u32::try_from(answers.len()).unwrap_or(u32::MAX),
            SimulatedUser::Rules(rules) => rules.max_turns,
            SimulatedUser::Model(persona) => persona.max_turns,
        }
    }
}

/// One answer of a user whose answers are written down in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedAnswer {
    /// What the user says.
    pub text: String,
    /// When the answer is sent. If it is not, the conversation ends there.
    pub condition: ReplyCondition,
}

/// When an answer of a simulated user fits the agent's last message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyCondition {
    /// Whether the message must ask something.
    pub must_ask: bool,
    /// A pattern (Python's `re` syntax) that the message must match somewhere.
    pub pattern: Option<String>,
}

/// A user who answers by rules. The first rule that fits the agent's message decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyRules {
    /// The rules, in their order.
    pub rules: Vec<ReplyRule>,
    /// The answer to a question that no rule fits.
    pub otherwise: Option<String>,
    /// The most replies.
    pub max_turns: u32,
}

/// One rule of a simulated user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyRule {
    /// When the rule fits.
    pub condition: ReplyCondition,
    /// What the user then does.
    pub reply: RuleReply,
}

/// What a rule of a simulated user does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleReply {
    /// The user says one of these texts: the first in the first repetition of the case, the next in the next. Never empty.
    Say(Vec<String>),
    /// The user is done, and the conversation ends.
    Done,
}

/// A person that a model plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserPersona {
    /// Descriptions of the person: the first is played in the first repetition of the case, the next in the next. Empty
    /// for just anybody.
    pub personas: Vec<String>,
    /// What the person knows beyond the messages of the case.
    pub facts: Vec<String>,
    /// What the person wants to have reached before they are done.
    pub goal: Option<String>,
    /// The most replies.
    pub max_turns: u32,
}

/// The part of a simulated user in a trial: how often it replied, how the conversation ended, and what its model used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserRecord {
    /// The number of replies that were sent to the agent.
    pub replies: u32,
    /// How the conversation ended; `None` if the agent's process ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<UserEnding>,
    /// The reason of the ending, if there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The tokens and the cost of the model that played the user. They are not among those of the agent and the judge.
    /// `None` if no model was asked or stored answers were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spending: Option<JudgeUsage>,
}

/// How a conversation with a simulated user ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UserEnding {
    /// The user was done.
    Done,
    /// Every answer was sent.
    AnswersUsed,
    /// The agent did not ask, and the next answer is sent only to a question.
    AgentDidNotAsk,
    /// The agent's message did not match, and the next answer is sent only if it does.
    AgentDidNotMatch,
    /// The agent asked something that the user has no answer to.
    NoAnswer,
    /// The user would have gone on, but had sent as many replies as it may.
    NeverDone,
    /// The reply could not be used, so it was not sent.
    UnusableReply,
    /// The reply had what a check expects and the user was not told, so it was not sent.
    GaveAnswerAway,
    /// The model that plays the user gave no reply.
    ModelFailed,
}

impl UserEnding {
    /// Says whether the user itself failed, so that the trial shows nothing about the agent.
    pub fn is_user_failure(self) -> bool {
        match self {
            UserEnding::NeverDone
            | UserEnding::UnusableReply
            | UserEnding::GaveAnswerAway
            | UserEnding::ModelFailed => true,
            UserEnding::Done
            | UserEnding::AnswersUsed
            | UserEnding::AgentDidNotAsk
            | UserEnding::AgentDidNotMatch
            | UserEnding::NoAnswer => false,
        }
    }

    /// Describes the ending for people.
    pub fn describe(self) -> &'static str {
        match self {
            UserEnding::Done => "the simulated user was done",
            UserEnding::AnswersUsed => "every answer was sent",
            UserEnding::AgentDidNotAsk => "the agent did not ask, so the next answer was not sent",
            UserEnding::AgentDidNotMatch => {
                "the agent's message did not match, so the next answer was not sent"
            }
            UserEnding::NoAnswer => "the simulated user has no answer to the agent's question",
            UserEnding::NeverDone => "the simulated user was not done after its last reply",
            UserEnding::UnusableReply => "the simulated user's reply was not sent",
            UserEnding::GaveAnswerAway => {
                "the simulated user's reply was not sent, because it gives away what a check expects"
            }
            UserEnding::ModelFailed => "the model that plays the user gave no reply",
        }
    }
}

//! The ways in which an agent's execution of a case can end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened to the agent's process. Says nothing about pass or fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnding {
    /// The agent said it was done.
    Finished,
    /// The time limit of the trial ended the agent.
    TimedOut,
    /// The agent stopped to ask a person a question.
    AskedUser,
    /// The provider of the model refused requests because there were too many.
    RateLimited,
    /// The agent is not logged in, or its key was refused.
    AuthFailed,
    /// The model API failed or could not be reached.
    ApiFailed,
    /// The agent's process exited, and its stream does not say why.
    Crashed,
    /// The program of the agent could not be started.
    NotLaunched,
    /// The agent was not started, because something that its case needs is missing or not allowed.
    NotStarted,
    /// The setup script failed, so the agent was not started.
    SetupFailed,
    /// A limit of turns, tokens or money ended the agent.
    OverBudget,
    /// A limit of memory, processes, processor time, open files or disk ended the agent.
    OverLimit,
    /// The simulated user gave no reply that could be sent, so the conversation is not complete.
    NoReply,
    /// The run was stopped while the agent worked.
    Cancelled,
    /// Workers took the trial and none of them finished it, so nobody knows how the agent ended.
    Lost,
}

impl AgentEnding {
    /// Every ending.
    pub const ALL: [AgentEnding; 15] = [
        AgentEnding::Finished,
        AgentEnding::TimedOut,
        AgentEnding::AskedUser,
        AgentEnding::RateLimited,
        AgentEnding::AuthFailed,
        AgentEnding::ApiFailed,
        AgentEnding::Crashed,
        AgentEnding::NotLaunched,
        AgentEnding::NotStarted,
        AgentEnding::SetupFailed,
        AgentEnding::OverBudget,
        AgentEnding::OverLimit,
        AgentEnding::NoReply,
        AgentEnding::Cancelled,
        AgentEnding::Lost,
    ];

    /// Gives the key under `endings` in a summary.
    pub fn name(self) -> &'static str {
        match self {
            AgentEnding::Finished => "finished",
            AgentEnding::TimedOut => "timed_out",
            AgentEnding::AskedUser => "asked_user",
            AgentEnding::RateLimited => "rate_limited",
            AgentEnding::AuthFailed => "auth_failed",
            AgentEnding::ApiFailed => "api_failed",
            AgentEnding::Crashed => "crashed",
            AgentEnding::NotLaunched => "not_launched",
            AgentEnding::NotStarted => "not_started",
            AgentEnding::SetupFailed => "setup_failed",
            AgentEnding::OverBudget => "over_budget",
            AgentEnding::OverLimit => "over_limit",
            AgentEnding::NoReply => "no_reply",
            AgentEnding::Cancelled => "cancelled",
            AgentEnding::Lost => "lost",
        }
    }

    /// Says whether the agent came to its end, so that its work can be graded.
    pub fn can_be_graded(self) -> bool {
        match self {
            AgentEnding::Finished => true,
            AgentEnding::TimedOut
            | AgentEnding::AskedUser
            | AgentEnding::RateLimited
            | AgentEnding::AuthFailed
            | AgentEnding::ApiFailed
            | AgentEnding::Crashed
            | AgentEnding::NotLaunched
            | AgentEnding::NotStarted
            | AgentEnding::SetupFailed
            | AgentEnding::OverBudget
            | AgentEnding::OverLimit
            | AgentEnding::NoReply
            | AgentEnding::Cancelled
            | AgentEnding::Lost => false,
        }
    }

    /// Describes the ending for people.
    pub fn describe(self) -> &'static str {
        match self {
            AgentEnding::Finished => "the agent finished",
            AgentEnding::TimedOut => "the agent hit the time limit",
            AgentEnding::AskedUser => "the agent stopped to ask a person",
            AgentEnding::RateLimited => "the agent was rate limited",
            AgentEnding::AuthFailed => "the agent could not log in",
            AgentEnding::ApiFailed => "the agent lost the model API",
            AgentEnding::Crashed => "the agent crashed",
            AgentEnding::NotLaunched => "the agent could not be started",
            AgentEnding::NotStarted => "the agent was not started",
            // The setup script comes before the agent, so the agent was not started.
            AgentEnding::SetupFailed => "the agent was not started: the setup script failed",
            AgentEnding::OverBudget => "the agent went over its budget",
            AgentEnding::OverLimit => "the agent went over a limit of its resources",
            AgentEnding::NoReply => "the simulated user gave no reply that could be sent",
            AgentEnding::Cancelled => "the agent was cancelled",
            AgentEnding::Lost => "the trial was lost: no worker gave a result that can be used",
        }
    }
}

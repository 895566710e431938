use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened to the agent's process. Says nothing about pass or fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The agent said it was done.
    Finished,
    /// Our time limit ended it.
    TimedOut,
    /// It stopped to ask a person, and nobody was there.
    AskedUser,
    RateLimited,
    AuthFailed,
    ApiFailed,
    /// It exited in a way that its own stream does not explain.
    Crashed,
    NotLaunched,
    /// The agent was not started, because something that its case needs is missing or not allowed.
    NotStarted,
    /// The room could not be made ready, so the agent was never asked.
    SetupFailed,
    /// A budget (turns, tokens, money) ended it.
    OverBudget,
    Cancelled,
}

impl Ended {
    pub const ALL: [Ended; 12] = [
        Ended::Finished,
        Ended::TimedOut,
        Ended::AskedUser,
        Ended::RateLimited,
        Ended::AuthFailed,
        Ended::ApiFailed,
        Ended::Crashed,
        Ended::NotLaunched,
        Ended::NotStarted,
        Ended::SetupFailed,
        Ended::OverBudget,
        Ended::Cancelled,
    ];

    /// The key under `endings` in a summary.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Finished => "finished",
            Ended::TimedOut => "timed_out",
            Ended::AskedUser => "asked_user",
            Ended::RateLimited => "rate_limited",
            Ended::AuthFailed => "auth_failed",
            Ended::ApiFailed => "api_failed",
            Ended::Crashed => "crashed",
            Ended::NotLaunched => "not_launched",
            Ended::NotStarted => "not_started",
            Ended::SetupFailed => "setup_failed",
            Ended::OverBudget => "over_budget",
            Ended::Cancelled => "cancelled",
        }
    }

    /// Whether the agent had its say, so that its work can be marked at all.
    pub fn can_be_marked(self) -> bool {
        match self {
            Ended::Finished => true,
            Ended::TimedOut
            | Ended::AskedUser
            | Ended::RateLimited
            | Ended::AuthFailed
            | Ended::ApiFailed
            | Ended::Crashed
            | Ended::NotLaunched
            | Ended::NotStarted
            | Ended::SetupFailed
            | Ended::OverBudget
            | Ended::Cancelled => false,
        }
    }

    pub fn in_words(self) -> &'static str {
        match self {
            Ended::Finished => "the agent finished",
            Ended::TimedOut => "the agent hit the time limit",
            Ended::AskedUser => "the agent stopped to ask a person",
            Ended::RateLimited => "the agent was rate limited",
            Ended::AuthFailed => "the agent could not log in",
            Ended::ApiFailed => "the agent lost the model API",
            Ended::Crashed => "the agent crashed",
            Ended::NotLaunched => "the agent could not be started",
            Ended::NotStarted => "the agent was not started",
            // No agent was asked to do anything.
            Ended::SetupFailed => "the agent was not started: the setup script failed",
            Ended::OverBudget => "the agent went over its budget",
            Ended::Cancelled => "the agent was cancelled",
        }
    }
}

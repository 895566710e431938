//! The domain types: suites, cases, checks, trials, records, verdicts, summaries.
//!
//! In: nothing. Out: types that are valid once built. Never: I/O, a file format, another module.

mod activation;
mod activation_evidence;
mod activation_summary;
mod agent_ending;
mod case;
mod check;
mod decimals;
mod diagnostic;
mod digest;
mod duration;
mod estimate;
mod gate;
mod mock;
mod noise;
mod observation;
mod outcome;
mod path;
mod plural;
mod probe;
mod ratio;
mod record;
mod remarks;
mod sandbox;
mod skill_judgement;
mod status;
mod suite;
mod summary;
#[cfg(any(test, feature = "test-helpers"))]
pub mod testing;
mod trial;
mod user;
mod verdict;
mod verdict_change;

pub use activation::{ActivationOutcome, ActivationPrediction, SkillUse};
pub use activation_evidence::{SkillTextFinding, TextReached, UncertainActivation};
pub use activation_summary::{
    ActivationRates, ActivationSummary, CaseActivationRate, NamedActivationRates, PredictedActivation,
    SkillRouteCount,
};
pub use agent_ending::AgentEnding;
pub use case::{
    Case, CasePrompt, Fixture, FixtureAccess, InlineFile, PassRule, ScoreOf, ScoreRule, StagedSkillName,
    WorkspaceBase, WorkspaceSpec,
};
pub use check::{
    ActivationCheck, ActivationExpectation, ActivationSource, Check, CheckCommand, CheckEvidence, CheckKind,
    CheckNeed, CheckPermissions, CheckTarget, CheckWeight, CheckedText, CommandEnd, CommandOutcome,
    JudgedStatement, OutputSection, Rule, ScoreScale, SectionField, SectionTier, UrlChecker, WorkspaceView,
};
pub use decimals::decimals_to_compare;
pub use diagnostic::{Diagnostic, Diagnostics, Severity, Span, TextPosition};
pub use digest::Digest;
pub use duration::{MAX_DURATION, duration_from_seconds, format_duration, parse_duration};
pub use estimate::{ComparisonOutlook, ComparisonVerdict, Estimate};
pub use gate::{Gate, GateName, GateResult};
pub use mock::{
    CommandArguments, CommandMock, CommandRule, InputCondition, McpAnswer, McpReply, McpServerMock,
    McpToolMock, MockCall, MockOutcome, MockedTool, Mocks, ServerRecording, ServerRole, is_mock_name,
};
pub use noise::{Baseline, Noise, NoisyCase};
pub use observation::{
    ActivatedSkill, ActivationEvidence, Canary, FileChange, FileChangeKind, GivenFile, GivenFileFate,
    MissingEvidence, Observation, ObservedActivation, RefusedSkill, SkillRefusalSource, Step, TokenUsage,
    ToolCall,
};
pub use outcome::Outcome;
pub use path::RelPath;
pub use plural::count_with_noun;
pub use probe::{ProbeFailure, ProbeFailureKind, ProbeRecord};
pub use ratio::Ratio;
pub(crate) use record::SCORE_ROUNDING;
pub use record::{FailureKind, JudgeInfo, JudgeUsage, RepeatDigests, TrialRecord};
pub use remarks::{AgentClaim, EvalFinding, GradingDoubts, JudgeVote, Remarks, ShortenedEvidence};
pub use sandbox::SandboxMode;
pub use skill_judgement::SkillJudgement;
pub use status::{CaseStatus, DecidingRate, RunStatus};
pub use suite::{
    JudgePolicy, JudgeTransportChoice, LoadedSuite, Origin, Provider, RunPolicy, SkillRef, SkillStatement,
    Suite, TYPE_ALIGNMENT_ID, UnsupportedPassPolicy,
};
pub use summary::{
    ActivatedCounts, ArmsResult, ArmsSummary, CaseSample, CaseScore, CaseStability, CaseSummary,
    CheckSummary, FrontierPoint, FrontierStanding, JudgingSummary, PassRate, Reliability, RivalSkills,
    SavedSpending, SuiteArmsResult, Summary, TrialTotals, VarianceShares, VoidPair,
};
pub use trial::{Arm, Condition, SkillUseMode, Trial, TrialId};
pub use user::{
    DEFAULT_USER_TURNS, ReplyCondition, ReplyRule, ReplyRules, RuleReply, ScriptedAnswer, SimulatedUser,
    UserEnding, UserPersona, UserRecord,
};
pub use verdict::{
    ChangeNeeded, CheckFinding, CheckResult, CriteriaThresholds, NotScoredReason, ScoreWeight, Verdict, title,
};
pub use verdict_change::{VerdictChange, changed_verdicts};

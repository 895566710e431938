//! The domain: what an exam is made of.
//!
//! In: nothing. Out: types that cannot be wrong once built. Never: I/O, a file format, another module.

mod case;
mod check;
mod counted;
mod diagnostic;
mod digest;
mod digits;
mod duration;
mod ended;
mod estimate;
mod gate;
mod noise;
mod observation;
mod path;
mod probe;
mod ratio;
mod record;
mod remarks;
mod sandbox;
mod skill_judged;
mod standing;
mod suite;
mod summary;
#[cfg(any(test, feature = "test-helpers"))]
pub mod testing;
mod trial;
mod verdict;
mod verdict_change;

pub use case::{Access, Base, Case, Fixture, PassRule, Room, SkillName, Stimulus};
pub use check::{
    Activation, By, Check, CheckKind, CheckedText, Evidence, Expect, Field, Judged, Leave, LooksAt, Need,
    Network, Rule, Scale, Section, Tier, WorkspaceView,
};
pub use counted::counted;
pub use diagnostic::{Diagnostic, Diagnostics, Position, Severity, Span};
pub use digest::Digest;
pub use digits::digits_beside;
pub use duration::{LONGEST_TIME, format_duration, parse_duration};
pub use ended::Ended;
pub use estimate::{Compared, Estimate};
pub use gate::{Gate, GateName, GateResult};
pub use noise::{Noise, NoisyCase};
pub use observation::{
    Activated, ActivationEvidence, Canary, Change, Fate, FileChange, Fired, Given, Observation, Refused,
    RefusedBy, Step, ToolCall, Usage,
};
pub use path::RelPath;
pub use probe::{ProbeRecord, Trouble, TroubleKind};
pub use ratio::Ratio;
pub use record::{ActivationOutcome, JudgedBy, Judging, Prediction, SkillUse, TrialRecord};
pub use remarks::{Claim, Doubts, EvalFinding, Remarks, ShortenedEvidence, Vote};
pub use sandbox::SandboxMode;
pub use skill_judged::SkillJudged;
pub use standing::{CaseStanding, Standing};
pub use suite::{
    JudgePolicy, Lowered, Origin, Provider, RunPolicy, SkillRef, SkillStatement, Suite, TYPE_ALIGNMENT,
    Transport, UnsupportedPass,
};
pub use summary::{
    ActivationPart, ActivationRates, ActivationSummary, ArmsOfSuite, ArmsResult, ArmsSummary, CaseSummary,
    CheckSummary, FireRate, FiredCount, JudgingSummary, PassRate, PredictedActivation, Reliability, Rivals,
    Routed, Sample, Summary, Totals, VoidPair,
};
pub use trial::{Arm, Condition, Mode, Trial, TrialId};
pub use verdict::{ChangeNeeded, CheckResult, CriteriaThresholds, Finding, Verdict, Why, title};
pub use verdict_change::{VerdictChange, changed_verdicts};

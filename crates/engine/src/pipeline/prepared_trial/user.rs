//! The simulated user of a trial: connects it to the agent, and says what its ending means for the trial.

use super::{PreparedTrial, register};
use crate::grade::judge::JudgeContext;
use crate::pipeline::run_context::RunContext;
use crate::pipeline::simulated_user::{UserInputs, UserSession};
use crate::plan::applicable_checks;
use crate::workspace::run::{Conversation, ConversationResult, ConversationUser, run_conversation};
use practicum_agents::gateway::{GatewayScope, ScopeKind};
use practicum_core::model::{
    AgentEnding, CasePrompt, CheckKind, Observation, SimulatedUser, UserEnding, UserRecord,
};

impl PreparedTrial<'_> {
    /// Runs the conversation of the agent with the simulated user, if the case has one.
    pub(super) async fn converse(&self, context: &RunContext, talk: &Conversation<'_>) -> ConversationResult {
        let cancel = &context.stop.cancel;
        let Some(user) = self.case.user.as_ref().filter(|_| self.probed_skill.is_none()) else {
            return run_conversation(talk, &self.workspace, cancel, None).await;
        };
        let scope = self.user_scope(user);
        let judge = self.services.judge.as_ref().ok().filter(|_| user.needs_model());
        let model = judge.map(|judge| {
            let judge = match &scope {
                Some(scope) => judge.at_address(|api| scope.base_url_for(api)),
                None => judge.as_ref().clone(),
            };
            (judge, JudgeContext { marker: &self.marker, cancel })
        });
        let mut session = UserSession::new(UserInputs {
            user,
            prompts: self.turns(),
            checks: applicable_checks(self.case, &self.trial.condition),
            context: self.case.context.as_deref(),
            attempt: self.trial.attempt,
            model,
            prices: self.services.prices(context.ledger.prices()),
            scrubber: &context.scrubber,
        });
        let answering: &mut dyn ConversationUser = &mut session;
        let mut conversed = run_conversation(talk, &self.workspace, cancel, Some(answering)).await;
        if let Some(scope) = &scope {
            let notes = scope.finish().into_iter();
            conversed
                .notes
                .extend(notes.map(|note| format!("user: {}: {note}", self.services.gateway_name())));
        }
        let record = session.into_record();
        conversed.notes.extend(describe_ending(&record));
        ConversationResult { user: Some(record), ..conversed }
    }

    /// Opens a gateway address for the model that plays the user, if a gateway stands before it.
    fn user_scope(&self, user: &SimulatedUser) -> Option<GatewayScope> {
        let gateway = self.services.gateway.as_ref().filter(|_| user.needs_model());
        gateway.map(|(gateway, _)| register(gateway, self.trial, ScopeKind::User, &self.workspace, ""))
    }

    /// Says whether a question of the agent counts as the ending. It does only if the agent had nothing but the first
    /// message or a simulated user who answers, and work to be done: activation is known even if the agent asks
    /// afterwards.
    pub fn should_detect_questions(&self) -> bool {
        if self.probed_skill.is_some() {
            return false;
        }
        let one_turn = match &self.case.prompt {
            CasePrompt::Turns(turns) => turns.len() == 1,
            CasePrompt::SkillCommand { .. } => true,
        };
        let can_be_open = one_turn || self.case.user.is_some();
        can_be_open && self.has_work_to_do() && self.planned.settings.detect_questions.value
    }

    /// Says whether a check asks for more than the activation of a skill.
    fn has_work_to_do(&self) -> bool {
        let checks = applicable_checks(self.case, &self.trial.condition);
        checks.iter().any(|check| !matches!(check.kind, CheckKind::Activation(_)))
    }

    /// Takes over how the conversation with the simulated user ended. A trial whose user failed is not graded, because
    /// nobody knows what the agent would have done.
    pub fn apply_user_ending(&self, user: &UserRecord, seen: &mut Observation) {
        if !matches!(seen.ended, AgentEnding::Finished | AgentEnding::AskedUser) {
            return;
        }
        let Some(ending) = user.ended else { return };
        seen.ended = match ending {
            UserEnding::NeverDone
            | UserEnding::UnusableReply
            | UserEnding::GaveAnswerAway
            | UserEnding::ModelFailed => AgentEnding::NoReply,
            // Whoever declares a user wants the agent's questions answered, whatever the settings say.
            UserEnding::NoAnswer if self.has_work_to_do() => AgentEnding::AskedUser,
            UserEnding::AnswersUsed => return,
            UserEnding::NoAnswer
            | UserEnding::Done
            | UserEnding::AgentDidNotAsk
            | UserEnding::AgentDidNotMatch => AgentEnding::Finished,
        };
        seen.ended_because = (seen.ended != AgentEnding::Finished).then(|| explain(ending, user));
    }
}

/// Gives the ending in words, with its reason.
fn explain(ending: UserEnding, user: &UserRecord) -> String {
    match &user.because {
        Some(because) => format!("{}: {because}", ending.describe()),
        None => ending.describe().to_owned(),
    }
}

/// Describes how the conversation ended, in a note for people.
fn describe_ending(user: &UserRecord) -> Option<String> {
    let ending = user.ended?;
    let replies = practicum_core::model::count_with_noun(user.replies, "reply");
    Some(format!("simulated user: {replies}; {}", explain(ending, user)))
}

//! The output of an agent that was captured outside a run: a text, or a session that the agent recorded.

use crate::grade::skill_texts::staged_skill_texts;
use crate::plan::PlannedSuite;
use crate::workspace::observe::{ProcessEnd, RawRun, RawTurn, observe};
use practicum_agents::agents::{RecordedSession, RecordedTurn, text_findings};
use practicum_core::model::{
    AgentEnding, Arm, Case, CasePrompt, Check, CheckKind, CheckTarget, MissingEvidence, Observation, Step,
    Suite,
};
use practicum_evals::checks::reads_only_text;

/// Output of an agent that was captured outside a run.
pub enum CapturedOutput {
    /// The text of one answer.
    Text(String),
    /// Everything that a recorded session shows.
    Session(Box<Observation>),
}

impl CapturedOutput {
    /// Says whether a case has the prompts of this session. A text has no prompts.
    pub fn has_prompts_of(&self, case: &Case) -> bool {
        self.prompts().is_some_and(|prompts| has_prompts(case, &prompts))
    }

    /// Gives what the user asked in a session; `None` for a text.
    fn prompts(&self) -> Option<Vec<&str>> {
        let CapturedOutput::Session(seen) = self else { return None };
        let prompts = seen.steps.iter().filter_map(|step| match step {
            Step::User(prompt) => Some(prompt.as_str()),
            Step::Text(_) | Step::Tool(_) => None,
        });
        Some(prompts.collect())
    }

    /// Says whether this output can answer a check. A session may show anything but files.
    pub(crate) fn can_answer(&self, check: &Check) -> bool {
        match (self, &check.kind) {
            (CapturedOutput::Session(_), _) => true,
            (CapturedOutput::Text(_), CheckKind::Rule(rule)) => reads_only_text(rule.as_ref()),
            (CapturedOutput::Text(_), CheckKind::Judged(_) | CheckKind::Sections(_)) => true,
            (CapturedOutput::Text(_), CheckKind::Activation(_)) => false,
        }
    }

    /// Gives the checks of a case that this output can answer. They read a given text, whatever file they would read in
    /// a run.
    pub(crate) fn answerable_checks(&self, case: &Case) -> Vec<Check> {
        let answerable = case.checks.iter().filter(|check| self.can_answer(check));
        let aimed = |check: &Check| match self {
            CapturedOutput::Text(_) => Check { target: CheckTarget::Output, ..check.clone() },
            CapturedOutput::Session(_) => check.clone(),
        };
        answerable.map(aimed).collect()
    }

    /// Gives what was observed, as the checks of this case read it.
    pub(crate) fn observation(&self, planned: &PlannedSuite, case: &Case) -> Observation {
        match self {
            CapturedOutput::Text(text) => Observation {
                output: text.clone(),
                turns: 1,
                steps: prompt_steps(&planned.suite, case),
                ..Observation::with_ending(AgentEnding::Finished)
            },
            CapturedOutput::Session(seen) => {
                let mut seen = seen.as_ref().clone();
                let texts = staged_skill_texts(planned, Arm::WithoutSkill, &[]);
                let findings = text_findings(&texts, &seen.steps, None);
                seen.apply_text_findings(findings);
                seen
            }
        }
    }

    /// Gives the case with the prompts that the user really sent, because a prompt may name a skill.
    pub(crate) fn with_sent_prompts(&self, case: &Case) -> Case {
        let mut case = case.clone();
        if let Some(prompts) = self.prompts() {
            case.prompt = CasePrompt::Turns(prompts.into_iter().map(str::to_owned).collect());
        }
        case
    }

    /// Gives the names under which the skills of a suite may be activated in a session, each with the skill's own name.
    pub(crate) fn skill_names(&self, planned: &PlannedSuite) -> Vec<(String, String)> {
        let CapturedOutput::Session(_) = self else { return Vec::new() };
        let mut names: Vec<(String, String)> =
            planned.suite.skills.iter().map(|skill| (skill.name.clone(), skill.name.clone())).collect();
        for texts in staged_skill_texts(planned, Arm::WithoutSkill, &[]) {
            let own = texts.names.first().cloned().unwrap_or_default();
            // A rival is no skill under test.
            if planned.suite.skills.iter().all(|skill| skill.name != own) {
                continue;
            }
            names.extend(texts.names.into_iter().skip(1).map(|name| (own.clone(), name)));
        }
        names
    }

    /// Gives a note for each skill under test that the agent of a session did not have.
    pub fn missing_skill_notes(&self, suites: &[PlannedSuite]) -> Vec<String> {
        let CapturedOutput::Session(seen) = self else { return Vec::new() };
        let Some(listed) = &seen.skills_listed else { return Vec::new() };
        let is_listed = |name: &str| {
            let mut all = listed.iter().chain(&seen.commands_listed);
            all.any(|known| known == name || known.rsplit(':').next() == Some(name))
        };
        let skills = suites.iter().flat_map(|planned| &planned.suite.skills);
        let missing = skills.filter(|skill| !is_listed(&skill.name));
        missing
            .map(|skill| format!("the agent of this session did not have the skill {}", skill.name))
            .collect()
    }
}

fn has_prompts(case: &Case, prompts: &[&str]) -> bool {
    let CasePrompt::Turns(turns) = &case.prompt else { return false };
    let words = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
    turns.len() == prompts.len()
        && turns.iter().zip(prompts).all(|(turn, prompt)| words(turn) == words(prompt))
}

/// Gives the prompts of the case as steps of the user, because a judge has to know what was asked.
fn prompt_steps(suite: &Suite, case: &Case) -> Vec<Step> {
    match &case.prompt {
        CasePrompt::Turns(turns) => turns.iter().cloned().map(Step::User).collect(),
        CasePrompt::SkillCommand { args } => {
            let skill = suite.skills.first().map_or("", |skill| &skill.name);
            vec![Step::User(format!("/{skill} {args}").trim_end().to_owned())]
        }
    }
}

/// Gives everything that a recorded session shows. Nobody knows which files its agent wrote, and with which code its
/// process exited.
pub fn observe_session(session: RecordedSession) -> Observation {
    let RecordedSession { turns, ended, seconds, .. } = session;
    let turn = |turn: RecordedTurn| RawTurn {
        prompt: turn.prompt,
        transcript: turn.transcript,
        bytes: 0,
        // The transcript says whether the turn was over. A log that goes on was not ended by its process.
        process: ProcessEnd::Exited(0),
    };
    let turns = turns.into_iter().map(turn).collect();
    let mut seen = observe(RawRun { turns, seconds: seconds.unwrap_or(0.0) }, Vec::new(), false);
    if seen.ended == AgentEnding::Crashed {
        seen.ended_because = Some("the session breaks off before the agent is done".to_owned());
    }
    if let Some(ended) = ended.filter(|ended| *ended != seen.ended) {
        (seen.ended, seen.ended_because) = (ended, None);
    }
    seen.missing = MissingEvidence { files: true, seconds: seconds.is_none() };
    seen
}

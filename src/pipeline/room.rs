//! One trial between its first file and its record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Exam, Stand, SuiteMeans, for_unmarkable, unfinished, unjudged};
use crate::agents::Agent;
use crate::gateway::{Gateway, Halt, Scope, ScopeKind};
use crate::judge::{Exhibit, Marks, statements};
use crate::model::{
    Activation, By, Case, Check, CheckKind, CheckResult, Digest, Ended, Expect, Finding, Fired, Need,
    Observation, SkillUse, Stimulus, Trial, TrialRecord, Verdict, Why, WorkspaceView,
};
use crate::plan::{Planned, applicable};
use crate::run::{Conversation, Conversed, ScriptEnd, ScriptScene, converse, run_script};
use crate::sandbox::Confinement;
use crate::score::{self, Names};
use crate::stage::{self, Order, Workspace, captured};

/// Text of fewer bytes is marked at once.
const AT_ONCE: usize = 64 * 1024;

/// A trial whose room is ready.
pub struct Prepared<'p> {
    trial: &'p Trial,
    planned: &'p Planned,
    case: &'p Case,
    agent: &'p Agent,
    means: &'p SuiteMeans,
    pub checks: Vec<&'p Check>,
    pub workspace: Workspace,
    names: Names,
    scope: Option<Scope>,
    walls: Confinement,
    /// The trial's folder in the run directory.
    folder: PathBuf,
    /// Names the trial's processes, and those of its whole run.
    marker: String,
}

/// Stages a trial and runs its setup. Where that fails, the record says how.
pub async fn prepare<'p>(exam: &'p Arc<Exam>, trial: &'p Trial) -> Result<Prepared<'p>, Box<TrialRecord>> {
    let failed = |ended: Ended, why: String| Box::new(unfinished(&exam.plan, trial, ended, &why));
    let (planned, case) = exam.plan.case(trial);
    let agent = exam
        .agents
        .get(&trial.condition.agent)
        .ok_or_else(|| failed(Ended::NotLaunched, format!("there is no agent {}", trial.condition.agent)))?;
    let folder =
        exam.run_dir.open_trial(&trial.id).map_err(|error| failed(Ended::NotLaunched, error.to_string()))?;
    let workspace = stage_aside(exam, trial).await.map_err(|why| failed(Ended::NotLaunched, why))?;
    let own =
        planned.suite.skills.iter().filter(|skill| skill.path.is_some()).map(|skill| skill.name.clone());
    let names = Names::new(own.zip(workspace.staged.iter().cloned()).collect());
    let means = &exam.suites[trial.suite];
    let gateway = means.gateway.as_ref().filter(|(_, stand)| !stand.is_optional() || agent.route.is_some());
    let own = planned.suite.skills.first().map(|skill| &skill.name);
    let skill = workspace.staged.first().or(own).cloned().unwrap_or_default();
    let scope = gateway.map(|(gateway, _)| register(gateway, trial, ScopeKind::Agent, &workspace, &skill));
    let address = scope.as_ref().map(Scope::base_url);
    let walls = exam.sandbox.confine(workspace.room(), agent, address, &exam.user_env);
    let walls = walls.map_err(|error| failed(Ended::NotLaunched, error.to_string()))?;
    let checks = applicable(case, &trial.condition);
    // The agent can read its environment, and must not learn there which case this is.
    let marker = format!("{}@{}", Digest::of(trial.id.as_str().as_bytes()).short(), exam.run_dir.id());
    let prepared = Prepared {
        trial,
        planned,
        case,
        agent,
        means,
        checks,
        workspace,
        names,
        scope,
        walls,
        folder,
        marker,
    };
    if let Some(script) = &case.room.setup {
        match prepared.script(exam, script).await {
            ScriptEnd::Done => {}
            ScriptEnd::Failed(why) => {
                prepared.tear_down(exam).await;
                return Err(failed(Ended::SetupFailed, why));
            }
        }
    }
    Ok(prepared)
}

fn register(gateway: &Gateway, trial: &Trial, kind: ScopeKind, workspace: &Workspace, skill: &str) -> Scope {
    let places = [("workspace", &workspace.folder), ("home", &workspace.home), ("tmp", &workspace.tmp)];
    let mut vars: BTreeMap<String, String> =
        places.map(|(name, path)| (name.to_owned(), path.display().to_string())).into();
    vars.insert("skill".to_owned(), skill.to_owned());
    gateway.register(trial.id.as_str(), kind, vars)
}

/// Staging copies files, so it happens off the threads that listen to agents.
async fn stage_aside(exam: &Arc<Exam>, trial: &Trial) -> Result<Workspace, String> {
    let (exam, trial) = (Arc::clone(exam), trial.clone());
    let staged = tokio::task::spawn_blocking(move || {
        let (planned, case) = exam.plan.case(&trial);
        let skills_dir = exam.agents.get(&trial.condition.agent).map(|agent| agent.skills_dir.clone());
        // The room's name must not tell the agent which case this is.
        let opaque = Digest::of(trial.id.as_str().as_bytes());
        let mut workspace = stage::stage(&Order {
            case,
            skills: &planned.suite.skills,
            rivals: &planned.suite.rivals,
            arm: trial.condition.arm,
            skills_dir: skills_dir.as_ref().ok_or("no agent")?,
            project: &planned.project,
            hidden: &exam.hidden,
            room: exam.rooms.join(opaque.short()),
            alias_ending: opaque.short(),
        })
        .map_err(|error| error.to_string())?;
        if exam.keep_workspaces {
            workspace.keep();
        }
        Ok::<Workspace, String>(workspace)
    });
    staged.await.map_err(|error| error.to_string())?
}

impl Prepared<'_> {
    pub async fn converse(&self, exam: &Exam) -> Conversed {
        let mut turns = self.turns();
        // An agent that takes no system prompt is told before the user's first words.
        if let (Some(text), Some(first)) = (&self.planned.mode_text, turns.first_mut())
            && !self.agent.appends_system()
        {
            *first = format!("{text}\n\n{first}");
        }
        let allowed =
            exam.pass_env.iter().filter_map(|name| Some((name.clone(), exam.user_env.get(name)?.clone())));
        let mut extra_env: Vec<(String, String)> = allowed.collect();
        if self.planned.settings.sync_tasks.value {
            extra_env.push(("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".to_owned(), "1".to_owned()));
        }
        let talk = Conversation {
            agent: self.agent,
            turns: &turns,
            model: self.trial.condition.model.as_deref(),
            append_system: self.planned.mode_text.as_deref().filter(|_| self.agent.appends_system()),
            gateway: self.scope.as_ref().map(Scope::base_url),
            user_env: &exam.user_env,
            extra_env: &extra_env,
            walls: &self.walls,
            limit: self.limit(),
            marker: &self.marker,
            record: &self.folder,
            memory: &exam.memory,
        };
        let mut conversed = converse(&talk, &self.workspace, &exam.stop.now).await;
        if let Some(scope) = &self.scope {
            conversed.notes.extend(self.told_by(scope));
        }
        conversed
    }

    fn told_by(&self, scope: &Scope) -> Vec<String> {
        let who = match self.means.gateway {
            Some((_, Stand::Script)) => "script",
            Some((_, Stand::Replay)) => "replay",
            Some((_, Stand::Record | Stand::Meter)) | None => "gateway",
        };
        scope.finish().into_iter().map(|note| format!("{who}: {note}")).collect()
    }

    /// What the gateway knows better than the agent: tokens, money, and why it got no answer.
    /// Without one, the agent's own word is all there is to hold against the budget.
    pub fn settle(&self, exam: &Exam, seen: &mut Observation) {
        // An agent that went around the gateway is in the same place as one that has none.
        let asked = self.scope.as_ref().filter(|scope| scope.requests() > 0);
        let Some(scope) = asked else {
            let model = seen.model.as_deref().unwrap_or_default();
            let cost = seen.cost_usd.or_else(|| exam.ledger.prices().cost(model, seen.usage));
            exam.ledger.spend(seen.usage, cost);
            return;
        };
        if self.means.gateway.as_ref().is_some_and(|(_, stand)| stand.is_real()) {
            seen.usage = scope.usage();
            seen.cost_usd = scope.cost().or(seen.cost_usd);
        }
        // An agent that went on without an answer did not do what it would have done with one.
        match (scope.halted(), seen.ended) {
            (None, _) | (Some(_), Ended::Cancelled) => {}
            (Some(Halt::OverBudget(why)), _) => {
                seen.ended = Ended::OverBudget;
                seen.ended_because = Some(why);
            }
            (Some(Halt::Unanswered(why)), _) => {
                seen.ended = Ended::ApiFailed;
                seen.ended_because = Some(why);
            }
        }
    }

    fn limit(&self) -> std::time::Duration {
        let timeout = &self.planned.settings.timeout;
        match (&timeout.from, self.case.timeout) {
            (crate::settings::From::Flag, _) | (_, None) => timeout.value,
            (_, Some(of_case)) => of_case,
        }
    }

    fn turns(&self) -> Vec<String> {
        match &self.case.stimulus {
            Stimulus::Turns(turns) => turns.clone(),
            Stimulus::SkillCommand { args } => {
                let skill = self.workspace.staged.first().map_or("", String::as_str);
                match self.agent.skill_command {
                    Some(command) => vec![command(skill, args)],
                    None => {
                        let system = self.planned.suite.run.system_prompt.as_deref();
                        vec![format!(
                            "{}{args}",
                            system.map(|text| format!("{text}\n\n")).unwrap_or_default()
                        )]
                    }
                }
            }
        }
    }

    /// A question only counts as an ending where there was one turn to answer in.
    pub fn detect_questions(&self) -> bool {
        let one_turn = match &self.case.stimulus {
            Stimulus::Turns(turns) => turns.len() == 1,
            Stimulus::SkillCommand { .. } => true,
        };
        one_turn && self.planned.settings.detect_questions.value
    }

    /// Runs the teardown. That it failed is told and changes nothing.
    pub async fn tear_down(&self, exam: &Exam) -> Vec<String> {
        let Some(script) = &self.case.room.teardown else { return Vec::new() };
        match self.script(exam, script).await {
            ScriptEnd::Done => Vec::new(),
            ScriptEnd::Failed(why) => vec![format!("teardown failed: {why}")],
        }
    }

    async fn script(&self, exam: &Exam, script: &str) -> ScriptEnd {
        if !exam.trusted {
            return ScriptEnd::Failed("it is not trusted".to_owned());
        }
        let scene = ScriptScene {
            folder: &self.workspace.folder,
            home: &self.workspace.home,
            tmp: &self.workspace.tmp,
            user_env: &exam.user_env,
            walls: &self.walls,
            marker: &self.marker,
            record: &self.folder,
        };
        run_script(script, &scene, &exam.stop.now).await
    }

    /// Checks may run programs and read large files, which others need not wait for; short work is
    /// done sooner than another thread could take over what waits.
    pub fn mark(&self, exam: &Exam, seen: &Observation, view: &dyn WorkspaceView) -> Vec<Option<Finding>> {
        let mark = || score::mark(&self.checks, seen, view, exam.trusted);
        let short = seen.output.len() < AT_ONCE && seen.files.is_empty() && seen.steps.len() < AT_ONCE / 1024;
        let code = |check: &&Check| matches!(&check.kind, CheckKind::Exact(rule) if rule.runs_code());
        if short && !self.checks.iter().any(code) { mark() } else { tokio::task::block_in_place(mark) }
    }

    pub fn mark_activation(&self, seen: &Observation, findings: &mut [Option<Finding>]) {
        for (check, finding) in self.checks.iter().zip(findings) {
            if let CheckKind::Activation(activation) = &check.kind {
                *finding = Some(score::mark_activation(activation, seen, &self.names));
            }
        }
    }

    pub async fn judge(
        &self,
        exam: &Exam,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        fixture_notes: &[String],
    ) -> (Marks, Vec<String>) {
        let statements = statements(self.checks.iter().copied());
        if statements.is_empty() || !seen.ended.can_be_marked() {
            return (unjudged(&statements, Why::Ended(seen.ended)), Vec::new());
        }
        if exam.stop.now.is_cancelled() {
            return (unjudged(&statements, Why::Ended(Ended::Cancelled)), Vec::new());
        }
        let judge = match &self.means.judge {
            Err(why) => return (unjudged(&statements, Why::NotJudged(why.clone())), Vec::new()),
            Ok(judge) => judge,
        };
        let context = self.case.context.as_deref();
        let exhibit = Exhibit { observation: seen, context, workspace, fixture_notes };
        let Some((gateway, _)) = &self.means.gateway else {
            return (judge.mark(&statements, &exhibit).await, Vec::new());
        };
        let scope = register(gateway, self.trial, ScopeKind::Judge, &self.workspace, "");
        let marks = judge.at(|api| scope.base_url_for(api)).mark(&statements, &exhibit).await;
        let notes = self.told_by(&scope).into_iter().map(|note| format!("judge: {note}")).collect();
        (marks, notes)
    }

    /// Puts together what the stages found.
    pub fn record(
        &self,
        key: Option<Digest>,
        seen: Observation,
        findings: Vec<Option<Finding>>,
        marks: Marks,
        notes: Vec<String>,
    ) -> Recorded {
        let mut marks: BTreeMap<String, (Finding, Vec<String>)> =
            marks.marks.into_iter().map(|mark| (mark.id, (mark.finding, mark.flags))).collect();
        let mut checks = Vec::new();
        for (check, finding) in self.checks.iter().zip(findings) {
            let (finding, flags) = match (finding, marks.remove(&check.id)) {
                (Some(finding), _) => (finding, Vec::new()),
                (None, Some(judged)) => judged,
                (None, None) => {
                    let why = Why::NotJudged("extracting sections is not supported".to_owned());
                    (Finding::not_scored(why), Vec::new())
                }
            };
            // Whatever the text says, nothing is marked in a run that did not come to its end.
            let finding = if seen.ended.can_be_marked() { finding } else { for_unmarkable(seen.ended) };
            checks.push(CheckResult {
                check: check.id.clone(),
                required: check.need == Need::Required,
                verdict: finding.verdict,
                score: finding.score,
                scale: match &check.kind {
                    CheckKind::Judged(judged) => Some(judged.scale),
                    CheckKind::Exact(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
                },
                rationale: finding.rationale,
                evidence: finding.evidence,
                flags,
            });
        }
        let verdict = self.verdict(&seen, &checks);
        let record = TrialRecord {
            trial: self.trial.id.clone(),
            key,
            reused_from: None,
            suite: self.planned.suite.name.clone(),
            case: self.case.id.clone(),
            condition: self.trial.condition.clone(),
            attempt: self.trial.attempt,
            ended: seen.ended,
            ended_because: seen.ended_because.clone(),
            verdict,
            checks,
            expect: expectation(self.case),
            fired: self.fired(&seen),
            skills: self.skill_use(&seen),
            usage: seen.usage,
            cost_usd: seen.cost_usd,
            model: seen.model.clone(),
            seconds: seen.seconds,
            notes,
        };
        Recorded { record, seen }
    }

    fn verdict(&self, seen: &Observation, checks: &[CheckResult]) -> Verdict {
        let own: Vec<String> = self.planned.suite.skills.iter().map(|skill| skill.name.clone()).collect();
        match score::arm_problem(self.trial.condition.arm, &self.workspace.staged, &own, seen) {
            Some(problem) if seen.ended.can_be_marked() => Verdict::NotScored(Why::InvalidArm(problem)),
            Some(_) | None => TrialRecord::verdict_of(seen, checks, self.case.pass_when),
        }
    }

    /// Whether the skill that the case is about fired. A skill invoked by its command did not
    /// fire by itself, so that says nothing.
    fn fired(&self, seen: &Observation) -> Option<bool> {
        if matches!(self.case.stimulus, Stimulus::SkillCommand { .. }) || self.workspace.staged.is_empty() {
            return None;
        }
        let asked = self.checks.iter().find_map(|check| match &check.kind {
            CheckKind::Activation(activation) => Some(activation.skills.clone()),
            CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
        });
        let skills = asked
            .unwrap_or_else(|| self.planned.suite.skills.iter().map(|skill| skill.name.clone()).collect());
        match score::fired(&skills, seen, &self.names) {
            Fired::Yes(_) => Some(true),
            Fired::No => Some(false),
            Fired::Unknown(_) => None,
        }
    }

    fn skill_use(&self, seen: &Observation) -> SkillUse {
        let about = match observed_activation(self.case) {
            Some(activation) => activation.skills.clone(),
            None => Vec::new(),
        };
        let mut activated: Vec<String> =
            seen.activated.iter().map(|activated| self.names.own(&activated.skill).to_owned()).collect();
        activated.sort_unstable();
        activated.dedup();
        let invoked = match &self.case.stimulus {
            Stimulus::SkillCommand { .. } => true,
            Stimulus::Turns(turns) => {
                turns.first().and_then(|turn| commanded(turn)).is_some_and(|name| self.names.has(name))
            }
        };
        SkillUse { about, activated, invoked }
    }

    /// Writes the trial's folder. Only then does anyone hear of it.
    pub async fn keep(self, exam: &Arc<Exam>, recorded: Recorded) -> TrialRecord {
        let Recorded { mut record, seen } = recorded;
        let (folder, workspace) = (self.folder, self.workspace);
        let keeper = Arc::clone(exam);
        let kept = tokio::task::spawn_blocking(move || {
            record.notes.extend(captured(&seen.files, &workspace.folder, &folder.join("files")));
            if let Err(error) = keeper.run_dir.close_trial(&folder, &record, &seen.output, &keeper.scrubber) {
                record.notes.push(error.to_string());
            }
            // The room goes here, with its files, and not on a thread that listens to agents.
            drop(workspace);
            record
        });
        match kept.await {
            Ok(record) => record,
            Err(error) => unfinished(&exam.plan, self.trial, Ended::Crashed, &error.to_string()),
        }
    }
}

/// A record and what it was made from, until both are on disk.
pub struct Recorded {
    record: TrialRecord,
    seen: Observation,
}

/// What a case wants of the skill's activation, if it wants anything. What a model merely guesses is
/// never counted with what was seen.
pub fn expectation(case: &Case) -> Option<Expect> {
    observed_activation(case).map(|activation| activation.expect)
}

fn observed_activation(case: &Case) -> Option<&Activation> {
    case.checks.iter().find_map(|check| match &check.kind {
        CheckKind::Activation(activation) => Some(activation).filter(|asked| asked.by == By::Observed),
        CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    })
}

/// The skill that a prompt names as a command: `/name`, `$name`, also with its plugin before it.
fn commanded(prompt: &str) -> Option<&str> {
    let rest = prompt.trim_start().strip_prefix(['/', '$'])?;
    let word = rest.split(|c: char| c.is_whitespace()).next()?;
    word.rsplit(':').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_that_the_user_names_is_recognised() {
        for (prompt, expected) in [
            ("/greeter Alice", Some("greeter")),
            ("  $greeter", Some("greeter")),
            ("/harbour:greeter now", Some("greeter")),
            ("Use /greeter", None),
            ("/ nothing", None),
            ("greeter", None),
        ] {
            assert_eq!(commanded(prompt), expected, "{prompt}");
        }
    }
}

//! One trial between its first file and its record.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use super::exam::{Exam, Part, SuiteMeans};
use super::seats::Seat;
use super::strangers::Strangers;
use super::unfinished;
use crate::judge::Sitting;
use crate::marking::{Jury, Marked, Sheet, needs_agent, offered};
use crate::plan::{Planned, applicable};
use crate::probe;
use crate::run::{Conversation, Conversed, ScriptEnd, ScriptScene, converse, run_script};
use crate::sandbox::Confinement;
use crate::stage::{self, Order, Rooms, Workspace, captured, worked_on};
use crate::store::{Left, StagedSkill, TrialFacts, TurnFacts};
use practicum_agents::agents::Agent;
use practicum_agents::gateway::{Gateway, Halt, Scope, ScopeKind};
use practicum_core::model::{
    Arm, Case, CheckKind, Digest, Ended, Given, Leave, Network, Observation, SkillRef, Stimulus, Trial,
    TrialRecord, Why,
};

/// A trial whose room is ready.
pub struct Prepared<'p> {
    part: Part,
    /// The skill that it only tries, if it measures nothing.
    tried: Option<String>,
    trial: &'p Trial,
    planned: &'p Planned,
    case: &'p Case,
    agent: &'p Agent,
    means: &'p SuiteMeans,
    pub workspace: Workspace,
    scope: Option<Scope>,
    walls: Confinement,
    /// The trial's folder in the run directory.
    folder: PathBuf,
    /// Names the trial's processes, and those of its whole run.
    marker: String,
}

/// Stages a trial and runs its setup. Where that fails, the record says how.
pub async fn prepare<'p>(
    exam: &'p Arc<Exam>,
    part: Part,
    trial: &'p Trial,
) -> Result<Prepared<'p>, Box<TrialRecord>> {
    let plan = exam.plan_of(part);
    let failed = |ended: Ended, why: String| Box::new(unfinished(plan, trial, ended, &why));
    let (planned, case) = plan.case(trial);
    let agent = exam
        .agents
        .get(&trial.condition.agent)
        .ok_or_else(|| failed(Ended::NotLaunched, format!("there is no agent {}", trial.condition.agent)))?;
    let folder = match part {
        Part::Probes => exam.run_dir.open_probe(&trial.id),
        Part::Trials => exam.run_dir.open_trial(&trial.id),
    };
    let folder = folder.map_err(|error| failed(Ended::NotLaunched, error.to_string()))?;
    let workspace = stage_aside(exam, part, trial).await.map_err(|why| failed(Ended::NotLaunched, why))?;
    let means = &exam.suites[trial.suite];
    let led = agent.route.as_ref().is_some_and(|route| route.leads_to(trial.condition.model.as_deref()));
    let gateway = means.gateway.as_ref().filter(|(_, stand)| !stand.is_optional() || led);
    let tried = match part {
        Part::Probes => plan.probed(trial).map(|skill| skill.name.clone()),
        Part::Trials => None,
    };
    let named = names(planned, &workspace);
    let meant = named.iter().find(|(own, _)| tried.as_deref().is_none_or(|tried| *own == tried));
    let own = planned.suite.skills.first().map(|skill| skill.name.as_str());
    let called = meant.map(|(_, staged)| workspace.called_as(staged));
    let skill = called.or(own).unwrap_or_default().to_owned();
    let kind = match part {
        Part::Probes => ScopeKind::Probe,
        Part::Trials => ScopeKind::Agent,
    };
    let scope = gateway.map(|(gateway, _)| register(gateway, trial, kind, &workspace, &skill));
    let address = scope.as_ref().map(Scope::base_url);
    let walls = exam.sandbox.confine(workspace.room(), agent, address, &exam.user_env);
    let walls = walls.map_err(|error| failed(Ended::NotLaunched, error.to_string()))?;
    // The agent can read its environment, and must not learn there which case this is.
    let marker = format!("{}@{}", Digest::of(trial.id.as_str().as_bytes()).short(), exam.run_dir.id());
    let mut prepared =
        Prepared { part, tried, trial, planned, case, agent, means, workspace, scope, walls, folder, marker };
    if let Some(script) = &case.room.setup {
        match prepared.script(exam, script).await {
            ScriptEnd::Done => prepared.workspace.begin(),
            ScriptEnd::Failed(why) => {
                let notes = prepared.tear_down(exam).await;
                let record = *failed(Ended::SetupFailed, why);
                return Err(Box::new(TrialRecord { notes, ..record }));
            }
        }
    }
    Ok(prepared)
}

/// The skills under test: their own names, and those they have in the room.
fn names<'n>(planned: &'n Planned, workspace: &'n Workspace) -> Vec<(&'n str, &'n str)> {
    let placed = planned.suite.skills.iter().filter(|skill| skill.path.is_some());
    placed.map(|skill| skill.name.as_str()).zip(workspace.staged.iter().map(String::as_str)).collect()
}

fn register(gateway: &Gateway, trial: &Trial, kind: ScopeKind, workspace: &Workspace, skill: &str) -> Scope {
    let places = [("workspace", &workspace.folder), ("home", &workspace.home), ("tmp", &workspace.tmp)];
    let mut vars: BTreeMap<String, String> =
        places.map(|(name, path)| (name.to_owned(), path.display().to_string())).into();
    vars.insert("skill".to_owned(), skill.to_owned());
    gateway.register(trial.id.as_str(), kind, vars)
}

/// Staging copies files, so it happens off the threads that listen to agents.
async fn stage_aside(exam: &Arc<Exam>, part: Part, trial: &Trial) -> Result<Workspace, String> {
    let (exam, trial) = (Arc::clone(exam), trial.clone());
    let staged = tokio::task::spawn_blocking(move || {
        let (planned, case) = exam.plan_of(part).case(&trial);
        let agent = exam.agents.get(&trial.condition.agent).ok_or("no agent")?;
        // The room's name must not tell the agent which case this is.
        let opaque = Digest::of(trial.id.as_str().as_bytes());
        let mut workspace = stage::stage(&Order {
            case,
            skills: &planned.suite.skills,
            rivals: &planned.suite.rivals,
            plugins: if agent.loads_plugins() { &planned.suite.plugins } else { &[] },
            plugin_code: exam.plugin_code,
            arm: trial.condition.arm,
            skills_dir: &agent.skills_dir,
            project: &planned.project,
            hidden: &exam.hidden,
            room: Rooms::room(&exam.rooms, opaque.short()),
            alias_ending: opaque.short(),
            canaries: !agent.decoder.shows_skills,
        })
        .map_err(|error| error.to_string())?;
        // After staging, so that no change in between goes unnoticed.
        let tested: &[SkillRef] = match trial.condition.arm {
            Arm::WithSkill | Arm::Version(_) => &planned.suite.skills,
            Arm::WithoutSkill => &[],
        };
        if let Some(why) = exam.prior.why_changed(tested) {
            return Err(why);
        }
        if exam.keep_workspaces {
            workspace.keep();
        }
        Ok::<Workspace, String>(workspace)
    });
    staged.await.map_err(|error| error.to_string())?
}

impl Prepared<'_> {
    /// Lets the agent work, unless nothing that it could do would be looked at.
    pub async fn run(&self, exam: &Exam) -> Conversed {
        if self.needs_agent() { self.converse(exam).await } else { Conversed::unneeded(&self.turns()) }
    }

    fn needs_agent(&self) -> bool {
        needs_agent(&applicable(self.case, &self.trial.condition))
    }

    async fn converse(&self, exam: &Exam) -> Conversed {
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
        let tools = self.allowed_tools();
        let talk = Conversation {
            agent: self.agent,
            turns: &turns,
            model: self.trial.condition.model.as_deref(),
            append_system: self.planned.mode_text.as_deref().filter(|_| self.agent.appends_system()),
            tools: tools.as_deref(),
            gateway: self.scope.as_ref().map(Scope::base_url),
            user_env: &exam.user_env,
            extra_env: &extra_env,
            walls: &self.walls,
            limit: self.planned.limit(self.case),
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
        let who = self.means.stand_name();
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

    /// The only tools that the agent may use, as it wants to be told. One that has a skill can take it up.
    fn allowed_tools(&self) -> Option<String> {
        let mut tools = self.planned.settings.tools.value.clone()?;
        if !self.workspace.staged.is_empty() && !tools.iter().any(|tool| tool == "Skill") {
            tools.push("Skill".to_owned());
        }
        Some(tools.join(","))
    }

    fn turns(&self) -> Vec<String> {
        match &self.case.stimulus {
            // Only now it is known what the skill is called in the room.
            Stimulus::Turns(_) if self.tried.is_some() => {
                vec![probe::prompt(self.probed().unwrap_or_default())]
            }
            Stimulus::Turns(turns) => turns.clone(),
            // Without the skill its command means nothing, and what stands in for the skill is no part of the run.
            Stimulus::SkillCommand { args } if self.trial.condition.arm == Arm::WithoutSkill => {
                vec![self.planned.suite.words_for_command(args).unwrap_or(args).to_owned()]
            }
            Stimulus::SkillCommand { args } => {
                let skill = self.workspace.called.first().map_or("", String::as_str);
                match self.agent.skill_command {
                    Some(command) => vec![command(skill, args)],
                    None => {
                        let own = self.planned.suite.run.system_prompt.as_deref();
                        let derived = self.planned.derived_system.as_deref();
                        let before = own.or(derived).map(|text| format!("{text}\n\n")).unwrap_or_default();
                        vec![format!("{before}{args}")]
                    }
                }
            }
        }
    }

    /// The name that the skill which a probe is about has in the room.
    pub fn probed(&self) -> Option<&str> {
        let about = self.tried.as_deref()?;
        let names = names(self.planned, &self.workspace);
        names.into_iter().find(|(own, _)| *own == about).map(|(_, staged)| staged)
    }

    /// Every text that the model was told, where somebody listened.
    pub fn told(&self) -> Option<String> {
        self.scope.as_ref().filter(|scope| scope.requests() > 0).map(Scope::told)
    }

    /// A question only counts as an ending where there was one turn to answer in, and work to be done. Whether
    /// a skill is taken up is known also where the agent then asks.
    pub fn detect_questions(&self) -> bool {
        if self.tried.is_some() {
            return false;
        }
        let one_turn = match &self.case.stimulus {
            Stimulus::Turns(turns) => turns.len() == 1,
            Stimulus::SkillCommand { .. } => true,
        };
        let checks = applicable(self.case, &self.trial.condition);
        let about_work = checks.iter().any(|check| !matches!(check.kind, CheckKind::Activation(_)));
        one_turn && about_work && self.planned.settings.detect_questions.value
    }

    /// Runs the teardown, once all that is to be seen of the room has been. That it failed is told and changes
    /// nothing.
    async fn tear_down(&self, exam: &Exam) -> Vec<String> {
        let Some(script) = &self.case.room.teardown else { return Vec::new() };
        match self.script(exam, script).await {
            ScriptEnd::Done => Vec::new(),
            ScriptEnd::Failed(why) => vec![TrialRecord::teardown_note(&why)],
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

    /// What the trial is marked by.
    pub fn sheet<'s>(&'s self, exam: &'s Exam) -> Sheet<'s> {
        let checks = applicable(self.case, &self.trial.condition);
        Sheet {
            suite: &self.planned.suite,
            case: self.case,
            offered: offered(&self.planned.suite, &checks),
            checks,
            arm: self.trial.condition.arm,
            skills: self.skills(),
            leave: Leave {
                run_code: exam.trusted,
                network: exam.web.as_ref().map(|web| web as &dyn Network),
            },
        }
    }

    /// The last line that the agent wrote to its standard error, which often says why it crashed.
    pub fn last_line_of_stderr(&self) -> Option<String> {
        const LONGEST: u64 = 16 * 1024;
        let mut file = std::fs::File::open(self.folder.join("stderr.txt")).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LONGEST))).ok()?;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().take(300).collect())
    }

    /// The skills that the agent lists and that nobody gave it.
    pub fn strangers(&self, exam: &Exam, seen: &Observation) -> Strangers {
        let listed = seen.skills_listed.as_deref().unwrap_or_default();
        Strangers::among(listed, self.agent, &self.workspace, &exam.user_env)
    }

    /// The skills under test: their own names, and those they have in the room, that in the listing first.
    fn skills(&self) -> Vec<(String, String)> {
        let names = names(self.planned, &self.workspace).into_iter();
        let all = names.flat_map(|(own, staged)| {
            let others = self.workspace.other_names.iter().filter(move |(known, _)| known == staged);
            let others = others.map(|(_, other)| other.as_str());
            std::iter::once(staged).chain(others).map(move |staged| (own.to_owned(), staged.to_owned()))
        });
        all.collect()
    }

    /// Marks what was seen. Code runs in the agent's place, because it may want what agents want (a port,
    /// a processor); the judge is asked elsewhere, at an address of this trial's own.
    pub async fn mark(&self, exam: &Exam, seen: &Observation, given: &[Given], seat: &mut Seat) -> Marked {
        let (sheet, view) = (self.sheet(exam), self.workspace.view());
        let findings = sheet.decide_aside(seen, &view);
        let judged = self.means.judge.is_ok() && sheet.needs_judge(seen);
        // What a teardown takes down, the next one's setup may want to put up.
        if self.case.room.teardown.is_none() && (judged || !exam.waits_for(seen.ended)) {
            seat.leave_agent();
        }
        let address = || {
            let gateway = self.means.gateway.as_ref().map(|(gateway, _)| gateway);
            gateway.map(|gateway| register(gateway, self.trial, ScopeKind::Judge, &self.workspace, ""))
        };
        let judge = match &self.means.judge {
            _ if exam.stop.now.is_cancelled() => Err(Why::Ended(Ended::Cancelled)),
            Err(why) => Err(Why::NotJudged(why.clone())),
            Ok(judge) => Ok(judge.as_ref()),
        };
        let sitting = Sitting { marker: &self.marker, cancel: &exam.stop.now };
        let (gateway, prices) = (self.means.stand_name(), self.means.prices(exam.ledger.prices()));
        let jury = Jury { judge, sitting, address: &address, gateway, prices };
        sheet.mark_decided(seen, &view, given, &jury, findings).await
    }

    /// What the files of the trial will not say.
    pub fn facts(
        &self,
        seen: &Observation,
        started: jiff::Timestamp,
        turns: Vec<TurnFacts>,
        given: Vec<Given>,
    ) -> TrialFacts {
        TrialFacts {
            schema_version: 1,
            stream: self.agent.decoder.name.to_owned(),
            turns,
            ended: seen.ended,
            ended_because: seen.ended_because.clone(),
            files: seen.files.clone(),
            skills: self
                .skills()
                .into_iter()
                .map(|(name, staged_as)| StagedSkill { name, staged_as })
                .collect(),
            canaries: self.workspace.canaries.clone(),
            left: Left::of(&self.workspace.folder),
            given,
            unread: seen.unread.clone(),
            usage: seen.usage,
            leaked: seen.leaked.clone(),
            cost_usd: seen.cost_usd,
            seconds: seen.seconds,
            started: Some(started.to_string()),
            only_predicted: !self.needs_agent(),
        }
    }

    /// Keeps the files that the agent worked on. Gives what is worth telling of them.
    fn capture(&self, seen: &Observation) -> Vec<String> {
        let (from, to) = (&self.workspace.folder, &self.folder);
        let inputs = worked_on(&self.case.room.files, from);
        let mut notes = captured(&seen.files, from, &to.join("files"));
        notes.extend(captured(&inputs, from, &to.join("inputs")));
        notes
    }

    /// Writes the trial's folder. Only then does anyone hear of it.
    pub async fn keep(
        self,
        exam: &Arc<Exam>,
        mut record: TrialRecord,
        seen: Observation,
        facts: TrialFacts,
    ) -> TrialRecord {
        if !(seen.files.is_empty() && self.case.room.files.is_empty()) {
            record.notes.extend(crate::run::run_blocking(|| self.capture(&seen)));
        }
        record.notes.extend(self.tear_down(exam).await);
        let (folder, workspace) = (self.folder, self.workspace);
        let keeper = Arc::clone(exam);
        let kept = tokio::task::spawn_blocking(move || {
            let closed = keeper.run_dir.close_trial(&folder, &record, &seen.output, facts, &keeper.scrubber);
            if let Err(error) = closed {
                record.notes.push(error.to_string());
            }
            // The room goes here, with its files, and not on a thread that listens to agents.
            drop(workspace);
            record
        });
        match kept.await {
            Ok(record) => record,
            Err(error) => unfinished(exam.plan_of(self.part), self.trial, Ended::Crashed, &error.to_string()),
        }
    }
}

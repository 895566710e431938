//! One trial from the staging of its workspace to its stored record.

mod mocks;
mod user;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, atomic::AtomicUsize};

use super::agent_slots::SlotPermit;
use super::last_line::last_line;
use super::played_servers::PlayedServers;
use super::probes;
use super::run_context::{RunContext, RunPhase};
use super::skill_listing::{listing_in_requests, shows_listing};
use super::skill_texts::find_skill_texts;
use super::unexpected_skills::UnexpectedSkills;
use super::unfinished_record;
use crate::grade::SuiteServices;
use crate::grade::grading::{JudgeAccess, TrialGrader, TrialGrades, needs_agent, offered_skills};
use crate::grade::judge::JudgeContext;
use crate::grade::skill_texts::staged_skill_texts;
use crate::plan::{PlannedSuite, applicable_checks};
use crate::store::{FolderListing, Scrubber, StagedSkill, TrialFacts, TurnFacts};
use crate::workspace::limits::TrialLimits;
use crate::workspace::mocks::{MockHelpers, TrialMocks};
use crate::workspace::run::{
    CheckedWorkspace, Conversation, ConversationResult, ScriptContext, ScriptEnd, run_script,
};
use crate::workspace::sandbox::TrialSandbox;
use crate::workspace::stage::{
    self, StagingRequest, Workspace, WorkspaceRoot, capture_changed_files, editable_file_changes,
};
use practicum_agents::agents::{AgentCli, AgentLogin, FOREGROUND_TASKS_VARIABLE, SKILL_TOOL, SkillTextLines};
use practicum_agents::gateway::{Gateway, GatewayHalt, GatewayScope, ScopeKind};
use practicum_core::model::{
    AgentEnding, Arm, Case, CasePrompt, CheckPermissions, Digest, GivenFile, NotScoredReason, Observation,
    SkillRef, SkillTextFinding, StagedSkillName, Trial, TrialRecord, UrlChecker, Verdict,
};

/// A trial whose workspace is ready.
pub struct PreparedTrial<'p> {
    phase: RunPhase,
    /// The skill to probe, if this is a probe and not a measured trial.
    probed_skill: Option<String>,
    trial: &'p Trial,
    planned: &'p PlannedSuite,
    case: &'p Case,
    agent: &'p AgentCli,
    services: &'p SuiteServices,
    pub workspace: Workspace,
    scope: Option<GatewayScope>,
    sandbox: TrialSandbox,
    /// The texts by which it is recognised that a skill reached the model.
    skill_texts: Vec<SkillTextLines>,
    limits: TrialLimits,
    /// The mocks of the case, if it has any.
    mocks: Option<TrialMocks>,
    /// The model that plays its servers, if one does.
    played_servers: Option<PlayedServers>,
    /// The trial's folder in the run directory.
    folder: PathBuf,
    /// A marker on the trial's processes, so that they can be found. It ends with the id of the run.
    marker: String,
}

/// Stages a trial and runs its setup. If that fails, the error is a record that says why.
pub async fn prepare_trial<'p>(
    context: &'p Arc<RunContext>,
    part: RunPhase,
    trial: &'p Trial,
) -> Result<PreparedTrial<'p>, Box<TrialRecord>> {
    let plan = context.plan_of(part);
    let failed = |ended: AgentEnding, why: String| Box::new(unfinished_record(plan, trial, ended, &why));
    let (planned, case) = plan.suite_and_case(trial);
    let agent = context.agents.get(&trial.condition.agent).ok_or_else(|| {
        failed(AgentEnding::NotLaunched, format!("there is no agent {}", trial.condition.agent))
    })?;
    let folder = match part {
        RunPhase::Probes => context.run_dir.create_probe_folder(&trial.id),
        RunPhase::Trials => context.run_dir.create_trial_folder(&trial.id),
    };
    let folder = folder.map_err(|error| failed(AgentEnding::NotLaunched, error.to_string()))?;
    let mut workspace = stage_in_background(context, part, trial)
        .await
        .map_err(|why| failed(AgentEnding::NotLaunched, why))?;
    let means = &context.suites[trial.suite];
    let led = agent.route.as_ref().is_some_and(|route| route.reaches_model(trial.condition.model.as_deref()));
    let gateway = means.gateway.as_ref().filter(|(_, stand)| !stand.is_optional() || led);
    let tried = match part {
        RunPhase::Probes => probes::probed_skill(plan, trial).map(|skill| skill.name.clone()),
        RunPhase::Trials => None,
    };
    let named = staged_skill_names(planned, &workspace);
    let meant = named.iter().find(|(own, _)| tried.as_deref().is_none_or(|tried| *own == tried));
    let own = planned.suite.skills.first().map(|skill| skill.name.as_str());
    let called = meant.map(|(_, staged)| workspace.call_name_of(staged));
    let skill = called.or(own).unwrap_or_default().to_owned();
    let kind = match part {
        RunPhase::Probes => ScopeKind::Probe,
        RunPhase::Trials => ScopeKind::Agent,
    };
    let scope = gateway.map(|(gateway, _)| register(gateway, trial, kind, &workspace, &skill));
    let address = scope.as_ref().map(GatewayScope::base_url);
    // The agent can read its environment, and must not learn from it which case this is.
    let marker =
        format!("{}@{}", Digest::of_bytes(trial.id.as_str().as_bytes()).short(), context.run_dir.id());
    let (cancel, scrubber) = (&context.stop.cancel, &context.scrubber);
    let connected = PlayedServers::connect(case, trial, means, &marker, cancel, scrubber);
    let (played_servers, model) = connected.unzip();
    let recorder = context.mock_recorder.clone().filter(|_| part == RunPhase::Trials);
    let helpers = MockHelpers { model, recorder };
    let mocks = TrialMocks::for_case(case, workspace.root(), helpers)
        .map_err(|why| failed(AgentEnding::NotLaunched, why))?;
    let walls = context.sandbox.for_trial(workspace.root(), agent, address, &context.user_env);
    let walls = walls.map_err(|error| failed(AgentEnding::NotLaunched, error.to_string()))?;
    let walls = walls.with_script_folder(planned.suite.origin.path.parent().map(Path::to_owned));
    if walls.changes_owner() {
        workspace.take_snapshot();
    }
    let limits = TrialLimits::of_workspace(context.limits, &workspace, walls.has_init_process());
    let names = all_skill_names(planned, &workspace);
    let mut prepared = PreparedTrial {
        phase: part,
        probed_skill: tried,
        trial,
        planned,
        case,
        agent,
        services: means,
        workspace,
        scope,
        sandbox: walls,
        skill_texts: staged_skill_texts(planned, trial.condition.arm, &names),
        limits,
        mocks,
        played_servers,
        folder,
        marker,
    };
    if let Some(scope) = &prepared.scope {
        scope.watch_for_skills(prepared.skill_texts.clone(), &prepared.turns());
        if part == RunPhase::Trials && shows_listing(planned, trial) {
            scope.keep_first_requests();
        }
    }
    if let Some(script) = &case.workspace.setup {
        match prepared.run_script(context, script).await {
            ScriptEnd::Done => prepared.workspace.reset_snapshot(),
            end @ (ScriptEnd::Failed(_) | ScriptEnd::OverLimit(_)) => {
                let notes = prepared.tear_down(context).await;
                let record = *match end {
                    ScriptEnd::OverLimit(why) => failed(AgentEnding::OverLimit, format!("setup: {why}")),
                    ScriptEnd::Failed(why) => failed(AgentEnding::SetupFailed, why),
                    ScriptEnd::Done => failed(AgentEnding::SetupFailed, String::new()),
                };
                return Err(Box::new(TrialRecord { notes, ..record }));
            }
        }
    }
    Ok(prepared)
}

/// Gives the record of a trial whose files could not be written, for example because the disk is full: it is not scored,
/// because nobody could look at what its verdict was about.
fn without_evidence(mut record: TrialRecord, why: &str) -> TrialRecord {
    record.notes.push(why.to_owned());
    let reason = NotScoredReason::CheckFailed(format!("what the agent did could not be stored: {why}"));
    TrialRecord { verdict: Verdict::NotScored(reason), score: None, key: None, ..record }
}

/// Gives the skills under test, each with its own name and its name in the workspace.
fn staged_skill_names<'n>(planned: &'n PlannedSuite, workspace: &'n Workspace) -> Vec<(&'n str, &'n str)> {
    let placed = planned.suite.skills.iter().filter(|skill| skill.path.is_some());
    placed.map(|skill| skill.name.as_str()).zip(workspace.staged_names.iter().map(String::as_str)).collect()
}

/// Gives the skills under test, each with its own name and all its names in the workspace, the listed name first.
fn all_skill_names(planned: &PlannedSuite, workspace: &Workspace) -> Vec<(String, String)> {
    let names = staged_skill_names(planned, workspace).into_iter();
    let all = names.flat_map(|(own, staged)| {
        let others = workspace.other_names.iter().filter(move |(known, _)| known == staged);
        let others = others.map(|(_, other)| other.as_str());
        std::iter::once(staged).chain(others).map(move |staged| (own.to_owned(), staged.to_owned()))
    });
    all.collect()
}

fn register(
    gateway: &Gateway,
    trial: &Trial,
    kind: ScopeKind,
    workspace: &Workspace,
    skill: &str,
) -> GatewayScope {
    let places = [("workspace", &workspace.folder), ("home", &workspace.home), ("tmp", &workspace.tmp)];
    let mut vars: BTreeMap<String, String> =
        places.map(|(name, path)| (name.to_owned(), path.display().to_string())).into();
    vars.insert("skill".to_owned(), skill.to_owned());
    gateway.register(trial.id.as_str(), kind, vars)
}

/// Stages the workspace on a blocking thread, because copying files would hold up the threads that read from
/// agents.
async fn stage_in_background(
    context: &Arc<RunContext>,
    part: RunPhase,
    trial: &Trial,
) -> Result<Workspace, String> {
    let (context, trial) = (Arc::clone(context), trial.clone());
    let staged = tokio::task::spawn_blocking(move || {
        let (planned, case) = context.plan_of(part).suite_and_case(&trial);
        let agent = context.agents.get(&trial.condition.agent).ok_or("no agent")?;
        // The workspace's name must not tell the agent which case this is.
        let opaque = Digest::of_bytes(trial.id.as_str().as_bytes());
        let mut workspace = stage::stage_workspace(&StagingRequest {
            case,
            skills: &planned.suite.skills,
            rivals: &planned.suite.rivals,
            plugins: if agent.can_load_plugins() { &planned.suite.plugins } else { &[] },
            allow_plugin_code: context.allow_plugin_code,
            arm: trial.condition.arm,
            skills_dir: &agent.skills_dir,
            project: &planned.project,
            hidden_files: &context.hidden_files,
            root: WorkspaceRoot::workspace_path(&context.workspace_root, opaque.short()),
            alias_ending: opaque.short(),
            add_canaries: !agent.decoder.shows_skills,
        })
        .map_err(|error| error.to_string())?;
        if !agent.can_load_plugins() && case.workspace.skill_name == StagedSkillName::Own {
            workspace.add_names_with_plugins(&planned.suite);
        }
        // This comes after staging, so that no change during staging is missed.
        let tested: &[SkillRef] = match trial.condition.arm {
            Arm::WithSkill | Arm::Version(_) => &planned.suite.skills,
            Arm::WithoutSkill => &[],
        };
        if let Some(why) = context.reusable.why_changed(tested) {
            return Err(why);
        }
        if context.keep_workspaces {
            workspace.set_keep_on_drop();
        }
        Ok::<Workspace, String>(workspace)
    });
    staged.await.map_err(|error| error.to_string())?
}

impl PreparedTrial<'_> {
    /// Runs the agent, unless no check looks at what it does.
    pub async fn run_agent(&self, context: &RunContext) -> ConversationResult {
        if self.needs_agent() {
            self.run_conversation(context).await
        } else {
            ConversationResult::not_needed(&self.turns())
        }
    }

    fn needs_agent(&self) -> bool {
        needs_agent(&applicable_checks(self.case, &self.trial.condition))
    }

    async fn run_conversation(&self, context: &RunContext) -> ConversationResult {
        let mut turns = self.turns();
        // An agent without an option for a system prompt gets the text before the user's first prompt.
        if let (Some(text), Some(first)) = (&self.planned.mode_text, turns.first_mut())
            && !self.agent.can_append_system_prompt()
        {
            *first = format!("{text}\n\n{first}");
        }
        let allowed = context
            .pass_env
            .iter()
            .filter_map(|name| Some((name.clone(), context.user_env.get(name)?.clone())));
        let mut extra_env: Vec<(String, String)> = allowed.collect();
        if self.planned.settings.sync_tasks.value {
            let (name, value) = FOREGROUND_TASKS_VARIABLE;
            extra_env.push((name.to_owned(), value.to_owned()));
        }
        let tools = self.allowed_tools();
        let talk = Conversation {
            agent: self.agent,
            turns: &turns,
            model: self.trial.condition.model.as_deref(),
            append_system: self
                .planned
                .mode_text
                .as_deref()
                .filter(|_| self.agent.can_append_system_prompt()),
            tools: tools.as_deref(),
            gateway: self.scope.as_ref().map(GatewayScope::base_url),
            mocks: self.mocks.as_ref(),
            user_env: &context.user_env,
            extra_env: &extra_env,
            sandbox: &self.sandbox,
            time_limit: self.planned.time_limit(self.case),
            limits: Some(&self.limits),
            marker: &self.marker,
            record_folder: &self.folder,
            scrubber: &context.scrubber,
            memory: &context.memory,
        };
        let mut conversed = self.converse(context, &talk).await;
        if let Some(scope) = &self.scope {
            conversed.notes.extend(self.gateway_notes(scope));
        }
        conversed.notes.extend(self.mock_model_notes());
        conversed
    }

    fn gateway_notes(&self, scope: &GatewayScope) -> Vec<String> {
        let who = self.services.gateway_name();
        scope.finish().into_iter().map(|note| format!("{who}: {note}")).collect()
    }

    /// Takes over what the gateway knows better than the agent: tokens, cost, and why a request got no answer.
    /// Without a gateway, the agent's own numbers are charged to the budget.
    pub fn apply_gateway_usage(&self, context: &RunContext, seen: &mut Observation) {
        // An agent that bypassed the gateway is treated as one without a gateway.
        let asked = self.scope.as_ref().filter(|scope| scope.requests() > 0);
        let Some(scope) = asked else {
            let model = seen.model.as_deref().unwrap_or_default();
            let cost = seen.cost_usd.or_else(|| context.ledger.prices().cost(model, seen.usage));
            context.ledger.record_spending(seen.usage, cost);
            return;
        };
        if self.services.gateway.as_ref().is_some_and(|(_, stand)| stand.uses_real_model()) {
            seen.usage = scope.usage();
            seen.cost_usd = scope.cost().or(seen.cost_usd);
        }
        // An agent that continued without an answer did not do what it would have done with one.
        match (scope.halt_reason(), seen.ended) {
            (None, _) | (Some(_), AgentEnding::Cancelled) => {}
            (Some(GatewayHalt::OverBudget(why)), _) => {
                seen.ended = AgentEnding::OverBudget;
                seen.ended_because = Some(why);
            }
            (Some(GatewayHalt::Unanswered(why)), _) => {
                seen.ended = AgentEnding::ApiFailed;
                seen.ended_because = Some(why);
            }
        }
    }

    /// Gives the only tools that the agent may use, as a list for its command line. An agent that has a skill may
    /// always activate it.
    fn allowed_tools(&self) -> Option<String> {
        let mut tools = self.planned.settings.tools.value.clone()?;
        if !self.workspace.staged_names.is_empty() && !tools.iter().any(|tool| tool == SKILL_TOOL) {
            tools.push(SKILL_TOOL.to_owned());
        }
        Some(tools.join(","))
    }

    fn turns(&self) -> Vec<String> {
        match &self.case.prompt {
            // The skill's name in the workspace is known only now.
            CasePrompt::Turns(_) if self.probed_skill.is_some() => {
                vec![probes::probe_prompt(self.probed_skill_name().unwrap_or_default())]
            }
            CasePrompt::Turns(turns) => turns.clone(),
            // Without the skill its command means nothing, and the text that replaces the command is not part of
            // the run.
            CasePrompt::SkillCommand { args } if self.trial.condition.arm == Arm::WithoutSkill => {
                vec![self.planned.suite.prompt_without_skill(args).unwrap_or(args).to_owned()]
            }
            CasePrompt::SkillCommand { args } => {
                let skill = self.workspace.call_names.first().map_or("", String::as_str);
                match self.agent.skill_command {
                    Some(command) => vec![command(skill, args)],
                    None => {
                        let own = self.planned.suite.run_policy.system_prompt.as_deref();
                        let derived = self.planned.derived_system.as_deref();
                        let before = own.or(derived).map(|text| format!("{text}\n\n")).unwrap_or_default();
                        vec![format!("{before}{args}")]
                    }
                }
            }
        }
    }

    /// Gives the name in the workspace of the skill that a probe is about.
    pub fn probed_skill_name(&self) -> Option<&str> {
        let about = self.probed_skill.as_deref()?;
        let names = staged_skill_names(self.planned, &self.workspace);
        names.into_iter().find(|(own, _)| *own == about).map(|(_, staged)| staged)
    }

    /// Gives every text that the model was sent, if a gateway recorded it.
    pub fn model_input_text(&self) -> Option<String> {
        self.scope.as_ref().filter(|scope| scope.requests() > 0).map(GatewayScope::probe_request_texts)
    }

    /// Runs the teardown script after the workspace has been examined. A failure becomes a note and changes no
    /// result.
    async fn tear_down(&self, context: &RunContext) -> Vec<String> {
        let Some(script) = &self.case.workspace.teardown else { return Vec::new() };
        match self.run_script(context, script).await {
            ScriptEnd::Done => Vec::new(),
            ScriptEnd::Failed(why) | ScriptEnd::OverLimit(why) => vec![TrialRecord::teardown_note(&why)],
        }
    }

    async fn run_script(&self, context: &RunContext, script: &str) -> ScriptEnd {
        if !context.allow_scripts {
            return ScriptEnd::Failed("it is not trusted".to_owned());
        }
        let scene = ScriptContext {
            folder: &self.workspace.folder,
            home: &self.workspace.home,
            tmp: &self.workspace.tmp,
            user_env: &context.user_env,
            sandbox: &self.sandbox,
            limits: Some(&self.limits),
            marker: &self.marker,
            record_folder: &self.folder,
            scrubber: &context.scrubber,
        };
        run_script(script, &scene, &context.stop.cancel).await
    }

    /// Gives the workspace as checks see it.
    fn checked_workspace<'s>(&'s self, context: &'s RunContext) -> CheckedWorkspace<'s> {
        CheckedWorkspace {
            files: self.workspace.view(),
            workspace: &self.workspace,
            sandbox: &self.sandbox,
            limits: &self.limits,
            user_env: &context.user_env,
            marker: &self.marker,
            cancel: &context.stop.cancel,
            started: AtomicUsize::new(0),
        }
    }

    /// Makes the grader of the trial.
    pub fn grader<'s>(&'s self, context: &'s RunContext) -> TrialGrader<'s> {
        let checks = applicable_checks(self.case, &self.trial.condition);
        TrialGrader {
            suite: &self.planned.suite,
            case: self.case,
            offered_skills: offered_skills(&self.planned.suite, &checks),
            checks,
            arm: self.trial.condition.arm,
            skills: self.skill_names(),
            permissions: CheckPermissions {
                run_code: context.allow_scripts,
                url_checker: context.web.as_ref().map(|web| web as &dyn UrlChecker),
            },
        }
    }

    /// Reads the last line that the agent wrote to its standard error, which often says why it crashed.
    pub fn last_line_of_stderr(&self) -> Option<String> {
        last_line(&self.folder.join("stderr.txt"))
    }

    /// Finds the skills that the agent lists although they were not staged.
    pub fn unexpected_skills(&self, context: &RunContext, seen: &Observation) -> UnexpectedSkills {
        let listed = seen.skills_listed.as_deref().unwrap_or_default();
        UnexpectedSkills::find(listed, self.agent, &self.workspace, &context.user_env)
    }

    /// Gives the skills under test: each with its own name and all its names in the workspace, the listed name
    /// first.
    fn skill_names(&self) -> Vec<(String, String)> {
        all_skill_names(self.planned, &self.workspace)
    }

    /// Says whether the texts of the skills reached the model.
    pub fn text_findings(&self, seen: &Observation) -> Vec<SkillTextFinding> {
        let recorded = self.scope.as_ref().and_then(GatewayScope::skill_text_findings);
        find_skill_texts(&self.skill_texts, seen, recorded, self.agent.decoder, &self.workspace.home)
    }

    /// Grades the observation. The checks run while the trial still has its agent slot, because they may need what
    /// agents need (a port, a processor). The judge is asked after that, at an address for this trial alone.
    pub async fn grade(
        &self,
        context: &RunContext,
        seen: &Observation,
        given: &[GivenFile],
        slot: &mut SlotPermit,
    ) -> TrialGrades {
        let (sheet, view) = (self.grader(context), self.checked_workspace(context));
        let findings = sheet.run_checks_in_background(seen, &view);
        let judged = self.services.judge.is_ok() && sheet.needs_judge(seen);
        // A trial with a teardown keeps its slot: the setup of the next trial may need what the teardown removes.
        if self.case.workspace.teardown.is_none() && (judged || !context.can_delay_next_trial(seen.ended)) {
            slot.release_agent_slot();
        }
        let address = || {
            let gateway = self.services.gateway.as_ref().map(|(gateway, _)| gateway);
            gateway.map(|gateway| register(gateway, self.trial, ScopeKind::Judge, &self.workspace, ""))
        };
        let judge = match &self.services.judge {
            _ if context.stop.cancel.is_cancelled() => Err(NotScoredReason::Ended(AgentEnding::Cancelled)),
            Err(why) => Err(NotScoredReason::NotJudged(why.clone())),
            Ok(judge) => Ok(judge.as_ref()),
        };
        let sitting = JudgeContext { marker: &self.marker, cancel: &context.stop.cancel };
        let (gateway, prices) = (self.services.gateway_name(), self.services.prices(context.ledger.prices()));
        let jury =
            JudgeAccess { judge, context: sitting, open_scope: &address, gateway_name: gateway, prices };
        sheet.grade_with_findings(seen, &view, given, &jury, findings).await
    }

    /// Gathers the facts that the other files of the trial do not contain.
    pub fn facts(
        &self,
        seen: &Observation,
        started: jiff::Timestamp,
        turns: Vec<TurnFacts>,
        given: Vec<GivenFile>,
    ) -> TrialFacts {
        TrialFacts {
            schema_version: 1,
            stream: self.agent.decoder.name.to_owned(),
            turns,
            ended: seen.ended,
            ended_because: seen.ended_because.clone(),
            files: seen.files.clone(),
            skills: self
                .skill_names()
                .into_iter()
                .map(|(name, staged_as)| StagedSkill { name, staged_as })
                .collect(),
            canaries: self.workspace.canaries.clone(),
            text_findings: seen.text_findings.clone(),
            listing: self.scope.as_ref().and_then(|scope| listing_in_requests(self.planned, scope)),
            left: FolderListing::of_folder(&self.workspace.folder),
            given,
            unread: seen.unread.clone(),
            usage: seen.usage,
            mock_calls: seen.mock_calls.clone(),
            leaked: seen.leaked.clone(),
            cost_usd: seen.cost_usd,
            seconds: seen.seconds,
            started: Some(started.to_string()),
            only_predicted: !self.needs_agent(),
        }
    }

    /// Copies the files that the agent worked on into the trial's folder. Gives notes about them.
    fn capture(&self, seen: &Observation, scrubber: &Scrubber) -> Vec<String> {
        let (from, to) = (&self.workspace.folder, &self.folder);
        let inputs = editable_file_changes(&self.case.workspace.files, from);
        let mut notes = capture_changed_files(&seen.files, from, &to.join("files"), scrubber);
        notes.extend(capture_changed_files(&inputs, from, &to.join("inputs"), scrubber));
        notes
    }

    /// Gives a scrubber that also knows the login of the agent as it is now: the agent may have renewed it.
    fn scrubber_with_renewed_login(&self, context: &RunContext) -> Scrubber {
        let scrubber = context.scrubber.clone();
        let Some(login) = &self.agent.credentials.file else { return scrubber };
        let in_home = self.workspace.home.join(login.folder).join(login.name);
        let scrubber = scrubber.with_secrets_in_file(&in_home);
        match self.agent.credentials.find_login(&context.user_env) {
            Some(AgentLogin::File(path)) => scrubber.with_secrets_in_file(&path),
            Some(AgentLogin::Variable(_)) | None => scrubber,
        }
    }

    /// Writes the trial's folder. Only then is the trial reported.
    pub async fn store(
        self,
        context: &Arc<RunContext>,
        mut record: TrialRecord,
        seen: Observation,
        facts: TrialFacts,
    ) -> TrialRecord {
        let scrubber = self.scrubber_with_renewed_login(context);
        if !(seen.files.is_empty() && self.case.workspace.files.is_empty()) {
            record.notes.extend(crate::workspace::run::run_blocking(|| self.capture(&seen, &scrubber)));
        }
        record.notes.extend(self.tear_down(context).await);
        let (folder, workspace) = (self.folder, self.workspace);
        let keeper = Arc::clone(context);
        let kept = tokio::task::spawn_blocking(move || {
            let closed = keeper.run_dir.complete_trial(&folder, &record, &seen.output, facts, &scrubber);
            if let Err(error) = closed {
                record = without_evidence(record, &error.to_string());
            }
            // Deleting the workspace takes time, so it happens here and not on a thread that reads from agents.
            drop(workspace);
            record
        });
        match kept.await {
            Ok(record) => record,
            Err(error) => unfinished_record(
                context.plan_of(self.phase),
                self.trial,
                AgentEnding::Crashed,
                &error.to_string(),
            ),
        }
    }
}

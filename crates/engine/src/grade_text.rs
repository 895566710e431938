//! Marking a text that was captured elsewhere.
//!
//! In: planned suites and a text. Out: `Graded`, and the exit code that follows. What only a run can
//! show (tools, files, activation) is not scored. Never: runs an agent; needs a skill on disk.

use std::collections::BTreeMap;
use std::path::Path;

use crate::grading::{JudgeAccess, TrialGrader, unanswered};
use crate::judge::JudgeContext;
use crate::pipeline::SuiteServices;
use crate::plan::{CaseGlob, PlannedSuite, is_activation};
use crate::run::CancelToken;
use practicum_agents::gateway::ScopeKind;
use practicum_core::aggregate::{RunCompletion, RunTally, SuiteGate};
use practicum_core::model::{
    AgentEnding, Arm, Case, CasePrompt, Check, CheckKind, CheckPermissions, CheckResult, CheckTarget,
    Condition, Gate, GateName, GateResult, NotScoredReason, Observation, PassRule, Ratio, RelPath, Remarks,
    SkillUse, SkillUseMode, Step, Suite, TokenUsage, TrialId, TrialRecord, UrlChecker, Verdict,
    WorkspaceView, count_with_noun,
};
use practicum_evals::checks::reads_only_text;

/// Names the processes of a judge that is one.
const JUDGE_PROCESS_MARKER: &str = "captured";

/// A text and what it is marked against.
pub struct TextToGrade<'c> {
    pub text: String,
    pub suites: &'c [PlannedSuite],
    /// One for each suite; `None` where no judge is wanted.
    pub services: Option<&'c [SuiteServices]>,
    /// Whether code alone decides, and checks for a judge are left out. Otherwise a check that no judge was asked
    /// about leaves its case without a verdict.
    pub checks_only: bool,
    /// Stops a judge.
    pub cancel: &'c CancelToken,
    /// The network, where checks may ask it.
    pub network: Option<&'c dyn UrlChecker>,
    /// Globs over case ids; without any, every case that asks more than whether a skill is activated.
    pub case_globs: &'c [CaseGlob],
    /// The share of a case's required checks that may stay without an answer.
    pub allow_unscored: Ratio,
}

/// What was found.
pub struct TextGrades {
    /// For each case its id and what its checks found; last, those that only a run can answer.
    pub cases: Vec<(String, Vec<CheckResult>)>,
    pub gates: Vec<GateResult>,
    /// What is worth telling of the judge, such as evidence that was shortened for it.
    pub notes: Vec<String>,
    pub exit: u8,
}

impl TextGrades {
    /// Every check by its id; with the case's before it where there are several cases.
    pub fn into_results(self) -> Vec<(String, CheckResult)> {
        let several = self.cases.len() > 1;
        let named = |case: &str, check: &str| match several {
            true => format!("{case}/{check}"),
            false => check.to_owned(),
        };
        let cases = self.cases.into_iter();
        cases
            .flat_map(|(case, results)| {
                results.into_iter().map(move |result| (named(&case, &result.check), result))
            })
            .collect()
    }
}

/// Whether a text alone can answer anything that the case asks.
pub fn can_grade_text(case: &Case) -> bool {
    case.checks.iter().any(needs_only_text)
}

/// Takes out the gates that a text cannot answer, so that they neither hold nor fail. That every case
/// must pass stays, whatever else goes.
pub fn keep_answerable_gates(suites: &mut [PlannedSuite], judged: bool) {
    for PlannedSuite { suite, .. } in suites {
        suite.gates.retain(|gate| match gate.name {
            GateName::AllCasesPass | GateName::PassRate | GateName::Stability => true,
            GateName::CriteriaPassRate | GateName::MeanScore => judged,
            GateName::ActivationCasesPass
            | GateName::Precision
            | GateName::Recall
            | GateName::F1
            | GateName::Accuracy => false,
        });
        if suite.gates.is_empty() {
            suite.gates.push(Gate::ALL_CASES_PASS);
        }
    }
}

/// The checks of a case that a text can answer. The text is what they were to read, wherever a run
/// would have left it.
pub fn text_checks(case: &Case) -> Vec<Check> {
    let asked = case.checks.iter().filter(|check| needs_only_text(check));
    asked.map(|check| Check { target: CheckTarget::Output, ..check.clone() }).collect()
}

fn needs_only_text(check: &Check) -> bool {
    match &check.kind {
        CheckKind::Rule(rule) => reads_only_text(rule.as_ref()),
        CheckKind::Judged(_) | CheckKind::Sections(_) => true,
        CheckKind::Activation(_) => false,
    }
}

impl TextToGrade<'_> {
    /// The cases that are marked: those that were named, else all but those that ask only whether a skill is
    /// activated, which no text is an answer to. Where only a run can show what a case asks, it has no answer.
    fn selected_cases(&self) -> impl Iterator<Item = (usize, &PlannedSuite, &Case)> {
        let all =
            self.suites.iter().enumerate().flat_map(|(index, planned)| {
                planned.suite.cases.iter().map(move |case| (index, planned, case))
            });
        all.filter(|(_, _, case)| match self.case_globs {
            [] => !is_activation(case),
            globs => globs.iter().any(|glob| glob.matches(&case.id)),
        })
    }

    /// Marks every chosen case. `None` if there is none, or none was named and a text can answer none.
    pub async fn grade(&self) -> Option<TextGrades> {
        if self.case_globs.is_empty() && !self.selected_cases().any(|(_, _, case)| can_grade_text(case)) {
            return None;
        }
        let mut seen = Observation {
            output: self.text.clone(),
            turns: 1,
            ..Observation::with_ending(AgentEnding::Finished)
        };
        let mut gates = Vec::new();
        let mut tally = RunTally::default();
        let mut cases = Vec::new();
        let mut notes = Vec::new();
        for (index, planned, case) in self.selected_cases() {
            let means = self.services.and_then(|means| means.get(index));
            seen.steps = prompt_steps(&planned.suite, case);
            let (checks, told) = grade_case(&planned.suite, case, means, self, &seen).await;
            notes.extend(told.into_iter().map(|note| format!("case {}: {note}", case.id)));
            let verdict = self.verdict(case, &checks, &seen);
            tally.add(&trial_record(&planned.suite, case, verdict, checks.clone()));
            cases.push((case.id.clone(), checks));
            for gate in &planned.suite.gates {
                let gate = SuiteGate { suite: planned.suite.name.clone(), gate: *gate };
                if !gates.contains(&gate) {
                    gates.push(gate);
                }
            }
        }
        notes.extend(self.unjudged_checks_note(&cases));
        let summary = tally.summary("", &gates, 0.0, RunCompletion::Completed);
        let (gates, exit) = (summary.gates, summary.exit);
        (!cases.is_empty()).then_some(TextGrades { cases, gates, notes, exit })
    }

    /// The verdict over all checks, without the few that may stay open, and without those for a judge where code
    /// alone decides.
    fn verdict(&self, case: &Case, checks: &[CheckResult], seen: &Observation) -> Verdict {
        let asked: Vec<&CheckResult> =
            checks.iter().filter(|check| !(self.checks_only && self.is_left_to_judge(check))).collect();
        let is_open = |check: &CheckResult| matches!(check.verdict, Verdict::NotScored(_));
        // Checks for a judge may decide together without being required each.
        let counts = |check: &CheckResult| check.required || self.is_left_to_judge(check);
        let required = asked.iter().filter(|check| counts(check)).count() as f64;
        let open = asked.iter().filter(|check| counts(check) && is_open(check)).count() as f64;
        let forgiven = open <= required * self.allow_unscored.get();
        let deciding: Vec<CheckResult> = asked
            .into_iter()
            .filter(|check| !(forgiven && counts(check) && is_open(check)))
            .cloned()
            .collect();
        let rule = if self.checks_only { PassRule::EveryRequiredCheck } else { case.pass_rule };
        TrialRecord::verdict_of(seen, &deciding, rule)
    }

    /// Whether a check is for a judge and no judge was wanted.
    fn is_left_to_judge(&self, check: &CheckResult) -> bool {
        self.services.is_none() && matches!(check.verdict, Verdict::NotScored(NotScoredReason::NotJudged(_)))
    }

    /// A note that names the checks for which no judge was asked; `None` where there are none.
    fn unjudged_checks_note(&self, cases: &[(String, Vec<CheckResult>)]) -> Option<String> {
        let names: Vec<String> = cases
            .iter()
            .flat_map(|(case, checks)| checks.iter().map(move |check| (case, check)))
            .filter(|(_, check)| !self.checks_only && self.is_left_to_judge(check))
            .map(|(case, check)| match cases.len() {
                1 => check.check.clone(),
                _ => format!("{case}/{}", check.check),
            })
            .collect();
        let told = "--judge asks a judge, and --allow-unscored 1 lets code alone decide";
        (!names.is_empty()).then(|| {
            format!("nobody answered {}: {}; {told}", count_with_noun(names.len(), "check"), names.join(", "))
        })
    }
}

/// What the user would have said, for a judge who has to know what was asked.
fn prompt_steps(suite: &Suite, case: &Case) -> Vec<Step> {
    match &case.prompt {
        CasePrompt::Turns(turns) => turns.iter().cloned().map(Step::User).collect(),
        CasePrompt::SkillCommand { args } => {
            let skill = suite.skills.first().map_or("", |skill| &skill.name);
            vec![Step::User(format!("/{skill} {args}").trim_end().to_owned())]
        }
    }
}

async fn grade_case(
    suite: &Suite,
    case: &Case,
    means: Option<&SuiteServices>,
    captured: &TextToGrade<'_>,
    seen: &Observation,
) -> (Vec<CheckResult>, Vec<String>) {
    let asked = text_checks(case);
    let sheet = TrialGrader {
        suite,
        case,
        checks: asked.iter().collect(),
        arm: Arm::WithSkill,
        skills: Vec::new(),
        permissions: CheckPermissions { run_code: false, url_checker: captured.network },
        offered_skills: Vec::new(),
    };
    let marked = match means {
        Some(means) => {
            let gateway = means.gateway.as_ref().map(|(gateway, _)| gateway);
            let address = || gateway.map(|at| at.register(&case.id, ScopeKind::Judge, BTreeMap::new()));
            let judge = means.judge.as_ref().map(AsRef::as_ref);
            let judge = judge.map_err(|why| NotScoredReason::NotJudged(why.clone()));
            let sitting = JudgeContext { marker: JUDGE_PROCESS_MARKER, cancel: captured.cancel };
            let jury = JudgeAccess {
                judge,
                context: sitting,
                open_scope: &address,
                gateway_name: means.gateway_name(),
                prices: None,
            };
            sheet.grade(seen, &NoWorkspace, &[], &jury).await
        }
        None => {
            let why = NotScoredReason::NotJudged("--judge was not given".to_owned());
            let mark = || sheet.grade_without_judge(seen, &NoWorkspace, &why);
            // Only the network is waited for.
            if captured.network.is_some() { crate::run::run_blocking(mark) } else { mark() }
        }
    };
    let unseen =
        || NotScoredReason::CheckFailed("only a run can show it, and this is a captured text".to_owned());
    let others = case.checks.iter().filter(|check| !needs_only_text(check));
    let others = others.map(|check| unanswered(check, &unseen()));
    (marked.checks.into_iter().chain(others).collect(), marked.notes)
}

fn trial_record(suite: &Suite, case: &Case, verdict: Verdict, checks: Vec<CheckResult>) -> TrialRecord {
    let condition = Condition {
        agent: "captured".to_owned(),
        model: None,
        arm: Arm::WithSkill,
        mode: SkillUseMode::Baseline,
    };
    TrialRecord {
        trial: TrialId::new(&suite.name, &case.id, &condition, 1),
        key: None,
        reused_from: None,
        suite: suite.name.clone(),
        case: case.id.clone(),
        condition,
        attempt: 1,
        ended: AgentEnding::Finished,
        ended_because: None,
        verdict,
        checks,
        expect: None,
        fired: None,
        skills: SkillUse::default(),
        usage: TokenUsage::default(),
        cost_usd: None,
        model: None,
        seconds: 0.0,
        notes: Vec::new(),
        remarks: Remarks::default(),
        predicted: None,
        shortened_evidence: None,
        judging: None,
        judged_by: None,
    }
}

/// There is none: only a text was captured.
struct NoWorkspace;

impl WorkspaceView for NoWorkspace {
    fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Err(std::io::Error::other("there is no workspace"))
    }

    fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
        Err(std::io::Error::other("there is no workspace"))
    }

    fn folder(&self) -> Option<&Path> {
        None
    }
}

//! Grades a text that was produced outside a run.
//!
//! In: planned suites and a text. Out: `TextGrades` with the exit code. Checks that need a run (tools, files,
//! activation) are not scored. Never: runs an agent; needs a skill on disk.

use std::collections::BTreeMap;

use crate::grade::SuiteServices;
use crate::grade::grading::{JudgeAccess, TrialGrader, unanswered};
use crate::grade::judge::JudgeContext;
use crate::plan::{CaseGlob, PlannedSuite, is_activation};
use crate::workspace::run::CancelToken;
use practicum_agents::gateway::ScopeKind;
use practicum_core::aggregate::{RunCompletion, RunTally, SuiteGate};
use practicum_core::model::{
    AgentEnding, Arm, Case, CasePrompt, Check, CheckKind, CheckPermissions, CheckResult, CheckTarget,
    Condition, Gate, GateName, GateResult, NotScoredReason, Observation, Outcome, PassRule, Ratio, RelPath,
    Remarks, SkillUse, SkillUseMode, Step, Suite, TokenUsage, TrialId, TrialRecord, UrlChecker, Verdict,
    WorkspaceView, count_with_noun,
};
use practicum_evals::checks::reads_only_text;

/// Marks the processes of a judge that is a CLI.
const JUDGE_PROCESS_MARKER: &str = "captured";

/// A text, and the suites by which it is graded.
pub struct TextToGrade<'c> {
    pub text: String,
    pub suites: &'c [PlannedSuite],
    /// The services of each suite; `None` if no judge is wanted.
    pub services: Option<&'c [SuiteServices]>,
    /// Whether only deterministic checks count and those for a judge are left out. Otherwise a case stays without
    /// a verdict if it has a check for which no judge was asked.
    pub checks_only: bool,
    /// Stops a judge.
    pub cancel: &'c CancelToken,
    /// The network, if checks may use it.
    pub network: Option<&'c dyn UrlChecker>,
    /// Globs over case ids. If there are none, every case is graded except those that only ask whether a skill is
    /// activated.
    pub case_globs: &'c [CaseGlob],
    /// The share of a case's required checks that may stay without an answer.
    pub allow_unscored: Ratio,
}

/// The results of grading a text.
pub struct TextGrades {
    /// The id and the check results of each case. Checks that only a run can answer come last.
    pub cases: Vec<(String, Vec<CheckResult>)>,
    pub gates: Vec<GateResult>,
    /// Notes about the judge, such as evidence that was shortened for it.
    pub notes: Vec<String>,
    pub exit: Outcome,
}

impl TextGrades {
    /// Gives every check result with its id, prefixed with the case id if there are several cases.
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

/// Says whether a text alone can answer at least one check of the case.
pub(crate) fn can_grade_text(case: &Case) -> bool {
    case.checks.iter().any(needs_only_text)
}

/// Removes the gates that a text cannot answer, so that they neither hold nor fail. The gate that every case must
/// pass always stays.
pub fn keep_answerable_gates(suites: &mut [PlannedSuite], judged: bool) {
    for PlannedSuite { suite, .. } in suites {
        suite.gates.retain(|gate| match gate.name {
            GateName::AllCasesPass | GateName::PassRate | GateName::Stability => true,
            GateName::CriteriaPassRate | GateName::MeanScore => judged,
            GateName::ActivationCasesPass
            | GateName::Precision
            | GateName::Recall
            | GateName::F1
            | GateName::Accuracy
            | GateName::NoRegression => false,
        });
        if suite.gates.is_empty() {
            suite.gates.push(Gate::ALL_CASES_PASS);
        }
    }
}

/// Gives the checks of a case that a text can answer. They read the given text, whatever file they would read in a
/// run.
pub(crate) fn text_checks(case: &Case) -> Vec<Check> {
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
    /// Gives the cases to grade: the named ones, or else all except those that only ask whether a skill is
    /// activated, because a text cannot answer that. A selected case that needs a run has no answer.
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

    /// Grades every selected case. `None` if no case is selected, or if none was named and a text can answer none.
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
            let (checks, case_notes) = grade_case(&planned.suite, case, means, self, &seen).await;
            notes.extend(case_notes.into_iter().map(|note| format!("case {}: {note}", case.id)));
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

    /// Combines all check results into a verdict. A tolerated share of unanswered checks is ignored, and so are
    /// checks for a judge if `checks_only` is set.
    fn verdict(&self, case: &Case, checks: &[CheckResult], seen: &Observation) -> Verdict {
        let asked: Vec<&CheckResult> =
            checks.iter().filter(|check| !(self.checks_only && self.is_left_to_judge(check))).collect();
        let is_open = |check: &CheckResult| matches!(check.verdict, Verdict::NotScored(_));
        // Judged checks may decide together, so they count even if none is required alone.
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

    /// Says whether a check is for a judge although no judge is wanted.
    fn is_left_to_judge(&self, check: &CheckResult) -> bool {
        self.services.is_none() && matches!(check.verdict, Verdict::NotScored(NotScoredReason::NotJudged(_)))
    }

    /// Writes a note that names the checks for which no judge was asked; `None` if there are none.
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
        let advice = "--judge asks a judge, and --allow-unscored 1 lets code alone decide";
        (!names.is_empty()).then(|| {
            format!("no answer for {}: {}; {advice}", count_with_noun(names.len(), "check"), names.join(", "))
        })
    }
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
    let grades = match means {
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
            let grade = || sheet.grade_without_judge(seen, &NoWorkspace, &why);
            // Only a check that uses the network takes long enough to need another thread.
            if captured.network.is_some() { crate::workspace::run::run_blocking(grade) } else { grade() }
        }
    };
    let unseen =
        || NotScoredReason::CheckFailed("only a run can show it, and this is a captured text".to_owned());
    let others = case.checks.iter().filter(|check| !needs_only_text(check));
    let others = others.map(|check| unanswered(check, case.pass_rule, &unseen()));
    (grades.checks.into_iter().chain(others).collect(), grades.notes)
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
        repeats: None,
        suite: suite.name.clone(),
        case: case.id.clone(),
        condition,
        attempt: 1,
        ended: AgentEnding::Finished,
        ended_because: None,
        limit_resets_at: None,
        verdict,
        score: TrialRecord::score_of(&checks),
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
        user: None,
        mock_model: None,
    }
}

/// The missing workspace of a text that was captured elsewhere.
struct NoWorkspace;

impl WorkspaceView for NoWorkspace {
    fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Err(std::io::Error::other("there is no workspace"))
    }

    fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
        Err(std::io::Error::other("there is no workspace"))
    }
}

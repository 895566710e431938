//! Grades a text or a session that was produced outside a run.
//!
//! In: planned suites and a `CapturedOutput`. Out: `TextGrades` with the exit code. Checks of what the output cannot show
//! (of a text: tools, files, activation; of a session: files) are not scored. Never: runs an agent; needs a skill on disk.

use std::collections::BTreeMap;

use crate::grade::SuiteServices;
use crate::grade::captured_output::CapturedOutput;
use crate::grade::grading::{JudgeAccess, TrialGrader, unanswered};
use crate::grade::judge::JudgeContext;
use crate::plan::{CaseGlob, PlannedSuite, is_activation};
use crate::workspace::run::CancelToken;
use practicum_agents::gateway::ScopeKind;
use practicum_core::aggregate::{RunCompletion, RunTally, SuiteGate};
use practicum_core::model::{
    Arm, Case, Check, CheckPermissions, CheckResult, Condition, Gate, GateName, GateResult, NotScoredReason,
    Observation, Outcome, PassRule, Ratio, RelPath, Remarks, SkillUse, SkillUseMode, Suite, TokenUsage,
    TrialId, TrialRecord, UrlChecker, Verdict, WorkspaceView, count_with_noun,
};

/// Marks the processes of a judge that is a CLI.
const JUDGE_PROCESS_MARKER: &str = "captured";

/// A captured text or session, and the suites by which it is graded.
pub struct TextToGrade<'c> {
    pub output: CapturedOutput,
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
    /// activated; and of a session the cases with its prompts, if there are such.
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
    CapturedOutput::Text(String::new()).answerable_checks(case)
}

impl TextToGrade<'_> {
    /// Gives the cases to grade: the named ones, or else those that fit the output. A selected case that needs a run has
    /// no answer.
    fn selected_cases(&self) -> impl Iterator<Item = (usize, &PlannedSuite, &Case)> {
        let all =
            self.suites.iter().enumerate().flat_map(|(index, planned)| {
                planned.suite.cases.iter().map(move |case| (index, planned, case))
            });
        let mut cases = self.suites.iter().flat_map(|planned| &planned.suite.cases);
        let has_own_case = cases.any(|case| self.output.has_prompts_of(case));
        all.filter(move |(_, _, case)| match self.case_globs {
            [] if has_own_case => self.output.has_prompts_of(case),
            [] => !is_activation(case),
            globs => globs.iter().any(|glob| glob.matches(&case.id)),
        })
    }

    /// Grades every selected case. `None` if no case is selected, or if none was named and a text can answer none.
    pub async fn grade(&self) -> Option<TextGrades> {
        let can_grade = |case: &Case| case.checks.iter().any(|check| self.output.can_answer(check));
        if self.case_globs.is_empty() && !self.selected_cases().any(|(_, _, case)| can_grade(case)) {
            return None;
        }
        let mut gates = Vec::new();
        let mut tally = RunTally::default();
        let mut cases = Vec::new();
        let mut notes = Vec::new();
        for (index, planned, case) in self.selected_cases() {
            let means = self.services.and_then(|means| means.get(index));
            let seen = self.output.observation(planned, case);
            let (checks, case_notes) = grade_case(planned, case, means, self, &seen).await;
            notes.extend(case_notes.into_iter().map(|note| format!("case {}: {note}", case.id)));
            let verdict = self.verdict(case, &checks, &seen);
            tally.add(&trial_record(&planned.suite, case, verdict, checks.clone(), &seen));
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

async fn grade_case(
    planned: &PlannedSuite,
    case: &Case,
    means: Option<&SuiteServices>,
    captured: &TextToGrade<'_>,
    seen: &Observation,
) -> (Vec<CheckResult>, Vec<String>) {
    let asked = captured.output.answerable_checks(case);
    let as_sent = captured.output.with_sent_prompts(case);
    let sheet = TrialGrader {
        suite: &planned.suite,
        case: &as_sent,
        checks: asked.iter().collect(),
        arm: Arm::WithSkill,
        skills: captured.output.skill_names(planned),
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
    let others = case.checks.iter().filter(|check| !captured.output.can_answer(check));
    let others = others.map(|check| unanswered(check, case.pass_rule, &unseen()));
    (grades.checks.into_iter().chain(others).collect(), grades.notes)
}

fn trial_record(
    suite: &Suite,
    case: &Case,
    verdict: Verdict,
    checks: Vec<CheckResult>,
    seen: &Observation,
) -> TrialRecord {
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
        ended: seen.ended,
        ended_because: seen.ended_because.clone(),
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

/// The missing workspace of an output that was captured elsewhere.
struct NoWorkspace;

impl WorkspaceView for NoWorkspace {
    fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Err(std::io::Error::other("there is no workspace"))
    }

    fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
        Err(std::io::Error::other("there is no workspace"))
    }
}

//! Tests whether the checks of a suite can tell real work from doing nothing.
//!
//! In: a suite and the text it was read from. Out: what its checks say about an agent that does nothing, and about
//! an output that is known to be good. Never: runs anything; asks a judge.

use std::io::{self, Read};
use std::path::Path;

use crate::grade::grade_text::text_checks;
use crate::grade::grading::TrialGrader;
use crate::plan::suite_quality::SuitePositions;
use crate::workspace::stage::FolderView;
use practicum_core::model::{
    ActivationExpectation, AgentEnding, Arm, Case, CasePrompt, Check, CheckKind, CheckNeed, CheckPermissions,
    CheckResult, Diagnostics, NotScoredReason, Observation, PassRule, RelPath, Span, Step, Suite, TokenUsage,
    Verdict, WorkspaceBase, WorkspaceView,
};
use practicum_core::tree::open_regular;

/// The answers of an agent that does nothing, each with a description.
const IDLE_ANSWERS: [(&str, &str); 2] = [("says nothing", ""), ("only says \"I'm done.\"", "I'm done.")];

/// Adds the findings to the other diagnostics of the file.
pub fn self_test(suite: &Suite, text: &str, project: &Path, diagnostics: &mut Diagnostics) {
    let (mut answers, places) = (Vec::new(), SuitePositions::new(text));
    for case in &suite.cases {
        let at = places.case_span(case);
        let answer = grade_idle_agent(suite, case, project);
        report_idle_result(case, &answer, at, diagnostics);
        answers.push(answer);
        check_golden_output(suite, case, at, diagnostics);
    }
    let all_pass =
        answers.iter().all(|answer| matches!(answer, IdleResult::Passes(_) | IdleResult::PassesAsExpected));
    if all_pass && answers.iter().any(|answer| matches!(answer, IdleResult::PassesAsExpected)) {
        diagnostics.warning_with_help(
            "passes-idle",
            None,
            format!("an agent that does nothing passes every case of suite {}", suite.name),
            "add a case in which the skill must be activated",
        );
    }
}

/// The result of a case's deterministic checks for an agent that does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum IdleResult {
    Fails,
    /// The case passes; the text describes the agent's answer.
    Passes(&'static str),
    /// The case passes as it should: it wants the skill not to be activated.
    PassesAsExpected,
    /// Only a judge could fail the case.
    NeedsJudge,
    /// A check that could fail the case needs something that is missing here.
    Undecided(String),
}

fn grade_idle_agent(suite: &Suite, case: &Case, project: &Path) -> IdleResult {
    let mut answer = IdleResult::Fails;
    for (words, output) in IDLE_ANSWERS {
        let found = grade_with_checks(suite, case, &observation(case, output), project);
        match idle_result(case, &found, words) {
            IdleResult::Fails => {}
            passes @ (IdleResult::Passes(_) | IdleResult::PassesAsExpected) => return passes,
            unsure @ (IdleResult::NeedsJudge | IdleResult::Undecided(_)) => answer = unsure,
        }
    }
    answer
}

fn idle_result(case: &Case, found: &[CheckResult], words: &'static str) -> IdleResult {
    let found = |check: &Check| found.iter().find(|result| result.check == check.id);
    let required = || case.checks.iter().filter(|check| check.need == CheckNeed::Required && is_exact(check));
    let decided = || required().filter_map(|check| Some((check, found(check)?)));
    if decided().any(|(_, result)| result.verdict == Verdict::Fail) {
        return IdleResult::Fails;
    }
    let graded = matches!(case.pass_rule, PassRule::JudgedThresholds { .. });
    if case.checks.iter().any(|check| !is_exact(check) && (graded || check.need == CheckNeed::Required)) {
        return IdleResult::NeedsJudge;
    }
    let open = decided().find_map(|(check, result)| match &result.verdict {
        Verdict::NotScored(_) => Some(format!("{}: {}", check.id, result.rationale)),
        Verdict::Pass | Verdict::Fail => None,
    });
    match open {
        Some(why) => IdleResult::Undecided(why),
        None if decided().all(|(check, _)| forbids_activation(check)) => IdleResult::PassesAsExpected,
        None => IdleResult::Passes(words),
    }
}

fn is_exact(check: &Check) -> bool {
    match check.kind {
        CheckKind::Rule(_) | CheckKind::Activation(_) => true,
        CheckKind::Judged(_) | CheckKind::Sections(_) => false,
    }
}

fn forbids_activation(check: &Check) -> bool {
    match &check.kind {
        CheckKind::Activation(activation) => activation.expect != ActivationExpectation::Must,
        CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => false,
    }
}

fn report_idle_result(case: &Case, answer: &IdleResult, at: Option<Span>, diagnostics: &mut Diagnostics) {
    let id = &case.id;
    match answer {
        IdleResult::Fails | IdleResult::PassesAsExpected => {}
        IdleResult::Passes(words) => diagnostics.warning_with_help(
            "passes-idle",
            at,
            format!("case {id} passes for an agent that {words} and does nothing"),
            "add a required check that fails until the work is done",
        ),
        IdleResult::NeedsJudge => diagnostics.notice(
            "not-self-testable",
            at,
            format!("case {id} cannot be self-tested: only its judged checks could fail an idle agent"),
        ),
        IdleResult::Undecided(why) => diagnostics.notice(
            "not-self-testable",
            at,
            format!("case {id} cannot be self-tested: nothing else could fail an idle agent than {why}"),
        ),
    }
}

fn grade_with_checks(suite: &Suite, case: &Case, seen: &Observation, project: &Path) -> Vec<CheckResult> {
    let sheet = grader(suite, case, case.checks.iter().collect());
    let workspace = UntouchedWorkspace { case, project };
    sheet
        .grade_without_judge(
            seen,
            &workspace,
            &NotScoredReason::NotJudged("no judge is asked here".to_owned()),
        )
        .checks
}

fn grader<'s>(suite: &'s Suite, case: &'s Case, checks: Vec<&'s Check>) -> TrialGrader<'s> {
    // No check can run code: there is no folder to run it in.
    TrialGrader {
        suite,
        case,
        checks,
        arm: Arm::WithSkill,
        skills: Vec::new(),
        permissions: CheckPermissions { run_code: true, url_checker: None },
        offered_skills: Vec::new(),
    }
}

/// Makes an observation in which the user sent the prompts and the agent only gave this output.
fn observation(case: &Case, output: &str) -> Observation {
    let prompts = match &case.prompt {
        CasePrompt::Turns(turns) => turns.clone(),
        CasePrompt::SkillCommand { args } => vec![args.clone()],
    };
    Observation {
        turns: prompts.len(),
        steps: prompts.into_iter().map(Step::User).collect(),
        output: output.to_owned(),
        usage: TokenUsage { input: 1, output: 1, ..TokenUsage::default() },
        cost_usd: Some(0.0),
        api_calls: Some(1),
        mock_calls: (!case.mocks.is_empty()).then(Vec::new),
        ..Observation::with_ending(AgentEnding::Finished)
    }
}

/// Checks that an output that is known to be good passes, as far as a text alone can tell.
fn check_golden_output(suite: &Suite, case: &Case, at: Option<Span>, diagnostics: &mut Diagnostics) {
    let id = &case.id;
    if let Some(path) = &case.known_good_output {
        match read(path) {
            Err(error) => diagnostics.error_with_help(
                "oracle-unreadable",
                at,
                format!("the oracle of case {id} cannot be read: {}: {error}", path.display()),
                "\"oracle\" names a file with an output that is known to be good",
            ),
            Ok(output) => {
                for failure in failed_checks(suite, case, &output) {
                    diagnostics.error_with_help(
                        "oracle-fails",
                        at,
                        format!("the oracle of case {id} fails check {failure}"),
                        "a good output must pass: mend the check, or the oracle",
                    );
                }
            }
        }
    }
    // A recorded answer may be there as a bad example. Only the author knows.
    if let Some(actual) = case.meta.get("actual").and_then(|actual| actual.as_str())
        && let Some(failure) = failed_checks(suite, case, actual).first()
    {
        let text = format!(
            "the \"actual\" of case {id} fails check {failure}; that is right if it is there as a bad example"
        );
        diagnostics.notice("actual-fails", at, text);
    }
}

/// Gives the required checks that an output fails, each with its rationale.
fn failed_checks(suite: &Suite, case: &Case, output: &str) -> Vec<String> {
    let checks = text_checks(case);
    let sheet = grader(suite, case, checks.iter().collect());
    let workspace = UntouchedWorkspace { case, project: Path::new("/") };
    let why = NotScoredReason::NotJudged("no judge is asked here".to_owned());
    let found = sheet.grade_without_judge(&observation(case, output), &workspace, &why).checks;
    let failed = found.into_iter().filter(|result| result.required && result.verdict == Verdict::Fail);
    failed.map(|result| format!("{}: {}", result.check, result.rationale)).collect()
}

/// The most bytes that are read of an oracle.
const MAX_ORACLE_BYTES: u64 = 32 * 1024 * 1024;

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(MAX_ORACLE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The workspace before an agent has changed it.
struct UntouchedWorkspace<'u> {
    case: &'u Case,
    project: &'u Path,
}

impl UntouchedWorkspace<'_> {
    /// Gives the folders that make up the workspace, the topmost first, and the path within each of them.
    fn layers<'l>(&'l self, path: &'l RelPath) -> impl Iterator<Item = (&'l Path, RelPath)> {
        let room = &self.case.workspace;
        let fixtures = room.files.iter().filter_map(|fixture| {
            let below = Path::new(path.as_str()).strip_prefix(fixture.destination.as_str()).ok()?;
            let from = fixture.source.parent()?;
            let name = Path::new(fixture.source.file_name()?).join(below);
            Some((from, RelPath::new(name.to_str()?)?))
        });
        let overlays = room.overlays.iter().rev().map(|overlay| (overlay.as_path(), path.clone()));
        let project = (room.base == WorkspaceBase::Project).then(|| (self.project, path.clone()));
        fixtures.chain(overlays).chain(project)
    }

    fn require_no_setup(&self) -> io::Result<()> {
        match self.case.workspace.setup {
            Some(_) => Err(io::Error::other("its setup is not run here")),
            None => Ok(()),
        }
    }
}

impl WorkspaceView for UntouchedWorkspace<'_> {
    fn read(&self, path: &RelPath) -> io::Result<Option<Vec<u8>>> {
        self.require_no_setup()?;
        for (folder, name) in self.layers(path) {
            if let Some(bytes) = FolderView::new(folder).read(&name)? {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn exists(&self, path: &RelPath) -> io::Result<bool> {
        self.require_no_setup()?;
        for (folder, name) in self.layers(path) {
            if FolderView::new(folder).exists(&name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_evals::dialects::{EvalFileLocation, load_text};

    /// Gives the codes of the diagnostics for the cases of a native file.
    fn codes(cases: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("good.md"), "# Notes\n").expect("write");
        let text = format!("practicum: 1\nskill: {{name: s}}\nworkspace: empty\ncases:\n{cases}\n");
        let place = EvalFileLocation::new(folder.path().to_owned(), folder.path().to_owned());
        let loaded = load_text(&folder.path().join("e.practicum.yaml"), text, &place);
        let suite = loaded.lowered.suite.unwrap_or_else(|| panic!("{:?}", loaded.lowered.diagnostics));
        let mut found = Diagnostics::default();
        self_test(&suite, &loaded.text, folder.path(), &mut found);
        let line = |span: Option<Span>| span.map_or(0, |span| span.position(&loaded.text).line);
        found.iter().map(|problem| format!("{} {}", problem.code, line(problem.span))).collect()
    }

    #[test]
    fn rows() {
        let must_not_activate = "  - {id: b, prompt: q, activation: must_not}";
        for (cases, expected) in [
            ("  - {id: a, prompt: p, checks: [{contains: x}]}", vec![]),
            ("  - {id: a, prompt: p, checks: [{not_contains: x}]}", vec!["passes-idle 5"]),
            ("  - {id: a, prompt: p, checks: [{contains: done}]}", vec!["passes-idle 5"]),
            (
                "  - {id: a, prompt: p, checks: [{contains: x, required: false}, {max_length: 9}]}",
                vec!["passes-idle 5"],
            ),
            ("  - {id: a, prompt: p, checks: [{not_contains: x}, {min_length: 10}]}", vec![]),
            ("  - {id: a, prompt: p, checks: [{tool_not_used: Bash}]}", vec!["passes-idle 5"]),
            (
                "  - {id: a, prompt: p, checks: [{limit: {tokens: 9000, turns: 9, cost_usd: 1}}]}",
                vec!["passes-idle 5"],
            ),
            (
                "  - {id: a, prompt: p, checks: [{file: {path: out.md, exists: false}}]}",
                vec!["passes-idle 5"],
            ),
            ("  - {id: a, prompt: p, checks: [{file: out.md}]}", vec![]),
            (
                "  - {id: a, prompt: p, files: [good.md], checks: [{file: {path: good.md, contains: Notes}}]}",
                vec!["passes-idle 5"],
            ),
            (
                "  - {id: a, prompt: p, setup: touch out.md, checks: [{file: out.md}]}",
                vec!["not-self-testable 5"],
            ),
            ("  - {id: a, prompt: p, checks: [{command: 'true'}]}", vec!["not-self-testable 5"]),
            ("  - {id: a, prompt: p, checks: [{judge: It rhymes.}]}", vec!["not-self-testable 5"]),
            ("  - {id: a, prompt: p, checks: [{judge: It rhymes.}, {contains: x}]}", vec![]),
            (
                "  - {id: a, prompt: p, checks: [{judge: It rhymes., required: false}, {not_contains: x}]}",
                vec!["passes-idle 5"],
            ),
            ("  - {id: a, prompt: p, activation: must}", vec![]),
            (&format!("  - {{id: a, prompt: p, activation: must}}\n{must_not_activate}"), vec![]),
            (must_not_activate, vec!["passes-idle 0"]),
            ("  - {id: a, prompt: p, oracle: good.md, checks: [{contains: Notes}]}", vec![]),
            ("  - {id: a, prompt: p, oracle: good.md, checks: [{contains: Notice}]}", vec!["oracle-fails 5"]),
            (
                "  - {id: a, prompt: p, oracle: good.md, checks: [{contains: Notes}, {tool_used: Write}]}",
                vec![],
            ),
            (
                "  - {id: a, prompt: p, oracle: gone.md, checks: [{contains: Notes}]}",
                vec!["oracle-unreadable 5"],
            ),
            ("  - {id: a, prompt: p, meta: {actual: Notes}, checks: [{contains: Notes}]}", vec![]),
            (
                "  - {id: a, prompt: p, meta: {actual: nothing}, checks: [{contains: Notes}]}",
                vec!["actual-fails 5"],
            ),
        ] {
            assert_eq!(codes(cases), expected, "{cases}");
        }
    }
}

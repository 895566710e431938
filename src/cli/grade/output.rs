//! The commands `practicum grade --output` and `grade --session`: grade a captured text or a recorded session by an eval
//! file.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};

use super::GradeArgs;
use crate::agents::read_session;
use crate::cli::{
    environment, has_colour, interrupts, print, print_json, print_to_stderr, runtime, tell_notices,
};
use crate::dialects;
use crate::dialects::EvalRegistry;
use crate::gateway::{PriceTable, SpendingBudget, SpendingLedger};
use crate::grade::captured_output::{CapturedOutput, observe_session};
use crate::grade::grade_text::{self, TextToGrade};
use crate::grade::judge::ScrubFn;
use crate::model::{Case, CheckResult, Outcome, Ratio, Severity, UrlChecker};
use crate::pipeline::StopSignal;
use crate::plan::settings::{SettingLayers, project_root};
use crate::plan::{CaseGlob, PlannedSuite};
use crate::report::{
    GradedCheck, GradedGate, GradedSession, TextGradingDocument, render_diagnostics, render_graded,
    terminal_safe,
};
use crate::session::RunInputs;
use crate::session::run_setup::{self, EvalFiles, JudgePool, RunSetupError, SharedServices};
use crate::store::Scrubber;
use crate::url_check::HttpUrlChecker;

pub fn grade_output(args: &GradeArgs, spec: &Path) -> anyhow::Result<Outcome> {
    let environment = environment();
    let dialect =
        args.dialect.as_deref().and_then(dialects::find_dialect).map(|dialect| dialect.name().to_owned());
    let ask = RunInputs {
        paths: vec![spec.to_owned()],
        dialect,
        script: args.script.clone(),
        ..RunInputs::default()
    };
    let mut reading = run_setup::read_eval_files(&ask, &environment, &EvalRegistry::default())?;
    tell_notices(&reading.notices);
    let found = std::mem::take(&mut reading.notices);
    if reading.has_errors() {
        show_errors(&reading);
        bail!("the eval file cannot be understood; nothing was graded");
    }
    if let Some(glob) = args.case.iter().find(|glob| reading.has_no_case(glob)) {
        bail!("--case {} matches no case of {}; nothing was graded", terminal_safe(glob), spec.display());
    }
    let project = project_root(&std::path::absolute(spec)?);
    let flags: BTreeMap<&'static str, String> = args.judging.flags().collect();
    let layers = SettingLayers::read(flags, environment.clone(), &project).map_err(RunSetupError::from)?;
    let mut suites = run_setup::outline_eval_files(reading, &layers)?;
    for planned in &mut suites {
        planned.script = args.script.as_ref().map(std::path::absolute).transpose()?;
    }
    // If every check may stay not scored, gates over judged checks have nothing to decide.
    let code_may_decide = args.allow_unscored == Ratio::ONE;
    grade_text::keep_answerable_gates(&mut suites, args.judge || !code_may_decide);
    if !args.only_criterion.is_empty() && !args.judge {
        bail!("--only-criterion needs --judge: without it nothing is judged");
    }
    let note = run_setup::remove_other_criteria(&mut suites, &args.only_criterion)?.map(|only| only.note);
    if let Some(note) = &note {
        say!("note: {}", terminal_safe(note));
    }
    args.gates.apply(&mut suites);
    let (output, session) = read_output(args)?;
    let mut notes_before: Vec<String> = output.missing_skill_notes(&suites);
    match &session {
        None => warn_about_inputs(&suites),
        Some((summary, notes)) => {
            notes_before.extend(notes.iter().cloned());
            if !args.json {
                say!("{}", terminal_safe(&summary.describe()));
            }
        }
    }
    let cases: Vec<CaseGlob> = args.case.iter().filter_map(|glob| CaseGlob::new(glob)).collect();
    let runtime = runtime().context("cannot start")?;
    let stop = StopSignal::default();
    let graded = runtime.block_on(async {
        tokio::spawn(interrupts::stop_on_requests(stop.clone()));
        let means = match args.judge {
            true => Some(
                run_setup::connect_services(
                    &suites,
                    &ask,
                    &environment,
                    &shared_services(args, &layers, &project)?,
                )
                .await?,
            ),
            false => None,
        };
        if let Some(means) = &means {
            let wanted = |case: &Case| cases.is_empty() || cases.iter().any(|glob| glob.matches(&case.id));
            let all = suites.iter().enumerate();
            let all = all.flat_map(|(at, planned)| planned.suite.cases.iter().map(move |case| (at, case)));
            run_setup::require_judges(all.filter(|(_, case)| wanted(case)), &suites, means)?;
        }
        let web = args.allow_network.then(|| HttpUrlChecker::with_runtime(tokio::runtime::Handle::current()));
        let captured = TextToGrade {
            network: web.as_ref().map(|web| web as &dyn UrlChecker),
            output,
            suites: &suites,
            services: means.as_deref(),
            checks_only: false,
            cancel: &stop.cancel,
            case_globs: &cases,
            allow_unscored: args.allow_unscored,
        };
        Ok::<_, RunSetupError>(captured.grade().await)
    })?;
    let Some(graded) = graded else {
        let what = if session.is_some() { "session" } else { "text" };
        bail!("{} has no case that this {what} could answer; nothing was graded", spec.display());
    };
    let (outcome, gates) = (graded.exit, graded.gates.clone());
    let notes: Vec<String> = notes_before.into_iter().chain(graded.notes.clone()).collect();
    let results = graded.into_results();
    if args.json {
        print_json(&TextGradingDocument {
            schema_version: 1,
            session: session.map(|(summary, _)| summary),
            results: results.into_iter().map(graded_check).collect(),
            gates: gates.into_iter().map(GradedGate::from).collect(),
            notes: found.into_iter().chain(note).chain(notes).collect(),
            ok: outcome == Outcome::Passed,
        })?;
    } else {
        let text = render_graded(outcome, &results, &gates, &notes);
        let plain = anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never;
        print(&if plain { anstream::adapter::strip_str(&text).to_string() } else { text })?;
    }
    Ok(outcome)
}

/// A session as it is described to the user, and notes about it.
type SessionSummary = (GradedSession, Vec<String>);

/// Reads what is to be graded: the text of `--output`, or the session of `--session`.
fn read_output(args: &GradeArgs) -> anyhow::Result<(CapturedOutput, Option<SessionSummary>)> {
    if let Some(path) = &args.session {
        let mut session = read_session(path)
            .map_err(|why| anyhow!("cannot grade {} as a session: {why}", path.display()))?;
        let (format, agent, id) = (session.format.name(), session.agent.clone(), session.id.clone());
        let notes = std::mem::take(&mut session.notes);
        let seen = observe_session(session);
        let summary = GradedSession::new(format, &agent, id.as_deref(), &seen);
        return Ok((CapturedOutput::Session(Box::new(seen)), Some((summary, notes))));
    }
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let text = read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((CapturedOutput::Text(text), None))
}

fn graded_check((id, result): (String, CheckResult)) -> GradedCheck {
    GradedCheck {
        id,
        name: result.name,
        verdict: (&result.verdict).into(),
        score: result.score,
        // Evidence against a finding is no evidence for it.
        why: std::iter::once(result.rationale)
            .chain(result.weak)
            .chain(result.flags)
            .collect::<Vec<_>>()
            .join("; "),
        evidence: result.evidence,
    }
}

/// Shows only errors that prevent using the file. This command does not need the skill, so a missing skill is not
/// shown.
fn show_errors(reading: &EvalFiles) {
    for file in &reading.files {
        let diagnostics = file.lowered.diagnostics.with_severity(Severity::Error);
        print_to_stderr(&render_diagnostics(&diagnostics, &file.path, &file.text, has_colour()));
    }
}

/// Warns about inputs that an agent in a run would have and that the captured text was made without.
fn warn_about_inputs(suites: &[PlannedSuite]) {
    for PlannedSuite { suite, .. } in suites {
        if suite.cases.iter().any(|case| !case.workspace.files.is_empty()) {
            let key = if suite.origin.dialect == "clauditor" { "input_files" } else { "files" };
            say!("WARNING: --output bypasses the runner; {key} declaration is ignored.");
        }
    }
}

/// The largest captured text.
const LARGEST_TEXT: u64 = 256 * 1024 * 1024;

pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(LARGEST_TEXT + 1).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(LARGEST_TEXT + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > LARGEST_TEXT {
        bail!("it is longer than {LARGEST_TEXT} bytes");
    }
    // A check for something that must not occur would pass if the text could not be read.
    String::from_utf8(bytes).map_err(|error| {
        anyhow!("it is not UTF-8 text: byte {} is where it breaks", error.utf8_error().valid_up_to() + 1)
    })
}

/// Gives the services that the judges share. They have no budget here. Their earlier answers are cached with the
/// runs of the project, if it has any.
pub fn shared_services(
    args: &GradeArgs,
    layers: &SettingLayers,
    project: &Path,
) -> Result<SharedServices, RunSetupError> {
    let scrubber = Scrubber::new(layers.environment());
    let scrub: ScrubFn = Arc::new(move |text| scrubber.scrub_text(text));
    // A captured text may be anywhere. Answers are cached only in a project that already has records.
    let fresh = args.no_cache || !project.join(".practicum").is_dir();
    let judges = JudgePool::for_project(project, layers, &scrub, fresh)?;
    Ok(SharedServices {
        ledger: Arc::new(SpendingLedger::new(SpendingBudget::default(), PriceTable::default())),
        scrub,
        judges,
    })
}

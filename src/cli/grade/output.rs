//! `grade --output`: a captured text against an eval file.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};

use super::Args;
use crate::captured::{self, Captured};
use crate::cli::{colour, environment, interrupts, print, print_json, runtime, tell, tell_notices};
use crate::dialects;
use crate::gateway::{Budget, Ledger, Prices};
use crate::intake::{self, Bench, IntakeError, Reading, Shared};
use crate::judge::Scrub;
use crate::model::{Case, CheckResult, Network, Ratio, Severity};
use crate::pipeline::Stop;
use crate::plan::{CaseGlob, Planned};
use crate::report::{Graded, GradedCheck, GradedGate, render_diagnostics, render_graded, safe};
use crate::session::RunInputs;
use crate::settings::{Layers, project_root};
use crate::store::Scrubber;
use crate::web::Web;

pub fn grade(args: &Args, output: &Path, spec: &Path) -> anyhow::Result<u8> {
    let environment = environment();
    let dialect =
        args.dialect.as_deref().and_then(dialects::dialect).map(|dialect| dialect.name().to_owned());
    let ask = RunInputs {
        paths: vec![spec.to_owned()],
        dialect,
        script: args.script.clone(),
        ..RunInputs::default()
    };
    let mut reading = intake::read(&ask, &environment)?;
    tell_notices(&reading.notices);
    let found = std::mem::take(&mut reading.notices);
    if reading.has_errors() {
        show_errors(&reading);
        bail!("the eval file cannot be understood; nothing was marked");
    }
    if let Some(glob) = args.case.iter().find(|glob| reading.has_no_case(glob)) {
        bail!("--case {} matches no case of {}; nothing was marked", safe(glob), spec.display());
    }
    let project = project_root(&std::path::absolute(spec)?);
    let flags: BTreeMap<&'static str, String> = args.judging.flags().collect();
    let layers = Layers::read(flags, environment.clone(), &project).map_err(IntakeError::from)?;
    let mut suites = intake::outline(reading, &layers)?;
    for planned in &mut suites {
        planned.script = args.script.as_ref().map(std::path::absolute).transpose()?;
    }
    // Where everything may stay open, gates over what a judge says have nothing to decide.
    let code_may_decide = args.allow_unscored == Ratio::ONE;
    captured::keep_answerable_gates(&mut suites, args.judge || !code_may_decide);
    if !args.only_criterion.is_empty() && !args.judge {
        bail!("--only-criterion needs --judge: without it nothing is judged");
    }
    let note = intake::keep_criteria(&mut suites, &args.only_criterion)?.map(|only| only.note);
    if let Some(note) = &note {
        say!("note: {}", safe(note));
    }
    args.gates.apply(&mut suites);
    warn_about_inputs(&suites);

    let text = read_text(output).with_context(|| format!("cannot read {}", output.display()))?;
    let cases: Vec<CaseGlob> = args.case.iter().filter_map(|glob| CaseGlob::new(glob)).collect();
    let runtime = runtime().context("cannot start")?;
    let stop = Stop::default();
    let marked = runtime.block_on(async {
        tokio::spawn(interrupts::heed(stop.clone()));
        let means = match args.judge {
            true => {
                Some(intake::means(&suites, &ask, &environment, &shared(args, &layers, &project)?).await?)
            }
            false => None,
        };
        if let Some(means) = &means {
            let wanted = |case: &Case| cases.is_empty() || cases.iter().any(|glob| glob.matches(&case.id));
            let all = suites.iter().enumerate();
            let all = all.flat_map(|(at, planned)| planned.suite.cases.iter().map(move |case| (at, case)));
            intake::need_judges(all.filter(|(_, case)| wanted(case)), &suites, means)?;
        }
        let web = args.allow_network.then(|| Web::on(tokio::runtime::Handle::current()));
        let captured = Captured {
            network: web.as_ref().map(|web| web as &dyn Network),
            text,
            suites: &suites,
            means: means.as_deref(),
            code_alone: false,
            cancel: &stop.now,
            cases: &cases,
            allow_unscored: args.allow_unscored,
        };
        Ok::<_, IntakeError>(captured.mark().await)
    })?;
    let Some(marked) = marked else {
        bail!("{} has no case that this text could answer; nothing was marked", spec.display());
    };
    let (exit, gates, notes) = (marked.exit, marked.gates.clone(), marked.notes.clone());
    let results = marked.into_results();
    if args.json {
        print_json(&Graded {
            schema_version: 1,
            results: results.into_iter().map(document).collect(),
            gates: gates.into_iter().map(GradedGate::from).collect(),
            notes: found.into_iter().chain(note).chain(notes).collect(),
            ok: exit == 0,
        })?;
    } else {
        let text = render_graded(exit, &results, &gates, &notes);
        let plain = anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never;
        print(&if plain { anstream::adapter::strip_str(&text).to_string() } else { text })?;
    }
    Ok(exit)
}

fn document((id, result): (String, CheckResult)) -> GradedCheck {
    GradedCheck {
        id,
        name: result.name,
        verdict: (&result.verdict).into(),
        score: result.score,
        // What speaks against a finding is no evidence for it.
        why: std::iter::once(result.rationale)
            .chain(result.weak)
            .chain(result.flags)
            .collect::<Vec<_>>()
            .join("; "),
        evidence: result.evidence,
    }
}

/// Only what keeps the file from being used: a skill that is not there is nothing to this command.
fn show_errors(reading: &Reading) {
    for file in &reading.files {
        let diagnostics = file.lowered.diagnostics.only(Severity::Error);
        tell(&render_diagnostics(&diagnostics, &file.path, &file.text, colour()));
    }
}

/// What a run would have been given, and a captured text was not.
fn warn_about_inputs(suites: &[Planned]) {
    for Planned { suite, .. } in suites {
        if suite.cases.iter().any(|case| !case.room.files.is_empty()) {
            let key = if suite.origin.dialect == "clauditor" { "input_files" } else { "files" };
            say!("WARNING: --output bypasses the runner; {key} declaration is ignored.");
        }
    }
}

/// No captured answer is longer.
const LONGEST: u64 = 256 * 1024 * 1024;

pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > LONGEST {
        bail!("it is longer than {LONGEST} bytes");
    }
    // A check of what must not occur would pass over what cannot be read.
    String::from_utf8(bytes).map_err(|error| {
        anyhow!("it is not UTF-8 text: byte {} is where it breaks", error.utf8_error().valid_up_to() + 1)
    })
}

/// What the judges share. Alone they have no budget; what they answered before is kept with the runs of
/// the project, if it has any.
pub fn shared(args: &Args, layers: &Layers, project: &Path) -> Result<Shared, IntakeError> {
    let scrubber = Scrubber::new(layers.environment());
    let scrub: Scrub = Arc::new(move |text| scrubber.text(text));
    // A captured text may lie anywhere; only a project that has records keeps answers too.
    let fresh = args.no_cache || !project.join(".practicum").is_dir();
    let bench = Bench::of(project, layers, &scrub, fresh)?;
    Ok(Shared { ledger: Arc::new(Ledger::new(Budget::default(), Prices::default())), scrub, bench })
}

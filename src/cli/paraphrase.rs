//! The command `practicum paraphrase`: whether results hold if the user says the same in other words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::run_flags::{RunFlags, refuse_stopped};
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{
    command_words, environment, has_colour, print, print_json, print_to_stderr, report_error, runtime,
    tell_notices,
};
use crate::dialects::EvalRegistry;
use crate::improve;
use crate::model::{Diagnostics, Digest, Origin, Outcome, Suite, count_with_noun};
use crate::plan::settings::SettingLayers;
use crate::report::{display_path, paraphrases, render_diagnostics, terminal_safe};
use crate::rewordings::{
    CaseRewordings, add_reworded_cases, read_rewordings, reworded_message, write_rewordings,
};
use crate::session::run_setup::{self, RunSetupError};
use crate::session::{RunOptions, Session, SessionError};
use crate::store::read_records;
use crate::studies::{ParaphraseDocument, WordedCase};
use crate::workspace::run::CancelToken;

#[derive(clap::Args)]
#[command(after_help = "\
The file of rewordings is YAML. Each entry names a case and says its prompt in other words:
  - case: greets-alice
    rewordings: [Say hello to Alice for me., Could you greet Alice?]

Only cases with rewordings are run, each with its own wording and with the others. For each case the command says how \
often result and activation held over its rewordings, with an interval over rewordings, and names those that broke \
something: most runs hold with the wording of the case, and not with this one.

--generate lets a model write a first file of rewordings, which a person reviews before anything is measured with it. \
A name like greeter.rewordings.yaml may lie beside the evals.

Exit codes: 0 no rewording broke anything, 1 one did, 3 runs have no verdict.

Examples:
  practicum paraphrase evals --rewordings evals/g.rewordings.yaml
  practicum paraphrase evals --rewordings r.rewordings.yaml --generate 5
  practicum paraphrase evals --rewordings r.rewordings.yaml --repeat 3")]
pub struct ParaphraseArgs {
    #[command(flatten)]
    evals: EvalsArgs,
    /// The file of rewordings
    #[arg(long, value_name = "FILE")]
    rewordings: PathBuf,
    /// Run nothing: let a model write this many rewordings for each case into the file, for you to review. The file must
    /// not exist, and be YAML
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "5", value_parser = clap::value_parser!(u32).range(1..=50))]
    generate: Option<u32>,
    #[command(flatten)]
    choices: SettingArgs,
    #[command(flatten)]
    flags: RunFlags,
}

pub fn main(args: &ParaphraseArgs) -> Outcome {
    paraphrase(args).unwrap_or_else(|error| report_error(&error))
}

fn paraphrase(args: &ParaphraseArgs) -> anyhow::Result<Outcome> {
    if !args.flags.gates_asked().is_empty() {
        bail!("--gate cannot be given to paraphrase, which names the rewordings that broke");
    }
    if let Some(count) = args.generate {
        return generate_rewordings(args, count);
    }
    let Some(rewordings) = read_file(&args.rewordings) else { return Ok(Outcome::Invalid) };
    let mut worded = BTreeMap::new();
    let session = Session::new(args.evals.project())
        .with_options(options(args))
        .with_limits(args.flags.limits())
        .with_command(command_words())
        .with_environment(environment())
        .changing_reading(|reading| {
            let suites = reading.files.iter_mut().filter_map(|file| file.lowered.suite.as_mut());
            worded = add_reworded_cases(&mut suites.collect::<Vec<_>>(), &rewordings)
                .map_err(SessionError::Refused)?;
            reading
                .files
                .retain(|file| file.lowered.suite.as_ref().is_none_or(|suite| !suite.cases.is_empty()));
            Ok(())
        });
    let mut observer = args.flags.observer();
    let suites = session.read_suites(&mut observer)?;
    let finished = args.flags.run_with(suites, &mut observer)?.map(refuse_stopped).transpose()?;
    let Some(finished) = finished else { return Ok(Outcome::Passed) };
    let records: Vec<_> = read_records(finished.run_dir.path())?.into_values().collect();
    report(args, &ParaphraseDocument::from_records(&records, &worded), &worded)
}

fn report(
    args: &ParaphraseArgs,
    document: &ParaphraseDocument,
    worded: &BTreeMap<(String, String), WordedCase>,
) -> anyhow::Result<Outcome> {
    if args.flags.json {
        print_json(document)?;
    } else {
        print(&paraphrases::render_text(document))?;
    }
    let expected = worded.values().filter(|wording| wording.rewording.is_none()).count();
    match document.outcome() {
        // A case of which no trial was started has no line.
        Outcome::Passed if document.cases.len() < expected => Ok(Outcome::Incomplete),
        outcome => Ok(outcome),
    }
}

fn options(args: &ParaphraseArgs) -> RunOptions {
    let mut options = args.flags.options(&args.evals, &args.choices);
    options.settings.entry("arm".to_owned()).or_insert_with(|| "with".to_owned());
    options.not_in_history = Some("a study of paraphrases".to_owned());
    options
}

/// Reads the rewordings, and shows what is wrong with them. `None` if they cannot be used.
fn read_file(path: &Path) -> Option<Vec<CaseRewordings>> {
    let mut diagnostics = Diagnostics::default();
    let (text, rewordings) = read_rewordings(path, &mut diagnostics);
    if diagnostics.has_errors() {
        print_to_stderr(&render_diagnostics(&diagnostics, path, &text, has_colour()));
        say!("error: {} cannot be used; nothing was run", display_path(path));
        return None;
    }
    Some(rewordings)
}

/// Lets a model say the prompts of the cases in other words, and writes them to a new file.
fn generate_rewordings(args: &ParaphraseArgs, count: u32) -> anyhow::Result<Outcome> {
    let path = &args.rewordings;
    if path.exists() {
        bail!(
            "{} exists; --generate never overwrites rewordings that somebody may have reviewed",
            path.display()
        );
    }
    if !path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") {
        bail!("--generate writes YAML; give --rewordings a name that ends with .yaml");
    }
    let inputs = options(args).inputs;
    let reading = run_setup::read_eval_files(&inputs, &environment(), &EvalRegistry::default())?;
    tell_notices(&reading.notices);
    let suites: Vec<Suite> = reading.into_suites()?.into_iter().map(|placed| placed.suite).collect();
    let project = args.evals.project();
    let settings = args.flags.settings(&args.choices);
    let layers = SettingLayers::read(settings, environment(), &project).map_err(RunSetupError::from)?;
    let origin = Origin { dialect: "none".to_owned(), path: project.clone(), digest: Digest::of_bytes(b"") };
    let silent = Suite::empty("rewordings", origin);
    let mut written: Vec<(CaseRewordings, String)> = Vec::new();
    let mut unanswered = 0;
    runtime()?.block_on(async {
        let access = args.flags.model_access();
        let adviser = access.adviser(&layers, &project, &silent, None, CancelToken::default()).await?;
        for suite in &suites {
            let skills: Vec<String> = suite.skills.iter().map(|skill| skill.name.clone()).collect();
            for case in &suite.cases {
                let Some(message) = reworded_message(case) else { continue };
                match improve::propose_rewordings(&adviser, &case.id, message, &skills, count).await.answer {
                    Ok(rewordings) => {
                        let is_other = |other: &&Suite| other.cases.iter().any(|other| other.id == case.id);
                        let is_ambiguous = suites.iter().filter(is_other).count() > 1;
                        let suite = is_ambiguous.then(|| suite.name.clone());
                        let own = CaseRewordings { case: case.id.clone(), suite, rewordings };
                        written.push((own, message.to_owned()));
                    }
                    Err(why) => {
                        unanswered += 1;
                        say!("note: no rewordings of {}: {}", terminal_safe(&case.id), terminal_safe(&why));
                    }
                }
            }
        }
        anyhow::Ok(())
    })?;
    if written.is_empty() {
        say!("error: the model wrote no rewording");
        return Ok(Outcome::Incomplete);
    }
    let head =
        "# Written by a model. Review each rewording: does it ask for the same, and would a user say it?\n";
    let number: usize = written.iter().map(|(own, _)| own.rewordings.len()).sum();
    let text = format!("{head}{}", write_rewordings(&written));
    let made = std::fs::File::create_new(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    made.with_context(|| format!("cannot write {}", path.display()))?;
    print(&format!(
        "{} written to {} for you to review\n",
        count_with_noun(number, "rewording"),
        display_path(path)
    ))?;
    Ok(if unanswered == 0 { Outcome::Passed } else { Outcome::Incomplete })
}

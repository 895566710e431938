//! The clauditor format: `<skill>.eval.json` beside the skill or command that it tests.

mod assertions;
mod export;
mod files;
mod grading;
mod keys;
mod policy;
mod schema;
#[cfg(test)]
mod tests;
mod triggers;
mod unused_spec_keys;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::grading::{ClauditorThresholds, VarianceSettings};
use self::unused_spec_keys::UnusedSpecKeys;
use super::reading::{UniqueIds, all_cases_pass, blank_case, blank_suite, report_missing_skill};
use super::recognition::{self, ForeignFormat};
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    Case, CasePrompt, Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, Diagnostics, Fixture, Gate,
    GateName, PassRule, Ratio, RelPath, RunPolicy, SkillRef, Suite, WorkspaceBase, WorkspaceSpec,
};
use practicum_core::tree::{ObjectReader, SourceFile};
use practicum_skills::skill::{SKILL_FILE, Skill};

/// The variable that names the agent, as clauditor reads it.
pub const AGENT_VARIABLE: &str = "CLAUDITOR_HARNESS";
/// The variable that names the provider of the model that grades.
pub const PROVIDER_VARIABLE: &str = "CLAUDITOR_GRADING_PROVIDER";
/// The variable that says whether models are asked over their API or through a CLI.
pub const TRANSPORT_VARIABLE: &str = "CLAUDITOR_TRANSPORT";

/// What the author of a case without checks can do.
pub const MISSING_CHECKS_HELP: &str =
    "add \"assertions\", \"sections\", \"grading_criteria\" or \"trigger_tests\"";

/// The adapter for the clauditor format.
pub struct Clauditor;

const NAME: &str = "clauditor";

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

impl Dialect for Clauditor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["eval.json", "*.eval.json"]
    }

    fn recognition_rule(&self) -> &'static str {
        "\"test_args\", \"grading_criteria\" or \"trigger_tests\"; assertions with a type and an id; \
         the name *.eval.json"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        recognition::fit_for(source, ForeignFormat::Clauditor)
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut spec = ObjectReader::new(&source.root, "an eval spec", diagnostics)?;
        let name = keys::read_filled_text(&mut spec, "skill_name", diagnostics)
            .map_or_else(|| default_skill_name(&source.path), str::to_owned);
        let description = spec.text("description", diagnostics).map(str::to_owned);
        let mut unused = UnusedSpecKeys::default();
        let invoked = InvocationSpec::read(&mut spec, source.folder(), &mut unused, diagnostics);
        let graded = invoked.thresholds;
        let variance = grading::read_variance(&mut spec, &mut unused, diagnostics);
        let queries = triggers::read_queries(&mut spec, &mut unused, diagnostics);
        let (run, judge) = policy::read_policies(&mut spec, variance.as_ref(), diagnostics);
        invoked.keep_unused_keys(queries.is_empty(), &mut spec, &mut unused, diagnostics);
        let mut ids = UniqueIds::default();
        let mut cases = Vec::new();
        // If there are queries to run, an invocation without checks would only cost money.
        let parts = SpecParts {
            is_invoked: !invoked.checks.is_empty() || queries.is_empty(),
            has_required: invoked.checks.iter().any(|check| check.need == CheckNeed::Required),
            has_queries: !queries.is_empty(),
        };
        if parts.is_invoked {
            cases.push(invoked.into_case(ids.make_unique(&name)));
        }
        cases.extend(triggers::query_cases(&queries, &name, &mut ids));
        unused.keep_rest(&spec, "a spec", &[], diagnostics);
        Some(Suite {
            description,
            skills: vec![find_skill_or_warn(source, place, &name, diagnostics)],
            cases,
            run_policy: run,
            format_defaults: default_run_policy(),
            judge_policy: judge,
            gates: gates_of_spec(graded.as_ref(), variance.as_ref(), parts),
            meta: unused.into_meta(),
            ..blank_suite(NAME, source, name)
        })
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export_suite(suite, folder)
    }
}

/// Gives the format's settings for a spec that sets nothing.
fn default_run_policy() -> RunPolicy {
    RunPolicy {
        // The format's own agents: claude, otherwise codex.
        agents: vec!["auto".to_owned()],
        timeout: Some(DEFAULT_TIMEOUT),
        repeat: Some(1),
        detect_questions: Some(true),
        ..RunPolicy::default()
    }
}

/// The part of a spec about running the skill by its own command.
struct InvocationSpec {
    args: String,
    inputs: Vec<Fixture>,
    looks_at: CheckTarget,
    checks: Vec<Check>,
    /// The thresholds, if there are criteria.
    thresholds: Option<ClauditorThresholds>,
}

impl InvocationSpec {
    fn read(
        spec: &mut ObjectReader<'_>,
        folder: &Path,
        unused: &mut UnusedSpecKeys,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let args = spec.text("test_args", diagnostics).unwrap_or_default().to_owned();
        let inputs = files::read_inputs(spec, folder, diagnostics);
        let looks_at = files::read_looks_at(spec, &inputs, diagnostics);
        let mut entries = SpecEntries { looks_at: &looks_at, ids: HashSet::new(), unused_keys: unused };
        let mut checks = assertions::decode_assertions(spec, &mut entries, diagnostics);
        let sections = grading::read_sections(spec, &mut entries, diagnostics);
        let criteria = grading::read_criteria(spec, &mut entries, diagnostics);
        // A section without tiers requires nothing, so no model is asked if there are only such sections.
        if sections.iter().any(|section| !section.tiers.is_empty()) {
            // All sections form one check, because one answer of a model decides them all.
            checks.push(entries.build_check(sections_id(&entries.ids), None, CheckKind::Sections(sections)));
        }
        let any = !criteria.is_empty();
        checks.extend(criteria);
        let graded = grading::read_thresholds(spec, any, unused, diagnostics);
        Self { args, inputs, looks_at, checks, thresholds: graded }
    }

    /// Keeps the keys that have no effect in this spec.
    fn keep_unused_keys(
        &self,
        no_queries: bool,
        spec: &mut ObjectReader<'_>,
        unused: &mut UnusedSpecKeys,
        diagnostics: &mut Diagnostics,
    ) {
        let (keys, why): (&[&'static str], &str) = match &self.looks_at {
            _ if self.checks.is_empty() && no_queries => {
                (&["output_file", "output_files"], "nothing checks the output")
            }
            _ if self.checks.is_empty() => (
                &["test_args", "input_files", "output_file", "output_files"],
                "there are trigger tests and no other checks",
            ),
            CheckTarget::File(_) => (&["output_files"], "\"output_file\" comes first"),
            CheckTarget::Output
            | CheckTarget::LastTurn
            | CheckTarget::AllText
            | CheckTarget::WholeRun
            | CheckTarget::Files(_)
            | CheckTarget::Pictures(_) => (&[], ""),
        };
        for key in keys {
            unused.keep_key(spec, key, why, diagnostics);
        }
    }

    fn into_case(self, id: String) -> Case {
        let pass_when = match self.thresholds {
            Some(ClauditorThresholds { pass_rate, mean_score }) => {
                PassRule::JudgedThresholds { pass_rate, mean_score }
            }
            None => PassRule::EveryRequiredCheck,
        };
        Case {
            prompt: CasePrompt::SkillCommand { args: self.args },
            workspace: WorkspaceSpec {
                base: WorkspaceBase::Project,
                files: self.inputs,
                ..WorkspaceSpec::default()
            },
            checks: self.checks,
            pass_rule: pass_when,
            ..blank_case(id, String::new())
        }
    }
}

/// A reader for the assertions, fields and criteria of a spec, with what they share.
struct SpecEntries<'s> {
    looks_at: &'s CheckTarget,
    /// The ids in use. Assertions, fields and criteria share one set.
    ids: HashSet<String>,
    unused_keys: &'s mut UnusedSpecKeys,
}

impl SpecEntries<'_> {
    /// Reads the entry's id. It must be present, text, not empty and not taken.
    fn read_id<'n>(
        &mut self,
        entry: &mut ObjectReader<'n>,
        what: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<&'n str> {
        let Some(node) = entry.get("id") else {
            entry.report_missing("id", diagnostics);
            return None;
        };
        let Some(id) = node.as_text().filter(|id| !id.is_empty()) else {
            let message = format!("the \"id\" of {what} must be text that is not empty");
            diagnostics.error("wrong-type", node.span, message);
            return None;
        };
        if !self.ids.insert(id.to_owned()) {
            diagnostics.error_with_help(
                "duplicate-id",
                node.span,
                format!("another entry is already called \"{id}\""),
                "each assertion, field and criterion needs an id of its own",
            );
        }
        Some(id)
    }

    fn build_check(&self, id: String, name: Option<&str>, kind: CheckKind) -> Check {
        // A single criterion may fail as long as the pass rate and the mean score of all are reached.
        let need =
            if matches!(kind, CheckKind::Judged(_)) { CheckNeed::Advisory } else { CheckNeed::Required };
        Check {
            id,
            name: name.map(str::to_owned),
            need,
            weight: CheckWeight::ONE,
            target: self.looks_at.clone(),
            kind,
        }
    }
}

/// Gives the id of the check for all sections. That check is no entry of the spec, so its id must not take the id
/// of an entry.
fn sections_id(taken: &HashSet<String>) -> String {
    let wanted = std::iter::once("sections".to_owned()).chain((2..).map(|n| format!("sections-{n}")));
    wanted.into_iter().find(|id| !taken.contains(id)).unwrap_or_default()
}

/// Gives the default skill name. `my-skill.eval.json` is about `my-skill`; a file that is not named after a skill
/// lies in the skill's folder.
fn default_skill_name(path: &Path) -> String {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name = match stem.strip_suffix(".eval") {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => stem,
    };
    let folder = || path.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
    let is_nobodys = name == "SKILL" || path.file_name().is_some_and(|file| file == "eval.json");
    if is_nobodys { folder().unwrap_or(name) } else { name }
}

/// Gives the skill that a spec is about. A missing skill is a warning, because the user can still name it with
/// `--skill`.
fn find_skill_or_warn(
    source: &SourceFile,
    place: &EvalFileLocation,
    name: &str,
    diagnostics: &mut Diagnostics,
) -> SkillRef {
    let path = place.skill.clone().or_else(|| find_skill(source, place, name));
    if let Some(Err(problem)) = path.as_deref().map(Skill::read) {
        report_missing_skill(&problem, None, diagnostics);
    }
    if path.is_none() {
        let beside = source.folder().display();
        diagnostics.warning_with_help(
            "skill-not-found",
            None,
            format!("no skill {name} was found beside the spec in {beside} or in the project"),
            match command_beside(source) {
                Some((file, called)) => format!(
                    "{file} is there: the spec is about {name}, and the file is called {called}; correct \
                     \"skill_name\", or name the skill with --skill"
                ),
                None => "name its folder or file with --skill".to_owned(),
            },
        );
    }
    SkillRef { name: name.to_owned(), path, plugin: None }
}

/// Finds the command file that lies beside a spec and has the spec's name. Gives its name with and without the
/// extension.
fn command_beside(source: &SourceFile) -> Option<(String, String)> {
    let stem = source.path.file_name()?.to_str()?.strip_suffix(".eval.json")?;
    let file = format!("{stem}.md");
    source.folder().join(&file).is_file().then(|| (file, stem.to_owned()))
}

/// Finds the skill of a spec: the SKILL.md of a folder, a command file, or a skill of that name in the project.
fn find_skill(source: &SourceFile, place: &EvalFileLocation, name: &str) -> Option<PathBuf> {
    RelPath::new(name)?;
    let folder = source.folder();
    let command = format!("{name}.md");
    let mut beside = [folder.join(&command), folder.join(SKILL_FILE)];
    if source.path.file_name().is_some_and(|name| name == "SKILL.eval.json") {
        beside.reverse();
    }
    let elsewhere = [
        folder.join(name).join(SKILL_FILE),
        folder.parent().unwrap_or(folder).join(SKILL_FILE),
        place.project.join(".claude/skills").join(name).join(SKILL_FILE),
        place.project.join(".claude/commands").join(&command),
        place.project.join("skills").join(name).join(SKILL_FILE),
    ];
    beside.into_iter().chain(elsewhere).find(|path| path.is_file())
}

/// The parts of a spec that gates can be about.
#[derive(Clone, Copy)]
struct SpecParts {
    is_invoked: bool,
    /// Whether the spec has assertions or sections. They decide the exit code even if the required stability is 0,
    /// which every run reaches.
    has_required: bool,
    has_queries: bool,
}

/// Gives the gates of a spec. Stability is about the runs of the skill's own command. Each query runs once and
/// must pass, whatever the stability.
fn gates_of_spec(
    graded: Option<&ClauditorThresholds>,
    variance: Option<&VarianceSettings>,
    parts: SpecParts,
) -> Vec<Gate> {
    let variance = variance.filter(|_| parts.is_invoked);
    let any_stability = variance.is_some_and(|variance| variance.stability.get() <= 0.0);
    let all_pass = variance.is_none() || any_stability && parts.has_required;
    let mut gates = if all_pass { all_cases_pass() } else { Vec::new() };
    if let Some(variance) = variance {
        gates.push(Gate::new(GateName::Stability, variance.stability));
        if parts.has_queries {
            gates.push(Gate::new(GateName::ActivationCasesPass, Ratio::ONE));
        }
    }
    if let Some(ClauditorThresholds { pass_rate, mean_score }) = graded {
        gates.push(Gate::new(GateName::CriteriaPassRate, *pass_rate));
        gates.push(Gate::new(GateName::MeanScore, *mean_score));
    }
    gates
}

//! clauditor: `<skill>.eval.json` beside the skill or command it is about.

mod assertions;
mod files;
mod grading;
mod keys;
mod policy;
mod raise;
mod schema;
#[cfg(test)]
mod tests;
mod triggers;
mod unused;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::grading::{Thresholds, Variance};
use self::unused::Unused;
use super::reading::{Ids, all_cases_pass, blank_case, blank_suite, tell_missing};
use super::told_apart::{self, Format};
use super::{Dialect, Fit, Place, Raised};
use practicum_core::model::{
    Base, Case, Check, CheckKind, Diagnostics, Fixture, Gate, GateName, LooksAt, Need, PassRule, Ratio,
    RelPath, Room, RunPolicy, SkillRef, Stimulus, Suite,
};
use practicum_core::tree::{Object, Source};
use practicum_skills::skill::{SKILL_FILE, Skill};

pub struct Clauditor;

const NAME: &str = "clauditor";

const TIMEOUT: Duration = Duration::from_secs(300);

impl Dialect for Clauditor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn recognise(&self, source: &Source) -> Fit {
        told_apart::fit(source, Format::Clauditor)
    }

    fn lower(&self, source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Option<Suite> {
        let mut spec = Object::new(&source.root, "an eval spec", diagnostics)?;
        let name = keys::filled_text(&mut spec, "skill_name", diagnostics)
            .map_or_else(|| default_name(&source.path), str::to_owned);
        let description = spec.text("description", diagnostics).map(str::to_owned);
        let mut unused = Unused::default();
        let invoked = Invoked::read(&mut spec, source.folder(), &mut unused, diagnostics);
        let graded = invoked.graded;
        let variance = grading::variance(&mut spec, &mut unused, diagnostics);
        let queries = triggers::queries(&mut spec, &mut unused, diagnostics);
        let (run, judge) = policy::policies(&mut spec, variance.as_ref(), diagnostics);
        invoked.note_unused(queries.is_empty(), &mut spec, &mut unused, diagnostics);
        let mut ids = Ids::default();
        let mut cases = Vec::new();
        // Where there are queries to ask, an invocation that nothing checks would only cost something.
        let parts = Parts {
            is_invoked: !invoked.checks.is_empty() || queries.is_empty(),
            has_required: invoked.checks.iter().any(|check| check.need == Need::Required),
            has_queries: !queries.is_empty(),
        };
        if parts.is_invoked {
            cases.push(invoked.case(ids.derive(&name)));
        }
        cases.extend(triggers::cases(&queries, &name, &mut ids));
        unused.rest(&spec, "a spec", &[], diagnostics);
        Some(Suite {
            description,
            skills: vec![skill(source, place, &name, diagnostics)],
            cases,
            run,
            defaults: defaults(),
            judge,
            gates: gates(graded.as_ref(), variance.as_ref(), parts),
            meta: unused.into_meta(),
            ..blank_suite(NAME, source, name)
        })
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn raise(&self, suite: &Suite, folder: &Path) -> Raised {
        raise::raise(suite, folder)
    }
}

/// What the format does where a spec is silent.
fn defaults() -> RunPolicy {
    RunPolicy {
        // The format's own agents: claude, else codex.
        agents: vec!["auto".to_owned()],
        timeout: Some(TIMEOUT),
        repeat: Some(1),
        detect_questions: Some(true),
        ..RunPolicy::default()
    }
}

/// What a spec says about running the skill by its own command.
struct Invoked {
    args: String,
    inputs: Vec<Fixture>,
    looks_at: LooksAt,
    checks: Vec<Check>,
    /// Only where there are criteria.
    graded: Option<Thresholds>,
}

impl Invoked {
    fn read(
        spec: &mut Object<'_>,
        folder: &Path,
        unused: &mut Unused,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let args = spec.text("test_args", diagnostics).unwrap_or_default().to_owned();
        let inputs = files::inputs(spec, folder, diagnostics);
        let looks_at = files::looks_at(spec, &inputs, diagnostics);
        let mut entries = Entries { looks_at: &looks_at, ids: HashSet::new(), unused };
        let mut checks = assertions::decode(spec, &mut entries, diagnostics);
        let sections = grading::sections(spec, &mut entries, diagnostics);
        let criteria = grading::criteria(spec, &mut entries, diagnostics);
        // A section without tiers asks nothing, so no model is asked about it alone.
        if sections.iter().any(|section| !section.tiers.is_empty()) {
            // All sections are one check, because one answer of a model decides them.
            checks.push(entries.check(sections_id(&entries.ids), None, CheckKind::Sections(sections)));
        }
        let any = !criteria.is_empty();
        checks.extend(criteria);
        let graded = grading::thresholds(spec, any, unused, diagnostics);
        Self { args, inputs, looks_at, checks, graded }
    }

    /// Keeps the keys that decide nothing in this spec.
    fn note_unused(
        &self,
        no_queries: bool,
        spec: &mut Object<'_>,
        unused: &mut Unused,
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
            LooksAt::File(_) => (&["output_files"], "\"output_file\" comes first"),
            LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun | LooksAt::Files(_) => (&[], ""),
        };
        for key in keys {
            unused.key(spec, key, why, diagnostics);
        }
    }

    fn case(self, id: String) -> Case {
        let pass_when = match self.graded {
            Some(Thresholds { pass_rate, mean_score }) => PassRule::Graded { pass_rate, mean_score },
            None => PassRule::EveryRequiredCheck,
        };
        Case {
            stimulus: Stimulus::SkillCommand { args: self.args },
            room: Room { base: Base::Project, files: self.inputs, ..Room::default() },
            checks: self.checks,
            pass_when,
            ..blank_case(id, String::new())
        }
    }
}

/// What the assertions, fields and criteria of a spec share.
struct Entries<'s> {
    looks_at: &'s LooksAt,
    /// Ids are one set across all three.
    ids: HashSet<String>,
    unused: &'s mut Unused,
}

impl Entries<'_> {
    /// The entry's id if it is there, text, not empty and new.
    fn id<'n>(
        &mut self,
        entry: &mut Object<'n>,
        what: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<&'n str> {
        let Some(node) = entry.get("id") else {
            entry.missing("id", diagnostics);
            return None;
        };
        let Some(id) = node.as_text().filter(|id| !id.is_empty()) else {
            let message = format!("the \"id\" of {what} must be text that is not empty");
            diagnostics.error("wrong-type", node.span, message);
            return None;
        };
        if !self.ids.insert(id.to_owned()) {
            diagnostics.error_help(
                "duplicate-id",
                node.span,
                format!("another entry is already called \"{id}\""),
                "assertions, fields and criteria are told apart by id, so each needs its own",
            );
        }
        Some(id)
    }

    fn check(&self, id: String, name: Option<&str>, kind: CheckKind) -> Check {
        // One criterion may fail as long as the share and the mean of all hold.
        let need = if matches!(kind, CheckKind::Judged(_)) { Need::Advisory } else { Need::Required };
        Check { id, name: name.map(str::to_owned), need, looks_at: self.looks_at.clone(), kind }
    }
}

/// The check that all sections make is no entry, so its id gives way to theirs.
fn sections_id(taken: &HashSet<String>) -> String {
    let wanted = std::iter::once("sections".to_owned()).chain((2..).map(|n| format!("sections-{n}")));
    wanted.into_iter().find(|id| !taken.contains(id)).unwrap_or_default()
}

/// `my-skill.eval.json` is about `my-skill`; a file that is named after no skill lies in its folder.
fn default_name(path: &Path) -> String {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name = match stem.strip_suffix(".eval") {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => stem,
    };
    let folder = || path.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
    let is_nobodys = name == "SKILL" || path.file_name().is_some_and(|file| file == "eval.json");
    if is_nobodys { folder().unwrap_or(name) } else { name }
}

/// The skill that a spec is about. Not finding it is a warning, because `--skill` can still name it.
fn skill(source: &Source, place: &Place, name: &str, diagnostics: &mut Diagnostics) -> SkillRef {
    let path = place.skill.clone().or_else(|| find_skill(source, place, name));
    if let Some(Err(problem)) = path.as_deref().map(Skill::read) {
        tell_missing(&problem, None, diagnostics);
    }
    if path.is_none() {
        let beside = source.folder().display();
        diagnostics.warning_help(
            "skill-not-found",
            None,
            format!("no skill {name} was found beside the spec in {beside} or in the project"),
            match other_beside(source) {
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

/// The command file that lies beside a spec and has the spec's own name: its name with and without the ending.
fn other_beside(source: &Source) -> Option<(String, String)> {
    let stem = source.path.file_name()?.to_str()?.strip_suffix(".eval.json")?;
    let file = format!("{stem}.md");
    source.folder().join(&file).is_file().then(|| (file, stem.to_owned()))
}

/// The skill beside its spec: a folder's SKILL.md, a command file, or one of that name in the project.
fn find_skill(source: &Source, place: &Place, name: &str) -> Option<PathBuf> {
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

/// What a spec has that gates can be about.
#[derive(Clone, Copy)]
struct Parts {
    is_invoked: bool,
    /// Assertions or sections: they decide the exit code also where no stability is wanted, which every run
    /// would reach.
    has_required: bool,
    has_queries: bool,
}

/// The gates of a spec. Stability is about the runs of the skill's own command; queries are asked once, and
/// each must pass whatever the stability.
fn gates(graded: Option<&Thresholds>, variance: Option<&Variance>, parts: Parts) -> Vec<Gate> {
    let variance = variance.filter(|_| parts.is_invoked);
    let any_stability = variance.is_some_and(|variance| variance.stability.get() <= 0.0);
    let all_pass = variance.is_none() || any_stability && parts.has_required;
    let mut gates = if all_pass { all_cases_pass() } else { Vec::new() };
    if let Some(variance) = variance {
        gates.push(Gate { name: GateName::Stability, threshold: variance.stability });
        if parts.has_queries {
            gates.push(Gate { name: GateName::ActivationCasesPass, threshold: Ratio::ONE });
        }
    }
    if let Some(Thresholds { pass_rate, mean_score }) = graded {
        gates.push(Gate { name: GateName::CriteriaPassRate, threshold: *pass_rate });
        gates.push(Gate { name: GateName::MeanScore, threshold: *mean_score });
    }
    gates
}

//! clauditor: `<skill>.eval.json` beside the skill or command it is about.

mod assertions;
mod files;
mod grading;
mod keys;
mod policy;
mod raise;
#[cfg(test)]
mod tests;
mod triggers;
mod unused;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::grading::{Thresholds, Variance};
use self::unused::Unused;
use super::reading::{Ids, all_cases_pass, blank_case, blank_suite};
use super::told_apart::{self, Format};
use super::{Dialect, Fit, Place, Raised};
use crate::model::{
    Base, Case, Check, Diagnostics, Fixture, Gate, GateName, LooksAt, PassRule, RelPath, Room, RunPolicy,
    SkillRef, Stimulus, Suite,
};
use crate::tree::{Object, Source};

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
        let args = spec.text("test_args", diagnostics).unwrap_or_default().to_owned();
        let inputs = files::inputs(&mut spec, source.folder(), diagnostics);
        let mut unused = Unused::default();
        let looks_at = files::looks_at(&mut spec, &inputs, &mut unused, diagnostics);
        let mut entries = Entries { looks_at, ids: HashSet::new(), unused };
        let mut checks = assertions::decode(&mut spec, &mut entries, diagnostics);
        let sections = grading::sections(&mut spec, &mut entries, diagnostics);
        let criteria = grading::criteria(&mut spec, &mut entries, diagnostics);
        let graded = !criteria.is_empty();
        checks.extend((!sections.is_empty()).then(|| entries.sections(sections)));
        checks.extend(criteria);
        let mut unused = entries.unused;
        let thresholds = grading::thresholds(&mut spec, graded, &mut unused, diagnostics);
        let variance = grading::variance(&mut spec, &mut unused, diagnostics);
        let queries = triggers::queries(&mut spec, &mut unused, diagnostics);
        let (run, judge) =
            policy::policies(&mut spec, variance.as_ref().map(|variance| variance.runs), diagnostics);
        let mut ids = Ids::default();
        let mut cases = Vec::new();
        if checks.is_empty() && !queries.is_empty() {
            for key in ["test_args", "input_files", "output_file", "output_files"] {
                unused.key(&mut spec, key, "the spec has trigger tests and no other checks", diagnostics);
            }
        } else {
            let id = ids.derive(&name);
            cases.push(invocation(id, args, inputs, checks, graded.then_some(&thresholds)));
        }
        cases.extend(triggers::cases(&queries, &name, &mut ids));
        unused.rest(&spec, "a spec", &[], diagnostics);
        let skill = find_skill(source, place, &name);
        if skill.is_none() {
            diagnostics.warning_help(
                "skill-not-found",
                None,
                format!(
                    "no skill {name} was found beside the spec in {} or in the project",
                    source.folder().display()
                ),
                "name its folder or file with --skill",
            );
        }
        Some(Suite {
            description,
            skills: vec![SkillRef { name: name.clone(), path: skill, plugin: None }],
            cases,
            run,
            defaults: defaults(),
            judge,
            gates: gates(graded.then_some(&thresholds), variance.as_ref()),
            meta: unused.into_meta(),
            ..blank_suite(NAME, source, name)
        })
    }

    fn raise(&self, suite: &Suite, folder: &Path) -> Raised {
        raise::raise(suite, folder)
    }
}

/// What the format does where a spec is silent.
fn defaults() -> RunPolicy {
    RunPolicy {
        timeout: Some(TIMEOUT),
        repeat: Some(1),
        detect_questions: Some(true),
        ..RunPolicy::default()
    }
}

/// What the assertions, fields and criteria of a spec share.
struct Entries {
    looks_at: LooksAt,
    /// Ids are one set across all three.
    ids: HashSet<String>,
    unused: Unused,
}

impl Entries {
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

    /// All sections are one check, because one answer of a model decides them.
    fn sections(&self, sections: Vec<crate::model::Section>) -> Check {
        Check {
            id: sections_id(&self.ids),
            name: None,
            need: crate::model::Need::Required,
            looks_at: self.looks_at.clone(),
            kind: crate::model::CheckKind::Sections(sections),
        }
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
    if name == "SKILL" || name == "eval" { folder().unwrap_or(name) } else { name }
}

/// The skill beside its spec: a folder's SKILL.md, a command file, or one of that name in the project.
fn find_skill(source: &Source, place: &Place, name: &str) -> Option<PathBuf> {
    RelPath::new(name)?;
    let folder = source.folder();
    let candidates = [
        folder.join(format!("{name}.md")),
        folder.join("SKILL.md"),
        folder.join(name).join("SKILL.md"),
        folder.parent().map(|above| above.join("SKILL.md")).unwrap_or_default(),
        place.project.join(".claude/skills").join(name).join("SKILL.md"),
        place.project.join(".claude/commands").join(format!("{name}.md")),
        place.project.join("skills").join(name).join("SKILL.md"),
    ];
    candidates.into_iter().find(|path| path.is_file())
}

/// The skill's own command with the inputs in its working folder.
fn invocation(
    id: String,
    args: String,
    files: Vec<Fixture>,
    checks: Vec<Check>,
    graded: Option<&Thresholds>,
) -> Case {
    let pass_when = graded.map_or(PassRule::EveryRequiredCheck, |thresholds| PassRule::Graded {
        pass_rate: thresholds.pass_rate,
        mean_score: thresholds.mean_score,
    });
    Case {
        stimulus: Stimulus::SkillCommand { args },
        room: Room { base: Base::Project, files, ..Room::default() },
        checks,
        pass_when,
        ..blank_case(id, String::new())
    }
}

fn gates(graded: Option<&Thresholds>, variance: Option<&Variance>) -> Vec<Gate> {
    let mut gates = match variance {
        Some(variance) => vec![Gate { name: GateName::Stability, threshold: variance.stability }],
        None => all_cases_pass(),
    };
    if let Some(Thresholds { pass_rate, mean_score }) = graded {
        gates.push(Gate { name: GateName::CriteriaPassRate, threshold: *pass_rate });
        gates.push(Gate { name: GateName::MeanScore, threshold: *mean_score });
    }
    gates
}

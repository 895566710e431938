//! skill-creator and agentskills.io: `evals/evals.json` in a skill's folder, and trigger sets.

use std::path::Path;

use super::reading::{self, Hint, Ids, Kept, Triggers};
use super::told_apart::{self, Format};
use super::{Dialect, Fit, Place, Raised};
use crate::model::{Arm, Case, Diagnostics, Ratio, Room, RunPolicy, SkillRef, Suite};
use crate::tree::{Data, Node, Object, Source};

mod assertions;
mod raise;

pub struct SkillCreator;

const NAME: &str = "skill-creator";

/// What the key of a case's meta is called that holds what its assertions say beyond the checks.
const ASSERTIONS: &str = "assertions";

impl Dialect for SkillCreator {
    fn name(&self) -> &'static str {
        NAME
    }

    fn recognise(&self, source: &Source) -> Fit {
        told_apart::fit(source, Format::SkillCreator)
    }

    fn raise(&self, suite: &Suite, folder: &Path) -> Raised {
        raise::raise(suite, folder)
    }

    fn lower(&self, source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Option<Suite> {
        if let Data::List(items) = &source.root.data {
            return Some(triggers(items, source, place, diagnostics));
        }
        let mut file = Object::new(&source.root, "the file", diagnostics)?;
        let name_node = file.given("skill_name");
        let name = file.text("skill_name", diagnostics).map(str::trim).filter(|name| !name.is_empty());
        let hint = name.zip(name_node).map(|(name, node)| Hint { name, span: node.span });
        let evals = file.list("evals", diagnostics);
        if file.given("evals").is_none() {
            file.missing("evals", diagnostics);
        }
        let mut reader = Reader::new(source, place, hint, diagnostics);
        let meta = reader.kept.rest(&file, "the file", diagnostics);
        let evals = evals?;
        if evals.is_empty() {
            diagnostics.error(
                "no-cases",
                source.root.span,
                "there are no evals; a suite without cases proves nothing",
            );
        }
        let cases = evals.iter().filter_map(|node| reader.eval(node, diagnostics)).collect();
        Some(Suite {
            cases,
            defaults: RunPolicy {
                repeat: Some(1),
                arms: vec![Arm::WithSkill, Arm::WithoutSkill],
                ..RunPolicy::default()
            },
            gates: reading::all_cases_pass(),
            skills: vec![reader.skill.clone()],
            meta,
            ..reading::blank_suite(NAME, source, reading::suite_name(&reader.skill.name, source))
        })
    }
}

/// What every eval of a file shares.
struct Reader {
    skill: SkillRef,
    files: reading::Files,
    ids: Ids,
    kept: Kept,
}

impl Reader {
    fn new(source: &Source, place: &Place, hint: Option<Hint<'_>>, diagnostics: &mut Diagnostics) -> Self {
        let folder = source.folder();
        let skill = reading::skill_beside(folder, &place.project, hint, diagnostics);
        // Paths start at the skill's folder, which is where the evals folder lies even when there
        // is no skill yet.
        let root = skill.path.as_deref().or_else(|| folder.parent()).unwrap_or(folder).to_owned();
        let files = reading::Files {
            roots: vec![root, folder.to_owned()],
            below: Some(reading::Below { folder: folder.to_owned(), names: Vec::new() }),
        };
        Self { skill, files, ids: Ids::default(), kept: Kept::default() }
    }

    fn eval(&mut self, node: &Node, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut eval = Object::new(node, "an eval", diagnostics)?;
        let id = self.ids.given(&mut eval, diagnostics);
        let name = eval.text("name", diagnostics).map(str::to_owned);
        let prompt = eval.required_text("prompt", diagnostics);
        let expected = eval.text("expected_output", diagnostics).filter(|text| !text.trim().is_empty());
        let files = reading::fixtures(&mut eval, &self.files, diagnostics);
        let mut checks = assertions::Checks::default();
        for key in ["expectations", "assertions"] {
            for node in eval.list(key, diagnostics).unwrap_or_default() {
                checks.add(node, diagnostics);
            }
        }
        let mut meta = self.kept.rest(&eval, "an eval", diagnostics);
        if let Some(more) = checks.more(&mut self.kept, diagnostics) {
            meta.insert(ASSERTIONS.to_owned(), more);
        }
        let refused = checks.refused;
        let mut checks = checks.list;
        let mut context = expected.map(str::to_owned);
        if checks.is_empty() && !refused {
            match expected {
                // As authors leave it before they write assertions. What they expect is at least
                // something to judge by, and a case without checks would be passed by doing nothing.
                Some(expected) => {
                    diagnostics.notice(
                        "no-assertions",
                        node.span,
                        "this eval has no assertions; it is judged by its expected_output",
                    );
                    checks.push(reading::judged("expected-output".to_owned(), expected));
                    context = None;
                }
                None => diagnostics.error_help(
                    "no-checks",
                    node.span,
                    "this eval expects nothing, so a do-nothing agent would pass it",
                    "add \"expectations\", \"assertions\" or at least \"expected_output\"",
                ),
            }
        }
        Some(Case {
            note: name,
            room: Room { files, ..Room::default() },
            checks,
            context,
            meta,
            ..reading::blank_case(id?, prompt?.to_owned())
        })
    }
}

fn triggers(items: &[Node], source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Suite {
    let skill = reading::skill_beside(source.folder(), &place.project, None, diagnostics);
    let triggers = Triggers { skill: &skill.name, room: &Room::default() };
    let cases = triggers.cases(items, &mut Kept::default(), diagnostics);
    Suite {
        cases,
        defaults: RunPolicy {
            repeat: Some(reading::TRIGGER_RUNS),
            trigger_threshold: Ratio::new(reading::TRIGGER_THRESHOLD),
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
        skills: vec![skill.clone()],
        ..reading::blank_suite(NAME, source, reading::suite_name(&skill.name, source))
    }
}

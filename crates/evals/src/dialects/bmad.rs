//! The BMad format: `evals.json` with expectations for a judge, and `triggers.json` beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::reading::{self, SkillHint, TriggerReader, UniqueIds, UnusedKeys, slug};
use super::recognition::{self, ForeignFormat};
use super::skill_creator::assertions::AssertionReader;
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    Case, Check, Diagnostics, Fixture, MAX_DURATION, Ratio, RelPath, RunPolicy, SkillRef, StagedSkillName,
    Suite, WorkspaceBase, WorkspaceSpec,
};
use practicum_core::tree::{NodeData, ObjectReader, SourceFile, TreeNode, read_bounded, report_wrong_type};

mod export;
mod schema;

/// The adapter for the BMad format.
pub struct Bmad;

const NAME: &str = "bmad";

/// The time limit of an eval that gives none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The key for what the author says of the whole file.
const NOTES_KEY: &str = "_design_notes";

/// The notes that are written where a suite has none.
const NO_NOTES: &str = "Evals in the BMad format.";

impl Dialect for Bmad {
    fn name(&self) -> &'static str {
        NAME
    }

    fn owns_folder(&self) -> bool {
        true
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["evals.json", "cases.json", "triggers.json", "trigger-queries.json"]
    }

    fn recognition_rule(&self) -> &'static str {
        "\"evals\" with \"expectations\" and a \"timeout\", overlays or triggers.json around it; cases \
         with a \"rubric\"; triggers.json and trigger-queries.json"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        recognition::fit_for(source, ForeignFormat::Bmad)
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export_suite(suite, folder)
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        match &source.root.data {
            NodeData::List(items) if is_trigger_set(items, source) => {
                Some(read_triggers(items, source, place, diagnostics))
            }
            NodeData::List(items) => {
                Some(BmadReader::new(source, place, None, diagnostics).read_suite(items, diagnostics))
            }
            NodeData::Map(_)
                if !["evals", "cases"].iter().any(|key| source.root.has(key))
                    && recognition::is_named_triggers(source) =>
            {
                reading::refuse_mapped_triggers(&source.root, diagnostics);
                None
            }
            _ => {
                let mut file = ObjectReader::new(&source.root, "the file", diagnostics)?;
                let hint = read_skill_hint(&mut file, diagnostics);
                let key = reading::pick_key(&mut file, ["evals", "cases"], diagnostics);
                let evals = file.list(key, diagnostics);
                if file.get_non_null(key).is_none() {
                    file.report_missing(key, diagnostics);
                }
                if file.peek(NOTES_KEY).and_then(TreeNode::as_text) == Some(NO_NOTES) {
                    file.get(NOTES_KEY);
                }
                let mut reader = BmadReader::new(source, place, hint, diagnostics);
                let meta = reader.unused_keys.collect_unused(&file, "the file", diagnostics);
                Some(Suite { meta, ..reader.read_suite(evals?, diagnostics) })
            }
        }
    }
}

/// Says whether a list is a trigger set: an item looks like a query, or the file has a trigger set's name and no
/// item looks like an eval.
fn is_trigger_set(items: &[TreeNode], source: &SourceFile) -> bool {
    let of_evals = items.iter().any(|item| ["input", "rubric", "prompt"].iter().any(|key| item.has(key)));
    reading::are_triggers(items) || items.is_empty() || recognition::is_named_triggers(source) && !of_evals
}

/// Reads the skill's name from the file. In this format it is only documentation, so it may be anything. It helps
/// where the file's folder does not tell which skill is meant.
fn read_skill_hint<'n>(file: &mut ObjectReader<'n>, diagnostics: &mut Diagnostics) -> Option<SkillHint<'n>> {
    let node = file.get_non_null("skill_name")?;
    match node.as_text() {
        Some(name) if !name.trim().is_empty() => {
            Some(SkillHint { name: name.trim(), span: node.span, is_decisive: false })
        }
        Some(_) => None,
        None => {
            report_wrong_type(node, "skill_name", "text", diagnostics);
            None
        }
    }
}

/// A reader for the evals of one file, with what they share.
struct BmadReader<'s> {
    source: &'s SourceFile,
    project: PathBuf,
    skill: SkillRef,
    files: reading::FixtureFolders,
    ids: UniqueIds,
    unused_keys: UnusedKeys,
}

impl<'s> BmadReader<'s> {
    fn new(
        source: &'s SourceFile,
        place: &EvalFileLocation,
        hint: Option<SkillHint<'_>>,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let folder = source.folder();
        let skill = reading::skill_beside(folder, place, hint, diagnostics);
        let own = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let names = [Some(skill.name.clone()), hint.map(|hint| hint.name.to_owned()), own];
        let files = reading::FixtureFolders {
            roots: vec![place.project.clone(), folder.to_owned()],
            own_folder: Some(reading::FolderPrefix {
                folder: folder.to_owned(),
                names: names.into_iter().flatten().collect(),
            }),
        };
        Self {
            source,
            project: place.project.clone(),
            skill,
            files,
            ids: UniqueIds::default(),
            unused_keys: UnusedKeys::with_silent_underscores(),
        }
    }

    fn read_suite(mut self, evals: &[TreeNode], diagnostics: &mut Diagnostics) -> Suite {
        if evals.is_empty() {
            diagnostics.error(
                "no-cases",
                self.source.root.span,
                "there are no evals; a suite without cases proves nothing",
            );
        }
        let cases: Vec<Case> = evals.iter().filter_map(|node| self.read_eval(node, diagnostics)).collect();
        // If an eval has an error, its id may be the very one that an overlay is named after.
        if cases.len() == evals.len() && self.source.folder() != self.project {
            warn_about_unused_overlays(self.source, &cases, diagnostics);
        }
        Suite {
            rivals: reading::other_expected_skills(&cases, &self.skill, diagnostics),
            cases,
            format_defaults: RunPolicy {
                repeat: Some(1),
                timeout: Some(DEFAULT_TIMEOUT),
                ..RunPolicy::default()
            },
            gates: reading::all_cases_pass(),
            skills: vec![self.skill.clone()],
            ..reading::blank_suite(NAME, self.source, reading::suite_name(&self.skill.name, self.source))
        }
    }

    fn read_eval(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut eval = ObjectReader::new(node, "an eval", diagnostics)?;
        // The newer form of the format has `input` and `rubric`, and the id is optional.
        let newer = node.has("input") || node.has("rubric");
        let prompt = reading::either_text(
            &mut eval,
            if newer { ["input", "prompt"] } else { ["prompt", "input"] },
            diagnostics,
        );
        let prefix = eval.text("state_prefix", diagnostics).filter(|prefix| !prefix.trim().is_empty());
        let id = match prompt {
            Some(prompt) if newer && eval.get_non_null("id").is_none() => {
                Some(self.ids.make_unique(&slug(prompt, "case")))
            }
            _ => self.ids.read_id(&mut eval, diagnostics),
        };
        let context = eval.text("expected_output", diagnostics).map(str::to_owned);
        let files = reading::read_fixtures(&mut eval, &self.files, diagnostics);
        let activation =
            reading::expected_activation(&mut eval, std::slice::from_ref(&self.skill.name), diagnostics);
        let mut checks = activation.checks;
        checks.extend(read_expectations(&mut eval, newer, activation.is_given, diagnostics));
        let ids = checks.iter().map(|check| check.id.clone()).collect();
        checks.extend(self.read_assertions(&mut eval, ids, diagnostics));
        let timeout = eval
            .int("timeout", 1, MAX_DURATION.as_secs().cast_signed(), diagnostics)
            .and_then(|n| u64::try_from(n).ok());
        let meta = self.unused_keys.collect_unused(&eval, "an eval", diagnostics);
        let (id, prompt) = (id?, prompt?);
        Some(Case {
            workspace: workspace_for_eval(self.source.folder(), &id, files),
            checks,
            context: context.filter(|context| !context.trim().is_empty()),
            timeout: timeout.map(Duration::from_secs),
            meta,
            ..reading::blank_case(
                id,
                match prefix {
                    Some(prefix) => format!("{}\n\n{prompt}", prefix.trim_end()),
                    None => prompt.to_owned(),
                },
            )
        })
    }
}

impl BmadReader<'_> {
    /// The assertions that some authors add to the expectations of an eval, as skill-creator has them. `ids` are
    /// the ids of its other checks.
    fn read_assertions(
        &mut self,
        eval: &mut ObjectReader<'_>,
        ids: Vec<String>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Check> {
        const KEY: &str = "assertions";
        // BMad itself has no such key, so that it is asked for only where it is.
        if eval.peek(KEY).is_none() {
            return Vec::new();
        }
        let mut reader = AssertionReader::beside_checks(ids);
        for node in eval.list(KEY, diagnostics).unwrap_or_default() {
            reader.add_assertion(node, KEY, diagnostics);
        }
        reader.collect_unused(&mut self.unused_keys, diagnostics);
        reader.checks
    }
}

/// The project, then the overlays for every eval, then the one for this eval.
fn workspace_for_eval(folder: &Path, id: &str, files: Vec<Fixture>) -> WorkspaceSpec {
    let mut overlays = base_overlays(folder);
    let own = RelPath::new(id).map(|id| id.join_to(folder).join("setup"));
    overlays.extend(own.filter(|overlay| is_overlay(overlay, folder)));
    WorkspaceSpec { base: WorkspaceBase::Project, overlays, files, ..WorkspaceSpec::default() }
}

/// The largest file beside an eval file that is searched for ids.
const LARGEST_FILE_BESIDE: u64 = 1024 * 1024;

/// Warns about what looks like an overlay beside an eval file but is copied into no workspace.
fn warn_about_unused_overlays(source: &SourceFile, cases: &[Case], diagnostics: &mut Diagnostics) {
    let Ok(entries) = std::fs::read_dir(source.folder()) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    // Another eval file in the same folder may have the eval that an overlay is named after.
    let is_other =
        |path: &&PathBuf| **path != source.path && path.extension().is_some_and(|end| end == "json");
    let others: Vec<Vec<u8>> = paths
        .iter()
        .filter(is_other)
        .filter_map(|path| read_bounded(path, LARGEST_FILE_BESIDE).ok())
        .collect();
    let is_named_elsewhere = |id: &str| {
        let quoted = format!("\"{id}\"");
        others.iter().any(|text| String::from_utf8_lossy(text).contains(&quoted))
    };
    let misnamed = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let is_near =
            name.is_some_and(|name| ["setups", "set-up", "set_up", "setup"].contains(&name.as_str()));
        is_near && path.file_name().is_some_and(|name| name != "setup") && path.is_dir()
    };
    let is_linked_out =
        |path: &Path| path.ends_with("setup") && path.is_dir() && !is_overlay(path, source.folder());
    let mut tell = |path: &Path, why: String| {
        let message = format!("{} is laid into no workspace: {why}", path.display());
        diagnostics.warning("unused-overlay", None, message);
    };
    for path in paths {
        let (setup, id) = (path.join("setup"), path.file_name().unwrap_or_default().to_string_lossy());
        let is_eval = cases.iter().any(|case| case.id == id) || is_named_elsewhere(&id);
        let has_evals = ["evals.json", "cases.json"].iter().any(|name| path.join(name).is_file());
        if misnamed(&path) {
            tell(&path, "an overlay is called setup".to_owned());
        } else if let Some(linked) = [&path, &setup].into_iter().find(|path| is_linked_out(path)) {
            tell(linked, "it is a link that leads out of the project".to_owned());
        } else if id == "setup" && !path.is_dir() {
            tell(&path, "an overlay is a folder".to_owned());
        } else if setup.is_dir() && id != "setup" && id != "files" && !is_eval && !has_evals {
            tell(&setup, format!("no eval is called {id}"));
        } else if is_eval && setup.symlink_metadata().is_ok() && !setup.is_dir() {
            tell(&setup, "an overlay is a folder".to_owned());
        } else if is_eval {
            let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
            for near in inside.map(|entry| entry.path()).filter(|path| misnamed(path)) {
                tell(&near, "an overlay is called setup".to_owned());
            }
        }
    }
}

/// Gives the overlays for every eval in a folder, the most general first: `setup/` of the enclosing `evals`
/// folder, of the folders in between, and of the folder itself.
pub(super) fn base_overlays(folder: &Path) -> Vec<PathBuf> {
    let levels: Vec<&Path> = folder.ancestors().collect();
    let outermost = outermost_evals(folder);
    let project = levels.get(outermost + 1).copied().unwrap_or(folder);
    let shared = levels[1..=outermost].iter().rev().map(|level| level.join("setup"));
    let shared = shared.filter(|overlay| !are_evals_of_skill(overlay, project));
    let own = folder.join("setup");
    shared.chain([own]).filter(|overlay| is_overlay(overlay, folder)).collect()
}

/// Gives the number of levels from a folder up to the outermost `evals` folder that encloses it.
fn outermost_evals(folder: &Path) -> usize {
    let is_evals = |level: &Path| level.file_name().is_some_and(|name| name == "evals");
    folder.ancestors().position(is_evals).unwrap_or(0)
}

/// Says whether an overlay for the evals in `folder` can be copied into workspaces: it is a folder, and no link that
/// leads out of the project.
fn is_overlay(overlay: &Path, folder: &Path) -> bool {
    let (Ok(folder), Ok(path)) = (std::path::absolute(folder), std::path::absolute(overlay)) else {
        return false;
    };
    let project = folder.ancestors().nth(outermost_evals(&folder) + 1).unwrap_or(&folder);
    path.is_dir() && !reading::leads_out_of(project, &path)
}

/// Says whether a folder named `setup` is not an overlay but holds the evals of a skill named `setup`. An overlay
/// may also contain a file with an eval file's name, so that skill must exist.
fn are_evals_of_skill(overlay: &Path, project: &Path) -> bool {
    let mut names = ["evals.json", "cases.json"].iter().chain(&recognition::TRIGGER_FILES);
    names.any(|name| overlay.join(name).is_file()) && reading::has_skill("setup", overlay, project)
}

/// Makes one judged check for each expectation. The ids come from the words, so that an expectation added above
/// does not rename the ones below. With `may_be_missing`, the eval needs no expectations, because it says whether
/// the skill must be activated.
fn read_expectations(
    eval: &mut ObjectReader<'_>,
    newer: bool,
    may_be_missing: bool,
    diagnostics: &mut Diagnostics,
) -> Vec<Check> {
    let keys = if newer { ["rubric", "expectations"] } else { ["expectations", "rubric"] };
    let key = reading::pick_key(eval, keys, diagnostics);
    let Some(node) = eval.get_non_null(key) else {
        if !may_be_missing {
            eval.report_missing(key, diagnostics);
        }
        return Vec::new();
    };
    let Some(texts) = eval.texts(key, diagnostics) else { return Vec::new() };
    if node.as_list().is_some_and(<[TreeNode]>::is_empty) && !may_be_missing {
        diagnostics.error_with_help(
            "no-checks",
            node.span,
            "this eval expects nothing, so a do-nothing agent would pass it",
            format!("say what must be true afterwards in \"{key}\""),
        );
    }
    let mut ids = UniqueIds::default();
    let mut checks = Vec::new();
    for (text, span) in texts {
        if text.trim().is_empty() {
            diagnostics.error("empty-text", span, "an expectation must not be blank");
        } else {
            checks.push(reading::judged_check(ids.make_unique(&slug(text, "expectation")), text));
        }
    }
    checks
}

/// Reads trigger queries. Their workspace has only the overlays for every eval, and the skill under a name of its
/// own.
fn read_triggers(
    items: &[TreeNode],
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> Suite {
    let folder = source.folder();
    let skill = reading::skill_beside(folder, place, None, diagnostics);
    let room = WorkspaceSpec {
        base: WorkspaceBase::Empty,
        overlays: base_overlays(folder),
        skill_name: StagedSkillName::Alias,
        ..WorkspaceSpec::default()
    };
    let mut kept = UnusedKeys::with_silent_underscores();
    let triggers = TriggerReader { skill: &skill.name, workspace: &room };
    let cases = triggers.read_cases(items, &mut kept, diagnostics);
    Suite {
        cases,
        format_defaults: RunPolicy {
            repeat: Some(reading::TRIGGER_RUNS),
            timeout: Some(DEFAULT_TIMEOUT),
            trigger_threshold: Ratio::new(reading::TRIGGER_THRESHOLD),
            ..RunPolicy::default()
        },
        gates: reading::all_cases_pass(),
        skills: vec![skill.clone()],
        ..reading::blank_suite(NAME, source, reading::suite_name(&skill.name, source))
    }
}

#[cfg(test)]
mod tests;

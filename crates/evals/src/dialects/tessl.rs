//! The format of Tessl: each scenario is a folder with a `task.md` and a weighted checklist in `criteria.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::reading::graders::{Unsupported, scored_statement};
use super::reading::{self, UniqueIds, UnusedKeys, parts};
use super::{Dialect, EvalFileLocation, EvalFolder, ExportedSuite, FormatMatch};
use practicum_core::model::{
    Arm, Check, CheckTarget, CheckWeight, Diagnostics, Fixture, FixtureAccess, Origin, PassRule, Ratio,
    RelPath, RunPolicy, ScoreOf, ScoreRule, ScoreScale, SkillRef, Suite, WorkspaceBase,
};
use practicum_core::tree::{
    NodeData, ObjectReader, SourceFile, SourceSyntax, TreeNode,
    json_schema::{self, MappingSchema},
};
use practicum_skills::skill::normalise_path;

mod export;

/// The adapter for Tessl's format.
pub struct Tessl;

const NAME: &str = "tessl";

const TASK_FILE: &str = "task.md";
const CRITERIA_FILE: &str = "criteria.json";
const SCENARIO_FILE: &str = "scenario.json";

/// The time that a scenario has.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The score that a scenario must reach. Tessl has no threshold; this one asks for every point.
const THRESHOLD: Ratio = Ratio::ONE;

impl Dialect for Tessl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn recognition_rule(&self) -> &'static str {
        "a folder with task.md and criteria.json; one folder for each scenario"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let is_named = source.path.file_name().is_some_and(|name| name == CRITERIA_FILE);
        let root = &source.root;
        match root.get("type").and_then(TreeNode::as_text) == Some("weighted_checklist")
            || is_named && (root.has("checklist") || root.has("criteria"))
        {
            true => FormatMatch::with_points(150, "it is a weighted checklist"),
            false => FormatMatch::NO,
        }
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        match EvalFolder::open(source.folder()) {
            Ok(folder) => self.lower_folder(&folder, place, diagnostics),
            Err(why) => {
                diagnostics.error("unreadable-folder", None, format!("cannot read the folder: {why}"));
                None
            }
        }
    }

    fn reads_folders(&self) -> bool {
        true
    }

    fn recognise_folder(&self, folder: &EvalFolder) -> FormatMatch {
        match folder.has(TASK_FILE) && folder.has(CRITERIA_FILE) {
            true => FormatMatch::sure("the folder has a task.md and a criteria.json"),
            false => FormatMatch::NO,
        }
    }

    fn lower_folder(
        &self,
        folder: &EvalFolder,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let prompt = parts::read_part_text(folder, TASK_FILE, diagnostics)?;
        let checks = read_criteria(folder, diagnostics)?;
        let mut unsupported = Unsupported::default();
        let mut meta = BTreeMap::new();
        let files = read_scenario(folder, &mut meta, &mut unsupported, diagnostics);
        if prompt.trim().is_empty() {
            diagnostics.error("empty-text", None, format!("{TASK_FILE}: the prompt must not be blank"));
            return None;
        }
        let id = folder.path().file_name()?.to_string_lossy().into_owned();
        let mut case = reading::blank_case(id, prompt.trim().to_owned());
        case.checks = checks;
        case.workspace.files = files;
        case.pass_rule = PassRule::Score(ScoreRule { at_least: THRESHOLD, of: ScoreOf::MeanOfTrials });
        case.unsupported = unsupported.into_reason();
        case.meta = meta;
        let (name, skills) = find_skills(folder.path(), place, diagnostics);
        let read = [TASK_FILE, CRITERIA_FILE, SCENARIO_FILE].into_iter().filter_map(RelPath::new);
        let read: Vec<RelPath> = read.filter(|path| folder.has(path.as_str())).collect();
        let digest = folder.digest_of(&read);
        let origin = Origin { dialect: NAME.to_owned(), path: folder.path().to_owned(), digest };
        let arms = if skills.is_empty() { Vec::new() } else { vec![Arm::WithSkill, Arm::WithoutSkill] };
        Some(Suite {
            skills,
            cases: vec![case],
            format_defaults: RunPolicy {
                repeat: Some(1),
                timeout: Some(TIMEOUT),
                arms,
                workspace: Some(WorkspaceBase::Empty),
                ..RunPolicy::default()
            },
            gates: reading::all_cases_pass(),
            ..Suite::empty(&name, origin)
        })
    }

    fn schema(&self) -> Value {
        schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export(suite, folder)
    }

    fn folder_is_suite(&self) -> bool {
        true
    }
}

/// Reads the checklist: a judged check for each item, which counts with its points.
fn read_criteria(folder: &EvalFolder, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let text = parts::read_part_text(folder, CRITERIA_FILE, diagnostics)?;
    let path = folder.path().join(CRITERIA_FILE);
    let source = parts::parse_part(CRITERIA_FILE, &path, text.clone(), SourceSyntax::Json, diagnostics)?;
    let mut problems = Diagnostics::default();
    let checks = read_checklist(&source.root, &mut problems);
    parts::report_part(CRITERIA_FILE, &text, problems, diagnostics);
    checks
}

fn read_checklist(root: &TreeNode, problems: &mut Diagnostics) -> Option<Vec<Check>> {
    let mut file = ObjectReader::new(root, "the criteria", problems)?;
    if let Some(node) = file.get_non_null("type")
        && node.as_text() != Some("weighted_checklist")
    {
        problems.error("unknown-value", node.span, "\"type\" must be weighted_checklist");
    }
    let context =
        file.text("context", problems).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    // Some projects write the list under another name, with other names for its parts.
    let key = if file.peek("checklist").is_some() { "checklist" } else { "criteria" };
    let items = match key {
        "checklist" => file.list("checklist", problems),
        _ => file.list("criteria", problems),
    };
    for key in ["metadata", "name", "total", "version"] {
        file.get(key);
    }
    UnusedKeys::default().collect_unused(&file, "the criteria", problems);
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        problems.error("no-checks", root.span, "there is no checklist, so nothing can be graded");
        return None;
    };
    let mut ids = UniqueIds::default();
    let mut kept = UnusedKeys::default();
    let mut checks = Vec::new();
    for item in items {
        checks.extend(read_item(item, context.as_deref(), &mut ids, &mut kept, problems));
    }
    Some(checks)
}

fn read_item(
    item: &TreeNode,
    context: Option<&str>,
    ids: &mut UniqueIds,
    kept: &mut UnusedKeys,
    problems: &mut Diagnostics,
) -> Option<Check> {
    let mut object = ObjectReader::new(item, "an expectation", problems)?;
    let name = object.text("name", problems).or_else(|| object.text("id", problems)).map(str::to_owned);
    let description = object.required_text("description", problems).map(str::to_owned);
    let points = ["max_score", "weight"].into_iter().find_map(|key| object.get_non_null(key));
    object.get("category");
    kept.collect_unused(&object, "an expectation", problems);
    let weight = match points.map(|node| (node, &node.data)) {
        None => {
            object.report_missing("max_score", problems);
            None
        }
        Some((_, NodeData::Int(points))) if *points > 0 => CheckWeight::new(*points as f64),
        Some((_, NodeData::Float(points))) if *points > 0.0 => CheckWeight::new(*points),
        Some((node, _)) => {
            problems.error("out-of-range", node.span, "\"max_score\" must be a number above 0");
            None
        }
    };
    let (description, weight) = (description?, weight?);
    let id = ids.make_unique(&reading::slug(name.as_deref().unwrap_or(&description), "item"));
    let statement = match name.as_deref().map(str::trim) {
        // A name that only repeats the beginning says nothing more.
        Some(name) if !name.is_empty() && !description.trim().starts_with(name) => {
            format!("{name}: {}", description.trim())
        }
        Some(_) | None => description.trim().to_owned(),
    };
    // Only what the agent left in the workspace is graded.
    let target = CheckTarget::Files(vec!["**".to_owned()]);
    let mut check = scored_statement(&id, &statement, ScoreScale::Unit, target);
    if let practicum_core::model::CheckKind::Judged(judged) = &mut check.kind {
        judged.context = context.map(str::to_owned);
    }
    Some(Check {
        weight,
        name: name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
        ..check
    })
}

/// Reads which files of the scenario the agent gets.
fn read_scenario(
    folder: &EvalFolder,
    meta: &mut BTreeMap<String, Value>,
    unsupported: &mut Unsupported,
    diagnostics: &mut Diagnostics,
) -> Vec<Fixture> {
    let mut included: Vec<String> = Vec::new();
    if folder.has(SCENARIO_FILE)
        && let Some(text) = parts::read_part_text(folder, SCENARIO_FILE, diagnostics)
        && let Some(source) = parts::parse_part(
            SCENARIO_FILE,
            &folder.path().join(SCENARIO_FILE),
            text.clone(),
            SourceSyntax::Json,
            diagnostics,
        )
    {
        let mut problems = Diagnostics::default();
        if let Some(mut file) = ObjectReader::new(&source.root, "the scenario", &mut problems) {
            if let Some(text) = file.text("description", &mut problems) {
                meta.insert("description".to_owned(), json!(text));
            }
            let paths = file.texts("include", &mut problems).unwrap_or_default();
            included.extend(paths.into_iter().map(|(path, _)| path.to_owned()));
            for (key, value) in UnusedKeys::default().collect_unused(&file, "the scenario", &mut problems) {
                if ["fixture", "repo", "repository", "setup"].contains(&key.as_str()) {
                    unsupported.add(format!("\"{key}\" of the scenario is not prepared"));
                }
                meta.insert(key, value);
            }
        }
        parts::report_part(SCENARIO_FILE, &text, problems, diagnostics);
    }
    let mut files = Vec::new();
    for path in included {
        match RelPath::new(&path).filter(|path| folder_has(folder, path)) {
            Some(path) => files.extend(copied_files(folder, &path)),
            None => unsupported.add(format!("{path} of the scenario is not in its folder")),
        }
    }
    files
}

fn folder_has(folder: &EvalFolder, path: &RelPath) -> bool {
    folder.open_inside(path).is_ok() || folder.read_text(path).is_ok()
}

/// Gives the copies of an included path: a file under its own path, of a folder what is in it.
fn copied_files(folder: &EvalFolder, path: &RelPath) -> Vec<Fixture> {
    let fixture = |source: PathBuf, to: &str| {
        let destination = RelPath::new(to)?;
        Some(Fixture { source, destination, access: FixtureAccess::Mutable })
    };
    match folder.open_inside(path) {
        Ok(inside) => {
            let names: Vec<&str> = inside.names().collect();
            names
                .into_iter()
                .filter_map(|name| fixture(path.join_to(folder.path()).join(name), name))
                .collect()
        }
        Err(_) => fixture(path.join_to(folder.path()), path.as_str()).into_iter().collect(),
    }
}

/// The files by which the folder of a package is known.
const PACKAGE_FILES: [&str; 2] = ["tile.json", "tessl.json"];

/// Finds the skills of the package around a scenario: all of them are given.
fn find_skills(
    scenario: &Path,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> (String, Vec<SkillRef>) {
    if let Some(named) = &place.skill {
        let skill = reading::skill_at(named, &place.skills, diagnostics);
        return (skill.name.clone(), vec![skill]);
    }
    let around: Vec<&Path> = scenario.ancestors().skip(1).take(6).collect();
    let around: Vec<&Path> =
        around.into_iter().take_while(|above| above.starts_with(&place.project)).collect();
    let is_package = |above: &&&Path| PACKAGE_FILES.iter().any(|name| above.join(name).is_file());
    if let Some(skill) = around.iter().take(2).find(|above| reading::is_skill(above)) {
        let skill = reading::skill_at(skill, &place.skills, diagnostics);
        return (skill.name.clone(), vec![skill]);
    }
    let Some(package) = around.iter().find(is_package).or(around.get(1)) else {
        return (NAME.to_owned(), Vec::new());
    };
    let mut skills = Vec::new();
    let places = [package.to_path_buf(), package.join("skills"), package.join(".claude/skills")];
    for folder in places.iter().filter_map(|place| EvalFolder::open(place).ok()) {
        for name in folder.names().filter(|name| !name.starts_with('.')) {
            let path = folder.path().join(name);
            if skills.len() < MOST_SKILLS && reading::is_skill(&path) && !path.is_symlink() {
                let read = place.skills.read(&path);
                let name = read.map_or_else(|_| name.to_owned(), |skill| skill.name.clone());
                skills.push(SkillRef { name, path: Some(normalise_path(&path)), plugin: None });
            }
        }
    }
    if reading::is_skill(package) {
        skills.insert(0, reading::skill_at(package, &place.skills, diagnostics));
    }
    let mut names = std::collections::BTreeSet::new();
    skills.retain(|skill: &SkillRef| names.insert(skill.name.clone()));
    if skills.is_empty() {
        let message = "no skill was found in the package around the scenario, so there is only one arm";
        diagnostics.warning_with_help("skill-not-found", None, message, "name the skill with --skill");
    }
    let name =
        package.file_name().map_or_else(|| NAME.to_owned(), |name| name.to_string_lossy().into_owned());
    (name, skills)
}

/// The most skills of a package that are staged.
const MOST_SKILLS: usize = 100;

fn schema() -> Value {
    let points = json!({"type": "number", "exclusiveMinimum": 0});
    let item = MappingSchema::open()
        .optional("name", "The name of the item.", json_schema::text())
        .required("description", "What must be true of the files.", json_schema::nonempty_text())
        .optional("max_score", "The points of the item.", points.clone())
        .optional("weight", "The points, in files with \"criteria\".", points)
        .optional("category", "For people.", json_schema::text());
    let item: Value = item.into();
    json_schema::document(
        "Tessl criteria.json",
        "The weighted checklist of a scenario. The prompt is in task.md beside it.",
        MappingSchema::open()
            .optional("context", "What the judge has to know.", json_schema::text())
            .optional("type", "The kind of criteria.", json_schema::one_of_words(&["weighted_checklist"]))
            .optional("checklist", "The items.", json_schema::nonempty_list(item.clone()))
            .optional("criteria", "The items, under another name.", json_schema::nonempty_list(item)),
        [],
    )
}

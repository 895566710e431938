//! The format of skillgrade: tasks whose graders give rewards, and a threshold for the mean reward.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::copilot_tools::shell_word;
use super::reading::graders::{Unsupported, scored_rule, scored_statement};
use super::reading::{self, SkillHint, UniqueIds, UnusedKeys};
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    Case, Check, CheckTarget, CheckWeight, Diagnostics, Fixture, FixtureAccess, PassRule, Ratio, RelPath,
    RunPolicy, ScoreOf, ScoreRule, ScoreScale, SkillRef, Suite, WorkspaceBase,
};
use practicum_core::tree::{
    ObjectReader, SourceFile, TreeNode,
    json_schema::{self, MappingSchema},
    read_bounded,
};
use practicum_skills::skill::normalise_path;

mod export;

/// The adapter for skillgrade's format.
pub struct Skillgrade;

const NAME: &str = "skillgrade";
const DEFAULT_TRIALS: u32 = 5;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
const DEFAULT_THRESHOLD: f64 = 0.8;
/// The reward from which a grader by itself counts as passed.
const PASSING_REWARD: f64 = 0.5;
const GRADER_TIMEOUT: &str = "2m";
const LARGEST_TEXT: u64 = 1024 * 1024;

impl Dialect for Skillgrade {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["eval.yaml", "eval.yml"]
    }

    fn recognition_rule(&self) -> &'static str {
        "a file with \"tasks\" that have an \"instruction\""
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let tasks = source.root.get("tasks").and_then(TreeNode::as_list).unwrap_or_default();
        match tasks.iter().any(|task| task.has("instruction")) || source.root.has("skillActivationTasks") {
            true => FormatMatch::with_points(150, "it has \"tasks\" with an \"instruction\""),
            false => FormatMatch::NO,
        }
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut file = ObjectReader::new(&source.root, "an eval", diagnostics)?;
        file.get("version");
        let skill = find_skill(&mut file, source, place, diagnostics);
        let mut defaults = TaskSettings::default();
        if let Some(node) = file.get_non_null("defaults")
            && let Some(mut object) = ObjectReader::new(node, "\"defaults\"", diagnostics)
        {
            defaults.read(&mut object, diagnostics);
            UnusedKeys::default().collect_unused(&object, "\"defaults\"", diagnostics);
        }
        if let Some(node) = file.get_non_null("skillActivationTasks") {
            let message = "\"skillActivationTasks\" is of a variant of skillgrade and is not read";
            diagnostics.error("unread-cases", node.span, message);
        }
        let mut reader = TaskReader { source, place, defaults: &defaults, ids: UniqueIds::default() };
        let tasks = file.list("tasks", diagnostics).unwrap_or_default();
        let cases: Vec<Case> = tasks.iter().filter_map(|task| reader.read(task, diagnostics)).collect();
        if tasks.is_empty() && !diagnostics.has_errors() {
            diagnostics.error("no-cases", source.root.span, "there is no task, so there is nothing to run");
        }
        let meta = UnusedKeys::refusing_unread_cases().collect_unused(&file, "an eval", diagnostics);
        Some(Suite {
            cases,
            run_policy: RunPolicy {
                repeat: defaults.trials,
                timeout: defaults.timeout,
                ..RunPolicy::default()
            },
            format_defaults: RunPolicy {
                repeat: Some(DEFAULT_TRIALS),
                timeout: Some(DEFAULT_TIMEOUT),
                workspace: Some(WorkspaceBase::Empty),
                ..RunPolicy::default()
            },
            gates: reading::all_cases_pass(),
            meta,
            skills: vec![skill.clone()],
            ..reading::blank_suite(NAME, source, skill.name)
        })
    }

    fn schema(&self) -> Value {
        schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export(suite, folder)
    }
}

/// Finds the skill: the one that the file names, otherwise the one around it.
fn find_skill(
    file: &mut ObjectReader<'_>,
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> SkillRef {
    let named = file.get_non_null("skill").and_then(|node| Some((node.as_text()?, node.span)));
    if let (Some((path, span)), None) = (named, &place.skill) {
        let path = normalise_path(&source.folder().join(path));
        let folder = if path.is_file() { path.parent().map(Path::to_owned).unwrap_or(path) } else { path };
        if reading::is_skill(&folder)
            && !reading::lies_in_none(&[&place.project, &place.root, source.folder()], &folder)
        {
            return reading::skill_at(&folder, &place.skills, diagnostics);
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let hint = SkillHint { name: &name, span, is_decisive: true };
        return reading::skill_beside(source.folder(), place, Some(hint), diagnostics);
    }
    reading::skill_beside(source.folder(), place, None, diagnostics)
}

/// The settings of a task, or of all tasks.
#[derive(Default, Clone)]
struct TaskSettings {
    trials: Option<u32>,
    timeout: Option<Duration>,
    threshold: Option<f64>,
    /// Why tasks with these settings cannot run.
    unsupported: Option<String>,
}

impl TaskSettings {
    fn read(&mut self, object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) {
        let trials = object.int("trials", 1, 1000, diagnostics).and_then(|trials| u32::try_from(trials).ok());
        self.trials = trials.or(self.trials);
        let seconds = object.int("timeout", 1, 7 * 24 * 3600, diagnostics);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        self.timeout = seconds.map(Duration::from_secs).or(self.timeout);
        self.threshold = object.number("threshold", 0.0, 1.0, diagnostics).or(self.threshold);
        if let Some(node) = object.get_non_null("docker")
            && node.get("setup").and_then(TreeNode::as_text).is_some_and(|setup| !setup.trim().is_empty())
        {
            self.unsupported =
                Some("\"docker.setup\" prepares a container, which there is not here".to_owned());
        }
        // These choose how skillgrade runs, and not what is asked or expected.
        for key in ["agent", "provider", "command", "grader_model", "acp", "environment", "model"] {
            object.get(key);
        }
    }
}

/// Reads tasks into cases.
struct TaskReader<'r> {
    source: &'r SourceFile,
    place: &'r EvalFileLocation,
    defaults: &'r TaskSettings,
    ids: UniqueIds,
}

impl TaskReader<'_> {
    fn read(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut task = ObjectReader::new(node, "a task", diagnostics)?;
        let name = task.required_text("name", diagnostics)?.trim().to_owned();
        let instruction = task.required_text("instruction", diagnostics)?;
        let instruction = self.text_or_file(instruction);
        let mut settings = TaskSettings { trials: None, timeout: None, ..self.defaults.clone() };
        settings.read(&mut task, diagnostics);
        let mut unsupported = Unsupported::default();
        if let Some(why) = settings.unsupported {
            unsupported.add(why);
        }
        let mut case = reading::blank_case(self.ids.make_unique(&name), instruction.trim().to_owned());
        let mut modes = Vec::new();
        for item in task.list("workspace", diagnostics).unwrap_or_default() {
            case.workspace.files.extend(self.read_file(item, &mut modes, &mut unsupported, diagnostics));
        }
        case.workspace.setup = (!modes.is_empty()).then(|| modes.join("\n"));
        let mut ids = UniqueIds::default();
        for node in task.list("graders", diagnostics).unwrap_or_default() {
            match self.read_grader(node, &mut ids, diagnostics) {
                Some(Ok(check)) => case.checks.push(check),
                Some(Err(why)) => unsupported.add(why),
                None => {}
            }
        }
        task.get("solution");
        case.meta = UnusedKeys::default().collect_unused(&task, "a task", diagnostics);
        if case.checks.is_empty() && !diagnostics.has_errors() {
            unsupported.add("it has no grader that can be read");
        }
        let at_least = Ratio::new(settings.threshold.unwrap_or(DEFAULT_THRESHOLD)).unwrap_or(Ratio::ONE);
        case.pass_rule = PassRule::Score(ScoreRule { at_least, of: ScoreOf::MeanOfTrials });
        case.repeat = settings.trials;
        case.timeout = settings.timeout;
        case.unsupported = unsupported.into_reason();
        Some(case)
    }

    /// Gives the text of the file that a text of one line names, if there is one; otherwise the text.
    fn text_or_file(&self, text: &str) -> String {
        let line = text.trim();
        let path = (!line.contains('\n')).then(|| self.own_file(line)).flatten();
        let read = path.and_then(|path| read_bounded(&path, LARGEST_TEXT).ok());
        read.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| text.to_owned())
    }

    /// Says whether a path lies outside the project and the folder of the eval file.
    fn is_outside(&self, path: &Path) -> bool {
        reading::lies_in_none(&[&self.place.project, &self.place.root, self.source.folder()], path)
    }

    /// Gives the full path of a file beside the eval file. A link that leads out of the project is none.
    fn own_file(&self, path: &str) -> Option<PathBuf> {
        let path = RelPath::new(path)?.join_to(self.source.folder());
        (path.is_file() && !self.is_outside(&path)).then_some(path)
    }

    fn read_file(
        &self,
        item: &TreeNode,
        modes: &mut Vec<String>,
        unsupported: &mut Unsupported,
        diagnostics: &mut Diagnostics,
    ) -> Option<Fixture> {
        let text = |key: &str| item.get(key)?.as_text();
        let src = item.as_text().or_else(|| text("src"));
        let Some(src) = src else {
            diagnostics.error("missing-key", item.span, "a file of the workspace has a \"src\"");
            return None;
        };
        let source = normalise_path(&self.source.folder().join(src));
        if self.is_outside(&source) {
            diagnostics.error("escaping-path", item.span, format!("{src:?} lies outside the project"));
            return None;
        }
        if !source.exists() {
            diagnostics.warning("file-not-found", item.span, format!("{src} does not exist"));
        }
        let name = source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let dest = text("dest").unwrap_or(&name);
        if dest.starts_with('/') {
            unsupported.add(format!("{dest} is a path of a container, which there is not here"));
            return None;
        }
        let Some(destination) = RelPath::new(dest) else {
            let message = format!("{dest:?} is not a path inside the workspace");
            diagnostics.error("escaping-path", item.span, message);
            return None;
        };
        if let Some(mode) = item.get("chmod").map(|node| node.to_value()) {
            let mode = mode.as_str().map_or_else(|| mode.to_string(), str::to_owned);
            modes.push(format!("chmod {} {}", shell_word(&mode), shell_word(destination.as_str())));
        }
        Some(Fixture { source, destination, access: FixtureAccess::Mutable })
    }

    fn read_grader(
        &self,
        node: &TreeNode,
        ids: &mut UniqueIds,
        diagnostics: &mut Diagnostics,
    ) -> Option<Result<Check, String>> {
        let mut grader = ObjectReader::new(node, "a grader", diagnostics)?;
        let kind = grader.required_text("type", diagnostics)?.to_owned();
        let name = grader.text("name", diagnostics).map_or_else(|| kind.clone(), str::to_owned);
        let id = ids.make_unique(&name);
        let weight = grader.number("weight", 0.0, 1e9, diagnostics).and_then(CheckWeight::new);
        let made = match kind.as_str() {
            "deterministic" => {
                let run = grader.required_text("run", diagnostics)?;
                let setup = grader.text("setup", diagnostics).filter(|setup| !setup.trim().is_empty());
                match setup {
                    Some(_) => {
                        Err(format!("grader {id}: its \"setup\" prepares a container, which there is not"))
                    }
                    None => scored_rule(
                        &id,
                        "command",
                        &json!({"run": self.with_own_files(run), "score": PASSING_REWARD, "timeout": GRADER_TIMEOUT}),
                    ),
                }
            }
            "llm_rubric" => {
                let rubric = self.text_or_file(grader.required_text("rubric", diagnostics)?);
                for key in ["model", "provider"] {
                    grader.get(key);
                }
                let statement = format!("Score the work by this rubric:\n{}", rubric.trim());
                Ok(scored_statement(&id, &statement, ScoreScale::Unit, CheckTarget::WholeRun))
            }
            other => {
                grader.take_unread(&[]);
                Err(format!("grader {id}: its type \"{other}\" is not known"))
            }
        };
        UnusedKeys::default().collect_unused(&grader, "a grader", diagnostics);
        Some(made.map(|check| Check { weight: weight.unwrap_or(CheckWeight::ONE), ..check }))
    }

    /// Writes a command so that it finds the scripts that lie beside the eval file. They are not in the workspace,
    /// where the agent could read them.
    fn with_own_files(&self, run: &str) -> String {
        let line = run.trim();
        if line.contains('\n') {
            return run.to_owned();
        }
        let word = |word: &str| match self.own_file(word).filter(|_| word.contains(['/', '.'])) {
            Some(path) => shell_word(&path.to_string_lossy()),
            None => word.to_owned(),
        };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
}

fn schema() -> Value {
    let settings = |schema: MappingSchema| {
        schema
            .optional("trials", "The number of trials.", json_schema::integer_between(1, 1000))
            .optional("timeout", "The time limit, in seconds.", json_schema::whole_seconds())
            .optional("threshold", "The least mean reward.", json_schema::ratio())
            .optional("agent", "Not used; choose it with --agent.", json!({}))
            .optional("docker", "A task that needs \"setup\" is not scored here.", json!({"type": "object"}))
    };
    let grader = MappingSchema::open()
        .required("type", "The kind of grader.", json_schema::text())
        .optional("weight", "How much it counts.", json!({"type": "number", "minimum": 0}))
        .optional("run", "deterministic: a command that prints JSON with a score.", json_schema::text())
        .optional("rubric", "llm_rubric: the rubric, or the path of its file.", json_schema::text());
    let task = settings(MappingSchema::open())
        .required("name", "The id of the task.", json_schema::nonempty_text())
        .required("instruction", "The prompt, or the path of its file.", json_schema::nonempty_text())
        .optional("workspace", "Files that are copied into the workspace.", json!({"type": "array"}))
        .optional("graders", "The graders.", json_schema::list(grader));
    json_schema::document(
        "skillgrade eval.yaml",
        "A suite in skillgrade's format.",
        MappingSchema::open()
            .optional("version", "The version of the format.", json!({}))
            .optional("skill", "The skill, as a folder or its SKILL.md.", json_schema::text())
            .optional("defaults", "Settings of all tasks.", settings(MappingSchema::open()))
            .required("tasks", "The tasks.", json_schema::list(task)),
        [],
    )
}

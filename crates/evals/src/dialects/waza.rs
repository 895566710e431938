//! The format of waza: an `eval.yaml` with task files, and perhaps a `trigger_tests.yaml` beside it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::reading::graders::Unsupported;
use super::reading::{self, SkillHint, UniqueIds, UnusedKeys, parts};
use super::{Dialect, EvalFileLocation, EvalFolder, ExportedSuite, FormatMatch};
use practicum_core::model::{
    ActivationExpectation, Arm, Case, Diagnostics, Gate, GateName, Origin, PassRule, Ratio, RelPath,
    RunPolicy, SkillRef, Suite, WorkspaceBase,
};
use practicum_core::tree::{ObjectReader, SourceFile, SourceSyntax, TreeNode};

mod expected;
mod export;
mod graders;
mod schema;
mod tasks;

/// The adapter for waza's format.
pub struct Waza;

const NAME: &str = "waza";

/// The names of the file that lists the tasks.
const SPEC_FILES: [&str; 2] = ["eval.yaml", "eval.yml"];
const TRIGGER_FILE: &str = "trigger_tests.yaml";

const MOST_TRIALS: i64 = 1000;
const LONGEST_TIMEOUT: i64 = 7 * 24 * 3600;

impl Dialect for Waza {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["eval.yaml", "eval.yml", TRIGGER_FILE]
    }

    fn recognition_rule(&self) -> &'static str {
        "eval.yaml with \"skill\", \"config\" and \"tasks\" (a folder with one is one suite); trigger_tests.yaml"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let root = &source.root;
        if is_spec(root) {
            FormatMatch::with_points(150, "it has \"tasks\" and the \"config\" of waza")
        } else if has_trigger_lists(root) {
            FormatMatch::with_points(150, "it has prompts that should and should not trigger a skill")
        } else if is_task(root) {
            FormatMatch::with_points(160, "it is a task with \"id\" and \"inputs\"")
        } else {
            FormatMatch::NO
        }
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let folder = match EvalFolder::open(source.folder()) {
            Ok(folder) => folder,
            // Texts that lie nowhere can still be checked.
            Err(_) if has_trigger_lists(&source.root) => return lower_triggers(source, place, diagnostics),
            Err(why) => {
                diagnostics.error("unreadable-folder", None, format!("cannot read the folder: {why}"));
                return None;
            }
        };
        if has_trigger_lists(&source.root) {
            lower_triggers(source, place, diagnostics)
        } else if is_task(&source.root) {
            lower_task(source, &folder, place, diagnostics)
        } else {
            lower_spec(source, &folder, place, diagnostics)
        }
    }

    fn reads_folders(&self) -> bool {
        true
    }

    fn recognise_folder(&self, folder: &EvalFolder) -> FormatMatch {
        // A folder with evals of other formats below it is searched file by file.
        let spec = SPEC_FILES.into_iter().find(|name| folder.has(name) && !folder.has("evals"));
        let spec = spec.and_then(|name| read_spec(folder, name, &mut Diagnostics::default()));
        match spec.is_some_and(|source| is_spec(&source.root)) {
            true => FormatMatch::sure("its eval.yaml has \"tasks\" and the \"config\" of waza"),
            false => FormatMatch::NO,
        }
    }

    fn lower_folder(
        &self,
        folder: &EvalFolder,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let name = SPEC_FILES.into_iter().find(|name| folder.has(name))?;
        let source = read_spec(folder, name, diagnostics)?;
        let mut problems = Diagnostics::default();
        let suite = lower_spec(&source, folder, place, &mut problems);
        parts::report_part(name, &source.text, problems, diagnostics);
        suite
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export(suite, folder)
    }
}

fn read_spec(folder: &EvalFolder, name: &str, diagnostics: &mut Diagnostics) -> Option<SourceFile> {
    let text = parts::read_part_text(folder, name, diagnostics)?;
    parts::parse_part(name, &folder.path().join(name), text, SourceSyntax::Yaml, diagnostics)
}

fn is_spec(root: &TreeNode) -> bool {
    let Some(tasks) = root.get("tasks").and_then(TreeNode::as_list) else { return root.has("tasks_from") };
    let is_other = tasks.iter().any(|task| task.has("instruction"));
    let config = root.get("config");
    let has_config = config.is_some_and(|config| config.has("trials_per_task") || config.has("executor"));
    let has_config = has_config || root.has("skill") && root.has("executor");
    !is_other && (has_config || root.has("skill") && tasks.iter().all(|task| task.as_text().is_some()))
}

fn has_trigger_lists(root: &TreeNode) -> bool {
    root.has("should_trigger_prompts") || root.has("should_not_trigger_prompts")
}

fn is_task(root: &TreeNode) -> bool {
    root.has("id") && root.get("inputs").is_some_and(|inputs| inputs.has("prompt"))
}

/// Reads an eval.yaml with its tasks, and the trigger tests beside it.
fn lower_spec(
    source: &SourceFile,
    folder: &EvalFolder,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> Option<Suite> {
    let mut suite = SpecReader { folder, place }.read(source, None, diagnostics)?;
    if !folder.has(TRIGGER_FILE) {
        suite.gates.retain(|gate| gate.name != GateName::Accuracy);
        return Some(suite);
    }
    let source = read_spec(folder, TRIGGER_FILE, diagnostics)?;
    let mut problems = Diagnostics::default();
    let skill = suite.skills.first().cloned();
    let cases = TriggerReader { skill }.read(&source.root, &suite, &mut problems);
    parts::report_part(TRIGGER_FILE, &source.text, problems, diagnostics);
    add_trigger_cases(&mut suite, cases);
    Some(suite)
}

/// Reads one task file that the user names, with the settings of the spec that lists it.
fn lower_task(
    source: &SourceFile,
    folder: &EvalFolder,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> Option<Suite> {
    let around = [Some(folder.path()), folder.path().parent()].into_iter().flatten();
    let spec = around.flat_map(|above| SPEC_FILES.map(|name| above.join(name))).find(|path| path.is_file());
    if let Some(spec) = spec
        && let Some(spec_folder) = spec.parent().and_then(|above| EvalFolder::open(above).ok())
        && let (_, Some(spec)) = SourceFile::read(&spec, &mut Diagnostics::default())
        && is_spec(&spec.root)
    {
        let reader = SpecReader { folder: &spec_folder, place };
        let mut suite = reader.read(&spec, Some(&source.path), diagnostics)?;
        suite.gates.retain(|gate| gate.name != GateName::Accuracy);
        return Some(suite);
    }
    let skill = reading::skill_beside(folder.path(), place, None, diagnostics);
    let mut task_reader = tasks::TaskReader::new(folder, skill.clone(), None);
    let case = task_reader.read(&source.root, "", diagnostics)?;
    let suite = reading::blank_suite(NAME, source, skill.name.clone());
    Some(Suite { skills: vec![skill], cases: vec![case], gates: reading::all_cases_pass(), ..suite })
}

fn lower_triggers(
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> Option<Suite> {
    let named = source.root.get("skill").and_then(|node| Some((node.as_text()?, node.span)));
    let hint = named.map(|(name, span)| SkillHint { name, span, is_decisive: true });
    let skill = reading::skill_beside(source.folder(), place, hint, diagnostics);
    let mut suite = reading::blank_suite(NAME, source, reading::suite_name(&skill.name, source));
    suite.skills = vec![skill.clone()];
    suite.gates = reading::all_cases_pass();
    suite.format_defaults.workspace = Some(WorkspaceBase::Empty);
    suite.format_defaults.repeat = Some(1);
    let cases = TriggerReader { skill: Some(skill) }.read(&source.root, &suite, diagnostics);
    add_trigger_cases(&mut suite, cases);
    Some(suite)
}

/// Adds cases of trigger tests. If a metric gives a threshold for them, they count together and not one by one.
fn add_trigger_cases(suite: &mut Suite, cases: Vec<Case>) {
    let together = suite.gates.iter().any(|gate| gate.name == GateName::Accuracy);
    let pass_rule = if together { PassRule::CountOnly } else { PassRule::EveryRequiredCheck };
    suite.cases.extend(cases.into_iter().map(|case| Case { pass_rule, ..case }));
}

/// Reads a file of trigger tests.
struct TriggerReader {
    skill: Option<SkillRef>,
}

impl TriggerReader {
    fn read(&self, root: &TreeNode, suite: &Suite, diagnostics: &mut Diagnostics) -> Vec<Case> {
        let mut ids = UniqueIds::default();
        suite.cases.iter().for_each(|case| drop(ids.make_unique(&case.id)));
        let Some(mut file) = ObjectReader::new(root, "a file of trigger tests", diagnostics) else {
            return Vec::new();
        };
        let named = file.required_text("skill", diagnostics).map(str::to_owned);
        let skill = self.skill.as_ref().map(|skill| skill.name.clone()).or(named).unwrap_or_default();
        let mut cases = Vec::new();
        for (key, expect) in [
            ("should_trigger_prompts", ActivationExpectation::Must),
            ("should_not_trigger_prompts", ActivationExpectation::MustNot),
        ] {
            for item in file.list(key, diagnostics).unwrap_or_default() {
                let Some(mut entry) = ObjectReader::new(item, "a trigger test", diagnostics) else {
                    continue;
                };
                let prompt = entry.required_text("prompt", diagnostics).map(str::to_owned);
                let reason = entry.text("reason", diagnostics).map(str::to_owned);
                if let Some(node) = entry.get_non_null("confidence")
                    && !matches!(node.as_text(), Some("high" | "medium"))
                {
                    diagnostics.error("unknown-value", node.span, "\"confidence\" must be high or medium");
                }
                UnusedKeys::default().collect_unused(&entry, "a trigger test", diagnostics);
                let Some(prompt) = prompt else { continue };
                let id = ids.make_unique(&reading::slug(&prompt, "trigger"));
                let mut case = reading::blank_case(id, prompt);
                case.note = reason;
                case.repeat = Some(1);
                case.checks = vec![reading::activation_check(vec![skill.clone()], expect)];
                cases.push(case);
            }
        }
        UnusedKeys::default().collect_unused(&file, "a file of trigger tests", diagnostics);
        if cases.is_empty() && !diagnostics.has_errors() {
            diagnostics.error("no-cases", root.span, "there is no prompt, so there is nothing to run");
        }
        cases
    }
}

/// Reads an eval.yaml with its tasks.
struct SpecReader<'r> {
    folder: &'r EvalFolder,
    place: &'r EvalFileLocation,
}

impl SpecReader<'_> {
    /// Reads the suite, or the one task of it that the user names.
    fn read(&self, source: &SourceFile, only: Option<&Path>, diagnostics: &mut Diagnostics) -> Option<Suite> {
        let mut file = ObjectReader::new(&source.root, "an eval", diagnostics)?;
        let name = file.required_text("name", diagnostics).unwrap_or(NAME).to_owned();
        let description = file.text("description", diagnostics).map(|text| text.trim().to_owned());
        let mut settings = Settings::default();
        if let Some(node) = file.get_non_null("config") {
            settings.read(node, diagnostics);
        }
        let skill = self.find_skill(&mut file, &settings, diagnostics);
        let gates = read_metrics(&mut file, diagnostics);
        let arms = match file.bool("baseline", diagnostics) {
            Some(true) => vec![Arm::WithSkill, Arm::WithoutSkill],
            Some(false) | None => Vec::new(),
        };
        if file.get_non_null("hooks").is_some() {
            settings.unsupported.add("\"hooks\" of the suite run commands, which this version does not");
        }
        if let Some(node) = file.get_non_null("tasks_from") {
            let message = "\"tasks_from\": tasks from a table are not read; write them as task files";
            diagnostics.error("unread-cases", node.span, message);
        }
        let shared: Vec<&TreeNode> = file.list("graders", diagnostics).unwrap_or_default().iter().collect();
        let mut reader = tasks::TaskReader::new(self.folder, skill.clone(), Some(&shared));
        let mut cases = Vec::new();
        let mut files = Vec::new();
        for (path, task) in self.find_tasks(&mut file, diagnostics) {
            files.push(path.clone());
            if only.is_some_and(|only| !same_file(only, &path.join_to(self.folder.path()))) {
                continue;
            }
            let mut problems = Diagnostics::default();
            cases.extend(reader.read(&task.root, path.as_str(), &mut problems));
            parts::report_part(path.as_str(), &task.text, problems, diagnostics);
        }
        for key in ["version", "schemaVersion", "group_by", "range", "executor"] {
            file.get(key);
        }
        let meta = UnusedKeys::refusing_unread_cases().collect_unused(&file, "an eval", diagnostics);
        if cases.is_empty() && !diagnostics.has_errors() && only.is_none() && !self.folder.has(TRIGGER_FILE) {
            diagnostics.error("no-cases", None, "no task file was found, so there is nothing to run");
        }
        if let Some(why) = settings.unsupported.into_reason() {
            for case in &mut cases {
                let own = case.unsupported.take();
                case.unsupported = Some(own.map_or_else(|| why.clone(), |own| format!("{own}; {why}")));
            }
        }
        files.insert(0, RelPath::new(source.path.file_name()?.to_str()?)?);
        let digest = self.folder.digest_of(&files);
        let origin = Origin { dialect: NAME.to_owned(), path: source.path.clone(), digest };
        Some(Suite {
            description,
            skills: vec![skill],
            cases,
            run_policy: RunPolicy {
                repeat: settings.trials,
                timeout: settings.timeout,
                ..RunPolicy::default()
            },
            format_defaults: RunPolicy {
                repeat: Some(1),
                arms,
                workspace: Some(WorkspaceBase::Empty),
                ..RunPolicy::default()
            },
            gates,
            meta,
            ..Suite::empty(&name, origin)
        })
    }

    /// Finds the skill that the suite names: in the folders that it names, otherwise around it.
    fn find_skill(
        &self,
        file: &mut ObjectReader<'_>,
        settings: &Settings,
        diagnostics: &mut Diagnostics,
    ) -> SkillRef {
        let node = file.get_non_null("skill");
        let named = node.and_then(|node| Some((node.as_text()?, node.span)));
        let own = named.map(|(name, _)| name.trim_end_matches('/').rsplit('/').next().unwrap_or(name));
        if let (Some(name), None) = (own, &self.place.skill) {
            for folder in &settings.skill_folders {
                let folder = practicum_skills::skill::normalise_path(&self.folder.path().join(folder));
                let found = [folder.join(name), folder];
                let found = found.into_iter().find(|path| {
                    reading::is_skill(path)
                        && path.ends_with(name)
                        && !reading::lies_in_none(&[&self.place.project, &self.place.root], path)
                });
                if let Some(found) = found {
                    return reading::skill_at(&found, &self.place.skills, diagnostics);
                }
            }
        }
        let hint = own.zip(named).map(|(name, (_, span))| SkillHint { name, span, is_decisive: true });
        reading::skill_beside(self.folder.path(), self.place, hint, diagnostics)
    }

    /// Finds the task files that the patterns of the spec match, in order.
    fn find_tasks(
        &self,
        file: &mut ObjectReader<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<(RelPath, SourceFile)> {
        let mut found: Vec<RelPath> = Vec::new();
        for node in file.list("tasks", diagnostics).unwrap_or_default() {
            let Some(pattern) = node.as_text() else {
                let message = "a task inside eval.yaml is not read, here as in waza; write it as a task file";
                diagnostics.error("unread-cases", node.span, message);
                continue;
            };
            match self.folder.find_files(pattern) {
                Ok(files) if files.is_empty() => {
                    diagnostics.warning("file-not-found", node.span, format!("no file matches {pattern}"));
                }
                Ok(files) => files.into_iter().for_each(|path| {
                    if !found.contains(&path) {
                        found.push(path);
                    }
                }),
                Err(why) => diagnostics.error("invalid-pattern", node.span, why),
            }
        }
        let read = |path: RelPath, diagnostics: &mut Diagnostics| {
            let source = read_spec(self.folder, path.as_str(), diagnostics)?;
            Some((path, source))
        };
        found.into_iter().filter_map(|path| read(path, diagnostics)).collect()
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other
        || one.canonicalize().ok().is_some_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// The settings of a suite under `config`.
#[derive(Default)]
struct Settings {
    trials: Option<u32>,
    timeout: Option<Duration>,
    skill_folders: Vec<String>,
    unsupported: Unsupported,
}

impl Settings {
    fn read(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) {
        let Some(mut config) = ObjectReader::new(node, "\"config\"", diagnostics) else { return };
        let trials = config.int("trials_per_task", 1, MOST_TRIALS, diagnostics);
        self.trials = trials.and_then(|trials| u32::try_from(trials).ok());
        let seconds = config.int("timeout_seconds", 1, LONGEST_TIMEOUT, diagnostics);
        self.timeout = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        let folders = config.texts("skill_directories", diagnostics).unwrap_or_default();
        self.skill_folders = folders.into_iter().map(|(path, _)| path.to_owned()).collect();
        if let Some(node) = config.get_non_null("max_attempts")
            && node.to_value().as_i64().is_some_and(|attempts| attempts > 1)
        {
            let message = "\"max_attempts\": a failed trial is not repeated here; each trial counts";
            diagnostics.warning("unused-setting", node.span, message);
        }
        for key in ["mcp_servers", "mcp_mocks"] {
            if config.get_non_null(key).is_some() {
                self.unsupported.add(format!("\"{key}\": MCP servers of a suite are not started"));
            }
        }
        if let Some(node) = config.get_non_null("inject_skill_body")
            && node.to_value() == Value::Bool(true)
        {
            let message = "\"inject_skill_body\" is not used: the skill is staged for the agent to activate";
            diagnostics.warning("unused-setting", node.span, message);
        }
        // These choose how waza runs, and not what is asked or expected.
        for key in [
            "parallel",
            "max_workers",
            "workers",
            "fail_fast",
            "executor",
            "model",
            "judge_model",
            "required_skills",
            "group_by",
            "verbose",
            "engine",
        ] {
            config.get(key);
        }
        UnusedKeys::default().collect_unused(&config, "\"config\"", diagnostics);
    }
}

/// Reads the metrics. Only the threshold of the trigger tests has an effect, in waza as here.
fn read_metrics(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Vec<Gate> {
    let mut gates = reading::all_cases_pass();
    for node in file.list("metrics", diagnostics).unwrap_or_default() {
        let Some(mut metric) = ObjectReader::new(node, "a metric", diagnostics) else { continue };
        let name = metric.text("name", diagnostics);
        let threshold = metric.number("threshold", 0.0, 1.0, diagnostics).and_then(Ratio::new);
        let enabled = metric.bool("enabled", diagnostics).unwrap_or(true);
        for key in ["weight", "description"] {
            metric.get(key);
        }
        UnusedKeys::default().collect_unused(&metric, "a metric", diagnostics);
        if let (Some("trigger_accuracy"), Some(threshold), true) = (name, threshold, enabled) {
            gates.push(Gate::new(GateName::Accuracy, threshold));
        }
    }
    gates
}

//! The format of `claude plugin eval`: each case is a folder with a `prompt.md`, a `case.yaml` or both, and graders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::reading::graders::Unsupported;
use super::reading::{self, parts};
use super::{Dialect, EvalFileLocation, EvalFolder, ExportedSuite, FormatMatch, native};
use practicum_core::model::{
    Arm, Case, CasePrompt, Diagnostics, Fixture, FixtureAccess, JudgePolicy, Origin, PassRule, Ratio,
    RelPath, RunPolicy, ScoreOf, ScoreRule, SkillRef, Suite, WorkspaceBase, WorkspaceSpec,
};
use practicum_core::tree::{NodeData, ObjectReader, SourceFile, SourceSyntax, TreeNode};
use practicum_skills::skill::{MANIFEST_FOLDER, Plugin, SkillCache};

mod export;
mod graders;
mod mocks;
mod schema;

/// The adapter for the format of `claude plugin eval`.
pub struct PluginEval;

const NAME: &str = "claude-plugin-eval";

const PROMPT_FILE: &str = "prompt.md";
const CASE_FILE: &str = "case.yaml";
const GRADERS_FOLDER: &str = "graders";
const MOCKS_FOLDER: &str = "mocks";

/// The number of runs of a case that gives none.
const DEFAULT_RUNS: u32 = 3;
const MOST_RUNS: i64 = 50;
const MOST_TURNS: i64 = 200;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
const LONGEST_TIMEOUT: i64 = 3600;
/// The number of times that the judge is asked; most of the answers decide.
const JUDGE_VOTES: u32 = 3;

impl Dialect for PluginEval {
    fn name(&self) -> &'static str {
        NAME
    }

    fn recognition_rule(&self) -> &'static str {
        "a folder with prompt.md or case.yaml, and graders; one folder for each case"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let is_case_file = source.path.file_name().is_some_and(|name| name == CASE_FILE);
        match is_case_file && is_case_document(&source.root) {
            true => {
                FormatMatch::with_points(150, "it is a case.yaml with graders, a context or an execution")
            }
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
        if !folder.has(PROMPT_FILE) && !folder.has(CASE_FILE) {
            return FormatMatch::NO;
        }
        let has_document = || {
            let text = RelPath::new(CASE_FILE).and_then(|path| folder.read_text(&path).ok());
            let source = text.and_then(|text| {
                SourceFile::parse(Path::new(CASE_FILE), text, SourceSyntax::Yaml, &mut Diagnostics::default())
            });
            // A file that cannot be parsed is named like a case, so its author wants to know.
            source.is_none_or(|source| is_case_document(&source.root))
        };
        if folder.has(GRADERS_FOLDER) {
            FormatMatch::sure("the folder has a prompt or a case.yaml, and graders")
        } else if folder.has(CASE_FILE) && has_document() {
            FormatMatch::sure("the folder has a case.yaml with graders, a context or an execution")
        } else {
            FormatMatch::NO
        }
    }

    fn lower_folder(
        &self,
        folder: &EvalFolder,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let case = CaseFiles::read(folder, diagnostics)?;
        let plugins = find_plugins(&case, folder, place, diagnostics);
        let read = read_case(&case, folder, &plugins, diagnostics)?;
        let has_skills = !plugins.skills.is_empty();
        let arms = if has_skills { vec![Arm::WithSkill, Arm::WithoutSkill] } else { Vec::new() };
        let origin = Origin {
            dialect: NAME.to_owned(),
            path: folder.path().to_owned(),
            digest: folder.digest_of(&case.files),
        };
        let name = plugins.name.clone().unwrap_or_else(|| reading_folder_name(&place.root));
        Some(Suite {
            skills: plugins.skills,
            plugins: plugins.roots,
            cases: vec![read],
            format_defaults: RunPolicy {
                repeat: Some(DEFAULT_RUNS),
                timeout: Some(DEFAULT_TIMEOUT),
                arms,
                workspace: Some(WorkspaceBase::Empty),
                ..RunPolicy::default()
            },
            judge_policy: JudgePolicy { votes: Some(JUDGE_VOTES), ..JudgePolicy::default() },
            gates: reading::all_cases_pass(),
            ..Suite::empty(&name, origin)
        })
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export(suite, folder)
    }

    fn folder_is_suite(&self) -> bool {
        true
    }
}

fn reading_folder_name(folder: &Path) -> String {
    folder.file_name().map_or_else(|| NAME.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn is_case_document(root: &TreeNode) -> bool {
    ["graders", "context", "execution", "schema_version"].iter().any(|key| root.has(key))
}

/// The files of a case, parsed.
struct CaseFiles {
    /// The text of case.yaml, for positions, and its document.
    document: Option<(String, TreeNode)>,
    prompt: Option<parts::MarkdownPart>,
    /// Each grader's name, with its file.
    graders: Vec<(String, parts::MarkdownPart)>,
    /// The paths of the files that were read.
    files: Vec<RelPath>,
}

impl CaseFiles {
    fn read(folder: &EvalFolder, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut files = Vec::new();
        let mut document = None;
        let mut prompt = None;
        if folder.has(CASE_FILE) {
            let text = parts::read_part_text(folder, CASE_FILE, diagnostics)?;
            let path = folder.path().join(CASE_FILE);
            let source = parts::parse_part(CASE_FILE, &path, text.clone(), SourceSyntax::Yaml, diagnostics)?;
            document = Some((text, source.root));
            files.extend(RelPath::new(CASE_FILE));
        }
        if folder.has(PROMPT_FILE) {
            let text = parts::read_part_text(folder, PROMPT_FILE, diagnostics)?;
            let path = folder.path().join(PROMPT_FILE);
            prompt = Some(parts::parse_markdown(PROMPT_FILE, &path, &text, diagnostics)?);
            files.extend(RelPath::new(PROMPT_FILE));
        }
        let mut graders = Vec::new();
        if folder.has(GRADERS_FOLDER) {
            for file in grader_files(folder, diagnostics) {
                let text = parts::read_part_text(folder, &file, diagnostics)?;
                let part = parts::parse_markdown(&file, &folder.path().join(&file), &text, diagnostics)?;
                let stem = file.trim_start_matches("graders/").trim_end_matches(".md");
                graders.push((stem.to_owned(), part));
                files.extend(RelPath::new(&file));
            }
        }
        Some(Self { document, prompt, graders, files })
    }
}

/// Lists the grader files of a case, in order.
fn grader_files(folder: &EvalFolder, diagnostics: &mut Diagnostics) -> Vec<String> {
    let inside = RelPath::new(GRADERS_FOLDER).map(|path| folder.open_inside(&path));
    match inside {
        Some(Ok(graders)) => {
            let names = graders.names().filter(|name| name.ends_with(".md") && !name.starts_with('.'));
            names.map(|name| format!("{GRADERS_FOLDER}/{name}")).collect()
        }
        Some(Err(why)) => {
            diagnostics.error("unreadable-folder", None, format!("{GRADERS_FOLDER}: {why}"));
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The settings of a case that prompt.md and case.yaml may both have. What prompt.md says counts.
#[derive(Default)]
struct CaseSettings {
    name: Option<String>,
    description: Option<String>,
    runs: Option<u32>,
    max_turns: Option<i64>,
    timeout: Option<Duration>,
    meta: BTreeMap<String, Value>,
}

impl CaseSettings {
    /// Reads the keys that describe a case.
    fn read_description(&mut self, object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) {
        let name = object.text("name", diagnostics).map(|name| name.trim().to_owned());
        self.name = name.filter(|name| !name.is_empty()).or(self.name.take());
        let description = object.text("description", diagnostics).map(|text| text.trim().to_owned());
        self.description = description.or(self.description.take());
        let runs = object.int("runs", 1, MOST_RUNS, diagnostics);
        self.runs = runs.and_then(|runs| u32::try_from(runs).ok()).or(self.runs);
        for key in ["tags", "expected_outcome"] {
            self.keep(key, object);
        }
    }

    fn keep(&mut self, key: &'static str, object: &mut ObjectReader<'_>) {
        if let Some(node) = object.get_non_null(key) {
            self.meta.insert(key.to_owned(), node.to_value());
        }
    }

    /// Reads the keys that say how a case runs. What cannot be done here is a warning if the case stays the same, and
    /// a reason not to score it otherwise.
    fn read_execution(
        &mut self,
        object: &mut ObjectReader<'_>,
        unsupported: &mut Unsupported,
        diagnostics: &mut Diagnostics,
    ) {
        self.max_turns = object.int("max_turns", 1, MOST_TURNS, diagnostics).or(self.max_turns);
        let seconds = object.int("timeout_seconds", 1, LONGEST_TIMEOUT, diagnostics);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        self.timeout = seconds.map(Duration::from_secs).or(self.timeout);
        if let Some(node) = object.get_non_null("model") {
            self.meta.insert("model".to_owned(), node.to_value());
            let message = "\"model\" of a case is not used; choose the model with --model";
            diagnostics.warning("unused-setting", node.span, message);
        }
        self.keep("allowed_tools", object);
        for key in ["append_system_prompt", "system"] {
            if object.text(key, diagnostics).is_some_and(|text| !text.trim().is_empty()) {
                unsupported.add(format!("\"{key}\" cannot be given to the agent"));
            }
        }
        if let Some(node) = object.get_non_null("env") {
            let is_empty = node.as_map().is_some_and(<[_]>::is_empty);
            if !is_empty {
                unsupported.add("\"env\": environment variables cannot be given to the agent");
            }
        }
    }
}

/// The plugins that a case is about.
#[derive(Default)]
struct CasePlugins {
    name: Option<String>,
    roots: Vec<PathBuf>,
    skills: Vec<SkillRef>,
}

/// Finds the plugins of a case: those it names, otherwise the nearest one around it, otherwise the skill around it.
fn find_plugins(
    case: &CaseFiles,
    folder: &EvalFolder,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> CasePlugins {
    if let Some(named) = &place.skill {
        let skill = reading::skill_at(named, &place.skills, diagnostics);
        return CasePlugins { name: Some(skill.name.clone()), roots: Vec::new(), skills: vec![skill] };
    }
    let said = [case.prompt.as_ref().map(|part| &part.front), case.document.as_ref().map(|(_, root)| root)];
    let said = said.into_iter().flatten().find_map(|root| root.get("plugins"));
    let mut roots: Vec<PathBuf> = Vec::new();
    if let Some(items) = said.and_then(TreeNode::as_list) {
        for path in items.iter().filter_map(TreeNode::as_text) {
            let root = folder.path().join(path);
            match reading::lies_in_none(&[&place.project, &place.root], &root) {
                true => diagnostics.error(
                    "escaping-path",
                    None,
                    format!("the plugin {path} lies outside the project"),
                ),
                false => roots.push(root),
            }
        }
    } else {
        let around = folder.path().ancestors().skip(1).take_while(|above| above.starts_with(&place.project));
        roots.extend(around.filter(|above| above.join(MANIFEST_FOLDER).is_dir()).take(1).map(Path::to_owned));
    }
    let mut found = CasePlugins::default();
    for root in roots {
        match Plugin::read(&root) {
            Ok(plugin) => found.add(plugin, &place.skills),
            Err(problem) => diagnostics.warning("broken-plugin", None, problem.to_string()),
        }
    }
    if found.skills.is_empty() {
        let mut around = folder.path().ancestors().skip(1).take(4);
        if let Some(skill) = around.find(|above| reading::is_skill(above)) {
            let skill = reading::skill_at(skill, &place.skills, diagnostics);
            found.name = found.name.or(Some(skill.name.clone()));
            found.skills.push(skill);
        } else {
            let message = "no plugin and no skill was found around the case, so there is only one arm";
            diagnostics.warning_with_help("skill-not-found", None, message, "name the skill with --skill");
        }
    }
    found
}

impl CasePlugins {
    fn add(&mut self, plugin: Plugin, skills: &SkillCache) {
        for skill in &plugin.skills {
            let read = skills.read(&skill.folder);
            let name = read.map_or_else(|_| skill.listed_name.clone(), |read| read.name.clone());
            if self.skills.iter().all(|known| known.name != name) {
                let plugin = Some(plugin.name.clone());
                self.skills.push(SkillRef { name, path: Some(skill.folder.clone()), plugin });
            }
        }
        self.name.get_or_insert(plugin.name);
        self.roots.push(plugin.root);
    }
}

fn read_case(
    case: &CaseFiles,
    folder: &EvalFolder,
    plugins: &CasePlugins,
    diagnostics: &mut Diagnostics,
) -> Option<Case> {
    let mut settings = CaseSettings::default();
    let mut unsupported = Unsupported::default();
    let mut workspace = WorkspaceSpec::default();
    let mut prompt = None;
    let mut problems = Diagnostics::default();
    let mut grader_nodes = Vec::new();
    if let Some((text, root)) = &case.document {
        if let Some(mut object) = ObjectReader::new(root, "a case", &mut problems) {
            check_version(&mut object, &mut unsupported, &mut problems);
            settings.read_description(&mut object, &mut problems);
            object.get("plugins");
            if let Some(node) = object.get_non_null("execution")
                && let Some(mut execution) = ObjectReader::new(node, "\"execution\"", &mut problems)
            {
                settings.read_execution(&mut execution, &mut unsupported, &mut problems);
                prompt = execution.text("prompt", &mut problems).map(str::to_owned);
                execution.reject_unknown_keys("\"execution\"", &mut problems);
            }
            if let Some(node) = object.get_non_null("context") {
                read_context(node, folder, &mut workspace, &mut unsupported, &mut problems);
            }
            grader_nodes = object.list("graders", &mut problems).unwrap_or_default().iter().collect();
            object.reject_unknown_keys("a case", &mut problems);
        }
        parts::report_part(CASE_FILE, text, std::mem::take(&mut problems), diagnostics);
    }
    if let Some(part) = &case.prompt {
        if let Some(mut object) = ObjectReader::new(&part.front, "a prompt", &mut problems) {
            settings.read_description(&mut object, &mut problems);
            settings.read_execution(&mut object, &mut unsupported, &mut problems);
            object.get("plugins");
            object.reject_unknown_keys("a prompt", &mut problems);
        }
        parts::report_part(PROMPT_FILE, &part.front_text, std::mem::take(&mut problems), diagnostics);
        prompt = Some(part.body.clone());
    }
    let Some(prompt) = prompt.filter(|prompt| !prompt.trim().is_empty()) else {
        diagnostics.error("missing-key", None, "the case has no prompt, in prompt.md or under \"execution\"");
        return None;
    };
    let mocked = mocks::read_mocks(folder, plugins, &mut unsupported, diagnostics);
    let two_arms = !plugins.skills.is_empty();
    let mut reader = graders::PluginEvalGraderReader::new(&plugins.skills, &mocked, two_arms);
    for (index, node) in grader_nodes.into_iter().enumerate() {
        reader.read_entry(index, node, &mut problems);
    }
    if let Some((text, _)) = &case.document {
        parts::report_part(CASE_FILE, text, std::mem::take(&mut problems), diagnostics);
    }
    for (name, part) in &case.graders {
        reader.read_file(name, part, diagnostics);
    }
    let mut checks = reader.finish(settings.max_turns, &mut unsupported, diagnostics);
    let pass_rule = PassRule::Score(ScoreRule { at_least: Ratio::ONE, of: ScoreOf::MeanOfTrials });
    native::add_inputs_check(&mocked.mocks, pass_rule, &mut checks);
    Some(Case {
        note: settings.description,
        prompt: CasePrompt::Turns(vec![prompt.trim().to_owned()]),
        workspace,
        mocks: mocked.mocks,
        checks,
        timeout: settings.timeout,
        repeat: settings.runs,
        pass_rule,
        unsupported: unsupported.into_reason(),
        meta: settings.meta,
        ..reading::blank_case(
            settings.name.unwrap_or_else(|| reading_folder_name(folder.path())),
            String::new(),
        )
    })
}

fn check_version(object: &mut ObjectReader<'_>, unsupported: &mut Unsupported, problems: &mut Diagnostics) {
    match object.get_non_null("schema_version").map(|node| (node, &node.data)) {
        None => object.report_missing("schema_version", problems),
        Some((_, NodeData::Text(version))) if version == "1.1" => {}
        Some((node, NodeData::Text(version))) if version == "1.0" => {
            let message = "schema_version 1.0 is read as 1.1, whose meaning is documented";
            problems.warning("old-version", node.span, message);
        }
        Some((node, _)) => {
            unsupported.add("its schema_version is not known");
            problems.error("unknown-version", node.span, "this schema_version is not known; \"1.1\" is");
        }
    }
}

/// Reads what a case has in its workspace: a script, folders, an earlier conversation.
fn read_context(
    node: &TreeNode,
    folder: &EvalFolder,
    workspace: &mut WorkspaceSpec,
    unsupported: &mut Unsupported,
    problems: &mut Diagnostics,
) {
    let Some(mut context) = ObjectReader::new(node, "\"context\"", problems) else { return };
    if let Some(script) = context.text("scaffold_script", problems) {
        match parts::read_part_text(folder, script, problems) {
            Some(text) if needs_own_path(&text) => {
                unsupported.add(format!("{script} asks for its own path, which a script does not have here"));
            }
            Some(text) => workspace.setup = Some(text).filter(|text| !text.trim().is_empty()),
            None => {}
        }
    }
    if context.text("history_file", problems).is_some() {
        unsupported.add("\"history_file\": an earlier conversation cannot be resumed");
    }
    for (path, span) in context.texts("add_dirs", problems).unwrap_or_default() {
        let Some(to) = RelPath::new(path) else {
            let message = format!("{path:?} is not a folder of the case");
            problems.error("escaping-path", span, message);
            continue;
        };
        if folder.open_inside(&to).is_err() {
            problems.error("file-not-found", span, format!("{path} is not a folder inside the case"));
            continue;
        }
        let source = to.join_to(folder.path());
        workspace.files.push(Fixture { source, destination: to, access: FixtureAccess::ReadOnly });
    }
    context.reject_unknown_keys("\"context\"", problems);
}

/// Says whether a script asks where it lies. Here it runs as a text, without a file.
fn needs_own_path(script: &str) -> bool {
    ["BASH_SOURCE", "$0", "${0"].iter().any(|word| script.contains(word))
}

#[cfg(test)]
mod tests;

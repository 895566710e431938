//! The format of skill-up: an eval.yaml that names files with one case each, rules for the output, and a judge.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::reading::graders::{Unsupported, all_or_nothing, portable_pattern, scored_rule, scored_statement};
use super::reading::{self, UniqueIds, UnusedKeys};
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    Arm, Case, CasePrompt, Check, CheckNeed, CheckTarget, Diagnostics, InlineFile, RelPath, RunPolicy,
    ScoreScale, Suite, WorkspaceBase,
};
use practicum_core::tree::{
    ObjectReader, SourceFile, TreeNode,
    json_schema::{self, MappingSchema},
};
use practicum_skills::skill::normalise_path;

mod export;

/// The adapter for skill-up's format.
pub struct SkillUp;

const NAME: &str = "skill-up";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// The engines that are agents here, each with the agent.
const ENGINES: [(&str, &str); 3] = [("claude_code", "claude"), ("codex", "codex"), ("opencode", "opencode")];

impl Dialect for SkillUp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["eval.yaml", "eval.yml"]
    }

    fn recognition_rule(&self) -> &'static str {
        "a file with \"schema_version\" and \"cases.files\""
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let root = &source.root;
        let has_files = root.get("cases").is_some_and(|cases| cases.has("files"));
        match has_files && root.has("schema_version") {
            true => FormatMatch::with_points(150, "it has \"schema_version\" and \"cases.files\""),
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
        file.get("schema_version");
        let mut reader = CaseFileReader::new(source, place);
        if let Some(node) = file.get_non_null("environment")
            && node.get("type").and_then(TreeNode::as_text).is_some_and(|kind| kind != "none")
        {
            reader.shared.push("its environment is a container, which there is not here".to_owned());
        }
        let skill = reader.find_skill(file.get_non_null("skills"), diagnostics);
        let (agents, model) = read_engine(&mut file, diagnostics);
        let both = file.get_non_null("benchmark").and_then(|node| node.get("enabled")?.to_value().as_bool());
        let mut timeout = None;
        let mut cases = Vec::new();
        if let Some(node) = file.get_non_null("cases")
            && let Some(mut group) = ObjectReader::new(node, "\"cases\"", diagnostics)
        {
            if let Some(defaults) = group.get_non_null("defaults") {
                timeout = read_timeout(defaults);
                reader.expect = defaults.get("expect").cloned();
            }
            for (path, span) in group.texts("files", diagnostics).unwrap_or_default() {
                match reader.read_document(path) {
                    Ok(document) => {
                        let mut problems = Diagnostics::default();
                        cases.extend(reader.read_case(&document.root, path, &mut problems));
                        reading::parts::report_part(path, &document.text, problems, diagnostics);
                    }
                    Err(why) => diagnostics.error("unreadable-file", span, why),
                }
            }
            for key in ["parallelism", "retry_policy"] {
                group.get(key);
            }
            UnusedKeys::default().collect_unused(&group, "\"cases\"", diagnostics);
        }
        if cases.is_empty() && !diagnostics.has_errors() {
            diagnostics.error("no-cases", source.root.span, "there is no case, so there is nothing to run");
        }
        file.get("report");
        let meta = UnusedKeys::refusing_unread_cases().collect_unused(&file, "an eval", diagnostics);
        let arms = match both {
            Some(true) => vec![Arm::WithSkill, Arm::WithoutSkill],
            Some(false) | None => vec![Arm::WithSkill],
        };
        Some(Suite {
            cases,
            run_policy: RunPolicy { agents, model, timeout, ..RunPolicy::default() },
            format_defaults: RunPolicy {
                repeat: Some(1),
                timeout: Some(DEFAULT_TIMEOUT),
                arms,
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

fn read_engine(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> (Vec<String>, Option<String>) {
    let Some(node) = file.get_non_null("engine") else { return (Vec::new(), None) };
    let name = node.get("name").and_then(TreeNode::as_text).unwrap_or_default();
    let model =
        node.get("model").and_then(TreeNode::as_text).filter(|model| !model.is_empty()).map(str::to_owned);
    match ENGINES.iter().find(|(engine, _)| *engine == name) {
        Some((_, agent)) => (vec![(*agent).to_owned()], model),
        None => {
            let message = format!("the engine \"{name}\" is not known here; choose an agent with --agent");
            diagnostics.warning("unused-setting", node.span, message);
            (Vec::new(), None)
        }
    }
}

fn read_timeout(node: &TreeNode) -> Option<Duration> {
    let seconds = node.get("timeout_seconds")?.to_value().as_u64()?;
    Some(Duration::from_secs(seconds))
}

/// Reads the files of cases.
struct CaseFileReader<'r> {
    source: &'r SourceFile,
    place: &'r EvalFileLocation,
    /// The folder of the skill, to which paths are relative.
    root: PathBuf,
    /// Why no case can be run.
    shared: Vec<String>,
    /// What every case expects.
    expect: Option<TreeNode>,
    ids: UniqueIds,
}

impl<'r> CaseFileReader<'r> {
    fn new(source: &'r SourceFile, place: &'r EvalFileLocation) -> Self {
        let folder = source.folder();
        let above = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == "evals"));
        let root = above.unwrap_or(folder).to_owned();
        Self { source, place, root, shared: Vec::new(), expect: None, ids: UniqueIds::default() }
    }

    fn full_path(&self, path: &str) -> Result<PathBuf, String> {
        let full = normalise_path(&self.root.join(path));
        match reading::lies_in_none(&[&self.place.project, &self.place.root, self.source.folder()], &full) {
            true => Err(format!("{path} lies outside the project")),
            false => Ok(full),
        }
    }

    fn read_document(&self, path: &str) -> Result<SourceFile, String> {
        let full = self.full_path(path)?;
        let mut problems = Diagnostics::default();
        let (_, document) = SourceFile::read(&full, &mut problems);
        document.ok_or_else(|| {
            let first = problems.iter().next().map(|problem| problem.message.clone()).unwrap_or_default();
            format!("{path} cannot be read: {first}")
        })
    }

    /// Finds the skill that the file names, otherwise the one around it.
    fn find_skill(
        &self,
        node: Option<&TreeNode>,
        diagnostics: &mut Diagnostics,
    ) -> practicum_core::model::SkillRef {
        let named = node.and_then(|node| node.as_list()?.first()?.get("path")?.as_text());
        let named = named.and_then(|path| self.full_path(path).ok()).filter(|path| reading::is_skill(path));
        match (named, &self.place.skill) {
            (Some(folder), None) => reading::skill_at(&folder, &self.place.skills, diagnostics),
            (_, _) => reading::skill_beside(self.source.folder(), self.place, None, diagnostics),
        }
    }

    fn read_case(&mut self, node: &TreeNode, path: &str, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut object = ObjectReader::new(node, "a case", diagnostics)?;
        let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let id =
            object.text("id", diagnostics).map(str::to_owned).or(stem).unwrap_or_else(|| "case".to_owned());
        let note = object.text("title", diagnostics).map(|title| title.trim().to_owned());
        object.get("description");
        let mut unsupported = Unsupported::default();
        self.shared.iter().for_each(|why| unsupported.add(why.clone()));
        let turns = read_turns(&mut object, diagnostics)?;
        let mut case = reading::blank_case(self.ids.make_unique(&id), String::new());
        if let Some(node) = object.get_non_null("context") {
            for entry in node.as_map().unwrap_or_default() {
                match (entry.key.as_str(), entry.value.as_map()) {
                    ("files", Some(files)) => {
                        case.workspace.inline_files = read_files(files, &mut unsupported)
                    }
                    (key, _) => unsupported.add(format!("\"{key}\" of its context is not prepared here")),
                }
            }
        }
        let mut checks = Vec::new();
        for node in [self.expect.as_ref(), object.get_non_null("expect")].into_iter().flatten() {
            read_expect(node, &mut checks, &mut unsupported);
        }
        if let Some(node) = object.get_non_null("judge") {
            read_judge(node, &mut checks, &mut unsupported);
        }
        let constraints = object.get_non_null("constraints");
        case.timeout = constraints.and_then(read_timeout);
        case.meta = UnusedKeys::default().collect_unused(&object, "a case", diagnostics);
        let mut ids = UniqueIds::default();
        for check in &mut checks {
            check.id = ids.make_unique(&check.id);
            check.need = CheckNeed::Required;
        }
        if checks.is_empty() {
            unsupported.add("it expects nothing that can be read");
        }
        Some(Case {
            note,
            prompt: CasePrompt::Turns(turns),
            checks,
            unsupported: unsupported.into_reason(),
            ..case
        })
    }
}

/// Reads the messages of a case: one prompt, or turns as texts or mappings.
fn read_turns(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<String>> {
    let node = object.get_non_null("input");
    let text = |item: &TreeNode| {
        let text = item
            .as_text()
            .or_else(|| item.get("prompt")?.as_text())
            .or_else(|| item.get("content")?.as_text());
        text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let turns = node.and_then(|node| match node.get("turns").and_then(TreeNode::as_list) {
        Some(items) => items.iter().map(text).collect::<Option<Vec<String>>>(),
        None => text(node).map(|prompt| vec![prompt]),
    });
    let turns = turns.filter(|turns| !turns.is_empty());
    if turns.is_none() {
        object.report_missing("input.prompt", diagnostics);
    }
    turns
}

fn read_files(files: &[practicum_core::tree::MapEntry], unsupported: &mut Unsupported) -> Vec<InlineFile> {
    let mut made = Vec::new();
    for entry in files {
        match (RelPath::new(&entry.key), entry.value.as_text()) {
            (Some(path), Some(content)) => made.push(InlineFile { path, content: content.to_owned() }),
            (_, _) => unsupported.add(format!("the file \"{}\" of its context cannot be written", entry.key)),
        }
    }
    made
}

fn texts_of(node: &TreeNode) -> Vec<&str> {
    match node.as_text() {
        Some(text) => vec![text],
        None => node.as_list().unwrap_or_default().iter().filter_map(TreeNode::as_text).collect(),
    }
}

fn add_rule(key: &str, value: &Value, checks: &mut Vec<Check>, unsupported: &mut Unsupported, name: &str) {
    match scored_rule(name, key, value) {
        Ok(check) => checks.push(check),
        Err(why) => unsupported.add(format!("{name}: {why}")),
    }
}

/// Reads what the output must and must not contain. Whether case matters is not documented: what must be there is looked
/// for as it is written, what must not be there in any case.
fn read_expect(node: &TreeNode, checks: &mut Vec<Check>, unsupported: &mut Unsupported) {
    for entry in node.as_map().unwrap_or_default() {
        let texts = texts_of(&entry.value);
        match entry.key.as_str() {
            "must_contain" => {
                for text in texts {
                    add_rule("contains", &json!(text), checks, unsupported, "must_contain");
                }
            }
            "must_not_contain" => {
                for text in texts {
                    let value = json!({"text": text, "ignore_case": true});
                    add_rule("not_contains", &value, checks, unsupported, "must_not_contain");
                }
            }
            "must_contain_any" => {
                let rules: Value = texts.iter().map(|text| json!({"contains": text})).collect();
                add_rule("any", &rules, checks, unsupported, "must_contain_any");
            }
            // A run whose agent ends badly is not scored.
            "exit_code" if entry.value.to_value() == json!(0) => {}
            key => unsupported.add(format!("\"{key}\" of \"expect\" is not known here")),
        }
    }
}

/// Reads the judge of a case. That each rule for success holds and none for failure is the strictest reading.
fn read_judge(node: &TreeNode, checks: &mut Vec<Check>, unsupported: &mut Unsupported) {
    let text = |key: &str| node.get(key).and_then(TreeNode::as_text);
    match text("type") {
        Some("rule_based") => {
            for (key, holds) in [("success", true), ("failure", false)] {
                for rule in node.get(key).and_then(TreeNode::as_list).unwrap_or_default() {
                    match read_judge_rule(rule, holds) {
                        Ok((name, value)) => add_rule(name, &value, checks, unsupported, key),
                        Err(why) => unsupported.add(format!("a rule of its judge: {why}")),
                    }
                }
            }
        }
        Some("agent_judge") => {
            match ["criteria", "rubric", "prompt", "instructions"].into_iter().find_map(text) {
                Some(rubric) => {
                    let statement =
                        format!("By these instructions, the judge passes the work:\n{}", rubric.trim());
                    let scale = ScoreScale::PassFail;
                    checks.push(scored_statement("judge", &statement, scale, CheckTarget::WholeRun));
                }
                None => unsupported.add("its judge has no criteria that can be read"),
            }
        }
        Some("script") => unsupported.add("how the script of its judge reports its result is not documented"),
        Some(other) => unsupported.add(format!("its judge \"{other}\" is not known here")),
        None => unsupported.add("its judge has no type"),
    }
}

/// Reads one rule of a judge, or its opposite.
fn read_judge_rule(rule: &TreeNode, holds: bool) -> Result<(&'static str, Value), String> {
    let Some([entry]) = rule.as_map() else { return Err("it is no mapping with one key".to_owned()) };
    let make = |text: &str| match entry.key.as_str() {
        "output_contains" if holds => Ok(json!({"contains": text})),
        "output_contains" => Ok(json!({"contains": {"text": text, "ignore_case": true}})),
        "output_matches" => portable_pattern(text, "").map(|pattern| json!({"regex": pattern})),
        key => Err(format!("\"{key}\" is not known here")),
    };
    let group = ["all", "any"].into_iter().find_map(|key| Some((key, entry.value.get(key)?)));
    let (join, node) = group.unwrap_or(("all", &entry.value));
    let rules: Result<Vec<Value>, String> = texts_of(node).into_iter().map(make).collect();
    let rules = Value::Array(rules?);
    if rules.as_array().is_none_or(Vec::is_empty) {
        return Err("it has no texts".to_owned());
    }
    let (key, value) = if join == "all" { all_or_nothing(&rules) } else { ("any", rules) };
    Ok(if holds { (key, value) } else { ("not", json!({key: value})) })
}

fn schema() -> Value {
    let cases = MappingSchema::open()
        .optional("files", "The files of the cases, relative to the skill.", json_schema::text_or_texts())
        .optional("defaults", "Settings of all cases.", json!({"type": "object"}));
    json_schema::document(
        "skill-up eval.yaml",
        "A suite in skill-up's format.",
        MappingSchema::open()
            .required("schema_version", "The version of the format.", json!({}))
            .optional("environment", "Only the type none is run here.", json!({"type": "object"}))
            .optional("skills", "The skill under test.", json!({"type": "array"}))
            .optional("engine", "The agent and its model.", json!({"type": "object"}))
            .optional("cases", "The cases.", cases)
            .optional("benchmark", "Whether cases also run without the skill.", json!({"type": "object"})),
        [],
    )
}

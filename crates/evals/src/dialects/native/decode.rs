use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::super::EvalFileLocation;
use super::super::reading::{leads_out_of, report_missing_skill, skill_at};
use super::case_checks::{self, CaseChecks};
use super::{about_skill, policy};
use practicum_core::model::{
    Case, CasePrompt, Diagnostics, Fixture, FixtureAccess, Gate, GateName, Origin, PassRule, Ratio, RelPath,
    SkillRef, Span, StagedSkillName, Suite, WorkspaceBase, WorkspaceSpec, parse_duration,
};
use practicum_core::tree::{
    NodeData, ObjectReader, SourceFile, TreeNode, closest_word, node_text, report_wrong_type,
};
use practicum_skills::skill::{Skill, normalise_path};

/// The most cases one file may have; more is a generated file gone wrong.
const MOST_CASES: usize = 100_000;

pub fn decode_suite(
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> Option<Suite> {
    let folder = source.folder();
    let mut file = ObjectReader::new(&source.root, "the file", diagnostics)?;
    check_version(&mut file, diagnostics);
    let name = file.text("name", diagnostics).map_or_else(|| suite_stem(&source.path), str::to_owned);
    let description = file.text("description", diagnostics).map(str::to_owned);
    let skills = match (file.get_non_null("skill"), &place.skill) {
        (None, Some(named)) => vec![skill_at(named, diagnostics)],
        (said, _) => self::decode_skills(said, folder, diagnostics),
    };
    let rivals = self::decode_skills(file.get_non_null("rivals"), folder, diagnostics);
    let plugins = file.texts("plugins", diagnostics).unwrap_or_default();
    let plugins = plugins.into_iter().map(|(path, _)| normalise_path(&folder.join(path))).collect();
    let about_skill = file.list("about_skill", diagnostics).unwrap_or_default();
    let about_skill = about_skill::decode(about_skill, diagnostics);
    let base = decode_one_of(
        &mut file,
        "workspace",
        &[("project", WorkspaceBase::Project), ("empty", WorkspaceBase::Empty)],
        diagnostics,
    );
    let run = policy::decode_run_policy(file.get_non_null("run"), "run", folder, diagnostics);
    let defaults = policy::decode_run_policy(file.get_non_null("defaults"), "defaults", folder, diagnostics);
    let judge = policy::decode_judge_policy(file.get_non_null("judge"), diagnostics);
    let gates = decode_gates(&mut file, diagnostics);
    let meta = decode_meta(&mut file, diagnostics);
    let cases_node = file.get_non_null("cases");
    let case_nodes = file.list("cases", diagnostics);
    file.reject_misplaced_keys("the file", &[("run", &policy::RUN_KEYS)], diagnostics);

    let names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
    let surroundings = CaseDecoder {
        folder,
        project: &place.project,
        base: base.unwrap_or(WorkspaceBase::Project),
        skills: &names,
        id_spans: HashMap::new(),
    };
    let cases = match case_nodes {
        Some(nodes) if nodes.len() > MOST_CASES => {
            diagnostics.error(
                "too-many-cases",
                cases_node.map(|node| node.span),
                format!("more than {MOST_CASES} cases"),
            );
            return None;
        }
        Some([]) | None => {
            if case_nodes.is_some() || cases_node.is_none() {
                let at = cases_node.map_or(Span::new(0, 1), |node| node.span);
                diagnostics.error("no-cases", at, "there are no cases; a suite without cases proves nothing");
            }
            Vec::new()
        }
        Some(nodes) => surroundings.decode_cases(nodes, diagnostics),
    };
    Some(Suite {
        name,
        origin: Origin { dialect: "native".to_owned(), path: source.path.clone(), digest: source.digest() },
        description,
        skills,
        rivals,
        plugins,
        skill_statements: about_skill,
        cases,
        run_policy: run,
        format_defaults: defaults,
        judge_policy: judge,
        gates,
        meta,
    })
}

fn check_version(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) {
    match file.get("practicum").map(|node| (&node.data, node.span)) {
        Some((NodeData::Int(1), _)) => {}
        Some((_, span)) => diagnostics.error(
            "unknown-version",
            span,
            "this version of the format is not known; \"practicum: 1\" is",
        ),
        None => file.report_missing("practicum", diagnostics),
    }
}

/// `release-notes.practicum.yaml` is the suite `release-notes`.
fn suite_stem(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let stem = name.split('.').next().unwrap_or_default();
    if stem.is_empty() { name } else { stem.to_owned() }
}

fn decode_skills(node: Option<&TreeNode>, folder: &Path, diagnostics: &mut Diagnostics) -> Vec<SkillRef> {
    let Some(node) = node else { return Vec::new() };
    let nodes = match &node.data {
        NodeData::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    nodes.iter().filter_map(|node| decode_skill(node, folder, diagnostics)).collect()
}

/// A path, or `{name, path, plugin}`.
fn decode_skill(node: &TreeNode, folder: &Path, diagnostics: &mut Diagnostics) -> Option<SkillRef> {
    let (name, path, plugin) = if let Some(text) = node.as_text() {
        (None, Some(text), None)
    } else {
        let mut object = ObjectReader::new(node, "skill", diagnostics)?;
        let name = object.text("name", diagnostics);
        let path = object.text("path", diagnostics);
        let plugin = object.text("plugin", diagnostics);
        object.reject_unknown_keys("skill", diagnostics);
        if name.is_none() && path.is_none() {
            diagnostics.error("missing-key", node.span, "a skill needs a \"path\" or a \"name\"");
            return None;
        }
        (name, path, plugin)
    };
    if [name, path].into_iter().flatten().any(|text| text.trim().is_empty()) {
        diagnostics.error("empty-text", node.span, "a skill's name and path must not be blank");
        return None;
    }
    let path = path.map(|path| normalise_path(&folder.join(path)));
    if let Some(path) = &path
        && let Err(problem) = Skill::read(path)
    {
        report_missing_skill(&problem, Some(node.span), diagnostics);
    }
    let name = name.map(str::to_owned).or_else(|| path.as_deref().map(skill_name)).unwrap_or_default();
    Some(SkillRef { name, path, plugin: plugin.map(str::to_owned) })
}

/// What the skill calls itself, else what its folder is called.
fn skill_name(path: &Path) -> String {
    Skill::read(path).map_or_else(
        |_| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        |skill| skill.name,
    )
}

fn decode_gates(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Vec<Gate> {
    let Some(node) = file.get_non_null("gates") else { return vec![Gate::ALL_CASES_PASS] };
    let Some(entries) = node.as_map() else {
        report_wrong_type(node, "gates", "a mapping of gate to threshold", diagnostics);
        return Vec::new();
    };
    let mut gates = Vec::new();
    for entry in entries {
        let Some(name) = GateName::parse(&entry.key) else {
            let known: Vec<&str> = GateName::ALL.iter().map(|gate| gate.name()).collect();
            let help = closest_word(&entry.key, &known).map_or_else(
                || format!("the gates are {}", known.join(", ")),
                |known| format!("did you mean \"{known}\"?"),
            );
            diagnostics.error_with_help(
                "unknown-gate",
                entry.key_span,
                format!("unknown gate \"{}\"", entry.key),
                help,
            );
            continue;
        };
        let value = match entry.value.data {
            NodeData::Bool(true)
                if matches!(name, GateName::AllCasesPass | GateName::ActivationCasesPass) =>
            {
                Some(1.0)
            }
            NodeData::Int(n) => Some(n as f64),
            NodeData::Float(x) => Some(x),
            _ => None,
        };
        match value.and_then(Ratio::new) {
            Some(threshold) => gates.push(Gate { name, threshold }),
            None => diagnostics.error_with_help(
                "out-of-range",
                entry.value.span,
                format!("\"{}\" must be between 0 and 1", entry.key),
                "80 % is 0.8",
            ),
        }
    }
    gates
}

fn decode_meta(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> BTreeMap<String, Value> {
    let Some(node) = object.get_non_null("meta") else { return BTreeMap::new() };
    match node.as_map() {
        Some(entries) => entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect(),
        None => {
            report_wrong_type(node, "meta", "a mapping", diagnostics);
            BTreeMap::new()
        }
    }
}

/// A key whose text must be one of a few words.
pub fn decode_one_of<T: Copy>(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    words: &[(&'static str, T)],
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let node = object.get_non_null(key)?;
    let text = node_text(node, key, diagnostics)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let help = closest_word(text, &known).map_or_else(
            || format!("it may be {}", known.join(", ")),
            |word| format!("did you mean \"{word}\"?"),
        );
        diagnostics.error_with_help(
            "unknown-value",
            node.span,
            format!("\"{key}\" cannot be \"{text}\""),
            help,
        );
    }
    found
}

pub fn decode_duration(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Duration> {
    let node = object.get_non_null(key)?;
    let parsed = match &node.data {
        NodeData::Int(seconds) => parse_duration(&seconds.to_string()),
        NodeData::Float(seconds) => parse_duration(&format!("{seconds:.3}")),
        NodeData::Text(text) => parse_duration(text),
        NodeData::Null | NodeData::Bool(_) | NodeData::List(_) | NodeData::Map(_) => None,
    };
    if parsed.is_none() {
        diagnostics.error_with_help(
            "invalid-duration",
            node.span,
            format!("\"{key}\" is not a duration between 1ms and a week"),
            "a number is seconds; or write 500ms, 20s, 5m, 1h",
        );
    }
    parsed
}

/// What every case of a file shares.
struct CaseDecoder<'s> {
    folder: &'s Path,
    project: &'s Path,
    base: WorkspaceBase,
    skills: &'s [String],
    id_spans: HashMap<String, Span>,
}

impl CaseDecoder<'_> {
    fn decode_cases(mut self, nodes: &[TreeNode], diagnostics: &mut Diagnostics) -> Vec<Case> {
        nodes.iter().filter_map(|node| self.decode_case(node, diagnostics)).collect()
    }

    fn decode_case(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut case = ObjectReader::new(node, "a case", diagnostics)?;
        let id = self.decode_id(&mut case, diagnostics);
        let group = case.text("group", diagnostics).map(str::to_owned);
        let note = case.text("note", diagnostics).map(str::to_owned);
        let stimulus = decode_stimulus(&mut case, diagnostics);
        let room = self.decode_workspace(&mut case, diagnostics);
        let context = case.text("context", diagnostics).map(str::to_owned);
        let timeout = decode_duration(&mut case, "timeout", diagnostics);
        let repeat = case.int("repeat", 1, 1000, diagnostics).and_then(|n| u32::try_from(n).ok());
        let pass_when = decode_pass_rule(&mut case, diagnostics);
        let oracle = case.text("oracle", diagnostics).map(|path| normalise_path(&self.folder.join(path)));
        let meta = decode_meta(&mut case, diagnostics);
        let activation = case.get_non_null("activation");
        let list = case.list("checks", diagnostics);
        let checks =
            case_checks::decode_checks(&CaseChecks { activation, list, skills: self.skills }, diagnostics);
        case.reject_unknown_keys("a case", diagnostics);
        // An empty list says that nothing is checked, as some formats permit: such a case never passes.
        if checks.is_empty() && list.is_none() && !diagnostics.has_errors() {
            diagnostics.error_with_help(
                "no-checks",
                node.span,
                "this case checks nothing, so nothing can be learnt from it",
                "add \"checks\" or \"activation\"",
            );
        }
        Some(Case {
            id: id?,
            group,
            note,
            prompt: stimulus?,
            workspace: room,
            checks,
            context,
            timeout,
            repeat,
            pass_rule: pass_when,
            known_good_output: oracle,
            meta,
        })
    }

    fn decode_id(&mut self, case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<String> {
        let node = case.get_non_null("id");
        let id = match node.map(|node| &node.data) {
            Some(NodeData::Int(number)) => number.to_string(),
            _ => case.required_text("id", diagnostics)?.to_owned(),
        };
        let span = node.map_or(case.span, |node| node.span);
        if self.id_spans.insert(id.clone(), span).is_some() {
            diagnostics.error("duplicate-id", span, format!("another case is already called \"{id}\""));
        }
        Some(id)
    }

    fn decode_workspace(&self, case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> WorkspaceSpec {
        let base = decode_one_of(
            case,
            "workspace",
            &[("project", WorkspaceBase::Project), ("empty", WorkspaceBase::Empty)],
            diagnostics,
        );
        let overlays = case.texts("overlays", diagnostics).unwrap_or_default();
        let skill = decode_one_of(
            case,
            "skill_name",
            &[("own", StagedSkillName::Own), ("alias", StagedSkillName::Alias)],
            diagnostics,
        );
        let files = case.list("files", diagnostics).unwrap_or_default();
        WorkspaceSpec {
            base: base.unwrap_or(self.base),
            overlays: overlays.into_iter().map(|(path, _)| normalise_path(&self.folder.join(path))).collect(),
            skill_name: skill.unwrap_or(StagedSkillName::Own),
            files: files.iter().filter_map(|node| self.decode_fixture(node, diagnostics)).collect(),
            setup: case.text("setup", diagnostics).map(str::to_owned),
            teardown: case.text("teardown", diagnostics).map(str::to_owned),
        }
    }

    /// A path, which keeps its place, or `{from, to, mutable}`.
    fn decode_fixture(&self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Fixture> {
        let (from, to, mutable) = if let Some(text) = node.as_text() {
            (text, text, false)
        } else {
            let mut object = ObjectReader::new(node, "a file", diagnostics)?;
            let from = object.required_text("from", diagnostics);
            let to = object.text("to", diagnostics);
            let mutable = object.bool("mutable", diagnostics).unwrap_or(false);
            object.reject_unknown_keys("a file", diagnostics);
            (from?, to.or(from)?, mutable)
        };
        let Some(to) = RelPath::new(to) else {
            diagnostics.error_with_help(
                "escaping-path",
                node.span,
                format!("{to:?} is not a path inside the workspace"),
                "give \"from\" and a relative \"to\"",
            );
            return None;
        };
        let from: PathBuf = normalise_path(&self.folder.join(from));
        if !from.exists() {
            diagnostics.warning("file-not-found", node.span, format!("{} does not exist", from.display()));
        }
        if leads_out_of(self.project, &from) {
            diagnostics.error_with_help(
                "escaping-path",
                node.span,
                format!("{} is a link that leads out of the project", from.display()),
                "put a copy there: what an agent is given goes to a model",
            );
            return None;
        }
        Some(Fixture {
            source: from,
            destination: to,
            access: if mutable { FixtureAccess::Mutable } else { FixtureAccess::ReadOnly },
        })
    }
}

fn decode_stimulus(case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<CasePrompt> {
    let command = case.text("command", diagnostics);
    let prompt_node = case.get_non_null("prompt");
    let turns = case.texts("prompt", diagnostics);
    match (turns, command) {
        (Some(_), Some(_)) => {
            diagnostics.error(
                "contradiction",
                case.span,
                "a case has a \"prompt\" or a \"command\", not both",
            );
            None
        }
        (None, Some(args)) => Some(CasePrompt::SkillCommand { args: args.to_owned() }),
        (Some(turns), None) => {
            if turns.is_empty() || turns.iter().any(|(text, _)| text.trim().is_empty()) {
                diagnostics.error(
                    "empty-text",
                    prompt_node.map(|node| node.span),
                    "\"prompt\" must not be blank",
                );
                return None;
            }
            Some(CasePrompt::Turns(turns.into_iter().map(|(text, _)| text.to_owned()).collect()))
        }
        (None, None) => {
            if prompt_node.is_none() {
                case.report_missing("prompt", diagnostics);
            }
            None
        }
    }
}

/// `checks`, `tally`, `fire_rate`, `{fire_rate: 0.5}` or `{pass_rate: 0.7, mean_score: 0.5}`.
fn decode_pass_rule(case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> PassRule {
    let Some(node) = case.get_non_null("pass_when") else { return PassRule::EveryRequiredCheck };
    match &node.data {
        NodeData::Text(text) if text == "checks" => PassRule::EveryRequiredCheck,
        NodeData::Text(text) if text == "tally" => PassRule::CountOnly,
        NodeData::Text(text) if text == "fire_rate" => PassRule::ActivationRate(None),
        NodeData::Map(_) => {
            let Some(mut object) = ObjectReader::new(node, "pass_when", diagnostics) else {
                return PassRule::CountOnly;
            };
            let fire_rate = policy::activation_share(&mut object, "fire_rate", diagnostics);
            let pass_rate = object.number("pass_rate", 0.0, 1.0, diagnostics).and_then(Ratio::new);
            let mean_score = object.number("mean_score", 0.0, 1.0, diagnostics).and_then(Ratio::new);
            object.reject_unknown_keys("pass_when", diagnostics);
            match (fire_rate, pass_rate, mean_score) {
                (rate, None, None) => PassRule::ActivationRate(rate),
                (None, Some(pass_rate), Some(mean_score)) => {
                    PassRule::JudgedThresholds { pass_rate, mean_score }
                }
                _ => {
                    let help = "it may be {fire_rate: 0.5} or {pass_rate: 0.7, mean_score: 0.5}";
                    diagnostics.error_with_help("contradiction", node.span, "these do not go together", help);
                    PassRule::EveryRequiredCheck
                }
            }
        }
        _ => {
            diagnostics.error_with_help(
                "unknown-value",
                node.span,
                "this is no way to pass",
                "it may be checks, tally, fire_rate, {fire_rate: 0.5} or {pass_rate: 0.7, mean_score: 0.5}",
            );
            PassRule::EveryRequiredCheck
        }
    }
}

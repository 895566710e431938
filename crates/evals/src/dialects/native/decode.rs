use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::super::Place;
use super::super::reading::{leads_out_of, skill_at, tell_missing};
use super::checks::{self, CaseChecks};
use super::{about_skill, policy};
use practicum_core::model::{
    Access, Base, Case, Diagnostics, Fixture, Gate, GateName, Origin, PassRule, Ratio, RelPath, Room,
    SkillName, SkillRef, Span, Stimulus, Suite, parse_duration,
};
use practicum_core::tree::{Data, Node, Object, Source, closest, text_of, wrong_type};
use practicum_skills::skill::{Skill, tidy};

/// The most cases one file may have; more is a generated file gone wrong.
const MOST_CASES: usize = 100_000;

pub fn suite(source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Option<Suite> {
    let folder = source.folder();
    let mut file = Object::new(&source.root, "the file", diagnostics)?;
    check_version(&mut file, diagnostics);
    let name = file.text("name", diagnostics).map_or_else(|| stem(&source.path), str::to_owned);
    let description = file.text("description", diagnostics).map(str::to_owned);
    let skills = match (file.given("skill"), &place.skill) {
        (None, Some(named)) => vec![skill_at(named, diagnostics)],
        (said, _) => self::skills(said, folder, diagnostics),
    };
    let rivals = self::skills(file.given("rivals"), folder, diagnostics);
    let plugins = file.texts("plugins", diagnostics).unwrap_or_default();
    let plugins = plugins.into_iter().map(|(path, _)| tidy(&folder.join(path))).collect();
    let about_skill = file.list("about_skill", diagnostics).unwrap_or_default();
    let about_skill = about_skill::decode(about_skill, diagnostics);
    let base =
        one_of(&mut file, "workspace", &[("project", Base::Project), ("empty", Base::Empty)], diagnostics);
    let run = policy::run(file.given("run"), "run", folder, diagnostics);
    let defaults = policy::run(file.given("defaults"), "defaults", folder, diagnostics);
    let judge = policy::judge(file.given("judge"), diagnostics);
    let gates = gates(&mut file, diagnostics);
    let meta = meta(&mut file, diagnostics);
    let cases_node = file.given("cases");
    let case_nodes = file.list("cases", diagnostics);
    file.refuse_misplaced("the file", &[("run", &policy::RUN_KEYS)], diagnostics);

    let names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
    let surroundings = Surroundings {
        folder,
        project: &place.project,
        base: base.unwrap_or(Base::Project),
        skills: &names,
        first_seen: HashMap::new(),
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
        Some(nodes) => surroundings.cases(nodes, diagnostics),
    };
    Some(Suite {
        name,
        origin: Origin { dialect: "native".to_owned(), path: source.path.clone(), digest: source.digest() },
        description,
        skills,
        rivals,
        plugins,
        about_skill,
        cases,
        run,
        defaults,
        judge,
        gates,
        meta,
    })
}

fn check_version(file: &mut Object<'_>, diagnostics: &mut Diagnostics) {
    match file.get("practicum").map(|node| (&node.data, node.span)) {
        Some((Data::Int(1), _)) => {}
        Some((_, span)) => diagnostics.error(
            "unknown-version",
            span,
            "this version of the format is not known; \"practicum: 1\" is",
        ),
        None => file.missing("practicum", diagnostics),
    }
}

/// `release-notes.practicum.yaml` is the suite `release-notes`.
fn stem(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let stem = name.split('.').next().unwrap_or_default();
    if stem.is_empty() { name } else { stem.to_owned() }
}

fn skills(node: Option<&Node>, folder: &Path, diagnostics: &mut Diagnostics) -> Vec<SkillRef> {
    let Some(node) = node else { return Vec::new() };
    let nodes = match &node.data {
        Data::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    nodes.iter().filter_map(|node| skill(node, folder, diagnostics)).collect()
}

/// A path, or `{name, path, plugin}`.
fn skill(node: &Node, folder: &Path, diagnostics: &mut Diagnostics) -> Option<SkillRef> {
    let (name, path, plugin) = if let Some(text) = node.as_text() {
        (None, Some(text), None)
    } else {
        let mut object = Object::new(node, "skill", diagnostics)?;
        let name = object.text("name", diagnostics);
        let path = object.text("path", diagnostics);
        let plugin = object.text("plugin", diagnostics);
        object.refuse_rest("skill", diagnostics);
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
    let path = path.map(|path| tidy(&folder.join(path)));
    if let Some(path) = &path
        && let Err(problem) = Skill::read(path)
    {
        tell_missing(&problem, Some(node.span), diagnostics);
    }
    let name = name.map(str::to_owned).or_else(|| path.as_deref().map(name_of)).unwrap_or_default();
    Some(SkillRef { name, path, plugin: plugin.map(str::to_owned) })
}

/// What the skill calls itself, else what its folder is called.
fn name_of(path: &Path) -> String {
    Skill::read(path).map_or_else(
        |_| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        |skill| skill.name,
    )
}

fn gates(file: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Vec<Gate> {
    let Some(node) = file.given("gates") else { return vec![Gate::ALL_CASES_PASS] };
    let Some(entries) = node.as_map() else {
        wrong_type(node, "gates", "a mapping of gate to threshold", diagnostics);
        return Vec::new();
    };
    let mut gates = Vec::new();
    for entry in entries {
        let Some(name) = GateName::parse(&entry.key) else {
            let known: Vec<&str> = GateName::ALL.iter().map(|gate| gate.name()).collect();
            let help = closest(&entry.key, &known).map_or_else(
                || format!("the gates are {}", known.join(", ")),
                |known| format!("did you mean \"{known}\"?"),
            );
            diagnostics.error_help(
                "unknown-gate",
                entry.key_span,
                format!("unknown gate \"{}\"", entry.key),
                help,
            );
            continue;
        };
        let value = match entry.value.data {
            Data::Bool(true) if matches!(name, GateName::AllCasesPass | GateName::ActivationCasesPass) => {
                Some(1.0)
            }
            Data::Int(n) => Some(n as f64),
            Data::Float(x) => Some(x),
            _ => None,
        };
        match value.and_then(Ratio::new) {
            Some(threshold) => gates.push(Gate { name, threshold }),
            None => diagnostics.error_help(
                "out-of-range",
                entry.value.span,
                format!("\"{}\" must be between 0 and 1", entry.key),
                "80 % is 0.8",
            ),
        }
    }
    gates
}

fn meta(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> BTreeMap<String, Value> {
    let Some(node) = object.given("meta") else { return BTreeMap::new() };
    match node.as_map() {
        Some(entries) => entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect(),
        None => {
            wrong_type(node, "meta", "a mapping", diagnostics);
            BTreeMap::new()
        }
    }
}

/// A key whose text must be one of a few words.
pub fn one_of<T: Copy>(
    object: &mut Object<'_>,
    key: &'static str,
    words: &[(&'static str, T)],
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let node = object.given(key)?;
    let text = text_of(node, key, diagnostics)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let help = closest(text, &known).map_or_else(
            || format!("it may be {}", known.join(", ")),
            |word| format!("did you mean \"{word}\"?"),
        );
        diagnostics.error_help("unknown-value", node.span, format!("\"{key}\" cannot be \"{text}\""), help);
    }
    found
}

pub fn duration(
    object: &mut Object<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Duration> {
    let node = object.given(key)?;
    let parsed = match &node.data {
        Data::Int(seconds) => parse_duration(&seconds.to_string()),
        Data::Float(seconds) => parse_duration(&format!("{seconds:.3}")),
        Data::Text(text) => parse_duration(text),
        Data::Null | Data::Bool(_) | Data::List(_) | Data::Map(_) => None,
    };
    if parsed.is_none() {
        diagnostics.error_help(
            "invalid-duration",
            node.span,
            format!("\"{key}\" is not a duration between 1ms and a week"),
            "a number is seconds; or write 500ms, 20s, 5m, 1h",
        );
    }
    parsed
}

/// What every case of a file shares.
struct Surroundings<'s> {
    folder: &'s Path,
    project: &'s Path,
    base: Base,
    skills: &'s [String],
    first_seen: HashMap<String, Span>,
}

impl Surroundings<'_> {
    fn cases(mut self, nodes: &[Node], diagnostics: &mut Diagnostics) -> Vec<Case> {
        nodes.iter().filter_map(|node| self.case(node, diagnostics)).collect()
    }

    fn case(&mut self, node: &Node, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut case = Object::new(node, "a case", diagnostics)?;
        let id = self.id(&mut case, diagnostics);
        let group = case.text("group", diagnostics).map(str::to_owned);
        let note = case.text("note", diagnostics).map(str::to_owned);
        let stimulus = stimulus(&mut case, diagnostics);
        let room = self.room(&mut case, diagnostics);
        let context = case.text("context", diagnostics).map(str::to_owned);
        let timeout = duration(&mut case, "timeout", diagnostics);
        let repeat = case.int("repeat", 1, 1000, diagnostics).and_then(|n| u32::try_from(n).ok());
        let pass_when = pass_when(&mut case, diagnostics);
        let oracle = case.text("oracle", diagnostics).map(|path| tidy(&self.folder.join(path)));
        let meta = meta(&mut case, diagnostics);
        let activation = case.given("activation");
        let list = case.list("checks", diagnostics);
        let checks = checks::decode(&CaseChecks { activation, list, skills: self.skills }, diagnostics);
        case.refuse_rest("a case", diagnostics);
        // An empty list says that nothing is checked, as some formats permit: such a case never passes.
        if checks.is_empty() && list.is_none() && !diagnostics.has_errors() {
            diagnostics.error_help(
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
            stimulus: stimulus?,
            room,
            checks,
            context,
            timeout,
            repeat,
            pass_when,
            oracle,
            meta,
        })
    }

    fn id(&mut self, case: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<String> {
        let node = case.given("id");
        let id = match node.map(|node| &node.data) {
            Some(Data::Int(number)) => number.to_string(),
            _ => case.required_text("id", diagnostics)?.to_owned(),
        };
        let span = node.map_or(case.span, |node| node.span);
        if self.first_seen.insert(id.clone(), span).is_some() {
            diagnostics.error("duplicate-id", span, format!("another case is already called \"{id}\""));
        }
        Some(id)
    }

    fn room(&self, case: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Room {
        let base =
            one_of(case, "workspace", &[("project", Base::Project), ("empty", Base::Empty)], diagnostics);
        let overlays = case.texts("overlays", diagnostics).unwrap_or_default();
        let skill =
            one_of(case, "skill_name", &[("own", SkillName::Own), ("alias", SkillName::Alias)], diagnostics);
        let files = case.list("files", diagnostics).unwrap_or_default();
        Room {
            base: base.unwrap_or(self.base),
            overlays: overlays.into_iter().map(|(path, _)| tidy(&self.folder.join(path))).collect(),
            skill: skill.unwrap_or(SkillName::Own),
            files: files.iter().filter_map(|node| self.fixture(node, diagnostics)).collect(),
            setup: case.text("setup", diagnostics).map(str::to_owned),
            teardown: case.text("teardown", diagnostics).map(str::to_owned),
        }
    }

    /// A path, which keeps its place, or `{from, to, mutable}`.
    fn fixture(&self, node: &Node, diagnostics: &mut Diagnostics) -> Option<Fixture> {
        let (from, to, mutable) = if let Some(text) = node.as_text() {
            (text, text, false)
        } else {
            let mut object = Object::new(node, "a file", diagnostics)?;
            let from = object.required_text("from", diagnostics);
            let to = object.text("to", diagnostics);
            let mutable = object.bool("mutable", diagnostics).unwrap_or(false);
            object.refuse_rest("a file", diagnostics);
            (from?, to.or(from)?, mutable)
        };
        let Some(to) = RelPath::new(to) else {
            diagnostics.error_help(
                "escaping-path",
                node.span,
                format!("{to:?} is not a path inside the workspace"),
                "give \"from\" and a relative \"to\"",
            );
            return None;
        };
        let from: PathBuf = tidy(&self.folder.join(from));
        if !from.exists() {
            diagnostics.warning("file-not-found", node.span, format!("{} does not exist", from.display()));
        }
        if leads_out_of(self.project, &from) {
            diagnostics.error_help(
                "escaping-path",
                node.span,
                format!("{} is a link that leads out of the project", from.display()),
                "put a copy there: what an agent is given goes to a model",
            );
            return None;
        }
        Some(Fixture { from, to, access: if mutable { Access::Mutable } else { Access::ReadOnly } })
    }
}

fn stimulus(case: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<Stimulus> {
    let command = case.text("command", diagnostics);
    let prompt_node = case.given("prompt");
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
        (None, Some(args)) => Some(Stimulus::SkillCommand { args: args.to_owned() }),
        (Some(turns), None) => {
            if turns.is_empty() || turns.iter().any(|(text, _)| text.trim().is_empty()) {
                diagnostics.error(
                    "empty-text",
                    prompt_node.map(|node| node.span),
                    "\"prompt\" must not be blank",
                );
                return None;
            }
            Some(Stimulus::Turns(turns.into_iter().map(|(text, _)| text.to_owned()).collect()))
        }
        (None, None) => {
            if prompt_node.is_none() {
                case.missing("prompt", diagnostics);
            }
            None
        }
    }
}

/// `checks`, `tally`, `fire_rate`, `{fire_rate: 0.5}` or `{pass_rate: 0.7, mean_score: 0.5}`.
fn pass_when(case: &mut Object<'_>, diagnostics: &mut Diagnostics) -> PassRule {
    let Some(node) = case.given("pass_when") else { return PassRule::EveryRequiredCheck };
    match &node.data {
        Data::Text(text) if text == "checks" => PassRule::EveryRequiredCheck,
        Data::Text(text) if text == "tally" => PassRule::Tally,
        Data::Text(text) if text == "fire_rate" => PassRule::FireRate(None),
        Data::Map(_) => {
            let Some(mut object) = Object::new(node, "pass_when", diagnostics) else {
                return PassRule::Tally;
            };
            let fire_rate = policy::activation_share(&mut object, "fire_rate", diagnostics);
            let pass_rate = object.number("pass_rate", 0.0, 1.0, diagnostics).and_then(Ratio::new);
            let mean_score = object.number("mean_score", 0.0, 1.0, diagnostics).and_then(Ratio::new);
            object.refuse_rest("pass_when", diagnostics);
            match (fire_rate, pass_rate, mean_score) {
                (rate, None, None) => PassRule::FireRate(rate),
                (None, Some(pass_rate), Some(mean_score)) => PassRule::Graded { pass_rate, mean_score },
                _ => {
                    let help = "it may be {fire_rate: 0.5} or {pass_rate: 0.7, mean_score: 0.5}";
                    diagnostics.error_help("contradiction", node.span, "these do not go together", help);
                    PassRule::EveryRequiredCheck
                }
            }
        }
        _ => {
            diagnostics.error_help(
                "unknown-value",
                node.span,
                "this is no way to pass",
                "it may be checks, tally, fire_rate, {fire_rate: 0.5} or {pass_rate: 0.7, mean_score: 0.5}",
            );
            PassRule::EveryRequiredCheck
        }
    }
}

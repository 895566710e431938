//! Writes a suite as a spec of vally.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::native::relative_path;
use super::super::writing::{
    self, FormatCapabilities, FormatFeature, Losses, PatternLanguage, PlainRule, first_same, foreign_pattern,
};
use super::super::{ExportedFile, ExportedSuite, reading};
use super::graders::read_grader;
use super::{MOST_RUNS, has_parameter};
use practicum_core::model::{
    ActivationCheck, ActivationExpectation, ActivationSource, Arm, Case, CasePrompt, Check, CheckKind,
    CheckNeed, CheckTarget, CheckWeight, PassRule, Ratio, RunPolicy, ScoreOf, ScoreScale, Suite,
    WorkspaceBase, format_duration,
};
use practicum_core::tree::SourceSyntax;

/// Writes a suite. What vally cannot express is listed.
pub fn export(suite: &Suite, folder: &Path) -> ExportedSuite {
    let mut losses = Losses::default();
    let mut suite = writing::cases_that_run(suite, &mut losses);
    let threshold = shared_threshold(&suite);
    if threshold.is_none() {
        suite = writing::require_counted_checks(&suite);
    }
    losses.extend(other_losses(&suite, threshold));
    let stimuli: Vec<Value> = suite
        .cases
        .iter()
        .filter_map(|case| CaseWriter { case, suite: &suite, folder, threshold }.write(&mut losses))
        .collect();
    let mut files = Vec::new();
    if !stimuli.is_empty() {
        let name = format!("{}.eval.yaml", writing::file_stem(&suite.name));
        let document = spec(&suite, folder, threshold, stimuli);
        files.push(ExportedFile { name, syntax: Some(SourceSyntax::Yaml), document });
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

/// Gives the score that every case must reach: vally has one threshold for all.
fn shared_threshold(suite: &Suite) -> Option<Ratio> {
    let score = |case: &Case| match case.pass_rule {
        PassRule::Score(rule) => Some(rule.at_least),
        PassRule::EveryRequiredCheck
        | PassRule::ActivationRate(_)
        | PassRule::JudgedThresholds { .. }
        | PassRule::CountOnly => None,
    };
    let first = suite.cases.first().and_then(score)?;
    suite.cases.iter().all(|case| score(case) == Some(first)).then_some(first)
}

/// Finds what is lost beside prompts and checks.
fn other_losses(suite: &Suite, threshold: Option<Ratio>) -> Losses {
    let mut features = vec![
        FormatFeature::Description,
        FormatFeature::Skill,
        FormatFeature::SeveralSkills,
        FormatFeature::Repeat,
        FormatFeature::CaseRepeat,
        FormatFeature::CaseTimeout,
        FormatFeature::Turns,
        FormatFeature::Files,
        FormatFeature::MutableFiles,
        FormatFeature::Overlays,
    ];
    if threshold.is_some() {
        features.extend([FormatFeature::Score, FormatFeature::Advisory]);
    }
    let format = FormatCapabilities {
        features: &features,
        base: WorkspaceBase::Empty,
        defaults: RunPolicy { arms: vec![Arm::WithSkill], ..RunPolicy::default() },
        gates: reading::all_cases_pass(),
    };
    let mut rest = suite.clone();
    rest.meta.retain(|key, _| !KEPT_KEYS.contains(&key.as_str()));
    for case in &mut rest.cases {
        case.meta.remove("tags");
        if setup_commands(case).is_some() {
            case.workspace.setup = None;
        }
    }
    Losses::from_suite(&rest, &format)
}

/// The keys of a spec that are kept.
const KEPT_KEYS: [&str; 3] = ["version", "type", "tags"];

fn spec(suite: &Suite, folder: &Path, threshold: Option<Ratio>, stimuli: Vec<Value>) -> Value {
    let mut map = Map::from_iter([("name".to_owned(), json!(suite.name))]);
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    if let Some(description) = &suite.description {
        put("description", json!(description));
    }
    for key in KEPT_KEYS {
        if let Some(value) = suite.meta.get(key) {
            put(key, value.clone());
        }
    }
    let paths: Vec<String> =
        suite.skills.iter().filter_map(|skill| Some(relative_path(skill.path.as_deref()?, folder))).collect();
    match (paths.is_empty(), suite.skills.first()) {
        (false, _) => drop(put("environment", json!({"skills": paths}))),
        (true, Some(skill)) => drop(put("tags", json!({"skill": skill.name}))),
        (true, None) => {}
    }
    let mut defaults = Map::new();
    if let Some(repeat) = writing::shared_repeat(suite) {
        defaults.insert("runs".to_owned(), json!(i64::from(repeat).min(MOST_RUNS)));
    }
    if let Some(timeout) = suite.run_policy.timeout.or(suite.format_defaults.timeout) {
        defaults.insert("timeout".to_owned(), json!(format_duration(timeout)));
    }
    if !defaults.is_empty() {
        put("defaults", Value::Object(defaults));
    }
    if let Some(threshold) = threshold {
        put("scoring", json!({"threshold": threshold.get()}));
    }
    put("stimuli", Value::Array(stimuli));
    Value::Object(map)
}

/// Gives the commands of a setup that stops at the first command that fails, as vally's does.
fn setup_commands(case: &Case) -> Option<&str> {
    let commands = case.workspace.setup.as_deref()?.strip_prefix("set -e\n")?.strip_suffix('\n')?;
    (!commands.trim().is_empty() && !has_parameter(commands)).then_some(commands)
}

/// Writes one case as a stimulus.
struct CaseWriter<'w> {
    case: &'w Case,
    suite: &'w Suite,
    folder: &'w Path,
    threshold: Option<Ratio>,
}

impl CaseWriter<'_> {
    fn write(&self, losses: &mut Losses) -> Option<Value> {
        let case = self.case;
        let turns = match &case.prompt {
            CasePrompt::Turns(turns) => turns.clone(),
            CasePrompt::SkillCommand { .. } => vec![writing::join_prompts(case, self.suite)],
        };
        if turns.iter().any(|turn| turn.trim().is_empty() || has_parameter(turn)) {
            losses.add_whole_case(&case.id, "its prompt is empty, or has what vally takes for a parameter");
            return None;
        }
        let mut map = Map::from_iter([("name".to_owned(), json!(case.id))]);
        match turns.as_slice() {
            [one] => drop(map.insert("prompt".to_owned(), json!(one))),
            several => drop(map.insert("turns".to_owned(), json!(several))),
        }
        self.note_score_losses(losses);
        self.write_checks(&mut map, losses)?;
        let environment = self.environment();
        if !environment.is_empty() {
            map.insert("environment".to_owned(), Value::Object(environment));
        }
        if let Some(runs) = case.repeat {
            map.insert("runs".to_owned(), json!(i64::from(runs).clamp(1, MOST_RUNS)));
        }
        if let Some(timeout) = case.timeout {
            map.insert("timeout".to_owned(), json!(format_duration(timeout)));
        }
        if let Some(tags) = case.meta.get("tags") {
            map.insert("tags".to_owned(), tags.clone());
        }
        Some(Value::Object(map))
    }

    fn note_score_losses(&self, losses: &mut Losses) {
        let PassRule::Score(rule) = self.case.pass_rule else { return };
        if rule.of == ScoreOf::MeanOfTrials && self.threshold.is_some() {
            losses.add_for_case(&self.case.id, "that the mean of its trials decides, and not each");
        }
    }

    /// Writes the checks as graders, limits, and a rubric. Gives `None` if nothing is left.
    fn write_checks(&self, map: &mut Map<String, Value>, losses: &mut Losses) -> Option<()> {
        let by_score = self.threshold.is_some();
        let mut graders = Vec::new();
        let mut constraints = Map::new();
        let mut rubric = Rubric::default();
        for check in &self.case.checks.iter().flat_map(one_skill_each).collect::<Vec<Check>>() {
            let decides_alone = by_score && check.need == CheckNeed::Required;
            if (!by_score || decides_alone && check.weight == CheckWeight::ZERO)
                && self.add_constraint(check, map, &mut constraints, by_score)
            {
                continue;
            }
            if decides_alone {
                losses.add_for_case(&self.case.id, "that some checks must pass whatever the score is");
            }
            let name = |grader: Value| named_grader(grader, check, by_score);
            if let Some(grader) = exact_grader(check, by_score) {
                graders.push(name(grader));
                continue;
            }
            let Some(statement) = writing::rubric_for(
                check,
                losses,
                &self.case.id,
                scale_of(check, by_score),
                &CheckTarget::WholeRun,
            ) else {
                continue;
            };
            let is_plain = is_plain_statement(check, &statement);
            if !(is_plain && rubric.add(&statement, check, by_score)) {
                let config = judge_config(Some(&statement), scale_of(check, by_score));
                graders.push(name(json!({"type": "prompt", "config": config})));
            }
        }
        graders.extend(rubric.grader());
        if graders.is_empty() && constraints.is_empty() && !map.contains_key("expect_activation") {
            losses.add_whole_case(&self.case.id, "nothing is left to expect of it");
            return None;
        }
        if !rubric.items.is_empty() {
            map.insert("rubric".to_owned(), json!(rubric.items));
        }
        map.insert("graders".to_owned(), Value::Array(graders));
        if !constraints.is_empty() {
            map.insert("constraints".to_owned(), Value::Object(constraints));
        }
        Some(())
    }

    /// Writes a check as a limit on the run, each of which must hold. Where scores do not count, only what no grader can
    /// express becomes one.
    fn add_constraint(
        &self,
        check: &Check,
        map: &mut Map<String, Value>,
        constraints: &mut Map<String, Value>,
        by_score: bool,
    ) -> bool {
        if let CheckKind::Activation(activation) = &check.kind {
            let first = self.suite.skills.first().map(|skill| skill.name.clone());
            let is_own = activation.source == ActivationSource::Observed
                && activation.skills.as_slice() == first.as_slice()
                && activation.expect != ActivationExpectation::Either;
            if !by_score || !is_own || map.contains_key("expect_activation") {
                return false;
            }
            let should = activation.expect == ActivationExpectation::Must;
            map.insert("expect_activation".to_owned(), json!(should));
            return true;
        }
        let Some(rule) = PlainRule::of(check, by_score) else { return false };
        let limit = rule.value.as_object().filter(|limit| limit.len() == 1 && !rule.negated);
        let limit = limit.filter(|_| rule.key == "limit").and_then(|limit| limit.iter().next());
        let Some((measure, most)) = limit else { return false };
        let key = match measure.as_str() {
            "turns" => "max_turns",
            "tokens" => "max_tokens",
            "tool_calls" if by_score => "max_tool_calls",
            _ => return false,
        };
        let is_number = most.as_u64().is_some_and(|most| (1..=u64::from(u32::MAX)).contains(&most));
        if !is_number || constraints.contains_key(key) {
            return false;
        }
        constraints.insert(key.to_owned(), most.clone());
        true
    }

    fn environment(&self) -> Map<String, Value> {
        let room = &self.case.workspace;
        let mut environment = Map::new();
        let folders =
            room.overlays.iter().map(|path| json!({"src": relative_path(path, self.folder), "dest": "."}));
        let files = room.files.iter().map(|file| {
            json!({"src": relative_path(&file.source, self.folder), "dest": file.destination.as_str()})
        });
        let files: Vec<Value> = folders.chain(files).collect();
        if !files.is_empty() {
            environment.insert("files".to_owned(), Value::Array(files));
        }
        if let Some(commands) = setup_commands(self.case) {
            environment.insert("commands".to_owned(), json!([commands]));
        }
        environment
    }
}

/// Splits a check that none of several skills is activated: vally's readers make a check of each skill.
fn one_skill_each(check: &Check) -> Vec<Check> {
    let CheckKind::Activation(activation) = &check.kind else { return vec![check.clone()] };
    if activation.expect != ActivationExpectation::MustNot || activation.skills.len() < 2 {
        return vec![check.clone()];
    }
    let share = CheckWeight::new(check.weight.get() / activation.skills.len() as f64);
    let one = |(index, skill): (usize, &String)| Check {
        id: if index == 0 { check.id.clone() } else { format!("{}-{}", check.id, index + 1) },
        weight: share.unwrap_or(check.weight),
        kind: CheckKind::Activation(ActivationCheck { skills: vec![skill.clone()], ..activation.clone() }),
        ..check.clone()
    };
    activation.skills.iter().enumerate().map(one).collect()
}

fn named_grader(mut grader: Value, check: &Check, by_score: bool) -> Value {
    grader["name"] = json!(check.id);
    if by_score && check.weight != CheckWeight::ONE {
        grader["weight"] = writing::number_value(check.weight.get());
    }
    grader
}

/// The statements that one grader judges together, each with the same weight.
#[derive(Default)]
struct Rubric {
    items: Vec<String>,
    weight: Option<CheckWeight>,
    name: String,
    scale: Option<ScoreScale>,
}

impl Rubric {
    /// Adds a statement, unless it counts differently from the others.
    fn add(&mut self, statement: &str, check: &Check, by_score: bool) -> bool {
        let scale = scale_of(check, by_score);
        if self.weight.is_some_and(|weight| by_score && weight != check.weight)
            || self.scale.is_some_and(|known| known != scale)
        {
            return false;
        }
        if self.items.is_empty() {
            self.name.clone_from(&check.id);
        }
        self.weight = Some(check.weight).filter(|_| by_score);
        self.scale = Some(scale);
        self.items.push(statement.to_owned());
        true
    }

    fn grader(&self) -> Option<Value> {
        let scale = self.scale?;
        let mut grader = json!({"type": "prompt", "name": self.name, "config": judge_config(None, scale)});
        // The items share the weight of the grader.
        let weight = self.weight.map_or(1.0, |weight| weight.get() * self.items.len() as f64);
        if self.weight.is_some() && weight != 1.0 {
            grader["weight"] = writing::number_value(weight);
        }
        Some(grader)
    }
}

/// Gives the scale of a judged check that vally can express: where scores do not count, only passing does.
fn scale_of(check: &Check, by_score: bool) -> ScoreScale {
    match &check.kind {
        CheckKind::Judged(judged) if by_score => judged.scale,
        _ => ScoreScale::PassFail,
    }
}

fn judge_config(prompt: Option<&str>, scale: ScoreScale) -> Value {
    let scoring = match scale {
        ScoreScale::PassFail => "binary",
        ScoreScale::OneToFive => "scale_1_5",
        ScoreScale::Unit => "scale_1_10",
    };
    match prompt {
        Some(prompt) => json!({"prompt": prompt, "scoring": scoring}),
        None => json!({"scoring": scoring}),
    }
}

/// Says whether a statement can be an item of a rubric, which is judged word for word. A rubric of another tool is
/// instructions instead.
fn is_plain_statement(check: &Check, rubric: &str) -> bool {
    match &check.kind {
        CheckKind::Judged(judged) => judged.statement == rubric,
        CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => true,
    }
}

/// Gives the grader that the reader takes for the same check; `None` if there is none.
fn exact_grader(check: &Check, by_score: bool) -> Option<Value> {
    first_same(check, by_score, candidates(check, by_score), |grader| read_grader(grader, by_score))
}

/// Gives the graders that may mean the same as a check.
fn candidates(check: &Check, by_score: bool) -> Vec<Value> {
    if let CheckKind::Activation(activation) = &check.kind {
        let key = match activation.expect {
            ActivationExpectation::Must => "required",
            ActivationExpectation::MustNot => "disallowed",
            ActivationExpectation::Either => return Vec::new(),
        };
        return vec![json!({"type": "skill-invocation", "config": {key: activation.skills}})];
    }
    let Some(rule) = PlainRule::of(check, by_score) else { return Vec::new() };
    let not = if rule.negated { "-not" } else { "" };
    let pattern = |text: &str| {
        foreign_pattern(text, PatternLanguage::JavaScriptWithInnerFlags).map(|(pattern, _)| pattern)
    };
    let needle =
        rule.needle().map(|(text, ignore_case)| json!({"substring": text, "case_sensitive": !ignore_case}));
    let regex = Some(&rule).filter(|rule| rule.key == "regex").and_then(|rule| pattern(rule.value.as_str()?));
    let mut made: Vec<Option<Value>> = Vec::new();
    match &check.target {
        CheckTarget::Output => {
            made.push(
                needle.map(|config| json!({"type": format!("output{not}-contains"), "config": config})),
            );
            made.push(regex.map(
                |pattern| json!({"type": format!("output{not}-matches"), "config": {"pattern": pattern}}),
            ));
            made.push(Some(json!({"type": "completed"})).filter(|_| rule.key == "min_length"));
        }
        CheckTarget::Files(globs) if globs.len() == 1 => {
            let path = &globs[0];
            made.push(rule.needle().map(|(text, _)| {
                json!({"type": format!("file{not}-contains"), "config": {"path": path, "value": text}})
            }));
            made.push(regex.map(|pattern| {
                json!({"type": format!("file{not}-matches"), "config": {"path": path, "pattern": pattern}})
            }));
        }
        CheckTarget::WholeRun => {
            made.push(needle.map(|mut config| {
                config["negate"] = json!(rule.negated);
                json!({"type": "transcript-contains", "config": config})
            }));
            made.push(regex.map(|pattern| {
                json!({"type": "transcript-matches", "config": {"pattern": pattern, "negate": rule.negated}})
            }));
        }
        CheckTarget::LastTurn
        | CheckTarget::AllText
        | CheckTarget::File(_)
        | CheckTarget::Files(_)
        | CheckTarget::Pictures(_) => {}
    }
    made.extend(whole_run_graders(&rule, pattern));
    made.into_iter().flatten().collect()
}

/// Gives graders of files, tool calls, limits and commands.
fn whole_run_graders(rule: &PlainRule, pattern: impl Fn(&str) -> Option<String>) -> Vec<Option<Value>> {
    let value = &rule.value;
    match rule.key.as_str() {
        "file" | "files" => {
            let exists =
                if value.get("exists") == Some(&json!(false)) { "file-not-exists" } else { "file-exists" };
            let path = value.get("path");
            vec![
                rule.only_text("contains")
                    .map(|text| json!({"type": "file-contains", "config": {"path": path, "value": text}})),
                rule.text("matches").and_then(&pattern).map(
                    |pattern| json!({"type": "file-matches", "config": {"path": path, "pattern": pattern}}),
                ),
                Some(json!({"type": exists, "config": {"path": path}})),
            ]
        }
        // A file that is there, without a text or a match in it.
        "all" | "any" => {
            let list = if rule.key == "any" { value[0].get("all").unwrap_or(value) } else { value };
            let content = &list[1]["not"]["file"];
            let path = &content["path"];
            vec![
                content["contains"][0]
                    .as_str()
                    .map(|text| json!({"type": "file-not-contains", "config": {"path": path, "value": text}})),
                content["matches"].as_str().and_then(&pattern).map(
                    |pattern| json!({"type": "file-not-matches", "config": {"path": path, "pattern": pattern}}),
                ),
            ]
        }
        "tool_used" => {
            let mut call = json!({"name": value["name"]});
            if let Some(input) = rule.text("input").and_then(&pattern) {
                call["command"] = json!(input);
            }
            let key = if rule.negated { "disallowed" } else { "required" };
            vec![Some(json!({"type": "tool-calls", "config": {key: [call]}}))]
        }
        "limit" => {
            let seconds = value["seconds"]
                .as_f64()
                .and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
            vec![
                seconds.map(|most| json!({"type": "wall-time", "config": {"max": format_duration(most)}})),
                Some(json!({"type": "tool-call-count", "config": {"max": value["tool_calls"]}})),
            ]
        }
        "command" => {
            let mut config = match value.as_object() {
                Some(map) => map.clone(),
                None => Map::from_iter([("run".to_owned(), value.clone())]),
            };
            for (from, to) in [("run", "command"), ("exit_code", "expected_exit_code")] {
                if let Some(value) = config.remove(from) {
                    config.insert(to.to_owned(), value);
                }
            }
            if let Some(matches) = config.get("stdout_matches").and_then(Value::as_str).map(&pattern) {
                config.insert("stdout_matches".to_owned(), json!(matches));
            }
            vec![Some(json!({"type": "run-command", "config": config}))]
        }
        _ => Vec::new(),
    }
}

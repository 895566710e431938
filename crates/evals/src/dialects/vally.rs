//! The format of vally: stimuli with graders, an aggregate of their scores, and a threshold.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::reading::graders::{Unsupported, make_ids_unique, require_all, scored_rule};
use super::reading::{self, SkillHint, UniqueIds, UnusedKeys};
use super::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum_core::model::{
    ActivationExpectation, Arm, Case, CasePrompt, Check, CheckNeed, CheckWeight, Diagnostics, JudgePolicy,
    PassRule, Ratio, RunPolicy, ScoreOf, ScoreRule, SkillRef, Suite, WorkspaceBase, WorkspaceSpec,
    parse_duration,
};
use practicum_core::tree::{NodeData, ObjectReader, SourceFile, TreeNode, report_wrong_type};

mod environment;
mod experiment;
mod export;
mod graders;
mod schema;

use environment::Environment;
use graders::VallyGraderReader;

/// The adapter for vally's format.
pub struct Vally;

const NAME: &str = "vally";
const MOST_RUNS: i64 = 1000;

impl Dialect for Vally {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["eval.yaml", "eval.yml", "*.eval.yaml", "*.eval.yml", "eval.vally.yaml", "*.experiment.yaml"]
    }

    fn recognition_rule(&self) -> &'static str {
        "a file with \"stimuli\"; an experiment with \"evals\" and \"variants\""
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let root = &source.root;
        if root.get("stimuli").is_some_and(|stimuli| stimuli.as_list().is_some()) {
            FormatMatch::with_points(150, "it has \"stimuli\"")
        } else if root.has("variants") && root.has("evals") {
            FormatMatch::with_points(150, "it is an experiment with \"evals\" and \"variants\"")
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
        match source.root.has("variants") && !source.root.has("stimuli") {
            true => experiment::lower(source, place, diagnostics),
            false => lower_spec(source, place, diagnostics),
        }
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export(suite, folder)
    }
}

/// Reads a spec: its settings, and each stimulus as a case.
fn lower_spec(source: &SourceFile, place: &EvalFileLocation, diagnostics: &mut Diagnostics) -> Option<Suite> {
    let mut file = ObjectReader::new(&source.root, "an eval", diagnostics)?;
    let name =
        file.text("name", diagnostics).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let description = file.text("description", diagnostics).map(|text| text.trim().to_owned());
    let mut defaults = Defaults::default();
    // The older name comes first, so that the newer one wins.
    for key in ["config", "defaults"] {
        if let Some(node) = file.get_non_null(key) {
            defaults.read(node, diagnostics);
        }
    }
    let scoring = Scoring::read(&mut file, diagnostics);
    let mut shared = Environment::default();
    for key in ["agent_environment", "environment"] {
        if let Some(node) = file.get_non_null(key) {
            shared.read(node, source, place, diagnostics);
        }
    }
    if file.get_non_null("constraints").is_some() {
        let node = file.get_non_null("constraints");
        shared.constraints = node.cloned();
    }
    let mut reader = StimulusReader {
        source,
        place,
        scoring,
        shared,
        ids: UniqueIds::default(),
        skills: Vec::new(),
        hint: skill_hint(&source.root),
    };
    let stimuli = file.list("stimuli", diagnostics).unwrap_or_default();
    let mut cases = Vec::new();
    for node in stimuli {
        cases.extend(reader.read(node, diagnostics));
    }
    if stimuli.is_empty() {
        diagnostics.error("no-cases", source.root.span, "there is no stimulus, so there is nothing to run");
    }
    let skills = reader.finish(diagnostics);
    let mut meta = BTreeMap::new();
    for key in ["version", "type", "tags"] {
        if let Some(node) = file.get_non_null(key) {
            meta.insert(key.to_owned(), node.to_value());
        }
    }
    meta.extend(UnusedKeys::refusing_unread_cases().collect_unused(&file, "an eval", diagnostics));
    let name =
        name.unwrap_or_else(|| skills.first().map_or_else(|| NAME.to_owned(), |skill| skill.name.clone()));
    Some(Suite {
        description,
        skills,
        cases,
        run_policy: RunPolicy { repeat: defaults.runs, timeout: defaults.timeout, ..RunPolicy::default() },
        format_defaults: RunPolicy {
            repeat: Some(1),
            arms: vec![Arm::WithSkill],
            workspace: Some(WorkspaceBase::Empty),
            ..RunPolicy::default()
        },
        judge_policy: JudgePolicy::default(),
        gates: reading::all_cases_pass(),
        meta,
        ..reading::blank_suite(NAME, source, name)
    })
}

/// Gives the name of the skill that the tags of a spec name.
fn skill_hint(root: &TreeNode) -> Option<String> {
    root.get("tags")?.get("skill")?.as_text().map(str::to_owned)
}

/// The settings of all stimuli.
#[derive(Default)]
struct Defaults {
    runs: Option<u32>,
    timeout: Option<Duration>,
}

impl Defaults {
    fn read(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) {
        let Some(mut object) = ObjectReader::new(node, "\"defaults\"", diagnostics) else { return };
        let runs_span = object.get_non_null("runs").map(|node| node.span);
        match object.int("runs", 0, MOST_RUNS, diagnostics) {
            Some(0) => {
                let message = "\"runs\" is 0, which only checks the file in vally; here one trial runs";
                diagnostics.warning("unused-setting", runs_span, message);
            }
            Some(runs) => self.runs = u32::try_from(runs).ok(),
            None => {}
        }
        if let Some(node) = object.get_non_null("timeout") {
            self.timeout = read_duration(node, "timeout", diagnostics).or(self.timeout);
        }
        // These choose how vally runs, and not what is asked or expected.
        for key in [
            "model",
            "judge_model",
            "reasoning_effort",
            "judge_reasoning_effort",
            "executor",
            "max_retries",
            "parallel",
            "workers",
        ] {
            object.get(key);
        }
        UnusedKeys::default().collect_unused(&object, "\"defaults\"", diagnostics);
    }
}

/// Reads a duration with a unit, or a number of seconds.
fn read_duration(node: &TreeNode, key: &str, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let text = match &node.data {
        NodeData::Text(text) => text.clone(),
        NodeData::Int(seconds) => seconds.to_string(),
        NodeData::Float(seconds) => seconds.to_string(),
        _ => {
            report_wrong_type(node, key, "a duration", diagnostics);
            return None;
        }
    };
    let duration = parse_duration(&text);
    if duration.is_none() {
        diagnostics.error("invalid-duration", node.span, format!("{text:?} is not a duration like 2m"));
    }
    duration
}

/// How the scores of graders become one.
#[derive(Default, Clone)]
struct Scoring {
    threshold: Option<Ratio>,
    /// The weight of each type of grader.
    weights: BTreeMap<String, f64>,
}

impl Scoring {
    fn read(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Self {
        let mut scoring = Self::default();
        let Some(node) = file.get_non_null("scoring") else { return scoring };
        let Some(mut object) = ObjectReader::new(node, "\"scoring\"", diagnostics) else { return scoring };
        scoring.threshold = object.number("threshold", 0.0, 1.0, diagnostics).and_then(Ratio::new);
        if let Some(node) = object.get_non_null("weights") {
            for entry in node.as_map().unwrap_or_default() {
                let number = entry.value.to_value().as_f64().filter(|number| *number >= 0.0);
                match number {
                    Some(number) => drop(scoring.weights.insert(entry.key.clone(), number)),
                    None => {
                        diagnostics.error("out-of-range", entry.value.span, "a weight is a number, 0 or more")
                    }
                }
            }
        }
        UnusedKeys::default().collect_unused(&object, "\"scoring\"", diagnostics);
        scoring
    }
}

/// Reads stimuli into cases.
struct StimulusReader<'r> {
    source: &'r SourceFile,
    place: &'r EvalFileLocation,
    scoring: Scoring,
    shared: Environment,
    ids: UniqueIds,
    /// The skills that the stimuli name.
    skills: Vec<SkillRef>,
    hint: Option<String>,
}

impl StimulusReader<'_> {
    fn read(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Case> {
        let mut object = ObjectReader::new(node, "a stimulus", diagnostics)?;
        let name = object.required_text("name", diagnostics)?.trim().to_owned();
        let mut unsupported = Unsupported::default();
        let turns = read_turns(&mut object, diagnostics)?;
        if turns.iter().any(|turn| has_parameter(turn)) {
            unsupported.add("its prompt has a parameter ${NAME}, which vally gets with --param");
        }
        let mut own = self.shared.clone();
        if let Some(node) = object.get_non_null("environment") {
            own.read(node, self.source, self.place, diagnostics);
        }
        for key in ["constraints"] {
            if let Some(node) = object.get_non_null(key) {
                own.constraints = Some(node.clone());
            }
        }
        let mut defaults = Defaults::default();
        if let Some(node) = object.get_non_null("config") {
            defaults.read(node, diagnostics);
        }
        let runs = object.int("runs", 1, MOST_RUNS, diagnostics).and_then(|runs| u32::try_from(runs).ok());
        let timeout = match object.get_non_null("timeout") {
            Some(node) => read_duration(node, "timeout", diagnostics),
            None => None,
        };
        let rubric = object.texts("rubric", diagnostics).unwrap_or_default();
        let rubric: Vec<String> = rubric.into_iter().map(|(text, _)| text.trim().to_owned()).collect();
        let mut reader = VallyGraderReader::new(
            &rubric,
            turns.len(),
            self.scoring.threshold.is_some(),
            &self.scoring.weights,
        );
        let graders = object.list("graders", diagnostics).unwrap_or_default();
        for node in graders {
            reader.read(node, &mut unsupported, diagnostics);
        }
        if !rubric.is_empty() && !reader.has_judge() {
            let message = "\"rubric\" is graded only by a grader of type prompt, and there is none";
            diagnostics.warning("unchecked-rubric", node.span, message);
        }
        let mut checks = reader.into_checks();
        let pass_rule = match self.scoring.threshold {
            Some(at_least) => PassRule::Score(ScoreRule { at_least, of: ScoreOf::EachTrial }),
            None => PassRule::EveryRequiredCheck,
        };
        let activation = object.bool("expect_activation", diagnostics);
        checks.extend(own.constraint_checks(
            activation,
            &self.first_skill(&own),
            &mut unsupported,
            diagnostics,
        ));
        if self.scoring.threshold.is_none() {
            require_all(&mut checks);
        }
        make_ids_unique(&mut checks);
        let mut meta = BTreeMap::new();
        if let Some(node) = object.get_non_null("tags") {
            meta.insert("tags".to_owned(), node.to_value());
        }
        meta.extend(UnusedKeys::default().collect_unused(&object, "a stimulus", diagnostics));
        own.unsupported.iter().for_each(|why| unsupported.add(why.clone()));
        for skill in &own.skills {
            if self.skills.iter().all(|known| known.name != skill.name) {
                self.skills.push(skill.clone());
            }
        }
        Some(Case {
            prompt: CasePrompt::Turns(turns),
            workspace: WorkspaceSpec {
                overlays: own.overlays,
                files: own.files,
                setup: (!own.commands.is_empty()).then(|| format!("set -e\n{}\n", own.commands.join("\n"))),
                ..WorkspaceSpec::default()
            },
            checks,
            timeout: timeout.or(defaults.timeout),
            repeat: runs.or(defaults.runs),
            pass_rule,
            unsupported: unsupported.into_reason(),
            meta,
            ..reading::blank_case(self.ids.make_unique(&name), String::new())
        })
    }

    /// Gives the name of the skill that the spec is most likely about.
    fn first_skill(&self, own: &Environment) -> String {
        let named = own.skills.first().map(|skill| skill.name.clone()).or_else(|| self.hint.clone());
        named.unwrap_or_else(|| folder_name(self.source.folder()))
    }

    /// Gives the skills of the suite: those that the file names, otherwise the one around it.
    fn finish(self, diagnostics: &mut Diagnostics) -> Vec<SkillRef> {
        if self.place.skill.is_some() || self.skills.is_empty() {
            let hint = self.hint.as_deref().map(|name| SkillHint {
                name,
                span: practicum_core::model::Span::default(),
                is_decisive: true,
            });
            return vec![reading::skill_beside(self.source.folder(), self.place, hint, diagnostics)];
        }
        self.skills
    }
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().map_or_else(|| "skill".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Reads the messages of a stimulus: `prompt`, or `turns` as texts or mappings.
fn read_turns(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<String>> {
    let Some(node) = object.get_non_null("turns") else {
        return object.required_text("prompt", diagnostics).map(|prompt| vec![prompt.trim().to_owned()]);
    };
    object.get("prompt");
    let Some(items) = node.as_list() else {
        report_wrong_type(node, "turns", "a list", diagnostics);
        return None;
    };
    let text = |item: &TreeNode| {
        item.as_text().or_else(|| item.get("prompt")?.as_text()).map(|text| text.trim().to_owned())
    };
    let turns: Option<Vec<String>> = items.iter().map(text).collect();
    let turns = turns.filter(|turns| !turns.is_empty() && turns.iter().all(|turn| !turn.is_empty()));
    if turns.is_none() {
        diagnostics.error(
            "wrong-type",
            node.span,
            "each of the \"turns\" must be a text, or have a \"prompt\"",
        );
    }
    turns
}

/// Says whether a text has a parameter that vally replaces: `${NAME}`.
fn has_parameter(text: &str) -> bool {
    text.split("${").skip(1).any(|rest| {
        let name = rest.split('}').next().unwrap_or_default();
        rest.contains('}')
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
    })
}

/// Makes a required check that does not count in the score.
fn required(check: Check) -> Check {
    Check { need: CheckNeed::Required, weight: CheckWeight::ZERO, ..check }
}

/// Makes a required check of activation.
fn required_activation(id: &str, skill: &str, expect: ActivationExpectation) -> Check {
    let check = reading::activation_check(vec![skill.to_owned()], expect);
    required(Check { id: id.to_owned(), ..check })
}

/// Makes a required check of a rule; the error says why there is none.
fn required_rule(id: &str, key: &str, value: &Value) -> Result<Check, String> {
    scored_rule(id, key, value).map(required)
}

#[cfg(test)]
mod tests;

/// A path that a spec gives, seen from its folder.
fn spec_path(source: &SourceFile, path: &str) -> PathBuf {
    practicum_skills::skill::normalise_path(&source.folder().join(path))
}

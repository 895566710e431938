//! Writes a suite as clauditor specs. A spec is about one invocation of one skill, so each case becomes a spec of
//! its own. The first spec has the queries.

mod inputs;
mod invocation;
mod sections;
mod settings;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::{Map, Value, json};

use self::invocation::ExportedInvocation;
use super::super::reading::{UniqueIds, slug};
use super::super::writing::{self, FormatCapabilities, FormatFeature, Losses};
use super::super::{Dialect, EvalFileLocation, EvalRegistry, ExportedFile, ExportedSuite};
use super::unused_spec_keys::restore_keys;
use super::{Clauditor, NAME, triggers};
use practicum_core::model::{
    ActivationExpectation, Case, CasePrompt, Check, Diagnostics, PassRule, Suite, WorkspaceBase,
    WorkspaceSpec,
};
use practicum_core::tree::{SourceFile, SourceSyntax};

pub fn export_suite(suite: &Suite, folder: &Path) -> ExportedSuite {
    let suite = &writing::require_counted_checks(suite);
    let mut losses = Losses::default();
    let (queries, cases): (Vec<&Case>, Vec<&Case>) =
        suite.cases.iter().partition(|case| query_of_case(case, suite).is_some());
    let mut specs: Vec<ExportedSpec<'_>> = Vec::new();
    for case in cases {
        match ExportedInvocation::from_case(case, &mut losses) {
            Some(invocation) => {
                specs.push(ExportedSpec { invocation: Some((case, invocation)), queries: Vec::new() })
            }
            None => losses.add_whole_case(&case.id, "nothing is left to expect of it"),
        }
    }
    match specs.first_mut() {
        Some(first) => first.queries = queries,
        None if queries.is_empty() => {}
        None => specs.push(ExportedSpec { invocation: None, queries }),
    }
    let skill = skill_name(suite, &mut losses);
    let alone = specs.len() == 1;
    let mut names = UniqueIds::default();
    let mut files = Vec::new();
    for spec in &specs {
        let mut writer = SpecWriter { suite, folder, skill: &skill, losses: &mut losses };
        let document = writer.write_document(spec, alone);
        let stem = writing::file_stem(&skill);
        let wanted = match &spec.invocation {
            Some((case, _)) if !files.is_empty() => format!("{stem}-{}", slug(&case.id, "case")),
            Some(_) | None => stem,
        };
        let name = format!("{}.eval.json", names.make_unique(&wanted));
        files.push(ExportedFile { name, syntax: Some(SourceSyntax::Json), document });
    }
    ExportedSuite { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

/// The content of one exported file.
struct ExportedSpec<'s> {
    invocation: Option<(&'s Case, ExportedInvocation)>,
    queries: Vec<&'s Case>,
}

/// Gives the query of a case that checks only whether the skill is activated; `None` for other cases.
fn query_of_case<'c>(case: &'c Case, suite: &Suite) -> Option<(&'c str, ActivationExpectation)> {
    let should = writing::trigger_query(case, suite)?.get("should_trigger")?.as_bool()?;
    let CasePrompt::Turns(turns) = &case.prompt else { return None };
    let query = turns.first().filter(|query| !query.trim().is_empty())?;
    Some((query, if should { ActivationExpectation::Must } else { ActivationExpectation::MustNot }))
}

fn skill_name(suite: &Suite, losses: &mut Losses) -> String {
    let named = suite.skills.first();
    if named.is_some_and(|skill| skill.plugin.is_some()) {
        losses.add_for_suite("the plugin of its skill");
    }
    let names = named.map(|skill| &skill.name).into_iter().chain([&suite.name]);
    let name = names.into_iter().find(|name| !name.trim().is_empty()).map_or("skill", String::as_str);
    if named.is_none() {
        losses.add_for_suite(format!("that it names no skill: here it is about \"{name}\""));
    }
    name.to_owned()
}

/// A writer for specs, one after the other.
struct SpecWriter<'w> {
    suite: &'w Suite,
    folder: &'w Path,
    skill: &'w str,
    losses: &'w mut Losses,
}

impl SpecWriter<'_> {
    fn write_document(&mut self, spec: &ExportedSpec<'_>, alone: bool) -> Value {
        let mut map = Map::new();
        map.insert("skill_name".to_owned(), json!(self.skill));
        if let Some(description) = &self.suite.description {
            map.insert("description".to_owned(), json!(description));
        }
        let mut ids = UniqueIds::default();
        let mut cases = Vec::new();
        if let Some((case, invocation)) = &spec.invocation {
            if ids.make_unique(self.skill) != case.id {
                self.losses.add_for_case(&case.id, "its id, which here is the name of its skill");
            }
            map.insert("test_args".to_owned(), json!(self.command_arguments(case)));
            let inputs = inputs::write_inputs(case, &invocation.looks_at, self.folder, self.losses);
            if !inputs.is_empty() {
                map.insert("input_files".to_owned(), json!(inputs));
            }
            invocation.write(&mut map);
            cases.push(without_exported_parts(case));
        }
        cases.extend(self.write_queries(&spec.queries, &mut ids, &mut map));
        let rest = Suite { cases, ..self.suite.clone() };
        let rest = settings::write_settings(spec, rest, alone, &mut map, self.losses);
        self.losses.extend(Losses::from_suite(&rest, &format_capabilities()));
        self.add_meta(map)
    }

    /// Gives the text after the skill's command.
    fn command_arguments(&mut self, case: &Case) -> String {
        let turns = match &case.prompt {
            CasePrompt::SkillCommand { args } => return args.clone(),
            CasePrompt::Turns(turns) => turns,
        };
        // A message that already is the command must not become its own argument.
        if let [message] = turns.as_slice()
            && let Some(args) = message.trim().strip_prefix(&format!("/{}", self.skill))
            && (args.is_empty() || args.starts_with(char::is_whitespace))
        {
            return args.trim().to_owned();
        }
        self.losses.add_for_case(&case.id, "its message, which became the arguments of the skill's command");
        writing::join_prompts(case, self.suite)
    }

    fn write_queries(
        &mut self,
        queries: &[&Case],
        ids: &mut UniqueIds,
        map: &mut Map<String, Value>,
    ) -> Vec<Case> {
        let mut rest = Vec::new();
        let mut lists = Map::new();
        for (key, expect) in triggers::QUERY_LISTS {
            let mut list = Vec::new();
            for case in queries {
                let Some((query, _)) = query_of_case(case, self.suite).filter(|(_, own)| *own == expect)
                else {
                    continue;
                };
                list.push(json!(query));
                if triggers::query_id(query, ids) != case.id {
                    self.losses.add_for_case(&case.id, "its id, which here is made from its words");
                }
                rest.push((*case).clone());
            }
            lists.insert(key.to_owned(), Value::Array(list));
        }
        if !queries.is_empty() {
            map.insert("trigger_tests".to_owned(), Value::Object(lists));
        }
        rest
    }

    /// Adds the keys that were kept from the suite's source file, as long as they have no effect here either.
    fn add_meta(&mut self, map: Map<String, Value>) -> Value {
        let mut document = Value::Object(map);
        let meaning = self.read_back(&document);
        for (key, value) in &self.suite.meta {
            let mut kept = Map::new();
            kept.insert(key.clone(), value.clone());
            let with = restore_keys(&document, &Value::Object(kept));
            match with.filter(|with| {
                let read = self.read_back(with);
                read.as_ref().and_then(|suite| suite.meta.get(key)) == Some(value)
                    && used_parts(read.as_ref()) == used_parts(meaning.as_ref())
            }) {
                Some(with) => document = with,
                None => {
                    self.losses.add_for_suite(format!("the key \"{key}\", which means something else here"));
                }
            }
        }
        document
    }

    /// Reads a document back as a suite. Gives `None` if it would not be recognised as a clauditor spec, and only
    /// as that, or has errors.
    fn read_back(&self, document: &Value) -> Option<Suite> {
        let mut diagnostics = Diagnostics::default();
        let path = self.folder.join("a.eval.json");
        let source = SourceFile::parse(&path, document.to_string(), SourceSyntax::Json, &mut diagnostics)?;
        let decision = EvalRegistry::default().decide_format(&source);
        if decision.chosen()?.format.name() != NAME || !decision.rivals().is_empty() {
            return None;
        }
        let place = EvalFileLocation::new(self.folder.to_owned(), self.folder.to_owned());
        let suite = Clauditor.lower(&source, &place, &mut diagnostics)?;
        (!diagnostics.has_errors()).then_some(suite)
    }
}

/// Gives a suite without the parts that have no effect.
fn used_parts(suite: Option<&Suite>) -> Option<Suite> {
    let suite = suite?.clone();
    let digest = practicum_core::model::Digest::of_bytes(b"");
    Some(Suite {
        meta: Default::default(),
        origin: practicum_core::model::Origin { digest, ..suite.origin },
        ..suite
    })
}

/// Gives a case without the parts that its spec expresses, so that the rest can be reported as lost.
fn without_exported_parts(case: &Case) -> Case {
    let stimulus = match &case.prompt {
        CasePrompt::SkillCommand { .. } => CasePrompt::Turns(Vec::new()),
        CasePrompt::Turns(turns) => CasePrompt::Turns(turns.clone()),
    };
    let pass_when = match case.pass_rule {
        PassRule::JudgedThresholds { .. } => PassRule::EveryRequiredCheck,
        other @ (PassRule::EveryRequiredCheck
        | PassRule::ActivationRate(_)
        | PassRule::Score(_)
        | PassRule::CountOnly) => other,
    };
    Case {
        prompt: stimulus,
        workspace: WorkspaceSpec { files: Vec::new(), ..case.workspace.clone() },
        checks: Vec::<Check>::new(),
        timeout: None,
        repeat: None,
        pass_rule: pass_when,
        ..case.clone()
    }
}

/// Gives what the format can express. `write_settings` has already written the settings and gates, so the
/// remaining ones cannot be expressed.
fn format_capabilities() -> FormatCapabilities<'static> {
    FormatCapabilities {
        features: &[FormatFeature::Description, FormatFeature::Skill, FormatFeature::SuiteMeta],
        base: WorkspaceBase::Project,
        defaults: Default::default(),
        gates: Vec::new(),
    }
}

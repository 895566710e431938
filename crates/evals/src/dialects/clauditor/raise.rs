//! A suite as specs. A spec is about one invocation of one skill, so each case makes a spec of its
//! own; the queries stand in the first.

mod inputs;
mod invocation;
mod sections;
mod settings;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::{Map, Value, json};

use self::invocation::Invocation;
use super::super::reading::{Ids, slug};
use super::super::writing::{self, Losses, Said, Says};
use super::super::{DIALECTS, Dialect, Fit, Place, Raised, RaisedFile};
use super::unused::put_back;
use super::{Clauditor, NAME, triggers};
use practicum_core::model::{Base, Case, Check, Diagnostics, Expect, PassRule, Room, Stimulus, Suite};
use practicum_core::tree::{Source, Syntax};

pub fn raise(suite: &Suite, folder: &Path) -> Raised {
    let mut losses = Losses::default();
    let (queries, cases): (Vec<&Case>, Vec<&Case>) =
        suite.cases.iter().partition(|case| query(case, suite).is_some());
    let mut specs: Vec<Spec<'_>> = Vec::new();
    for case in cases {
        match Invocation::of(case, &mut losses) {
            Some(invocation) => specs.push(Spec { invoked: Some((case, invocation)), queries: Vec::new() }),
            None => losses.whole_case(&case.id, "nothing is left to expect of it"),
        }
    }
    match specs.first_mut() {
        Some(first) => first.queries = queries,
        None if queries.is_empty() => {}
        None => specs.push(Spec { invoked: None, queries }),
    }
    let skill = skill_name(suite, &mut losses);
    let alone = specs.len() == 1;
    let mut names = Ids::default();
    let mut files = Vec::new();
    for spec in &specs {
        let mut writer = Writer { suite, folder, skill: &skill, losses: &mut losses };
        let document = writer.document(spec, alone);
        let stem = writing::file_stem(&skill);
        let wanted = match &spec.invoked {
            Some((case, _)) if !files.is_empty() => format!("{stem}-{}", slug(&case.id, "case")),
            Some(_) | None => stem,
        };
        let name = format!("{}.eval.json", names.derive(&wanted));
        files.push(RaisedFile { name, syntax: Syntax::Json, document });
    }
    Raised { files, lost_cases: losses.lost_cases(), losses: losses.into_sentences() }
}

/// What becomes one file.
struct Spec<'s> {
    invoked: Option<(&'s Case, Invocation)>,
    queries: Vec<&'s Case>,
}

/// A case that asks no more than whether the skill fires.
fn query<'c>(case: &'c Case, suite: &Suite) -> Option<(&'c str, Expect)> {
    let should = writing::trigger(case, suite)?.get("should_trigger")?.as_bool()?;
    let Stimulus::Turns(turns) = &case.stimulus else { return None };
    let query = turns.first().filter(|query| !query.trim().is_empty())?;
    Some((query, if should { Expect::Must } else { Expect::MustNot }))
}

fn skill_name(suite: &Suite, losses: &mut Losses) -> String {
    let named = suite.skills.first();
    if named.is_some_and(|skill| skill.plugin.is_some()) {
        losses.suite("the plugin of its skill");
    }
    let names = named.map(|skill| &skill.name).into_iter().chain([&suite.name]);
    let name = names.into_iter().find(|name| !name.trim().is_empty()).map_or("skill", String::as_str);
    if named.is_none() {
        losses.suite(format!("that it names no skill: here it is about \"{name}\""));
    }
    name.to_owned()
}

/// Writes one spec after the other.
struct Writer<'w> {
    suite: &'w Suite,
    folder: &'w Path,
    skill: &'w str,
    losses: &'w mut Losses,
}

impl Writer<'_> {
    fn document(&mut self, spec: &Spec<'_>, alone: bool) -> Value {
        let mut map = Map::new();
        map.insert("skill_name".to_owned(), json!(self.skill));
        if let Some(description) = &self.suite.description {
            map.insert("description".to_owned(), json!(description));
        }
        let mut ids = Ids::default();
        let mut cases = Vec::new();
        if let Some((case, invocation)) = &spec.invoked {
            if ids.derive(self.skill) != case.id {
                self.losses.case(&case.id, "its id, which here is the name of its skill");
            }
            map.insert("test_args".to_owned(), json!(self.arguments(case)));
            let inputs = inputs::write(case, &invocation.looks_at, self.folder, self.losses);
            if !inputs.is_empty() {
                map.insert("input_files".to_owned(), json!(inputs));
            }
            invocation.write(&mut map);
            cases.push(without_what_is_said(case));
        }
        cases.extend(self.queries(&spec.queries, &mut ids, &mut map));
        let rest = Suite { cases, ..self.suite.clone() };
        let rest = settings::write(spec, rest, alone, &mut map, self.losses);
        self.losses.extend(Losses::of(&rest, &format()));
        self.keep_meta(map)
    }

    /// What stands after the skill's command.
    fn arguments(&mut self, case: &Case) -> String {
        let turns = match &case.stimulus {
            Stimulus::SkillCommand { args } => return args.clone(),
            Stimulus::Turns(turns) => turns,
        };
        // A message that is the command already is not to become its own argument.
        if let [message] = turns.as_slice()
            && let Some(args) = message.trim().strip_prefix(&format!("/{}", self.skill))
            && (args.is_empty() || args.starts_with(char::is_whitespace))
        {
            return args.trim().to_owned();
        }
        self.losses.case(&case.id, "its message, which became the arguments of the skill's command");
        writing::one_prompt(case, self.suite)
    }

    fn queries(&mut self, queries: &[&Case], ids: &mut Ids, map: &mut Map<String, Value>) -> Vec<Case> {
        let mut rest = Vec::new();
        let mut lists = Map::new();
        for (key, expect) in triggers::LISTS {
            let mut list = Vec::new();
            for case in queries {
                let Some((query, _)) = query(case, self.suite).filter(|(_, own)| *own == expect) else {
                    continue;
                };
                list.push(json!(query));
                if triggers::id(query, ids) != case.id {
                    self.losses.case(&case.id, "its id, which here is made from its words");
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

    /// Adds what was kept from the file the suite came from, as far as it means nothing here either.
    fn keep_meta(&mut self, map: Map<String, Value>) -> Value {
        let mut document = Value::Object(map);
        let meaning = self.read(&document);
        for (key, value) in &self.suite.meta {
            let mut kept = Map::new();
            kept.insert(key.clone(), value.clone());
            let with = put_back(&document, &Value::Object(kept));
            match with.filter(|with| {
                let read = self.read(with);
                read.as_ref().and_then(|suite| suite.meta.get(key)) == Some(value)
                    && said(read.as_ref()) == said(meaning.as_ref())
            }) {
                Some(with) => document = with,
                None => {
                    self.losses.suite(format!("the key \"{key}\", which means something else here"));
                }
            }
        }
        document
    }

    /// The suite that a document would be here, if it would be a spec and nothing else.
    fn read(&self, document: &Value) -> Option<Suite> {
        let mut diagnostics = Diagnostics::default();
        let path = self.folder.join("a.eval.json");
        let source = Source::parse(&path, document.to_string(), Syntax::Json, &mut diagnostics)?;
        let sure = DIALECTS.iter().filter(|dialect| dialect.recognise(&source) == Fit::Sure);
        if sure.map(|dialect| dialect.name()).collect::<Vec<_>>() != [NAME] {
            return None;
        }
        let place = Place {
            root: self.folder.to_owned(),
            project: self.folder.to_owned(),
            plugins: None,
            skill: None,
        };
        let suite = Clauditor.lower(&source, &place, &mut diagnostics)?;
        (!diagnostics.has_errors()).then_some(suite)
    }
}

/// Everything of a suite that a stage uses.
fn said(suite: Option<&Suite>) -> Option<Suite> {
    let suite = suite?.clone();
    let digest = practicum_core::model::Digest::of(b"");
    Some(Suite {
        meta: Default::default(),
        origin: practicum_core::model::Origin { digest, ..suite.origin },
        ..suite
    })
}

/// A case without what its spec says, so that the rest can be told as lost.
fn without_what_is_said(case: &Case) -> Case {
    let stimulus = match &case.stimulus {
        Stimulus::SkillCommand { .. } => Stimulus::Turns(Vec::new()),
        Stimulus::Turns(turns) => Stimulus::Turns(turns.clone()),
    };
    let pass_when = match case.pass_when {
        PassRule::Graded { .. } => PassRule::EveryRequiredCheck,
        other @ (PassRule::EveryRequiredCheck | PassRule::FireRate(_) | PassRule::Tally) => other,
    };
    Case {
        stimulus,
        room: Room { files: Vec::new(), ..case.room.clone() },
        checks: Vec::<Check>::new(),
        timeout: None,
        repeat: None,
        pass_when,
        ..case.clone()
    }
}

/// The settings and gates are written by hand, so what is left of them has no word here.
fn format() -> Said<'static> {
    Said {
        says: &[Says::Description, Says::Skill, Says::SuiteMeta],
        base: Base::Project,
        defaults: Default::default(),
        gates: Vec::new(),
    }
}

//! Assertions as people write them: a sentence, or an object that names a kind of check.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::reading::{self, Ids, Kept, slug};
use super::super::rules;
use super::super::writing::in_words;
use crate::score::rule_kind;
use practicum_core::model::{Check, CheckKind, Diagnostics, LooksAt, Need, Rule, Span};
use practicum_core::tree::{Data, Node, Object, closest, text_of, wrong_type};

/// The checks of one eval, as they are read.
#[derive(Default)]
pub struct Checks<'n> {
    pub list: Vec<Check>,
    /// Whether something here was wrong, so that an empty list is not the author's intention.
    pub refused: bool,
    ids: Ids,
    /// What assertions say that no check does, by check.
    rest: Vec<(String, Object<'n>)>,
}

impl<'n> Checks<'n> {
    /// Takes in one that stands under a key.
    pub fn add(&mut self, node: &'n Node, key: &str, diagnostics: &mut Diagnostics) {
        let added = match &node.data {
            Data::Text(text) if text.trim().is_empty() => {
                diagnostics.error("empty-text", node.span, "an assertion must not be blank");
                None
            }
            Data::Text(text) => {
                let check = reading::judged(self.ids.derive(&slug(text, "assertion")), text);
                self.list.push(check);
                Some(())
            }
            Data::Map(_) => self.object(node, diagnostics),
            Data::Null | Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::List(_) => {
                wrong_type(node, key, "texts or mappings", diagnostics);
                None
            }
        };
        self.refused |= added.is_none();
    }

    /// The keys nobody asked for, kept by check.
    pub fn more(&self, kept: &mut Kept, diagnostics: &mut Diagnostics) -> Option<Value> {
        let mut all = BTreeMap::new();
        for (id, object) in &self.rest {
            let rest = kept.rest(object, "an assertion", diagnostics);
            if !rest.is_empty() {
                all.insert(id.clone(), json!(rest));
            }
        }
        (!all.is_empty()).then(|| json!(all))
    }

    fn object(&mut self, node: &'n Node, diagnostics: &mut Diagnostics) -> Option<()> {
        let mut object = Object::new(node, "an assertion", diagnostics)?;
        let kind = object.text("type", diagnostics);
        let id = object.text("id", diagnostics).filter(|id| !id.trim().is_empty());
        let name = object.text("name", diagnostics).filter(|name| !name.trim().is_empty());
        let need = match object.bool("required", diagnostics) {
            Some(false) => Need::Advisory,
            Some(true) | None => Need::Required,
        };
        let made: Vec<(CheckKind, LooksAt)> = match exact(kind, &mut object, diagnostics) {
            Exact::Rules(rules) => {
                rules.into_iter().map(|(rule, looks_at)| (CheckKind::Exact(rule), looks_at)).collect()
            }
            Exact::Wrong => return None,
            Exact::No { notice, words, named } => {
                let Some(statement) = statement(&mut object, words, named) else {
                    diagnostics.error_help(
                        "unknown-assertion",
                        node.span,
                        match (notice, kind) {
                            (Some(notice), _) => format!("{notice}, and there are no words for a judge"),
                            (None, Some(kind)) => format!("there are no words for a judge (type \"{kind}\")"),
                            (None, None) => "this assertion says nothing that could be checked".to_owned(),
                        },
                        "say in \"description\" what must be true, and a judge decides it",
                    );
                    return None;
                };
                if let Some(notice) = notice {
                    diagnostics.notice(
                        "judged-assertion",
                        node.span,
                        format!("{notice}, so a judge decides it by its words"),
                    );
                }
                let check = reading::judged(String::new(), &statement);
                vec![(check.kind, check.looks_at)]
            }
        };
        // A rule speaks for itself, so what is said beside it can only be its name.
        let title = match (made.first(), id) {
            (Some((CheckKind::Exact(_), _)), None) => object.text("description", diagnostics).or(name),
            (Some(_) | None, _) => name,
        };
        for (kind, looks_at) in made {
            let wanted = match (id.or(name), &kind) {
                (Some(given), _) => given.to_owned(),
                (None, CheckKind::Judged(judged)) => slug(&judged.statement, "assertion"),
                (None, CheckKind::Exact(rule)) => {
                    slug(&format!("{} {}", rule.key(), words(&rule.value())), "assertion")
                }
                (None, CheckKind::Sections(_) | CheckKind::Activation(_)) => "assertion".to_owned(),
            };
            let id = self.ids.derive(&wanted);
            self.rest.push((id.clone(), object.clone()));
            let name = title.filter(|title| *title != id).map(str::to_owned);
            self.list.push(Check { id, name, need, looks_at, kind });
        }
        Some(())
    }
}

/// The texts of a rule's value, for an id.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(" "),
        Value::Object(map) => map.values().map(words).collect::<Vec<_>>().join(" "),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

enum Exact {
    /// Usually one; a list of texts to find is one for each.
    Rules(Vec<(Arc<dyn Rule>, LooksAt)>),
    /// Said, and reported as wrong.
    Wrong,
    /// Not something that code decides. `notice` says why, where that is a surprise; `words` say
    /// the same thing to a judge, where the assertion itself does not; `named` is whether its name may,
    /// where nothing else does.
    No { notice: Option<String>, words: Option<String>, named: bool },
}

/// Types that code decides, for those who misspell one.
const EXACT_TYPES: [&str; 9] = [
    "contains",
    "not_contains",
    "starts_with",
    "ends_with",
    "regex",
    "transcript_regex",
    "file_exists",
    "file_contains",
    "script",
];

/// Types that name no mechanism, so that their words are what counts.
const JUDGED_TYPES: [&str; 8] =
    ["semantic", "llm", "llm_judge", "llm-judge", "judge", "manual", "qualitative", "rubric"];

/// The rule that an assertion's type and keys stand for.
fn exact(kind: Option<&str>, object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Exact {
    let Some(kind) = kind else { return Exact::No { notice: None, words: None, named: true } };
    let normal = kind.trim().to_lowercase().replace('-', "_");
    let wanted = match normal.as_str() {
        "contains" => needles("contains", object, diagnostics),
        "not_contains" => needles("not_contains", object, diagnostics),
        "starts_with" => needles("starts_with", object, diagnostics),
        "ends_with" => needles("ends_with", object, diagnostics),
        "regex" | "matches" | "regex_match" => regex(object, diagnostics),
        "transcript_regex" => transcript(object, diagnostics),
        "file_exists" => file_exists(object, diagnostics),
        "file_contains" => file_contains(object, diagnostics),
        "script" | "command" => command(object, diagnostics),
        // Any other check of the native format, said with its own key.
        key => match (rule_kind(key), object.given("value")) {
            (Some(kind), Some(value)) => Ok(vec![(kind.key, value.to_value(), value.span)]),
            (Some(_), None) => Err(Unsaid::Part("value")),
            (None, _) if JUDGED_TYPES.contains(&normal.as_str()) => {
                return Exact::No { notice: None, words: None, named: true };
            }
            (None, _) => {
                let perhaps =
                    closest(&normal, &EXACT_TYPES).map(|known| format!(" (did you mean \"{known}\"?)"));
                let notice =
                    Some(format!("the type \"{kind}\" is not known here{}", perhaps.unwrap_or_default()));
                return Exact::No { notice, words: mechanical(kind, object), named: true };
            }
        },
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(Unsaid::Wrong) => return Exact::Wrong,
        Err(Unsaid::Part(key)) => {
            let notice = Some(format!("there is no \"{key}\", which \"{kind}\" needs"));
            // The name of a search says nothing about what is searched for; files and scripts are
            // seen with a name alone, which then says what must be there.
            let named = ["file_exists", "script", "command"].contains(&normal.as_str());
            return Exact::No { notice, words: None, named };
        }
    };
    let mut made = Vec::new();
    for (key, value, span) in wanted {
        match rules::build(key, &value, span, diagnostics) {
            rules::Built::Rule(rule, looks_at) => made.push((rule, looks_at)),
            rules::Built::Wrong => return Exact::Wrong,
            rules::Built::NoSuchKind => {
                return Exact::No {
                    notice: Some(format!("this version knows no check \"{key}\"")),
                    words: Some(in_words(key, &value, &LooksAt::Output)),
                    named: true,
                };
            }
        }
    }
    Exact::Rules(made)
}

/// Rules by key and value, and where they stand.
type Wanted = Result<Vec<(&'static str, Value, Span)>, Unsaid>;

enum Unsaid {
    /// A part is missing without which it is no check: its key.
    Part(&'static str),
    /// A part makes no sense, which has been told.
    Wrong,
}

/// The text under the first of these keys that is there. The first is what it is called here.
fn text_under<'n>(
    object: &mut Object<'n>,
    keys: &[&'static str],
    diagnostics: &mut Diagnostics,
) -> Result<&'n Node, Unsaid> {
    let found = keys.iter().find_map(|key| Some((*key, object.given(key)?)));
    let (key, node) = found.ok_or(Unsaid::Part(keys[0]))?;
    text_of(node, key, diagnostics).map(|_| node).ok_or(Unsaid::Wrong)
}

/// One rule for each text.
fn needles(key: &'static str, object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Wanted {
    let value = ["value", "values", "needle"].into_iter().find_map(|key| object.given(key));
    let value = value.ok_or(Unsaid::Part("value"))?;
    let ignore =
        object.bool("ignore_case", diagnostics).or_else(|| object.bool("case_insensitive", diagnostics));
    let sensitive = object.bool("case_sensitive", diagnostics);
    let ignore = ignore.unwrap_or(sensitive == Some(false));
    let nodes = match &value.data {
        Data::List(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let one = |node: &Node| {
        let text = node.to_value();
        let value = if ignore { json!({"text": text, "ignore_case": true}) } else { text };
        (key, value, node.span)
    };
    if nodes.is_empty() { Err(Unsaid::Part("value")) } else { Ok(nodes.iter().map(one).collect()) }
}

fn regex(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Wanted {
    let node = text_under(object, &["pattern", "value"], diagnostics)?;
    Ok(vec![("regex", node.to_value(), node.span)])
}

/// Whether a thing must be there. Not saying so means yes.
fn expected(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Result<bool, Unsaid> {
    let Some(node) = object.given("expect") else { return Ok(true) };
    match &node.data {
        Data::Bool(expected) => Ok(*expected),
        Data::Text(text) if ["present", "exists"].contains(&text.as_str()) => Ok(true),
        Data::Text(text) if ["absent", "not_exists", "missing"].contains(&text.as_str()) => Ok(false),
        _ => {
            diagnostics.error_help(
                "unknown-value",
                node.span,
                format!("\"expect\" cannot be {}", node.to_value()),
                "it may be present or absent",
            );
            Err(Unsaid::Wrong)
        }
    }
}

fn transcript(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Wanted {
    let expect = if expected(object, diagnostics)? { "present" } else { "absent" };
    let node = text_under(object, &["pattern", "value"], diagnostics)?;
    Ok(vec![("transcript", json!({"pattern": node.to_value(), "expect": expect}), node.span)])
}

fn file_exists(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Wanted {
    let exists = expected(object, diagnostics)?;
    let node = text_under(object, &["path", "value", "file"], diagnostics)?;
    let value = if exists { node.to_value() } else { json!({"path": node.to_value(), "exists": false}) };
    Ok(vec![("file", value, node.span)])
}

fn file_contains(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Wanted {
    let node = text_under(object, &["path", "file"], diagnostics)?;
    let needle = object.given("value").ok_or(Unsaid::Part("value"))?;
    Ok(vec![("file", json!({"path": node.to_value(), "contains": needle.to_value()}), node.span)])
}

fn command(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Wanted {
    let node = ["command", "script", "value"].into_iter().find_map(|key| object.given(key));
    let node = node.ok_or(Unsaid::Part("command"))?;
    let command = match &node.data {
        Data::Text(text) => text.clone(),
        Data::List(words) => {
            let texts = words.iter().map(|word| text_of(word, "command", diagnostics).map(quoted));
            texts.collect::<Option<Vec<String>>>().ok_or(Unsaid::Wrong)?.join(" ")
        }
        Data::Null | Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::Map(_) => {
            wrong_type(node, "command", "text or a list of texts", diagnostics);
            return Err(Unsaid::Wrong);
        }
    };
    let code = object.int("expect_exit_code", 0, 255, diagnostics).unwrap_or(0);
    // A command passes when it succeeds; another code is compared by the shell.
    let command = if code == 0 { command } else { format!("({command}\n); test $? -eq {code}") };
    Ok(vec![("command", json!(command), node.span)])
}

/// A word as the shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What an assertion says in words, the most explicit key first; its name only where that may do.
fn statement(object: &mut Object<'_>, words: Option<String>, named: bool) -> Option<String> {
    let text = |object: &mut Object<'_>, keys: &[&'static str]| {
        keys.iter()
            .find_map(|key| object.given(key)?.as_text().map(str::trim).filter(|text| !text.is_empty()))
            .map(str::to_owned)
    };
    let said = text(object, &["text", "statement", "assertion", "criterion", "description"]);
    let how = text(object, &["check"]);
    match (said, how) {
        // Two halves of one thing: what must be true, and how it shows.
        (Some(said), Some(how)) if said != how => Some(format!("{said} ({how})")),
        (Some(said), _) => Some(said),
        (None, Some(how)) => Some(how),
        (None, None) => words.or_else(|| text(object, &["name"]).filter(|_| named)),
    }
}

/// A mechanism that this program has no rule for, put into words.
fn mechanical(kind: &str, object: &mut Object<'_>) -> Option<String> {
    let parts: Vec<String> = ["pattern", "value", "path", "command", "expect"]
        .into_iter()
        .filter_map(|key| Some(format!("{key} {}", object.given(key)?.to_value())))
        .collect();
    (!parts.is_empty()).then(|| format!("An assertion of type {kind} with {} holds.", parts.join(", ")))
}

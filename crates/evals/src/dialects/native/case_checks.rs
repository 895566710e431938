//! Reads and writes the checks of a native case.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::EvalRegistry;
use super::decode::{DocumentSource, decode_one_of};
use super::stored::UnreadRule;
use crate::checks::Globs;
use practicum_core::model::{
    ActivationCheck, ActivationExpectation, ActivationSource, Check, CheckKind, CheckNeed, CheckTarget,
    CheckWeight, Diagnostics, JudgedStatement, OutputSection, PassRule, RelPath, Rule, ScoreScale,
    SectionField, SectionTier, Span,
};
use practicum_core::tree::{ObjectReader, TreeNode, closest_word, node_text};

/// The parts of a case that make its checks.
pub struct CaseChecks<'n> {
    pub activation: Option<&'n TreeNode>,
    pub list: Option<&'n [TreeNode]>,
    /// The suite's skills, which `activation: must` is about.
    pub skills: &'n [String],
    /// The checks that are known.
    pub registry: &'n EvalRegistry,
    /// The rule of the case. In a case that passes by its score, a check is required only if it says so.
    pub rule: PassRule,
    /// Where the document comes from.
    pub kind: DocumentSource,
    /// The folder of the eval file.
    pub folder: &'n Path,
}

/// The id of the check that the case's own `activation` key makes.
const ACTIVATION_ID: &str = "activation";

pub fn decode_checks(case: &CaseChecks<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let mut ids = HashSet::new();
    let mut checks = Vec::new();
    if let Some(node) = case.activation
        && let Some(activation) = decode_activation(node, case.skills, diagnostics)
    {
        ids.insert(ACTIVATION_ID.to_owned());
        checks.push(Check {
            id: ACTIVATION_ID.to_owned(),
            name: None,
            need: CheckNeed::Required,
            weight: CheckWeight::ONE,
            target: CheckTarget::WholeRun,
            kind: CheckKind::Activation(activation),
        });
    }
    for node in case.list.unwrap_or_default() {
        if let Some(check) = decode_check(node, case, &mut ids, diagnostics) {
            checks.push(check);
        }
    }
    checks
}

const ACTIVATION_WORDS: [(&str, ActivationExpectation); 3] = [
    ("must", ActivationExpectation::Must),
    ("must_not", ActivationExpectation::MustNot),
    ("either", ActivationExpectation::Either),
];

fn decode_activation(
    node: &TreeNode,
    skills: &[String],
    diagnostics: &mut Diagnostics,
) -> Option<ActivationCheck> {
    if let Some(text) = node.as_text() {
        let expect = ACTIVATION_WORDS.iter().find(|(word, _)| *word == text).map(|(_, expect)| *expect);
        let Some(expect) = expect else {
            diagnostics.error_with_help(
                "unknown-value",
                node.span,
                format!("\"activation\" cannot be \"{text}\""),
                "it may be must, must_not or either",
            );
            return None;
        };
        if skills.is_empty() {
            diagnostics.error_with_help(
                "no-skill",
                node.span,
                "no skill is named that could be activated",
                "give the file a \"skill\"",
            );
            return None;
        }
        return Some(ActivationCheck { skills: skills.to_vec(), expect, source: ActivationSource::Observed });
    }
    let mut object = ObjectReader::new(node, "activation", diagnostics)?;
    let named = object.texts("skills", diagnostics);
    let expect = decode_one_of(&mut object, "expect", &ACTIVATION_WORDS, diagnostics);
    let by = decode_one_of(
        &mut object,
        "by",
        &[("observed", ActivationSource::Observed), ("predicted", ActivationSource::Predicted)],
        diagnostics,
    );
    object.reject_unknown_keys("activation", diagnostics);
    let skills = match named {
        Some(named) => named.into_iter().map(|(name, _)| name.to_owned()).collect(),
        None => skills.to_vec(),
    };
    if object.get_non_null("expect").is_none() {
        object.report_missing("expect", diagnostics);
    }
    Some(ActivationCheck { skills, expect: expect?, source: by.unwrap_or(ActivationSource::Observed) })
}

fn decode_check(
    node: &TreeNode,
    case: &CaseChecks<'_>,
    ids: &mut HashSet<String>,
    diagnostics: &mut Diagnostics,
) -> Option<Check> {
    let registry = case.registry;
    let mut object = ObjectReader::new(node, "a check", diagnostics)?;
    let given_id = object.text("id", diagnostics).map(str::to_owned);
    let name = object.text("name", diagnostics).map(str::to_owned);
    let required = object.bool("required", diagnostics);
    let weight = decode_weight(&mut object, case.rule, diagnostics);
    let on = object.get_non_null("on").map(|node| decode_looks_at(node, diagnostics));
    let mut kinds = object.unread_entries();
    let Some(entry) = kinds.next() else {
        diagnostics.error_with_help(
            "no-check",
            node.span,
            "this check says nothing to check",
            format!("say one of {}", check_keys(registry).join(", ")),
        );
        return None;
    };
    if let Some(second) = kinds.next() {
        let known = check_keys(registry).contains(&second.key.as_str());
        let message = if known {
            format!("one check, one thing: \"{}\" and \"{}\" are two", entry.key, second.key)
        } else {
            format!("unknown key \"{}\" in a check", second.key)
        };
        diagnostics.error("unknown-key", second.key_span, message);
        return None;
    }
    let mut required_inside = None;
    let (kind, default_looks_at) = match entry.key.as_str() {
        "judge" => (
            decode_judged(&entry.value, &mut required_inside, diagnostics).map(CheckKind::Judged),
            CheckTarget::WholeRun,
        ),
        "sections" => {
            (decode_sections(&entry.value, diagnostics).map(CheckKind::Sections), CheckTarget::Output)
        }
        "activation" => (
            decode_activation(&entry.value, case.skills, diagnostics).map(CheckKind::Activation),
            CheckTarget::WholeRun,
        ),
        key => match registry.check(key) {
            Some(kind) => {
                let rule = (kind.decode)(&entry.value, diagnostics)
                    .and_then(|rule| with_eval_files(rule, case, entry.value.span, diagnostics));
                let target = rule.as_ref().map_or(CheckTarget::Output, |rule| rule.default_target());
                (rule.map(CheckKind::Rule), target)
            }
            None if case.kind == DocumentSource::RunRecord => {
                let rule = UnreadRule { key: key.to_owned(), value: entry.value.to_value() };
                (Some(CheckKind::Rule(Arc::new(rule))), CheckTarget::Output)
            }
            None => {
                let known = check_keys(registry);
                let help = closest_word(key, &known).map_or_else(
                    || format!("the checks are {}", known.join(", ")),
                    |known| format!("did you mean \"{known}\"?"),
                );
                diagnostics.error_with_help(
                    "unknown-check",
                    entry.key_span,
                    format!("there is no check \"{key}\""),
                    help,
                );
                return None;
            }
        },
    };
    let id = given_id.unwrap_or_else(|| derived_id(&entry.key, &entry.value, ids));
    if !ids.insert(id.clone()) {
        diagnostics.error(
            "duplicate-id",
            node.span,
            format!("another check of this case is already called \"{id}\""),
        );
    }
    let looks_at = match on {
        Some(on) => on?,
        None => default_looks_at,
    };
    let kind = kind?;
    if matches!(looks_at, CheckTarget::Pictures(_)) && !matches!(kind, CheckKind::Judged(_)) {
        diagnostics.error_with_help(
            "contradiction",
            node.span,
            "only a judge can look at pictures",
            "say \"judge\", or compare a picture with \"image_matches\"",
        );
        return None;
    }
    let required = required.or(required_inside).unwrap_or(is_required_by_default(case.rule));
    let need = if required { CheckNeed::Required } else { CheckNeed::Advisory };
    Some(Check { id, name, need, weight, target: looks_at, kind })
}

/// Gives the rule with the files beside the eval file that it names. A record has them in it.
fn with_eval_files(
    rule: Arc<dyn Rule>,
    case: &CaseChecks<'_>,
    span: Span,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<dyn Rule>> {
    if case.kind == DocumentSource::RunRecord {
        return Some(rule);
    }
    match rule.read_eval_files(case.folder) {
        None => Some(rule),
        Some(Ok(read)) => Some(read),
        Some(Err(why)) => {
            diagnostics.error("unreadable-file", span, why);
            None
        }
    }
}

/// Says whether a check is required that does not say so. Where the score decides, it is not.
fn is_required_by_default(rule: PassRule) -> bool {
    !matches!(rule, PassRule::Score(_))
}

/// Reads the weight of a check. Only a case that passes by its score has weights.
fn decode_weight(
    object: &mut ObjectReader<'_>,
    rule: PassRule,
    diagnostics: &mut Diagnostics,
) -> CheckWeight {
    let Some(node) = object.get_non_null("weight") else { return CheckWeight::ONE };
    let span = node.span;
    let weight = object.number("weight", 0.0, f64::MAX, diagnostics).and_then(CheckWeight::new);
    if !matches!(rule, PassRule::Score(_)) {
        diagnostics.error_with_help(
            "contradiction",
            span,
            "\"weight\" counts only in a case that passes by its score",
            "add \"pass_when: {score: 0.8}\" to the case, or remove \"weight\"",
        );
    }
    weight.unwrap_or(CheckWeight::ONE)
}

fn check_keys(registry: &EvalRegistry) -> Vec<&'static str> {
    registry.checks().iter().map(|rule| rule.key).chain(["sections", "judge", "activation"]).collect()
}

/// Makes an id from the content of a check, so that adding a check does not rename the others.
pub fn derived_id(key: &str, value: &TreeNode, taken: &HashSet<String>) -> String {
    let words = value.as_text().or_else(|| {
        ["statement", "path", "text", "pattern", "name"].iter().find_map(|key| value.get(key)?.as_text())
    });
    let mut slug = key.to_owned();
    for word in
        words.unwrap_or_default().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
    {
        if slug.len() + word.len() > 48 {
            break;
        }
        slug.push('-');
        slug.push_str(&word.to_lowercase());
    }
    if !taken.contains(&slug) {
        return slug;
    }
    (2..).map(|n| format!("{slug}-{n}")).find(|id| !taken.contains(id)).unwrap_or(slug)
}

fn decode_looks_at(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<CheckTarget> {
    match node.as_text() {
        Some("output") => return Some(CheckTarget::Output),
        Some("turn") => return Some(CheckTarget::LastTurn),
        Some("all") => return Some(CheckTarget::AllText),
        Some("run") => return Some(CheckTarget::WholeRun),
        Some(_) => {}
        None if node.as_map().is_some() => {
            let mut object = ObjectReader::new(node, "on", diagnostics)?;
            let file = object.text("file", diagnostics);
            let files = object.texts("files", diagnostics);
            let pictures = object.texts("pictures", diagnostics);
            object.reject_unknown_keys("on", diagnostics);
            let is_pictures = pictures.is_some();
            let only_one = files.is_none() || !is_pictures;
            match (file, files.or(pictures).filter(|_| only_one)) {
                (Some(file), None) if only_one => {
                    let path = RelPath::new(file);
                    if path.is_none() {
                        diagnostics.error(
                            "escaping-path",
                            node.span,
                            format!("{file:?} is not a path inside the workspace"),
                        );
                    }
                    return path.map(CheckTarget::File);
                }
                (None, Some(files)) if files.is_empty() => {
                    let message = "a check that looks at no file finds nothing";
                    diagnostics.error_with_help(
                        "empty-list",
                        node.span,
                        message,
                        "name one, or a glob like *.md",
                    );
                    return None;
                }
                (None, Some(files)) => {
                    for (glob, span) in &files {
                        if let Err(why) = Globs::new(&[glob]) {
                            diagnostics.error("invalid-glob", *span, why);
                        }
                    }
                    let globs = files.into_iter().map(|(glob, _)| glob.to_owned()).collect();
                    return Some(match is_pictures {
                        true => CheckTarget::Pictures(globs),
                        false => CheckTarget::Files(globs),
                    });
                }
                (None, None) | (Some(_), _) => {}
            }
        }
        None => {}
    }
    diagnostics.error_with_help(
        "unknown-value",
        node.span,
        "this is nothing to look at",
        "\"on\" may be output, turn, all, run, {file: path}, {files: [globs]} or {pictures: [globs]}",
    );
    None
}

fn decode_judged(
    node: &TreeNode,
    required: &mut Option<bool>,
    diagnostics: &mut Diagnostics,
) -> Option<JudgedStatement> {
    if node.as_map().is_none() {
        let statement = node_text(node, "judge", diagnostics)?;
        if statement.trim().is_empty() {
            diagnostics.error("empty-text", node.span, "\"judge\" must not be blank");
            return None;
        }
        return Some(JudgedStatement {
            statement: statement.to_owned(),
            context: None,
            scale: ScoreScale::PassFail,
        });
    }
    let mut object = ObjectReader::new(node, "judge", diagnostics)?;
    let statement = object.required_text("statement", diagnostics).map(str::to_owned);
    let context = object.text("context", diagnostics).map(str::to_owned);
    let scales = ScoreScale::ALL.map(|scale| (scale.name(), scale));
    let scale = decode_one_of(&mut object, "scale", &scales, diagnostics).unwrap_or(ScoreScale::PassFail);
    *required = object.bool("required", diagnostics);
    object.reject_unknown_keys("judge", diagnostics);
    Some(JudgedStatement { statement: statement?, context, scale })
}

fn decode_sections(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Vec<OutputSection>> {
    let Some(nodes) = node.as_list() else {
        practicum_core::tree::report_wrong_type(node, "sections", "a list", diagnostics);
        return None;
    };
    Some(nodes.iter().filter_map(|node| decode_section(node, diagnostics)).collect())
}

fn decode_section(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<OutputSection> {
    let mut object = ObjectReader::new(node, "a section", diagnostics)?;
    let name = object.required_text("name", diagnostics).map(str::to_owned);
    let tiers = object.list("tiers", diagnostics).unwrap_or_default();
    object.reject_unknown_keys("a section", diagnostics);
    let tiers = tiers.iter().filter_map(|node| decode_tier(node, diagnostics)).collect();
    Some(OutputSection { name: name?, tiers })
}

fn decode_tier(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<SectionTier> {
    let mut object = ObjectReader::new(node, "a tier", diagnostics)?;
    let label = object.required_text("label", diagnostics).map(str::to_owned);
    let description = object.text("description", diagnostics).map(str::to_owned);
    let most = i64::from(u32::MAX);
    let min_entries = object.int("min_entries", 0, most, diagnostics).and_then(|n| u32::try_from(n).ok());
    let max_entries = object.int("max_entries", 0, most, diagnostics).and_then(|n| u32::try_from(n).ok());
    let fields = object.list("fields", diagnostics).unwrap_or_default();
    object.reject_unknown_keys("a tier", diagnostics);
    let fields = fields.iter().filter_map(|node| decode_field(node, diagnostics)).collect();
    if let (Some(least), Some(most)) = (min_entries, max_entries)
        && most < least
    {
        let message = format!("at least {least} and at most {most} entries can never be found");
        diagnostics.error("out-of-range", node.span, message);
    }
    Some(SectionTier {
        label: label?,
        description,
        min_entries: min_entries.unwrap_or(0),
        max_entries,
        fields,
    })
}

fn decode_field(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<SectionField> {
    let mut object = ObjectReader::new(node, "a field", diagnostics)?;
    let id_node = object.get_non_null("id");
    let id = object.text("id", diagnostics).map(str::to_owned);
    match id_node {
        None => object.report_missing("id", diagnostics),
        Some(node) if id.as_deref() == Some("") => {
            diagnostics.error("empty-text", node.span, "\"id\" must not be empty");
        }
        Some(_) => {}
    }
    let name = object.required_text("name", diagnostics).map(str::to_owned);
    let required = object.bool("required", diagnostics).unwrap_or(true);
    let format = object.text("format", diagnostics).map(str::to_owned);
    object.reject_unknown_keys("a field", diagnostics);
    Some(SectionField { id: id?, name: name?, required, format })
}

/// Gives the checks of a case as the value of its `activation` key and its `checks` list.
pub fn encode_checks(checks: &[Check], skills: &[String], rule: PassRule) -> (Option<Value>, Vec<Value>) {
    let (short, rest) = match checks.split_first() {
        Some((first, rest)) => match short_activation(first, skills) {
            Some(word) => (Some(json!(word)), rest),
            None => (None, checks),
        },
        None => (None, checks),
    };
    (short, rest.iter().map(|check| check_value(check, rule)).collect())
}

/// Gives the one word for an activation check, if there is one.
fn short_activation(check: &Check, skills: &[String]) -> Option<&'static str> {
    let CheckKind::Activation(activation) = &check.kind else { return None };
    let plain = check.id == ACTIVATION_ID
        && check.name.is_none()
        && check.need == CheckNeed::Required
        && check.weight == CheckWeight::ONE
        && check.target == CheckTarget::WholeRun
        && activation.source == ActivationSource::Observed
        && !skills.is_empty()
        && activation.skills == skills;
    plain.then_some(activation.expect.name())
}

fn check_value(check: &Check, rule: PassRule) -> Value {
    let Check { id, name, need, weight, target: looks_at, kind } = check;
    let mut map = Map::new();
    let (key, value, default_looks_at) = match kind {
        CheckKind::Rule(rule) => (rule.key(), rule.value(), rule.default_target()),
        CheckKind::Judged(judged) => ("judge", judged_value(judged), CheckTarget::WholeRun),
        CheckKind::Sections(sections) => {
            ("sections", sections.iter().map(section_value).collect(), CheckTarget::Output)
        }
        CheckKind::Activation(activation) => {
            ("activation", activation_value(activation), CheckTarget::WholeRun)
        }
    };
    map.insert(key.to_owned(), value);
    map.insert("id".to_owned(), json!(id));
    if let Some(name) = name {
        map.insert("name".to_owned(), json!(name));
    }
    let required = *need == CheckNeed::Required;
    if required != is_required_by_default(rule) {
        map.insert("required".to_owned(), json!(required));
    }
    if *weight != CheckWeight::ONE {
        map.insert("weight".to_owned(), json!(weight.get()));
    }
    if *looks_at != default_looks_at {
        let on = match looks_at {
            CheckTarget::Output => json!("output"),
            CheckTarget::LastTurn => json!("turn"),
            CheckTarget::AllText => json!("all"),
            CheckTarget::WholeRun => json!("run"),
            CheckTarget::File(path) => json!({"file": path.as_str()}),
            CheckTarget::Files(globs) => json!({"files": globs}),
            CheckTarget::Pictures(globs) => json!({"pictures": globs}),
        };
        map.insert("on".to_owned(), on);
    }
    Value::Object(map)
}

fn judged_value(judged: &JudgedStatement) -> Value {
    let JudgedStatement { statement, context, scale } = judged;
    if context.is_none() && *scale == ScoreScale::PassFail {
        return json!(statement);
    }
    let mut map = Map::new();
    map.insert("statement".to_owned(), json!(statement));
    if let Some(context) = context {
        map.insert("context".to_owned(), json!(context));
    }
    map.insert("scale".to_owned(), json!(scale.name()));
    Value::Object(map)
}

fn activation_value(activation: &ActivationCheck) -> Value {
    let ActivationCheck { skills, expect, source: by } = activation;
    let by = match by {
        ActivationSource::Observed => "observed",
        ActivationSource::Predicted => "predicted",
    };
    json!({"skills": skills, "expect": expect.name(), "by": by})
}

fn section_value(section: &OutputSection) -> Value {
    let tiers: Vec<Value> = section
        .tiers
        .iter()
        .map(|SectionTier { label, description, min_entries, max_entries, fields }| {
            let mut map = Map::new();
            map.insert("label".to_owned(), json!(label));
            if let Some(description) = description {
                map.insert("description".to_owned(), json!(description));
            }
            map.insert("min_entries".to_owned(), json!(min_entries));
            if let Some(most) = max_entries {
                map.insert("max_entries".to_owned(), json!(most));
            }
            map.insert("fields".to_owned(), fields.iter().map(field_value).collect());
            Value::Object(map)
        })
        .collect();
    json!({"name": section.name, "tiers": tiers})
}

fn field_value(SectionField { id, name, required, format }: &SectionField) -> Value {
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(id));
    map.insert("name".to_owned(), json!(name));
    map.insert("required".to_owned(), json!(required));
    if let Some(format) = format {
        map.insert("format".to_owned(), json!(format));
    }
    Value::Object(map)
}

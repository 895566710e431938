//! Reads whether a case expects skills to be activated, under any of the keys that people use for it.

use std::path::Path;

use serde_json::{Value, json};

use super::{activation_check, is_skill, skill_at};
use practicum_core::model::{ActivationExpectation, Case, Check, CheckKind, Diagnostics, SkillRef, Span};
use practicum_core::tree::json_schema::{self, MappingSchema};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, report_wrong_type};
use practicum_skills::own_files::{
    BOOLEAN_ACTIVATION_KEYS, OTHER_BOOLEAN_KEYS, SKILL_LIST_KEY, SKILL_NAME_KEYS, activation_keys,
};
use practicum_skills::skill::SkillCache;

/// The key that lists skills that must not be activated.
pub const FORBIDDEN_SKILLS_KEY: &str = "must_not_activate";

/// The key that names the skill that a yes or no is about, if it is not the one under test.
const TARGET_SKILL_KEY: &str = "target_skill";

/// One statement of a case about activation, and its position.
struct ActivationStatement {
    skills: Vec<String>,
    expect: ActivationExpectation,
    key: &'static str,
    span: Span,
}

/// Everything that a case says about activation.
#[derive(Default)]
pub struct ExpectedActivation {
    pub checks: Vec<Check>,
    /// Whether the case has a key about activation, even if it could not be understood.
    pub is_given: bool,
}

/// The key under which some people write what is about a case, and not part of it.
const METADATA_KEY: &str = "metadata";

/// Reads what a case says about the activation of skills, also in its `metadata`. `tested` are the skills under test.
/// If a case expects no skill, none of them may be activated. A yes or no is about the first of them.
pub fn read_expected_activation(
    case: &mut ObjectReader<'_>,
    tested: &[String],
    diagnostics: &mut Diagnostics,
) -> ExpectedActivation {
    let (mut statements, mut is_given) = read_statements(case, tested, diagnostics);
    let metadata = case.peek(METADATA_KEY).filter(|node| activation_keys().any(|key| node.has(key)));
    if let Some(mut metadata) = metadata.and_then(|node| ObjectReader::new(node, METADATA_KEY, diagnostics)) {
        let (more, is_given_there) = read_statements(&mut metadata, tested, diagnostics);
        statements.extend(more);
        is_given |= is_given_there;
    }
    ExpectedActivation { checks: checks_for_statements(statements, diagnostics), is_given }
}

/// Reads the statements of one object about activation, and whether it has any.
fn read_statements(
    case: &mut ObjectReader<'_>,
    tested: &[String],
    diagnostics: &mut Diagnostics,
) -> (Vec<ActivationStatement>, bool) {
    let mut statements = Vec::new();
    let mut given = false;
    let target = case.text(TARGET_SKILL_KEY, diagnostics).map(str::trim).filter(|name| !name.is_empty());
    let about: Vec<String> = match target {
        Some(name) => vec![name.to_owned()],
        None => tested.iter().take(1).cloned().collect(),
    };
    for key in BOOLEAN_ACTIVATION_KEYS {
        let Some(node) = case.get(key) else { continue };
        match node.data {
            NodeData::Bool(must) => {
                statements.push(ActivationStatement::yes_or_no(must, about.clone(), key, node.span))
            }
            NodeData::Null => diagnostics.warning_with_help(
                "unclear-activation",
                node.span,
                format!("\"{key}\" is null, so nothing checks whether the skill is activated"),
                "write true or false, or leave the key out",
            ),
            _ => report_wrong_type(node, key, "true or false", diagnostics),
        }
        given |= !node.is_null();
    }
    for key in SKILL_NAME_KEYS {
        let Some(node) = case.get(key) else { continue };
        given = true;
        statements.extend(read_named_skills(node, key, &about, tested, diagnostics));
    }
    accept_other_skills(case, &mut statements, diagnostics);
    let spelt_otherwise = read_other_spellings(case, &about, tested, diagnostics);
    given |= !spelt_otherwise.is_empty();
    statements.extend(spelt_otherwise);
    if let Some(TreeNode { data: NodeData::Bool(true), span }) = case.peek(FORBIDDEN_SKILLS_KEY) {
        case.get(FORBIDDEN_SKILLS_KEY);
        given = true;
        statements.push(ActivationStatement::yes_or_no(false, about, FORBIDDEN_SKILLS_KEY, *span));
    } else if let Some(node) = case.get_non_null(FORBIDDEN_SKILLS_KEY) {
        let names = case.texts(FORBIDDEN_SKILLS_KEY, diagnostics).unwrap_or_default();
        let skills: Vec<String> =
            names.iter().map(|(name, _)| (*name).to_owned()).filter(|name| !name.trim().is_empty()).collect();
        if !skills.is_empty() {
            given = true;
            statements.push(ActivationStatement {
                skills,
                expect: ActivationExpectation::MustNot,
                key: FORBIDDEN_SKILLS_KEY,
                span: node.span,
            });
        }
    }
    (statements, given)
}

/// The key for skills that may be activated in place of the expected one.
const ACCEPTABLE_SKILLS_KEY: &str = "acceptable_skills";

/// Adds the skills that may be activated in place of the expected one.
fn accept_other_skills(
    case: &mut ObjectReader<'_>,
    statements: &mut [ActivationStatement],
    diagnostics: &mut Diagnostics,
) {
    let is_list = case.peek(ACCEPTABLE_SKILLS_KEY).is_some_and(|node| node.as_list().is_some());
    let expected = statements.iter_mut().find(|statement| {
        SKILL_NAME_KEYS.contains(&statement.key) && statement.expect == ActivationExpectation::Must
    });
    // Without an expected skill, the key is one that is not understood, and is told as such.
    let Some(expected) = expected.filter(|_| is_list) else { return };
    for (name, _) in case.texts(ACCEPTABLE_SKILLS_KEY, diagnostics).unwrap_or_default() {
        let name = name.trim().to_owned();
        if !name.is_empty() && !expected.skills.contains(&name) {
            expected.skills.push(name);
        }
    }
}

/// Reads what a case says of activation under less usual keys. A key that means something else in another file,
/// such as `trigger`, counts only with a value that speaks of activation.
fn read_other_spellings(
    case: &mut ObjectReader<'_>,
    about: &[String],
    tested: &[String],
    diagnostics: &mut Diagnostics,
) -> Vec<ActivationStatement> {
    let mut statements = Vec::new();
    let mut add = |must, skills: &[String], key, span| {
        statements.push(ActivationStatement::yes_or_no(must, skills.to_vec(), key, span));
    };
    for (key, meaning) in OTHER_BOOLEAN_KEYS {
        let Some(node) = case.peek(key).filter(|node| !node.is_null()) else { continue };
        case.get(key);
        match node.data {
            NodeData::Bool(says) => add(says == meaning, about, key, node.span),
            _ => report_wrong_type(node, key, "true or false", diagnostics),
        }
    }
    for key in ["trigger", "negative", "expect"] {
        let Some(node) = case.peek(key) else { continue };
        let must = match (key, &node.data) {
            ("trigger", NodeData::Bool(must)) => Some(*must),
            ("negative", NodeData::Bool(true)) => Some(false),
            ("expect", NodeData::Text(label)) => activation_of_label(label),
            _ => None,
        };
        if let Some(must) = must {
            case.get(key);
            add(must, about, key, node.span);
        }
    }
    if let Some(node) = case.peek(SKILL_LIST_KEY) {
        let names = case.texts(SKILL_LIST_KEY, diagnostics).unwrap_or_default();
        match node.as_list().is_none_or(<[TreeNode]>::is_empty) && names.is_empty() {
            true => add(false, tested, SKILL_LIST_KEY, node.span),
            false => {
                for (name, span) in names {
                    add(true, &[name.trim().to_owned()], SKILL_LIST_KEY, span);
                }
            }
        }
    }
    statements
}

/// Whether a label says that the skill must be activated; `None` if it is about something else.
fn activation_of_label(label: &str) -> Option<bool> {
    let label = label.trim().to_lowercase().replace(['-', ' '], "_");
    let words: Vec<&str> = label.split('_').collect();
    let is_about_activation =
        |word: &&str| ["trigger", "activate", "activation", "fire", "use", "invoke"].contains(word);
    match words.as_slice() {
        [rest @ .., last] if is_about_activation(last) => match rest {
            [] | ["must" | "should"] => Some(true),
            ["no" | "not" | "never" | "dont"] | ["must" | "should", "not"] | ["do", "not"] => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text in place of a skill's name says that there is none.
fn is_no_skill(name: &str) -> bool {
    ["", "none", "null", "no", "no_skill", "no-skill", "n/a"].contains(&name.trim().to_lowercase().as_str())
}

fn read_named_skills(
    node: &TreeNode,
    key: &'static str,
    about: &[String],
    tested: &[String],
    diagnostics: &mut Diagnostics,
) -> Option<ActivationStatement> {
    match &node.data {
        NodeData::Text(name) if !is_no_skill(name) => {
            Some(ActivationStatement::yes_or_no(true, vec![name.trim().to_owned()], key, node.span))
        }
        NodeData::Text(_) | NodeData::Null | NodeData::Bool(false) => {
            Some(ActivationStatement::yes_or_no(false, tested.to_vec(), key, node.span))
        }
        NodeData::Bool(true) => Some(ActivationStatement::yes_or_no(true, about.to_vec(), key, node.span)),
        NodeData::Int(_) | NodeData::Float(_) | NodeData::List(_) | NodeData::Map(_) => {
            report_wrong_type(node, key, "a skill's name, or null for none", diagnostics);
            None
        }
    }
}

impl ActivationStatement {
    fn yes_or_no(must: bool, skills: Vec<String>, key: &'static str, span: Span) -> Self {
        let expect = if must { ActivationExpectation::Must } else { ActivationExpectation::MustNot };
        Self { skills, expect, key, span }
    }

    /// Says whether this statement includes another one, if they do not contradict each other.
    fn covers(&self, other: &Self) -> bool {
        match self.expect {
            ActivationExpectation::Must | ActivationExpectation::Either => self.skills == other.skills,
            ActivationExpectation::MustNot => {
                other.expect == ActivationExpectation::MustNot
                    && other.skills.iter().all(|name| self.skills.contains(name))
            }
        }
    }

    fn contradicts(&self, other: &Self) -> bool {
        let shared =
            self.skills == other.skills || self.skills.iter().any(|name| other.skills.contains(name));
        shared && self.expect != other.expect
    }
}

/// Makes a check for each different statement. Two statements that contradict each other are an error.
fn checks_for_statements(statements: Vec<ActivationStatement>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let mut kept: Vec<ActivationStatement> = Vec::new();
    for statement in statements {
        if let Some(other) = kept.iter().find(|other| other.contradicts(&statement)) {
            diagnostics.error_with_help(
                "contradiction",
                statement.span,
                format!("\"{}\" and \"{}\" contradict each other", other.key, statement.key),
                "keep one of them",
            );
        } else if !kept.iter().any(|other| other.covers(&statement)) {
            kept.retain(|other| !statement.covers(other));
            kept.push(statement);
        }
    }
    let numbered = |(index, ActivationStatement { skills, expect, .. }): (usize, ActivationStatement)| {
        let check = activation_check(skills, expect);
        match index {
            0 => check,
            _ => Check { id: format!("{}-{}", check.id, index + 1), ..check },
        }
    };
    kept.into_iter().enumerate().map(numbered).collect()
}

/// Says whether a case has a key about activation, or `expect` with a label about it.
pub fn has_activation_key(case: &TreeNode) -> bool {
    let label = case.get("expect").and_then(TreeNode::as_text);
    activation_keys().any(|key| case.has(key))
        || label.is_some_and(|label| activation_of_label(label).is_some())
}

/// Says whether an unknown key seems to be about activation, so that ignoring it would lose a check.
pub fn resembles_activation_key(key: &str) -> bool {
    let key = key.to_lowercase();
    ["trigger", "activat"].iter().any(|word| key.contains(word))
        || ["expected_skills", "acceptable_skills", "preferred_skill", "required_skills", "forbidden_skills"]
            .contains(&key.as_str())
        || key == "negative"
}

/// Gives the skills that cases expect and that are not under test; they must be staged too. They are searched in
/// the folder that holds the skill under test. A missing one is a warning, because its check would then mean
/// nothing.
pub fn other_expected_skills(
    cases: &[Case],
    tested: &SkillRef,
    diagnostics: &mut Diagnostics,
) -> Vec<SkillRef> {
    let skills = SkillCache::default();
    let mut found: Vec<SkillRef> = Vec::new();
    let mut absent: Vec<&str> = Vec::new();
    let home = tested.path.as_deref().and_then(Path::parent);
    for check in cases.iter().flat_map(|case| &case.checks) {
        let CheckKind::Activation(activation) = &check.kind else { continue };
        for name in activation.skills.iter().filter(|name| **name != tested.name) {
            if absent.contains(&name.as_str()) || found.iter().any(|known| known.name == *name) {
                continue;
            }
            match home.and_then(|home| find_skill_in(home, name, &skills)) {
                Some(skill) => found.push(skill),
                None => absent.push(name),
            }
        }
    }
    if !absent.is_empty() {
        let names = absent.join(", ");
        diagnostics.warning_with_help(
            "skill-not-staged",
            None,
            format!(
                "cases say whether {names} must be activated, and that is not beside {}: where it must be \
                 activated the case cannot pass, and where it must not be nothing is checked",
                tested.name
            ),
            "stage it with --with-skill PATH",
        );
    }
    found
}

/// Finds the skill of this name in a folder of skills.
fn find_skill_in(home: &Path, name: &str, skills: &SkillCache) -> Option<SkillRef> {
    // The name becomes a folder's name here, so it must not lead anywhere else.
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']);
    let folder = Some(home.join(name)).filter(|folder| plain && is_skill(folder))?;
    Some(skill_at(&folder, skills, &mut Diagnostics::default())).filter(|skill| skill.name == name)
}

/// Adds the keys about activation to the schema of a case.
pub fn add_schema_keys(mut mapping: MappingSchema) -> MappingSchema {
    for key in BOOLEAN_ACTIVATION_KEYS {
        let doc = "Whether the agent must activate the skill under test (true) or must not (false).";
        mapping = mapping.optional(key, doc, json_schema::boolean());
    }
    for key in SKILL_NAME_KEYS {
        let doc =
            "The skill that the agent must activate; null if it must activate none of those under test.";
        mapping = mapping.optional(key, doc, json!({"type": ["string", "null", "boolean"]}));
    }
    mapping
        .optional(
            FORBIDDEN_SKILLS_KEY,
            "Skills that the agent must not activate.",
            json_schema::text_or_texts(),
        )
        .optional(
            TARGET_SKILL_KEY,
            "The skill that should_trigger is about, where it is not the one under test.",
            json_schema::text(),
        )
}

/// Gives conditions of JSON Schema: at least one holds for a case that says something about activation.
pub fn schema_conditions() -> Vec<Value> {
    let published = BOOLEAN_ACTIVATION_KEYS.into_iter().chain(SKILL_NAME_KEYS);
    let keys = published.map(|key| json!({"required": [key]}));
    let some = json!({"anyOf": [{"type": "string", "pattern": "\\S"}, {"type": "array", "contains": {"pattern": "\\S"}}]});
    keys.chain([json!({"required": [FORBIDDEN_SKILLS_KEY], "properties": {FORBIDDEN_SKILLS_KEY: some}})])
        .collect()
}

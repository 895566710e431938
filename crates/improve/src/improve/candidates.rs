//! Asks a model for eval cases, and keeps the useful ones.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer_forms::{closed_object, items_of, list_of, one_of, text_of, texts_of};
use super::edit_suggestions::skill_exhibits;
use super::stored_run::user_prompt;
use super::{Adviser, AdviserAnswer, SkillContents, SkillContentsError, SkillEditDraft};
use practicum_agents::llm::ToolDefinition;
use practicum_core::model::{Case, Diagnostics, Severity, Suite};
use practicum_engine::grade::judge::{StructuredQuestion, shorten_text};
use practicum_engine::grade::self_test::self_test;
use practicum_engine::plan::suite_quality;
use practicum_evals::dialects::{self, EvalFileLocation};
use practicum_skills::skill::evals_folder;

/// The kind of a proposed case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CandidateKind {
    /// A case in which the skill must be activated.
    Positive,
    /// A case that sounds like a task for the skill and is not one.
    NearMiss,
    /// A case in which the agent must produce a file.
    Artifact,
    /// An unusual case that authors tend to forget.
    Edge,
}

const KINDS: [(&str, CandidateKind); 4] = [
    ("positive", CandidateKind::Positive),
    ("near_miss", CandidateKind::NearMiss),
    ("artifact", CandidateKind::Artifact),
    ("edge", CandidateKind::Edge),
];

/// A proposed case, as a native file would have it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    pub kind: CandidateKind,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub case: Value,
}

/// A proposed case that is not worth a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DroppedCandidate {
    pub id: String,
    pub why: String,
}

/// Cases proposed for a skill: `propose --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "Eval cases proposed for a skill (propose --json)")]
pub struct Candidates {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: PathBuf,
    /// The file with the candidates for review; `None` if there are none.
    pub file: Option<PathBuf>,
    pub candidates: Vec<Candidate>,
    pub dropped: Vec<DroppedCandidate>,
}

const RULES: &str = "\
You write eval cases for agent skills: requests that users would make, with checks that tell good work \
from bad.

Rules:
- Write requests as users do, who need the skill and have never heard of it. No two alike, and none that is \
there already.
- Positive cases: the skill must be activated (activation \"must\"). Near misses: requests that sound like it and are \
for something else (activation \"must_not\"). Artifact cases: something must be left behind, named in \
\"files\". Edge cases: odd, empty, contradictory or very large input.
- A check must fail for an agent that does nothing or only talks. Statements are about one observable thing \
each, without words like good, appropriate or correctly.
- Texts in \"contains\" must follow from the request itself, letter by letter.";

/// Asks for this many cases of each kind.
pub async fn propose_cases(
    adviser: &Adviser,
    contents: &SkillContents,
    known: &[Suite],
    captured: &[(String, String)],
    each: u32,
) -> Result<AdviserAnswer<Vec<Candidate>>, SkillContentsError> {
    let mut exhibits = skill_exhibits(&SkillEditDraft::from_contents(contents)?);
    let there: Vec<String> = known
        .iter()
        .flat_map(|suite| suite.cases.iter().map(|case| format!("case {}\n{}", case.id, user_prompt(case))))
        .collect();
    exhibits.push((
        "The cases that are there already".to_owned(),
        shorten_text(&there.join("\n\n"), LONGEST_KNOWN_CASES),
    ));
    exhibits.extend(captured.iter().enumerate().map(|(number, (name, text))| {
        (format!("A real run, {}", number + 1), format!("{name}\n{}", shorten_text(text, LONGEST_CAPTURES)))
    }));
    let text = json!({"type": "string"});
    let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
    let case = closed_object(json!({
        "id": text,
        "kind": {"type": "string", "enum": names},
        "prompt": text,
        "activation": {"type": ["string", "null"], "enum": ["must", "must_not", "either", null]},
        "contains": list_of(text.clone()),
        "files": list_of(text.clone()),
        "statements": list_of(text.clone()),
        "why": text,
    }));
    let inquiry = StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits,
        task: format!(
            "Propose {each} eval cases of each kind for the skill. Answer with JSON of the form {{\"cases\": \
             [{{\"id\", \"kind\", \"prompt\", \"activation\", \"contains\": [texts], \"files\": [paths], \
             \"statements\": [texts], \"why\"}}]}}."
        ),
        form: ToolDefinition {
            name: "propose_cases".to_owned(),
            description: "Propose eval cases for the skill.".to_owned(),
            input_schema: closed_object(json!({"cases": list_of(case)})),
        },
        round: 0,
    };
    let read = |answer: &Value| items_of(answer, "cases")?.iter().map(read_candidate).collect();
    Ok(adviser.ask_as("propose", &inquiry, &read).await)
}

const LONGEST_KNOWN_CASES: usize = 40_000;
const LONGEST_CAPTURES: usize = 20_000;

/// Reads a candidate. Only parts that are safe to write down are taken: a candidate never brings code to run.
fn read_candidate(value: &Value) -> Result<Candidate, String> {
    let kind = one_of(value, "kind", &KINDS.map(|(name, _)| name))?;
    let kind = KINDS.iter().find(|(name, _)| *name == kind).map_or(CandidateKind::Edge, |(_, kind)| *kind);
    let mut case = json!({
        "id": text_of(value, "id")?,
        "note": text_of(value, "why")?,
        "prompt": text_of(value, "prompt")?,
    });
    if value.get("activation").is_some_and(|activation| !activation.is_null()) {
        case["activation"] = json!(one_of(value, "activation", &["must", "must_not", "either"])?);
    }
    let mut checks: Vec<Value> = Vec::new();
    checks.extend(texts_of(value, "contains")?.into_iter().map(|text| json!({"contains": text})));
    checks.extend(texts_of(value, "files")?.into_iter().map(|path| json!({"file": path})));
    checks.extend(texts_of(value, "statements")?.into_iter().map(|text| json!({"judge": text})));
    if !checks.is_empty() {
        case["checks"] = json!(checks);
    }
    Ok(Candidate { kind, case })
}

/// Keeps the candidates that can be read, do not exist yet, and fail if the agent does nothing.
pub fn sift_candidates(
    proposed: Vec<Candidate>,
    skill: &Path,
    known: &[Suite],
) -> (Vec<Candidate>, Vec<DroppedCandidate>) {
    let (mut kept, mut dropped): (Vec<Candidate>, Vec<DroppedCandidate>) = (Vec::new(), Vec::new());
    for candidate in proposed {
        let id = candidate.case["id"].as_str().unwrap_or_default().to_owned();
        let there: Vec<&Case> = known.iter().flat_map(|suite| &suite.cases).collect();
        let has = |key: &str, of: &dyn Fn(&Case) -> String| {
            there.iter().any(|case| is_same_request(&of(case), &candidate.case[key]))
                || kept.iter().any(|other| {
                    is_same_request(other.case[key].as_str().unwrap_or_default(), &candidate.case[key])
                })
        };
        let why = match () {
            () if has("id", &|case| case.id.clone()) => {
                Some("there is a case of this name already".to_owned())
            }
            () if has("prompt", &user_prompt) => Some("there is a case with this request already".to_owned()),
            () => mislabelled_reason(&candidate).or_else(|| objection_to(&candidate, skill)),
        };
        match why {
            None => kept.push(candidate),
            Some(why) => dropped.push(DroppedCandidate { id, why }),
        }
    }
    (kept, dropped)
}

/// Says whether two requests are the same apart from blanks and capitals.
fn is_same_request(one: &str, other: &Value) -> bool {
    let plain = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    other.as_str().is_some_and(|other| plain(one) == plain(other))
}

/// Says why a case is not of the kind that it claims. Such a case would be counted for something that it does not
/// test.
fn mislabelled_reason(Candidate { kind, case }: &Candidate) -> Option<String> {
    let leaves_something =
        case["checks"].as_array().into_iter().flatten().any(|check| check.get("file").is_some());
    let why = match kind {
        CandidateKind::Positive if case["activation"] != "must" => {
            "it is to be a positive, and does not say that the skill must be activated"
        }
        CandidateKind::NearMiss if case["activation"] != "must_not" => {
            "it is to be a near miss, and does not say that the skill must not be activated"
        }
        CandidateKind::Artifact if !leaves_something => "it is to leave something behind, and names no file",
        CandidateKind::Positive | CandidateKind::NearMiss | CandidateKind::Artifact | CandidateKind::Edge => {
            return None;
        }
    };
    Some(why.to_owned())
}

/// Gives the objection to a candidate, if any. That only a judge can fail it is no objection: that is the purpose
/// of statements.
fn objection_to(candidate: &Candidate, skill: &Path) -> Option<String> {
    let text = candidates_as_native(skill, std::slice::from_ref(candidate)).to_string();
    let folder = evals_folder(skill);
    let project = folder.parent().unwrap_or(skill);
    let place = EvalFileLocation::new(folder.clone(), project.to_owned());
    let mut loaded = dialects::load_text(&folder.join("candidate.practicum.yaml"), text, &place);
    if let Some(suite) = &loaded.lowered.suite {
        let mut tested = Diagnostics::default();
        suite_quality::review_suite(suite, &loaded.text, &place.skills, &mut tested);
        // Doing nothing is right if the case only requires that the skill is not activated.
        if candidate.case["activation"] != "must_not" || candidate.case.get("checks").is_some() {
            self_test(suite, &loaded.text, project, &mut tested);
        }
        loaded.lowered.diagnostics.extend(tested);
    }
    let serious = |severity| matches!(severity, Severity::Error | Severity::Warning);
    let found = loaded.lowered.diagnostics.iter().find(|problem| serious(problem.severity));
    found.map(|problem| problem.message.clone())
}

/// Writes candidates as a native file, for the user to edit.
pub fn candidates_as_native(skill: &Path, candidates: &[Candidate]) -> Value {
    let text = |name: Option<&OsStr>| name.unwrap_or("skill".as_ref()).to_string_lossy().into_owned();
    let (name, from_evals) = match skill.is_file() {
        true => (text(skill.file_stem()), format!("../{}", text(skill.file_name()))),
        false => (text(skill.file_name()), "..".to_owned()),
    };
    json!({
        "practicum": 1,
        "name": format!("{name}-candidates"),
        "skill": from_evals,
        "workspace": "empty",
        "cases": candidates.iter().map(|candidate| candidate.case.clone()).collect::<Vec<_>>(),
    })
}

//! Asking for edits, and keeping those that can be followed.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::edits::{Draft, Refused, Suggestion};
use super::failures::Failures;
use super::forms::{closed, items_of, list_of, text_of, texts_of};
use super::{Advice, Adviser, Contents, ContentsError};
use practicum_agents::llm::Tool;
use practicum_engine::judge::{Inquiry, cut};

/// An edit that can be made, and the failed checks it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Followed {
    #[serde(flatten)]
    pub suggestion: Suggestion,
    /// Each by its case and its id: `case/check`.
    pub checks: Vec<String>,
}

/// Edits that a model proposes: `suggest --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Edits proposed for a skill (suggest --json)")]
pub struct Edits {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: PathBuf,
    /// The run whose failed checks they are for.
    pub run: String,
    /// Those checks, each as `case/check`.
    pub failed: Vec<String>,
    pub edits: Vec<Followed>,
    /// Proposals that cannot be followed, with why not.
    pub refused: Vec<Refused>,
    /// All edits together, as a unified diff.
    pub diff: String,
    /// Whether the skill was changed.
    pub applied: bool,
    /// The version that holds the skill as it was before.
    pub kept_as: Option<u32>,
}

impl Edits {
    /// Of a run in which nothing failed.
    pub fn none(skill: &Path, run: &str) -> Self {
        Self {
            schema_version: 1,
            skill: skill.to_owned(),
            run: run.to_owned(),
            failed: Vec::new(),
            edits: Vec::new(),
            refused: Vec::new(),
            diff: String::new(),
            applied: false,
            kept_as: None,
        }
    }
}

/// What came of asking for edits.
#[derive(Debug)]
pub struct Suggested {
    pub draft: Draft,
    pub followed: Vec<Followed>,
    pub refused: Vec<Refused>,
}

const RULES: &str = "\
You improve agent skills: texts that tell an AI agent how to do a kind of work. You are shown a skill, the \
checks that it failed, and what happened.

Rules:
- Propose few, small changes to the skill's own files, each for failed checks that you name.
- Each change names a text that occurs exactly once in the skill, copied letter by letter, and what stands \
in its place afterwards.
- Mend the cause, for all requests of this kind. Never write the answer to a request that you were shown \
into the skill: other requests will be tried.
- Leave the skill's name and the keys of its frontmatter as they are. Nothing but the skill may be changed.";

/// Files beyond this are shown in part; what is not shown cannot be changed by accident.
const LONGEST_FILE: usize = 60_000;

/// The skill's files as exhibits.
pub fn skill_exhibits(draft: &Draft) -> Vec<(String, String)> {
    let shown = draft.texts().enumerate();
    shown
        .map(|(number, (path, text))| {
            let text = format!("file {path}\n{}", cut(text, LONGEST_FILE));
            (format!("The skill, file {}", number + 1), text)
        })
        .collect()
}

/// Asks for edits to the skill in a folder. `more` is what else is known.
pub async fn suggest(
    adviser: &Adviser,
    contents: &Contents,
    failures: &Failures,
    more: Vec<(String, String)>,
    round: u32,
) -> Result<Advice<Suggested>, ContentsError> {
    let draft = Draft::of(contents)?;
    let exhibits = skill_exhibits(&draft).into_iter().chain(failures.exhibits()).chain(more);
    let text = json!({"type": "string"});
    let edit = closed(json!({
        "file": {"type": ["string", "null"]},
        "area": text,
        "before": text,
        "after": text,
        "reasoning": text,
        "checks": list_of(text.clone()),
    }));
    let inquiry = Inquiry {
        rules: RULES.to_owned(),
        exhibits: exhibits.collect(),
        wanted: "Propose edits to the skill. Answer with JSON of the form {\"edits\": [{\"file\": text or \
                 null, \"area\", \"before\", \"after\", \"reasoning\", \"checks\": [names of failed checks]}]}."
            .to_owned(),
        form: Tool {
            name: "propose_edits".to_owned(),
            description: "Propose edits to the skill.".to_owned(),
            input_schema: closed(json!({"edits": list_of(edit)})),
        },
        round,
    };
    let name = format!("suggest {round}");
    let Advice { answer, cost_usd } = adviser.ask(&name, &inquiry, &read).await;
    let answer = answer.map(|proposals| follow_all(draft, proposals, failures));
    Ok(Advice { answer, cost_usd })
}

struct Proposal {
    suggestion: Suggestion,
    file: Option<String>,
    checks: Vec<String>,
}

fn read(answer: &Value) -> Result<Vec<Proposal>, String> {
    let proposal = |edit: &Value| {
        Ok(Proposal {
            suggestion: suggestion_of(edit)?,
            file: edit["file"].as_str().map(str::to_owned),
            checks: texts_of(edit, "checks")?,
        })
    };
    items_of(answer, "edits")?.iter().map(proposal).collect()
}

pub fn suggestion_of(value: &Value) -> Result<Suggestion, String> {
    Ok(Suggestion {
        area: text_of(value, "area")?,
        before: text_of(value, "before")?,
        after: text_of(value, "after")?,
        reasoning: text_of(value, "reasoning")?,
    })
}

fn follow_all(mut draft: Draft, proposals: Vec<Proposal>, failures: &Failures) -> Suggested {
    let (mut followed, mut refused) = (Vec::new(), Vec::new());
    for Proposal { suggestion, file, mut checks } in proposals {
        checks.retain(|check| failures.has(check));
        let done = match checks.is_empty() {
            true => Err("it is for no check that failed".to_owned()),
            false => draft.follow(&suggestion, file.as_deref()),
        };
        match done {
            Ok(()) => followed.push(Followed { suggestion, checks }),
            Err(why) => refused.push(Refused { suggestion, why }),
        }
    }
    Suggested { draft, followed, refused }
}

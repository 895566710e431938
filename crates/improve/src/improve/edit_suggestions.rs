//! Asks for edits to a skill, and keeps those that can be applied.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer_forms::{closed_object, items_of, list_of, text_of, texts_of};
use super::edits::{EditSuggestion, RefusedSuggestion, SkillEditDraft};
use super::failures::FailedChecks;
use super::{Adviser, AdviserAnswer, SkillContents, SkillContentsError};
use practicum_agents::llm::ToolDefinition;
use practicum_engine::grade::judge::{StructuredQuestion, shorten_text};

/// An edit that can be made, and the failed checks it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedEdit {
    #[serde(flatten)]
    pub suggestion: EditSuggestion,
    /// Each by its case and its id: `case/check`.
    pub checks: Vec<String>,
}

/// Edits that a model proposes: `suggest --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Edits proposed for a skill (suggest --json)")]
pub struct EditsReport {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: PathBuf,
    /// The run whose failed checks they are for.
    pub run: String,
    /// The failed checks, each as `case/check`.
    pub failed: Vec<String>,
    pub edits: Vec<AcceptedEdit>,
    /// Proposals that cannot be followed, with why not.
    pub refused: Vec<RefusedSuggestion>,
    /// All edits together, as a unified diff.
    pub diff: String,
    /// Whether the skill was changed.
    pub applied: bool,
    /// The version that holds the skill as it was before.
    pub kept_as: Option<u32>,
}

impl EditsReport {
    /// Gives the suggestions for a run in which nothing failed: none.
    pub fn empty(skill: &Path, run: &str) -> Self {
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

/// The result of asking for edits.
#[derive(Debug)]
pub struct SuggestedEdits {
    pub draft: SkillEditDraft,
    pub accepted: Vec<AcceptedEdit>,
    pub refused: Vec<RefusedSuggestion>,
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

/// The longest file that is shown in full. A part that is not shown cannot be changed by accident.
const LONGEST_FILE: usize = 60_000;

/// Gives the skill's files as exhibits for the question.
pub fn skill_exhibits(draft: &SkillEditDraft) -> Vec<(String, String)> {
    let shown = draft.texts().enumerate();
    shown
        .map(|(number, (path, text))| {
            let text = format!("file {path}\n{}", shorten_text(text, LONGEST_FILE));
            (format!("The skill, file {}", number + 1), text)
        })
        .collect()
}

/// Asks for edits to the skill in a folder. `more` is further information for the model.
pub async fn suggest_edits(
    adviser: &Adviser,
    contents: &SkillContents,
    failures: &FailedChecks,
    more: Vec<(String, String)>,
    round: u32,
) -> Result<AdviserAnswer<SuggestedEdits>, SkillContentsError> {
    let draft = SkillEditDraft::from_contents(contents)?;
    let exhibits = skill_exhibits(&draft).into_iter().chain(failures.exhibits()).chain(more);
    let text = json!({"type": "string"});
    let edit = closed_object(json!({
        "file": {"type": ["string", "null"]},
        "area": text,
        "before": text,
        "after": text,
        "reasoning": text,
        "checks": list_of(text.clone()),
    }));
    let inquiry = StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits: exhibits.collect(),
        task: "Propose edits to the skill. Answer with JSON of the form {\"edits\": [{\"file\": text or \
                 null, \"area\", \"before\", \"after\", \"reasoning\", \"checks\": [names of failed checks]}]}."
            .to_owned(),
        form: ToolDefinition {
            name: "propose_edits".to_owned(),
            description: "Propose edits to the skill.".to_owned(),
            input_schema: closed_object(json!({"edits": list_of(edit)})),
        },
        round,
    };
    let name = format!("suggest {round}");
    let AdviserAnswer { answer, cost_usd } = adviser.ask_as(&name, &inquiry, &read).await;
    let answer = answer.map(|proposals| apply_proposals(draft, proposals, failures));
    Ok(AdviserAnswer { answer, cost_usd })
}

struct ProposedEdit {
    suggestion: EditSuggestion,
    file: Option<String>,
    checks: Vec<String>,
}

fn read(answer: &Value) -> Result<Vec<ProposedEdit>, String> {
    let proposal = |edit: &Value| {
        Ok(ProposedEdit {
            suggestion: read_suggestion(edit)?,
            file: edit["file"].as_str().map(str::to_owned),
            checks: texts_of(edit, "checks")?,
        })
    };
    items_of(answer, "edits")?.iter().map(proposal).collect()
}

pub fn read_suggestion(value: &Value) -> Result<EditSuggestion, String> {
    Ok(EditSuggestion {
        area: text_of(value, "area")?,
        before: text_of(value, "before")?,
        after: text_of(value, "after")?,
        reasoning: text_of(value, "reasoning")?,
    })
}

fn apply_proposals(
    mut draft: SkillEditDraft,
    proposals: Vec<ProposedEdit>,
    failures: &FailedChecks,
) -> SuggestedEdits {
    let (mut followed, mut refused) = (Vec::new(), Vec::new());
    for ProposedEdit { suggestion, file, mut checks } in proposals {
        checks.retain(|check| failures.has(check));
        let done = match checks.is_empty() {
            true => Err("it is for no check that failed".to_owned()),
            false => draft.apply_suggestion(&suggestion, file.as_deref()),
        };
        match done {
            Ok(()) => followed.push(AcceptedEdit { suggestion, checks }),
            Err(why) => refused.push(RefusedSuggestion { suggestion, why }),
        }
    }
    SuggestedEdits { draft, accepted: followed, refused }
}

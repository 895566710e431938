//! Questions that other parts of the program ask a model, with the same precautions as a judge's own questions.

use serde_json::Value;

use super::prompt::{self, FENCE_RULE, enclose_in_fence, make_visible};
use super::question::{AnswerProblem, AnswerReader, JudgeQuestion, QuestionResult};
use super::{Judge, JudgeContext};
use practicum_agents::llm::ToolDefinition;
use practicum_core::model::{NotScoredReason, TokenUsage};

/// A question with a required form of answer. Text that others wrote belongs only in `exhibits`.
#[derive(Debug, Clone)]
pub struct StructuredQuestion {
    /// Instructions: who the model is, what it does, and by which rules.
    pub rules: String,
    /// The texts to read, each with a title of ours.
    pub exhibits: Vec<(String, String)>,
    /// The task.
    pub task: String,
    /// The form of the answer, as a tool whose input is the answer. Its schema lists the required keys.
    pub form: ToolDefinition,
    /// The number of the round. A question that is asked again is a separate question in the cache.
    pub round: u32,
}

/// The result of a structured question.
#[derive(Debug)]
pub struct StructuredAnswer<T> {
    pub answer: Result<T, NotScoredReason>,
    pub usage: TokenUsage,
}

impl Judge {
    /// Asks once, and once more with what `read` found wrong with the answer.
    pub async fn ask_structured<T: Send>(
        &self,
        inquiry: &StructuredQuestion,
        read: &(dyn Fn(&Value) -> Result<T, String> + Send + Sync),
        sitting: &JudgeContext<'_>,
    ) -> StructuredAnswer<T> {
        let exhibits: Vec<(&str, String)> =
            inquiry.exhibits.iter().map(|(title, text)| (title.as_str(), make_visible(text))).collect();
        let fence = prompt::choose_fence(&exhibits.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>());
        let mut text = format!("The fence line is: {fence}\n");
        for (title, exhibit) in &exhibits {
            text.push_str(&format!("\n{title}:\n{}", enclose_in_fence(exhibit, &fence)));
        }
        text.push_str(&format!("\n{}\n", inquiry.task));
        let question = JudgeQuestion {
            pictures: Default::default(),
            system: format!("{}\n- {FENCE_RULE}", inquiry.rules),
            text,
            fence,
            tool: inquiry.form.clone(),
            vote: inquiry.round,
        };
        let mut taken = FormReader { required: required(&inquiry.form), parse: read, answer: None };
        let cache = self.cache.as_ref();
        let QuestionResult { usage, missing } =
            question.ask(&self.connection, &self.model, cache, &mut taken, sitting).await;
        let missing = missing.unwrap_or_else(|| NotScoredReason::JudgeFailed("it gave no answer".to_owned()));
        StructuredAnswer { answer: taken.answer.ok_or(missing), usage }
    }
}

fn required(form: &ToolDefinition) -> Vec<String> {
    let keys = form.input_schema["required"].as_array().into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

struct FormReader<'r, T> {
    required: Vec<String>,
    parse: &'r (dyn Fn(&Value) -> Result<T, String> + Send + Sync),
    answer: Option<T>,
}

impl<T: Send> AnswerReader for FormReader<'_, T> {
    fn looks_like_answer(&self, answer: &Value) -> bool {
        self.required.iter().all(|key| answer.get(key).is_some())
    }

    fn read_answer(&mut self, answer: &Value, round: usize) -> Result<(), AnswerProblem> {
        let read = (self.parse)(answer).map_err(|what| AnswerProblem::broken_form(what, round))?;
        self.answer = Some(read);
        Ok(())
    }

    fn reset(&mut self) {
        self.answer = None;
    }
}

//! Questions that other stages have for a model, asked with the same care as a judge's own.

use serde_json::Value;

use super::prompt::{self, FENCE_RULE, fenced, visible};
use super::question::{Problem, Question, Reading, Settled};
use super::{Judge, Sitting};
use practicum_agents::llm::Tool;
use practicum_core::model::{Usage, Why};

/// A question with a form for its answer. What others wrote stands in its exhibits, and nowhere else.
#[derive(Debug, Clone)]
pub struct Inquiry {
    /// Who is asked to do what, and by which rules.
    pub rules: String,
    /// What is to be read, each under a title of ours.
    pub exhibits: Vec<(String, String)>,
    /// What is wanted.
    pub wanted: String,
    /// The form of the answer, as a tool that takes it. Its schema lists what is required.
    pub form: Tool,
    /// The same question asked again is another question.
    pub round: u32,
}

/// What became of it.
#[derive(Debug)]
pub struct Consulted<T> {
    pub answer: Result<T, Why>,
    pub usage: Usage,
}

impl Judge {
    /// Asks once, and once more with what `read` found wrong with the answer.
    pub async fn consult<T: Send>(
        &self,
        inquiry: &Inquiry,
        read: &(dyn Fn(&Value) -> Result<T, String> + Send + Sync),
        sitting: &Sitting<'_>,
    ) -> Consulted<T> {
        let exhibits: Vec<(&str, String)> =
            inquiry.exhibits.iter().map(|(title, text)| (title.as_str(), visible(text))).collect();
        let fence = prompt::fence(&exhibits.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>());
        let mut text = format!("The fence line is: {fence}\n");
        for (title, exhibit) in &exhibits {
            text.push_str(&format!("\n{title}:\n{}", fenced(exhibit, &fence)));
        }
        text.push_str(&format!("\n{}\n", inquiry.wanted));
        let question = Question {
            system: format!("{}\n- {FENCE_RULE}", inquiry.rules),
            text,
            fence,
            tool: inquiry.form.clone(),
            vote: inquiry.round,
        };
        let mut taken = Taken { required: required(&inquiry.form), read, answer: None };
        let cache = self.cache.as_ref();
        let Settled { usage, missing } =
            question.settle(&self.transport, &self.model, cache, &mut taken, sitting).await;
        let missing = missing.unwrap_or_else(|| Why::JudgeFailed("it gave no answer".to_owned()));
        Consulted { answer: taken.answer.ok_or(missing), usage }
    }
}

fn required(form: &Tool) -> Vec<String> {
    let keys = form.input_schema["required"].as_array().into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

struct Taken<'r, T> {
    required: Vec<String>,
    read: &'r (dyn Fn(&Value) -> Result<T, String> + Send + Sync),
    answer: Option<T>,
}

impl<T: Send> Reading for Taken<'_, T> {
    fn is_meant(&self, answer: &Value) -> bool {
        self.required.iter().all(|key| answer.get(key).is_some())
    }

    fn take_in(&mut self, answer: &Value, round: usize) -> Result<(), Problem> {
        let read = (self.read)(answer).map_err(|what| Problem::of_form(what, round))?;
        self.answer = Some(read);
        Ok(())
    }

    fn start_over(&mut self) {
        self.answer = None;
    }
}

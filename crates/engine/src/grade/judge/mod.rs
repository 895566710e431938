//! Judging by a model: statements about a run, and the contents of the texts that it produced.
//!
//! In: the checks of a case, and what was observed. Out: a `JudgeVerdict` for each question, with quotes that were
//! looked up. Never: learns which arm, version or agent it judges.

mod answer_cache;
mod cli_judge;
mod connection;
mod evidence;
mod extraction;
mod picture_statements;
mod prediction;
mod prompt;
mod python_text;
mod question;
mod quotes;
mod statement_answers;
mod steps;
mod structured_question;
mod votes;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use answer_cache::{AnswerCache, ScrubFn};
pub use cli_judge::{CliJudge, NO_PICTURES};
pub use connection::{JudgeConnection, JudgeLimits};
pub use evidence::{TrialEvidence, shorten_text};
pub use prediction::{OfferedSkill, PredictionInput, predicted_activation};
pub use quotes::supports;
pub use structured_question::{StructuredAnswer, StructuredQuestion};

use self::evidence::{EvidenceText, text_within_window};
use self::extraction::ExtractionReader;
use self::prompt::{StatementSubject, make_visible};
use self::question::{JudgeQuestion, QuestionResult};
use self::quotes::QuotableText;
use self::statement_answers::StatementAnswerReader;
use crate::workspace::pictures::PictureRenderer;
use crate::workspace::run::CancelToken;
use practicum_agents::llm::{ModelApi, ToolDefinition};
use practicum_core::model::{
    ActivationCheck, Check, CheckFinding, CheckKind, CheckTarget, CheckedText, JudgeVote, JudgedStatement,
    NotScoredReason, OutputSection, Remarks, ShortenedEvidence, TokenUsage, UnsupportedPassPolicy,
};
use practicum_evals::checks::{ExtractedSections, check_sections, texts_of_check};

/// The tools with which a judge answers over an API.
const VERDICTS_TOOL: &str = "report_marks";
const ENTRIES_TOOL: &str = "report_entries";

/// A model that judges, with the connection and the rules for asking it.
#[derive(Clone)]
pub struct Judge {
    connection: JudgeConnection,
    model: String,
    votes: u32,
    unsupported: UnsupportedPassPolicy,
    cache: Option<AnswerCache>,
    scrub: Option<ScrubFn>,
    renderer: Option<PictureRenderer>,
}

/// The context in which a judge is asked about one trial.
pub struct JudgeContext<'s> {
    /// Marks the processes of a judge that is a CLI, so that they can be ended.
    pub marker: &'s str,
    pub cancel: &'s CancelToken,
}

/// One statement for the judge, with the id of its check.
#[derive(Debug, Clone, Copy)]
pub struct StatementQuestion<'s> {
    pub id: &'s str,
    pub statement: &'s JudgedStatement,
}

/// The questions of a case that need a judge.
pub struct CaseQuestions<'q> {
    /// Statements about the run.
    statements: Vec<StatementQuestion<'q>>,
    file_statements: Vec<FileStatements<'q>>,
    extractions: Vec<SectionQuestion<'q>>,
    predictions: Vec<(&'q str, &'q ActivationCheck)>,
    prediction_input: PredictionInput,
}

/// Statements about the same files.
struct FileStatements<'q> {
    /// One of the checks of these statements. All of them look at the same files.
    check: &'q Check,
    statements: Vec<StatementQuestion<'q>>,
}

/// The sections that one check is about.
struct SectionQuestion<'q> {
    check: &'q Check,
    sections: &'q [OutputSection],
    /// The ids of the case's checks. No part of a check may have one of them.
    reserved_ids: BTreeSet<&'q str>,
}

impl SectionQuestion<'_> {
    fn to_verdicts(&self, extracted: &ExtractedSections, unread: &NotScoredReason) -> Vec<JudgeVerdict> {
        let id = &self.check.id;
        let findings = check_sections(id, self.sections, extracted, unread, &self.reserved_ids).into_iter();
        findings.map(|(part, finding)| JudgeVerdict::new(id, &part, finding)).collect()
    }
}

/// The answer to one question, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeVerdict {
    /// The id of the check that the verdict belongs to.
    pub check: String,
    /// The id of the verdict. A check about sections has one verdict for each of its requirements.
    pub id: String,
    pub finding: CheckFinding,
    /// The reason why the check would pass trivially, if the judge thinks so.
    pub weak: Option<String>,
    /// Reasons to doubt the verdict.
    pub flags: Vec<String>,
    /// The single votes, if the judge was asked for several.
    pub votes: Vec<JudgeVote>,
}

/// The verdicts, notes and token usage of judging one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgeResult {
    pub verdicts: Vec<JudgeVerdict>,
    pub remarks: Remarks,
    /// The skills that the judge expects to be activated, if it was asked and answered.
    pub predicted_skills: Option<Vec<String>>,
    /// Notes for the user that change no verdict.
    pub notes: Vec<String>,
    /// How much the judge was not shown, if anything was left out.
    pub shortened: Option<ShortenedEvidence>,
    pub usage: TokenUsage,
}

impl JudgeVerdict {
    pub fn new(check: &str, id: &str, finding: CheckFinding) -> Self {
        let (check, id) = (check.to_owned(), id.to_owned());
        Self { check, id, finding, weak: None, flags: Vec::new(), votes: Vec::new() }
    }
}

impl JudgeResult {
    /// Removes and returns the verdicts of one check.
    pub(crate) fn take_verdicts_of(&mut self, check: &str) -> Vec<JudgeVerdict> {
        let (own, others) =
            std::mem::take(&mut self.verdicts).into_iter().partition(|verdict| verdict.check == check);
        self.verdicts = others;
        own
    }

    fn add(&mut self, other: JudgeResult) {
        self.verdicts.extend(other.verdicts);
        self.notes.extend(other.notes);
        self.usage.add(other.usage);
        self.shortened = match (self.shortened, other.shortened) {
            (Some(one), Some(other)) => Some(one.merge(other)),
            (one, other) => one.or(other),
        };
        self.predicted_skills = self.predicted_skills.take().or(other.predicted_skills);
        if self.remarks.is_empty() {
            self.remarks = other.remarks;
        }
    }
}

impl<'q> CaseQuestions<'q> {
    pub fn from_checks(checks: impl IntoIterator<Item = &'q Check>) -> Self {
        let checks: Vec<&Check> = checks.into_iter().collect();
        let taken: BTreeSet<&str> = checks.iter().map(|check| check.id.as_str()).collect();
        let mut questions = Self {
            statements: Vec::new(),
            file_statements: Vec::new(),
            extractions: Vec::new(),
            predictions: Vec::new(),
            prediction_input: PredictionInput::default(),
        };
        for check in checks {
            questions
                .predictions
                .extend(predicted_activation(check).map(|activation| (check.id.as_str(), activation)));
            match &check.kind {
                CheckKind::Judged(judged) => {
                    questions.add(check, StatementQuestion { id: &check.id, statement: judged })
                }
                CheckKind::Sections(sections) => {
                    questions.extractions.push(SectionQuestion {
                        check,
                        sections,
                        reserved_ids: taken.clone(),
                    });
                }
                CheckKind::Rule(_) | CheckKind::Activation(_) => {}
            }
        }
        questions
    }

    fn add(&mut self, check: &'q Check, statement: StatementQuestion<'q>) {
        match &check.target {
            CheckTarget::Output | CheckTarget::LastTurn | CheckTarget::AllText | CheckTarget::WholeRun => {
                self.statements.push(statement)
            }
            CheckTarget::File(_) | CheckTarget::Files(_) | CheckTarget::Pictures(_) => {
                let same = self.file_statements.iter_mut().find(|about| about.check.target == check.target);
                match same {
                    Some(about) => about.statements.push(statement),
                    None => self.file_statements.push(FileStatements { check, statements: vec![statement] }),
                }
            }
        }
    }

    /// Sets the input for predictions of activation.
    #[must_use]
    pub(crate) fn with_prediction_input(self, situation: PredictionInput) -> Self {
        Self { prediction_input: situation, ..self }
    }

    pub fn is_empty(&self) -> bool {
        let has_statements = !self.statements.is_empty() || !self.file_statements.is_empty();
        !has_statements && self.extractions.is_empty() && self.predictions.is_empty()
    }

    /// Gives every question a verdict "not scored", all for the same reason.
    pub fn unanswered(&self, why: &NotScoredReason) -> JudgeResult {
        let about_files = self.file_statements.iter().flat_map(|about| &about.statements);
        let statements = self.statements.iter().chain(about_files).map(|statement| statement.id);
        let ids = statements.chain(self.predictions.iter().map(|(id, _)| *id));
        let unscored = |id: &str| JudgeVerdict::new(id, id, CheckFinding::not_scored(why.clone()));
        let mut verdicts: Vec<JudgeVerdict> = ids.map(unscored).collect();
        for sections in &self.extractions {
            verdicts.extend(sections.to_verdicts(&ExtractedSections::default(), why));
        }
        JudgeResult { verdicts, ..JudgeResult::default() }
    }
}

impl Judge {
    pub fn new(transport: JudgeConnection, model: String) -> Self {
        let unsupported = UnsupportedPassPolicy::NotScored;
        Self { connection: transport, model, votes: 1, unsupported, cache: None, scrub: None, renderer: None }
    }

    /// Sets how often the judge is asked about the same statements. The majority decides.
    #[must_use]
    pub(crate) fn with_votes(mut self, votes: u32) -> Self {
        self.votes = votes.max(1);
        self
    }

    /// Sets how to treat a pass whose quotes do not support it, even after the judge was asked once more.
    #[must_use]
    pub(crate) fn with_unsupported(self, unsupported: UnsupportedPassPolicy) -> Self {
        Self { unsupported, ..self }
    }

    /// Sets a cache, so that a question with a stored answer is not asked again.
    #[must_use]
    pub(crate) fn with_cache(mut self, cache: AnswerCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets a function that removes secrets from everything that the judge is shown.
    #[must_use]
    pub(crate) fn with_scrub(mut self, scrub: ScrubFn) -> Self {
        self.scrub = Some(scrub);
        self
    }

    /// Sets what makes pictures of files. Without it, no statement about pictures is judged.
    #[must_use]
    pub fn with_renderer(mut self, renderer: PictureRenderer) -> Self {
        self.renderer = Some(renderer);
        self
    }

    fn scrubbed(&self, text: String) -> String {
        match &self.scrub {
            Some(scrub) => scrub(&text),
            None => text,
        }
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    /// Makes a judge that is asked at another address, that of a gateway, in the form that each API needs.
    pub fn at_address(&self, address: impl Fn(ModelApi) -> String) -> Self {
        Self { connection: self.connection.at_address(address), ..self.clone() }
    }

    /// Answers all questions about one trial.
    pub async fn judge_trial(
        &self,
        questions: &CaseQuestions<'_>,
        exhibit: &TrialEvidence<'_>,
        sitting: &JudgeContext<'_>,
    ) -> JudgeResult {
        let mut judge_result = JudgeResult::default();
        if !questions.statements.is_empty() {
            let laid = exhibit.to_text();
            judge_result.add(
                self.judge_statements(StatementSubject::Run, &questions.statements, laid, sitting).await,
            );
        }
        for FileStatements { check, statements } in &questions.file_statements {
            judge_result.add(self.judge_files(check, statements, exhibit, sitting).await);
        }
        for sections in &questions.extractions {
            judge_result.add(self.judge_sections(sections, exhibit, sitting).await);
        }
        if !questions.predictions.is_empty() {
            judge_result.add(
                self.predict_activation(&questions.predictions, &questions.prediction_input, sitting).await,
            );
        }
        judge_result
    }

    /// Judges statements about the files that an agent was asked to write, from the contents of these files.
    async fn judge_files(
        &self,
        check: &Check,
        statements: &[StatementQuestion<'_>],
        exhibit: &TrialEvidence<'_>,
        sitting: &JudgeContext<'_>,
    ) -> JudgeResult {
        if let CheckTarget::Pictures(globs) = &check.target {
            return match self.show_pictures(globs, exhibit, sitting).await {
                Ok(laid) => {
                    self.judge_statements(StatementSubject::Pictures, statements, laid, sitting).await
                }
                Err(finding) => same_verdict(statements, &finding),
            };
        }
        match texts_of_check(check, exhibit.observation, exhibit.workspace) {
            Ok(texts) => {
                let said: String = texts.iter().map(|checked| format!("{}\n", checked.text)).collect();
                let laid = exhibit.to_graded_text(&label(&texts), &said);
                self.judge_statements(StatementSubject::Files, statements, laid, sitting).await
            }
            Err(finding) => same_verdict(statements, &finding),
        }
    }

    /// Judges statements about the text of a skill.
    pub(crate) async fn judge_skill_text(
        &self,
        statements: &[StatementQuestion<'_>],
        text: &str,
        sitting: &JudgeContext<'_>,
    ) -> JudgeResult {
        self.judge_statements(StatementSubject::Skill, statements, text_within_window(text), sitting).await
    }

    /// Judges all statements, once for each vote.
    async fn judge_statements(
        &self,
        subject: StatementSubject,
        statements: &[StatementQuestion<'_>],
        laid: EvidenceText,
        sitting: &JudgeContext<'_>,
    ) -> JudgeResult {
        let record = laid.to_quotable(|text| self.scrubbed(text));
        let mut decided = JudgeResult { shortened: laid.shortened, ..JudgeResult::default() };
        let mut rounds = Vec::new();
        for vote in 0..self.votes {
            let judge_result = self.collect_vote(subject, statements, &record, vote, sitting).await;
            rounds.push(judge_result.verdicts.clone());
            decided.add(JudgeResult { verdicts: Vec::new(), ..judge_result });
        }
        decided.verdicts = votes::majority(rounds);
        decided
    }

    async fn collect_vote(
        &self,
        subject: StatementSubject,
        statements: &[StatementQuestion<'_>],
        record: &QuotableText,
        vote: u32,
        sitting: &JudgeContext<'_>,
    ) -> JudgeResult {
        let about = statements.iter().flat_map(|statement| {
            [Some(statement.statement.statement.as_str()), statement.statement.context.as_deref()]
        });
        let enclosed: Vec<&str> = about.flatten().chain([record.text.as_str(), &record.background]).collect();
        let fence = prompt::choose_fence(&enclosed);
        let question = JudgeQuestion {
            system: subject.rules(),
            text: prompt::statements_prompt(subject, statements, record, &fence),
            pictures: Arc::clone(&record.pictures),
            fence,
            tool: ToolDefinition {
                name: VERDICTS_TOOL.to_owned(),
                description: "Report the verdict of every statement.".to_owned(),
                input_schema: statement_answers::schema(),
            },
            vote,
        };
        let mut reader = StatementAnswerReader::new(statements, record, self.unsupported);
        let cache = self.cache.as_ref();
        let QuestionResult { usage, missing } =
            question.ask(&self.connection, &self.model, cache, &mut reader, sitting).await;
        let (mut verdicts, remarks) = reader.finish();
        let unscored = |id: &str| {
            let why =
                missing.clone().unwrap_or_else(|| NotScoredReason::JudgeFailed("it is missing".to_owned()));
            JudgeVerdict::new(id, id, CheckFinding::not_scored(why))
        };
        let in_order = statements.iter().map(|statement| {
            let given = verdicts.iter().position(|verdict| verdict.id == statement.id);
            given.map_or_else(|| unscored(statement.id), |at| verdicts.swap_remove(at))
        });
        JudgeResult { verdicts: in_order.collect(), remarks, usage, ..JudgeResult::default() }
    }

    /// Has the entries of all sections of a check read with one question, and checks them.
    async fn judge_sections(
        &self,
        asked: &SectionQuestion<'_>,
        exhibit: &TrialEvidence<'_>,
        sitting: &JudgeContext<'_>,
    ) -> JudgeResult {
        let SectionQuestion { check, sections, .. } = *asked;
        let texts = match texts_of_check(check, exhibit.observation, exhibit.workspace) {
            Ok(texts) => texts,
            Err(finding) => {
                let nothing = NotScoredReason::NotJudged(finding.rationale.clone());
                let mut verdicts = asked.to_verdicts(&ExtractedSections::default(), &nothing);
                verdicts.iter_mut().for_each(|verdict| verdict.finding = finding.clone());
                return JudgeResult { verdicts, ..JudgeResult::default() };
            }
        };
        let laid = text_within_window(&label(&texts));
        let text = laid.to_quotable(|text| self.scrubbed(text));
        let descriptions = sections.iter().flat_map(|section| &section.tiers);
        let descriptions = descriptions.filter_map(|tier| tier.description.as_deref());
        let enclosed: Vec<&str> = descriptions.chain([text.text.as_str()]).collect();
        let fence = prompt::choose_fence(&enclosed);
        let question = JudgeQuestion {
            system: prompt::extraction_rules(),
            text: prompt::sections_prompt(sections, &text.text, &fence),
            pictures: Arc::default(),
            fence,
            tool: ToolDefinition {
                name: ENTRIES_TOOL.to_owned(),
                description: "Report the entries of every section.".to_owned(),
                input_schema: extraction::schema(sections),
            },
            vote: 0,
        };
        let spoken = QuotableText::new(self.scrubbed(visible_texts(&texts)));
        let mut extraction = ExtractionReader::new(sections, &spoken, self.unsupported);
        let cache = self.cache.as_ref();
        let QuestionResult { usage, missing } =
            question.ask(&self.connection, &self.model, cache, &mut extraction, sitting).await;
        let unread =
            missing.unwrap_or_else(|| NotScoredReason::JudgeFailed("a field was left out".to_owned()));
        let ExtractionReader { extracted, flags, .. } = extraction;
        let mut verdicts = asked.to_verdicts(&extracted, &unread);
        if let Some(first) = verdicts.first_mut() {
            first.flags = flags;
        }
        JudgeResult { verdicts, shortened: laid.shortened, usage, ..JudgeResult::default() }
    }
}

/// Gives every statement the same finding.
fn same_verdict(statements: &[StatementQuestion<'_>], finding: &CheckFinding) -> JudgeResult {
    let verdict =
        |statement: &StatementQuestion<'_>| JudgeVerdict::new(statement.id, statement.id, finding.clone());
    JudgeResult { verdicts: statements.iter().map(verdict).collect(), ..JudgeResult::default() }
}

/// Joins texts into one for a judge, each file below its number. The paths are left out: they are not part of any
/// file, and a judge might take one for an entry.
fn label(texts: &[CheckedText<'_>]) -> String {
    match texts {
        [only] => only.text.clone().into_owned(),
        several => {
            let count = several.len();
            let numbered = several.iter().enumerate().map(|(at, checked)| (at + 1, &checked.text));
            numbered.map(|(at, text)| format!("=== file {at} of {count} ===\n{text}\n")).collect()
        }
    }
}

/// Joins the texts without labels.
fn visible_texts(texts: &[CheckedText<'_>]) -> String {
    texts.iter().map(|checked| make_visible(&checked.text) + "\n").collect()
}

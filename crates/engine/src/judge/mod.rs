//! What only a reader can decide: statements about a run, and what stands in its texts.
//!
//! In: a case's checks, what was seen. Out: a `Mark` for each thing that was to be decided, with
//! quotes that were checked. Never: sees which arm, version or agent it is judging.

mod answer;
mod cache;
mod cli;
mod consult;
mod evidence;
mod extraction;
mod prediction;
mod prompt;
mod python_text;
mod question;
mod quotes;
mod steps;
mod transport;
mod votes;

use std::collections::BTreeSet;

pub use cache::{Cache, Scrub};
pub use cli::Cli;
pub use consult::{Consulted, Inquiry};
pub use evidence::{Exhibit, cut};
pub use prediction::{Offered, Situation, predicted};
pub use quotes::supports;
pub use transport::{Limits, Transport};

use self::answer::Marking;
use self::evidence::{Laid, within_window};
use self::extraction::Extraction;
use self::prompt::{Subject, visible};
use self::question::{Question, Settled};
use self::quotes::Quotable;
use crate::run::Cancel;
use practicum_agents::llm::{Api, Tool};
use practicum_core::model::{
    Activation, Check, CheckKind, CheckedText, Finding, Judged, LooksAt, Remarks, Section, ShortenedEvidence,
    UnsupportedPass, Usage, Vote, Why,
};
use practicum_evals::score::{Extracted, mark_sections, texts_of_check};

/// The tools that a judge answers with, where it is asked over an API.
const MARKS_TOOL: &str = "report_marks";
const ENTRIES_TOOL: &str = "report_entries";

/// A judge that can be asked.
#[derive(Clone)]
pub struct Judge {
    transport: Transport,
    model: String,
    votes: u32,
    unsupported: UnsupportedPass,
    cache: Option<Cache>,
    scrub: Option<Scrub>,
}

/// One trial's time with a judge.
pub struct Sitting<'s> {
    /// Names the processes of a judge that is one.
    pub marker: &'s str,
    pub cancel: &'s Cancel,
}

/// One statement to decide, under the id of its check.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'s> {
    pub id: &'s str,
    pub judged: &'s Judged,
}

/// What of a case needs a judge.
pub struct Questions<'q> {
    /// Statements about the run.
    statements: Vec<Statement<'q>>,
    about_files: Vec<AboutFiles<'q>>,
    extractions: Vec<Sections<'q>>,
    predictions: Vec<(&'q str, &'q Activation)>,
    situation: Situation,
}

/// Statements about the same files.
struct AboutFiles<'q> {
    /// One of their checks; all look at the same.
    check: &'q Check,
    statements: Vec<Statement<'q>>,
}

/// The sections that one check is about.
struct Sections<'q> {
    check: &'q Check,
    sections: &'q [Section],
    /// The ids of the case's checks, which no part of a check may have.
    taken: BTreeSet<&'q str>,
}

impl Sections<'_> {
    fn marks(&self, extracted: &Extracted, unread: &Why) -> Vec<Mark> {
        let id = &self.check.id;
        let marked = mark_sections(id, self.sections, extracted, unread, &self.taken).into_iter();
        marked.map(|(part, finding)| Mark::new(id, &part, finding)).collect()
    }
}

/// Something decided, or the reason why it was not.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// The check that it belongs to.
    pub check: String,
    /// Its own id. A check about sections has a mark for each thing that they demand.
    pub id: String,
    pub finding: Finding,
    /// Why the check would pass for trivial reasons, if the judge thinks so.
    pub weak: Option<String>,
    /// Reasons to doubt the mark.
    pub flags: Vec<String>,
    /// Where several were asked for.
    pub votes: Vec<Vote>,
}

/// What judging one trial gave and cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Marks {
    pub marks: Vec<Mark>,
    pub remarks: Remarks,
    /// The skills that would be taken up, if that was asked and answered.
    pub chosen: Option<Vec<String>>,
    /// Things worth telling that change no verdict.
    pub notes: Vec<String>,
    /// What the judge was not shown, if anything.
    pub shortened: Option<ShortenedEvidence>,
    pub usage: Usage,
}

impl Mark {
    pub fn new(check: &str, id: &str, finding: Finding) -> Self {
        let (check, id) = (check.to_owned(), id.to_owned());
        Self { check, id, finding, weak: None, flags: Vec::new(), votes: Vec::new() }
    }
}

impl Marks {
    /// Takes out the marks of one check.
    pub fn take(&mut self, check: &str) -> Vec<Mark> {
        let (own, others) = std::mem::take(&mut self.marks).into_iter().partition(|mark| mark.check == check);
        self.marks = others;
        own
    }

    fn add(&mut self, other: Marks) {
        self.marks.extend(other.marks);
        self.notes.extend(other.notes);
        self.usage.add(other.usage);
        self.shortened = match (self.shortened, other.shortened) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
        self.chosen = self.chosen.take().or(other.chosen);
        if self.remarks.is_empty() {
            self.remarks = other.remarks;
        }
    }
}

impl<'q> Questions<'q> {
    pub fn of(checks: impl IntoIterator<Item = &'q Check>) -> Self {
        let checks: Vec<&Check> = checks.into_iter().collect();
        let taken: BTreeSet<&str> = checks.iter().map(|check| check.id.as_str()).collect();
        let mut questions = Self {
            statements: Vec::new(),
            about_files: Vec::new(),
            extractions: Vec::new(),
            predictions: Vec::new(),
            situation: Situation::default(),
        };
        for check in checks {
            questions.predictions.extend(predicted(check).map(|activation| (check.id.as_str(), activation)));
            match &check.kind {
                CheckKind::Judged(judged) => questions.add(check, Statement { id: &check.id, judged }),
                CheckKind::Sections(sections) => {
                    questions.extractions.push(Sections { check, sections, taken: taken.clone() });
                }
                CheckKind::Exact(_) | CheckKind::Activation(_) => {}
            }
        }
        questions
    }

    fn add(&mut self, check: &'q Check, statement: Statement<'q>) {
        match &check.looks_at {
            LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun => self.statements.push(statement),
            LooksAt::File(_) | LooksAt::Files(_) => {
                let same = self.about_files.iter_mut().find(|about| about.check.looks_at == check.looks_at);
                match same {
                    Some(about) => about.statements.push(statement),
                    None => self.about_files.push(AboutFiles { check, statements: vec![statement] }),
                }
            }
        }
    }

    /// With what predictions are made from.
    #[must_use]
    pub fn in_situation(self, situation: Situation) -> Self {
        Self { situation, ..self }
    }

    pub fn is_empty(&self) -> bool {
        let has_statements = !self.statements.is_empty() || !self.about_files.is_empty();
        !has_statements && self.extractions.is_empty() && self.predictions.is_empty()
    }

    /// The same reason for everything.
    pub fn unanswered(&self, why: &Why) -> Marks {
        let about_files = self.about_files.iter().flat_map(|about| &about.statements);
        let statements = self.statements.iter().chain(about_files).map(|statement| statement.id);
        let ids = statements.chain(self.predictions.iter().map(|(id, _)| *id));
        let unscored = |id: &str| Mark::new(id, id, Finding::not_scored(why.clone()));
        let mut marks: Vec<Mark> = ids.map(unscored).collect();
        for sections in &self.extractions {
            marks.extend(sections.marks(&Extracted::default(), why));
        }
        Marks { marks, ..Marks::default() }
    }
}

impl Judge {
    pub fn new(transport: Transport, model: String) -> Self {
        let unsupported = UnsupportedPass::NotScored;
        Self { transport, model, votes: 1, unsupported, cache: None, scrub: None }
    }

    /// Asked this often about the same statements; the majority decides.
    #[must_use]
    pub fn with_votes(mut self, votes: u32) -> Self {
        self.votes = votes.max(1);
        self
    }

    /// What becomes of a pass without support, also when asked about once more.
    #[must_use]
    pub fn with_unsupported(self, unsupported: UnsupportedPass) -> Self {
        Self { unsupported, ..self }
    }

    /// What was answered before is not asked again.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sees no secrets: they are nobody's business, and a record that is kept has none either.
    #[must_use]
    pub fn without_secrets(mut self, scrub: Scrub) -> Self {
        self.scrub = Some(scrub);
        self
    }

    fn discreet(&self, text: String) -> String {
        match &self.scrub {
            Some(scrub) => scrub(&text),
            None => text,
        }
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    /// The same judge, asked at another address: that of a gateway, as each API wants it.
    pub fn at(&self, address: impl Fn(Api) -> String) -> Self {
        Self { transport: self.transport.at(address), ..self.clone() }
    }

    pub async fn mark(
        &self,
        questions: &Questions<'_>,
        exhibit: &Exhibit<'_>,
        sitting: &Sitting<'_>,
    ) -> Marks {
        let mut marks = Marks::default();
        if !questions.statements.is_empty() {
            let laid = exhibit.lay_out();
            marks.add(self.decide(Subject::Run, &questions.statements, laid, sitting).await);
        }
        for AboutFiles { check, statements } in &questions.about_files {
            marks.add(self.decide_about_files(check, statements, exhibit, sitting).await);
        }
        for sections in &questions.extractions {
            marks.add(self.extract(sections, exhibit, sitting).await);
        }
        if !questions.predictions.is_empty() {
            marks.add(self.predict(&questions.predictions, &questions.situation, sitting).await);
        }
        marks
    }

    /// Decides statements about the files that an agent was to write, from what stands in them.
    async fn decide_about_files(
        &self,
        check: &Check,
        statements: &[Statement<'_>],
        exhibit: &Exhibit<'_>,
        sitting: &Sitting<'_>,
    ) -> Marks {
        match texts_of_check(check, exhibit.observation, exhibit.workspace) {
            Ok(texts) => {
                let said: String = texts.iter().map(|checked| format!("{}\n", checked.text)).collect();
                let laid = exhibit.lay_out_texts(&label(&texts), &said);
                self.decide(Subject::Files, statements, laid, sitting).await
            }
            Err(finding) => {
                let mark = |statement: &Statement<'_>| Mark::new(statement.id, statement.id, finding.clone());
                Marks { marks: statements.iter().map(mark).collect(), ..Marks::default() }
            }
        }
    }

    /// The same for statements about a text, that of a skill.
    pub async fn mark_skill(&self, statements: &[Statement<'_>], text: &str, sitting: &Sitting<'_>) -> Marks {
        self.decide(Subject::Skill, statements, within_window(text), sitting).await
    }

    /// Decides all statements, as often as there are votes.
    async fn decide(
        &self,
        subject: Subject,
        statements: &[Statement<'_>],
        laid: Laid,
        sitting: &Sitting<'_>,
    ) -> Marks {
        let record = laid.quotable(|text| self.discreet(text));
        let mut decided = Marks { shortened: laid.shortened, ..Marks::default() };
        let mut rounds = Vec::new();
        for vote in 0..self.votes {
            let marks = self.vote(subject, statements, &record, vote, sitting).await;
            rounds.push(marks.marks.clone());
            decided.add(Marks { marks: Vec::new(), ..marks });
        }
        decided.marks = votes::majority(rounds);
        decided
    }

    async fn vote(
        &self,
        subject: Subject,
        statements: &[Statement<'_>],
        record: &Quotable,
        vote: u32,
        sitting: &Sitting<'_>,
    ) -> Marks {
        let about = statements.iter().flat_map(|statement| {
            [Some(statement.judged.statement.as_str()), statement.judged.context.as_deref()]
        });
        let enclosed: Vec<&str> = about.flatten().chain([record.text.as_str(), &record.background]).collect();
        let fence = prompt::fence(&enclosed);
        let question = Question {
            system: subject.rules(),
            text: prompt::statements(subject, statements, record, &fence),
            fence,
            tool: Tool {
                name: MARKS_TOOL.to_owned(),
                description: "Report the mark of every statement.".to_owned(),
                input_schema: answer::schema(),
            },
            vote,
        };
        let mut marking = Marking::new(statements, record, self.unsupported);
        let cache = self.cache.as_ref();
        let Settled { usage, missing } =
            question.settle(&self.transport, &self.model, cache, &mut marking, sitting).await;
        let (mut marks, remarks) = marking.finish();
        let unscored = |id: &str| {
            let why = missing.clone().unwrap_or_else(|| Why::JudgeFailed("it is missing".to_owned()));
            Mark::new(id, id, Finding::not_scored(why))
        };
        let in_order = statements.iter().map(|statement| {
            let given = marks.iter().position(|mark| mark.id == statement.id);
            given.map_or_else(|| unscored(statement.id), |at| marks.swap_remove(at))
        });
        Marks { marks: in_order.collect(), remarks, usage, ..Marks::default() }
    }

    /// Reads the entries of all sections of a check in one go, and marks them.
    async fn extract(&self, asked: &Sections<'_>, exhibit: &Exhibit<'_>, sitting: &Sitting<'_>) -> Marks {
        let Sections { check, sections, .. } = *asked;
        let texts = match texts_of_check(check, exhibit.observation, exhibit.workspace) {
            Ok(texts) => texts,
            Err(finding) => {
                let nothing = Why::NotJudged(finding.rationale.clone());
                let mut marks = asked.marks(&Extracted::default(), &nothing);
                marks.iter_mut().for_each(|mark| mark.finding = finding.clone());
                return Marks { marks, ..Marks::default() };
            }
        };
        let laid = within_window(&label(&texts));
        let text = laid.quotable(|text| self.discreet(text));
        let descriptions = sections.iter().flat_map(|section| &section.tiers);
        let descriptions = descriptions.filter_map(|tier| tier.description.as_deref());
        let enclosed: Vec<&str> = descriptions.chain([text.text.as_str()]).collect();
        let fence = prompt::fence(&enclosed);
        let question = Question {
            system: prompt::extraction_rules(),
            text: prompt::sections(sections, &text.text, &fence),
            fence,
            tool: Tool {
                name: ENTRIES_TOOL.to_owned(),
                description: "Report the entries of every section.".to_owned(),
                input_schema: extraction::schema(sections),
            },
            vote: 0,
        };
        let spoken = Quotable::new(self.discreet(visible_texts(&texts)));
        let mut extraction = Extraction::new(sections, &spoken, self.unsupported);
        let cache = self.cache.as_ref();
        let Settled { usage, missing } =
            question.settle(&self.transport, &self.model, cache, &mut extraction, sitting).await;
        let unread = missing.unwrap_or_else(|| Why::JudgeFailed("a field was left out".to_owned()));
        let Extraction { extracted, flags, .. } = extraction;
        let mut marks = asked.marks(&extracted, &unread);
        if let Some(first) = marks.first_mut() {
            first.flags = flags;
        }
        Marks { marks, shortened: laid.shortened, usage, ..Marks::default() }
    }
}

/// The texts as one, for a reader: several files stand below their numbers. Their paths are left out,
/// because no file says them and a reader might take one for an entry.
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

/// What the texts themselves say, without labels.
fn visible_texts(texts: &[CheckedText<'_>]) -> String {
    texts.iter().map(|checked| visible(&checked.text) + "\n").collect()
}

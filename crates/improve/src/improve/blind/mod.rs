//! Blind comparison: a judge compares two outputs of one case without knowing which side made which.
//!
//! The judge sees each pair in both orders. A judge that prefers whatever comes first then contradicts itself, and
//! a contradiction counts as a tie. Identical outputs are a tie without a judge.

mod document;
mod outputs;
mod statistics;

use futures_util::future::join_all;
use serde_json::{Value, json};

pub use document::{
    BlindCase, BlindComparison, BlindOrder, BlindReport, ComparedSide, DimensionScores, OutputLabel,
    PairOutcome,
};
pub use outputs::{OutputTask, OutputsError, SideOutputs, is_about_activation, pair_outputs};
pub use statistics::{pair_outcome, tally_cases};

use super::Adviser;
use super::answer_forms::{closed_object, one_of, text_of};
use practicum_agents::llm::ToolDefinition;
use practicum_core::model::Digest;
use practicum_engine::grade::judge::{StructuredQuestion, supports};

/// Two outputs of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputPair {
    pub suite: String,
    pub case: String,
    /// The request that both outputs answer.
    pub request: String,
    pub criteria: Vec<Criterion>,
    pub first: String,
    pub second: String,
}

impl OutputPair {
    /// Whether a judge would be shown the same text twice, whatever its line ends are. Then there is nothing to choose, and
    /// a judge could only follow the order. Parts that no judge is shown, such as files that are not text, may differ.
    pub fn is_identical(&self) -> bool {
        self.first.trim_end().lines().eq(self.second.trim_end().lines())
    }
}

/// A criterion for comparing outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criterion {
    pub id: String,
    pub meaning: String,
}

/// The documented dimensions, for cases without their own criteria.
const DOCUMENTED_DIMENSIONS: [(&str, &str); 5] = [
    ("description_quality", "what it says of itself: clear, specific, and true of what it holds"),
    ("convention_compliance", "it keeps to the conventions of its kind of document"),
    ("type_specific_quality", "it does what its kind of document is for"),
    ("token_efficiency", "nothing in it could be left out"),
    ("content_value", "it helps someone who has this request"),
];

/// Gives the five criteria that writing-skills documents for blind comparisons.
pub fn documented_criteria() -> Vec<Criterion> {
    DOCUMENTED_DIMENSIONS
        .iter()
        .map(|(id, means)| Criterion { id: (*id).into(), meaning: (*means).into() })
        .collect()
}

/// Says whether the first side is labelled A in the first order. The seed decides it for each case independently
/// of the other cases.
pub fn first_is_a(seed: u64, suite: &str, case: &str) -> bool {
    let parts = [seed.to_le_bytes().as_slice(), suite.as_bytes(), case.as_bytes()].map(<[u8]>::to_vec);
    let digest = Digest::of_parts(parts.iter().map(Vec::as_slice));
    digest.as_str().bytes().next().is_some_and(|digit| digit % 2 == 0)
}

const RULES: &str = "\
You compare two outputs of AI agents that were given the same request. You do not know who made them, and \
you must not guess.

Rules:
- Read the request, then both outputs completely. Judge what is there, not how long it is or which comes \
first.
- Score both outputs on every dimension with a whole number from 1 to 10, each for itself.
- Then name the better one. There is no draw: if they are close, decide by what a user would miss more.
- What an output claims about itself is not evidence.
- Quote the passage that decided: words that stand in output A or in output B, copied exactly.";

/// A pair judged in both orders: the documents in the order of the judgements, and the outcome.
pub struct JudgedPair {
    pub case: BlindCase,
    pub comparisons: [Option<BlindComparison>; 2],
    pub cost_usd: Option<f64>,
}

impl JudgedPair {
    /// Makes the tie of a pair of identical outputs. Two empty outputs are no tie: nothing was compared.
    pub fn identical(pair: &OutputPair) -> Self {
        let (outcome, orders) = match pair.first.trim().is_empty() {
            false => (PairOutcome::Identical, Vec::new()),
            true => {
                let why = Some("both outputs are empty".to_owned());
                let order = BlindOrder { a: ComparedSide::First, winner: None, quote: None, why };
                (PairOutcome::NotCompared, vec![order])
            }
        };
        let case = BlindCase {
            suite: pair.suite.clone(),
            case: pair.case.clone(),
            outcome,
            confidence: None,
            orders,
            files: Vec::new(),
        };
        Self { case, comparisons: [None, None], cost_usd: Some(0.0) }
    }
}

/// Judges all pairs. No judge is asked about a pair of identical outputs.
pub async fn judge_pairs(adviser: &Adviser, pairings: &[OutputPair], seed: u64) -> Vec<JudgedPair> {
    join_all(pairings.iter().map(|pairing| judge_pair(adviser, pairing, seed))).await
}

async fn judge_pair(adviser: &Adviser, pairing: &OutputPair, seed: u64) -> JudgedPair {
    if pairing.is_identical() {
        return JudgedPair::identical(pairing);
    }
    let first_is_a = first_is_a(seed, &pairing.suite, &pairing.case);
    let mut comparisons = [None, None];
    let mut orders = Vec::new();
    let mut cost = Some(0.0);
    for (at, first_is_a) in [first_is_a, !first_is_a].into_iter().enumerate() {
        let inquiry = comparison_question(pairing, first_is_a);
        let name = format!("blind {} {}", pairing.case, at + 1);
        let advice = adviser.ask_as(&name, &inquiry, &|answer| read(answer, pairing)).await;
        cost = cost.zip(advice.cost_usd).map(|(sum, more)| sum + more);
        let a = if first_is_a { ComparedSide::First } else { ComparedSide::Second };
        orders.push(match &advice.answer {
            Ok((comparison, quote)) => {
                let winner = Some(a.side_with_label(comparison.winner));
                BlindOrder { a, winner, quote: Some(quote.clone()), why: None }
            }
            Err(why) => BlindOrder { a, winner: None, quote: None, why: Some(why.clone()) },
        });
        comparisons[at] = advice.answer.ok().map(|(comparison, _)| comparison);
    }
    let (outcome, confidence) = pair_outcome(&orders.iter().map(|order| order.winner).collect::<Vec<_>>());
    let case = BlindCase {
        suite: pairing.suite.clone(),
        case: pairing.case.clone(),
        outcome,
        confidence,
        orders,
        files: Vec::new(),
    };
    JudgedPair { case, comparisons, cost_usd: cost }
}

fn comparison_question(pairing: &OutputPair, first_is_a: bool) -> StructuredQuestion {
    let (a, b) =
        if first_is_a { (&pairing.first, &pairing.second) } else { (&pairing.second, &pairing.first) };
    let dimensions: String = pairing
        .criteria
        .iter()
        .map(|criterion| format!("- {}: {}\n", Value::from(criterion.id.as_str()), criterion.meaning))
        .collect();
    let score = json!({"type": "integer", "minimum": 1, "maximum": 10});
    let scores: Value = pairing
        .criteria
        .iter()
        .map(|criterion| (criterion.id.clone(), closed_object(json!({"A": score, "B": score}))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits: vec![
            ("The request".to_owned(), pairing.request.clone()),
            ("Output A".to_owned(), a.clone()),
            ("Output B".to_owned(), b.clone()),
            ("The dimensions to score".to_owned(), dimensions),
        ],
        task: "Which of the two outputs is better? Answer with JSON of the form {\"winner\": \"A\" or \
                 \"B\", \"reasoning\", \"quote\": words of one output, \"scores\": {dimension: {\"A\": 1 to 10, \"B\": 1 to 10}}}."
            .to_owned(),
        form: ToolDefinition {
            name: "report_comparison".to_owned(),
            description: "Report which output is better, and the scores of both.".to_owned(),
            input_schema: closed_object(json!({
                "winner": {"type": "string", "enum": ["A", "B"]},
                "reasoning": {"type": "string"},
                "quote": {"type": "string"},
                "scores": closed_object(scores),
            })),
        },
        round: 0,
    }
}

/// Reads an answer, with the quote that supports it. An answer that quotes neither output is refused, because the
/// judge did not look at them.
fn read(answer: &Value, pairing: &OutputPair) -> Result<(BlindComparison, String), String> {
    let winner = match one_of(answer, "winner", &["A", "B"])? {
        "A" => OutputLabel::A,
        _ => OutputLabel::B,
    };
    let expected = || pairing.criteria.iter().map(|of| of.id.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(missing) = pairing.criteria.iter().find(|of| answer["scores"].get(&of.id).is_none()) {
        let id = &missing.id;
        return Err(format!("\"scores\" has no \"{id}\"; it must have a score for each of: {}", expected()));
    }
    let mut scores = DimensionScores::new();
    for Criterion { id, .. } in &pairing.criteria {
        let score = |label: &str| {
            let score = answer["scores"][id][label].as_u64().and_then(|score| u8::try_from(score).ok());
            let score = score.filter(|score| (1..=10).contains(score));
            score.ok_or_else(|| {
                format!("\"scores\": \"{id}\": \"{label}\" must be a whole number from 1 to 10")
            })
        };
        scores.insert(id.clone(), document::ScorePair { a: score("A")?, b: score("B")? });
    }
    let reasoning = text_of(answer, "reasoning")?;
    let quote = text_of(answer, "quote")?;
    if ![&pairing.first, &pairing.second].into_iter().any(|output| supports(output, &quote)) {
        return Err(format!(
            "\"quote\" must be words that stand in output A or output B, copied exactly; {} stands in neither",
            Value::from(quote)
        ));
    }
    Ok((BlindComparison { eval_prompt: pairing.request.clone(), winner, reasoning, scores }, quote))
}

#[cfg(test)]
mod tests;

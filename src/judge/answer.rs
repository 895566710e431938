//! Reading what the judge said, and believing only what can be checked.

use serde_json::{Value, json};

use super::{Mark, Statement};
use crate::llm::{Block, Reply, Stop};
use crate::model::{Finding, Scale, Verdict};

pub const TOOL: &str = "report_marks";

pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "verdict": {"type": "string", "enum": ["pass", "fail"]},
                        "score": {"type": "number"},
                        "evidence": {"type": "array", "items": {"type": "string"}},
                        "reasoning": {"type": "string"},
                        "weak": {"type": ["string", "null"]}
                    },
                    "required": ["id", "evidence", "reasoning"]
                }
            }
        },
        "required": ["results"]
    })
}

/// What could be used of an answer, and what is wrong with the rest.
pub struct Read {
    pub marks: Vec<Mark>,
    pub problem: Option<String>,
}

pub fn read(reply: &Reply, statements: &[Statement<'_>], evidence: &str) -> Read {
    let broken = |problem: &str| Read { marks: Vec::new(), problem: Some(problem.to_owned()) };
    let Some(answer) = answer(reply) else {
        return match reply.stop {
            Stop::Refusal => broken("the judge refused to answer"),
            Stop::MaxTokens => broken("the answer was cut off"),
            Stop::EndTurn | Stop::ToolUse | Stop::Other(_) => {
                broken("the answer is not the JSON that was asked for")
            }
        };
    };
    let Some(results) = answer.get("results").and_then(Value::as_array) else {
        return broken("\"results\" is missing or not a list");
    };
    let mut marks: Vec<Mark> = Vec::new();
    let mut problems = Vec::new();
    for statement in statements {
        let mut given = results.iter().filter(|result| result["id"] == statement.id);
        match (given.next(), given.next()) {
            (None, _) => problems.push(format!("\"{}\" is missing", statement.id)),
            (Some(_), Some(_)) => problems.push(format!("\"{}\" is marked twice", statement.id)),
            (Some(result), None) => match mark(statement, result, evidence) {
                Ok(mark) => marks.push(mark),
                Err(problem) => problems.push(format!("\"{}\": {problem}", statement.id)),
            },
        }
    }
    Read { marks, problem: (!problems.is_empty()).then(|| problems.join("; ")) }
}

/// The tool's input, or JSON somewhere in the text.
fn answer(reply: &Reply) -> Option<Value> {
    let called = reply.blocks.iter().find_map(|block| match block {
        Block::ToolUse { input, .. } => Some(input.clone()),
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } => None,
    });
    called.filter(Value::is_object).or_else(|| {
        let text = reply.text();
        let from = text.find('{')?;
        let to = text.rfind('}')?;
        serde_json::from_str(text.get(from..=to)?).ok()
    })
}

fn mark(statement: &Statement<'_>, result: &Value, evidence: &str) -> Result<Mark, String> {
    let scale = statement.judged.scale;
    let score = match scale {
        Scale::PassFail => match result["verdict"].as_str() {
            Some("pass") => 1.0,
            Some("fail") => 0.0,
            Some(_) | None => return Err("\"verdict\" must be \"pass\" or \"fail\"".to_owned()),
        },
        Scale::OneToFive | Scale::Unit => result["score"].as_f64().ok_or("\"score\" must be a number")?,
    };
    let passed = scale.passes(score).ok_or_else(|| format!("{score} is not on the scale"))?;
    let quotes: Vec<String> = match &result["evidence"] {
        Value::Array(quotes) => quotes.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return Err("\"evidence\" must be a list of quotes".to_owned()),
    };
    let mut flags = Vec::new();
    for quote in quotes.iter().filter(|quote| !occurs(quote, evidence)) {
        flags.push(format!("quoted, but not in the record: {quote}"));
    }
    if let Some(weak) = result["weak"].as_str().filter(|weak| !weak.trim().is_empty()) {
        flags.push(format!("weak check: {weak}"));
    }
    let finding = Finding {
        verdict: if passed { Verdict::Pass } else { Verdict::Fail },
        score: match scale {
            Scale::PassFail => None,
            Scale::OneToFive | Scale::Unit => Some(score),
        },
        rationale: result["reasoning"].as_str().unwrap_or_default().to_owned(),
        evidence: quotes,
    };
    Ok(Mark { id: statement.id.to_owned(), finding, flags })
}

/// Whether a quote stands in the record, line breaks and repeated spaces aside.
fn occurs(quote: &str, evidence: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let quote = flat(quote);
    !quote.is_empty() && flat(evidence).contains(&quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Judged, Usage};

    fn reply(blocks: Vec<Block>) -> Reply {
        Reply { id: "m".into(), model: "m".into(), blocks, stop: Stop::ToolUse, usage: Usage::default() }
    }

    fn called(input: Value) -> Reply {
        reply(vec![Block::ToolUse { id: "t".into(), name: TOOL.into(), input }])
    }

    /// What one statement's answer comes to: its verdict, or the problem.
    fn check(scale: Scale, reply: &Reply) -> Result<(bool, Option<f64>, usize), String> {
        let judged = Judged { statement: "s".into(), context: None, scale };
        let read = read(reply, &[Statement { id: "a", judged: &judged }], "the record says\nhello  world");
        match (read.marks.first(), read.problem) {
            (Some(mark), None) => Ok((mark.passed(), mark.finding.score, mark.flags.len())),
            (_, problem) => Err(problem.expect("a mark or a problem")),
        }
    }

    #[test]
    fn an_unparsable_judge_neither_scores_0_nor_passes() {
        let one = |result: Value| called(json!({"results": [result]}));
        let good = json!({"id": "a", "verdict": "pass", "evidence": ["hello world"], "reasoning": "r"});
        for (scale, reply, expected) in [
            (Scale::PassFail, one(good.clone()), Ok((true, None, 0))),
            (
                Scale::PassFail,
                one(json!({"id": "a", "verdict": "fail", "evidence": [], "reasoning": ""})),
                Ok((false, None, 0)),
            ),
            (
                Scale::PassFail,
                one(json!({"id": "a", "verdict": "pass", "evidence": ["made up"], "weak": "w"})),
                Ok((true, None, 2)),
            ),
            (
                Scale::OneToFive,
                one(json!({"id": "a", "score": 2, "evidence": []})),
                Ok((false, Some(2.0), 0)),
            ),
            (
                Scale::OneToFive,
                one(json!({"id": "a", "score": 3, "verdict": "fail", "evidence": []})),
                Ok((true, Some(3.0), 0)),
            ),
            (Scale::Unit, one(json!({"id": "a", "score": 0.5, "evidence": []})), Ok((true, Some(0.5), 0))),
            (
                Scale::PassFail,
                reply(vec![Block::Text {
                    text: format!("Here you are:\n```json\n{}\n```", json!({"results": [good]})),
                }]),
                Ok((true, None, 0)),
            ),
            (Scale::PassFail, one(json!({"id": "a", "verdict": "maybe", "evidence": []})), Err(())),
            (Scale::PassFail, one(json!({"id": "a", "score": 1, "evidence": []})), Err(())),
            (Scale::OneToFive, one(json!({"id": "a", "score": 9, "evidence": []})), Err(())),
            (Scale::OneToFive, one(json!({"id": "a", "score": "5", "evidence": []})), Err(())),
            (Scale::PassFail, one(json!({"id": "b", "verdict": "pass", "evidence": []})), Err(())),
            (Scale::PassFail, called(json!({"results": [good, good]})), Err(())),
            (Scale::PassFail, called(json!({"results": "pass"})), Err(())),
            (Scale::PassFail, reply(vec![Block::Text { text: "It passes.".into() }]), Err(())),
            (Scale::PassFail, reply(Vec::new()), Err(())),
        ] {
            assert_eq!(check(scale, &reply).map_err(|_| ()), expected, "{reply:?}");
        }
    }
}

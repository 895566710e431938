//! Reading what the judge said of statements, and believing only what can be checked.

use serde_json::{Value, json};

use super::evidence::Quotable;
use super::question::Reading;
use super::{Mark, Statement};
use crate::model::{Claim, Finding, Remarks, Scale, Verdict};

/// Every key is required and nothing else allowed, because that is all that strict providers take.
pub fn schema() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let closed = |properties: Value| {
        let required: Vec<String> =
            properties.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let result = closed(json!({
        "id": text,
        "verdict": {"type": ["string", "null"], "enum": ["pass", "fail", null]},
        "score": {"type": ["number", "null"]},
        "evidence": texts,
        "reasoning": text,
        "weak": {"type": ["string", "null"]},
    }));
    let claim = closed(json!({"claim": text, "verified": {"type": "boolean"}, "evidence": text}));
    closed(json!({
        "results": {"type": "array", "items": result},
        "uncovered": texts,
        "claims": {"type": "array", "items": claim},
    }))
}

/// The most that is kept of what a judge says beside its marks.
const MOST_CLAIMS: usize = 10;
const MOST_UNCOVERED: usize = 10;

/// The marks that were given so far.
pub struct Marking<'m> {
    statements: &'m [Statement<'m>],
    record: &'m Quotable,
    pub marks: Vec<Mark>,
    pub remarks: Remarks,
}

impl<'m> Marking<'m> {
    pub fn new(statements: &'m [Statement<'m>], record: &'m Quotable) -> Self {
        Self { statements, record, marks: Vec::new(), remarks: Remarks::default() }
    }

    fn is_open(&self, statement: &Statement<'_>) -> bool {
        !self.marks.iter().any(|mark| mark.id == statement.id)
    }
}

impl Reading for Marking<'_> {
    fn is_meant(&self, answer: &Value) -> bool {
        answer.get("results").is_some()
    }

    fn take_in(&mut self, answer: &Value, last: bool) -> Result<(), String> {
        let results =
            answer.get("results").and_then(Value::as_array).ok_or("\"results\" is missing or not a list")?;
        let is_asked = |result: &&Value| self.statements.iter().any(|statement| result["id"] == statement.id);
        if let Some(stray) = results.iter().find(|result| !is_asked(result))
            && !last
        {
            // A judge that makes ids up may have mixed up the others too.
            return Err(format!("there is no statement with the id {}", shortened(&stray["id"])));
        }
        let mut problems = Vec::new();
        for statement in self.statements {
            if !self.is_open(statement) {
                continue;
            }
            let mut given = results.iter().filter(|result| result["id"] == statement.id);
            match (given.next(), given.next()) {
                (None, _) => problems.push(format!("\"{}\" is missing", statement.id)),
                (Some(_), Some(_)) => problems.push(format!("\"{}\" is marked twice", statement.id)),
                (Some(result), None) => match mark(statement, result, self.record) {
                    Ok(mark) => self.marks.push(mark),
                    Err(problem) => problems.push(format!("\"{}\": {problem}", statement.id)),
                },
            }
        }
        if self.remarks.is_empty() {
            self.remarks = remarks(answer);
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 80 { format!("{}…", text.chars().take(80).collect::<String>()) } else { text }
}

fn mark(statement: &Statement<'_>, result: &Value, record: &Quotable) -> Result<Mark, String> {
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
    let not_quotes = || "\"evidence\" must be a list of quotes".to_owned();
    let quotes = result["evidence"].as_array().ok_or_else(not_quotes)?;
    let quotes: Option<Vec<String>> = quotes.iter().map(|quote| quote.as_str().map(str::to_owned)).collect();
    let quotes = quotes.ok_or_else(not_quotes)?;
    let mut flags = Vec::new();
    for quote in quotes.iter().filter(|quote| !record.has(quote)) {
        flags.push(format!("quoted, but not in the record: {quote}"));
    }
    if passed && quotes.is_empty() {
        flags.push("passed without a quote".to_owned());
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
    let weak = result["weak"].as_str().filter(|weak| !weak.trim().is_empty()).map(str::to_owned);
    Ok(Mark { weak, flags, ..Mark::new(statement.id, statement.id, finding) })
}

/// What is not of the asked form is left out: nothing depends on it.
fn remarks(answer: &Value) -> Remarks {
    let items = |key: &str| answer.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let claim = |claim: &Value| {
        let text = |key: &str| claim[key].as_str().map(str::to_owned);
        Some(Claim {
            claim: text("claim").filter(|claim| !claim.trim().is_empty())?,
            verified: claim["verified"].as_bool()?,
            evidence: text("evidence").unwrap_or_default(),
        })
    };
    let uncovered =
        items("uncovered").iter().filter_map(Value::as_str).filter(|text| !text.trim().is_empty());
    Remarks {
        uncovered: uncovered.take(MOST_UNCOVERED).map(str::to_owned).collect(),
        claims: items("claims").iter().filter_map(claim).take(MOST_CLAIMS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Judged;

    /// What one statement's answer comes to: its verdict, or the problem.
    fn check(scale: Scale, answer: &Value) -> Result<(bool, Option<f64>, usize), String> {
        let judged = Judged { statement: "s".into(), context: None, scale };
        let statements = [Statement { id: "a", judged: &judged }];
        let record = Quotable::new("the record says\nhello  world".to_owned());
        let mut marking = Marking::new(&statements, &record);
        marking.take_in(answer, false)?;
        let mark = marking.marks.first().ok_or("no mark")?;
        Ok((mark.finding.verdict == Verdict::Pass, mark.finding.score, mark.flags.len()))
    }

    #[test]
    fn an_unparsable_judge_neither_scores_0_nor_passes() {
        let one = |result: Value| json!({"results": [result]});
        let good = json!({"id": "a", "verdict": "pass", "evidence": ["hello world"], "reasoning": "r"});
        for (scale, answer, expected) in [
            (Scale::PassFail, one(good.clone()), Ok((true, None, 0))),
            (
                Scale::PassFail,
                one(json!({"id": "a", "verdict": "fail", "evidence": [], "reasoning": ""})),
                Ok((false, None, 0)),
            ),
            (
                Scale::PassFail,
                one(json!({"id": "a", "verdict": "pass", "evidence": ["made up"], "weak": "w"})),
                Ok((true, None, 1)),
            ),
            (
                Scale::OneToFive,
                one(json!({"id": "a", "score": 2, "evidence": []})),
                Ok((false, Some(2.0), 0)),
            ),
            (
                Scale::OneToFive,
                one(json!({"id": "a", "score": 3, "verdict": "fail", "evidence": []})),
                Ok((true, Some(3.0), 1)),
            ),
            (Scale::Unit, one(json!({"id": "a", "score": 0.5, "evidence": []})), Ok((true, Some(0.5), 1))),
            (Scale::PassFail, one(json!({"id": "a", "verdict": "maybe", "evidence": []})), Err(())),
            (Scale::PassFail, one(json!({"id": "a", "score": 1, "evidence": []})), Err(())),
            (Scale::PassFail, one(json!({"id": "a", "verdict": "pass", "evidence": "q"})), Err(())),
            (Scale::PassFail, one(json!({"id": "a", "verdict": "pass", "evidence": [1]})), Err(())),
            (Scale::OneToFive, one(json!({"id": "a", "score": 9, "evidence": []})), Err(())),
            (Scale::OneToFive, one(json!({"id": "a", "score": "5", "evidence": []})), Err(())),
            (Scale::PassFail, one(json!({"id": "b", "verdict": "pass", "evidence": []})), Err(())),
            (Scale::PassFail, json!({"results": [good, good]}), Err(())),
            (Scale::PassFail, json!({"results": [good, {"id": "b", "verdict": "pass"}]}), Err(())),
            (Scale::PassFail, json!({"results": "pass"}), Err(())),
            (Scale::PassFail, json!({}), Err(())),
        ] {
            assert_eq!(check(scale, &answer).map_err(|_| ()), expected, "{answer}");
        }
    }

    #[test]
    fn remarks_are_kept_within_bounds_and_decide_nothing() {
        let claim = json!({"claim": "ran the tests", "verified": false, "evidence": "no such call"});
        let mut claims =
            vec![claim, json!({"claim": "", "verified": true}), json!("x"), json!({"claim": "y"})];
        claims.extend((0..99).map(|n| json!({"claim": format!("c{n}"), "verified": true, "evidence": ""})));
        let answer = json!({"results": [], "uncovered": ["", "speed", 3], "claims": claims});
        let found = remarks(&answer);
        assert_eq!(found.uncovered, ["speed"]);
        assert_eq!(found.claims.len(), MOST_CLAIMS);
        assert_eq!((found.claims[0].claim.as_str(), found.claims[0].verified), ("ran the tests", false));
    }
}

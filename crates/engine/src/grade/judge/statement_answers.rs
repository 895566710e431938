//! Reads a judge's answers to statements, and accepts a pass only if its quotes can be found.

use serde_json::{Value, json};

use super::prompt::make_visible;
use super::question::{AnswerProblem, AnswerReader};
use super::quotes::{QuotableText, QuoteCheck};
use super::{JudgeVerdict, StatementQuestion};
use practicum_core::model::{
    AgentClaim, CheckFinding, NotScoredReason, Remarks, ScoreScale, UnsupportedPassPolicy, Verdict,
};

/// Gives the schema of the answer. Every key is required and no other is allowed, because strict providers accept
/// nothing else.
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

/// The most claims and uncovered points that are kept from what a judge says beside its verdicts.
const MOST_CLAIMS: usize = 10;
const MOST_UNCOVERED: usize = 10;

/// Collects the verdicts on statements from a judge's answers.
pub struct StatementAnswerReader<'m> {
    statements: &'m [StatementQuestion<'m>],
    record: &'m QuotableText,
    unsupported: UnsupportedPassPolicy,
    verdicts: Vec<JudgeVerdict>,
    /// Passes whose quotes were not good enough, so that the judge is asked about them once more.
    doubted_passes: Vec<QuotedVerdict>,
    remarks: Remarks,
}

/// A verdict as the judge gave it, and how well its quotes support it.
struct QuotedVerdict {
    verdict: JudgeVerdict,
    support: QuoteSupport,
    /// A description of what is wrong with the quotes, for the judge.
    complaint: String,
}

/// How well the quotes of a verdict support it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteSupport {
    /// All quotes of a pass are in the record, and at least one can support it. A fail needs no quote: nobody can
    /// quote what is missing.
    Enough,
    /// At least one quote of a pass is in the record, and at least one is not.
    Partial,
    /// No quote of a pass is in the record, or only quotes that support nothing.
    Nothing,
}

impl<'m> StatementAnswerReader<'m> {
    pub fn new(
        statements: &'m [StatementQuestion<'m>],
        record: &'m QuotableText,
        unsupported: UnsupportedPassPolicy,
    ) -> Self {
        let (verdicts, doubted, remarks) = (Vec::new(), Vec::new(), Remarks::default());
        Self { statements, record, unsupported, verdicts, doubted_passes: doubted, remarks }
    }

    /// Gives the verdicts on all answered statements, and the judge's remarks. If the judge was asked about a pass
    /// once more and did not answer, its first answer counts.
    pub fn finish(mut self) -> (Vec<JudgeVerdict>, Remarks) {
        for given in std::mem::take(&mut self.doubted_passes) {
            let judge_verdict = given.into_final_verdict(self.unsupported);
            self.verdicts.push(judge_verdict);
        }
        (self.verdicts, self.remarks)
    }

    fn is_open(&self, id: &str) -> bool {
        !self.verdicts.iter().any(|judge_verdict| judge_verdict.id == id)
    }

    /// Adds one verdict. `Err` says why the judge must be asked about its statement once more.
    fn add_verdict(&mut self, given: QuotedVerdict) -> Result<(), String> {
        let doubted = self.doubted_passes.iter().position(|before| before.verdict.id == given.verdict.id);
        if given.support != QuoteSupport::Enough && doubted.is_none() {
            let why = format!("is met according to you, but {}", given.complaint);
            self.doubted_passes.push(given);
            return Err(why);
        }
        doubted.map(|at| self.doubted_passes.swap_remove(at));
        self.verdicts.push(given.into_final_verdict(self.unsupported));
        Ok(())
    }

    /// Writes the request for the statements that have no verdict yet.
    fn request(&self) -> String {
        let open: Vec<String> = self
            .statements
            .iter()
            .filter(|statement| self.is_open(statement.id))
            .map(|statement| quote_one_line(statement.id))
            .collect();
        match open.len() == self.statements.len() {
            true => "Answer again, in the given form and completely.".to_owned(),
            false => {
                format!("Answer again, in the given form, about these statements only: {}.", open.join(", "))
            }
        }
    }
}

impl AnswerReader for StatementAnswerReader<'_> {
    fn looks_like_answer(&self, answer: &Value) -> bool {
        answer.get("results").is_some()
    }

    fn read_answer(&mut self, answer: &Value, round: usize) -> Result<(), AnswerProblem> {
        let results = answer.get("results").and_then(Value::as_array);
        let no_list = || AnswerProblem::broken_form("\"results\" is missing or not a list".to_owned(), round);
        let results = results.ok_or_else(no_list)?;
        let is_asked = |result: &&Value| self.statements.iter().any(|statement| result["id"] == statement.id);
        if let Some(stray) = results.iter().find(|result| !is_asked(result))
            && round == 0
        {
            // A judge that invents an id may have mixed up the others too.
            let what = format!("there is no statement with the id {}", shortened(&stray["id"].to_string()));
            return Err(AnswerProblem::broken_form(what, round));
        }
        let (mut problems, mut unsupported) = (Vec::new(), Vec::new());
        for statement in self.statements {
            if !self.is_open(statement.id) {
                continue;
            }
            let mut given = results.iter().filter(|result| result["id"] == statement.id);
            let id = quote_one_line(statement.id);
            match (given.next(), given.next()) {
                (None, _) => problems.push(format!("no verdict for the statement {id}")),
                (Some(_), Some(_)) => problems.push(format!("{id} has two verdicts")),
                (Some(result), None) => match read_verdict(statement, result, self.record) {
                    Ok(given) => {
                        unsupported.extend(self.add_verdict(given).err().map(|why| format!("{id} {why}")))
                    }
                    Err(problem) => problems.push(format!("{id}: {problem}")),
                },
            }
        }
        if self.remarks.is_empty() {
            self.remarks = read_remarks(answer);
        }
        let is_new = !unsupported.is_empty();
        if is_new {
            let request = match self.record.pictures.is_empty() {
                true => SUPPORT_REQUEST,
                false => PICTURE_REQUEST,
            };
            unsupported.push(request.to_owned());
        }
        problems.append(&mut unsupported);
        if !problems.is_empty() {
            // The judge is asked about each statement once more for its form, and once more for its support.
            let again = round == 0 || (round == 1 && is_new);
            return Err(AnswerProblem {
                description: problems.join("; "),
                request: again.then(|| self.request()),
            });
        }
        match self
            .verdicts
            .iter()
            .find(|judge_verdict| matches!(judge_verdict.finding.verdict, Verdict::NotScored(_)))
        {
            // The error keeps this answer out of the cache.
            Some(judge_verdict) => {
                Err(AnswerProblem { description: judge_verdict.finding.rationale.clone(), request: None })
            }
            None => Ok(()),
        }
    }

    fn reset(&mut self) {
        *self = Self::new(self.statements, self.record, self.unsupported);
    }
}

impl QuotedVerdict {
    /// Gives the final verdict after the judge was asked once more. A pass without support becomes "not scored",
    /// unless the policy accepts it.
    fn into_final_verdict(self, unsupported: UnsupportedPassPolicy) -> JudgeVerdict {
        match (self.support, unsupported) {
            (QuoteSupport::Enough | QuoteSupport::Partial, _)
            | (QuoteSupport::Nothing, UnsupportedPassPolicy::Accept) => self.verdict,
            (QuoteSupport::Nothing, UnsupportedPassPolicy::NotScored) => {
                let CheckFinding { rationale, .. } = self.verdict.finding;
                let mut finding =
                    CheckFinding::not_scored(NotScoredReason::JudgeFailed(UNSUPPORTED_PASS.to_owned()));
                if !rationale.is_empty() {
                    finding.rationale = format!("{}; it said: {rationale}", finding.rationale);
                }
                JudgeVerdict { finding, ..self.verdict }
            }
        }
    }
}

/// The reminder about quotes when the judge is asked once more.
const SUPPORT_REQUEST: &str = "for a statement that is met, copy at least one quote letter by letter from the record, \
                       and none that is not there; otherwise it is not met";

/// The reminder for a judge that is shown pictures.
const PICTURE_REQUEST: &str = "for a statement that is met, give at least one entry of `evidence` that begins with \
                       the number of a picture and says what is seen there; otherwise it is not met";

const UNSUPPORTED_PASS: &str =
    "it says that this is met, and gave no quote that is in the record, also when asked once more";

/// Quotes a foreign text in a message: shortened, and on one line.
fn quote_one_line(text: &str) -> String {
    shortened(&Value::from(make_visible(text)).to_string())
}

/// Writes a quote on one line for people.
fn one_line(text: &str) -> String {
    first_chars(&make_visible(text).split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_FLAG)
}

/// The longest part, in characters, of a quote that is shown to people.
const LONGEST_FLAG: usize = 300;

fn shortened(text: &str) -> String {
    first_chars(text, LONGEST_QUOTED)
}

/// Shortens a text to its first `most` characters.
fn first_chars(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

/// The longest part, in characters, of a text that is repeated to the judge.
const LONGEST_QUOTED: usize = 80;

fn read_verdict(
    statement: &StatementQuestion<'_>,
    result: &Value,
    record: &QuotableText,
) -> Result<QuotedVerdict, String> {
    let scale = statement.statement.scale;
    let score = match scale {
        ScoreScale::PassFail => match result["verdict"].as_str() {
            Some("pass") => 1.0,
            Some("fail") => 0.0,
            Some(_) | None => return Err("\"verdict\" must be \"pass\" or \"fail\"".to_owned()),
        },
        ScoreScale::OneToFive | ScoreScale::Unit => {
            result["score"].as_f64().ok_or("\"score\" must be a number")?
        }
    };
    let passed = scale.passes(score).ok_or_else(|| format!("{score} is not on the scale"))?;
    let not_quotes = || "\"evidence\" must be a list of quotes".to_owned();
    let quotes = result["evidence"].as_array().ok_or_else(not_quotes)?;
    let quotes: Option<Vec<String>> = quotes.iter().map(|quote| quote.as_str().map(str::to_owned)).collect();
    let quotes = quotes.ok_or_else(not_quotes)?;
    let (support, flags, complaint) = check_quotes(passed, &quotes, record);
    let finding = CheckFinding {
        verdict: if passed { Verdict::Pass } else { Verdict::Fail },
        score: match scale {
            ScoreScale::PassFail => None,
            ScoreScale::OneToFive | ScoreScale::Unit => Some(score),
        },
        rationale: result["reasoning"].as_str().unwrap_or_default().to_owned(),
        evidence: quotes,
    };
    let weak = result["weak"].as_str().filter(|weak| !weak.trim().is_empty()).map(str::to_owned);
    let judge_verdict =
        JudgeVerdict { weak, flags, ..JudgeVerdict::new(statement.id, statement.id, finding) };
    Ok(QuotedVerdict { verdict: judge_verdict, support, complaint })
}

/// Looks up the quotes of a verdict: how well they support it, flags for people, and a complaint for the judge.
fn check_quotes(
    passed: bool,
    quotes: &[String],
    record: &QuotableText,
) -> (QuoteSupport, Vec<String>, String) {
    let checks: Vec<QuoteCheck> = quotes.iter().map(|quote| record.check_quote(quote)).collect();
    let is_invented = |(_, check): &(usize, &QuoteCheck)| **check == QuoteCheck::Invented;
    let invented: Vec<usize> = checks.iter().enumerate().filter(is_invented).map(|(at, _)| at).collect();
    let mut flags: Vec<String> = invented
        .iter()
        .map(|at| format!("quoted, but not in the record: {}", one_line(&quotes[*at])))
        .collect();
    let is_supported = checks.contains(&QuoteCheck::Supports);
    let support = match (passed, is_supported, invented.is_empty()) {
        (false, ..) | (true, true, true) => QuoteSupport::Enough,
        (true, true, false) => QuoteSupport::Partial,
        (true, false, _) => QuoteSupport::Nothing,
    };
    if passed && quotes.is_empty() {
        flags.push("passed without a quote".to_owned());
    } else if support == QuoteSupport::Nothing && invented.is_empty() {
        flags.push("passed with quotes that say nothing of it".to_owned());
    }
    let numbers: Vec<String> = invented.iter().map(|at| (at + 1).to_string()).collect();
    // The complaint does not repeat the quotes: an agent may have made the judge write them.
    let complaint = match (quotes.is_empty(), numbers.is_empty()) {
        (true, _) => "it has no quote".to_owned(),
        (false, true) => "its quotes are too short, or not from what was said, done or written".to_owned(),
        (false, false) => format!("not in the record: quote {}", numbers.join(", ")),
    };
    (support, flags, complaint)
}

/// Reads the judge's remarks. Those of a wrong form are left out, because nothing depends on them.
fn read_remarks(answer: &Value) -> Remarks {
    let items = |key: &str| answer.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let claim = |claim: &Value| {
        let text = |key: &str| claim[key].as_str().map(str::to_owned);
        Some(AgentClaim {
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
    use practicum_core::model::JudgedStatement;

    /// Gives the verdict on one statement after several answers: whether it passes, its score, and the number of
    /// its flags.
    fn check(
        scale: ScoreScale,
        unsupported: UnsupportedPassPolicy,
        answers: &[Value],
    ) -> Option<(bool, Option<f64>, usize)> {
        let judged = JudgedStatement { statement: "s".into(), context: None, scale };
        let statements = [StatementQuestion { id: "a", statement: &judged }];
        let record = QuotableText::new("the record says\nhello  world".to_owned());
        let mut reader = StatementAnswerReader::new(&statements, &record, unsupported);
        for (round, answer) in answers.iter().enumerate() {
            let _ = reader.read_answer(answer, round);
        }
        let (verdicts, _) = reader.finish();
        let JudgeVerdict { finding, flags, .. } = verdicts.into_iter().next()?;
        match finding.verdict {
            Verdict::NotScored(_) => None,
            verdict => Some((verdict == Verdict::Pass, finding.score, flags.len())),
        }
    }

    fn one(result: Value) -> Value {
        json!({"results": [result]})
    }

    #[test]
    fn an_unparsable_judge_neither_scores_0_nor_passes() {
        let good = json!({"id": "a", "verdict": "pass", "evidence": ["hello world"], "reasoning": "r"});
        for (scale, answer, expected) in [
            (ScoreScale::PassFail, one(good.clone()), Some((true, None, 0))),
            (
                ScoreScale::PassFail,
                one(json!({"id": "a", "verdict": "fail", "evidence": [], "reasoning": ""})),
                Some((false, None, 0)),
            ),
            (
                ScoreScale::OneToFive,
                one(json!({"id": "a", "score": 2, "evidence": []})),
                Some((false, Some(2.0), 0)),
            ),
            (
                ScoreScale::OneToFive,
                one(json!({"id": "a", "score": 3, "verdict": "fail", "evidence": ["the record"]})),
                Some((true, Some(3.0), 0)),
            ),
            (ScoreScale::PassFail, one(json!({"id": "a", "verdict": "maybe", "evidence": []})), None),
            (ScoreScale::PassFail, one(json!({"id": "a", "score": 1, "evidence": []})), None),
            (ScoreScale::PassFail, one(json!({"id": "a", "verdict": "pass", "evidence": "q"})), None),
            (ScoreScale::PassFail, one(json!({"id": "a", "verdict": "pass", "evidence": [1]})), None),
            (ScoreScale::OneToFive, one(json!({"id": "a", "score": 9, "evidence": []})), None),
            (ScoreScale::OneToFive, one(json!({"id": "a", "score": "5", "evidence": []})), None),
            (ScoreScale::PassFail, one(json!({"id": "b", "verdict": "pass", "evidence": []})), None),
            (ScoreScale::PassFail, json!({"results": [good, good]}), None),
            (ScoreScale::PassFail, json!({"results": [good, {"id": "b", "verdict": "pass"}]}), None),
            (ScoreScale::PassFail, json!({"results": "pass"}), None),
            (ScoreScale::PassFail, json!({}), None),
        ] {
            let found = check(scale, UnsupportedPassPolicy::NotScored, std::slice::from_ref(&answer));
            assert_eq!(found, expected, "{answer}");
        }
    }

    #[test]
    fn a_pass_needs_a_quote_from_the_record_and_a_fail_does_not() {
        let verdict =
            |verdict: &str, quotes: &[&str]| one(json!({"id": "a", "verdict": verdict, "evidence": quotes}));
        let score = |score: f64, quotes: &[&str]| one(json!({"id": "a", "score": score, "evidence": quotes}));
        let (pass, fail) = (Some((true, None, 0)), Some((false, None, 0)));
        let (quoted, invented, real) = (["hello world"], ["made up"], ["hello world", "made up"]);
        for (scale, answers, strict, accepting) in [
            (ScoreScale::PassFail, vec![verdict("pass", &quoted)], pass, pass),
            (ScoreScale::PassFail, vec![verdict("pass", &[]), verdict("pass", &quoted)], pass, pass),
            (ScoreScale::PassFail, vec![verdict("pass", &invented), verdict("fail", &[])], fail, fail),
            (
                ScoreScale::PassFail,
                vec![verdict("pass", &[]), verdict("pass", &[])],
                None,
                Some((true, None, 1)),
            ),
            (
                ScoreScale::PassFail,
                vec![verdict("pass", &["a"]), verdict("pass", &["."])],
                None,
                Some((true, None, 1)),
            ),
            (
                ScoreScale::PassFail,
                vec![verdict("pass", &invented), verdict("pass", &invented)],
                None,
                Some((true, None, 1)),
            ),
            // One real quote beside an invented one.
            (
                ScoreScale::PassFail,
                vec![verdict("pass", &real), verdict("pass", &real)],
                Some((true, None, 1)),
                Some((true, None, 1)),
            ),
            // The judge did not answer the second time.
            (ScoreScale::PassFail, vec![verdict("pass", &[])], None, Some((true, None, 1))),
            (ScoreScale::PassFail, vec![verdict("pass", &[]), json!({})], None, Some((true, None, 1))),
            (
                ScoreScale::PassFail,
                vec![verdict("pass", &real), json!({})],
                Some((true, None, 1)),
                Some((true, None, 1)),
            ),
            // The form was broken at first; the judge is still asked about the pass.
            (
                ScoreScale::PassFail,
                vec![json!({}), verdict("pass", &[]), verdict("pass", &quoted)],
                pass,
                pass,
            ),
            (
                ScoreScale::PassFail,
                vec![verdict("fail", &invented)],
                Some((false, None, 1)),
                Some((false, None, 1)),
            ),
            (ScoreScale::OneToFive, vec![score(3.0, &[]), score(3.0, &[])], None, Some((true, Some(3.0), 1))),
            (
                ScoreScale::OneToFive,
                vec![score(5.0, &[]), score(2.0, &[])],
                Some((false, Some(2.0), 0)),
                Some((false, Some(2.0), 0)),
            ),
            (ScoreScale::Unit, vec![score(0.5, &[]), score(0.5, &[])], None, Some((true, Some(0.5), 1))),
            (
                ScoreScale::Unit,
                vec![score(0.4, &[])],
                Some((false, Some(0.4), 0)),
                Some((false, Some(0.4), 0)),
            ),
        ] {
            for (unsupported, expected) in
                [(UnsupportedPassPolicy::NotScored, strict), (UnsupportedPassPolicy::Accept, accepting)]
            {
                assert_eq!(check(scale, unsupported, &answers), expected, "{unsupported:?} {answers:?}");
            }
        }
    }

    #[test]
    fn only_statements_without_support_are_asked_about_again() {
        let judged = JudgedStatement { statement: "s".into(), context: None, scale: ScoreScale::PassFail };
        let statements = ["a", "b", "c"].map(|id| StatementQuestion { id, statement: &judged });
        let record = QuotableText::new("hello world".to_owned());
        let mut reader = StatementAnswerReader::new(&statements, &record, UnsupportedPassPolicy::NotScored);
        let judge_verdict =
            |id: &str, quotes: &[&str]| json!({"id": id, "verdict": "pass", "evidence": quotes});
        let first = json!({"results": [judge_verdict("a", &["hello"]), judge_verdict("b", &["nothing\nsuch"]), judge_verdict("c", &[])]});
        let problem = reader.read_answer(&first, 0).expect_err("two have no support");
        let request = problem.request.expect("they are asked about again");
        assert!(request.contains("about these statements only: \"b\", \"c\""), "{request}");
        assert!(
            problem.description.contains("\"b\" is met according to you, but not in the record: quote 1")
        );
        assert!(problem.description.contains("\"c\" is met according to you, but it has no quote"));
        assert!(!problem.description.contains("nothing"), "quotes are not repeated: {}", problem.description);
        let second = json!({"results": [judge_verdict("b", &["hello"])]});
        let problem = reader.read_answer(&second, 1).expect_err("one is missing");
        assert_eq!(problem.request, None, "it was asked about twice");
        let (verdicts, _) = reader.finish();
        let verdicts: Vec<(&str, &str)> = verdicts
            .iter()
            .map(|judge_verdict| (judge_verdict.id.as_str(), judge_verdict.finding.verdict.name()))
            .collect();
        assert_eq!(verdicts, [("a", "pass"), ("b", "pass"), ("c", "not_scored")]);
    }

    #[test]
    fn remarks_are_kept_within_bounds_and_decide_nothing() {
        let claim = json!({"claim": "ran the tests", "verified": false, "evidence": "no such call"});
        let mut claims =
            vec![claim, json!({"claim": "", "verified": true}), json!("x"), json!({"claim": "y"})];
        claims.extend((0..99).map(|n| json!({"claim": format!("c{n}"), "verified": true, "evidence": ""})));
        let answer = json!({"results": [], "uncovered": ["", "speed", 3], "claims": claims});
        let found = read_remarks(&answer);
        assert_eq!(found.uncovered, ["speed"]);
        assert_eq!(found.claims.len(), MOST_CLAIMS);
        assert_eq!((found.claims[0].claim.as_str(), found.claims[0].verified), ("ran the tests", false));
    }
}

//! Reading what the judge said of statements, and believing only what can be checked.

use serde_json::{Value, json};

use super::prompt::visible;
use super::question::{Problem, Reading};
use super::quotes::{Quotable, QuoteCheck};
use super::{Mark, Statement};
use practicum_core::model::{Claim, Finding, Remarks, Scale, UnsupportedPass, Verdict, Why};

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
    unsupported: UnsupportedPass,
    marks: Vec<Mark>,
    /// Passes whose quotes were not good enough, so that the judge was asked once more.
    doubted: Vec<GivenMark>,
    remarks: Remarks,
}

/// A mark as the judge gave it, and how its quotes support it.
struct GivenMark {
    mark: Mark,
    support: Support,
    /// What is wrong with the quotes, in words for the judge.
    complaint: String,
}

/// How the quotes of a mark support it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Support {
    /// A quote of a pass is in the record, and so are all others. A fail needs none: nobody can quote
    /// what is missing.
    Enough,
    /// At least one quote of a pass is in the record, and at least one is not.
    Partial,
    /// No quote of a pass is in the record, or none that says anything.
    Nothing,
}

impl<'m> Marking<'m> {
    pub fn new(statements: &'m [Statement<'m>], record: &'m Quotable, unsupported: UnsupportedPass) -> Self {
        let (marks, doubted, remarks) = (Vec::new(), Vec::new(), Remarks::default());
        Self { statements, record, unsupported, marks, doubted, remarks }
    }

    /// The marks of all statements that have one, and what the judge noticed beside them. A pass that the
    /// judge was asked about once more, and said nothing of, is decided by its first answer.
    pub fn finish(mut self) -> (Vec<Mark>, Remarks) {
        for given in std::mem::take(&mut self.doubted) {
            let mark = given.decided(self.unsupported);
            self.marks.push(mark);
        }
        (self.marks, self.remarks)
    }

    fn is_open(&self, id: &str) -> bool {
        !self.marks.iter().any(|mark| mark.id == id)
    }

    /// Takes one mark in. `Err` says why its statement is to be asked about once more.
    fn add(&mut self, given: GivenMark) -> Result<(), String> {
        let doubted = self.doubted.iter().position(|before| before.mark.id == given.mark.id);
        if given.support != Support::Enough && doubted.is_none() {
            let why = format!("is met according to you, but {}", given.complaint);
            self.doubted.push(given);
            return Err(why);
        }
        doubted.map(|at| self.doubted.swap_remove(at));
        self.marks.push(given.decided(self.unsupported));
        Ok(())
    }

    /// Asks for the statements that are still open.
    fn request(&self) -> String {
        let open: Vec<String> = self
            .statements
            .iter()
            .filter(|statement| self.is_open(statement.id))
            .map(|statement| quoted(statement.id))
            .collect();
        match open.len() == self.statements.len() {
            true => "Answer again, in the given form and completely.".to_owned(),
            false => {
                format!("Answer again, in the given form, about these statements only: {}.", open.join(", "))
            }
        }
    }
}

impl Reading for Marking<'_> {
    fn is_meant(&self, answer: &Value) -> bool {
        answer.get("results").is_some()
    }

    fn take_in(&mut self, answer: &Value, round: usize) -> Result<(), Problem> {
        let results = answer.get("results").and_then(Value::as_array);
        let no_list = || Problem::of_form("\"results\" is missing or not a list".to_owned(), round);
        let results = results.ok_or_else(no_list)?;
        let is_asked = |result: &&Value| self.statements.iter().any(|statement| result["id"] == statement.id);
        if let Some(stray) = results.iter().find(|result| !is_asked(result))
            && round == 0
        {
            // A judge that makes ids up may have mixed up the others too.
            let what = format!("there is no statement with the id {}", shortened(&stray["id"].to_string()));
            return Err(Problem::of_form(what, round));
        }
        let (mut problems, mut unsupported) = (Vec::new(), Vec::new());
        for statement in self.statements {
            if !self.is_open(statement.id) {
                continue;
            }
            let mut given = results.iter().filter(|result| result["id"] == statement.id);
            let id = quoted(statement.id);
            match (given.next(), given.next()) {
                (None, _) => problems.push(format!("no mark for the criterion {id}")),
                (Some(_), Some(_)) => problems.push(format!("{id} is marked twice")),
                (Some(result), None) => match mark(statement, result, self.record) {
                    Ok(given) => unsupported.extend(self.add(given).err().map(|why| format!("{id} {why}"))),
                    Err(problem) => problems.push(format!("{id}: {problem}")),
                },
            }
        }
        if self.remarks.is_empty() {
            self.remarks = remarks(answer);
        }
        let is_new = !unsupported.is_empty();
        if is_new {
            unsupported.push(SUPPORT.to_owned());
        }
        problems.append(&mut unsupported);
        if !problems.is_empty() {
            // Each statement is asked about once more for its form, and once more for its support.
            let again = round == 0 || (round == 1 && is_new);
            return Err(Problem { what: problems.join("; "), request: again.then(|| self.request()) });
        }
        match self.marks.iter().find(|mark| matches!(mark.finding.verdict, Verdict::NotScored(_))) {
            // Not to be kept for the next run as an answer.
            Some(mark) => Err(Problem { what: mark.finding.rationale.clone(), request: None }),
            None => Ok(()),
        }
    }

    fn start_over(&mut self) {
        *self = Self::new(self.statements, self.record, self.unsupported);
    }
}

impl GivenMark {
    /// The mark that stands after the judge was asked once more. A pass without any support is none.
    fn decided(self, unsupported: UnsupportedPass) -> Mark {
        match (self.support, unsupported) {
            (Support::Enough | Support::Partial, _) | (Support::Nothing, UnsupportedPass::Accept) => {
                self.mark
            }
            (Support::Nothing, UnsupportedPass::NotScored) => {
                let Finding { rationale, .. } = self.mark.finding;
                let mut finding = Finding::not_scored(Why::JudgeFailed(UNSUPPORTED.to_owned()));
                if !rationale.is_empty() {
                    finding.rationale = format!("{}; it said: {rationale}", finding.rationale);
                }
                Mark { finding, ..self.mark }
            }
        }
    }
}

/// What the judge is told about support when it is asked once more.
const SUPPORT: &str = "for a statement that is met, copy at least one quote letter by letter from the record, \
                       and none that is not there; otherwise it is not met";

const UNSUPPORTED: &str =
    "it says that this is met, and gave no quote that is in the record, also when asked once more";

/// Text of others in our own sentence: bounded, and on one line.
fn quoted(text: &str) -> String {
    shortened(&Value::from(visible(text)).to_string())
}

/// A quote as one line for people.
fn one_line(text: &str) -> String {
    first(&visible(text).split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_FLAG)
}

/// How much of a quote is told to people.
const LONGEST_FLAG: usize = 300;

fn shortened(text: &str) -> String {
    first(text, LONGEST_QUOTED)
}

/// The first so many characters.
fn first(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

/// How much of a text is repeated to the judge.
const LONGEST_QUOTED: usize = 80;

fn mark(statement: &Statement<'_>, result: &Value, record: &Quotable) -> Result<GivenMark, String> {
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
    let (support, flags, complaint) = support_of(passed, &quotes, record);
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
    let mark = Mark { weak, flags, ..Mark::new(statement.id, statement.id, finding) };
    Ok(GivenMark { mark, support, complaint })
}

/// Looks the quotes of a mark up: how they support it, and what is wrong with them.
fn support_of(passed: bool, quotes: &[String], record: &Quotable) -> (Support, Vec<String>, String) {
    let checks: Vec<QuoteCheck> = quotes.iter().map(|quote| record.look_up(quote)).collect();
    let is_invented = |(_, check): &(usize, &QuoteCheck)| **check == QuoteCheck::Invented;
    let invented: Vec<usize> = checks.iter().enumerate().filter(is_invented).map(|(at, _)| at).collect();
    let mut flags: Vec<String> = invented
        .iter()
        .map(|at| format!("quoted, but not in the record: {}", one_line(&quotes[*at])))
        .collect();
    let is_supported = checks.contains(&QuoteCheck::Supports);
    let support = match (passed, is_supported, invented.is_empty()) {
        (false, ..) | (true, true, true) => Support::Enough,
        (true, true, false) => Support::Partial,
        (true, false, _) => Support::Nothing,
    };
    if passed && quotes.is_empty() {
        flags.push("passed without a quote".to_owned());
    } else if support == Support::Nothing && invented.is_empty() {
        flags.push("passed with quotes that say nothing of it".to_owned());
    }
    let numbers: Vec<String> = invented.iter().map(|at| (at + 1).to_string()).collect();
    // The quotes themselves are not repeated: an agent may have made the judge write them.
    let complaint = match (quotes.is_empty(), numbers.is_empty()) {
        (true, _) => "it has no quote".to_owned(),
        (false, true) => "its quotes are too short, or not from what was said, done or written".to_owned(),
        (false, false) => format!("not in the record: quote {}", numbers.join(", ")),
    };
    (support, flags, complaint)
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
    use practicum_core::model::Judged;

    /// What one statement's answers come to: whether it passes, its score and its flags, or nothing.
    fn check(
        scale: Scale,
        unsupported: UnsupportedPass,
        answers: &[Value],
    ) -> Option<(bool, Option<f64>, usize)> {
        let judged = Judged { statement: "s".into(), context: None, scale };
        let statements = [Statement { id: "a", judged: &judged }];
        let record = Quotable::new("the record says\nhello  world".to_owned());
        let mut marking = Marking::new(&statements, &record, unsupported);
        for (round, answer) in answers.iter().enumerate() {
            let _ = marking.take_in(answer, round);
        }
        let (marks, _) = marking.finish();
        let Mark { finding, flags, .. } = marks.into_iter().next()?;
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
            (Scale::PassFail, one(good.clone()), Some((true, None, 0))),
            (
                Scale::PassFail,
                one(json!({"id": "a", "verdict": "fail", "evidence": [], "reasoning": ""})),
                Some((false, None, 0)),
            ),
            (
                Scale::OneToFive,
                one(json!({"id": "a", "score": 2, "evidence": []})),
                Some((false, Some(2.0), 0)),
            ),
            (
                Scale::OneToFive,
                one(json!({"id": "a", "score": 3, "verdict": "fail", "evidence": ["the record"]})),
                Some((true, Some(3.0), 0)),
            ),
            (Scale::PassFail, one(json!({"id": "a", "verdict": "maybe", "evidence": []})), None),
            (Scale::PassFail, one(json!({"id": "a", "score": 1, "evidence": []})), None),
            (Scale::PassFail, one(json!({"id": "a", "verdict": "pass", "evidence": "q"})), None),
            (Scale::PassFail, one(json!({"id": "a", "verdict": "pass", "evidence": [1]})), None),
            (Scale::OneToFive, one(json!({"id": "a", "score": 9, "evidence": []})), None),
            (Scale::OneToFive, one(json!({"id": "a", "score": "5", "evidence": []})), None),
            (Scale::PassFail, one(json!({"id": "b", "verdict": "pass", "evidence": []})), None),
            (Scale::PassFail, json!({"results": [good, good]}), None),
            (Scale::PassFail, json!({"results": [good, {"id": "b", "verdict": "pass"}]}), None),
            (Scale::PassFail, json!({"results": "pass"}), None),
            (Scale::PassFail, json!({}), None),
        ] {
            let found = check(scale, UnsupportedPass::NotScored, std::slice::from_ref(&answer));
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
            (Scale::PassFail, vec![verdict("pass", &quoted)], pass, pass),
            (Scale::PassFail, vec![verdict("pass", &[]), verdict("pass", &quoted)], pass, pass),
            (Scale::PassFail, vec![verdict("pass", &invented), verdict("fail", &[])], fail, fail),
            (Scale::PassFail, vec![verdict("pass", &[]), verdict("pass", &[])], None, Some((true, None, 1))),
            (
                Scale::PassFail,
                vec![verdict("pass", &["a"]), verdict("pass", &["."])],
                None,
                Some((true, None, 1)),
            ),
            (
                Scale::PassFail,
                vec![verdict("pass", &invented), verdict("pass", &invented)],
                None,
                Some((true, None, 1)),
            ),
            // One real quote beside an invented one.
            (
                Scale::PassFail,
                vec![verdict("pass", &real), verdict("pass", &real)],
                Some((true, None, 1)),
                Some((true, None, 1)),
            ),
            // Nobody answered the second time.
            (Scale::PassFail, vec![verdict("pass", &[])], None, Some((true, None, 1))),
            (Scale::PassFail, vec![verdict("pass", &[]), json!({})], None, Some((true, None, 1))),
            (
                Scale::PassFail,
                vec![verdict("pass", &real), json!({})],
                Some((true, None, 1)),
                Some((true, None, 1)),
            ),
            // The form was broken at first, and the pass is asked about all the same.
            (Scale::PassFail, vec![json!({}), verdict("pass", &[]), verdict("pass", &quoted)], pass, pass),
            (
                Scale::PassFail,
                vec![verdict("fail", &invented)],
                Some((false, None, 1)),
                Some((false, None, 1)),
            ),
            (Scale::OneToFive, vec![score(3.0, &[]), score(3.0, &[])], None, Some((true, Some(3.0), 1))),
            (
                Scale::OneToFive,
                vec![score(5.0, &[]), score(2.0, &[])],
                Some((false, Some(2.0), 0)),
                Some((false, Some(2.0), 0)),
            ),
            (Scale::Unit, vec![score(0.5, &[]), score(0.5, &[])], None, Some((true, Some(0.5), 1))),
            (Scale::Unit, vec![score(0.4, &[])], Some((false, Some(0.4), 0)), Some((false, Some(0.4), 0))),
        ] {
            for (unsupported, expected) in
                [(UnsupportedPass::NotScored, strict), (UnsupportedPass::Accept, accepting)]
            {
                assert_eq!(check(scale, unsupported, &answers), expected, "{unsupported:?} {answers:?}");
            }
        }
    }

    #[test]
    fn only_statements_without_support_are_asked_about_again() {
        let judged = Judged { statement: "s".into(), context: None, scale: Scale::PassFail };
        let statements = ["a", "b", "c"].map(|id| Statement { id, judged: &judged });
        let record = Quotable::new("hello world".to_owned());
        let mut marking = Marking::new(&statements, &record, UnsupportedPass::NotScored);
        let mark = |id: &str, quotes: &[&str]| json!({"id": id, "verdict": "pass", "evidence": quotes});
        let first =
            json!({"results": [mark("a", &["hello"]), mark("b", &["nothing\nsuch"]), mark("c", &[])]});
        let problem = marking.take_in(&first, 0).expect_err("two have no support");
        let request = problem.request.expect("they are asked about again");
        assert!(request.contains("about these statements only: \"b\", \"c\""), "{request}");
        assert!(problem.what.contains("\"b\" is met according to you, but not in the record: quote 1"));
        assert!(problem.what.contains("\"c\" is met according to you, but it has no quote"));
        assert!(!problem.what.contains("nothing"), "quotes are not repeated: {}", problem.what);
        let second = json!({"results": [mark("b", &["hello"])]});
        let problem = marking.take_in(&second, 1).expect_err("one is missing");
        assert_eq!(problem.request, None, "it was asked about twice");
        let (marks, _) = marking.finish();
        let verdicts: Vec<(&str, &str)> =
            marks.iter().map(|mark| (mark.id.as_str(), mark.finding.verdict.name())).collect();
        assert_eq!(verdicts, [("a", "pass"), ("b", "pass"), ("c", "not_scored")]);
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

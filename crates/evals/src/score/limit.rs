use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::RuleKind;
use super::tools::calls;
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule, Why, parse_duration};
use practicum_core::tree::{
    Data, Node, Object,
    shape::{self, Mapping},
    wrong_type,
};

pub static KIND: RuleKind = RuleKind {
    key: "limit",
    doc: "the run stayed within bounds: turns (calls of the model), tokens (read and written, from a \
          cache or not), cost_usd, seconds, files_changed, output_chars, tool_calls",
    schema,
    looks_at: LooksAt::WholeRun,
    decode: |node, diagnostics| Some(Arc::new(Limit::decode(node, diagnostics)?)),
};

/// At least one bound, each at most once.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit(Vec<(Measure, f64)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Turns,
    Tokens,
    CostUsd,
    Seconds,
    FilesChanged,
    OutputChars,
    ToolCalls,
}

impl Measure {
    const ALL: [Measure; 7] = [
        Measure::Turns,
        Measure::Tokens,
        Measure::CostUsd,
        Measure::Seconds,
        Measure::FilesChanged,
        Measure::OutputChars,
        Measure::ToolCalls,
    ];

    fn key(self) -> &'static str {
        match self {
            Measure::Turns => "turns",
            Measure::Tokens => "tokens",
            Measure::CostUsd => "cost_usd",
            Measure::Seconds => "seconds",
            Measure::FilesChanged => "files_changed",
            Measure::OutputChars => "output_chars",
            Measure::ToolCalls => "tool_calls",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Measure::Turns => "The most calls of the model.",
            Measure::Tokens => "The most tokens, read and written, from a cache or not.",
            Measure::CostUsd => "The most it may cost, in US dollars.",
            Measure::Seconds => "The longest it may take, in seconds or as a duration like 5m.",
            Measure::FilesChanged => "The most files it may create, change or delete.",
            Measure::OutputChars => "The most characters the answer may have.",
            Measure::ToolCalls => "The most calls of tools.",
        }
    }

    /// Whether it comes in wholes.
    fn is_count(self) -> bool {
        match self {
            Measure::CostUsd | Measure::Seconds => false,
            Measure::Turns
            | Measure::Tokens
            | Measure::FilesChanged
            | Measure::OutputChars
            | Measure::ToolCalls => true,
        }
    }

    /// How much it was; `None` when the agent does not tell.
    fn of(self, evidence: &Evidence<'_>) -> Option<f64> {
        let run = evidence.observation;
        match self {
            Measure::Turns => run.api_calls.map(|calls| calls as f64),
            Measure::Tokens => {
                let usage = run.usage;
                let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
                let total = parts.into_iter().fold(0u64, u64::saturating_add);
                // No agent answers without a token; none at all means none were reported.
                (total > 0).then_some(total as f64)
            }
            Measure::CostUsd => run.cost_usd,
            Measure::Seconds => Some(run.seconds),
            Measure::FilesChanged => Some(run.files.len() as f64),
            Measure::OutputChars => Some(evidence.length() as f64),
            Measure::ToolCalls => (!run.hides_tools).then(|| calls(run).count() as f64),
        }
    }
}

impl Limit {
    fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut object = Object::new(node, KIND.key, diagnostics)?;
        let mut bounds = Some(Vec::new());
        for measure in Measure::ALL {
            let Some(node) = object.given(measure.key()) else { continue };
            match (decode_bound(measure, node, diagnostics), &mut bounds) {
                (Some(most), Some(bounds)) => bounds.push((measure, most)),
                (Some(_), None) => {}
                (None, _) => bounds = None,
            }
        }
        object.refuse_rest(KIND.key, diagnostics);
        let bounds = bounds?;
        if bounds.is_empty() {
            let keys: Vec<&str> = Measure::ALL.iter().map(|measure| measure.key()).collect();
            diagnostics.error_help(
                "no-bound",
                node.span,
                "this limit limits nothing",
                format!("give it one of {}", keys.join(", ")),
            );
            return None;
        }
        Some(Self(bounds))
    }
}

fn decode_bound(measure: Measure, node: &Node, diagnostics: &mut Diagnostics) -> Option<f64> {
    let key = measure.key();
    let most = match (&node.data, measure) {
        (Data::Int(number), _) => *number as f64,
        (Data::Float(number), _) if !measure.is_count() => *number,
        (Data::Text(text), Measure::Seconds) => match parse_duration(text) {
            Some(duration) => duration.as_secs_f64(),
            None => {
                diagnostics.error("invalid-duration", node.span, format!("\"{text}\" is no duration"));
                return None;
            }
        },
        _ => {
            let expected = if measure.is_count() { "a whole number" } else { "a number" };
            wrong_type(node, key, expected, diagnostics);
            return None;
        }
    };
    if !(most.is_finite() && most >= 0.0) {
        diagnostics.error("out-of-range", node.span, format!("\"{key}\" must not be below 0"));
        return None;
    }
    Some(most)
}

impl Rule for Limit {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        let bounds = self.0.iter().map(|&(measure, most)| {
            let most = if most.fract() == 0.0 && most < 9e15 { json!(most as i64) } else { json!(most) };
            (measure.key().to_owned(), most)
        });
        Value::Object(bounds.collect::<Map<_, _>>())
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let mut within = Vec::new();
        let mut unknown = None;
        for &(measure, most) in &self.0 {
            let key = measure.key();
            match measure.of(evidence) {
                Some(found) if found > most => {
                    return Finding::new(false, format!("{key} {found}, at most {most} allowed"));
                }
                Some(found) => within.push(format!("{key} {found} of {most}")),
                None => unknown = Some(key),
            }
        }
        match unknown {
            Some(key) => Finding::not_scored(Why::CheckFailed(format!("the agent does not tell its {key}"))),
            None => Finding::new(true, within.join(", ")),
        }
    }
}

fn schema() -> Value {
    let bounds = Measure::ALL.into_iter().fold(Mapping::closed(), |bounds, measure| {
        let shape = match measure {
            Measure::Seconds => shape::either([json!({"type": "number", "minimum": 0}), shape::duration()]),
            measure if measure.is_count() => shape::at_least(0),
            _ => json!({"type": "number", "minimum": 0}),
        };
        bounds.may(measure.key(), measure.doc(), shape)
    });
    bounds.with("minProperties", json!(1)).into()
}

#[cfg(test)]
mod tests {
    use super::super::rows::{blind, called, check_run};
    use super::*;
    use practicum_core::model::{Change, FileChange, RelPath, Usage};

    #[test]
    fn rows() {
        let mut run = called(&[("Read", json!({})), ("Write", json!({}))]);
        run.usage = Usage { input: 100, output: 50, cache_read: 1000, cache_write: 0 };
        run.api_calls = Some(3);
        run.seconds = 12.5;
        run.files = vec![FileChange {
            path: RelPath::new("a.md").expect("a plain path"),
            change: Change::Created,
            bytes: 3,
        }];
        for (yaml, expected) in [
            ("{turns: 3}", "pass"),
            ("{turns: 2}", "fail"),
            ("{tokens: 1150}", "pass"),
            ("{tokens: 1149}", "fail"),
            ("{cost_usd: 0.5}", "not_scored"),
            ("{cost_usd: 0.5, turns: 2}", "fail"),
            ("{seconds: 12.5}", "pass"),
            ("{seconds: 12}", "fail"),
            ("{seconds: 1m}", "pass"),
            ("{files_changed: 1}", "pass"),
            ("{files_changed: 0}", "fail"),
            ("{output_chars: 4, tool_calls: 2}", "pass"),
            ("{output_chars: 3}", "fail"),
            ("{tool_calls: 1}", "fail"),
            ("{}", "refused"),
            ("{turns: ~}", "refused"),
            ("{turns: -1}", "refused"),
            ("{turns: 1.5}", "refused"),
            ("{seconds: soon}", "refused"),
            ("{cost_usd: .nan}", "refused"),
            ("{cost_usd: .inf}", "refused"),
            ("{steps: 5}", "refused"),
            ("5", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        run.cost_usd = Some(0.25);
        check_run(&KIND, "{cost_usd: 0.25}", &run, "pass");
        check_run(&KIND, "{turns: 5}", &called(&[]), "not_scored");
        check_run(&KIND, "{tool_calls: 5}", &blind(), "not_scored");
        check_run(&KIND, "{tokens: 5}", &called(&[]), "not_scored");
    }
}

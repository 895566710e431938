//! The check `limit`: a run stayed within bounds, such as a number of turns, tokens or tool calls, a cost, or a
//! time.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::RuleKind;
use super::tools::tool_calls;
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, Diagnostics, NotScoredReason, Rule, parse_duration,
};
use practicum_core::tree::{
    NodeData, ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    report_wrong_type,
};

pub static KIND: RuleKind = RuleKind {
    key: "limit",
    doc: "the run stayed within bounds: turns (calls of the model), tokens (read and written, from a \
          cache or not), cost_usd, seconds, files_changed, output_chars, tool_calls",
    schema,
    decode: |node, diagnostics| Some(Arc::new(LimitRule::decode(node, diagnostics)?)),
};

/// The bounds of a run: at least one, and each measure at most once.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRule(Vec<(RunMeasure, f64)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunMeasure {
    Turns,
    Tokens,
    CostUsd,
    Seconds,
    FilesChanged,
    OutputChars,
    ToolCalls,
}

impl RunMeasure {
    const ALL: [RunMeasure; 7] = [
        RunMeasure::Turns,
        RunMeasure::Tokens,
        RunMeasure::CostUsd,
        RunMeasure::Seconds,
        RunMeasure::FilesChanged,
        RunMeasure::OutputChars,
        RunMeasure::ToolCalls,
    ];

    fn key(self) -> &'static str {
        match self {
            RunMeasure::Turns => "turns",
            RunMeasure::Tokens => "tokens",
            RunMeasure::CostUsd => "cost_usd",
            RunMeasure::Seconds => "seconds",
            RunMeasure::FilesChanged => "files_changed",
            RunMeasure::OutputChars => "output_chars",
            RunMeasure::ToolCalls => "tool_calls",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            RunMeasure::Turns => "The most calls of the model.",
            RunMeasure::Tokens => "The most tokens, read and written, from a cache or not.",
            RunMeasure::CostUsd => "The most it may cost, in US dollars.",
            RunMeasure::Seconds => "The longest it may take, in seconds or as a duration like 5m.",
            RunMeasure::FilesChanged => "The most files it may create, change or delete.",
            RunMeasure::OutputChars => "The most characters the answer may have.",
            RunMeasure::ToolCalls => "The most calls of tools.",
        }
    }

    /// Says whether the measure is a whole number.
    fn is_count(self) -> bool {
        match self {
            RunMeasure::CostUsd | RunMeasure::Seconds => false,
            RunMeasure::Turns
            | RunMeasure::Tokens
            | RunMeasure::FilesChanged
            | RunMeasure::OutputChars
            | RunMeasure::ToolCalls => true,
        }
    }

    /// Measures the run. Gives `None` if the agent does not report this measure.
    fn measure(self, evidence: &CheckEvidence<'_>) -> Option<f64> {
        let run = evidence.observation;
        match self {
            RunMeasure::Turns => run.api_calls.map(|calls| calls as f64),
            RunMeasure::Tokens => {
                let usage = run.usage;
                let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
                let total = parts.into_iter().fold(0u64, u64::saturating_add);
                // Every answer of an agent costs tokens, so zero means that the agent reported none.
                (total > 0).then_some(total as f64)
            }
            RunMeasure::CostUsd => run.cost_usd,
            RunMeasure::Seconds => (!run.missing.seconds).then_some(run.seconds),
            RunMeasure::FilesChanged => (!run.missing.files).then_some(run.files.len() as f64),
            RunMeasure::OutputChars => Some(evidence.total_length() as f64),
            RunMeasure::ToolCalls => (!run.hides_tools).then(|| tool_calls(run).count() as f64),
        }
    }
}

impl LimitRule {
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let mut bounds = Some(Vec::new());
        for measure in RunMeasure::ALL {
            let Some(node) = object.get_non_null(measure.key()) else { continue };
            match (decode_bound(measure, node, diagnostics), &mut bounds) {
                (Some(most), Some(bounds)) => bounds.push((measure, most)),
                (Some(_), None) => {}
                (None, _) => bounds = None,
            }
        }
        object.reject_unknown_keys(KIND.key, diagnostics);
        let bounds = bounds?;
        if bounds.is_empty() {
            let keys: Vec<&str> = RunMeasure::ALL.iter().map(|measure| measure.key()).collect();
            diagnostics.error_with_help(
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

fn decode_bound(measure: RunMeasure, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<f64> {
    let key = measure.key();
    let most = match (&node.data, measure) {
        (NodeData::Int(number), _) => *number as f64,
        (NodeData::Float(number), _) if !measure.is_count() => *number,
        (NodeData::Text(text), RunMeasure::Seconds) => match parse_duration(text) {
            Some(duration) => duration.as_secs_f64(),
            None => {
                diagnostics.error("invalid-duration", node.span, format!("\"{text}\" is no duration"));
                return None;
            }
        },
        _ => {
            let expected = if measure.is_count() { "a whole number" } else { "a number" };
            report_wrong_type(node, key, expected, diagnostics);
            return None;
        }
    };
    if !(most.is_finite() && most >= 0.0) {
        diagnostics.error("out-of-range", node.span, format!("\"{key}\" must not be below 0"));
        return None;
    }
    Some(most)
}

impl Rule for LimitRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        let bounds = self.0.iter().map(|&(measure, most)| {
            let most = if most.fract() == 0.0 && most < 9e15 { json!(most as i64) } else { json!(most) };
            (measure.key().to_owned(), most)
        });
        Value::Object(bounds.collect::<Map<_, _>>())
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let mut within = Vec::new();
        let mut unknown = None;
        for &(measure, most) in &self.0 {
            let key = measure.key();
            match measure.measure(evidence) {
                Some(found) if found > most => {
                    return CheckFinding::new(false, format!("{key} {found}, at most {most} allowed"));
                }
                Some(found) => within.push(format!("{key} {found} of {most}")),
                None => unknown = Some(key),
            }
        }
        match unknown {
            Some(key) => CheckFinding::not_scored(NotScoredReason::CheckFailed(format!(
                "the agent does not report its {key}"
            ))),
            None => CheckFinding::new(true, within.join(", ")),
        }
    }
}

fn schema() -> Value {
    let bounds = RunMeasure::ALL.into_iter().fold(MappingSchema::closed(), |bounds, measure| {
        let shape = match measure {
            RunMeasure::Seconds => {
                json_schema::any_of([json!({"type": "number", "minimum": 0}), json_schema::duration()])
            }
            measure if measure.is_count() => json_schema::integer_from(0),
            _ => json!({"type": "number", "minimum": 0}),
        };
        bounds.optional(measure.key(), measure.doc(), shape)
    });
    bounds.with_keyword("minProperties", json!(1)).into()
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_calls, run_without_transcript};
    use super::*;
    use practicum_core::model::{FileChange, FileChangeKind, MissingEvidence, RelPath, TokenUsage};

    #[test]
    fn rows() {
        let mut run = run_with_calls(&[("Read", json!({})), ("Write", json!({}))]);
        run.usage = TokenUsage { input: 100, output: 50, cache_read: 1000, cache_write: 0 };
        run.api_calls = Some(3);
        run.seconds = 12.5;
        run.files = vec![FileChange {
            path: RelPath::new("a.md").expect("a plain path"),
            change: FileChangeKind::Created,
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
        check_run(&KIND, "{turns: 5}", &run_with_calls(&[]), "not_scored");
        check_run(&KIND, "{tool_calls: 5}", &run_without_transcript(), "not_scored");
        check_run(&KIND, "{tokens: 5}", &run_with_calls(&[]), "not_scored");
        run.missing = MissingEvidence { files: true, seconds: true };
        check_run(&KIND, "{seconds: 100}", &run, "not_scored");
        check_run(&KIND, "{files_changed: 100}", &run, "not_scored");
    }
}

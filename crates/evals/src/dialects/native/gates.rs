//! The key `gates` of native files: the conditions on the results of a suite.

use practicum_core::model::{Diagnostics, Gate, GateName, Ratio};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, closest_word, report_wrong_type};

/// Reads the gates of a suite. Without any, all cases must pass.
pub fn decode_gates(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Vec<Gate> {
    let Some(node) = file.get_non_null("gates") else { return vec![Gate::ALL_CASES_PASS] };
    let Some(entries) = node.as_map() else {
        report_wrong_type(node, "gates", "a mapping of gate to threshold", diagnostics);
        return Vec::new();
    };
    let mut gates = Vec::new();
    for entry in entries {
        let Some(name) = GateName::parse(&entry.key) else {
            let known: Vec<&str> = GateName::ALL.iter().map(|gate| gate.name()).collect();
            let help = closest_word(&entry.key, &known).map_or_else(
                || format!("the gates are {}", known.join(", ")),
                |known| format!("did you mean \"{known}\"?"),
            );
            diagnostics.error_with_help(
                "unknown-gate",
                entry.key_span,
                format!("unknown gate \"{}\"", entry.key),
                help,
            );
            continue;
        };
        if let Some(gate) = decode_gate_with_confidence(name, &entry.value, diagnostics) {
            gates.extend(gate);
            continue;
        }
        let value = match entry.value.data {
            NodeData::Bool(true)
                if matches!(
                    name,
                    GateName::AllCasesPass | GateName::ActivationCasesPass | GateName::NoRegression
                ) =>
            {
                Some(1.0)
            }
            NodeData::Int(n) => Some(n as f64),
            NodeData::Float(x) => Some(x),
            _ => None,
        };
        match value.and_then(Ratio::new) {
            Some(threshold) => gates.push(Gate::new(name, threshold)),
            None => diagnostics.error_with_help(
                "out-of-range",
                entry.value.span,
                format!("\"{}\" must be between 0 and 1", entry.key),
                "80 % is 0.8",
            ),
        }
    }
    gates
}

/// Reads `{at_least: 0.8, confidence: 0.9}`. `None` if the value has another form; `Some(None)` if it is not valid, which
/// is reported.
fn decode_gate_with_confidence(
    name: GateName,
    node: &TreeNode,
    diagnostics: &mut Diagnostics,
) -> Option<Option<Gate>> {
    let entries = node.as_map()?;
    let number = |value: &TreeNode| match value.data {
        NodeData::Int(n) => Some(n as f64),
        NodeData::Float(x) => Some(x),
        _ => None,
    };
    let (mut at_least, mut confidence) = (None, None);
    for entry in entries {
        match entry.key.as_str() {
            "at_least" => at_least = number(&entry.value).and_then(Ratio::new),
            "confidence" => confidence = number(&entry.value),
            key => {
                let help = "a gate has the keys at_least and confidence";
                diagnostics.error_with_help(
                    "unknown-key",
                    entry.key_span,
                    format!("unknown key \"{key}\""),
                    help,
                );
                return Some(None);
            }
        }
    }
    let Some((threshold, confidence)) = at_least.zip(confidence) else {
        let help = "write {at_least: 0.8, confidence: 0.9}, both between 0 and 1";
        diagnostics.error_with_help(
            "out-of-range",
            node.span,
            format!("\"{}\" needs at_least and confidence", name.name()),
            help,
        );
        return Some(None);
    };
    Some(match Gate::new(name, threshold).with_confidence(confidence) {
        Ok(gate) => Some(gate),
        Err(why) => {
            diagnostics.error_with_help(
                "out-of-range",
                node.span,
                format!("\"{}\": {why}", name.name()),
                "90 % is 0.9",
            );
            None
        }
    })
}

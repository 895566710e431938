use super::styles::{BAD, GOOD, UNSURE};
use crate::model::GateResult;

/// A gate's value, its interval where there is one, what it needs, and whether that is reached.
pub fn measured(gate: &GateResult) -> String {
    let (style, word) = match (gate.ok, gate.value) {
        (true, _) => (GOOD, "holds"),
        (false, Some(_)) => (BAD, "fails"),
        (false, None) => (UNSURE, "not measured"),
    };
    let value = gate.value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    let interval = match (gate.low, gate.high) {
        (Some(low), Some(high)) => format!(" [{low:.2}, {high:.2}]"),
        (_, None) | (None, _) => String::new(),
    };
    format!("{value}{interval} (needs {:.2}) {style}{word}{style:#}", gate.threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GateName;

    #[test]
    fn an_interval_is_shown_where_there_is_one() {
        let gate = |value: Option<f64>, low, high, ok| {
            let (name, suite, threshold) = (GateName::PassRate, "s".to_owned(), 0.7);
            let shown = measured(&GateResult { name, suite, value, low, high, threshold, ok });
            anstream::adapter::strip_str(&shown).to_string()
        };
        assert_eq!(gate(Some(0.8), Some(0.38), Some(0.96), true), "0.80 [0.38, 0.96] (needs 0.70) holds");
        assert_eq!(gate(Some(0.5), None, None, false), "0.50 (needs 0.70) fails");
        assert_eq!(gate(None, None, None, false), "– (needs 0.70) not measured");
    }
}

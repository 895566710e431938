//! The option `--gate`: gates that the user gives on the command line.

use super::headings::GATES;
use crate::model::{Gate, GateName, Ratio};
use crate::plan::{PlannedSuite, set_gates};
use crate::tree::closest_word;

/// Arguments that set gates, in place of those of the files.
#[derive(Clone, Default, clap::Args)]
pub struct GateArgs {
    /// Let this gate decide, in place of the files' own of that name or beside theirs (repeatable)
    #[arg(long = "gate", value_name = "NAME=VALUE", value_parser = parse, long_help = LONG_HELP, help_heading = GATES)]
    asked: Vec<Gate>,
}

const LONG_HELP: &str = "\
Let this gate decide, in place of the files' own of that name or beside theirs (repeatable).

A value is between 0 and 1. The gates: all_cases_pass (the share of cases that pass), pass_rate, \
criteria_pass_rate, mean_score (of judged checks), stability, \
activation_cases_pass (the share of cases that pass among those that say whether a skill must be activated; \
stability is then about the others), of activation precision, recall, f1, accuracy, and no_regression \
(no case is worse than in the baseline; see --baseline). \
pass_rate=0.8@90% asks for more than a value: it must be 90 % sure that the true rate is 0.8 or more, so the lower bound \
decides. all_cases_pass=0 takes back that every case must pass; \
if no other gate is left, failures are reported as NO GATE.";

impl GateArgs {
    pub fn apply(&self, suites: &mut [PlannedSuite]) {
        set_gates(suites, &self.asked);
    }

    /// Gives the gates of the command line, in their order.
    pub fn requested(&self) -> &[Gate] {
        &self.asked
    }

    /// Gives these gates, and the earlier ones with other names.
    pub fn merged_with(&self, earlier: &[Gate]) -> Vec<Gate> {
        let kept = earlier.iter().filter(|gate| !self.asked.iter().any(|own| own.name == gate.name));
        kept.chain(&self.asked).copied().collect()
    }
}

fn parse(text: &str) -> Result<Gate, String> {
    // What normally must hold completely needs no value.
    let (name, value) = match text.split_once('=') {
        None if GateName::parse(text) == Some(GateName::NoRegression) => (text, "1"),
        parts => parts.ok_or("it must be like pass_rate=0.8")?,
    };
    let Some(name) = GateName::parse(name) else {
        let known: Vec<&str> = GateName::ALL.iter().map(|gate| gate.name()).collect();
        let hint = closest_word(name, &known).map_or_else(
            || format!("the gates are {}", known.join(", ")),
            |known| format!("did you mean \"{known}\"?"),
        );
        return Err(format!("there is no gate \"{name}\"; {hint}"));
    };
    let (value, confidence) = match value.split_once('@') {
        Some((value, sure)) => (value, Some(parse_confidence(sure)?)),
        None => (value, None),
    };
    let value = match (name, value) {
        (GateName::AllCasesPass | GateName::ActivationCasesPass | GateName::NoRegression, "true") => Ok(1.0),
        _ => value.parse(),
    };
    let threshold = value.ok().and_then(Ratio::new);
    let gate = Gate::new(name, threshold.ok_or("its value must be between 0 and 1")?);
    match confidence {
        Some(sure) => Ok(gate.with_confidence(sure)?),
        None => Ok(gate),
    }
}

/// Reads a confidence: `90%` or `0.9`.
fn parse_confidence(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share.ok_or_else(|| format!("\"{text}\" is no confidence; it must be like 90%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_can_be_asked_for_and_nothing_else() {
        for name in GateName::ALL {
            assert_eq!(parse(&format!("{}=0.5", name.name())).map(|gate| gate.name), Ok(name));
            assert!(LONG_HELP.contains(name.name()), "{}", name.name());
        }
        for (text, expected) in [
            ("pass_rat=1", "did you mean \"pass_rate\"?"),
            ("x=1", "the gates are all_cases_pass"),
            ("pass_rate", "like pass_rate=0.8"),
            ("pass_rate=0.8@", "is no confidence"),
            ("pass_rate=0.8@x%", "is no confidence"),
            ("pass_rate=0.8@100%", "below 1"),
            ("pass_rate=0.8@40%", "at least 0.5"),
            ("pass_rate=0.8@NaN", "at least 0.5"),
            ("stability=0.8@90%", "use pass_rate"),
            ("no_regression=1@90%", "cannot have a confidence"),
            ("pass_rate=1.1", "between 0 and 1"),
            ("pass_rate=-0.1", "between 0 and 1"),
            ("pass_rate=NaN", "between 0 and 1"),
            ("pass_rate=true", "between 0 and 1"),
            ("pass_rate=", "between 0 and 1"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        for whole in ["all_cases_pass=true", "no_regression", "no_regression=true"] {
            assert_eq!(parse(whole).map(|gate| gate.threshold.get()), Ok(1.0), "{whole}");
        }
    }
}

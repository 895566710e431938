//! The command `practicum power`: estimates how many runs a comparison needs.

use super::{count_with_noun, print, print_json, report_error};
use crate::model::Outcome;
use crate::report::PowerDocument;
use crate::stats::{ALPHA, ComparisonDesign, PowerQuestion, PowerUnknown, answer_power_question};

#[derive(clap::Args)]
#[command(after_help = "\
Agents do not do the same thing twice, so a few runs cannot tell a better skill from luck. Power is the \
chance that a comparison shows a change that is really there; 0.8 is a common choice. Give two of \
--cases, --repeat and --effect, or only --effect; the missing one is computed.

A larger change needs far fewer runs (half the change, four times the runs). More cases help \
more than more repeats, because repeats of one case only say something about that case. If the change differs \
from case to case (--spread), repeats alone may never be enough.

Examples:
  practicum power --baseline 0.6 --effect 0.2             how many cases?
  practicum power --baseline 0.6 --effect 0.2 --repeat 3  and with 3 runs each?
  practicum power --baseline 0.6 --effect 0.2 --cases 12  how often must 12 run?
  practicum power --baseline 0.6 --cases 12 --repeat 5    what gain would show?")]
pub struct PowerArgs {
    /// The pass rate now, or without the skill
    #[arg(long, value_name = "RATE", value_parser = parse_share)]
    baseline: f64,
    /// The change to be shown: 0.2 for twenty points more, -0.1 for ten less
    #[arg(long, value_name = "CHANGE", allow_negative_numbers = true, value_parser = parse_effect)]
    effect: Option<f64>,
    /// The number of cases
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    cases: Option<u64>,
    /// The number of runs of each case on each side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: Option<u64>,
    /// How much the change differs from case to case (standard deviation)
    #[arg(long, value_name = "SD", default_value = "0", value_parser = parse_share)]
    spread: f64,
    /// The chance of reporting a change although there is none
    #[arg(long, value_name = "CHANCE", default_value_t = ALPHA, value_parser = parse_chance)]
    alpha: f64,
    /// The chance of finding the change if there is one
    #[arg(long, value_name = "CHANCE", default_value = "0.8", value_parser = parse_chance)]
    power: f64,
    /// The cost of one run in USD
    #[arg(long, value_name = "USD")]
    usd_per_run: Option<f64>,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

fn parse_share(text: &str) -> Result<f64, String> {
    within(text, 0.0, 1.0).ok_or_else(|| "it must be between 0 and 1".to_owned())
}

fn parse_effect(text: &str) -> Result<f64, String> {
    let effect = within(text, -1.0, 1.0).filter(|effect| *effect != 0.0);
    effect.ok_or_else(|| "it must be between -1 and 1, and not 0".to_owned())
}

fn parse_chance(text: &str) -> Result<f64, String> {
    let chance = within(text, 0.001, 0.999);
    chance.ok_or_else(|| "it must be between 0.001 and 0.999".to_owned())
}

fn within(text: &str, low: f64, high: f64) -> Option<f64> {
    text.parse().ok().filter(|number| (low..=high).contains(number))
}

pub fn main(args: &PowerArgs) -> Outcome {
    match power(args) {
        Ok(()) => Outcome::Passed,
        Err(error) => report_error(&error),
    }
}

fn power(args: &PowerArgs) -> anyhow::Result<()> {
    let after = args.baseline + args.effect.unwrap_or_default();
    if !(0.0..=1.0).contains(&after) {
        anyhow::bail!("a pass rate of {} cannot become {after:.2}; give a smaller --effect", args.baseline);
    }
    if args.effect.is_none() && args.cases.is_none() {
        anyhow::bail!("say what is to be shown (--effect) or with what (--cases)");
    }
    let question = PowerQuestion {
        baseline: args.baseline,
        effect: args.effect,
        cases: args.cases,
        repeat: args.repeat,
        spread: args.spread,
        alpha: args.alpha,
        power: args.power,
    };
    let (sought, design) = answer_power_question(&question);
    if args.json {
        return print_json(&power_document(&question, sought, design));
    }
    print(&match design {
        Some(design) => describe_design(sought, &design, args.usd_per_run),
        None => impossible_message(sought, args.power),
    })
}

fn power_document(
    question: &PowerQuestion,
    sought: PowerUnknown,
    design: Option<ComparisonDesign>,
) -> PowerDocument {
    PowerDocument {
        schema_version: 1,
        sought: match sought {
            PowerUnknown::Cases => "cases",
            PowerUnknown::Repeat => "repeat",
            PowerUnknown::Effect => "effect",
            PowerUnknown::Power => "power",
        },
        baseline: question.baseline,
        effect: design.map(|design| design.effect).or(question.effect),
        cases: design.map(|design| design.cases).or(question.cases),
        repeat: design.map(|design| design.repeat).or(question.repeat),
        runs: design.map(|design| design.runs()),
        power: design.map(|design| design.power),
        alpha: question.alpha,
    }
}

fn describe_design(sought: PowerUnknown, design: &ComparisonDesign, usd_per_run: Option<f64>) -> String {
    let ComparisonDesign { baseline, effect, cases, repeat, power, alpha, .. } = *design;
    let after = baseline + effect;
    let found = match sought {
        PowerUnknown::Cases => count_with_noun(cases, "case"),
        PowerUnknown::Repeat => format!("{} of each case", count_with_noun(repeat, "run")),
        PowerUnknown::Effect => format!("a change of {effect:+.2}"),
        PowerUnknown::Power => format!("a power of {power:.2}"),
    };
    let price =
        usd_per_run.map(|usd| format!(", about ${:.2}", usd * design.runs() as f64)).unwrap_or_default();
    let times = count_with_noun(repeat, "time");
    format!(
        "{found}\n\n  {}, each run {times} before and {times} after: {} in all{price}.\n  \
         A pass rate that goes from {baseline:.2} to {after:.2} is then shown with a chance of {power:.2},\n  \
         and one that stays the same is mistaken for a change with a chance of at most {alpha:.2}.\n",
        count_with_noun(cases, "case"),
        count_with_noun(design.runs(), "run")
    )
}

fn impossible_message(sought: PowerUnknown, power: f64) -> String {
    let why = match sought {
        PowerUnknown::Cases => "no number of cases that anyone would run is enough; look for a larger change",
        PowerUnknown::Repeat => "no number of repeats is enough: the cases differ too much, so add cases",
        PowerUnknown::Effect => "even the largest possible gain would not show; add cases or repeats",
        PowerUnknown::Power => "its power is not known",
    };
    format!("{why} (for a power of {power:.2})\n")
}

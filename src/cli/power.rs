use super::{complain, counted, print, print_json};
use crate::report::Needed;
use crate::stats::{ALPHA, Design, Question, Sought, answer};

#[derive(clap::Args)]
#[command(after_help = "\
Agents do not do the same thing twice, so a few runs cannot tell a better skill from luck. Power is the \
chance that a comparison shows a change that is really there; 0.8 is a common choice. Say what you know, \
and what you leave out is looked for: --cases, --repeat or --effect.

What helps: a larger change needs far fewer runs (half the change, four times the runs). More cases help \
more than more repeats, because repeats of one case only tell about that case. Where the change differs \
from case to case (--spread), repeats alone may never be enough.

Examples:
  practicum power --baseline 0.6 --effect 0.2             how many cases?
  practicum power --baseline 0.6 --effect 0.2 --repeat 3  and with 3 runs each?
  practicum power --baseline 0.6 --effect 0.2 --cases 12  how often must 12 run?
  practicum power --baseline 0.6 --cases 12 --repeat 5    what gain would show?")]
pub struct Args {
    /// The pass rate now, or without the skill
    #[arg(long, value_name = "RATE", value_parser = parse_share)]
    baseline: f64,
    /// The change to be shown: 0.2 for twenty points more, -0.1 for ten less
    #[arg(long, value_name = "CHANGE", allow_negative_numbers = true, value_parser = parse_effect)]
    effect: Option<f64>,
    /// How many cases there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    cases: Option<u64>,
    /// How often each is run on each side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: Option<u64>,
    /// How much the change differs from case to case (standard deviation)
    #[arg(long, value_name = "SD", default_value = "0", value_parser = parse_share)]
    spread: f64,
    /// The chance of seeing a change where there is none
    #[arg(long, value_name = "CHANCE", default_value_t = ALPHA, value_parser = parse_chance)]
    alpha: f64,
    /// The chance of seeing the change where there is one
    #[arg(long, value_name = "CHANCE", default_value = "0.8", value_parser = parse_chance)]
    power: f64,
    /// What one run costs, in USD
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

pub fn main(args: &Args) -> u8 {
    match power(args) {
        Ok(()) => 0,
        Err(error) => complain(&error),
    }
}

fn power(args: &Args) -> anyhow::Result<()> {
    let after = args.baseline + args.effect.unwrap_or_default();
    if !(0.0..=1.0).contains(&after) {
        anyhow::bail!("a pass rate of {} cannot become {after:.2}; give a smaller --effect", args.baseline);
    }
    if args.effect.is_none() && args.cases.is_none() {
        anyhow::bail!("say what is to be shown (--effect) or with what (--cases)");
    }
    let question = Question {
        baseline: args.baseline,
        effect: args.effect,
        cases: args.cases,
        repeat: args.repeat,
        spread: args.spread,
        alpha: args.alpha,
        power: args.power,
    };
    let (sought, design) = answer(&question);
    if args.json {
        return print_json(&document(&question, sought, design));
    }
    print(&match design {
        Some(design) => in_words(sought, &design, args.usd_per_run),
        None => impossible(sought, args.power),
    })
}

fn document(question: &Question, sought: Sought, design: Option<Design>) -> Needed {
    Needed {
        schema_version: 1,
        sought: match sought {
            Sought::Cases => "cases",
            Sought::Repeat => "repeat",
            Sought::Effect => "effect",
            Sought::Power => "power",
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

fn in_words(sought: Sought, design: &Design, usd_per_run: Option<f64>) -> String {
    let Design { baseline, effect, cases, repeat, power, alpha, .. } = *design;
    let after = baseline + effect;
    let found = match sought {
        Sought::Cases => counted(cases, "case"),
        Sought::Repeat => format!("{} of each case", counted(repeat, "run")),
        Sought::Effect => format!("a change of {effect:+.2}"),
        Sought::Power => format!("a power of {power:.2}"),
    };
    let price =
        usd_per_run.map(|usd| format!(", about ${:.2}", usd * design.runs() as f64)).unwrap_or_default();
    let times = counted(repeat, "time");
    format!(
        "{found}\n\n  {}, each run {times} before and {times} after: {} in all{price}.\n  \
         A pass rate that goes from {baseline:.2} to {after:.2} is then shown with a chance of {power:.2},\n  \
         and one that stays the same is mistaken for a change with a chance of at most {alpha:.2}.\n",
        counted(cases, "case"),
        counted(design.runs(), "run")
    )
}

fn impossible(sought: Sought, power: f64) -> String {
    let why = match sought {
        Sought::Cases => "no number of cases that anyone would run is enough; look for a larger change",
        Sought::Repeat => "no number of repeats is enough: the cases differ too much, so add cases",
        Sought::Effect => "even the largest possible gain would not show; add cases or repeats",
        Sought::Power => "its power is not known",
    };
    format!("{why} (for a power of {power:.2})\n")
}

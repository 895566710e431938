//! The command `practicum trend`: shows how a number changes over the runs of a project.

use std::path::PathBuf;

use super::{open_index, print, print_json, report_error};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::report::{figures, terminal_safe};
use crate::store::history::{Trend, sparkline, trend};
use crate::store::{Metric, MetricScope};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum trend                          the pass rate, run by run
  practicum trend f1 --suite triggers      how well the skill is picked up
  practicum trend seconds --agent claude   how long a trial takes
  practicum trend pass_rate --arm without  the same without the skill")]
pub struct TrendArgs {
    /// The metric: a share of results, or the mean cost, seconds or tokens of a trial
    #[arg(default_value = "pass_rate", value_parser = clap::builder::PossibleValuesParser::new(Metric::ALL.map(Metric::name)))]
    metric: String,
    /// Only this suite
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// Only this case
    #[arg(long, value_name = "ID")]
    case: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only this arm; without it, all but the one without the skill
    #[arg(long, value_name = "ARM")]
    arm: Option<String>,
    /// Include the runs of earlier versions that compare --against made
    #[arg(long)]
    earlier_versions: bool,
    /// At most so many of the newest runs
    #[arg(long, value_name = "N", default_value_t = 40)]
    last: usize,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

pub fn main(args: &TrendArgs) -> Outcome {
    run(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn run(args: &TrendArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let metric = Metric::parse(&args.metric).unwrap_or(Metric::PassRate);
    let scope = MetricScope {
        suite: args.suite.clone(),
        case: args.case.clone(),
        agent: args.agent.clone(),
        arm: args.arm.clone(),
        earlier_skills: args.earlier_versions,
    };
    let trend = trend(&open_index(&project)?, metric, &scope, args.last)?;
    match args.json {
        true => print_json(&trend),
        false => print(&describe_trend(&trend, metric)),
    }
}

fn describe_trend(trend: &Trend, metric: Metric) -> String {
    let values: Vec<Option<f64>> = trend.points.iter().map(|point| point.value).collect();
    let mut known = values.iter().flatten();
    let (Some(first), last) = (known.next(), known.next_back()) else {
        return format!("no run has measured {}\n", metric.name());
    };
    let change = last.map(|last| format!(" → {}", format_value(*last, metric))).unwrap_or_default();
    let line = sparkline(&values, metric.is_share());
    let mut out = format!("{}  {line}  {}{change}\n\n", metric.name(), format_value(*first, metric));
    for point in trend.points.iter().rev() {
        let value = point.value.map_or_else(|| "–".to_owned(), |value| format_value(value, metric));
        let origin = figures::describe_origin(point.reused, point.scripted, point.replayed);
        let origin = origin.map(|words| format!("  ({words})")).unwrap_or_default();
        out.push_str(&format!("  {}  {value:>8}  n {}{origin}\n", terminal_safe(&point.run), point.n));
    }
    out
}

fn format_value(value: f64, metric: Metric) -> String {
    match metric {
        Metric::Cost => format!("${value:.4}"),
        Metric::Seconds => format!("{value:.1} s"),
        Metric::Tokens => format!("{value:.0}"),
        Metric::PassRate
        | Metric::CriteriaPassRate
        | Metric::MeanScore
        | Metric::Precision
        | Metric::Recall
        | Metric::F1
        | Metric::Accuracy
        | Metric::Unscored => format!("{value:.2}"),
    }
}

//! What a program may add from outside: eval formats, checks, agents and reports.

use crate::agents::{AgentCli, DecoderKind};
use crate::checks::RuleKind;
use crate::dialects::Dialect;
use crate::report::{ReportFormat, ReportRegistry, RunResults};
use crate::session::RunRegistry;
use crate::store::RunDir;

/// The eval formats, checks, agents and reports of this library, and those that a program adds.
///
/// ```
/// use practicum::Registry;
/// use practicum::agents::AgentCli;
/// use practicum::report::{ReportFormat, ReportOutput};
/// use practicum::session::Session;
///
/// static PASSED: ReportFormat = ReportFormat {
///     name: "passed",
///     description: "the number of trials that passed",
///     output: ReportOutput::File(|results, out| writeln!(out, "{}", results.summary.totals.passed)),
///     environment_file: None,
/// };
/// let text = practicum::agents::find_decoder("text").expect("a built-in decoder");
/// let registry =
///     Registry::default().with_agent(AgentCli::new("mine", "my-agent", text)).with_report(&PASSED);
/// let session = Session::new("path/to/project").with_registry(&registry).agent("mine");
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    /// What a run may use.
    pub run: RunRegistry,
    /// The reports of a run.
    pub reports: ReportRegistry,
}

impl Registry {
    /// Adds an eval format.
    #[must_use]
    pub fn with_format(self, format: &'static dyn Dialect) -> Self {
        Self { run: self.run.with_format(format), ..self }
    }

    /// Adds a kind of deterministic check. Native eval files may then use its key.
    #[must_use]
    pub fn with_check(self, check: &'static RuleKind) -> Self {
        Self { run: self.run.with_check(check), ..self }
    }

    /// Adds an agent, and the decoder of its stream.
    #[must_use]
    pub fn with_agent(self, agent: AgentCli) -> Self {
        Self { run: self.run.with_agent(agent), ..self }
    }

    /// Adds a decoder. Agents that a settings file describes may then use it by its name.
    #[must_use]
    pub fn with_decoder(self, decoder: &'static DecoderKind) -> Self {
        Self { run: self.run.with_decoder(decoder), ..self }
    }

    /// Adds a kind of report.
    #[must_use]
    pub fn with_report(self, report: &'static ReportFormat) -> Self {
        Self { reports: self.reports.with_report(report), ..self }
    }

    /// Opens a stored run, to write reports of it. Fails if the run did not come to its end.
    pub fn open_results(&self, run: RunDir) -> Result<RunResults, String> {
        RunResults::open(run).map(|results| results.with_agents(self.run.agents.clone()))
    }
}

impl From<&Registry> for RunRegistry {
    fn from(registry: &Registry) -> Self {
        registry.run.clone()
    }
}

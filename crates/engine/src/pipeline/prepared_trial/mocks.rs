//! The mocks of a trial: the calls that they got, and what the model that plays servers used.

use super::PreparedTrial;
use crate::pipeline::run_context::RunContext;
use practicum_core::model::{JudgeUsage, MockCall};

impl PreparedTrial<'_> {
    /// Gives the calls that the mocks got, without secrets; `None` if nothing is mocked.
    pub fn mock_calls(&self, context: &RunContext) -> Option<Vec<MockCall>> {
        self.mocks.as_ref().map(|mocks| mocks.calls(&context.scrubber))
    }

    /// Writes what real servers said to the files of their recordings. Gives notes for the user.
    pub fn write_recordings(&self, context: &RunContext) -> Vec<String> {
        let mocks = self.mocks.iter();
        mocks.flat_map(|mocks| mocks.write_recordings(&context.scrubber)).collect()
    }

    /// Gives what the model that plays servers used.
    pub fn mock_spending(&self, context: &RunContext) -> Option<JudgeUsage> {
        let prices = self.services.prices(context.ledger.prices());
        self.played_servers.as_ref().and_then(|model| model.spending(prices))
    }

    /// Gives the gateway's notes about the model that plays servers.
    pub(super) fn mock_model_notes(&self) -> Vec<String> {
        let Some(model) = &self.played_servers else { return Vec::new() };
        let who = self.services.gateway_name();
        model.finish().into_iter().map(|note| format!("mock model: {who}: {note}")).collect()
    }
}

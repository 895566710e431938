//! The adviser: a model that gives opinions and proposals.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use practicum_agents::gateway::{Gateway, ScopeKind};
use practicum_engine::grade::judge::{Judge, JudgeContext, StructuredQuestion};
use practicum_engine::workspace::run::CancelToken;

/// A model that is asked for opinions. It never decides a verdict.
pub struct Adviser {
    judge: Arc<Judge>,
    /// The gateway for its requests, if a script answers or the cost is counted.
    gateway: Option<Arc<Gateway>>,
    cancel: CancelToken,
}

/// An answer of an adviser, and its cost if that is known.
#[derive(Debug)]
pub struct AdviserAnswer<T> {
    /// The answer, or a message why there is none.
    pub answer: Result<T, String>,
    pub cost_usd: Option<f64>,
}

impl Adviser {
    pub fn new(judge: Arc<Judge>, gateway: Option<Arc<Gateway>>, cancel: CancelToken) -> Self {
        Self { judge, gateway, cancel }
    }

    /// Asks a question. `name` identifies it in records and in costs.
    pub async fn ask_as<T: Send>(
        &self,
        name: &str,
        inquiry: &StructuredQuestion,
        read: &(dyn Fn(&Value) -> Result<T, String> + Send + Sync),
    ) -> AdviserAnswer<T> {
        let sitting = JudgeContext { marker: name, cancel: &self.cancel };
        let scope = self.gateway.as_ref().map(|at| at.register(name, ScopeKind::Judge, BTreeMap::new()));
        let consulted = match &scope {
            Some(scope) => {
                let judge = self.judge.at_address(|api| scope.base_url_for(api));
                judge.ask_structured(inquiry, read, &sitting).await
            }
            None => self.judge.ask_structured(inquiry, read, &sitting).await,
        };
        let cost_usd = scope.as_ref().and_then(|scope| scope.cost());
        AdviserAnswer { answer: consulted.answer.map_err(|why| why.describe()), cost_usd }
    }
}

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use practicum_agents::gateway::{Gateway, ScopeKind};
use practicum_engine::judge::{Inquiry, Judge, Sitting};
use practicum_engine::run::Cancel;

/// A model that is asked for its opinion, never for a verdict of its own.
pub struct Adviser {
    judge: Arc<Judge>,
    /// Where it is asked, if a script answers or the cost is counted.
    gateway: Option<Arc<Gateway>>,
    cancel: Cancel,
}

/// An answer, and what it cost as far as that is known.
#[derive(Debug)]
pub struct Advice<T> {
    /// Why there is none, in words.
    pub answer: Result<T, String>,
    pub cost_usd: Option<f64>,
}

impl Adviser {
    pub fn new(judge: Arc<Judge>, gateway: Option<Arc<Gateway>>, cancel: Cancel) -> Self {
        Self { judge, gateway, cancel }
    }

    /// Asks under a name by which the question is found in records and bills.
    pub async fn ask<T: Send>(
        &self,
        name: &str,
        inquiry: &Inquiry,
        read: &(dyn Fn(&Value) -> Result<T, String> + Send + Sync),
    ) -> Advice<T> {
        let sitting = Sitting { marker: name, cancel: &self.cancel };
        let scope = self.gateway.as_ref().map(|at| at.register(name, ScopeKind::Judge, BTreeMap::new()));
        let consulted = match &scope {
            Some(scope) => {
                let judge = self.judge.at(|api| scope.base_url_for(api));
                judge.consult(inquiry, read, &sitting).await
            }
            None => self.judge.consult(inquiry, read, &sitting).await,
        };
        let cost_usd = scope.as_ref().and_then(|scope| scope.cost());
        Advice { answer: consulted.answer.map_err(|why| why.in_words()), cost_usd }
    }
}

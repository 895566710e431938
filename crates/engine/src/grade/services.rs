//! The services of one suite: its model gateway and its judge.

use std::sync::Arc;

use super::judge::Judge;
use practicum_agents::gateway::{Gateway, PriceTable};

/// The services with which one suite is run and judged.
pub struct SuiteServices {
    /// The gateway that replaces the model or stands before it.
    pub gateway: Option<(Arc<Gateway>, GatewayRole)>,
    /// The judge, or the reason why there is none.
    pub judge: Result<Arc<Judge>, String>,
}

impl SuiteServices {
    /// Gives the name of the gateway in notes.
    pub(crate) fn gateway_name(&self) -> &'static str {
        match self.gateway {
            Some((_, GatewayRole::Script)) => "script",
            Some((_, GatewayRole::Replay)) => "replay",
            Some((_, GatewayRole::Record | GatewayRole::Meter)) | None => "gateway",
        }
    }

    /// Gives the prices of a judge's answers; `None` if a script answers, which costs nothing.
    pub fn prices<'p>(&self, prices: &'p PriceTable) -> Option<&'p PriceTable> {
        Some(prices).filter(|_| !matches!(self.gateway, Some((_, GatewayRole::Script))))
    }
}

/// The role of a gateway for a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayRole {
    Script,
    Replay,
    Record,
    Meter,
}

impl GatewayRole {
    /// Says whether tokens and cost at the gateway are those of a real model, now or when it was recorded.
    pub(crate) fn uses_real_model(self) -> bool {
        match self {
            GatewayRole::Script => false,
            GatewayRole::Replay | GatewayRole::Record | GatewayRole::Meter => true,
        }
    }

    /// Says whether an agent that cannot use a gateway may run without it.
    pub(crate) fn is_optional(self) -> bool {
        match self {
            GatewayRole::Script | GatewayRole::Replay | GatewayRole::Record => false,
            GatewayRole::Meter => true,
        }
    }
}

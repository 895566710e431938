//! Passes requests on to the real model and its replies back, unchanged. The gateway counts them.

use super::{AnswerForm, AnswerFuture, AuxiliaryCall, AuxiliaryFuture, GatewayCall, Responder, Upstream};

/// A responder that passes requests on to the real model.
pub struct Passthrough {
    upstream: Upstream,
}

impl Passthrough {
    pub fn new(upstream: Upstream) -> Self {
        Self { upstream }
    }
}

impl Responder for Passthrough {
    fn answer<'a>(&'a self, call: GatewayCall<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            match self.upstream.forward(&call).await {
                Ok(passed) => AnswerForm::PassedThrough(passed).into(),
                Err(refusal) => AnswerForm::Refused(refusal).into(),
            }
        })
    }

    fn answer_auxiliary<'a>(&'a self, aside: AuxiliaryCall<'a>) -> AuxiliaryFuture<'a> {
        Box::pin(async move { Some(self.upstream.forward_auxiliary(&aside).await) })
    }
}

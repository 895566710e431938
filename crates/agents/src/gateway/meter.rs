//! Passes requests on to the real model and its replies back, unchanged. The gateway counts.

use super::{Answer, Answering, Aside, Asides, Call, Delivery, Upstream};

pub struct Meter {
    upstream: Upstream,
}

impl Meter {
    pub fn new(upstream: Upstream) -> Self {
        Self { upstream }
    }
}

impl Answer for Meter {
    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a> {
        Box::pin(async move {
            match self.upstream.forward(&call).await {
                Ok(passed) => Delivery::Passed(passed).into(),
                Err(refusal) => Delivery::Refused(refusal).into(),
            }
        })
    }

    fn aside<'a>(&'a self, aside: Aside<'a>) -> Asides<'a> {
        Box::pin(async move { Some(self.upstream.forward_aside(&aside).await) })
    }
}

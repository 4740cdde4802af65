//! Guarded writes and scripts of the caller: both require a hold that has not ended.

use alloc::string::String;

use super::{Context, EndpointId, Engine, HoldId, LeaseEnd};
use crate::error::{EvalError, InvalidOption, LossReason, RequestError};
use crate::machine::script_result;
use crate::protocol::calls::{IdempotentCall, UserScript};
use crate::protocol::reply::Reply;
use crate::protocol::script::Bound;
use crate::timing::HORIZON;

impl Engine {
    /// Checks by the holder's own clocks that a hold has not ended.
    ///
    /// # Errors
    /// The reason of its loss; [`LossReason::Gone`] after its release.
    pub fn check_lasts(&mut self, id: HoldId, cx: &mut Context<'_>) -> Result<(), LossReason> {
        match self.hold_end(id, cx) {
            None => Ok(()),
            Some(LeaseEnd::Lost(reason)) => Err(reason),
            Some(LeaseEnd::Released) => Err(LossReason::Gone),
        }
    }

    /// Creates the call of a script that Redis runs only under this hold, and returns its gateway.
    ///
    /// # Errors
    /// [`RequestError::Lost`] if the hold has ended, [`RequestError::InvalidOption`] if it has
    /// several parts.
    pub fn script_call(
        &mut self,
        id: HoldId,
        script: &UserScript,
        cx: &mut Context<'_>,
    ) -> Result<(EndpointId, IdempotentCall), RequestError> {
        self.check_lasts(id, cx).map_err(RequestError::Lost)?;
        let has_one_part = self.all_parts(id).count() == 1;
        let (to, target, grant) =
            self.first_counting_part(id).filter(|_| has_one_part).ok_or_else(|| {
                let accepted = "one that is held on one gateway, in one slot of a cluster";
                InvalidOption::new("lease", accepted)
            })?;
        // The token of the grant: Redis may not yet have written a newer one, of a downgrade, to
        // the latch.
        Ok((to, target.eval(grant.owner, grant.token, script)?))
    }

    /// Reads the reply to a script that ran under this hold, which is lost if Redis says so.
    ///
    /// # Errors
    /// [`EvalError`].
    pub fn script_result(
        &mut self,
        id: HoldId,
        reply: Reply,
        cx: &mut Context<'_>,
    ) -> Result<String, EvalError> {
        let result = script_result(reply);
        if let Err(EvalError::Request(RequestError::Lost(reason))) = &result {
            self.lose(id, *reason, cx);
        }
        result
    }

    /// The time after which Redis rejects copies of a write that is sent now. Without this bound,
    /// which requires Redis' clock, a copy could be executed until a newer write.
    pub fn write_bound(&self, to: EndpointId, cx: &Context<'_>) -> Bound {
        let not_after = self.clock(to).map(|clock| clock.after(HORIZON, cx.now));
        Bound { not_after, keep: HORIZON }
    }
}

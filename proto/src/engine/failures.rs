//! Combines the failures of the parts of a hold into one outcome.

use alloc::vec::Vec;

use crate::error::RequestError;

/// Combines the failures of a request that was sent for each part of a hold, which needs all but
/// `spare` of its parts.
///
/// [`RequestError::Lost`] if and only if more than `spare` parts are lost. The loss of fewer does
/// not end the hold, since the parts without a reply may still be held.
pub(super) fn taken_together(
    failures: Vec<RequestError>,
    spare: usize,
) -> Result<(), RequestError> {
    if failures.len() <= spare {
        return Ok(());
    }
    let is_lost = |error: &RequestError| matches!(error, RequestError::Lost(_));
    if failures.iter().filter(|error| is_lost(error)).count() > spare {
        return failures.into_iter().rfind(is_lost).map_or(Ok(()), Err);
    }
    failures.into_iter().find(|error| !is_lost(error)).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::error::{FailureKind, LossReason};

    const LOST: RequestError = RequestError::Lost(LossReason::Gone);
    const SILENT: RequestError = RequestError::Unreachable(FailureKind::TimedOut);

    #[test]
    fn the_loss_of_spare_parts_is_no_failure() {
        assert_eq!(taken_together(vec![], 0), Ok(()));
        assert_eq!(taken_together(vec![LOST], 1), Ok(()));
        assert_eq!(taken_together(vec![SILENT, LOST], 2), Ok(()));
    }

    #[test]
    fn it_is_lost_when_too_few_parts_can_be_left_and_not_before() {
        assert_eq!(taken_together(vec![SILENT, LOST], 0), Err(LOST));
        assert_eq!(taken_together(vec![LOST, LOST], 1), Err(LOST));
        // One of three is gone and one has not replied: that one may be held, and with the third it
        // is a majority.
        assert_eq!(taken_together(vec![LOST, SILENT], 1), Err(SILENT));
        assert_eq!(taken_together(vec![SILENT, LOST, LOST], 2), Err(SILENT));
    }
}

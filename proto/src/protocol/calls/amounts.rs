//! Numbers of permits and counts that are valid once they exist.

use alloc::string::ToString;

use crate::error::InvalidOption;

/// The number of permits of a semaphore that are acquired together: 1 to 2147483647, the range of a
/// Java `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermitCount(u32);

/// The number of permits of a permit-expirable semaphore that are acquired together: 1 to 1000.
/// Each has an id, which travels with each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchSize(u16);

/// The total number of permits of a semaphore: 0 to 2147483647.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermitTotal(u32);

/// The initial count of a count-down latch: 1 to 2^53 - 1, the exact range of JavaScript's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LatchCount(u64);

const INT_MAX: u32 = i32::MAX.unsigned_abs();

impl PermitCount {
    /// Checks a number.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(permits: u32) -> Result<Self, InvalidOption> {
        within("permits", permits.into(), 1, INT_MAX.into()).map(|()| Self(permits))
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl BatchSize {
    /// Checks a number.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(permits: u16) -> Result<Self, InvalidOption> {
        within("permits", permits.into(), 1, 1000).map(|()| Self(permits))
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl PermitTotal {
    /// Checks a number.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(permits: u32) -> Result<Self, InvalidOption> {
        within("permits", permits.into(), 0, INT_MAX.into()).map(|()| Self(permits))
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl LatchCount {
    /// Checks a number.
    ///
    /// # Errors
    /// [`InvalidOption`] outside of the range above.
    pub fn new(count: u64) -> Result<Self, InvalidOption> {
        within("count", count, 1, (1 << 53) - 1).map(|()| Self(count))
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

fn within(option: &str, number: u64, least: u64, most: u64) -> Result<(), InvalidOption> {
    let fits = (least..=most).contains(&number);
    fits.then_some(()).ok_or_else(|| {
        InvalidOption::new(option, [&least.to_string(), " to ", &most.to_string()].concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_at_both_ends() {
        assert!(PermitCount::new(1).is_ok() && PermitCount::new(2_147_483_647).is_ok());
        assert!(PermitTotal::new(0).is_ok() && BatchSize::new(1000).is_ok());
        assert!(LatchCount::new(9_007_199_254_740_991).is_ok());
        assert!(PermitCount::new(0).is_err() && PermitCount::new(2_147_483_648).is_err());
        assert!(PermitTotal::new(u32::MAX).is_err() && BatchSize::new(0).is_err());
        assert!(BatchSize::new(1001).is_err() && LatchCount::new(1 << 53).is_err());
        let error = LatchCount::new(0).unwrap_err();
        assert_eq!((error.option(), error.accepted()), ("count", "1 to 9007199254740991"));
    }
}

//! The cases of each kind: a new kind needs only a line here and one in `kinds.rs`.

/// Defines one test for each case, in a module for each kind.
macro_rules! table {
    ($($module:ident: $kind:ident is $($cases:ident)*;)*) => {
        $(mod $module { $(super::$cases! { $kind })* })*
    };
}

/// The cases of an exclusive object, whatever the kind.
macro_rules! exclusive {
    ($kind:ident) => {
        super::tests! { $kind, exclusive,
            java_is_refused_while_we_hold
            we_are_refused_while_java_holds
            we_acquire_the_lock_after_java_unlocks
            we_acquire_the_lock_when_the_lease_of_java_has_expired
            java_renews_while_we_wait
            a_java_service_that_dies_leaves_its_hold_to_us
        }
        // The test advances its client's virtual time whenever no request is pending. On one thread
        // none is on its way then; on several, the proxy may not have been polled yet.
        super::test! { $kind, exclusive, java_acquires_the_lock_when_our_lease_has_expired,
            flavor = "current_thread"
        }
    };
}

/// Kinds that are one hash, which both sides can query and delete.
macro_rules! queryable {
    ($kind:ident) => {
        super::tests! { $kind, state_and_force,
            java_reads_what_we_hold
            we_read_what_java_holds
            our_forced_release_wakes_java
            java_ends_our_hold_by_force_and_our_holder_is_notified
            we_end_a_hold_of_java_by_force_and_it_is_notified
        }
    };
}

/// Kinds that any waiter may acquire next.
macro_rules! unordered {
    ($kind:ident) => {
        super::tests! { $kind, contention, both_sides_contend_without_two_concurrent_holders }
    };
}

/// Kinds that serve waiters in the order of their arrival.
macro_rules! ordered {
    ($kind:ident) => {
        super::tests! { $kind, order, both_sides_contend_and_are_served_in_turn }
    };
}

/// Kinds whose release notifies waiters.
macro_rules! notifying {
    ($kind:ident) => {
        super::tests! { $kind, exclusive,
            our_release_wakes_java
            we_renew_while_java_waits
        }
    };
}

/// Re-entrant kinds.
macro_rules! reentrant {
    ($kind:ident) => {
        super::tests! { $kind, reentry,
            java_enters_again_while_we_wait
            we_enter_again_while_java_waits
        }
    };
}

/// Kinds whose hold count can be read.
macro_rules! counted {
    ($kind:ident) => {
        super::tests! { $kind, state_and_force, we_read_how_often_java_holds_it }
    };
}

/// Kinds that are not re-entrant.
macro_rules! non_reentrant {
    ($kind:ident) => {
        super::tests! { $kind, reentry,
            java_gets_the_reply_that_it_holds_the_lock_already
            our_client_gets_the_reply_that_it_holds_the_lock_already
        }
    };
}

/// Defines tests with two threads: one for a contender, one for the gateway and the proxy.
macro_rules! tests {
    ($kind:ident, $module:ident, $($case:ident)*) => {
        $(super::test! { $kind, $module, $case, flavor = "multi_thread", worker_threads = 2 })*
    };
}

/// Defines one test, in the runtime with these options.
macro_rules! test {
    ($kind:ident, $module:ident, $case:ident, $($runtime:tt)*) => {
        #[::tokio::test($($runtime)*)]
        async fn $case() {
            crate::interop::$module::$case::<crate::interop::kinds::$kind>().await;
        }
    };
}

use {
    counted, exclusive, non_reentrant, notifying, ordered, queryable, reentrant, test, tests,
    unordered,
};

table! {
    lock: Plain is exclusive queryable reentrant counted notifying unordered;
    non_reentrant_lock: NonReentrant is exclusive queryable non_reentrant notifying unordered;
    fenced_lock: Fenced is exclusive queryable reentrant counted notifying unordered;
    spin_lock: Spin is exclusive queryable reentrant counted unordered;
    spin_lock_of_constant_pauses: ConstantSpin is exclusive queryable reentrant counted unordered;
    fair_lock: Fair is exclusive queryable reentrant counted notifying ordered;
    non_reentrant_fair_lock: NonReentrantFair is exclusive queryable non_reentrant notifying ordered;
    write_lock: WriteSide is exclusive queryable reentrant counted notifying unordered;
    group_lock: Group is exclusive reentrant notifying unordered;
    multi_lock_of_two: MultiOfTwo is exclusive reentrant notifying unordered;
    multi_lock_of_three: MultiOfThree is exclusive reentrant notifying unordered;
    red_lock: Red is exclusive reentrant notifying unordered;
}

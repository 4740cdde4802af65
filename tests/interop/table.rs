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
            we_take_over_after_java_unlocks
            we_take_over_when_the_lease_of_java_has_run_out
            java_renews_while_we_wait
            a_java_service_that_dies_leaves_its_hold_to_us
        }
        super::led_test! { $kind, exclusive, java_takes_over_when_our_lease_has_run_out }
    };
}

/// Kinds that are one hash, which both sides can query and delete.
macro_rules! told {
    ($kind:ident) => {
        super::tests! { $kind, state_and_force,
            java_reads_what_we_hold
            we_read_what_java_holds
            our_forced_release_wakes_java
            java_ends_our_hold_by_force_and_we_are_told
            we_end_a_hold_of_java_by_force_and_it_is_told
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
macro_rules! tells {
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
macro_rules! never_again {
    ($kind:ident) => {
        super::tests! { $kind, reentry,
            java_is_told_that_it_holds_it_already
            we_are_told_that_we_hold_it_already
        }
    };
}

macro_rules! tests {
    ($kind:ident, $room:ident, $($case:ident)*) => {
        $(super::test! { $kind, $room, $case })*
    };
}

macro_rules! test {
    ($kind:ident, $room:ident, $case:ident) => {
        // Two threads: one for a contender, one for the gateway and the proxy.
        #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            crate::interop::$room::$case::<crate::interop::kinds::$kind>().await;
        }
    };
}

/// Defines a test that advances its client's virtual time. On one thread, whenever no request is
/// pending, none is on its way either; on several, the proxy may not have had its turn.
macro_rules! led_test {
    ($kind:ident, $room:ident, $case:ident) => {
        #[::tokio::test]
        async fn $case() {
            crate::interop::$room::$case::<crate::interop::kinds::$kind>().await;
        }
    };
}

use {
    counted, exclusive, led_test, never_again, ordered, reentrant, tells, test, tests, told,
    unordered,
};

table! {
    lock: Plain is exclusive told reentrant counted tells unordered;
    non_reentrant_lock: NonReentrant is exclusive told never_again tells unordered;
    fenced_lock: Fenced is exclusive told reentrant counted tells unordered;
    spin_lock: Spin is exclusive told reentrant counted unordered;
    spin_lock_of_constant_pauses: ConstantSpin is exclusive told reentrant counted unordered;
    fair_lock: Fair is exclusive told reentrant counted tells ordered;
    non_reentrant_fair_lock: NonReentrantFair is exclusive told never_again tells ordered;
    write_lock: WriteSide is exclusive told reentrant counted tells unordered;
    group_lock: Group is exclusive reentrant tells unordered;
    multi_lock_of_two: MultiOfTwo is exclusive reentrant tells unordered;
    multi_lock_of_three: MultiOfThree is exclusive reentrant tells unordered;
    red_lock: Red is exclusive reentrant tells unordered;
}

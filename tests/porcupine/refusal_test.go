package main

import "testing"

func TestARefusalWithoutAHolderIsRejected(t *testing.T) {
	for _, kind := range []string{"lock", "group", "multi"} {
		b := newHistory(t, kind)
		b.hold(1, "exclusive", 0, 10, 1, 100).released(20, 30)
		b.acquire(2, "exclusive", 31, 40, "busy")
		b.rejected()
	}
}

// A node of a redLock may refuse for other reasons than a hold, and a waiter may have been ahead in
// a queue.
func TestARefusalByAMajorityOrAQueueIsNotJudged(t *testing.T) {
	for _, kind := range []string{"red", "fair", "read-write", "fair-read-write"} {
		b := newHistory(t, kind)
		b.hold(1, "exclusive", 0, 10, 1, 100).released(20, 30)
		b.acquire(2, "exclusive", 31, 40, "busy")
		b.accepted()
	}
	b := newHistory(t, "fair")
	b.acquire(1, "exclusive", 0, 10, "busy")
	b.rejected()
}

func TestTheRefusalOfSeveralLocksIsNotJudged(t *testing.T) {
	b := newHistory(t, "multi")
	b.acquire(1, "exclusive", 0, 10, "busy").last().Names = []string{"a", "b"}
	b.accepted()
	b.h.kind = "group"
	b.rejected()
}

func TestAHolderExplainsARefusalAlsoDuringItsRelease(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).released(20, 30)
	b.acquire(2, "exclusive", 30, 40, "busy")
	b.accepted()
	b = newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).releaseUnknown(20, 30, 90)
	b.acquire(2, "exclusive", 80, 85, "busy")
	b.accepted()
	b.acquire(3, "exclusive", 95, 99, "busy")
	b.rejected()
}

// A failed acquisition may have held, and have been undone, before its response at 50.
func TestAnUndoneAcquisitionExplainsRefusalsDuringItsCall(t *testing.T) {
	b := newHistory(t, "lock")
	b.acquire(1, "exclusive", 0, 50, "failed")
	b.acquire(2, "exclusive", 20, 30, "busy")
	b.accepted()
	b.acquire(3, "exclusive", 51, 60, "busy")
	b.rejected()
}

func TestAnUnknownAcquisitionExplainsRefusalsUntilItsBound(t *testing.T) {
	endsBy := int64(60)
	b := newHistory(t, "lock")
	b.acquire(1, "exclusive", 0, 10, "unknown").last().EndsBy = &endsBy
	b.acquire(2, "exclusive", 55, 59, "busy")
	b.accepted()
	b.acquire(3, "exclusive", 61, 69, "busy")
	b.rejected()
}

// One of two locks is gone; the other one may be held on.
func TestALockThatIsGoneExplainsNoRefusal(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		b := newHistory(t, "multi")
		held := b.hold(1, "exclusive", 0, 10, 1, 30).gone(50).last()
		if held.Names = names; len(names) > 1 {
			held.Tokens = append(held.Tokens, held.Tokens[0])
		}
		b.acquire(2, "exclusive", 60, 65, "busy")
		if len(names) > 1 {
			b.accepted()
		} else {
			b.rejected()
		}
	}
}

func TestAnAcquisitionWithoutAResultExplainsRefusalsForEver(t *testing.T) {
	b := newHistory(t, "lock")
	b.acquire(1, "exclusive", 0, 10, "none").last().Return = nil
	b.acquire(2, "exclusive", 5000, 5010, "busy")
	b.accepted()
}

// The failed acquisition cannot have held beside a holder that was there all the time.
func TestAPossibleHoldBesideAKnownOneExplainsNothing(t *testing.T) {
	b := newHistory(t, "semaphore").withPermits(2, 0, 0)
	b.hold(1, "permits", 1, 10, 1, 100).last().Permits = 1
	b.acquire(2, "permits", 20, 30, "failed").last().Permits = 2
	b.acquire(3, "permits", 22, 28, "busy").last().Permits = 1
	b.rejected()
	// The values of the failed acquisition were not free either.
	b = newHistory(t, "group")
	b.hold(1, "exclusive", 0, 10, 1, 100).last().Names = []string{"b"}
	b.acquire(2, "exclusive", 20, 30, "failed").last().Names = []string{"a", "b"}
	b.acquire(3, "exclusive", 22, 28, "busy")
	b.rejected()
}

func TestALongCallMayRefuseItself(t *testing.T) {
	b := newHistory(t, "lock")
	b.acquire(1, "exclusive", 0, 26, "busy")
	b.accepted()
	b = newHistory(t, "lock")
	b.acquire(1, "exclusive", 0, 25, "busy")
	b.rejected()
}

func TestHeldPermitsNeverExceedTheirNumber(t *testing.T) {
	for permits, isPossible := range map[int]bool{1: true, 2: false} {
		b := newHistory(t, "permits").withPermits(2, 0, 0)
		b.hold(1, "permits", 1, 10, 1, 100).last().Permits = 1
		b.hold(2, "permits", 20, 30, 2, 100).last().Permits = permits
		if isPossible {
			b.accepted()
		} else {
			b.rejected()
		}
	}
}

func TestARefusalOfFreePermitsIsRejected(t *testing.T) {
	b := newHistory(t, "semaphore").withPermits(2, 0, 0)
	b.hold(1, "permits", 1, 10, 1, 100).released(50, 60).last().Permits = 1
	b.acquire(2, "permits", 20, 30, "busy").last().Permits = 2
	b.accepted()
	// The refused acquisition of both permits cannot have held them beside the first.
	b.acquire(3, "permits", 21, 29, "busy").last().Permits = 1
	b.rejected()
}

func TestNothingIsGrantedBeforeThePermitsAreSetUp(t *testing.T) {
	b := newHistory(t, "semaphore").withPermits(2, 40, 50)
	b.acquire(1, "permits", 30, 45, "busy").last().Permits = 1
	b.accepted()
	b.hold(2, "permits", 10, 20, 1, 100).last().Permits = 1
	b.rejected()
}

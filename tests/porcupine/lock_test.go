package main

import "testing"

func TestTwoHoldersAtATimeAreRejected(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100)
	b.hold(2, "exclusive", 20, 50, 2, 150)
	b.rejected()
}

func TestALeaseMayExpireWithoutARelease(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100)
	b.hold(2, "exclusive", 20, 120, 2, 200)
	b.accepted()
}

func TestAHoldThatWasSeenLaterLastedUntilThen(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).confirmed(150, 160)
	b.hold(2, "exclusive", 20, 120, 2, 200)
	b.rejected()
}

func TestAHoldWhoseReleaseWasSentExcludesNoOther(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).releaseUnknown(30, 90, 150)
	b.hold(2, "exclusive", 20, 40, 2, 100)
	b.accepted()
}

// The release found the first hold, so it lasted until then, beyond its lease.
func TestAReleasedHoldExistedUntilItsRelease(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).released(300, 310)
	b.hold(2, "exclusive", 120, 130, 2, 200).released(140, 150)
	b.rejected()
	b = newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).released(300, 310)
	b.hold(2, "exclusive", 120, 301, 2, 400)
	b.accepted()
}

func TestATokenThatDoesNotRiseIsRejected(t *testing.T) {
	for token, isPossible := range map[uint64]bool{6: false, 7: false, 8: true} {
		b := newHistory(t, "fenced")
		b.hold(1, "exclusive", 0, 10, 7, 100).released(20, 30)
		b.hold(2, "exclusive", 40, 50, token, 100).released(60, 70)
		if isPossible {
			b.accepted()
		} else {
			b.rejected()
		}
	}
}

func TestResponsesMayArriveInAnotherOrderThanTheGrants(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 40, 2, 100).released(50, 60)
	b.hold(2, "exclusive", 5, 90, 1, 5).lost(91, 92)
	b.accepted()
}

// The periods that are certain by the responses do not overlap. But by its token the second grant
// came first, so its hold lasted from before 10 to 95.
func TestHoldsThatOverlapByTheirTokensAreRejected(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 3, 100).released(50, 60)
	b.hold(2, "exclusive", 0, 90, 2, 200).released(95, 99)
	b.rejected()
}

func TestALossBeforeTheEndOfALeaseIsRejected(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).gone(50)
	b.rejected()
	b = newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).lease(40, 90).lost(40, 50)
	b.rejected()
	b = newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).gone(50).lost(50, 60)
	b.rejected()
	b = newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).gone(120).lost(130, 140)
	b.accepted()
}

// The holder reports a loss by its own clock, which has jumped ahead: it has no lease any more when
// it sends the release.
func TestALossThatOnlyTheHoldersClockShowsIsNoProof(t *testing.T) {
	b := newHistory(t, "lock")
	b.hold(1, "exclusive", 0, 10, 1, 100).lost(40, 50)
	b.accepted()
}

// A release that finds nothing ends nothing, but may end other parts of a hold that has several.
func TestAReleaseThatFindsNothingEndsOnlyOtherParts(t *testing.T) {
	for _, kind := range []string{"lock", "red"} {
		b := newHistory(t, kind)
		b.hold(1, "exclusive", 0, 10, 1, 100).lease(40, 100).lost(40, 110)
		b.hold(2, "exclusive", 45, 60, 2, 200)
		if kind == "red" {
			b.accepted()
		} else {
			b.rejected()
		}
		// No part can have been lost before the end of the lease.
		b = newHistory(t, kind)
		b.hold(1, "exclusive", 0, 10, 1, 100).lease(40, 100).lost(40, 90)
		b.rejected()
	}
}

func TestAHoldThatIsGoneIsNotReleased(t *testing.T) {
	for _, kind := range []string{"lock", "red", "group"} {
		b := newHistory(t, kind)
		b.hold(1, "exclusive", 0, 10, 1, 30).gone(50).released(60, 70)
		if kind == "group" {
			b.accepted()
			b.hold(2, "exclusive", 40, 45, 2, 48)
		}
		b.rejected()
	}
}

func TestAnUnansweredAcquisitionMayOrMayNotHold(t *testing.T) {
	endsBy := int64(60)
	for _, other := range []string{"busy", "granted"} {
		b := newHistory(t, "lock")
		b.acquire(1, "exclusive", 0, 10, "unknown").last().EndsBy = &endsBy
		if other == "busy" {
			b.acquire(2, "exclusive", 20, 30, "busy")
		} else {
			b.hold(2, "exclusive", 20, 30, 2, 100)
		}
		b.accepted()
	}
}

func TestReadersShareAHoldAndItsToken(t *testing.T) {
	b := newHistory(t, "read-write")
	b.hold(1, "shared", 0, 10, 5, 100)
	b.hold(2, "shared", 20, 30, 5, 100).released(40, 50)
	b.hold(3, "shared", 60, 70, 6, 200)
	b.accepted()
	b.hold(4, "exclusive", 110, 120, 7, 200)
	b.rejected()
}

func TestAReaderDoesNotGetTheTokenOfAWriter(t *testing.T) {
	b := newHistory(t, "read-write")
	b.hold(1, "exclusive", 0, 10, 5, 100).released(20, 30)
	b.hold(2, "shared", 40, 50, 5, 100)
	b.rejected()
}

func TestAReaderDoesNotGetTheTokenFromBeforeAWriter(t *testing.T) {
	b := newHistory(t, "read-write")
	b.hold(1, "shared", 0, 10, 5, 100).released(20, 30)
	b.hold(2, "exclusive", 40, 50, 6, 100).released(60, 70)
	b.hold(3, "shared", 80, 90, 5, 200)
	b.rejected()
}

func TestValuesOfAGroupExcludeOnlyThemselves(t *testing.T) {
	hold := func(b *builder, token uint64, call, returned int64, names ...string) {
		b.acquireLine(line{
			Owner: len(b.h.acquisitions), Client: "host 1", Mode: "exclusive", Names: names, Call: call,
			Return: &returned, Result: "granted", Tokens: []*uint64{&token, &token}[:len(names)],
		}).lease(returned, 100)
	}
	b := newHistory(t, "group")
	hold(b, 1, 0, 10, "a", "b")
	hold(b, 2, 20, 30, "c")
	b.accepted()
	hold(b, 3, 40, 50, "d", "b")
	b.rejected()
	// The tokens of a group rise over all of its values.
	b = newHistory(t, "group")
	hold(b, 2, 0, 10, "a")
	hold(b, 1, 20, 30, "b")
	b.rejected()
}

func TestAcquisitionsOfAnOwnerShareAHoldAndAreCounted(t *testing.T) {
	acquire := func(count int, token uint64) *builder {
		b := newHistory(t, "owner")
		b.hold(1, "exclusive", 0, 10, 7, 100).stillHeld(60, 70)
		second := b.hold(1, "exclusive", 20, 30, token, 100).released(80, 90)
		b.h.acquisitions[0].Owner = second.last().Owner
		second.last().Count = &count
		return b
	}
	acquire(2, 7).accepted()
	acquire(1, 7).rejected()
	acquire(3, 7).rejected()
	acquire(2, 8).rejected()
}

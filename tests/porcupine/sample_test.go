package main

import (
	"os"
	"testing"
)

// The file sample.jsonl has three histories of each kind, with lost messages and hosts that stand
// still. This command makes it anew:
//
//	cargo xtask sim --seed 23 --schedules 36 --clients 2 --rounds 2 \
//		--faults lost,unanswered,slow,suspensions --export tests/porcupine/sample.jsonl
const samplePath = "sample.jsonl"

// sample returns the recorded histories.
func sample(t *testing.T) []*history {
	t.Helper()
	file, err := os.Open(samplePath)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []*history
	if err := read(file, func(h *history) { all = append(all, h) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryRecordedHistoryIsPossible(t *testing.T) {
	seen := map[string]bool{}
	for _, h := range sample(t) {
		seen[h.kind] = true
		for _, r := range h.check() {
			t.Error(r)
		}
	}
	if len(seen) != 12 {
		t.Errorf("histories of %d kinds", len(seen))
	}
}

// A change of a history has to be rejected wherever it applies: it returns a changed copy for each
// place.
type change struct {
	name string
	// kinds are those in which it must apply to some history of the sample.
	kinds []string
	apply func(*history) []*history
}

// locks are the kinds with holds. In exclusive ones each hold excludes all others.
var (
	exclusiveKinds = []string{"fair", "fenced", "lock", "owner", "red", "spin"}
	sharedKinds    = []string{"group", "multi", "permits", "read-write", "semaphore"}
	countedKinds   = []string{"permits", "semaphore"}
	locks          = append(sharedKinds, exclusiveKinds...)
)

var changes = []change{
	{"a grant moved into the lease of another holder", exclusiveKinds, movedGrants},
	{"a token below one before", locks, loweredTokens},
	{"a release left out while its lease is valid", exclusiveKinds, droppedReleases},
	{"a loss reported while the lease is valid", locks, inventedLosses},
	{"a reply that a hold is gone while the lease is valid", locks, inventedAbsences},
	{"a refusal after the end of all holds", countedKinds, lateRefusals},
	{"a latch that counted down once more", []string{"latch"}, doubledCounts},
}

func TestEveryChangedHistoryIsRejected(t *testing.T) {
	histories := sample(t)
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			count := map[string]int{}
			for _, h := range histories {
				for _, changed := range change.apply(h) {
					count[h.kind]++
					if len(changed.check()) == 0 {
						t.Errorf("%s %d is accepted, changed in place %d", h.kind, h.number, count[h.kind])
					}
				}
			}
			for _, kind := range change.kinds {
				if count[kind] == 0 {
					t.Errorf("no history of kind %s was changed", kind)
				}
			}
			t.Log(count)
		})
	}
}

// copied returns a copy of a history, whose acquisitions may be changed.
func (h *history) copied() *history {
	copied := *h
	copied.acquisitions = make([]*acquisition, len(h.acquisitions))
	for place, a := range h.acquisitions {
		acquisition := *a
		copied.acquisitions[place] = &acquisition
	}
	return &copied
}

// validUntil returns the time until which the holder's clocks show a lease, and false if there is
// none after the grant.
func (a *acquisition) validUntil() (int64, bool) {
	until := int64(0)
	for _, lease := range a.leases {
		until = max(until, lease.Until)
	}
	return until, a.Result == "granted" && until > a.returned()+1
}

// exclude returns whether two acquisitions exclude each other at least under one name.
func (h *history) exclude(one, other *acquisition) bool {
	for _, name := range one.Names {
		excludes := one.Mode == "exclusive" || other.Mode == "exclusive"
		excludes = excludes || one.Mode == "permits" && one.Permits+other.Permits > h.permits.Permits
		if excludes && contains(other.Names, name) {
			return true
		}
	}
	return false
}

// pairs calls each with two grants that exclude each other. The first returned before the call of
// the second.
func (h *history) pairs(each func(one, other int)) {
	for one, a := range h.acquisitions {
		for other, b := range h.acquisitions {
			areGranted := a.Result == "granted" && b.Result == "granted"
			if areGranted && a.returned() < b.Call && h.exclude(a, b) {
				each(one, other)
			}
		}
	}
}

func movedGrants(h *history) (all []*history) {
	h.pairs(func(one, other int) {
		a := h.acquisitions[one]
		until, isValid := a.validUntil()
		at := a.returned() + 1
		if !isValid || a.release != nil && min(until, a.release.Call) <= at {
			return
		}
		changed := h.copied()
		moved := changed.acquisitions[other]
		moved.Call, moved.Return = at, &at
		all = append(all, changed)
	})
	return all
}

func loweredTokens(h *history) (all []*history) {
	h.pairs(func(one, other int) {
		changed := h.copied()
		a := changed.acquisitions[other]
		for place, name := range h.acquisitions[one].Names {
			lowered := *h.acquisitions[one].Tokens[place] - 1
			tokens := append([]*uint64{}, a.Tokens...)
			for place := range tokens {
				// The values of a group have one token.
				if a.Names[place] == name || h.kind == "group" {
					tokens[place] = &lowered
				}
			}
			a.Tokens = tokens
		}
		all = append(all, changed)
	})
	return all
}

func droppedReleases(h *history) (all []*history) {
	h.pairs(func(one, other int) {
		until, _ := h.acquisitions[one].validUntil()
		if h.acquisitions[one].release == nil || until <= h.acquisitions[other].returned() {
			return
		}
		changed := h.copied()
		changed.acquisitions[one].release = nil
		all = append(all, changed)
	})
	return all
}

func inventedLosses(h *history) (all []*history) {
	for place, a := range h.acquisitions {
		until, _ := a.validUntil()
		if a.gone != nil || !a.isReleased() || until <= a.release.returned() {
			continue
		}
		isSeen := false
		for _, lease := range a.leases {
			isSeen = isSeen || lease.Call == a.release.Call
		}
		if !isSeen {
			continue
		}
		changed := h.copied()
		lost := *a.release
		lost.Result = "lost"
		changed.acquisitions[place].release = &lost
		all = append(all, changed)
	}
	return all
}

func inventedAbsences(h *history) (all []*history) {
	for place, a := range h.acquisitions {
		at := a.returned() + 1
		until, isValid := a.validUntil()
		isEarly := isValid && (a.release == nil || min(until, a.release.Call) > at)
		// Of several locks only one may be gone.
		if !isEarly || h.kind == "multi" && len(a.Names) > 1 && !a.isReleased() {
			continue
		}
		changed := h.copied()
		gone := line{Op: "check", Call: a.returned(), Return: &at, Result: "gone"}
		changed.acquisitions[place].gone = &gone
		all = append(all, changed)
	}
	return all
}

func lateRefusals(h *history) (all []*history) {
	for place, a := range h.acquisitions {
		isJudged := h.kind != "red" && h.kind != "fair" && h.kind != "read-write" && h.kind != "fair-read-write" && !a.hasParts()
		if a.Result != "busy" || !isJudged {
			continue
		}
		changed := h.copied()
		late := changed.acquisitions[place]
		for _, c := range h.acquisitions {
			_, last := c.possiblePeriod()
			if c.Result == "granted" {
				last, _ = c.lastEnd()
			}
			late.Call = max(late.Call, last)
		}
		if late.Call == never {
			continue
		}
		late.Call++
		late.Return = &late.Call
		all = append(all, changed)
	}
	return all
}

// doubledCounts lowers the count in the last response of a latch that nothing else may have
// changed.
func doubledCounts(h *history) (all []*history) {
	for place, l := range h.latch {
		if l.Result == "unknown" {
			return all
		}
		if l.Op != "count_down" || *l.Count == 0 {
			continue
		}
		for _, other := range h.latch {
			if other != l && other.returned() >= l.Call {
				return all
			}
		}
		changed := h.copied()
		count := *l.Count - 1
		doubled := *l
		doubled.Count = &count
		changed.latch = append(append([]*line{}, h.latch[:place]...), &doubled)
		all = append(all, changed)
	}
	return all
}

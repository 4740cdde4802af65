package main

import (
	"sort"

	"github.com/anishathalye/porcupine"
)

// groupOfValues is the object of a group lock: one script acquires its values together, and their
// tokens rise together. Each name of any other kind is an object of its own.
const groupOfValues = "the group"

// An object is the part of a history that Porcupine checks on its own, and its model.
type object struct {
	name       string
	model      porcupine.Model
	operations []porcupine.Operation
}

// objects returns the objects of a history, ordered by their names.
func (h *history) objects() []object {
	claims, values := map[string][]*claim{}, map[string]uint64{}
	for _, a := range h.acquisitions {
		for name, c := range h.claims(a, values) {
			claims[name] = append(claims[name], c)
		}
	}
	var all []object
	for name, of := range claims {
		all = append(all, object{name, lockModel, h.operations(of)})
	}
	for name, operations := range h.latchOperations() {
		all = append(all, object{name, latchModel, operations})
	}
	sort.Slice(all, func(one, other int) bool { return all[one].name < all[other].name })
	return all
}

// claims returns the claim of an acquisition for each object. values has the bit of each value of
// the group, and gets those of new ones.
func (h *history) claims(a *acquisition, values map[string]uint64) map[string]*claim {
	token := func(place int) *uint64 {
		if a.Result != "granted" {
			return nil
		}
		return a.Tokens[place]
	}
	claims := map[string]*claim{}
	for place, name := range a.Names {
		if h.kind == "group" {
			if claims[groupOfValues] == nil {
				claims[groupOfValues] = &claim{acquisition: a, mode: modes[a.Mode], token: token(place)}
			}
			if values[name] == 0 {
				values[name] = 1 << len(values)
			}
			claims[groupOfValues].values |= values[name]
			continue
		}
		claims[name] = &claim{acquisition: a, mode: modes[a.Mode], values: 1, token: token(place)}
	}
	return claims
}

// operations returns the operations of one object.
func (h *history) operations(claims []*claim) []porcupine.Operation {
	var all operations
	if h.permits != nil {
		all.add("setup", setUp{h.permits.Permits}, h.permits.Call, h.permits.returned())
	}
	isAnyRefused := false
	for _, c := range claims {
		switch {
		case c.Result == "granted":
			all.addHold(c)
		case c.Result == "busy" && h.isJudged(c, claims):
			isAnyRefused = true
			all.add(c.Client, refusal{c}, c.Call, c.returned())
		}
	}
	for _, c := range claims {
		// Only a refusal asks for holds that are merely possible.
		if begin, end := c.possiblePeriod(); isAnyRefused {
			all.add(c.Client, window{c, false}, begin, begin)
			all.add(c.Client, window{c, true}, end, end)
		}
	}
	return all.list
}

// isJudged returns whether only a hold, or a possible one, explains a refusal. A node of a redLock
// may refuse for other reasons, and the refusal of several locks does not say which one was held.
// Where there is a queue, an earlier acquisition may have left a waiter behind.
func (h *history) isJudged(refused *claim, claims []*claim) bool {
	switch h.kind {
	case "red":
		return false
	case "multi":
		return len(refused.Names) == 1
	case "fair", "read-write", "fair-read-write":
		if refused.mayRefuseItself() {
			return false
		}
		for _, other := range claims {
			if other != refused && other.Call <= refused.returned() {
				return false
			}
		}
	}
	return true
}

// possiblePeriod returns the time in which an acquisition may have a hold that its caller does not
// know, or does not know any more. An acquisition with a result may have had one before it: an
// earlier try, which was undone.
func (a *acquisition) possiblePeriod() (int64, int64) {
	switch a.Result {
	case "unknown":
		return a.Call, a.endsBy()
	case "none":
		return a.Call, never
	default:
		return a.Call, a.returned()
	}
}

// operations collects the operations of an object.
type operations struct {
	list []porcupine.Operation
	// clients has a number for each client, which Porcupine's drawings need.
	clients map[string]int
}

func (o *operations) add(client string, input interface{}, call, returned int64) {
	if o.clients == nil {
		o.clients = map[string]int{}
	}
	if _, isKnown := o.clients[client]; !isKnown {
		o.clients[client] = len(o.clients)
	}
	o.list = append(o.list, porcupine.Operation{
		ClientId: o.clients[client], Input: input, Call: call, Return: returned,
	})
}

// addHold adds a grant, the proofs that the hold existed, and its end.
func (o *operations) addHold(c *claim) {
	o.add(c.Client, grant{c}, c.Call, c.returned())
	proven := c.Call
	for _, lease := range c.leases {
		proven = max(proven, c.beforeRelease(lease.Until))
	}
	if len(c.leases) > 0 {
		o.add(c.Client, presence{c, "has a valid lease"}, proven, proven)
	}
	for _, check := range c.checks {
		proven = max(proven, check.Call)
		o.add(c.Client, presence{c, "is confirmed by Redis"}, check.Call, check.returned())
	}
	last, reason := c.lastEnd()
	if c.gone != nil && c.isGoneForGood(proven) {
		o.add(c.Client, absence{c}, c.gone.Call, c.gone.returned())
	}
	first := proven
	if c.isReleased() {
		first = c.release.Call
	}
	// A hold that is proven beyond its end cannot be explained: the proofs are operations too.
	o.add(c.Client, end{c, reason}, min(first, last), last)
}

// isReleased returns whether Redis found the hold when it executed the release.
func (a *acquisition) isReleased() bool {
	return a.release != nil && (a.release.Result == "released" || a.release.Result == "still_held")
}

// beforeRelease returns the time until which a lease proves that the hold exists: a release may end
// it once it was sent, unless Redis had replied before that the hold was gone.
func (a *acquisition) beforeRelease(until int64) int64 {
	switch {
	case a.release == nil || a.gone != nil && a.gone.returned() <= a.release.Call:
		return until
	case a.isSeenLost() && (!a.hasParts() || a.release.returned() < until):
		return until
	default:
		return min(until, a.release.Call)
	}
}

// isSeenLost returns whether the release has seen that the hold was lost, and so has ended nothing;
// but some parts of a hold that has several. If the lease was over by the clocks of the holder when
// it sent the release, the holder reports a loss that it has not seen.
func (a *acquisition) isSeenLost() bool {
	if a.release.Result != "lost" {
		return false
	}
	for _, lease := range a.leases {
		if lease.Call == a.release.Call {
			return true
		}
	}
	return false
}

// hasParts returns whether the hold consists of parts that can be lost one by one.
func (a *acquisition) hasParts() bool {
	return a.Kind == "red" || a.Kind == "multi" && len(a.Names) > 1
}

// lastEnd returns the last time at which a hold ends, and why.
func (a *acquisition) lastEnd() (int64, string) {
	last, reason := int64(never), "expires"
	if a.release != nil {
		switch a.release.Result {
		case "released", "still_held":
			last, reason = a.release.returned(), "is released"
		case "lost":
			last = a.release.returned()
		case "unknown":
			last, reason = a.release.endsBy(), "is released or expires"
		}
	}
	return last, reason
}

// isGoneForGood returns whether the reply that a hold is gone proves that it does not exist. An
// expired hold of values can be released until another client acquires them. Of several locks one
// may be gone and another held, unless all of them were found by the release.
func (a *acquisition) isGoneForGood(proven int64) bool {
	switch {
	case a.Kind == "group" && a.isReleased():
		return a.gone.returned() < proven
	case a.Kind == "multi" && len(a.Names) > 1:
		return a.isReleased()
	default:
		return true
	}
}

func max(one, other int64) int64 {
	if one > other {
		return one
	}
	return other
}

func min(one, other int64) int64 {
	if one < other {
		return one
	}
	return other
}

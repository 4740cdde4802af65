package main

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A mode is the way in which a hold excludes those of other owners.
type mode int

const (
	// exclusive excludes every other hold of the same value.
	exclusive mode = iota
	// shared excludes exclusive holds.
	shared
	// counted takes permits. An object has a limited number of them.
	counted
)

var modes = map[string]mode{"exclusive": exclusive, "shared": shared, "permits": counted}

// unset is the number of permits of an object before they are set up: too few for any claim.
const unset = -1

// A claim is an acquisition, as far as it concerns one object.
type claim struct {
	*acquisition
	mode mode
	// values are the names that it claims, as bits. Only an object of a group has several.
	values uint64
	// token is the fencing token, or nil if the holder does not know it.
	token *uint64
}

// conflictsWith returns whether two claims cannot be held at once. Permits are counted instead.
func (c *claim) conflictsWith(other *claim) bool {
	isAlone := c.mode == exclusive || other.mode == exclusive
	return isAlone && c.values&other.values != 0 && c.Owner != other.Owner
}

// A state is that of one object in Redis.
type state struct {
	// permits is the number of permits, or unset.
	permits int
	// newest is the newest token, and isShared whether a reader has it.
	newest   uint64
	isShared bool
	// held are the holds, possible the acquisitions that may hold at this moment, or not, and ended
	// those whose hold has ended. All are ordered by their ids.
	held, possible, ended []*claim
}

// equals compares the state with another one.
func (s state) equals(other state) bool {
	return s.permits == other.permits && s.newest == other.newest && s.isShared == other.isShared &&
		areEqual(s.held, other.held) && areEqual(s.possible, other.possible) &&
		areEqual(s.ended, other.ended)
}

// hasRoomFor returns whether a claim may be granted.
func (s state) hasRoomFor(c *claim) bool {
	for _, other := range s.held {
		if c.conflictsWith(other) {
			return false
		}
	}
	return c.mode != counted || s.permitsHeld()+c.Permits <= s.permits
}

func (s state) permitsHeld() int {
	sum := 0
	for _, c := range s.held {
		sum += c.Permits
	}
	return sum
}

// explains returns whether Redis may refuse a claim: a hold excludes it, or a possible hold that
// may exist beside the known ones.
func (s state) explains(c *claim) bool {
	if c.mode == counted {
		return s.explainsPermits(c)
	}
	for _, other := range s.held {
		if c.conflictsWith(other) {
			return true
		}
	}
	for _, other := range s.possible {
		excludes := c.conflictsWith(other) || other == c && c.mayRefuseItself()
		if excludes && s.hasRoomFor(other) {
			return true
		}
	}
	return false
}

// explainsPermits returns whether the permits are not set up, or some of the possible holds take so
// many permits, beside the known holds, that too few are left.
func (s state) explainsPermits(c *claim) bool {
	left := s.permits - s.permitsHeld()
	if left < c.Permits {
		return true
	}
	// canTake has the numbers of permits that some of the possible holds take together.
	canTake := make([]bool, left+1)
	canTake[0] = true
	for _, other := range s.possible {
		if other == c && !c.mayRefuseItself() {
			continue
		}
		for sum := left; sum >= other.Permits; sum-- {
			canTake[sum] = canTake[sum] || canTake[sum-other.Permits]
		}
	}
	for sum := left; sum > left-c.Permits; sum-- {
		if canTake[sum] {
			return true
		}
	}
	return false
}

// mayRefuseItself returns whether a long call may consist of several tries. An earlier one may have
// been granted although its response was lost; its hold then refuses a later try, which has an
// owner of its own. A call shorter than a quarter of the lease has no such try.
func (c *claim) mayRefuseItself() bool {
	return c.returned()-c.Call > c.Lease/4
}

// An operation is one step of the model. Porcupine looks for an order of all operations, each at
// some moment between its call and its return.
type operation interface {
	// step returns the state after the operation, and whether it is possible in this state.
	step(state) (bool, state)
	String() string
}

// A grant makes a claim a hold. Tokens rise from grant to grant. Readers share a token above those
// of all earlier writers, and acquisitions of one owner share their hold with its token.
type grant struct{ *claim }

func (g grant) step(s state) (bool, state) {
	if !s.hasRoomFor(g.claim) {
		return false, s
	}
	count, isOfOwner := 1, false
	for _, other := range s.held {
		if other.Owner == g.Owner && other.mode == g.mode && other.values == g.values {
			count++
			isOfOwner = true
			if g.token != nil && other.token != nil && *g.token != *other.token {
				return false, s
			}
		}
	}
	if g.Count != nil && *g.Count != count {
		return false, s
	}
	if g.token != nil && !isOfOwner {
		rises := *g.token > s.newest
		if joins := g.mode == shared && s.isShared && *g.token == s.newest; !rises && !joins {
			return false, s
		}
		s.newest, s.isShared = *g.token, g.mode == shared
	}
	s.held = with(s.held, g.claim)
	return true, s
}

// A refusal is the response that another client holds the object.
type refusal struct{ *claim }

func (r refusal) step(s state) (bool, state) { return s.explains(r.claim), s }

// An end removes a hold: its release, or the expiry of its lease.
type end struct {
	*claim
	reason string
}

func (e end) step(s state) (bool, state) {
	if !has(s.held, e.claim) {
		return false, s
	}
	s.held, s.ended = without(s.held, e.claim), with(s.ended, e.claim)
	return true, s
}

// A presence proves that a hold exists.
type presence struct {
	*claim
	reason string
}

func (p presence) step(s state) (bool, state) { return has(s.held, p.claim), s }

// An absence proves that a hold does not exist any more.
type absence struct{ *claim }

func (a absence) step(s state) (bool, state) { return has(s.ended, a.claim), s }

// A window begins or ends the time in which an acquisition without a known hold may have one.
type window struct {
	*claim
	isEnd bool
}

func (w window) step(s state) (bool, state) {
	if !w.isEnd {
		s.possible = with(s.possible, w.claim)
		return true, s
	}
	if !has(s.possible, w.claim) {
		return false, s
	}
	s.possible = without(s.possible, w.claim)
	return true, s
}

// A setUp sets the number of permits.
type setUp struct{ permits int }

func (u setUp) step(s state) (bool, state) {
	s.permits = u.permits
	return true, s
}

func (g grant) String() string    { return g.claim.describe("is granted") }
func (r refusal) String() string  { return r.claim.describe("is refused") }
func (e end) String() string      { return e.claim.describe(e.reason) }
func (p presence) String() string { return p.claim.describe(p.reason) }
func (a absence) String() string  { return a.claim.describe("is reported as gone") }
func (u setUp) String() string    { return fmt.Sprintf("%d permits are set up", u.permits) }

func (w window) String() string {
	if w.isEnd {
		return w.claim.describe("can hold nothing unknown any more")
	}
	return w.claim.describe("may hold without a reply")
}

func (c *claim) describe(what string) string {
	text := fmt.Sprintf("acquisition %d of %s (%s", c.ID, c.Client, c.Mode)
	if c.mode == counted {
		text += fmt.Sprintf(" %d", c.Permits)
	}
	if c.token != nil {
		text += fmt.Sprintf(", token %d", *c.token)
	}
	return text + ") " + what
}

// lockModel is the model of one object: a lock, the values of a group, or permits.
var lockModel = porcupine.Model{
	Init: func() interface{} { return state{permits: unset} },
	Step: func(current, input, _ interface{}) (bool, interface{}) {
		return input.(operation).step(current.(state))
	},
	Equal:             func(one, other interface{}) bool { return one.(state).equals(other.(state)) },
	DescribeOperation: func(input, _ interface{}) string { return input.(operation).String() },
	DescribeState: func(current interface{}) string {
		s := current.(state)
		ids := make([]string, len(s.held))
		for place, c := range s.held {
			ids[place] = fmt.Sprint(c.ID)
		}
		return fmt.Sprintf("held by %s, newest token %d", strings.Join(ids, " "), s.newest)
	},
}

// with returns the claims with one more, in the order of their ids.
func with(claims []*claim, one *claim) []*claim {
	more := make([]*claim, 0, len(claims)+1)
	for _, other := range claims {
		if other.ID > one.ID {
			break
		}
		more = append(more, other)
	}
	more = append(more, one)
	return append(more, claims[len(more)-1:]...)
}

// without returns the claims without one of them.
func without(claims []*claim, one *claim) []*claim {
	rest := make([]*claim, 0, len(claims)-1)
	for _, other := range claims {
		if other != one {
			rest = append(rest, other)
		}
	}
	return rest
}

func has(claims []*claim, one *claim) bool {
	for _, other := range claims {
		if other == one {
			return true
		}
	}
	return false
}

func areEqual(some, others []*claim) bool {
	if len(some) != len(others) {
		return false
	}
	for place, c := range some {
		if c != others[place] {
			return false
		}
	}
	return true
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// never is the time of a response that never came.
const never = math.MaxInt64

// A line is one line of an export of the simulation: tests/simulation/export.rs describes the
// fields of each op. Times are in microseconds.
type line struct {
	History uint64    `json:"history"`
	Kind    string    `json:"kind"`
	Op      string    `json:"op"`
	ID      int       `json:"id"`
	Of      int       `json:"of"`
	Client  string    `json:"client"`
	Owner   int       `json:"owner"`
	Names   []string  `json:"names"`
	Mode    string    `json:"mode"`
	Permits int       `json:"permits"`
	Lease   int64     `json:"lease"`
	Call    int64     `json:"call"`
	Return  *int64    `json:"return"`
	Until   int64     `json:"until"`
	Result  string    `json:"result"`
	EndsBy  *int64    `json:"ends_by"`
	Tokens  []*uint64 `json:"tokens"`
	Count   *int      `json:"count"`
	Promise string    `json:"promise"`
}

// A history is the calls of one schedule.
type history struct {
	kind         string
	number       uint64
	permits      *line
	acquisitions []*acquisition
	latch        []*line
	// broken is the promise that the project's own checkers found broken, or empty.
	broken string
}

// An acquisition is a call that acquires, and the facts about the hold that it was granted.
type acquisition struct {
	line
	// leases are the holder's own views, and checks the replies of Redis that it has the hold.
	leases, checks []line
	// gone is the first reply of Redis that it does not have the hold, and release the release.
	gone, release *line
}

// returned is the time of the response.
func (l *line) returned() int64 {
	return orNever(l.Return)
}

// endsBy is the time until which a hold with an unknown outcome may exist.
func (l *line) endsBy() int64 {
	return orNever(l.EndsBy)
}

func orNever(time *int64) int64 {
	if time == nil {
		return never
	}
	return *time
}

// read calls each with every history of an export. It fails at a line that it does not understand.
func read(input io.Reader, each func(*history)) error {
	scanner := bufio.NewScanner(input)
	scanner.Buffer(nil, 1<<20)
	var current *history
	for number := 1; scanner.Scan(); number++ {
		decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		decoder.DisallowUnknownFields()
		var l line
		if err := decoder.Decode(&l); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if current == nil || current.number != l.History || current.kind != l.Kind {
			if current != nil {
				each(current)
			}
			current = &history{kind: l.Kind, number: l.History}
		}
		if err := current.add(l); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if current != nil {
		each(current)
	}
	return scanner.Err()
}

// results has the known results of each op.
var results = map[string][]string{
	"acquire":     {"granted", "busy", "failed", "unknown", "none"},
	"lease":       {""},
	"check":       {"held", "gone"},
	"release":     {"released", "lost", "unknown", "still_held", "none"},
	"set_permits": {""},
	"set_count":   {"set", "not_set", "unknown"},
	"count_down":  {"done", "unknown"},
	"read_count":  {"done"},
	"wait":        {"closed"},
	"broken":      {""},
}

// add appends a line of the export.
func (h *history) add(l line) error {
	if !contains(results[l.Op], l.Result) {
		return fmt.Errorf("op %q with result %q", l.Op, l.Result)
	}
	if l.Return != nil && *l.Return < l.Call {
		return fmt.Errorf("a response at %d to a call at %d", *l.Return, l.Call)
	}
	switch l.Op {
	case "broken":
		h.broken = l.Promise
	case "set_permits":
		h.permits = &l
	case "set_count", "count_down", "read_count", "wait":
		if needsCount := l.Op == "set_count" || l.Result == "done"; needsCount && l.Count == nil {
			return fmt.Errorf("%s without a count", l.Op)
		}
		h.latch = append(h.latch, &l)
	case "acquire":
		return h.addAcquisition(l)
	default:
		return h.addFact(l)
	}
	return nil
}

func (h *history) addAcquisition(l line) error {
	if l.ID != len(h.acquisitions) {
		return fmt.Errorf("acquisition %d follows %d others", l.ID, len(h.acquisitions))
	}
	isGranted := l.Result == "granted"
	if isGranted && (len(l.Tokens) != len(l.Names) || l.Return == nil) || len(l.Names) == 0 {
		return fmt.Errorf("acquisition %d has %d names and %d tokens", l.ID, len(l.Names), len(l.Tokens))
	}
	if _, isKnown := modes[l.Mode]; !isKnown {
		return fmt.Errorf("mode %q", l.Mode)
	}
	h.acquisitions = append(h.acquisitions, &acquisition{line: l})
	return nil
}

// addFact appends a fact about the hold of an acquisition.
func (h *history) addFact(l line) error {
	if l.Of < 0 || l.Of >= len(h.acquisitions) || h.acquisitions[l.Of].Result != "granted" {
		return fmt.Errorf("%s of %d, which was not granted", l.Op, l.Of)
	}
	of := h.acquisitions[l.Of]
	switch {
	case l.Op == "lease":
		of.leases = append(of.leases, l)
	case l.Op == "release":
		of.release = &l
	case l.Result == "gone":
		of.gone = &l
	default:
		of.checks = append(of.checks, l)
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, other := range all {
		if other == one {
			return true
		}
	}
	return false
}

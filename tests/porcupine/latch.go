package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// latchModel is the model of a count-down latch. Its state is the count; a latch with a count of 0
// is open. A call with an unknown outcome has no end in the history, so an order may place it
// behind all others, as if it had not been executed.
var latchModel = porcupine.Model{
	Init: func() interface{} { return uint64(0) },
	Step: func(current, input, _ interface{}) (bool, interface{}) {
		return input.(*latchCall).step(current.(uint64))
	},
	DescribeOperation: func(input, _ interface{}) string { return input.(*latchCall).String() },
}

// A latchCall is one call to a count-down latch.
type latchCall struct{ *line }

func (l *latchCall) step(count uint64) (bool, uint64) {
	isOpen := count == 0
	down := count
	if !isOpen {
		down--
	}
	switch l.Op + " " + l.Result {
	case "set_count set":
		return isOpen, uint64(*l.Count)
	case "set_count not_set":
		return !isOpen, count
	case "set_count unknown":
		if isOpen {
			return true, uint64(*l.Count)
		}
		return true, count
	case "count_down done":
		return uint64(*l.Count) == down, down
	case "count_down unknown":
		return true, down
	case "read_count done":
		return uint64(*l.Count) == count, count
	default:
		return !isOpen, count
	}
}

func (l *latchCall) String() string {
	count := ""
	if l.Count != nil {
		count = fmt.Sprintf(" %d", *l.Count)
	}
	return fmt.Sprintf("%s by %s%s: %s", l.Op, l.Client, count, l.Result)
}

// latchOperations returns the calls to each latch.
func (h *history) latchOperations() map[string][]porcupine.Operation {
	all := map[string]*operations{}
	for _, l := range h.latch {
		for _, name := range l.Names {
			if all[name] == nil {
				all[name] = &operations{}
			}
			all[name].add(l.Client, &latchCall{l}, l.Call, l.returned())
		}
	}
	lists := map[string][]porcupine.Operation{}
	for name, of := range all {
		lists[name] = of.list
	}
	return lists
}

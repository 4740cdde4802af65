package main

import "testing"

// calls makes a history of one latch from calls of one client each.
func calls(t *testing.T, all ...line) *builder {
	b := newHistory(t, "latch")
	for _, l := range all {
		l.Names = []string{"a"}
		b.add(l)
	}
	return b
}

func latchLine(op, result string, count int, call, returned int64) line {
	l := line{Op: op, Result: result, Call: call, Return: &returned, Count: &count}
	if result == "unknown" {
		l.Return = nil
	}
	return l
}

func TestALatchCountsDownToItsOpening(t *testing.T) {
	set := latchLine("set_count", "set", 2, 0, 10)
	one := latchLine("count_down", "done", 1, 20, 40)
	none := latchLine("count_down", "done", 0, 30, 50)
	calls(t, set, one, none, latchLine("read_count", "done", 0, 60, 70)).accepted()
	calls(t, set, one, none, latchLine("wait", "closed", 0, 60, 70)).rejected()
	calls(t, set, one, one).rejected()
	calls(t, set, latchLine("read_count", "done", 0, 11, 12), one, none).rejected()
}

func TestAClosedLatchIsNotSet(t *testing.T) {
	set := latchLine("set_count", "set", 2, 0, 10)
	calls(t, set, latchLine("set_count", "not_set", 3, 20, 30)).accepted()
	calls(t, set, latchLine("set_count", "set", 3, 20, 30)).rejected()
	calls(t, latchLine("set_count", "not_set", 3, 20, 30)).rejected()
}

// The unanswered call may have been executed, later too, but only once.
func TestAnUnansweredCallCountsOnceAtMost(t *testing.T) {
	set := latchLine("set_count", "set", 3, 0, 10)
	unanswered := latchLine("count_down", "unknown", 0, 20, 0)
	calls(t, set, unanswered, latchLine("count_down", "done", 1, 900, 950)).accepted()
	calls(t, set, unanswered, latchLine("count_down", "done", 2, 900, 950)).accepted()
	calls(t, set, unanswered, latchLine("count_down", "done", 0, 900, 950)).rejected()
	calls(t, set, latchLine("count_down", "done", 1, 11, 12), unanswered).rejected()
}

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// undecidedAfter ends a search that would take too long. An object whose search is ended counts as
// rejected; none is known.
const undecidedAfter = 5 * time.Minute

// A rejection is an object whose operations have no order that the model allows.
type rejection struct {
	history *history
	object  object
	reason  string
	info    porcupine.LinearizationInfo
}

// check returns the rejected objects of a history.
func (h *history) check() []rejection {
	var rejections []rejection
	for _, o := range h.objects() {
		// A search that also collects its partial orders takes longer.
		switch porcupine.CheckOperationsTimeout(o.model, o.operations, undecidedAfter) {
		case porcupine.Ok:
		case porcupine.Illegal:
			_, info := porcupine.CheckOperationsVerbose(o.model, o.operations, undecidedAfter)
			rejections = append(rejections, rejection{h, o, explain(o, info), info})
		default:
			reason := fmt.Sprintf("undecided after %v", undecidedAfter)
			rejections = append(rejections, rejection{history: h, object: o, reason: reason})
		}
	}
	return rejections
}

// explain returns the longest order that was found, and the operation that it has to contain next.
func explain(o object, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, orders := range info.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := map[interface{}]bool{}
	text := ""
	for _, op := range longest {
		placed[op.Input] = true
		text += "  " + describe(op) + "\n"
	}
	var rest []porcupine.Operation
	for _, op := range o.operations {
		if !placed[op.Input] {
			rest = append(rest, op)
		}
	}
	sort.Slice(rest, func(one, other int) bool { return rest[one].Return < rest[other].Return })
	text += "and then no order has:\n"
	for _, op := range rest {
		text += "  " + describe(op) + "\n"
	}
	return "the longest possible order:\n" + strings.TrimRight(text, "\n")
}

func describe(op porcupine.Operation) string {
	returned := "…"
	if op.Return != never {
		returned = fmt.Sprint(op.Return)
	}
	return fmt.Sprintf("%d to %s: %v", op.Call, returned, op.Input)
}

func (r rejection) String() string {
	return fmt.Sprintf(
		"%s %d, %s: %s\nagain: cargo xtask sim --kind %s --seed %d --schedules 1 --export FILE",
		r.history.kind, r.history.number, r.object.name, r.reason, r.history.kind, r.history.number,
	)
}

// A tally has the results of one kind of object.
type tally struct {
	histories, operations, refusals int
	// rejected are the histories that Porcupine rejects, and broken those that the project's own
	// checkers have rejected; both have those that both rejected.
	rejected, broken, both int
	// rejections are some of the rejected objects.
	rejections []rejection
}

// rejectionsKept is the number of rejections of each kind that are described.
const rejectionsKept = 3

// checkFile checks every history of an export, and returns the results by kind.
func checkFile(path string) (map[string]*tally, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return checkAll(file)
}

func checkAll(input io.Reader) (map[string]*tally, error) {
	tallies := map[string]*tally{}
	var lock sync.Mutex
	var workers sync.WaitGroup
	histories := make(chan *history, 256)
	for worker := 0; worker < runtime.GOMAXPROCS(0); worker++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for h := range histories {
				rejections := h.check()
				lock.Lock()
				if tallies[h.kind] == nil {
					tallies[h.kind] = &tally{}
				}
				tallies[h.kind].add(h, rejections)
				lock.Unlock()
			}
		}()
	}
	err := read(input, func(h *history) { histories <- h })
	close(histories)
	workers.Wait()
	return tallies, err
}

func (t *tally) add(h *history, rejections []rejection) {
	t.histories++
	for _, o := range h.objects() {
		t.operations += len(o.operations)
		for _, op := range o.operations {
			if _, isRefusal := op.Input.(refusal); isRefusal {
				t.refusals++
			}
		}
	}
	isRejected, isBroken := len(rejections) > 0, h.broken != ""
	t.rejected += number(isRejected)
	t.broken += number(isBroken)
	t.both += number(isRejected && isBroken)
	for _, r := range rejections {
		if len(t.rejections) < rejectionsKept {
			t.rejections = append(t.rejections, r)
		}
	}
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

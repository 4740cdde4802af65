package main

import "testing"

// A builder makes a history by hand, of one object under the name "a". Only the order of the times
// matters, so they are small numbers. Each lease is 100 long.
type builder struct {
	t *testing.T
	h *history
}

func newHistory(t *testing.T, kind string) *builder {
	return &builder{t, &history{kind: kind, number: 1}}
}

// withPermits sets up permits between these times.
func (b *builder) withPermits(permits int, call, returned int64) *builder {
	b.add(line{Op: "set_permits", Names: []string{"a"}, Permits: permits, Call: call, Return: &returned})
	return b
}

func (b *builder) add(l line) {
	b.t.Helper()
	l.History, l.Kind = b.h.number, b.h.kind
	if err := b.h.add(l); err != nil {
		b.t.Fatal(err)
	}
}

// A held is the acquisition that was appended last, for facts about its hold.
type held struct {
	*builder
	id int
}

// acquire appends an acquisition by a client with this number, under an owner of its own.
func (b *builder) acquire(client int, mode string, call, returned int64, result string) held {
	b.t.Helper()
	return b.acquireLine(line{
		Owner: 100 + len(b.h.acquisitions), Client: clientName(client), Mode: mode, Names: []string{"a"},
		Call: call, Return: &returned, Result: result,
	})
}

// hold appends a granted acquisition. When it returns, the holder's lease is valid until `until`.
func (b *builder) hold(client int, mode string, call, returned int64, token uint64, until int64) held {
	b.t.Helper()
	h := b.acquireLine(line{
		Owner: 100 + len(b.h.acquisitions), Client: clientName(client), Mode: mode, Names: []string{"a"},
		Call: call, Return: &returned, Result: "granted", Tokens: []*uint64{&token},
	})
	return h.lease(returned, until)
}

func (b *builder) acquireLine(l line) held {
	b.t.Helper()
	l.Op, l.ID = "acquire", len(b.h.acquisitions)
	if l.Lease == 0 {
		l.Lease = 100
	}
	b.add(l)
	return held{b, l.ID}
}

func clientName(client int) string { return "host " + string(rune('0'+client)) }

func (h held) fact(l line) held {
	h.t.Helper()
	l.Of = h.id
	h.add(l)
	return h
}

// last changes the acquisition before its history is checked.
func (h held) last() *acquisition { return h.h.acquisitions[h.id] }

func (h held) lease(at, until int64) held {
	return h.fact(line{Op: "lease", Call: at, Return: &at, Until: until})
}

func (h held) confirmed(call, returned int64) held {
	return h.fact(line{Op: "check", Call: call, Return: &returned, Result: "held"})
}

func (h held) gone(at int64) held {
	return h.fact(line{Op: "check", Call: h.last().returned(), Return: &at, Result: "gone"})
}

// released, lost and stillHeld append a release with this result.
func (h held) released(call, returned int64) held {
	return h.fact(line{Op: "release", Call: call, Return: &returned, Result: "released"})
}

func (h held) lost(call, returned int64) held {
	return h.fact(line{Op: "release", Call: call, Return: &returned, Result: "lost"})
}

func (h held) stillHeld(call, returned int64) held {
	return h.fact(line{Op: "release", Call: call, Return: &returned, Result: "still_held"})
}

// releaseUnknown appends a release after which the hold may exist until endsBy.
func (h held) releaseUnknown(call, returned, endsBy int64) held {
	return h.fact(line{Op: "release", Call: call, Return: &returned, Result: "unknown", EndsBy: &endsBy})
}

func (b *builder) accepted() {
	b.t.Helper()
	for _, r := range b.h.check() {
		b.t.Errorf("rejected: %v", r)
	}
}

func (b *builder) rejected() {
	b.t.Helper()
	if len(b.h.check()) == 0 {
		b.t.Error("accepted")
	}
}

package main

import (
	"strings"
	"testing"
)

const granted = `{"history":1,"kind":"lock","op":"acquire","id":0,"client":"host 0","owner":0,"names":["a"],` +
	`"mode":"exclusive","permits":0,"lease":9,"call":1,"return":2,"result":"granted","tokens":[7],"count":1}`

func TestALineThatIsNotUnderstoodIsAnError(t *testing.T) {
	understood := []string{
		granted,
		granted + "\n" + `{"history":1,"kind":"lock","op":"lease","of":0,"call":2,"return":2,"until":5}`,
		granted + "\n" + strings.Replace(granted, `"history":1`, `"history":2`, 1),
	}
	errors := []string{
		"no JSON",
		strings.Replace(granted, "mode", "manner", 1),
		strings.Replace(granted, "exclusive", "alone", 1),
		strings.Replace(granted, "acquire", "acquired", 1),
		strings.Replace(granted, "granted", "done", 1),
		strings.Replace(granted, "[7]", "[7,8]", 1),
		strings.Replace(granted, `"return":2`, `"return":0`, 1),
		strings.Replace(granted, `"return":2`, `"return":null`, 1),
		granted + "\n" + granted,
		granted + "\n" + `{"history":1,"kind":"lock","op":"lease","of":1,"call":2,"return":2,"until":5}`,
		`{"history":1,"kind":"latch","op":"count_down","names":["a"],"call":2,"return":3,"result":"done"}`,
	}
	for _, text := range understood {
		if err := read(strings.NewReader(text), func(*history) {}); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
	for _, text := range errors {
		if err := read(strings.NewReader(text), func(*history) {}); err == nil {
			t.Errorf("no error: %s", text)
		}
	}
}

func TestTheLinesOfAHistoryAreKeptTogether(t *testing.T) {
	text := granted + "\n" + strings.Replace(granted, `"lock"`, `"spin"`, 1)
	var kinds []string
	err := read(strings.NewReader(text), func(h *history) { kinds = append(kinds, h.kind) })
	if err != nil || len(kinds) != 2 || kinds[0] != "lock" || kinds[1] != "spin" {
		t.Error(err, kinds)
	}
}

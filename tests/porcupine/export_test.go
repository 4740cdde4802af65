//go:build export

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exports is the folder with the files that the suite `porcupine` of `cargo xtask test` has the
// simulation write: histories.jsonl, and one file for each deliberate fault.
func exports(t *testing.T, pattern string) []string {
	folder := os.Getenv("EDGELATCH_EXPORTS")
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in the folder %q that EDGELATCH_EXPORTS names: %v", pattern, folder, err)
	}
	return files
}

// kinds has every kind of object that the simulation has, and whether its refusals are judged.
var kinds = map[string]bool{
	"lock": true, "owner": true, "spin": true, "fenced": true, "fair": false, "read-write": false, "fair-read-write": false,
	"semaphore": true, "permits": true, "latch": false, "group": true, "multi": true, "red": false,
}

// Some order of all calls explains every history of the simulation.
func TestHistories(t *testing.T) {
	tallies, err := checkFile(exports(t, "histories.jsonl")[0])
	if err != nil {
		t.Fatal(err)
	}
	for kind, judgesRefusals := range kinds {
		t.Run(kind, func(t *testing.T) {
			results := tallies[kind]
			if results == nil || judgesRefusals != (results.refusals > 0) {
				t.Fatalf("the export has the wrong histories: %+v", results)
			}
			t.Logf("%d histories, %d operations", results.histories, results.operations)
			for _, r := range results.rejections {
				t.Error(r)
			}
			if results.broken > 0 {
				t.Errorf("the simulation itself rejects %d histories", results.broken)
			}
		})
	}
	if len(tallies) != len(kinds) {
		t.Errorf("%d kinds, not %d", len(tallies), len(kinds))
	}
}

// Some histories of clients or a Redis with a deliberate fault are rejected: otherwise the checker
// would not find a real fault. They include all that the project's own checker rejects.
func TestWithout(t *testing.T) {
	for _, file := range exports(t, "without-*.jsonl") {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "without-"), ".jsonl")
		t.Run(name, func(t *testing.T) {
			tallies, err := checkFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for kind, results := range tallies {
				t.Logf("%s: %d of %d histories are rejected", kind, results.rejected, results.histories)
				if results.rejected == 0 {
					t.Error("the fault was not found")
				}
				if missed := results.broken - results.both; missed > 0 {
					t.Errorf("%d histories are accepted that the checker of the project rejects", missed)
				}
			}
			if len(tallies) != 1 {
				t.Errorf("histories of %d kinds", len(tallies))
			}
		})
	}
}

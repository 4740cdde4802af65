// Porcupine checks the histories that `cargo xtask sim --export FILE` has written. It decides with
// Porcupine, a checker of linearizability, whether some order of all calls explains all responses,
// and shares no code with the checker of histories in tests/support/history.
//
//	go run . FILE
//	go run . -drawing rejected.html FILE
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"

	"github.com/anishathalye/porcupine"
)

func main() {
	drawing := flag.String("drawing", "", "write a drawing of the first rejected object to this file")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: porcupine [-drawing FILE.html] FILE")
		os.Exit(2)
	}
	tallies, err := checkFile(flag.Arg(0))
	if err == nil {
		err = report(tallies, *drawing)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// report prints the results. It fails if a history was rejected.
func report(tallies map[string]*tally, drawing string) error {
	kinds := make([]string, 0, len(tallies))
	for kind := range tallies {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	rejected := 0
	for _, kind := range kinds {
		t := tallies[kind]
		fmt.Printf(
			"%s: %d histories, %d operations, %d refusals; %d rejected (%d by the simulation, %d by both)\n",
			kind, t.histories, t.operations, t.refusals, t.rejected, t.broken, t.both,
		)
		for _, r := range t.rejections {
			fmt.Println(r)
			if drawing != "" && r.info.PartialLinearizations() != nil {
				if err := porcupine.VisualizePath(r.object.model, r.info, drawing); err != nil {
					return err
				}
				drawing = ""
			}
		}
		rejected += t.rejected
	}
	if rejected > 0 {
		return fmt.Errorf("%d histories are rejected", rejected)
	}
	return nil
}

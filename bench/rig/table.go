package rig

import "fmt"

// Title begins a part of the table.
func Title(text string) { fmt.Printf("\n%s\n", text) }

// Row prints one thing that was measured. Without a wish (an empty want) there is no verdict.
func Row(what, got, want string, ok bool) {
	verdict := ""
	if want != "" {
		verdict = "ok"
		if !ok {
			verdict = "MISSED"
		}
	}
	fmt.Printf("  %-66s %22s   %-16s %s\n", what, got, want, verdict)
}

// Tell prints one thing of which nothing was asked.
func Tell(what, got string) { Row(what, got, "", true) }

package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"hash/maphash"
)

const (
	alike = 60                    // tokens in a row that make two places duplicates
	base  = 0x9e37_79b9_7f4a_7c15 // for the hash that rolls over them
)

// duplicates finds the places that repeat tokens of an earlier one.
type duplicates struct {
	seed   maphash.Seed
	tokens int
	first  map[uint64]int // number of the token after the first run with this hash
	places []string
}

// add compares source, which begins at a line of a file, with all source before it.
func (d *duplicates) add(name string, line int, src []byte) {
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(src))
	var in scanner.Scanner
	in.Init(file, src, nil, 0)
	leaving := uint64(1) // what a token counts for when it leaves the run
	for range alike {
		leaving *= base
	}
	var run []uint64
	var hash uint64
	repeats := false
	for pos, kind, text := in.Scan(); kind != token.EOF; pos, kind, text = in.Scan() {
		run = append(run, maphash.String(d.seed, kind.String()+text))
		d.tokens++
		hash = hash*base + run[len(run)-1]
		if len(run) <= alike {
			if len(run) < alike {
				continue
			}
		} else {
			hash -= run[len(run)-alike-1] * leaving
		}
		first, seen := d.first[hash]
		if !seen {
			d.first[hash] = d.tokens
		}
		again := seen && d.tokens-first >= alike
		if again && !repeats {
			d.places = append(d.places, fmt.Sprintf("%s: up to line %d", name, line+file.Line(pos)))
		}
		repeats = again
	}
}

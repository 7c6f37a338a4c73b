package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
	"testing"
)

// TestMain puts this very program into the PATH as postroom, for tests to run it in a process of its own. The
// scripts mostly wait for their servers, so more of them run at once than there are processors, unless
// -parallel says otherwise.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "postroom":
		main()
	case serialName:
		os.Exit(runSerially(os.Stdin, os.Stdout))
	}
	_ = flag.Set("test.parallel", "3") // registered by now, and not yet read from the command line
	os.Exit(inPath(m.Run))
}

// inPath calls a function while postroom is in the PATH.
func inPath(do func() int) int {
	dir, err := os.MkdirTemp("", "postroom-path-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer endSerials()
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "postroom")); err != nil {
		log.Fatal(err)
	}
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		log.Fatal(err)
	}
	return do()
}

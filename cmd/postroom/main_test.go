package main

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this very program as postroom, each time in a process of its own. The scripts
// mostly wait for their servers, so more of them run at once than there are processors, unless -parallel says
// otherwise.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "3") // registered by now, and not yet read from the command line
	testscript.Main(m, map[string]func(){"postroom": main})
}

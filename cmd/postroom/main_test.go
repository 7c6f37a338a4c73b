package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this very program as postroom, each time in a process of its own.
func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"postroom": main}) }

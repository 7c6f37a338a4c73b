package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// asked is the environment variable that makes this program run an attack. It holds the attack, as JSON.
const asked = "BENCH_STRANGER_ATTACK"

// attack is what the process of the bad clients does.
type attack struct {
	Kind    int // of kinds
	Bad     int
	Many    bool
	Targets targets
}

// attackIfAsked runs an attack until SIGTERM and then ends the process, if startAttack started it.
func attackIfAsked() {
	said, ok := os.LookupEnv(asked)
	if !ok {
		return
	}
	var a attack
	if err := json.Unmarshal([]byte(said), &a); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var bad sync.WaitGroup
	play := kinds()[a.Kind].play
	for i := range a.Bad {
		bad.Go(func() { play(ctx, a.from(i), a.Targets) })
	}
	rig.Ready("")
	bad.Wait()
	os.Exit(0)
}

// startAttack starts the bad clients of a kind in a process of its own. They come from other machines in the
// field, so they yield the processors to the good clients and to Postroom.
func (h *house) startAttack(kind int) (*rig.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	said, err := json.Marshal(attack{Kind: kind, Bad: h.bad, Many: h.many, Targets: h.targets})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("nice", "-n", "10", self) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), asked+"="+string(said))
	p, out, err := rig.Start(cmd, filepath.Join(h.Dir, "attack.log"))
	if err != nil {
		return nil, err
	}
	if _, err := rig.Address(out); err != nil {
		return nil, fmt.Errorf("the bad clients did not start: %w", err)
	}
	return p, nil
}

// from returns a dialer of a bad client.
func (a attack) from(i int) *net.Dialer {
	ip := net.IPv4(127, 1, 0, 1)
	if a.Many {
		ip = net.IPv4(127, 2, byte(i>>8), byte(i))
	}
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}, Timeout: 5 * time.Second}
}

package redisdb

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// clockStep is how often the clock of the in-process store advances: its keys expire only then.
const clockStep = 100 * time.Millisecond

// inProcess is a store inside this process, for trying Postroom out: in memory, slow beyond ten thousand
// messages.
type inProcess struct {
	server   *miniredis.Miniredis
	password string
	stop     chan struct{}
	moved    sync.WaitGroup
}

// openInProcess starts the store on a loopback port. Other users of the machine can reach the port, so it
// requires a password.
func openInProcess() (*inProcess, error) {
	p := &inProcess{server: miniredis.NewMiniRedis(), password: rand.Text(), stop: make(chan struct{})}
	p.server.RequireAuth(p.password)
	if err := p.server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start the in-memory store: %w", err)
	}
	p.moved.Go(p.moveClock)
	return p, nil
}

// moveClock lets keys expire.
func (p *inProcess) moveClock() {
	tick := time.NewTicker(clockStep)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case now := <-tick.C:
			p.server.FastForward(now.Sub(last))
			last = now
		case <-p.stop:
			return
		}
	}
}

func (p *inProcess) target() target {
	return target{mode: Memory, network: "tcp", addrs: []string{p.server.Addr()}, password: p.password}
}

// Close ends the store and deletes its data.
func (p *inProcess) Close() error {
	close(p.stop)
	p.moved.Wait()
	p.server.Close()
	return nil
}

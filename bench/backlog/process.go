package main

import "github.com/postroom/postroom/bench/internal/process"

// postroom starts a Postroom, which runs until the house is closed, and tells its address: none for a worker.
func (h *house) postroom(role string, more map[string]string) (*process.Process, string, error) {
	set := map[string]string{
		"documents.store": "none", "redis.url": "unix://" + h.Socket, "token": token, "secret": secret, "smtp": h.sink.URL(), "from": "Example Shop <shop@example.com>",
	}
	for key, value := range more {
		set[key] = value
	}
	p, address, err := process.StartPostroom(role, h.Dir, set)
	if err == nil {
		h.OnClose(p.Stop)
	}
	return p, address, err
}

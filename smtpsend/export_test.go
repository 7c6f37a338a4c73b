package smtpsend

// InLine is how many messages wait for a connection.
func (s *Sender) InLine() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	n := 0
	for _, k := range s.pool.relays {
		n += len(k.line)
	}
	return n
}

// InUse is how many connections messages have, or have the right to open.
func (s *Sender) InUse() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	n := 0
	for _, k := range s.pool.relays {
		n += k.open - len(k.idle)
	}
	return n
}

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

// Delivered lists the recipients the relay took responsibility for.
func (r Result) Delivered() []string {
	var out []string
	for _, rcpt := range r.Recipients {
		if rcpt.Err == nil {
			out = append(out, rcpt.Address)
		}
	}
	return out
}

package outbox

import (
	"cmp"
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/smtpsend"
)

// window is how many messages of an account may have a task: three for each connection of its relays, so that
// some wait in line, and at most Options.Window.
func (s *store) window(ctx context.Context, account string) int {
	a, err := s.Accounts.Resolve(ctx, account)
	if err != nil {
		return s.opts.Window
	}
	return s.windowOf(a)
}

func (s *store) windowOf(a accounts.Sender) int {
	connections := 0
	for _, r := range a.Relays {
		connections += cmp.Or(r.SMTP.Connections, smtpsend.DefaultConnections)
	}
	if connections == 0 { // its messages name their gateways
		return s.opts.Window
	}
	return min(s.opts.Window, 3*connections)
}

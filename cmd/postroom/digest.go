package main

import "github.com/postroom/postroom/api"

func digestVerbs() []verb {
	return []verb{
		{name: "event", help: "Submit an event, or a file of events.", run: &digestEventCmd{},
			more: `Examples:
  postroom digest event user-17 --category comment --entity-type post --entity-id 5 --title Spring --actor Bo
  postroom digest event user-17 --email ann@example.net --category like --entity-type post --entity-id 5
  postroom digest event --file events.ndjson
A line of a file:
  {"recipient":"user-17","category":"comment","entityType":"post","entityId":"5","idempotencyKey":"c-99"}`},
		{name: "runs", help: "List digest runs, newest first.",
			run: first(api.ListDigestRuns, "runs", digestRunsGrid),
			more: `Examples:
  postroom digest runs --state failed --since 24h
  postroom digest runs --recipient user-17`},
	}
}

// ofDigests names the account that mails readers.
type ofDigests struct {
	Account string `placeholder:"ID" help:"Account that sends the digest. Defaults to the token's account, else default."`
}

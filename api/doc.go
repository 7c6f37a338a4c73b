// Package api is Postroom's public contract in Go: the JSON of every request and answer, and a client.
//
// Programs that talk to Postroom import this package and nothing else. Package server answers with these very types,
// and its tests speak through this client, so the two can't drift apart. Names and shapes are EmailEngine's where
// EmailEngine has them.
//
// A route is a constant: its type says what it takes and what it answers, its value is the method and the path. To
// call it:
//
//	client := api.NewClient("http://127.0.0.1:3000", token, nil)
//	answer, err := api.Submit.Do(ctx, client, api.SubmitRequest{…})
//	message, err := api.GetMessage.Do(ctx, client, answer.QueueID)
//	for message, err := range api.All(ctx, client, api.ListOutbox, api.OutboxQuery{Account: "shop"}) { … }
//
// An answer that is not a success is a *Failure.
//
// The types have no methods but those that read and write them. The tags doc, minLength, maxLength, minimum, maximum,
// minItems, maxItems, enum and format are the limits that the server enforces and the OpenAPI document states. Times
// are RFC 3339 in UTC.
package api

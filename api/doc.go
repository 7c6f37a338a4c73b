// Package api is Postroom's public contract in Go: the JSON of every request and response, and a client.
//
// Programs that talk to Postroom need only this package. Package server uses the same types, and its tests
// use this client, so the two cannot diverge. Names and structure are EmailEngine's where it has an
// equivalent.
//
// A route is a constant. Its type is the request and the response; its value is the method and the path. To
// call it:
//
//	client := api.NewClient("http://127.0.0.1:3000", token, nil)
//	answer, err := api.Submit.Do(ctx, client, api.SubmitRequest{…})
//	message, err := api.GetMessage.Do(ctx, client, answer.QueueID)
//	for message, err := range api.All(ctx, client, api.ListOutbox, api.OutboxQuery{Account: "shop"}) { … }
//
// An error response is a *Failure.
//
// The types have no methods but those that read and write them. The tags doc, minLength, maxLength, minimum,
// maximum, minItems, maxItems, enum and format are the limits that the server enforces and the OpenAPI
// document states. Times are RFC 3339 in UTC.
package api

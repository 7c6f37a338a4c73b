package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// operation is a route of the OpenAPI document.
type operation struct {
	id, method, path string
	queries          []string
	body             string // media type; empty: none
}

// operations reads the routes under /v1 of the OpenAPI document, in a fixed order.
func operations(ctx context.Context, base string) ([]operation, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/openapi.json", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name, In string }
			RequestBody struct{ Content map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var all []operation
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			found := doc.Paths[path][method]
			if !strings.HasPrefix(path, "/v1/") {
				continue
			}
			o := operation{id: found.OperationID, method: strings.ToUpper(method), path: path}
			for _, p := range found.Parameters {
				if p.In == "query" {
					o.queries = append(o.queries, p.Name)
				}
			}
			for kind := range found.RequestBody.Content {
				o.body = cmp.Or(o.body, kind)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// bodies are requests that name the other account's objects, by operation. Others get {}.
var bodies = map[string][]string{
	"submit": {
		`{"account":"{account}","to":{"address":"a@neutral.test"},"text":"x"}`,
		`{"from":{"address":"{from}"},"to":{"address":"a@neutral.test"},"text":"x"}`,
		`{"envelope":{"from":"{from}","to":["a@neutral.test"]},"to":{"address":"a@neutral.test"},"text":"x"}`,
		`{"headers":{"Sender":"{from}"},"to":{"address":"a@neutral.test"},"text":"x"}`,
		`{"gateway":"{gateway}","to":{"address":"a@neutral.test"},"text":"x"}`,
		`{"template":"{template}","to":{"address":"a@neutral.test"}}`,
	},
	"submitAs":           {`{"to":{"address":"a@neutral.test"},"text":"x"}`},
	"patchMessage":       {`{"sendAt":"{later}"}`, `{"priority":"low"}`},
	"updateAccount":      {`{"name":"taken over"}`, `{"email":"{me}"}`, `{"smtp":{"host":"127.0.0.1","port":9}}`},
	"createAccount":      {`{"account":"{account}","email":"x@x.test","smtp":{"host":"127.0.0.1","port":9}}`},
	"addSender":          {`{"sender":"{me}"}`},
	"createTemplate":     {`{"account":"{account}","name":"n","content":{"text":"x"}}`},
	"updateTemplate":     {`{"content":{"text":"taken over"}}`},
	"restoreTemplate":    {`{"version":1}`},
	"replayDeadLetters":  {`{"account":"{account}"}`},
	"addSuppressions":    {`{"email":"{shared}","account":"{account}"}`, `{"email":"{shared}","account":"{account}","list":"news"}`},
	"addToBlocklist":     {`{"account":"{account}","recipient":"{shared}"}`},
	"updateEndpoint":     {`{"url":"http://127.0.0.1:9/"}`, `{"disabled":true}`},
	"createEndpoint":     {`{"url":"http://127.0.0.1:9/","account":"{account}"}`},
	"createToken":        {`{"description":"d","account":"{account}"}`, `{"description":"d","scopes":["admin"]}`},
	"putQueue":           {`{"paused":true}`},
	"updateSettings":     {`{"queueKeep":0}`},
	"updateGateway":      {`{"host":"127.0.0.1"}`},
	"createPerson":       {`{"person":"x","role":"admin"}`},
	"importSuppressions": {"email,account\n{shared},{account}\n"},
	"createCampaign": {
		`{"account":"{account}","name":"n","lists":["{list}"],"text":"x"}`,
		`{"campaign":"{campaign}","name":"n","lists":["{myList}"],"text":"x"}`,
		`{"name":"n","lists":["{list}"],"text":"x"}`,
		`{"name":"n","lists":["{myList}"],"excludeCampaigns":["{campaign}"],"text":"x"}`,
		`{"name":"n","lists":["{myList}"],"from":{"address":"{from}"},"text":"x"}`,
		`{"name":"n","lists":["{myList}"],"gateway":"{gateway}","text":"x"}`,
		`{"name":"n","lists":["{myList}"],"variants":[{"variant":"a"},{"variant":"b","from":{"address":"{from}"}}]}`,
	},
	"updateCampaign": {`{"from":{"address":"{from}"}}`, `{"gateway":"{gateway}"}`, `{"lists":["{list}"]}`,
		`{"variants":[{"variant":"a","from":{"address":"{from}"}},{"variant":"b"}]}`},
	"testCampaign":   {`{"to":["a@neutral.test"]}`},
	"resendCampaign": {`{"to":"newcomers"}`},
	"createList":     {`{"account":"{account}","name":"n"}`, `{"listId":"{list}","name":"n"}`},
	"updateList":     {`{"name":"taken over"}`},
	"createSegment":  {`{"account":"{account}","name":"n","rule":{"tag":"t"}}`},
	"createSubscriber": {`{"account":"{account}","email":"{shared}"}`,
		`{"email":"{shared}","lists":[{"listId":"{list}"}]}`},
	"takeDigestEvents": {`{"account":"{account}","recipient":"r","email":"{shared}","category":"c"}`},
	"createDigestKind": {`{"account":"{account}","category":"{category}","title":{"en":"taken over"}}`},
	"updateDigestKind": {`{"account":"{account}","title":{"en":"taken over"}}`},
}

// posing are the operations that must never succeed against the other account.
var posing = map[string]bool{"submit": true, "submitAs": true, "createCampaign": true, "updateCampaign": true,
	"copyCampaign": true, "sendCampaign": true, "testCampaign": true, "resendCampaign": true, "createList": true,
	"createSegment": true, "createSubscriber": true, "takeDigestEvents": true, "createDigestKind": true}

// ownOperations name the other account's objects within their own objects. Operations of the document name
// the other account whenever they can.
var ownOperations = []operation{
	{id: "updateCampaign", method: http.MethodPut, path: "/v1/campaigns/{myCampaign}", body: "application/json"},
	{id: "createCampaign", method: http.MethodPost, path: "/v1/campaigns", body: "application/json"},
	{id: "createList", method: http.MethodPost, path: "/v1/lists", body: "application/json"},
	{id: "createSubscriber", method: http.MethodPost, path: "/v1/subscribers", body: "application/json"},
}

// about fills an operation with the other account's objects. It returns false if none fits in.
func (o operation) about(r *rival) (path, body string, ok bool) {
	theirs := r.other.names(r.dice.IntN)
	theirs["{me}"], theirs["{myList}"], theirs["{myCampaign}"] = r.address(), r.list(), r.campaign()
	var pairs []string
	for name, value := range theirs {
		pairs = append(pairs, name, value)
	}
	fill := strings.NewReplacer(pairs...)
	path = fill.Replace(strings.Replace(o.path, "/v1/lists/{listId}", "/v1/lists/{list}", 1))
	if strings.Contains(path, "{id}") {
		kind := "{template}"
		switch {
		case strings.Contains(path, "/webhook"):
			kind = "{endpoint}"
		case strings.Contains(path, "/token"):
			kind = "{token}"
		}
		path = strings.ReplaceAll(path, "{id}", theirs[kind])
	}
	ok = path != o.path
	if strings.ContainsAny(path, "{}") || strings.HasSuffix(path, "/") {
		return "", "", false // the other has no such object yet
	}
	query := url.Values{}
	for _, name := range o.queries {
		value := map[string]string{"account": theirs["{account}"], "email": theirs["{shared}"],
			"recipient": theirs["{shared}"], "list": "news", "listId": "news", "state": "delayed",
			"gateway": theirs["{gateway}"], "since": "2020-01-01T00:00:00Z"}[name]
		if name == "recipient" || name == "email" || value != "" && r.dice.IntN(4) > 0 {
			query.Set(name, value)
		}
	}
	// without the name of the other it would be about the own account
	if slices.Contains(o.queries, "account") {
		query.Set("account", theirs["{account}"])
		ok = true
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if o.body != "" {
		choices := bodies[o.id]
		if choices == nil {
			return path, "{}", ok
		}
		text := choices[r.dice.IntN(len(choices))]
		body = fill.Replace(text)
		ok = ok || body != text
	}
	return path, body, ok || o.method == http.MethodGet || bodies[o.id] != nil
}

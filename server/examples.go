package server

import (
	_ "embed" // the recorded examples
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// recordedExamples are the requests of examples/requests.json with their answers, as TestExamples of package
// app recorded them.
//
//go:embed examples/recorded.json
var recordedExamples []byte

// example is a request and its answer.
type example struct {
	Operation string          `json:"operation"`
	Params    map[string]any  `json:"params"` // in the path and the query
	Type      string          `json:"type"`   // media type of the body
	Body      json.RawMessage `json:"body"`   // if it isn't JSON: a string
	Status    int             `json:"status"`
	Media     string          `json:"media"` // media type of the answer
	Answer    json.RawMessage `json:"answer"`
}

// readExamples returns the recorded examples by operation.
func readExamples() (map[string]example, error) {
	var all []example
	if err := json.Unmarshal(recordedExamples, &all); err != nil {
		return nil, fmt.Errorf("read the recorded examples: %w", err)
	}
	byID := make(map[string]example, len(all))
	for _, e := range all {
		byID[e.Operation] = e
	}
	return byID, nil
}

func illustrate(doc *huma.OpenAPI, op *huma.Operation, e example) {
	for _, p := range op.Parameters {
		if value, ok := e.Params[p.Name]; ok {
			switch p.Schema.Type {
			case huma.TypeArray: // may be there several times
				value = []any{value}
			case huma.TypeString:
				value = fmt.Sprint(value)
			}
			p.Example = value
		}
	}
	if op.RequestBody != nil && len(e.Body) > 0 {
		if media := op.RequestBody.Content[e.Type]; media != nil {
			media.Example = e.Body
		}
	}
	status := strconv.Itoa(e.Status)
	answer := op.Responses[status]
	if answer == nil {
		return
	}
	if answer.Ref != "" { // a refusal: with an example it is described here
		shared := doc.Components.Responses[answer.Ref[len("#/components/responses/"):]]
		answer = &huma.Response{Description: shared.Description, Content: map[string]*huma.MediaType{}}
		for media, content := range shared.Content {
			answer.Content[media] = &huma.MediaType{Schema: content.Schema}
		}
		op.Responses[status] = answer
	}
	if media := answer.Content[e.Media]; media != nil {
		media.Example = e.Answer
	}
}

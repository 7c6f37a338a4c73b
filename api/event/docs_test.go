package event_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/api/event"
)

var update = flag.Bool("update", false, "write the table of events in docs/webhooks.md")

// TestEventsOfTheDocumentation: the table of docs/webhooks.md lists each type with its comment in event.go.
func TestEventsOfTheDocumentation(t *testing.T) {
	const page = "../../docs/webhooks.md"
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	meanings := map[event.Type]string{}
	constant := regexp.MustCompile(`Type = "(\w+)" +// (.+)`)
	for _, found := range constant.FindAllStringSubmatch(string(source), -1) {
		meanings[event.Type(found[1])] = strings.ToUpper(found[2][:1]) + found[2][1:] + "."
	}
	var table strings.Builder
	table.WriteString("| Event | Meaning |\n| --- | --- |\n")
	for _, known := range event.Types() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", known, meanings[known])
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	written := regexp.MustCompile(`(?m)^\| Event \| Meaning \|\n(\|.*\n)+`)
	if *update {
		text = written.ReplaceAllLiteral(text, []byte(table.String()))
		if err := os.WriteFile(page, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if string(written.Find(text)) != table.String() {
		t.Error("the events of docs/webhooks.md are not those of event.go; run this test with -update")
	}
}

package gateways

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// TestTheTableOfTypesIsTheProgram: docs/gateways.md has the fields of each type.
func TestTheTableOfTypesIsTheProgram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/gateways.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| type | needs | may have |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	word := regexp.MustCompile("`([a-zA-Z]+)`")
	fields := func(cell string) []string {
		var all []string
		for _, found := range word.FindAllStringSubmatch(cell, -1) {
			all = append(all, found[1])
		}
		return all
	}
	documented := map[api.GatewayType]apiFields{}
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(line, "|")
		documented[api.GatewayType(fields(cells[1])[0])] = apiFields{fields(cells[2]), fields(cells[3])}
	}
	if diff := cmp.Diff(apiTypes, documented, cmp.AllowUnexported(apiFields{})); diff != "" {
		t.Errorf("the program and docs/gateways.md differ (-program +page):\n%s", diff)
	}
}

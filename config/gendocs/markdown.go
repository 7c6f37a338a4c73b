package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/postroom/postroom/config"
)

//go:embed before.md
var before string

//go:embed after.md
var after string

// markdown is docs/configuration.md: one table of all settings between two hand-written texts.
func markdown(keys []config.Key) string {
	var b strings.Builder
	b.WriteString("<!-- Generated from the struct in config/config.go by go generate ./config: edit that. -->\n\n")
	b.WriteString(before)
	b.WriteString("\n| key | default | takes | meaning |\n| --- | --- | --- | --- |\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "| `%s` <br> `%s` | %s | %s | %s |\n", k.Path, k.Env, defaultCell(k), takes(k), cell(k.Doc))
	}
	b.WriteString("\n")
	b.WriteString(after)
	return b.String()
}

func defaultCell(k config.Key) string {
	if k.Default == "" {
		return k.Empty
	}
	return "`" + k.Default + "`"
}

// takes returns what may be written, with its limits.
func takes(k config.Key) string {
	switch {
	case k.Values != nil:
		return "`" + strings.Join(k.Values, "`, `") + "`"
	case k.Min != "" && k.Max != "":
		return k.Kind + ", " + k.Min + " to " + k.Max
	case k.Min != "":
		return k.Kind + ", " + k.Min + " or more"
	}
	return k.Kind
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

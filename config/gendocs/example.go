package main

import (
	"fmt"
	"strings"

	"github.com/postroom/postroom/config"
)

const exampleHead = `## Every setting of Postroom with its default. Remove one # from the settings you change and from the groups above them.
## Generated from the struct in config/config.go by go generate ./config; docs/configuration.md tells more.
`

// example is deploy/config.example.yaml: every setting, commented out, with its meaning above it.
func example(keys []config.Key) string {
	var b strings.Builder
	b.WriteString(exampleHead)
	var open []string // groups above the setting before
	for _, k := range keys {
		words := strings.Split(k.Path, ".")
		groups, name := words[:len(words)-1], words[len(words)-1]
		if len(groups) == 0 || len(open) == 0 || groups[0] != open[0] {
			b.WriteString("\n")
		}
		for i, g := range groups {
			if i >= len(open) || strings.Join(open[:i+1], ".") != strings.Join(groups[:i+1], ".") {
				fmt.Fprintf(&b, "#%s%s:\n", indent(i), g)
			}
		}
		for _, line := range wrap(k.Doc+" "+meaningOfEmpty(k), 110-2*len(groups)) {
			fmt.Fprintf(&b, "#%s# %s\n", indent(len(groups)), line)
		}
		fmt.Fprintf(&b, "#%s%s:%s\n", indent(len(groups)), name, value(k))
		open = groups
	}
	return b.String()
}

func meaningOfEmpty(k config.Key) string {
	if k.Default == "" {
		return "Default: " + k.Empty + "."
	}
	return ""
}

// value is the default as YAML reads it back; 0.75, true and 5s need no quotes.
func value(k config.Key) string {
	if k.Default == "" {
		return ""
	}
	return " " + k.Default
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

// wrap breaks a text into lines of at most width characters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

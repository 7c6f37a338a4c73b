// Package docs embeds the playbooks, so that the pages can show what to do about an alert without a network.
package docs

import _ "embed" // the playbooks

// Playbooks is playbooks.md, as Markdown: each section, which begins with "## ", is about one trouble.
//
//go:embed playbooks.md
var Playbooks string

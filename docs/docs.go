// Package docs embeds the documentation, so that the pages can show it without a network.
package docs

import "embed"

// Playbooks is playbooks.md, as Markdown: each section, which begins with "## ", is about one trouble.
//
//go:embed playbooks.md
var Playbooks string

// Pages are all pages of this folder, as Markdown, and their pictures. index.md lists the pages.
//
//go:embed *.md guides/*.md howto/*.md pictures/*.png
var Pages embed.FS

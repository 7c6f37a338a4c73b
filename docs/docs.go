// Package docs embeds the documentation, so that the pages can show it without a network.
package docs

import "embed"

// Pages are all pages of this folder, as Markdown, and their pictures. index.md lists the pages.
//
//go:embed *.md pictures/*.png
var Pages embed.FS

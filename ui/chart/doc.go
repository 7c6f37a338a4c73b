// Package chart draws figures for the pages: bars over time, and bars of shares. It writes HTML with SVG.
//
// It promises:
//
//   - The output is safe to put into a page: names and labels are escaped, whatever is in them.
//   - It needs no script, no style attribute and no file, so the content security policy of the pages holds.
//     Colours are classes of the style sheet of the pages, light and dark.
//   - It can be read without colours: each series has a pattern, a legend names it, and bars of shares have
//     their figures beside them.
//   - It can be read without the drawing: the drawing has a name and a summary, and a table below it has the
//     same figures, exactly.
//   - It fits a phone. Horizontal places are in percent of the width, so letters keep their size where the
//     drawing gets narrow.
//   - Its size is bounded: times are put together to at most 48 bars, and the first 10 rows of shares are
//     drawn. The table has the first 30.
//
// It is pure. Figures below 0 count as 0. An error means that the caller gave it more series than it can tell
// apart.
package chart

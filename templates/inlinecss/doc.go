// Package inlinecss writes the rules of style elements into the elements they are for, for mail programs that ignore style elements.
//
// [Inline] follows the cascade: importance, specificity, order. A style attribute wins over rules, but for those marked !important. What
// can't stand in an attribute stays in a style element: @media, @font-face and other at-rules, :hover, ::before, and whatever selector isn't
// understood.
//
// It promises that nothing else of the html changes, by no byte: conditional comments, odd tags and entities stay as they are. It never
// hangs: it reads html and CSS once, and what it may cost is bounded by [Options] and by the deadline of its context; malformed CSS is
// left out, as browsers do. It expands no shorthand, computes no variable, fetches no linked style sheet.
//
// It owns no Redis keys. When a limit is passed it answers an error, and the html is as good as it was.
package inlinecss

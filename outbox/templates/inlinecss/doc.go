// Package inlinecss moves the rules of style elements into style attributes, for mail programs that ignore
// style elements.
//
// [Inline] follows the cascade: importance, specificity, order. A style attribute wins over rules that are
// not !important. Rules that cannot be attributes stay in a style element: @media, @font-face and other
// at-rules, :hover, ::before, and selectors that cascadia does not know.
//
// No other byte of the html changes: conditional comments, odd tags and entities stay. The work is bounded by
// [Options] and by the deadline of the context. Malformed CSS is skipped, as browsers do. Shorthands are not
// expanded, variables not computed, linked style sheets not fetched.
//
// It owns no Redis keys. When a limit is exceeded it returns an error and the unchanged html.
package inlinecss

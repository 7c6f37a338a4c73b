package message

import (
	"strconv"
	"strings"

	xhtml "golang.org/x/net/html"
)

// maxIndent bounds the indentation of lists in lists.
const maxIndent = 40

type list struct {
	ordered bool
	next    int // number of the next item
	step    int
	width   int // of the open item's marker; 0 if none is open
}

// openList begins a list. An ol counts as its attributes start and reversed say (WHATWG HTML, 4.4.5).
func (t *textWriter) openList(token xhtml.Token) {
	if len(t.lists) > 0 {
		t.line(1)
	} else {
		t.line(blockMargin(token.Data))
	}
	one := list{ordered: token.Data == "ol", next: 1, step: 1}
	if one.ordered && has(token, "reversed") {
		one.step = -1
		if len(t.items) > 0 {
			one.next = t.items[0]
		}
	}
	if n, ok := integer(attribute(token, "start")); ok {
		one.next = n
	}
	t.lists = append(t.lists, one)
}

func (t *textWriter) closeList() {
	if len(t.lists) == 0 {
		return
	}
	t.closeItem()
	t.lists = t.lists[:len(t.lists)-1]
	if len(t.lists) > 0 {
		t.line(1)
	} else {
		t.line(2)
	}
}

// openItem begins an item. Its marker is written before its first word.
func (t *textWriter) openItem(token xhtml.Token) {
	if len(t.lists) == 0 {
		t.lists = append(t.lists, list{})
	}
	one := &t.lists[len(t.lists)-1]
	if one.width > 0 { // it has no end tag
		t.closeItem()
	}
	marker := "- "
	if one.ordered {
		if n, ok := integer(attribute(token, "value")); ok {
			one.next = n
		}
		marker = strconv.Itoa(one.next) + ". "
		one.next += one.step
	}
	t.line(1)
	one.width = len(marker)
	t.indent += one.width
	if len(t.marker) < maxIndent { // the item that begins with this list
		t.marker += marker
	}
}

func (t *textWriter) closeItem() {
	if len(t.lists) == 0 {
		return
	}
	t.marker = ""
	t.line(1)
	one := &t.lists[len(t.lists)-1]
	t.indent -= one.width
	one.width = 0
}

// itemsOf counts the items of each ol, in order, if one counts backwards.
func itemsOf(source string) []int {
	if !strings.Contains(strings.ToLower(source), "reversed") {
		return nil
	}
	var items, open []int // the open lists' places in items, -1 for each ul
	z := xhtml.NewTokenizer(strings.NewReader(source))
	for kind := z.Next(); kind != xhtml.ErrorToken; kind = z.Next() {
		name, _ := z.TagName()
		switch string(name) {
		case "ol", "ul", "menu", "dir":
			if kind == xhtml.EndTagToken {
				open = open[:max(0, len(open)-1)]
			} else if string(name) == "ol" {
				open, items = append(open, len(items)), append(items, 0)
			} else {
				open = append(open, -1)
			}
		case "li":
			if kind != xhtml.EndTagToken && len(open) > 0 && open[len(open)-1] >= 0 {
				items[open[len(open)-1]]++
			}
		}
	}
	return items
}

// integer reads a number of an attribute.
func integer(s string) (int, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	return int(n), err == nil
}

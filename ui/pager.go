package ui

import (
	"maps"
	"net/url"
	"strconv"

	"github.com/postroom/postroom/api"
)

const rowsPerPage = 50

// pager is the links to the pages of a list. In URLs and on the page, numbers start at 1.
type pager struct {
	api.PageNumbers // Page counts from 0
	Size            int
	path            string
	values          url.Values
}

// pageOf returns the page number in a URL, from 0. Without a valid one it is 0.
func pageOf(v url.Values) int {
	n, err := strconv.Atoi(v.Get("page"))
	if err != nil || n < 1 || n > 1_000_000 {
		return 0
	}
	return n - 1
}

func (p pager) at(page int) string {
	if page < 0 || page >= p.Pages || page == p.Page {
		return ""
	}
	v := url.Values{}
	maps.Copy(v, p.values)
	if page > 0 {
		v.Set("page", strconv.Itoa(page+1))
	}
	return address(p.path, v)
}

// First, Previous, Next and Last return URLs, or "" if there is no such page.
func (p pager) First() string { return p.at(0) }

// Previous returns the page before this one, or the last page if this one is beyond it.
func (p pager) Previous() string { return p.at(min(p.Page, p.Pages) - 1) }

// Next returns the page after this one.
func (p pager) Next() string { return p.at(p.Page + 1) }

// Last returns the last page.
func (p pager) Last() string { return p.at(p.Pages - 1) }

// From returns the number of the page's first row, from 1.
func (p pager) From() int { return min(p.Page*p.Size+1, p.Total) }

// To returns the number of the page's last row.
func (p pager) To() int { return min((p.Page+1)*p.Size, p.Total) }

// Number returns the page number, from 1.
func (p pager) Number() int { return p.Page + 1 }

// cursorPager is the links of a list whose rows a cursor names.
type cursorPager struct {
	Next string // URL of the next rows; empty: none
	Top  string // URL of the first rows; empty: these are the first
}

// cursors returns the links of rows. at returns the URL of those at a cursor.
func cursors(at func(cursor string) string, here, next string) (c cursorPager) {
	if next != "" {
		c.Next = at(next)
	}
	if here != "" {
		c.Top = at("")
	}
	return c
}

package ui

import (
	"net/url"
	"strconv"
)

// rowsPerPage is how many messages the outbox's page lists.
const rowsPerPage = 50

// pager links the pages of a list. In addresses and on pages, they count from 1.
type pager struct {
	Page, Pages, Total, Size int // Page counts from 0
	path                     string
	values                   url.Values
}

// pageOf returns the page number of an address; the first if there is none.
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
	for key := range p.values {
		v.Set(key, p.values.Get(key))
	}
	if page > 0 {
		v.Set("page", strconv.Itoa(page+1))
	}
	return address(p.path, v)
}

// First, Previous, Next and Last are addresses, empty where there is no such page.
func (p pager) First() string { return p.at(0) }

// Previous is the page before this one; of a page beyond the last, the last.
func (p pager) Previous() string { return p.at(min(p.Page, p.Pages) - 1) }

// Next is the page after this one.
func (p pager) Next() string { return p.at(p.Page + 1) }

// Last is the last page.
func (p pager) Last() string { return p.at(p.Pages - 1) }

// From and To count the rows that this page shows.
func (p pager) From() int { return min(p.Page*p.Size+1, p.Total) }

// To is the number of the page's last row.
func (p pager) To() int { return min((p.Page+1)*p.Size, p.Total) }

// Number is the page number, from 1.
func (p pager) Number() int { return p.Page + 1 }

package ui

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A browser keeps the filters of lists that somebody saved in it, in a cookie. Postroom stores none of them.

// savedFilter is a list with a filter, under a name.
type savedFilter struct {
	Name string `json:"n"`
	URL  string `json:"u"`
}

const (
	savedCookie = "postroom_filters"
	savedAge    = 365 * 24 * 3600 // seconds
	savedMost   = 20              // filters of a browser
	savedSize   = 3_000           // bytes of the cookie; browsers take 4,096
	savedName   = 40              // bytes of a name
)

// savedOf returns the filters that a browser has. Those that did not come from setSaved are left out.
func savedOf(r *http.Request) (all []savedFilter) {
	cookie, err := r.Cookie(savedCookie)
	if err != nil {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(f savedFilter) bool { return f.Name == "" || local(f.URL) != f.URL })
}

// savedFor returns those of the list of a request.
func savedFor(r *http.Request) []savedFilter {
	return slices.DeleteFunc(savedOf(r), func(f savedFilter) bool { return listOf(f.URL) != r.URL.Path })
}

func listOf(filtered string) string {
	path, _, _ := strings.Cut(filtered, "?")
	return path
}

// filterOf returns the URL of the list with the filter of a request, without the place in the list; empty:
// there is no filter.
func filterOf(r *http.Request) string {
	v := filtersOf(r)
	if len(v) == 0 {
		return ""
	}
	return address(r.URL.Path, v)
}

// setSaved saves the filter of a list under a name, or deletes it. It needs no right: nothing of Postroom
// changes.
func (u *UI) setSaved(w http.ResponseWriter, r *http.Request) error {
	if err := u.ownPage(r); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	f := savedFilter{Name: strings.TrimSpace(r.PostForm.Get("name")), URL: r.PostForm.Get("at")}
	if local(f.URL) != f.URL || !strings.Contains(f.URL, "?") {
		return wrongField("at", "isn't a list with a filter")
	}
	if f.Name == "" || len(f.Name) > savedName || strings.ContainsFunc(f.Name, unsafeInPath) {
		return wrongField("name", "is not 1 to 40 characters without line breaks")
	}
	all := slices.DeleteFunc(savedOf(r), func(one savedFilter) bool {
		return one.Name == f.Name && listOf(one.URL) == listOf(f.URL)
	})
	said := "The filter " + f.Name + " was deleted."
	if r.PostForm.Get("delete") == "" {
		all = append(all, f)
		said = "The filter " + f.Name + " is saved in this browser."
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	value := base64.RawURLEncoding.EncodeToString(raw)
	if len(all) > savedMost || len(value) > savedSize {
		return wrongField("name", "does not fit: this browser has as many filters as it can keep. Delete one")
	}
	http.SetCookie(w, newCookie(r, savedCookie, value, savedAge))
	return done(w, r, f.URL, "%s", said)
}

// filtersOf returns the parameters of a list that choose its rows.
func filtersOf(r *http.Request) url.Values {
	v := url.Values{}
	for name, values := range r.URL.Query() {
		if name != "page" && name != "cursor" && name != "part" && name != "verify" && values[0] != "" {
			v[name] = values
		}
	}
	return v
}

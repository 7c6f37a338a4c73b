package ui

import (
	"net/http"
	"slices"
)

// themes are the colours of the pages. System follows the browser.
var themes = []string{systemTheme, "light", "dark"}

const (
	themeCookie = "postroom_theme"
	systemTheme = "system"
	themeAge    = 365 * 24 * 3600 // seconds
)

// themeOf returns the theme that a browser chose; empty: the system's. It is in the first bytes of each page,
// so that no page shows other colours before its own.
func themeOf(r *http.Request) string {
	cookie, err := r.Cookie(themeCookie)
	if err != nil || cookie.Value == systemTheme || !slices.Contains(themes, cookie.Value) {
		return ""
	}
	return cookie.Value
}

// setTheme keeps a theme in the browser, and leads back to the page with the form. It needs no login: the
// login page has colours too.
func (u *UI) setTheme(w http.ResponseWriter, r *http.Request) error {
	if err := u.ownPage(r); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	theme := r.PostForm.Get("theme")
	if !slices.Contains(themes, theme) {
		return wrongField("theme", "is not system, light or dark")
	}
	cookie := newCookie(r, themeCookie, theme, themeAge)
	if theme == systemTheme {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
	return redirect(w, r, cameFrom(r))
}

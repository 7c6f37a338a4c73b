package ui

import "slices"

// menuItem leads to a page.
type menuItem struct {
	Section string // the entry of the navigation that pages belong to, see [section]
	Path    string
	Label   string
}

// menuGroup is a part of the menu. One with a single item is shown as that item.
type menuGroup struct {
	Label string
	Items []menuItem
}

// Has reports whether a section is in the group.
func (g menuGroup) Has(section string) bool {
	return slices.ContainsFunc(g.Items, func(i menuItem) bool { return i.Section == section })
}

// Menu returns what the viewer may see. It is the same on every page of a session.
func (f frame) Menu() []menuGroup {
	one := func(section, path, label string) menuGroup {
		return menuGroup{label, []menuItem{{section, path, label}}}
	}
	whole := f.Account == "" // not only an account
	sending := []menuItem{{"campaigns", "/campaigns", "Campaigns"}, {"digests", "/digests", "Digests"},
		{"templates", "/templates", "Templates"}}
	system := []menuItem{{"api", "/docs", "API"}}
	if whole {
		sending = append(sending, menuItem{"accounts", "/accounts", "Accounts"},
			menuItem{"gateways", "/gateways", "Gateways"}, menuItem{"queues", "/queues", "Queues"})
		system = append([]menuItem{{"status", "/status", "Status"}}, system...)
	} else {
		sending = append(sending, menuItem{"accounts", "/accounts", "Account"})
	}
	if f.Admin {
		system = append(system, menuItem{"settings", "/settings", "Settings"}, menuItem{"tokens", "/tokens",
			"Tokens"},
			menuItem{"people", "/people", "People"}, menuItem{"sessions", "/sessions", "Sessions"},
			menuItem{"audit", "/audit", "Audit"})
	}
	menu := []menuGroup{one("overview", "/", "Overview"),
		{"Mail", []menuItem{{"outbox", "/outbox", "Outbox"}, {"log", "/log", "Log"},
			{"suppressions", "/suppressions", "Suppressions"}, {"rates", "/rates", "Rates"}}},
		{"Audience", []menuItem{{"audience", "/audience", "Subscribers"}, {"lists", "/lists", "Lists"},
			{"segments", "/segments", "Segments"}, {"imports", "/imports", "Imports"}}},
		{"Sending", sending}}
	if whole {
		menu = append(menu, one("webhooks", "/webhooks", "Webhooks"))
	}
	menu = append(menu, menuGroup{"System", system}, one("docs", guidePath, "Docs"))
	if f.Demo {
		menu = slices.Insert(menu, 0, one("inbox", "/inbox", "Inbox"))
	}
	return menu
}

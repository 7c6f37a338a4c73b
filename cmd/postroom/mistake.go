package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/postroom/postroom/api"
)

// The errors of kong that are said better than by kong.
var (
	noChoice = regexp.MustCompile(`^(\S+) must be one of (.+) but got (".*")$`)
	noSuch   = regexp.MustCompile(`^unexpected argument (\S+?)(?:, did you mean (?:one of )?(.+)\?)?$`)
	lacking  = regexp.MustCompile(`^expected (one of )?(".+)$`)
)

// mistake says what is wrong with a command line, and what would be right.
func mistake(err *kong.ParseError) string {
	text, n := err.Error(), typedCommand(err.Context)
	if m := noChoice.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s must be one of %s, not %s", strings.Trim(m[1], "[]"), choices(m[2]), m[3])
	}
	if m := noSuch.FindStringSubmatch(text); m != nil && len(n.Children) > 0 {
		text = fmt.Sprintf("there is no command %s %s", n.FullPath(), m[1])
		if m[2] != "" {
			return text + "; did you mean " + strings.ReplaceAll(m[2], `"`, "") + "?"
		}
		if n.Parent != nil && len(n.Children) <= 20 {
			text += "; there are " + alternatives(names(n))
		}
		return text
	}
	if m := lacking.FindStringSubmatch(text); m != nil && m[1] != "" && len(n.Children) > 0 {
		return "say what to do: " + n.FullPath() + " " + alternatives(names(n))
	} else if m != nil {
		return strings.ReplaceAll(m[2], `"`, "") + " is missing"
	}
	return text
}

// typedCommand returns the command that was typed, as far as it is one. One that is the default of its group
// does not count: an error behind it is about the group.
func typedCommand(c *kong.Context) *kong.Node {
	if c == nil {
		return &kong.Node{Name: "postroom"}
	}
	n := c.Selected()
	if n == nil {
		return c.Model.Node
	}
	if n.Parent != nil && n.Parent.DefaultCmd == n && !slices.Contains(c.Args, n.Name) {
		return n.Parent
	}
	return n
}

// names returns the commands of a group.
func names(n *kong.Node) (out []string) {
	for _, child := range n.Children {
		if !child.Hidden {
			out = append(out, child.Name)
		}
	}
	return out
}

// choices makes words of the choices as kong writes them. Empty means that the flag may be left out.
func choices(quoted string) string {
	all := strings.Split(strings.ReplaceAll(quoted, `"`, ""), ",")
	return alternatives(slices.DeleteFunc(all, func(s string) bool { return s == "" }))
}

// alternatives returns a, b or c.
func alternatives(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// advised are the routes that errors of the API advise, and the commands that do the same. The braces of a
// command take what stands at the same braces of the route.
var advised = []struct{ route, command string }{
	{"POST /v1/account", "postroom account add"},
	{"PUT /v1/account/{account}", "postroom account update {account}"},
	{"POST /v1/account/{account}/senders", "postroom account sender add {account}"},
	{"POST /v1/account/{account}/senders/{sender}/mail", "postroom account sender mail {account} {sender}"},
	{"POST /v1/gateway", "postroom gateway add"},
	{"GET /v1/messages/{queueId}/deliveries", "postroom log show {queueId} --deliveries"},
	{"GET /v1/messages/{queueId}/parts", "postroom log show {queueId} --parts"},
	{"GET /v1/campaigns", "postroom campaign list"},
	{"GET /v1/lists", "postroom list list"},
	{"GET /v1/dead-letters/reasons", "postroom dead-letter reasons"},
	{"GET /v1/segments", "postroom segment list"},
	{"POST /v1/segments/{segment}/count", "postroom segment count {segment}"},
	{"POST /v1/subscribers/{subscriber}/lists", "postroom subscribers subscribe {subscriber}"},
}

// commandOf returns the command of a route of the API: one of its own, or postroom api.
func commandOf(o api.Operation) string {
	for _, r := range advised {
		if r.route == o.Method+" "+o.Path {
			return r.command
		}
	}
	command := "postroom api " + o.ID
	for _, name := range o.Params() {
		command += " {" + name + "}"
	}
	return command
}

var (
	routeInText = regexp.MustCompile(`\b(?:GET|POST|PUT|PATCH|DELETE) /v1/[^\s;,)]*[^\s;,).:]`)
	braces      = regexp.MustCompile(`\{\w+\}`)
)

// inCommands writes the advice of an error of the API in commands instead of routes.
func inCommands(text string) string {
	return routeInText.ReplaceAllStringFunc(text, func(route string) string {
		for _, o := range api.Operations() {
			asked := strings.Split(route, "/")
			known := strings.Split(o.Method+" "+o.Path, "/")
			if len(asked) != len(known) {
				continue
			}
			command, same := commandOf(o), true
			for i, part := range known {
				if braces.MatchString(part) {
					command = strings.ReplaceAll(command, part, asked[i])
				} else if part != asked[i] {
					same = false
				}
			}
			if same {
				return command
			}
		}
		return route
	})
}

package main

import (
	"context"
	"embed"
	"strings"

	"github.com/alecthomas/kong"
)

// The scripts are few lines: they hand the words that were typed to completeCmd and show what it answers.
// Thus they need not change when commands do. Of the libraries for kong, neither was kept up with its
// releases.
//
//go:embed completion.bash completion.zsh completion.fish
var completions embed.FS

const completionHelp = `For this session: source <(postroom completion bash), and the same with zsh; postroom completion fish | source.
Permanently: add that line to ~/.bashrc or, below compinit, ~/.zshrc; or write the output to ~/.config/fish/completions/postroom.fish.`

// completionCmd prints the script of a shell.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Run(con *console) error {
	script, err := completions.ReadFile("completion." + c.Shell)
	if err != nil {
		return err
	}
	_, err = con.out.Write(script)
	return err
}

// completeCmd is what the scripts run at each Tab. It prints a line for each word that may come next: the
// word, a tab, and what it means. No line means a file or a text of the user's own.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Words typed after postroom. The last word, which may be empty, is completed."`
}

func (c *completeCmd) Run(ctx context.Context, con *console) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	parser, err := newParser(ctx, con, words[:len(words)-1])
	if err != nil {
		return err
	}
	for _, w := range complete(parser.Model.Node, words) {
		con.say("%s\t%s", w.text, clean(w.help))
	}
	return nil
}

// completion is a word that may come next.
type completion struct{ text, help string }

// complete returns what the last of the words may become.
func complete(root *kong.Node, words []string) []completion {
	typed := typing{node: root}
	last := len(words) - 1
	for _, word := range words[:last] {
		typed.read(word)
	}
	word, prefix := words[last], ""
	if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "--") && typed.flag == nil {
		typed.flag, word, prefix = flagOf(typed.node, name), value, name+"="
	}
	if word == "=" {
		word = "" // bash takes --flag=value for three words
	}
	var out []completion
	for _, c := range typed.next(strings.HasPrefix(word, "-")) {
		if strings.HasPrefix(c.text, word) {
			c.text = prefix + c.text
			out = append(out, c)
		}
	}
	return out
}

// typing is how far a command line has come.
type typing struct {
	node  *kong.Node // the command so far
	flag  *kong.Flag // whose value comes next
	args  int        // arguments of the command so far
	ended bool       // "--" was read: no flags any more
}

// read takes a complete word.
func (t *typing) read(word string) {
	switch {
	case t.flag != nil && word == "=":
	case t.flag != nil:
		t.flag = nil
	case t.ended:
		t.args++
	case word == "--":
		t.ended = true
	case strings.HasPrefix(word, "-") && word != "-":
		if f := flagOf(t.node, word); f != nil && !f.IsBool() && !f.IsCounter() {
			t.flag = f
		}
	default:
		if below := childOf(t.node, word); below != nil && t.args == 0 {
			t.node = below
			return
		}
		t.args++
	}
}

// next returns all that may come next: the values of a flag, flags, commands, or the values of an argument.
func (t *typing) next(flags bool) (out []completion) {
	switch {
	case t.flag != nil:
		return values(t.flag.Value)
	case flags && !t.ended:
		for _, f := range flagsOf(t.node) {
			out = append(out, completion{"--" + f.Name, f.Help})
		}
		return out
	}
	if t.args == 0 {
		for _, c := range t.node.Children {
			if !c.Hidden {
				out = append(out, completion{c.Name, c.Help})
			}
		}
	}
	if args := actual(t.node).Positional; t.args < len(args) {
		out = append(out, values(args[t.args])...)
	}
	return out
}

// actual returns the command that runs without a further word: the default of a group.
func actual(n *kong.Node) *kong.Node {
	if n.DefaultCmd != nil {
		return n.DefaultCmd
	}
	return n
}

// values returns the choices of a flag or an argument.
func values(v *kong.Value) (out []completion) {
	for _, value := range v.EnumSlice() {
		if value != "" {
			out = append(out, completion{value, ""})
		}
	}
	return out
}

// flagsOf returns the flags that may follow a command.
func flagsOf(n *kong.Node) (out []*kong.Flag) {
	for _, group := range actual(n).AllFlags(true) {
		out = append(out, group...)
	}
	return out
}

// flagOf returns the flag of a word such as --tag or -n, or nil. A word with its value, --tag=x, has none to
// come.
func flagOf(n *kong.Node, word string) *kong.Flag {
	for _, f := range flagsOf(n) {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// childOf returns the command of this name below another, or nil.
func childOf(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const defaultFile = "config.yaml"

// fromFile finds and reads the file of settings and returns its path. Only the default file may be missing.
func (l *loading) fromFile(named string, env map[string]string) string {
	path, source := named, "flag --config"
	if path == "" {
		path, source = env[envConfig], envConfig
	}
	byDefault := path == ""
	if byDefault {
		path, source = defaultFile, ""
	}
	content, err := readSmall(path)
	switch {
	case byDefault && errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		l.problem("", source, fmt.Sprintf("the configuration file %s can't be read: %v", path, err))
	default:
		l.fromYAML(path, content)
	}
	return path
}

// fromYAML reads the settings of a file. It visits each node, because only nodes know the line of each
// value and of each wrong key.
func (l *loading) fromYAML(path string, content []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // an empty file, or comments only
	case err != nil:
		l.problem("", path, "is not YAML: "+yamlFault(err))
		return
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		l.problem("", path, "must contain one YAML document; remove the line --- and everything after it")
		return
	}
	w := fileWalk{loading: l, path: path, groups: l.groups()}
	w.known = slices.AppendSeq(l.paths(), maps.Keys(w.groups))
	slices.Sort(w.known)
	if root := resolve(doc.Content[0]); root.Kind == yaml.MappingNode {
		w.group("", root)
	} else if root.Tag != "!!null" {
		l.problem("", path, "must be a mapping of settings, such as data: ./data")
	}
}

type fileWalk struct {
	*loading
	path   string
	known  []string        // every setting and group
	groups map[string]bool // by path
}

// group reads the settings of one mapping. Nested and dotted keys (delivery.attempts: 5) are the same.
func (w fileWalk) group(prefix string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], resolve(n.Content[i+1])
		path := prefix + name.Value
		k, isKey := w.key(path)
		switch {
		case isKey:
			w.value(k, name, value)
		case !w.groups[path]:
			w.problem(path, w.at(name), "is not a setting"+didYouMean(path, w.known))
		case value.Kind == yaml.MappingNode:
			w.group(path+".", value)
		case value.Tag != "!!null":
			w.problem(path, w.at(name), "is a group of settings, not a setting; write its settings below it, indented")
		}
	}
}

func (w fileWalk) value(k Key, name, value *yaml.Node) {
	if before, twice := w.given[k.Path]; twice {
		w.problem(k.Path, w.at(name), "is set twice; the other is "+before.source)
		return
	}
	text, message := scalarText(k, value)
	switch {
	case message != "":
		w.problem(k.Path, w.at(value), message)
	case value.Tag != "!!null":
		w.given[k.Path] = given{text, w.at(value)}
	}
}

// scalarText returns a value as text, as written in the file: 25MB, 0.75, true. A list becomes text with
// commas.
func scalarText(k Key, n *yaml.Node) (text, fault string) {
	switch {
	case !strings.HasPrefix(n.Tag, "!!"):
		return "", "begins with !, which means something else in YAML; put the value in quotes"
	case n.Kind == yaml.ScalarNode:
		return n.Value, ""
	case n.Kind != yaml.SequenceNode:
		return "", "is a setting, not a group; write one value"
	case !strings.HasPrefix(k.Kind, "list"):
		return "", "takes one value, not a list"
	}
	items := make([]string, len(n.Content))
	for i, item := range n.Content {
		if item = resolve(item); item.Kind != yaml.ScalarNode {
			return "", "takes a flat list of values"
		}
		items[i] = item.Value
	}
	return strings.Join(items, ", "), ""
}

func (w fileWalk) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", w.path, n.Line) }

// groups returns every path that has settings below it.
func (l *loading) groups() map[string]bool {
	out := map[string]bool{}
	for _, k := range l.keys {
		for i, c := range k.Path {
			if c == '.' {
				out[k.Path[:i]] = true
			}
		}
	}
	return out
}

// resolve returns the target of an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// yamlFault returns the parser's message. The one about anchors is replaced, because it quotes the value,
// which may be a password that begins with *.
func yamlFault(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "anchor") {
		return "a value begins with * or &, which means something else in YAML; put it in quotes"
	}
	return text
}

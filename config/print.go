package config

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Row is one setting for display. Secrets are masked.
type Row struct {
	Key    string `json:"key"`
	Value  string `json:"value"`            // as it was written; empty when the setting is
	Empty  string `json:"empty,omitempty"`  // what the empty value means
	Source string `json:"source"`           // default, a file and line, an environment variable, or a flag
	Env    string `json:"env"`              // the environment variable that sets it
	Secret bool   `json:"secret,omitempty"` // whether the value is masked, wholly or in part
}

// Rows returns every setting and its source, in the order of Config.
func (l *Loaded) Rows() []Row { return slices.Clone(l.rows) }

func (l *loading) rows() []Row {
	rows := make([]Row, 0, len(l.keys))
	for _, k := range l.keys {
		g := l.inForce(k)
		r := Row{Key: k.Path, Value: k.show(g.text), Source: g.source, Env: k.Env, Secret: k.Secret}
		if r.Value == "" {
			r.Empty = k.Empty
		}
		rows = append(rows, r)
	}
	return rows
}

// Print writes the settings as a table.
func (l *Loaded) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVALUE\tSOURCE")
	for _, r := range l.rows {
		value := r.Value
		if value == "" {
			value = "(" + r.Empty + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Key, value, r.Source)
	}
	return t.Flush()
}

// PrintJSON writes the settings as a JSON array of rows.
func (l *Loaded) PrintJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(l.rows)
}

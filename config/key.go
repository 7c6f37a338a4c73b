package config

import (
	"log/slog"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Key describes one setting, as its field in Config does.
type Key struct {
	Path    string   // such as delivery.retry.base
	Env     string   // such as POSTROOM_DELIVERY_RETRY_BASE
	Kind    string   // what may be written: "duration", "size"…
	Default string   // as in the file; empty when there is none
	Empty   string   // what an empty value means; "" when the setting must have a value
	Doc     string   // what it means
	Min     string   // lowest value; "" when there is no limit
	Max     string   // highest value; "" when there is no limit
	Values  []string // the allowed words; nil if any are allowed
	Secret  bool     // its value, or the credentials in it, are never shown

	check string // name of a rule in format.go
	mask  string // the secret tag
	index []int  // of the field in Config
}

// Keys lists every setting in the order of Config.
func Keys() []Key { return walk(nil, reflect.TypeFor[Config](), "", nil) }

func walk(keys []Key, t reflect.Type, prefix string, index []int) []Key {
	for i := range t.NumField() {
		f := t.Field(i)
		path := prefix + f.Tag.Get("key")
		at := append(append([]int{}, index...), i)
		if kind := kindOf(f.Type); kind != "" {
			keys = append(keys, newKey(f, path, kind, at))
			continue
		}
		keys = walk(keys, f.Type, path+".", at)
	}
	return keys
}

func newKey(f reflect.StructField, path, kind string, at []int) Key {
	k := Key{
		Path: path, Env: envName(path), Kind: kind, Default: f.Tag.Get("default"), Empty: f.Tag.Get("empty"),
		Doc: f.Tag.Get("doc"),
		Min: f.Tag.Get("min"), Max: f.Tag.Get("max"), check: f.Tag.Get("check"), mask: f.Tag.Get("secret"),
		index: at,
	}
	k.Secret = k.mask != ""
	if k.check != "" {
		k.Kind = k.check
	}
	if words := f.Tag.Get("values"); words != "" {
		k.Values, k.Kind = strings.Split(words, ","), "choice"
	}
	return k
}

// kindOf returns the kind of a field of this type, or "" for a group of settings.
func kindOf(t reflect.Type) string {
	switch reflect.Zero(t).Interface().(type) {
	case string, Secret:
		return "text"
	case bool:
		return "true or false"
	case int:
		return "whole number"
	case float64:
		return "number"
	case time.Duration:
		return "duration"
	case []time.Duration:
		return "list of durations"
	case Size:
		return "size"
	case Relay:
		return "relay URL"
	case Mailbox:
		return "mailbox"
	case slog.Level:
		return "choice"
	}
	return ""
}

// envName returns the environment variable of a path: dots and inner capitals become underscores.
func envName(path string) string {
	var b strings.Builder
	b.WriteString(envPrefix)
	for _, c := range path {
		switch {
		case c == '.':
			b.WriteByte('_')
		case unicode.IsUpper(c):
			b.WriteByte('_')
			b.WriteRune(c)
		default:
			b.WriteRune(unicode.ToUpper(c))
		}
	}
	return b.String()
}

package api

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Setting is one of the [Settings] as text, for forms and command lines.
type Setting struct {
	Name string // as in JSON
	Doc  string // what it means, with its unit
	// Kind is text, number, choice (true or false), lines (an item each) or headers (lines "Name: value").
	Kind        string
	Least, Most string // bounds of a number
	Text        string // the value; empty if it is not set
}

// List returns all settings in order, those that are nil too.
func (s *Settings) List() (all []Setting) {
	v := reflect.ValueOf(s).Elem()
	for field, value := range v.Fields() {
		tag := field.Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		kind, text := settingText(value.Interface())
		all = append(all, Setting{Name: name, Doc: tag.Get("doc"), Kind: kind, Least: tag.Get("minimum"),
			Most: tag.Get("maximum"), Text: text})
	}
	return all
}

func settingText(field any) (kind, text string) {
	switch p := field.(type) {
	case *string:
		kind = "text"
		if p != nil {
			text = *p
		}
	case *int:
		kind = "number"
		if p != nil {
			text = strconv.Itoa(*p)
		}
	case *bool:
		kind = "choice"
		if p != nil {
			text = strconv.FormatBool(*p)
		}
	case *[]string:
		kind = "lines"
		if p != nil {
			text = strings.Join(*p, "\n")
		}
	case *[]CustomHeader:
		kind = "headers"
		if p != nil {
			lines := make([]string, len(*p))
			for i, h := range *p {
				lines[i] = h.Key + ": " + h.Value
			}
			text = strings.Join(lines, "\n")
		}
	}
	return kind, text
}

// ErrNoSetting is the error of [Settings.Put] for an unknown name.
var ErrNoSetting = errors.New("there is no such setting")

// Put sets one setting from its text, as [Settings.List] returns it. Items of lists may have commas between
// them instead of line ends, except headers. An empty text is an empty value, of a number and a choice an
// error. It does not check what only the server can: see UpdateSettings.
func (s *Settings) Put(name, text string) error {
	v := reflect.ValueOf(s).Elem()
	for field, value := range v.Fields() {
		if n, _, _ := strings.Cut(field.Tag.Get("json"), ","); n == name {
			return putSetting(value.Addr().Interface(), strings.TrimSpace(text))
		}
	}
	return ErrNoSetting
}

// putSetting sets the field that a pointer to it names.
func putSetting(field any, text string) error {
	switch p := field.(type) {
	case **string:
		*p = &text
	case **int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("must be a whole number")
		}
		*p = &n
	case **bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		*p = new(text == "true")
	case **[]string:
		items := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
		*p = &items
	case **[]CustomHeader:
		headers := []CustomHeader{}
		for line := range strings.Lines(text) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
			switch {
			case ok:
				headers = append(headers, CustomHeader{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
			case key != "":
				return fmt.Errorf("line %d must be a header, such as Authorization: Bearer …", len(headers)+1)
			}
		}
		*p = &headers
	}
	return nil
}

// ConfiguredSetting is a setting of the configuration, which is read at the start.
type ConfiguredSetting struct {
	Key    string `json:"key"`
	Value  string `json:"value" doc:"Value as written. Secrets are masked"`
	Empty  string `json:"empty,omitempty" doc:"Meaning of an empty value"`
	Source string `json:"source" doc:"Source of the value: default, a file and line, an environment variable or a flag"`
	Env    string `json:"env" doc:"Environment variable that sets it"`
	Secret bool   `json:"secret,omitempty" doc:"Whether all or part of the value is masked"`
}

// ConfiguredValues are the settings that the answering process was started with.
type ConfiguredValues struct {
	Settings []ConfiguredSetting `json:"settings"`
}

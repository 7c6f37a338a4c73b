package audience

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
)

// Bounds of a subscriber.
const (
	maxEmail      = 254
	maxName       = 256
	maxTags       = 50
	maxTag        = 64
	maxAttributes = 64      // their number
	maxJSON       = 4 << 10 // bytes of all attributes
	maxLists      = 100
	maxSource     = 64
	maxText       = 500
)

// attributeNames matches the names of attributes.
var attributeNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// folded returns an address as it is compared: see package suppression.
func folded(address string) string {
	normal, err := message.NormalizeAddress(strings.TrimSpace(address))
	if err != nil {
		return strings.ToLower(address)
	}
	return strings.ToLower(normal)
}

// faults collects invalid fields.
type faults struct{ fault.Fields }

// email returns the normal form of an address.
func (f *faults) email(address string) string {
	normal, err := message.NormalizeAddress(strings.TrimSpace(address))
	switch {
	case err != nil:
		f.Add("email", "%s", err.Error())
	case len(normal) > maxEmail:
		f.Add("email", "has %d bytes; an address can have at most %d", len(normal), maxEmail)
	}
	return normal
}

// text returns a text without blanks around it, with composed letters.
func (f *faults) text(key, text string, most int) string {
	text = norm.NFC.String(strings.TrimSpace(text))
	switch {
	case len(text) > most:
		f.Add(key, "has %d bytes; at most %d are possible", len(text), most)
	case !message.IsLine(text):
		f.Add(key, "must be one line of UTF-8 without control characters")
	}
	return text
}

// locale returns a language tag in its usual spelling.
func (f *faults) locale(tag string) string {
	if tag = strings.TrimSpace(tag); tag == "" {
		return ""
	}
	t, err := language.Parse(tag)
	if err != nil {
		f.Add("locale", "must be a language such as de or pt-BR")
		return tag
	}
	return t.String()
}

// zone returns the name of a time zone.
func (f *faults) zone(name string) string {
	if name = strings.TrimSpace(name); name == "" {
		return ""
	}
	if _, err := schedule.Zone(name); err != nil {
		f.Add("tz", "%v", err)
	}
	return name
}

// tags returns tags without blanks around them, and without repetitions.
func (f *faults) tags(tags []string) []string {
	var list []string
	for i, tag := range tags {
		tag = f.text(fmt.Sprintf("tags[%d]", i), tag, maxTag)
		if tag == "" {
			f.Add(fmt.Sprintf("tags[%d]", i), "is empty")
		} else if !slices.Contains(list, tag) {
			list = append(list, tag)
		}
	}
	if len(list) > maxTags {
		f.Add("tags", "has %d; at most %d are possible", len(list), maxTags)
	}
	return list
}

// attributes returns the JSON of old with the values of patch. A null removes one.
func (f *faults) attributes(old []byte, patch map[string]any) []byte {
	if len(patch) == 0 {
		return old
	}
	all := map[string]any{}
	if len(old) > 0 {
		_ = json.Unmarshal(old, &all) // written by this function
	}
	for name, value := range patch {
		key := "attributes." + name
		if !attributeNames.MatchString(name) {
			f.Add("attributes", "has the name %q; a name is a letter and up to 63 letters, digits and _",
				message.Clip(name, 80))
			continue
		}
		if value == nil {
			delete(all, name)
			continue
		}
		all[name] = f.attribute(key, value)
	}
	if len(all) > maxAttributes {
		f.Add("attributes", "has %d; at most %d are possible", len(all), maxAttributes)
	}
	if len(all) == 0 {
		return nil
	}
	text, err := json.Marshal(all) // in the order of the names
	if err != nil {
		f.Add("attributes", "can't be written as JSON")
		return nil
	}
	if len(text) > maxJSON {
		f.Add("attributes", "have %d bytes as JSON; at most %d are possible", len(text), maxJSON)
	}
	return text
}

// attribute checks a value: a string, a number, a boolean, or a list of strings.
func (f *faults) attribute(key string, value any) any {
	switch v := value.(type) {
	case bool:
	case string:
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			f.Add(key, "must be UTF-8 without NUL")
		}
		return norm.NFC.String(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			f.Add(key, "must be a finite number")
		}
	case json.Number:
	case []string:
		list := slices.Clone(v) // a repeated attempt gets it again
		for i := range list {
			list[i] = norm.NFC.String(list[i])
		}
		return list
	case []any:
		list := slices.Clone(v)
		for i, one := range list {
			s, ok := one.(string)
			if !ok || strings.ContainsRune(s, 0) {
				f.Add(key, "must be a list of strings")
				break
			}
			list[i] = norm.NFC.String(s)
		}
		return list
	default:
		f.Add(key, "must be a string, a number, a boolean or a list of strings")
	}
	return value
}

// consent checks a proof.
func (f *faults) consent(c *api.Consent, now time.Time) {
	if c == nil {
		return
	}
	if f.text("consent.source", c.Source, maxSource) == "" {
		f.Add("consent.source", "is required: the place where consent was given, such as checkout")
	}
	if len(c.Text) > maxText {
		f.Add("consent.text", "has %d bytes; at most %d are possible", len(c.Text), maxText)
	}
	if c.Time != nil && (c.Time.After(now.Add(time.Hour)) || c.Time.Year() < 1971) {
		f.Add("consent.time", "must be a time in the past")
	}
	if _, err := netip.ParseAddr(c.IP); c.IP != "" && err != nil {
		f.Add("consent.ip", "must be an IP address")
	}
}

// Network returns the network of an IP address: 24 bits of IPv4, 48 of IPv6, or "" if it isn't one.
func Network(ip string) string {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return ""
	}
	address = address.Unmap()
	bits := 48
	if address.Is4() {
		bits = 24
	}
	prefix, err := address.WithZone("").Prefix(bits)
	if err != nil {
		return ""
	}
	return prefix.String()
}

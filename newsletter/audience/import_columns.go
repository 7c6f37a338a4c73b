package audience

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
)

// columnNames are the bare headings of columns that an import knows, in English, German and French.
var columnNames = headingsOf(map[string]string{
	"email": "email mail emailaddress mailaddress emailadresse mailadresse adresseemail adressemail " +
		"adressedemail adresseelectronique adressedemessagerie courriel adressecourriel adressedecourriel mel",
	mayBeEmail: "address recipient subscriber adresse empfanger destinataire",
	"name": "name fullname displayname vollername vollstandigername vorundnachname vornamename anzeigename " +
		"nomcomplet nometprenom nomprenom prenomnom prenometnom",
	"first":        "firstname givenname forename vorname rufname prenom",
	"last":         "lastname surname familyname nachname familienname zuname nom nomdefamille",
	"locale":       "locale language lang sprache langue",
	"tz":           "tz timezone zeitzone fuseauhoraire",
	"tags":         "tags tag labels schlagworte schlagworter etiketten etiquettes motscles",
	"attributes":   "attributes", // a JSON object
	"lists":        "lists",      // such as weekly:subscribed|news:left
	"created":      "created",
	"suppressions": "suppressions", // such as hard_bounce|weekly:unsubscribe
	"-":            "id",           // in exports
})

// mayBeEmail is the target of a column that has addresses, unless another one has.
const mayBeEmail = "address"

// targets are the fields of subscribers that the option columns may name.
var targets = []string{"email", "name", "first", "last", "locale", "tz", "tags", "attributes", "lists",
	"created", "suppressions",
	saysState,
	saysSubscribed, saysUnsubscribed}

// valueKinds are the types of attributes in files.
var valueKinds = []string{"string", "number", "bool", "date", "list"}

// column says how a column is used.
type column struct {
	heading   string
	target    string // a value of columnNames or stateHeadings, or "attribute"; "-": nothing
	attribute string // its name
	kind      string // one of valueKinds
}

// layout says how a file's columns are used.
type layout struct {
	columns []column
	states  []int // the columns that tell who gets mail
	// there is a column of ids, as in exports
	exported bool
	left     bool     // all rows are unsubscribed, even if their state can't be read
	ignored  []string // headings that mean nothing
}

var (
	errNoAddress = errors.New("has no address")
	errNoColumn  = errors.New(
		"has no column of addresses: one of its headings must be email, or the option columns must name it")
)

// layoutOf derives the layout from headings. data: the first row has none, and is an address.
func layoutOf(headings []string, mapping string) (l *layout, data bool, err error) {
	if mapping == "" && len(headings) == 1 && strings.Contains(headings[0], "@") {
		return &layout{columns: []column{{target: "email"}}}, true, nil
	}
	given, err := mappingOf(mapping)
	if err != nil {
		return nil, false, err
	}
	l = &layout{columns: make([]column, len(headings))}
	used := map[string]bool{}
	for i, heading := range headings {
		heading = strings.TrimSpace(api.CSVText(heading))
		c, ok := given[strings.ToLower(heading)]
		if given == nil {
			if c, ok, err = columnNamed(heading); err != nil {
				return nil, false, err
			}
		}
		used[strings.ToLower(heading)] = true
		if !ok {
			c.target = "-"
		}
		if c.heading = heading; c.target == saysState {
			known, _ := stateColumn(heading)
			c.target = cmp.Or(known, saysState)
		}
		if slices.Contains(stateTargets, c.target) {
			l.states = append(l.states, i)
		}
		l.columns[i] = c
	}
	for heading := range given {
		if !used[heading] {
			return nil, false, fmt.Errorf("has no column %q, which the option columns names",
				message.Clip(heading, 80))
		}
	}
	l.settle()
	if !l.has("email") {
		return nil, false, errNoColumn
	}
	return l, false, l.repeated()
}

// settle decides about columns that may have addresses, and lists columns without a meaning.
func (l *layout) settle() {
	has := l.has("email")
	for i := range l.columns {
		c := &l.columns[i]
		l.exported = l.exported || bare(c.heading) == "id"
		if c.target == mayBeEmail && !has {
			c.target = "email"
		} else if c.target == mayBeEmail {
			c.target = "-"
		}
		if c.target == "-" && c.heading != "" && len(l.ignored) < badShown {
			l.ignored = append(l.ignored, message.Clip(c.heading, 80))
		}
	}
}

// has reports whether there is a column of a target.
func (l *layout) has(target string) bool {
	return slices.ContainsFunc(l.columns, func(c column) bool { return c.target == target })
}

// repeated returns an error if two columns mean the same. An attribute's columns may differ in their type, as
// they do in exports. All columns count that say whether a person gets mail.
func (l *layout) repeated() error {
	headings := map[column]string{}
	for _, c := range l.columns {
		heading := message.Clip(c.heading, 80)
		c.heading = ""
		other, twice := headings[c]
		if twice && c.target != "-" && !slices.Contains(stateTargets, c.target) {
			return fmt.Errorf("has two columns of one meaning, %q and %q: say in the option columns which one "+
				"counts, after renaming one of them if they are the same", other, heading)
		}
		headings[c] = heading
	}
	return nil
}

// columnNamed returns the column for a heading: a known name, or attributes.<name>, optionally followed by
// :<type>. The error asks what a heading means.
func columnNamed(heading string) (column, bool, error) {
	if strings.HasPrefix(heading, "attributes.") {
		c, ok := targetNamed(heading)
		return c, ok, nil
	}
	target, ok := columnNames[bare(heading)]
	if ok {
		return column{target: target}, true, nil
	}
	target, asks := stateColumn(heading)
	if asks {
		return column{}, false, askColumn(heading)
	}
	return column{target: target}, target != "", nil
}

// targetNamed returns the column of a target as the option columns has it.
func targetNamed(text string) (column, bool) {
	text, kind, typed := strings.Cut(text, ":")
	name, ok := strings.CutPrefix(text, "attributes.")
	if !ok {
		return column{target: text}, !typed && slices.Contains(targets, text)
	}
	if !typed {
		kind = "string"
	}
	return column{target: "attribute", attribute: name, kind: kind},
		attributeNames.MatchString(name) && slices.Contains(valueKinds, kind)
}

// mappingOf reads the option columns: heading:target, separated by commas. nil if it is empty.
func mappingOf(text string) (map[string]column, error) {
	if text == "" {
		return nil, nil
	}
	given := map[string]column{}
	for part := range strings.SplitSeq(text, ",") {
		var c column
		ok, at := false, -1
		for next := 0; !ok && next >= 0; { // a heading may have colons
			if next = strings.Index(part[at+1:], ":"); next >= 0 {
				at += next + 1
				c, ok = targetNamed(strings.TrimSpace(part[at+1:]))
			}
		}
		heading := strings.ToLower(strings.TrimSpace(part[:max(at, 0)]))
		if heading == "" || !ok {
			return nil, fmt.Errorf(
				"columns has %q: it must be like Mail:email,Seats:attributes.seats:number, with %s, or attributes.<name> and %s",
				message.Clip(part, 80), strings.Join(targets, ", "), strings.Join(valueKinds, ", "))
		}
		given[heading] = c
	}
	return given, nil
}

// request returns the subscriber of a row.
func (l *layout) request(cells []string) (entry, error) {
	var in entry
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		if i >= len(l.columns) {
			return in, fmt.Errorf("has %d cells, and there are %d columns", len(cells), len(l.columns))
		}
		if err := in.take(&l.columns[i], api.CSVText(cell)); err != nil {
			return in, err
		}
	}
	if strings.TrimSpace(in.Email) == "" {
		return in, errNoAddress
	}
	switch {
	case in.Name == "":
		in.Name = strings.TrimSpace(in.first + " " + in.last)
	case in.first != "" && !l.has("last") && !strings.Contains(bare(in.Name), bare(in.first)): // Vorname;Name
		in.Name = in.first + " " + strings.TrimSpace(in.Name)
	}
	var err error
	in.exported = l.exported
	in.says, err = l.state(cells)
	return in, err
}

// take sets what a cell contains.
func (in *entry) take(c *column, cell string) (err error) {
	switch c.target {
	case "email":
		in.Email = cell
	case "name":
		in.Name = cell
	case "first":
		in.first = strings.TrimSpace(cell)
	case "last":
		in.last = strings.TrimSpace(cell)
	case "locale":
		in.Locale = cell
	case "tz":
		in.TZ = cell
	case "tags":
		in.Tags, err = listOf(cell)
	case "lists":
		in.lists, err = listsOf(cell)
	case "created":
		in.created = cell
	case "suppressions":
		in.stops, err = stopsOf(strings.Split(cell, "|"))
	case "attributes":
		var all map[string]any
		if json.Unmarshal([]byte(cell), &all) != nil {
			return errors.New("attributes must be a JSON object")
		}
		for name, value := range all {
			err = cmp.Or(err, in.give(name, value))
		}
	case "attribute":
		var value any
		if value, err = c.value(cell); err == nil {
			err = in.give(c.attribute, value)
		}
	}
	return err
}

// give sets an attribute. Two columns must not give one.
func (in *entry) give(name string, value any) error {
	if _, twice := in.Attributes[name]; twice {
		return fmt.Errorf("has two values of attributes.%s", message.Clip(name, 80))
	}
	if in.Attributes == nil {
		in.Attributes = make(map[string]any, 8)
	}
	in.Attributes[name] = value
	return nil
}

// value returns the value of a cell.
func (c *column) value(cell string) (any, error) {
	fail := func(what string) error {
		return fmt.Errorf("attributes.%s must be %s, not %q", c.attribute, what, message.Clip(cell, 80))
	}
	switch text := strings.TrimSpace(cell); c.kind {
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.ContainsAny(text, "xXpP_iInN") {
			return nil, fail("a number, with a point before its fraction")
		}
		return n, nil
	case "bool":
		switch strings.ToLower(text) {
		case "true", "yes", "y", "1", "on":
			return true, nil
		case "false", "no", "n", "0", "off":
			return false, nil
		}
		return nil, fail("true or false")
	case "date":
		date, ok := isoDate(text)
		if !ok {
			return nil, fail("a date such as 2030-12-31")
		}
		return date, nil
	case "list":
		list, err := listOf(cell)
		if err != nil {
			return nil, fail("a list such as a|b, or a JSON array of strings")
		}
		return list, nil
	}
	return cell, nil
}

// isoDate returns a date or a time in the form of ISO 8601. It accepts 31.12.2030, but not 12/31/2030, which
// is a different date elsewhere.
func isoDate(text string) (string, bool) {
	for _, form := range [...]string{time.DateOnly, "2006/01/02", "2.1.2006"} {
		if t, err := time.Parse(form, text); err == nil {
			return t.Format(time.DateOnly), true
		}
	}
	for _, form := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00",
		"2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			return t.Format(time.RFC3339Nano), true
		}
	}
	return "", false
}

// listOf reads the texts of a cell: a JSON array, or separated by | or else by ; or else by commas.
func listOf(cell string) ([]string, error) {
	if strings.HasPrefix(strings.TrimSpace(cell), "[") {
		var list []string
		if err := json.Unmarshal([]byte(cell), &list); err != nil {
			return nil, errors.New("tags must be separated by |, or be a JSON array of strings")
		}
		return list, nil
	}
	separator := ","
	for _, s := range [...]string{"|", ";"} {
		if strings.Contains(cell, s) {
			separator = s
			break
		}
	}
	var list []string
	for part := range strings.SplitSeq(cell, separator) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, nil
}

// listCell is the reverse of listOf.
func listCell(list []string) string {
	plain := len(list) > 0
	for _, text := range list {
		plain = plain && text != "" && !strings.ContainsAny(text, "|;,[") && strings.TrimSpace(text) == text
	}
	if plain {
		return strings.Join(list, "|")
	}
	b, err := json.Marshal(list)
	if err != nil {
		return ""
	}
	return string(b)
}

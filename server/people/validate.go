package people

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// MinPassword is the fewest characters of a password.
const MinPassword = 12

// maxPassword bounds what is hashed, in bytes.
const maxPassword = 1024

// names are plain ASCII, so that no two of them look alike.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._+@-]{0,127}$`)

// validate returns all wrong fields of a person.
func validate(req api.PersonRequest) error {
	var wrong fault.Fields
	if !names.MatchString(req.Person) {
		wrong.Add("person", "must be 1 to 128 letters, digits or . _ - + @, and start with a letter or digit")
	}
	switch req.Role {
	case api.RoleViewer, api.RoleOperator:
	case api.RoleAdmin:
		if len(req.Accounts) > 0 {
			wrong.Add("accounts", "must be empty, because an admin may see all accounts")
		}
	default:
		wrong.Add("role", "must be one of viewer, operator, admin")
	}
	if len(req.Accounts) > 1000 {
		wrong.Add("accounts", "must not be more than 1000")
	}
	blank := func(r rune) bool { return r <= ' ' || r == 0x7f }
	for i, a := range req.Accounts {
		if a == "" || len(a) > 256 || strings.ContainsFunc(a, blank) {
			wrong.Add(fmt.Sprintf("accounts[%d]", i), "must be an account ID")
		}
	}
	if id := req.Identity; id != nil {
		if u, err := url.Parse(id.Issuer); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			wrong.Add("identity.issuer", "must be the URL of an issuer")
		}
		if len(id.Subject) > 255 {
			wrong.Add("identity.subject", "must not be longer than 255 bytes")
		}
	}
	return fault.InvalidFields(wrong)
}

// validatePassword refuses passwords that are easy to guess by their length or the name.
func validatePassword(key, name, password string) error {
	message := ""
	switch {
	case !utf8.ValidString(password):
		message = "must be text"
	case utf8.RuneCountInString(password) < MinPassword:
		message = fmt.Sprintf("must have %d characters or more", MinPassword)
	case len(password) > maxPassword:
		message = fmt.Sprintf("must not have more than %d bytes", maxPassword)
	case strings.Count(password, password[:1])*utf8.RuneLen(rune(password[0])) == len(password):
		message = "must not be one character repeated"
	case len(name) >= 4 && strings.Contains(strings.ToLower(password), name) &&
		len(password) < len(name)+MinPassword:
		message = fmt.Sprintf("must have %d characters or more beside the name", MinPassword)
	default:
		return nil
	}
	return fault.InvalidField(key, "%s", message)
}

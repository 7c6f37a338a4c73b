package api

import "time"

// ListMail is the content of a mail that Postroom sends for a list: a stored template, or subject with html
// or text.
type ListMail struct {
	Template string `json:"template,omitempty" maxLength:"256" doc:"Id of a stored template, in place of the other fields"`
	Subject  string `json:"subject,omitempty" maxLength:"1024"`
	HTML     string `json:"html,omitempty" maxLength:"262144"`
	Text     string `json:"text,omitempty" maxLength:"262144"`
}

// List is a mailing list of an account.
type List struct {
	ListID      string `json:"listId" required:"false" maxLength:"63" doc:"The listId of its mail: a label of a host name, unique in the instance. When absent it is made from the name"`
	Account     string `json:"account,omitempty" maxLength:"256" doc:"Who sends its mail; default when absent"`
	Name        string `json:"name" minLength:"1" maxLength:"256"`
	Description string `json:"description,omitempty" maxLength:"1024"`
	OptIn       string `json:"optIn,omitempty" enum:"double,single" doc:"double when absent: who subscribes confirms it by a link in a mail"`
	Public      bool   `json:"public,omitempty" doc:"Its form takes subscriptions of visitors, and its archive is shown"`
	NoIndex     bool   `json:"noindex,omitempty" doc:"Search engines are asked to leave its public pages out"`
	// PendingRetention is a duration of the settings: 720h
	PendingRetention string    `json:"pendingRetention,omitempty" doc:"How long a subscription waits for its confirmation before it is removed, such as 30d or 720h; the setting newsletter.pendingRetention when absent"`
	Confirmation     *ListMail `json:"confirmation,omitempty" doc:"The mail with the link that confirms ({{confirmUrl}}); built in when absent"`
	Welcome          *ListMail `json:"welcome,omitempty" doc:"The mail that follows a subscription; none when absent"`
}

// ListPatch changes the fields of a list that it has. A confirmation or welcome without fields is removed.
type ListPatch struct {
	Version          *int      `json:"version,omitempty" doc:"The version that the change is based on: if the list was changed since, 409 ListChanged"`
	Name             *string   `json:"name,omitempty" minLength:"1" maxLength:"256"`
	Description      *string   `json:"description,omitempty" maxLength:"1024"`
	OptIn            *string   `json:"optIn,omitempty" enum:"double,single"`
	Public           *bool     `json:"public,omitempty"`
	NoIndex          *bool     `json:"noindex,omitempty"`
	PendingRetention *string   `json:"pendingRetention,omitempty" doc:"Empty: the setting newsletter.pendingRetention"`
	Confirmation     *ListMail `json:"confirmation,omitempty"`
	Welcome          *ListMail `json:"welcome,omitempty"`
}

// ListCounts counts the subscribers of a list by state.
type ListCounts struct {
	Pending    int `json:"pending"`
	Subscribed int `json:"subscribed"`
	Left       int `json:"left"`
}

// ListInfo is a list with its counts.
type ListInfo struct {
	List
	Counts  ListCounts `json:"counts"`
	Version int        `json:"version" doc:"Raised by each change"`
	Created time.Time  `json:"created"`
	Updated time.Time  `json:"updated"`
}

// ListPage is a page of lists.
type ListPage struct {
	PageNumbers
	Lists []ListInfo `json:"lists"`
}

func (p ListPage) rows() ([]ListInfo, string, int) { return p.Lists, "", p.Pages }

// ListForm is the public form of a list.
type ListForm struct {
	URL  string `json:"url" doc:"Address of the form as a page"`
	HTML string `json:"html" doc:"The form, to embed into pages of other sites. It has neither script nor style"`
}

// ListQuery selects lists.
type ListQuery struct {
	PageQuery
	Account string `query:"account" maxLength:"256" doc:"Only lists of this account; when absent that of the token, else all"`
}

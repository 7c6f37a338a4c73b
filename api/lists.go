package api

import "time"

// ListMail is the content of a mail that Postroom sends for a list: a stored template, or subject with html
// or text.
type ListMail struct {
	Template string `json:"template,omitempty" maxLength:"256" doc:"ID of a stored template, used instead of the other fields"`
	Subject  string `json:"subject,omitempty" maxLength:"1024"`
	HTML     string `json:"html,omitempty" maxLength:"262144"`
	Text     string `json:"text,omitempty" maxLength:"262144"`
}

// List is a mailing list of an account.
type List struct {
	ListID      string `json:"listId" required:"false" maxLength:"63" doc:"ID, unique in the instance, which is the listId of its messages. It must be a valid label of a host name. Defaults to an ID made from the name"`
	Account     string `json:"account,omitempty" maxLength:"256" doc:"Account that sends its messages. Defaults to default"`
	Name        string `json:"name" minLength:"1" maxLength:"256"`
	Description string `json:"description,omitempty" maxLength:"1024"`
	OptIn       string `json:"optIn,omitempty" enum:"double,single" doc:"Opt-in method. Defaults to double, which asks subscribers to confirm with a link in an email"`
	Public      bool   `json:"public,omitempty" doc:"Whether visitors can subscribe with its form and read its archive"`
	NoIndex     bool   `json:"noindex,omitempty" doc:"Whether to ask search engines not to index its public pages"`
	// PendingRetention is a duration of the settings: 720h
	PendingRetention string    `json:"pendingRetention,omitempty" doc:"Time that a subscription waits for confirmation before Postroom deletes it, such as 30d or 720h. Defaults to the setting newsletter.pendingRetention"`
	Confirmation     *ListMail `json:"confirmation,omitempty" doc:"Email with the confirmation link ({{confirmUrl}}). Defaults to a built-in one"`
	Welcome          *ListMail `json:"welcome,omitempty" doc:"Email to send after someone subscribes. Defaults to none"`
}

// ListPatch changes the fields of a list that it has. A confirmation or welcome without fields is removed.
type ListPatch struct {
	Version          *int      `json:"version,omitempty" doc:"Version that your change is based on. If the list has changed since, the response is 409 ListChanged"`
	Name             *string   `json:"name,omitempty" minLength:"1" maxLength:"256"`
	Description      *string   `json:"description,omitempty" maxLength:"1024"`
	OptIn            *string   `json:"optIn,omitempty" enum:"double,single"`
	Public           *bool     `json:"public,omitempty"`
	NoIndex          *bool     `json:"noindex,omitempty"`
	PendingRetention *string   `json:"pendingRetention,omitempty" doc:"Time that a subscription waits for confirmation. If empty, the setting newsletter.pendingRetention applies"`
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
	Version int        `json:"version" doc:"Version number, raised by each change"`
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
	URL  string `json:"url" doc:"URL of the page with the form"`
	HTML string `json:"html" doc:"HTML of the form, to embed in other sites. It has no script and no style"`
}

// ListQuery selects lists.
type ListQuery struct {
	PageQuery
	Account string `query:"account" maxLength:"256" doc:"Filter by account. Defaults to the token's account, or to all"`
}

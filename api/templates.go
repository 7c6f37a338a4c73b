package api

import (
	"encoding/json"
	"time"
)

// TemplateContent is the parts of a mail, in the template language. A missing text is made from the html.
type TemplateContent struct {
	Subject     string `json:"subject,omitempty"`
	PreviewText string `json:"previewText,omitempty" doc:"What lists of mails show beside the subject"`
	HTML        string `json:"html,omitempty" doc:"html, or Markdown where that is the format"`
	Text        string `json:"text,omitempty"`
}

// TemplateDefinition is the versioned part of a template: everything that affects the mail.
type TemplateDefinition struct {
	Format    string                     `json:"format,omitempty" doc:"Of content.html: html or markdown; html when absent"`
	Content   TemplateContent            `json:"content" required:"false"`
	Locales   map[string]TemplateContent `json:"locales,omitempty" doc:"Variants by locale, such as de or pt-BR. Parts that a variant lacks are those of content; a text goes with its html"`
	Layout    string                     `json:"layout,omitempty" maxLength:"128" doc:"Id of the layout around the html"`
	InlineCSS bool                       `json:"inlineCss,omitempty" doc:"Write style sheets into style attributes"`
	Missing   string                     `json:"missing,omitempty" doc:"What happens to a variable that the data lacks: it is empty, or an error; the setting templates.missing when absent"`
	Sample    json.RawMessage            `json:"sample,omitempty" doc:"Params for previews"`
}

// TemplateRequest creates a template, a partial or a layout.
type TemplateRequest struct {
	ID          string  `json:"id,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._@+-]*$" doc:"Id, chosen by you; made up when absent"`
	Account     *string `json:"account,omitempty" nullable:"true" maxLength:"256" doc:"Whose it is; null or absent: every account may use it"`
	Name        string  `json:"name" minLength:"1" maxLength:"256" doc:"Its name in lists; of a partial, what templates include it by: {{> name}}"`
	Description string  `json:"description,omitempty" maxLength:"1024"`
	Kind        string  `json:"kind,omitempty" enum:"template,partial,layout" doc:"template when absent. A partial is included by others, a layout stands around their html and holds {{> @partial-block}}"`
	TemplateDefinition
}

// TemplatePatch changes a template. Absent fields stay as they are. Content, locales and sample are replaced
// as a whole. Each field points to its new value.
type TemplatePatch struct {
	Name        *string                     `json:"name,omitempty" minLength:"1" maxLength:"256"`
	Description *string                     `json:"description,omitempty" maxLength:"1024"`
	Format      *string                     `json:"format,omitempty" doc:"html or markdown"`
	Content     *TemplateContent            `json:"content,omitempty"`
	Locales     *map[string]TemplateContent `json:"locales,omitempty" doc:"All variants; {} takes them away"`
	Layout      *string                     `json:"layout,omitempty" maxLength:"128" doc:"Id of the layout; an empty one takes it away"`
	InlineCSS   *bool                       `json:"inlineCss,omitempty"`
	Missing     *string                     `json:"missing,omitempty" doc:"empty or error; an empty text for the setting templates.missing"`
	Sample      *json.RawMessage            `json:"sample,omitempty" doc:"Params for previews; {} takes them away"`
	Version     int                         `json:"version,omitempty" minimum:"1" doc:"The version that this change was made from: 409 when it is no longer the current one"`
}

// TemplateHead is the fields of a template in lists.
type TemplateHead struct {
	Account     *string   `json:"account" doc:"Whose it is; null: every account may use it"`
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Kind        string    `json:"kind" enum:"template,partial,layout"`
	Version     int       `json:"version"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
}

// Template is a template as it is stored.
type Template struct {
	TemplateHead
	TemplateDefinition
}

// TemplateRow is a template in a list, without its content.
type TemplateRow struct {
	TemplateHead
	Format  string   `json:"format" enum:"html,markdown"`
	Locales []string `json:"locales" doc:"Of its variants"`
	Layout  string   `json:"layout,omitempty"`
}

// TemplateCreated is the response to a new template.
type TemplateCreated struct {
	Created bool    `json:"created"`
	Account *string `json:"account"`
	ID      string  `json:"id"`
	Version int     `json:"version"`
}

// TemplateUpdated is the response to a changed template.
type TemplateUpdated struct {
	Updated bool    `json:"updated"`
	Account *string `json:"account"`
	ID      string  `json:"id"`
	Version int     `json:"version" doc:"The current one; the same as before where no content was changed"`
}

// TemplateDeleted is the response to the deletion of a template.
type TemplateDeleted struct {
	Deleted bool    `json:"deleted"`
	Account *string `json:"account"`
	ID      string  `json:"id"`
}

// TemplatesFlushed is the response to the deletion of all templates of an account.
type TemplatesFlushed struct {
	Flushed bool   `json:"flushed"`
	Account string `json:"account"`
	Deleted int    `json:"deleted" doc:"How many there were"`
}

// TemplateQuery selects templates. Zero fields do not filter.
type TemplateQuery struct {
	Page     int    `query:"page" minimum:"0" doc:"Page, from 0"`
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows a page; 20 when absent"`
	Account  string `query:"account" maxLength:"256" doc:"Only templates of this account. When absent, a token bound to an account sees those of its account and those without account"`
	Kind     string `query:"kind" enum:"template,partial,layout" doc:"Only this kind"`
	Search   string `query:"search" maxLength:"256" doc:"Only templates with this in their id, name or description; case does not matter"`
}

// FlushQuery confirms that all templates of an account are deleted.
type FlushQuery struct {
	Force bool `query:"force" enum:"true,false" doc:"Must be true, so that a client that omits the id of a template by mistake does not delete all"`
}

// TemplatePage is a page of templates, by their ids.
type TemplatePage struct {
	Account *string `json:"account" doc:"The requested account"`
	PageNumbers
	Templates []TemplateRow `json:"templates"`
}

func (p TemplatePage) rows() ([]TemplateRow, string, int) { return p.Templates, "", p.Pages }

// TemplateVersionRow is a version in a list.
type TemplateVersionRow struct {
	Version  int       `json:"version"`
	Created  time.Time `json:"created"`
	Size     int       `json:"size" doc:"Bytes, as it is stored"`
	Restored int       `json:"restored,omitempty" doc:"The version whose content this is again"`
}

// TemplateVersions are the kept versions of a template, the current one first.
type TemplateVersions struct {
	ID       string               `json:"id"`
	Version  int                  `json:"version" doc:"The current one"`
	Versions []TemplateVersionRow `json:"versions"`
}

// TemplateVersion is one version with its content.
type TemplateVersion struct {
	ID string `json:"id"`
	TemplateVersionRow
	TemplateDefinition
}

// TemplateRestore selects the version to restore.
type TemplateRestore struct {
	Version int `json:"version" minimum:"1"`
}

// TemplatePreviewRequest renders a stored template.
type TemplatePreviewRequest struct {
	Params  json.RawMessage `json:"params,omitempty" doc:"The data; the template's sample when absent"`
	Locale  string          `json:"locale,omitempty" maxLength:"64" doc:"Chooses the variant, and how numbers and dates are written"`
	TZ      string          `json:"tz,omitempty" maxLength:"64" doc:"Time zone of dates, such as Europe/Zurich; UTC when absent"`
	Account string          `json:"account,omitempty" maxLength:"256" doc:"Account that would send; the template's own account when absent"`
	To      *Address        `json:"to,omitempty" doc:"Recipient it would be for"`
	Version int             `json:"version,omitempty" minimum:"1" doc:"An earlier version; the current one when absent"`
}

// TemplateTrial renders a template that is not stored.
type TemplateTrial struct {
	Kind string `json:"kind,omitempty" enum:"template,partial,layout" doc:"template when absent"`
	TemplateDefinition
	Params  json.RawMessage `json:"params,omitempty" doc:"The data; the sample when absent"`
	Locale  string          `json:"locale,omitempty" maxLength:"64" doc:"Chooses the variant, and how numbers and dates are written"`
	TZ      string          `json:"tz,omitempty" maxLength:"64" doc:"Time zone of dates, such as Europe/Zurich; UTC when absent"`
	Account string          `json:"account,omitempty" maxLength:"256" doc:"Account that would send, and whose partials are found"`
	To      *Address        `json:"to,omitempty" doc:"Recipient it would be for"`
}

// TemplateMissing is a variable that the data lacks.
type TemplateMissing struct {
	Name    string `json:"name" doc:"As the template writes it"`
	Part    string `json:"part" enum:"subject,previewText,html,text"`
	Partial string `json:"partial,omitempty" doc:"The partial that uses it; absent: the template itself"`
	Line    int    `json:"line" doc:"Of its first use"`
	Column  int    `json:"column"`
}

// TemplatePreview is a rendered template.
type TemplatePreview struct {
	Subject     string            `json:"subject"`
	PreviewText string            `json:"previewText"`
	HTML        string            `json:"html"`
	Text        string            `json:"text"`
	Locale      string            `json:"locale,omitempty" doc:"Of the variant that was chosen; absent: the content itself"`
	Missing     []TemplateMissing `json:"missing" doc:"Variables that the data lacks; a mail is refused for them where missing is error"`
	Variables   []string          `json:"variables" doc:"What the template takes from its data"`
	Version     int               `json:"version,omitempty" doc:"Of a stored template"`
}

package templates

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// Versions lists the kept versions of a template, the current one first. Unknown, or hidden from a caller
// bound to an account: NotFound.
func (t *Templates) Versions(ctx context.Context, bound, id string) (api.TemplateVersions, error) {
	e, err := t.seen(ctx, bound, id)
	if err != nil {
		return api.TemplateVersions{}, err
	}
	answer := api.TemplateVersions{ID: id, Version: e.Value.Version, Versions: []api.TemplateVersionRow{}}
	for _, v := range slices.Backward(e.Value.Versions) {
		answer.Versions = append(answer.Versions, versionRow(v))
	}
	return answer, nil
}

// Version returns a version of a template. If it is not kept: NotFound, code TemplateVersionNotFound.
func (t *Templates) Version(ctx context.Context, bound, id string, number int) (api.TemplateVersion, error) {
	e, err := t.seen(ctx, bound, id)
	if err != nil {
		return api.TemplateVersion{}, err
	}
	d, err := t.versionOf(ctx, e, number)
	if err != nil {
		return api.TemplateVersion{}, err
	}
	v, _ := e.Value.find(number)
	return api.TemplateVersion{ID: id, TemplateVersionRow: versionRow(v), TemplateDefinition: *d}, nil
}

// versionOf reads the content of a version.
func (t *Templates) versionOf(ctx context.Context, e *entry, number int) (*definition, error) {
	if _, kept := e.Value.find(number); !kept {
		return nil, noVersion(e.ID, number)
	}
	d, err := t.definition(ctx, e.ID, number)
	if err == nil && d == nil { // it was deleted meanwhile
		err = noVersion(e.ID, number)
	}
	return d, err
}

func versionRow(v version) api.TemplateVersionRow {
	return api.TemplateVersionRow{Version: v.Number, Created: v.Created, Size: v.Size, Restored: v.Restored}
}

func noVersion(id string, number int) error {
	return fault.New(fault.NotFound, "TemplateVersionNotFound",
		"There is no version %d of template %s, or none any more", number, id)
}

package api_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

// TestAPatchChangesEveryFieldItHas: each field of each patch reaches the field of its name, but for those
// that say which object is meant, and the name and description of a template, which are no part of its
// content.
func TestAPatchChangesEveryFieldItHas(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, c := range []struct {
		object, patch any
		apart         []string
	}{
		{&api.Account{}, &api.AccountPatch{}, nil},
		{&api.Gateway{}, &api.GatewayPatch{}, nil},
		{&api.Campaign{}, &api.CampaignPatch{}, []string{"Version"}},
		{&api.List{}, &api.ListPatch{}, []string{"Version"}},
		{&api.DigestKind{}, &api.DigestKindPatch{}, []string{"Version", "Account"}},
		{&api.EndpointRequest{}, &api.EndpointPatch{}, nil},
		{&api.TemplateDefinition{}, &api.TemplatePatch{}, []string{"Version", "Name", "Description"}},
	} {
		object, patch := reflect.ValueOf(c.object).Elem(), reflect.ValueOf(c.patch).Elem()
		for range 100 {
			was := reflect.New(object.Type()).Elem()
			was.Set(object)
			patch.SetZero()
			for _, value := range patch.Fields() {
				if random.Intn(2) == 0 {
					fill(value, random)
				}
			}
			api.Patch(c.object, patch.Interface())
			for field, value := range patch.Fields() {
				if slices.Contains(c.apart, field.Name) {
					continue
				}
				want, got := was.FieldByName(field.Name), object.FieldByName(field.Name)
				if !value.IsZero() {
					if want = value; value.Type() != got.Type() {
						want = value.Elem()
					}
				}
				if !reflect.DeepEqual(want.Interface(), got.Interface()) {
					t.Errorf("%s.%s makes %v, want %v", patch.Type(), field.Name, got, want)
				}
			}
		}
	}
}

// fill gives a value, and all that it holds, something that is not zero.
func fill(v reflect.Value, random *rand.Rand) {
	switch n := 1 + random.Intn(1000); v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint8:
		v.SetUint(uint64(n%255 + 1))
	case reflect.Float64:
		v.SetFloat(float64(n))
	case reflect.String:
		v.SetString(strconv.Itoa(n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), random)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), random)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, random)
		fill(value, random)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(n), 0)))
			return
		}
		for _, field := range v.Fields() {
			fill(field, random)
		}
	}
}

func TestAnEmptyStructInAPatchTakesAway(t *testing.T) {
	campaign := api.Campaign{Test: &api.CampaignTrial{Share: 0.5}, CampaignContent: api.CampaignContent{
		TrackOpens: new(true), Metadata: json.RawMessage(`{"a":1}`)}}
	api.Patch(&campaign, api.CampaignPatch{Test: &api.CampaignTrial{}, TrackOpens: new(*bool)})
	if campaign.Test != nil || campaign.TrackOpens != nil || campaign.Metadata == nil {
		t.Errorf("%+v", campaign)
	}
	endpoint := api.EndpointRequest{}
	api.Patch(&endpoint, api.EndpointPatch{Enabled: new(false)})
	if endpoint.Enabled == nil || *endpoint.Enabled {
		t.Error("an endpoint that is switched off is on")
	}
}

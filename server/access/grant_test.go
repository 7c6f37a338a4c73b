package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

func TestScopes(t *testing.T) {
	all := []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP, api.ScopeOutbox, api.ScopeMetrics,
		api.ScopeAdmin}
	tests := []struct {
		name  string
		grant Grant
		want  []api.Scope
	}{
		{"nothing", Grant{}, nil},
		{"send", Grant{Scopes: []api.Scope{api.ScopeSend}}, []api.Scope{api.ScopeSend, api.ScopeSMTP}},
		{"smtp", Grant{Scopes: []api.Scope{api.ScopeSMTP}}, []api.Scope{api.ScopeSMTP}},
		{"outbox and metrics", Grant{Scopes: []api.Scope{api.ScopeOutbox, api.ScopeMetrics}},
			[]api.Scope{api.ScopeOutbox, api.ScopeMetrics}},
		{"api", Grant{Scopes: []api.Scope{api.ScopeAPI}}, []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP,
			api.ScopeOutbox, api.ScopeMetrics}},
		{"api of an account", Grant{Account: "a", Scopes: []api.Scope{api.ScopeAPI}},
			[]api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP, api.ScopeOutbox}},
		{"admin", Grant{Scopes: []api.Scope{api.ScopeAdmin}}, all},
		{"star", Grant{Scopes: []api.Scope{api.ScopeAll}}, all},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []api.Scope
			for _, s := range all {
				if tt.grant.Allows(s) {
					got = append(got, s)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCanSee(t *testing.T) {
	free, bound := Grant{}, Grant{Account: "a"}
	for account, want := range map[string]bool{"a": true, "b": false, "": false, "A": false} {
		if !free.CanSee(account) {
			t.Errorf("an unbound token can't see %q", account)
		}
		if got := bound.CanSee(account); got != want {
			t.Errorf("a token bound to a sees %q: %v, want %v", account, got, want)
		}
	}
}

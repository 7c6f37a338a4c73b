package server

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// TestNullTakesAway: what a patch sets as a whole goes with a null.
func TestNullTakesAway(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, c := t.Context(), w.client
	gateway := api.Gateway{Gateway: "g", Name: "G", Host: "g.example.com", Port: 587, TLS: &api.SMTPTLS{
		MinVersion: "TLSv1.3"}, Limits: &api.Limits{PerDay: 9}}
	if _, err := api.CreateGateway.Do(ctx, c, gateway); err != nil {
		t.Fatal(err)
	}
	account := api.Account{
		Account: "a", Name: "A", Email: "a@example.com", SMTP: &api.SMTPServer{Host: "h.example.com", Port: 25},
		Gateways: []api.Route{{Gateway: "g"}},
		Limits:   &api.Limits{PerMinute: 5},
	}
	if _, err := api.CreateAccount.Do(ctx, c, account); err != nil {
		t.Fatal(err)
	}
	if answer := w.do(t, http.MethodPut, "/v1/account/a", adminToken,
		`{"smtp":null,"limits":null,"dkim":null}`); answer.status != http.StatusOK {
		t.Errorf("%+v", answer)
	}
	account.SMTP, account.Limits = nil, nil
	if info, err := api.GetAccount.Do(ctx, c, "a"); err != nil || !cmp.Equal(info.Account, account) {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := api.UpdateGateway.Do(ctx, c, api.GatewayPatch{TLS: new((*api.SMTPTLS)(nil)),
		Limits: new((*api.Limits)(nil))}, "g"); err != nil {
		t.Error(err)
	}
	gateway.TLS, gateway.Limits = nil, nil
	if info, err := api.GetGateway.Do(ctx, c, "g"); err != nil || !cmp.Equal(info.Gateway, gateway) {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := api.UpdateAccount.Do(ctx, c, api.AccountPatch{Gateways: &[]api.Route{}}, "a"); !refused(err,
		http.StatusBadRequest) {
		t.Errorf("an account without any relay: %v", err)
	}
}

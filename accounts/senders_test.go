package accounts

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
)

// TestADomainIsVerifiedByTheRecordOfItsAccount covers the DNS record: it is the account's, and no one else's.
func TestADomainIsVerifiedByTheRecordOfItsAccount(t *testing.T) {
	b := setup(t, nil)
	zone := map[string][]string{}
	b.lookUpTXT = func(_ context.Context, name string) ([]string, error) {
		if zone[name] == nil {
			return nil, errors.New("no such host")
		}
		return zone[name], nil
	}
	b.create(t, account("a"))
	b.create(t, account("rival"))
	add := func(id string) api.SenderInfo {
		t.Helper()
		info, err := b.AddSender(t.Context(), id, "Shop.Example.", false)
		if err != nil || info.Status != api.SenderPending || info.Sender != "shop.example" {
			t.Fatalf("%+v, %v", info, err)
		}
		return info
	}
	mine, theirs := add("a"), add("rival")
	if mine.DNS.Name != theirs.DNS.Name || mine.DNS.Value == theirs.DNS.Value {
		t.Errorf("%+v, %+v", mine.DNS, theirs.DNS)
	}
	_, err := b.VerifySender(t.Context(), "a", "shop.example")
	if !fault.Is(err, fault.Conflict) || fault.CodeOf(err) != "SenderNotVerified" {
		t.Errorf("without a record: %v", err)
	}
	zone[mine.DNS.Name] = []string{"v=spf1 -all", theirs.DNS.Value}
	if _, err := b.VerifySender(t.Context(), "a", "shop.example"); !fault.Is(err, fault.Conflict) {
		t.Errorf("with the record of another account: %v", err)
	}
	if b.resolve(t, "a").MaySendAs("x@shop.example") {
		t.Error("a pending domain counts")
	}
	zone[mine.DNS.Name] = []string{mine.DNS.Value}
	if info, err := b.VerifySender(t.Context(), "a", "SHOP.example"); err != nil ||
		info.Status != api.SenderVerified || info.DNS != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if !b.resolve(t, "a").MaySendAs("X@Shop.Example") || b.resolve(t, "rival").MaySendAs("x@shop.example") {
		t.Error("the wrong account may send")
	}
	if again, err := b.AddSender(t.Context(), "a", "shop.example", false); err != nil ||
		again.Status != api.SenderVerified {
		t.Errorf("added again: %+v, %v", again, err)
	}
	if err := b.RemoveSender(t.Context(), "a", "shop.example"); err != nil {
		t.Fatal(err)
	}
	if b.resolve(t, "a").MaySendAs("x@shop.example") {
		t.Error("a removed domain counts")
	}
	if err := b.RemoveSender(t.Context(), "a", "shop.example"); fault.CodeOf(err) != "SenderNotFound" {
		t.Errorf("removed twice: %v", err)
	}
}

func TestWhomAnAccountMaySendAs(t *testing.T) {
	a := account("a")
	a.Senders = []api.SenderRight{{Sender: "guest@b.example"}, {Sender: "bücher.example"},
		{Sender: "later.example", Status: api.SenderPending}}
	var domain, address Sender
	domain.permit(a, false)
	address.permit(a, true)
	for from, want := range map[string][2]bool{
		"sender@example.com": {true, true}, "Other@Example.COM": {true, false},
		"x@sub.example.com": {}, "x@notexample.com": {}, "x@example.com.b.example": {},
		"Guest@B.example": {true, true}, "ceo@b.example": {},
		"x@later.example": {}, "": {}, "example.com": {}, `"x@b.example"@example.com`: {},
		`"sender@example.com"@b.example`: {},
	} {
		if got := [2]bool{domain.MaySendAs(from), address.MaySendAs(from)}; got != want {
			t.Errorf("%s: %v, want %v", from, got, want)
		}
	}
}

func TestWrongSendersAreNamed(t *testing.T) {
	b := setup(t, configuredAccount())
	a := account("a")
	a.Senders = []api.SenderRight{{Sender: "example.com"}, {Sender: "co.uk"}, {Sender: "x@"},
		{Sender: "b.example", Status: "own"}}
	_, err := b.Create(t.Context(), a)
	if diff := cmp.Diff([]string{"senders[1].sender", "senders[2].sender", "senders[3].status"},
		testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
	if _, err := b.AddSender(t.Context(), DefaultID, "b.example", true); fault.CodeOf(err) !=
		"AccountConfigured" {
		t.Errorf("of the configured account: %v", err)
	}
}

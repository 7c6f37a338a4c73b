package apptest

import (
	"testing"

	"github.com/postroom/postroom/api"
)

// Gone is the person who is erased. No one else has such a local part. Its first occurrence in what S2 packed
// is in plain bytes, because no other text has four of its letters in a row. Texts that zstd packed are
// unpacked.
const Gone = "zwqjxkvgh@example.net"

// Erased erases the person and returns the receipt.
func Erased(t *testing.T, client *api.Client, account string) (receipt api.Erasure) {
	t.Helper()
	made, err := api.ErasePerson.Do(t.Context(), client, api.ErasureRequest{Email: Gone, Account: account})
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the person is erased", func() bool {
		receipt, err = api.GetErasure.Do(t.Context(), client, made.ID)
		return err == nil && receipt.State == api.ErasureDone
	})
	return receipt
}

func SubmitTo(t *testing.T, client *api.Client, req api.SubmitRequest, to ...string) api.SubmitAnswer {
	t.Helper()
	for _, one := range to {
		req.To = append(req.To, api.Address{Address: one})
	}
	req.Subject, req.Text = "Hello", "Dear "+to[0]
	return HandIn(t, client, req)
}

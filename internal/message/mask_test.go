package message_test

import (
	"testing"

	"github.com/postroom/postroom/internal/message"
)

// TestMaskLeavesOtherWordsWhole: a hole within a word damages what a server says, and tells the secret.
func TestMaskLeavesOtherWordsWhole(t *testing.T) {
	for _, row := range []struct{ secret, text, want string }{
		{"a", "535 5.7.8 a bad password", "535 5.7.8 a bad password"},
		{"no", "no, not now", "no, not now"},
		{"mail", "mailbox, e-mail, mail.example.com and webmail are away", "mailbox, e-mail, mail.example.com and webmail are away"},
		{"mail", "see https://support.example/mail/?p=1 or <https://x.example/a/mail>",
			"see https://support.example/mail/?p=1 or <https://x.example/a/mail>"},
		{"5.7.8", "15.7.81 5.7.8.1", "15.7.81 5.7.8.1"},
		{"über", "überhaupt, gegenüber", "überhaupt, gegenüber"},
		{"abcd", "abcd's abcd_e don't", "abcd's abcd_e don't"},
		{"hunter2", "wrong: hunter2.", "wrong: ***."},
		{"hunter2", "hunter2", "***"},
		{"hunter2", "user=shop;pass=hunter2, 'hunter2' shop/hunter2 (hunter2) hunter22 hunter2",
			"user=shop;pass=***, '***' shop/*** (***) hunter22 ***"},
		{"!ab!", "x!ab!x", "x***x"},
		{"a long secret 16", "xa long secret 16x", "x***x"},
	} {
		if got := message.Mask(row.text, []string{row.secret, ""}); got != row.want {
			t.Errorf("%q in %q became %q", row.secret, row.text, got)
		}
	}
	if got := message.Mask("it was secret1234 secret", []string{"secret",
		"secret1234"}); got != "it was *** ***" {
		t.Error(got)
	}
}

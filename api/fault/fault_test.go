package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/postroom/postroom/api/fault"
)

func TestKindSurvivesWrapping(t *testing.T) {
	cause := errors.New("dial tcp: refused")
	err := fmt.Errorf("submit: %w", fault.Wrap(cause, fault.Unavailable, "RedisAway", "Redis is away"))
	if got := fault.KindOf(err); got != fault.Unavailable {
		t.Errorf("KindOf = %q, want %q", got, fault.Unavailable)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if got := fault.CodeOf(err); got != "RedisAway" {
		t.Errorf("CodeOf = %q", got)
	}
}

func TestKindOfPlainErrors(t *testing.T) {
	if got := fault.KindOf(errors.New("x")); got != fault.Internal {
		t.Errorf("a plain error is %q, want internal", got)
	}
	if got := fault.KindOf(nil); got != "" {
		t.Errorf("nil is %q, want no kind", got)
	}
	if fault.Is(nil, fault.Internal) {
		t.Error("nil is of no kind")
	}
}

func TestInvalidFieldsNamesAll(t *testing.T) {
	if err := fault.InvalidFields(nil); err != nil {
		t.Errorf("no fields, yet %v", err)
	}
	err := fault.InvalidFields([]fault.Field{{Key: "to", Message: "is required"},
		{Key: "subject", Message: "is too long"}})
	want := "Invalid input: to: is required; subject: is too long"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

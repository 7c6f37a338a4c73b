package e2e_test

import (
	"os"
	"testing"

	"github.com/postroom/postroom/app/apptest"
)

func TestMain(m *testing.M) {
	apptest.Store = "none"
	os.Exit(apptest.Main(m))
}

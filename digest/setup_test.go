package digest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

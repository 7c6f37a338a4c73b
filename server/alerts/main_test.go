package alerts

import (
	"os"
	"testing"

	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

package redisdb_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// nearly all of these tests wait for something most of the time
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testredis.Main(m))
}

package postroom

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestComposeIsHardened: every service has the bounds of the program, and Redis a password and no way out.
func TestComposeIsHardened(t *testing.T) {
	text, err := os.ReadFile("deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command     any      `yaml:"command"`
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			SecurityOpt []string `yaml:"security_opt"`
			Networks    []string `yaml:"networks"`
			Ports       []string `yaml:"ports"`
		} `yaml:"services"`
		Networks map[string]struct {
			Internal bool `yaml:"internal"`
		} `yaml:"networks"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	want := []string{"auth", "postroom", "redis", "worker"}
	if names := slices.Sorted(maps.Keys(file.Services)); !slices.Equal(names, want) {
		t.Fatalf("services %v, want %v", names, want)
	}
	for name, s := range file.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s is not hardened: %+v", name, s)
		}
	}
	redis := file.Services["redis"]
	command, _ := redis.Command.(string)
	if !strings.HasPrefix(command, "redis-server /auth/redis.conf ") {
		t.Errorf("redis has no password: %s", command)
	}
	if !slices.Equal(redis.Networks, []string{"redis"}) || !file.Networks["redis"].Internal ||
		len(redis.Ports) > 0 {
		t.Errorf("others than Postroom reach redis: %+v", redis)
	}
}

// TestTheUnitMayReadItsConfiguration: a dynamic user reads what belongs to root by a credential alone.
func TestTheUnitMayReadItsConfiguration(t *testing.T) {
	text, err := os.ReadFile("deploy/postroom.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"DynamicUser=yes", "LoadCredential=config:/etc/postroom/config.yaml",
		"ExecStart=/usr/local/bin/postroom serve --config %d/config"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the unit has no line %s", line)
		}
	}
}

package e2e_test

import (
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestEmptyPagesShowWhatFillsThem: each command, pasted into a shell, does what its page says.
func TestEmptyPagesShowWhatFillsThem(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("curl is not installed; make test installs it")
	}
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	get := func(path string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.Token())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // only read from
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
		return string(body)
	}
	command := regexp.MustCompile(`(?s)<pre class="first" tabindex="0">(.*?)</pre>`)
	pages := []string{"/outbox", "/log", "/digests", "/templates", "/lists", "/webhooks", "/audience"}
	commands := map[string]string{}
	for _, path := range pages {
		m := command.FindStringSubmatch(get(path))
		if m == nil {
			t.Fatalf("%s shows no command", path)
		}
		commands[path] = html.UnescapeString(m[1])
		if strings.Contains(commands[path], a.Token()) {
			t.Errorf("%s shows the token", path)
		}
	}
	for _, path := range []string{"/?tag=x", "/log?tag=x", "/templates?search=x", "/lists?account=x",
		"/audience?q=x"} {
		if command.MatchString(get(path)) {
			t.Errorf("%s shows a command, though it is only narrowed", path)
		}
	}
	for path, text := range commands {
		failing := strings.Replace(text, "curl ", "curl -sS --fail-with-body ", 1)
		shell := exec.CommandContext(t.Context(), "sh", "-c", failing)
		shell.Env = append(os.Environ(), "TOKEN="+a.Token())
		if out, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%s: %s\n%v\n%s", path, text, err, out)
		}
	}
	for _, path := range []string{"/log", "/templates", "/lists", "/webhooks", "/audience"} {
		if command.MatchString(get(path)) {
			t.Errorf("%s is empty still", path)
		}
	}
}

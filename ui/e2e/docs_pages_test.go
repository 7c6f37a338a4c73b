package e2e_test

import (
	"context"
	"html"
	"io/fs"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/docs"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend/replies"
)

// pageLimit is how large a page may be.
const pageLimit = 100_000

var (
	docsLink = regexp.MustCompile(`href="(/docs[^"#]*)(?:#([^"]*))?"`)
	idOnPage = regexp.MustCompile(`\bid="([^"]*)"`)
	shell    = regexp.MustCompile(`(?s)<pre tabindex="0">(curl .*?)</pre>`)
)

// TestDocumentationPages follows every link of the documentation, as a stranger. Every operation and every
// page of docs/ must be reached, and every heading that a link names must be there.
func TestDocumentationPages(t *testing.T) {
	t.Parallel()
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t)})
	operations, _ := describedBy(t, a.URL())
	seen, anchors, next := map[string]string{}, map[string][]string{}, []string{"/docs", "/docs/guide"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if _, ok := seen[path]; ok {
			continue
		}
		page := pageText(t, a.URL()+path)
		seen[path] = page
		if len(page) > pageLimit || strings.Contains(page, ` style="`) {
			t.Errorf("%s has %d bytes, at most %d are allowed; or a style attribute, which the policy forbids", path,
				len(page), pageLimit)
		}
		for _, found := range docsLink.FindAllStringSubmatch(page, -1) {
			next = append(next, found[1])
			if found[2] != "" {
				anchors[found[1]] = append(anchors[found[1]], html.UnescapeString(found[2]))
			}
		}
	}
	for id := range operations {
		if !strings.Contains(seen["/docs/api/"+id], "curl ") {
			t.Errorf("no link leads to /docs/api/%s, or it has no command", id)
		}
	}
	for path, wanted := range anchors {
		for _, anchor := range wanted {
			if !regexp.MustCompile(`\bid="` + regexp.QuoteMeta(anchor) + `"`).MatchString(seen[path]) {
				t.Errorf("a link leads to %s#%s, which is not there: %.300q", path, anchor,
					idOnPage.FindAllStringSubmatch(seen[path], -1))
			}
		}
	}
	for _, e := range replies.All() {
		if !strings.Contains(seen["/docs/guide/replies"], "<code>"+e.Reason+"</code>") {
			t.Errorf("/docs/guide/replies does not list %s", e.Reason)
		}
	}
	picture := regexp.MustCompile(`<img src="(/docs/[^"]*)"`)
	shown := picture.FindAllStringSubmatch(seen["/docs/guide/dashboard"], -1)
	if len(shown) == 0 {
		t.Error("/docs/guide/dashboard has no pictures")
	}
	for _, found := range shown {
		got := apptest.Stranger(t, a.URL(), found[1])
		if got.Status != http.StatusOK || got.Header.Get("Content-Type") != "image/png" ||
			!strings.HasPrefix(got.Body, "\x89PNG") {
			t.Errorf("%s: %d, %s", found[1], got.Status, got.Header)
		}
	}
	err := fs.WalkDir(docs.Pages, ".", func(file string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(file, ".md"); ok && name != "index" && seen["/docs/guide/"+name] == "" {
			t.Errorf("no link leads to docs/%s: add it to docs/index.md", file)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCommandsOfTheDocumentationRun pastes commands of /docs into a shell, in an order that makes sense.
func TestCommandsOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, id := range []string{"health", "createGateway", "createAccount", "createTemplate", "submitAs",
		"submit", "listMessages", "importSuppressions", "addSuppressions", "createList", "createSegment",
		"createCampaign", "takeDigestEvents", "computeDigestTimes", "putQueue", "explainReply", "deleteTemplate"} {
		found := shell.FindStringSubmatch(pageText(t, a.URL()+"/docs/api/"+id))
		if found == nil {
			t.Errorf("/docs/api/%s has no command", id)
			continue
		}
		command := "curl() { command curl --silent --show-error --fail-with-body \"$@\"; }\n" +
			html.UnescapeString(found[1])
		run := exec.CommandContext(ctx, "bash", "-c", command)
		run.Env = append(run.Environ(), "TOKEN="+a.Token())
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", id, err, found[1], out)
		}
	}
}

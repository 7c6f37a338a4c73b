package opensearch_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	ours "github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/opensearch"
	"github.com/postroom/postroom/outbox/search/query"
	"github.com/postroom/postroom/outbox/search/searchtest"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// open opens the index of a cluster and makes it ready.
func open(t *testing.T, c *cluster) *opensearch.Store {
	t.Helper()
	s := dial(t, c, finder)
	if _, err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func dial(t *testing.T, c *cluster, who string) *opensearch.Store {
	t.Helper()
	s, err := opensearch.Open(opensearch.Options{URL: c.address(who), Index: "mail",
		Learn: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	searchtest.Conform(t, func(t *testing.T) search.Store { return open(t, startCluster(t)) })
}

func total(t *testing.T, s *opensearch.Store) int {
	t.Helper()
	found, err := s.Search(t.Context(), search.Query{Where: query.All{}})
	if err != nil {
		t.Fatal(err)
	}
	return found.Total
}

func TestReadyNamesTheIndexForGood(t *testing.T) {
	c := startCluster(t)
	s := open(t, c)
	first, err := s.Ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, c) // another process
	same, err := other.Ready(t.Context())
	if err != nil || same != first || first == "" {
		t.Errorf("first %q, then %q, %v", first, same, err)
	}
	if _, err := s.Build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Swap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if same, err := other.Ready(t.Context()); err != nil || same != first {
		t.Errorf("after a swap %q, %v, before %q", same, err, first)
	}
	c.lost()
	if lost, err := s.Ready(t.Context()); err != nil || lost == first {
		t.Errorf("after somebody deleted it %q, %v, before %q", lost, err, first)
	}
}

// TestAnotherProcessWritesToBoth: an index is built by one process while another one writes.
func TestAnotherProcessWritesToBoth(t *testing.T) {
	c := startCluster(t)
	builder, writer := open(t, c), open(t, c)
	if err := writer.Put(t.Context(), searchtest.Mail()[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := writer.Put(t.Context(), searchtest.Mail()[1:3]); err != nil {
		t.Fatal(err)
	}
	if err := builder.Swap(t.Context()); err != nil {
		t.Fatal(err)
	}
	// it may still think that one is built
	if err := writer.Put(t.Context(), searchtest.Mail()[3:4]); err != nil {
		t.Fatal(err)
	}
	if n := total(t, writer); n != 3 {
		t.Errorf("%d documents, want those written since the build began", n)
	}
}

func TestForeignAliasIsLeftAlone(t *testing.T) {
	c := startCluster(t)
	c.foreign("somebodys", "mail")
	if _, err := dial(t, c, finder).Ready(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "choose another name") {
		t.Errorf("%v", err)
	}
}

// TestTrouble: what the cluster may do to a write. Nothing is lost, and the result shows which writes must be
// repeated.
func TestTrouble(t *testing.T) {
	rejected := `{"took":1,"errors":true,"items":[{"index":{"_index":"mail.v1","_id":"x","status":429,"error":{"type":"es_rejected_execution_exception","reason":"queue full"}}}]}`
	for name, c := range map[string]struct {
		fault http.HandlerFunc
		wait  time.Duration
		want  string
	}{
		"too many requests": {
			answers(429, "7",
				`{"error":{"type":"circuit_breaking_exception","reason":"too much"},"status":429}`), 7 * time.Second,
			"overloaded or not working"},
		"some documents not taken": {answers(200, "", rejected), 0,
			"429 es_rejected_execution_exception"},
		"an error of the server": {answers(500, "", `{"error":{"type":"x","reason":"y"}}`), 0,
			"answers 500"},
		"html of a proxy":  {answers(500, "", `<html>`), 0, "answers 500"},
		"a cut connection": {hangsUp, 0, ""},
		"an answer that is cut off": {answers(200, "", `{"took":1,"errors":fal`), 0,
			"read the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := startCluster(t)
			s := open(t, cl)
			for range 5 { // with its tries
				cl.failNext("/_bulk", c.fault)
			}
			err := s.Put(t.Context(), searchtest.Mail())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if f, ok := errors.AsType[*ours.Error](err); c.wait > 0 && (!ok || f.RetryAfter != c.wait ||
				f.Kind != ours.Unavailable) {
				t.Errorf("%#v, want to come back after %v", f, c.wait)
			}
			cl.healed()
			if err := s.Put(t.Context(), searchtest.Mail()); err != nil {
				t.Fatal(err)
			}
			if n := total(t, s); n != 5 {
				t.Errorf("%d documents after another try", n)
			}
		})
	}
}

// TestPoisonedDocument: a document that the cluster refuses permanently does not keep the others out.
func TestPoisonedDocument(t *testing.T) {
	s := open(t, startCluster(t))
	docs := searchtest.Mail()
	docs[1].Subject = "poison"
	if err := s.Put(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if n := total(t, s); n != 4 {
		t.Errorf("%d documents, want all but one", n)
	}
}

func TestWrongPassword(t *testing.T) {
	c := startCluster(t)
	_, err := dial(t, c, "finder:wr0ng@").Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "401 security_exception") ||
		strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("%v", err)
	}
}

func TestLargeBatchesAreSplit(t *testing.T) {
	c := startCluster(t)
	s := open(t, c)
	var docs []search.Document
	for i := range 1200 {
		d := searchtest.Mail()[0]
		d.QueueID, d.Text = searchtest.ID(i), strings.Repeat("parcel ", 900)
		docs = append(docs, d)
	}
	if err := s.Put(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	bulks := c.countRequests("POST", "/_bulk")
	if n := total(t, s); n != 1200 || bulks < 4 {
		t.Errorf("%d documents in %d requests", n, bulks)
	}
}

func TestTheSearchIndexIsNoMetadataService(t *testing.T) {
	s, err := opensearch.Open(opensearch.Options{URL: "http://169.254.169.254"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Ready(t.Context()); !errors.Is(err, dialing.ErrRefused) {
		t.Error(err)
	}
}

// TestSearchInEveryProcess: with an index in a cluster, one instance takes mail, and another delivers and
// indexes. All that serve the API search. The cluster is unavailable at first, and fails later.
func TestSearchInEveryProcess(t *testing.T) {
	relay, redis, c := testsmtp.Start(t, testsmtp.Options{}), testredis.Server(t), startCluster(t)
	run := func(role string) *api.Client {
		return apptest.Start(t, map[string]string{"role": role, "redis.url": redis.URL(), "smtp": relay.URL(),
			"token": "0123456789abcdef0123456789abcdef", "documents.store": "opensearch",
			"documents.url": c.address(finder)}).Client
	}
	for range 3 {
		c.failNext("/_alias/postroom", hangsUp)
	}
	door, other := run("api"), run("api")
	run("worker")
	_, err := api.Submit.Do(t.Context(), door, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Subject: "Your invoice", Text: "a parcel"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*api.Client{door, other} {
		finds(t, p, "status:sent parcel")
	}
	if b, err := api.RebuildDocuments.Do(t.Context(), other); err != nil {
		t.Fatalf("%+v, %v", b, err)
	}
	eventually(t, "the index is rebuilt", func() bool {
		s, err := api.GetDocuments.Do(t.Context(), door)
		return err == nil && s.Rebuild != nil && s.Rebuild.Status == "done"
	})
	finds(t, other, "status:sent parcel")
	c.lost()
	finds(t, door, "status:sent subject:invoice") // from the email log
}

// finds waits until a query finds one message.
func finds(t *testing.T, client *api.Client, q string) {
	t.Helper()
	eventually(t, q+" finds it", func() bool {
		page, err := api.SearchDocuments.Do(t.Context(), client, api.DocumentQuery{Q: q})
		return err == nil && page.Total == 1
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(3 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("not in time: " + what)
		}
	}
}

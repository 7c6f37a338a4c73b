package searchtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

// Conform holds an implementation to what search.Store promises. open makes an empty store; it is called
// for each test.
func Conform(t *testing.T, open func(t *testing.T) search.Store) {
	for name, test := range map[string]func(*testing.T, search.Store){
		"finds":                         finds,
		"finds nothing in nothing":      findsNothing,
		"gives documents back":          givesBack,
		"newest first, in pages":        pages,
		"a long tie":                    longTie,
		"the best first":                relevance,
		"facets":                        facets,
		"accounts see their own":        accounts,
		"a document is replaced":        replaces,
		"the highest revision stays":    revisions,
		"a text that is not known":      unknownText,
		"twice in one batch":            twice,
		"forgets what is old":           forgets,
		"deletes by id":                 deletes,
		"walks over all":                walks,
		"is rebuilt":                    rebuilds,
		"a build that is given up":      dropped,
		"a build is begun again":        begunAgain,
		"many documents, many segments": many,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// put writes documents or ends the test.
func put(t *testing.T, w search.Writer, docs ...search.Document) {
	t.Helper()
	if err := w.Put(t.Context(), docs); err != nil {
		t.Fatalf("put %d documents: %v", len(docs), err)
	}
}

// find asks or ends the test.
func find(t *testing.T, x search.Index, s search.Query) search.Found {
	t.Helper()
	found, err := x.Search(t.Context(), s)
	if err != nil {
		t.Fatalf("search %+v: %v", s, err)
	}
	return found
}

// parse reads a query or ends the test. Its now is a day after Began.
func parse(t *testing.T, text string) query.Node {
	t.Helper()
	n, err := query.Parse(text, Began.Add(24*time.Hour))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

// ids are the documents of an answer, in order, by number.
func ids(found search.Found) []int {
	var all []int
	for _, h := range found.Hits {
		n := 0
		_, _ = fmt.Sscanf(h.QueueID[21:], "%05d", &n)
		all = append(all, n)
	}
	return all
}

func finds(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	for text, want := range map[string][]int{
		"":                                      {4, 3, 2, 1, 0},
		"invoice":                               {4, 3, 1, 0},
		"INVOICE your":                          {3, 1, 0},
		`"your invoice"`:                        {3, 0},
		`"invoice your"`:                        nil,
		`"invoice invoice"`:                     {4},
		`"invoice no 2030 17"`:                  {0},
		"invoice -order":                        {4, 3, 0},
		"-invoice":                              {2},
		"-invoice -crème":                       nil,
		"order OR sale":                         {3, 1},
		"(order OR sale) -parcel":               {3},
		"inv*":                                  {4, 3, 1, 0},
		"xylo*":                                 nil,
		"2030-1*":                               {0},
		"text:2030-1*":                          {0},
		"2030-2*":                               nil,
		"crème-brû*":                            {2},
		"brûlée-crè*":                           nil,
		"your-invoice-f*":                       {0},
		"brulee":                                {2},
		"Brûlée":                                {2},
		"strasse":                               {2},
		"東京":                                    {2},
		"京東":                                    nil,
		"12.50":                                 {0},
		"to:ann@example.com":                    {3, 0},
		"to:ANN@EXAMPLE.COM":                    {3, 0},
		"to:ann":                                {3, 0},
		"to:ann*":                               {3, 1, 0},
		"to:example.com":                        {3, 1, 0},
		"to:@example.com":                       {3, 1, 0},
		"to:mail.example.com":                   {1},
		"to:com":                                nil,
		"to:carl@müller.example":                {2},
		"ann@example.com":                       {3, 0},
		"bob":                                   {1},
		"from:shop.test":                        {1, 0},
		"from:billing":                          {0},
		"from:ann":                              nil,
		"subject:invoice":                       {0},
		`subject:"invoice for january"`:         {0},
		"text:invoice":                          {4, 3, 1, 0},
		"subject:spr*":                          {3},
		"status:sent":                           {1, 0},
		"status:dead OR status:failed":          {4, 3},
		"-status:sent":                          {4, 3, 2},
		"lane:bulk":                             {4, 3},
		"tag:invoice":                           {0},
		`tag:"Spring Sale"`:                     {3, 1},
		`tag:"spring sale"`:                     nil,
		"tag:Spr*":                              {3, 1},
		"account:shop":                          {1, 0},
		"account:Shop":                          {2},
		"gateway:eu-1":                          {1, 0},
		"gateway:eu*":                           {1, 0},
		"code:eenvelope":                        {3},
		"code:550":                              {3},
		"code:EAUTH":                            {4},
		"id:" + ID(2):                           {2},
		ID(2):                                   {2},
		"id:<M1@shop.test>":                     {1},
		"m1@shop.test":                          {1},
		"id:key-1":                              {4},
		"id:m1*":                                {1},
		"after:2030-01-01T15:00":                {4, 3},
		"after:2030-01-01T15:00:01":             {4},
		"before:2030-01-01T15:00":               {2, 1, 0},
		"before:2030-01-01":                     nil,
		"after:2030-01-01 before:2030-01-02":    {4, 3, 2, 1, 0},
		"before:22h":                            {1, 0},
		"-after:22h":                            {1, 0},
		"after:22h invoice":                     {4, 3},
		`status:sent to:example.com "dear bob"`: {1},
	} {
		found := find(t, x, search.Query{Where: parse(t, text), Size: 10})
		if diff := cmp.Diff(want, ids(found)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if found.Total != len(want) {
			t.Errorf("%q: a total of %d, want %d", text, found.Total, len(want))
		}
	}
}

func findsNothing(t *testing.T, x search.Store) {
	found := find(t, x, search.Query{Where: query.All{}, Size: 10, Facets: true})
	if found.Total != 0 || len(found.Hits) != 0 || len(found.Facets[query.Status]) != 0 {
		t.Errorf("an empty index answers %+v", found)
	}
	size, err := x.Size(t.Context())
	if err != nil || size.Documents != 0 {
		t.Errorf("an empty index has the size %+v, %v", size, err)
	}
	put(t, x)
}

func givesBack(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	for i, want := range Mail() {
		found := find(t, x, search.Query{Where: parse(t, "id:"+ID(i)), Size: 1})
		if len(found.Hits) != 1 {
			t.Fatalf("document %d: %d hits", i, len(found.Hits))
		}
		if diff := cmp.Diff(want, found.Hits[0].Document); diff != "" {
			t.Errorf("document %d (-want +got):\n%s", i, diff)
		}
	}
	size, err := x.Size(t.Context())
	if err != nil || size.Documents != 5 {
		t.Errorf("size %+v, %v, want 5 documents", size, err)
	}
}

// pages walks over answers by page and by position.
func pages(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	for name, c := range map[string]struct {
		skip, size int
		want       []int
	}{
		"the first": {0, 2, []int{4, 3}}, "the second": {2, 2, []int{2, 1}}, "the last": {4, 2, []int{0}},
		"beyond": {6, 2, nil}, "none": {0, 0, nil},
	} {
		found := find(t, x, search.Query{Where: query.All{}, Skip: c.skip, Size: c.size})
		if diff := cmp.Diff(c.want, ids(found)); diff != "" || found.Total != 5 {
			t.Errorf("page %s: total %d (-want +got):\n%s", name, found.Total, diff)
		}
	}
	for _, relevance := range []bool{false, true} {
		s, got := search.Query{Where: parse(t, "invoice"), Size: 1, Relevance: relevance}, []int(nil)
		for range 10 {
			found := find(t, x, s)
			if found.Total != 4 {
				t.Fatalf("relevance %v: total %d", relevance, found.Total)
			}
			if len(found.Hits) == 0 {
				break
			}
			got = append(got, ids(found)...)
			at := found.Hits[len(found.Hits)-1].Position()
			s.After = &at
		}
		s.After, s.Size = nil, 10
		if diff := cmp.Diff(ids(find(t, x, s)), got); diff != "" {
			t.Errorf("relevance %v: one after the other (-at once +got):\n%s", relevance, diff)
		}
	}
}

// longTie are many documents of one moment, as a mail merge makes them.
func longTie(t *testing.T, x search.Store) {
	var docs []search.Document
	for i := range 25 {
		d := Mail()[0]
		d.QueueID = ID(i)
		docs = append(docs, d)
	}
	put(t, x, docs[10:]...)
	put(t, x, docs[:10]...)
	s, got := search.Query{Where: query.All{}, Size: 7}, []int(nil)
	for found := find(t, x, s); len(found.Hits) > 0; found = find(t, x, s) {
		got = append(got, ids(found)...)
		at := found.Hits[len(found.Hits)-1].Position()
		s.After = &at
	}
	want := make([]int, 25)
	for i := range want {
		want[i] = 24 - i
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func relevance(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	found := find(t, x, search.Query{Where: parse(t, "invoice"), Size: 10, Relevance: true})
	if found.Total != 4 || len(found.Hits) != 4 || found.Hits[0].QueueID != ID(0) {
		t.Fatalf("%d of %d, the first is %v; the one with the word in its subject comes first", len(found.Hits),
			found.Total, ids(found))
	}
	if !slices.IsSortedFunc(found.Hits, func(a, b search.Hit) int {
		return int(b.Score*1e6 - a.Score*1e6)
	}) || found.Hits[3].Score <= 0 {
		t.Errorf("scores do not fall: %+v", found.Hits)
	}
}

func facets(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	found := find(t, x, search.Query{Where: parse(t, "invoice"), Size: 1, Facets: true})
	want := map[query.Field][]search.Count{
		query.Status:  {{Value: "sent", Count: 2}, {Value: "dead", Count: 1}, {Value: "failed", Count: 1}},
		query.Account: {{Value: "news", Count: 2}, {Value: "shop", Count: 2}},
		query.Tag:     {{Value: "Spring Sale", Count: 2}, {Value: "invoice", Count: 1}, {Value: "order", Count: 1}},
		query.Lane:    {{Value: "bulk", Count: 2}, {Value: "transactional", Count: 2}},
	}
	if diff := cmp.Diff(want, found.Facets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func accounts(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	for account, want := range map[string][]int{"shop": {1, 0}, "Shop": {2}, "news": {4, 3}, "nobody": nil} {
		for _, text := range []string{"", "-xylophone", "invoice OR crème OR order",
			"account:shop OR account:Shop OR account:news"} {
			found := find(t, x, search.Query{Where: parse(t, text), Account: account, Size: 10, Facets: true})
			if diff := cmp.Diff(want, ids(found)); diff != "" {
				t.Errorf("%s asks for %q (-want +got):\n%s", account, text, diff)
			}
			for _, c := range found.Facets[query.Account] {
				if c.Value != account || c.Count != len(want) {
					t.Errorf("%s sees %+v", account, c)
				}
			}
		}
	}
}

func replaces(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	d := Mail()[2]
	d.Status, d.Revision, d.Gateway = api.StatusSent, 101, "us-1"
	put(t, x, d)
	for text, want := range map[string][]int{"status:queued": nil, "status:sent": {2, 1, 0}, "gateway:us-1": {
		3, 2}, "": {4, 3, 2, 1, 0}} {
		if diff := cmp.Diff(want,
			ids(find(t, x, search.Query{Where: parse(t, text), Size: 10}))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// revisions: a worker may write later what it read earlier than another.
func revisions(t *testing.T, x search.Store) {
	d := Mail()[2]
	d.Status, d.Revision = api.StatusSent, 200
	put(t, x, d)
	d.Status, d.Revision = api.StatusQueued, 150
	put(t, x, d, Mail()[0])
	if got := ids(find(t, x, search.Query{Where: parse(t, "status:sent"), Size: 10})); !slices.Equal(got,
		[]int{2, 0}) {
		t.Errorf("sent are %v, want 2 and 0: a lower revision replaced a higher one, or stopped another document",
			got)
	}
	d.Status, d.Revision = api.StatusDead, 200
	put(t, x, d) // the same revision: a repetition, taken or not
}

func unknownText(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	d := Mail()[2]
	d.Status, d.Revision, d.Text, d.TextKnown = api.StatusSent, 101, "", false
	put(t, x, d)
	if got := ids(find(t, x, search.Query{Where: parse(t, "status:sent text:rezept"),
		Size: 10})); !slices.Equal(got, []int{2}) {
		t.Errorf("found %v, want 2: the text is lost", got)
	}
	fresh := Mail()[0]
	fresh.QueueID, fresh.Text, fresh.TextKnown = ID(9), "", false
	put(t, x, fresh)
	found := find(t, x, search.Query{Where: parse(t, "id:"+ID(9)), Size: 1})
	if found.Total != 1 || found.Hits[0].TextKnown {
		t.Errorf("%+v, want a document without a text", found)
	}
}

func twice(t *testing.T, x search.Store) {
	a, b := Mail()[2], Mail()[2]
	a.Status, a.Revision = api.StatusSent, 101
	put(t, x, a, b)
	if found := find(t, x, search.Query{Where: parse(t, "status:sent"), Size: 10}); found.Total != 1 {
		t.Errorf("%+v, want the higher revision", found)
	}
}

func forgets(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	total := 0
	for {
		n, err := x.Forget(t.Context(), Began.Add(3*time.Hour), 2)
		if err != nil {
			t.Fatal(err)
		}
		if total += n; n == 0 {
			break
		}
		if n > 2 {
			t.Errorf("forgot %d at once, want 2 at most", n)
		}
	}
	if got := ids(find(t, x, search.Query{Where: query.All{}, Size: 10})); total != 3 ||
		!slices.Equal(got, []int{4, 3}) {
		t.Errorf("forgot %d, %v are left, want 3 and [4 3]", total, got)
	}
}

func deletes(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	if err := x.Delete(t.Context(), []string{ID(1), ID(3), "unknown"}); err != nil {
		t.Fatal(err)
	}
	if err := x.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, x, Mail()[1])
	if got := ids(find(t, x, search.Query{Where: query.All{}, Size: 10})); !slices.Equal(got,
		[]int{4, 2, 1, 0}) {
		t.Errorf("left are %v", got)
	}
}

// walk collects all documents, by number.
func walk(t *testing.T, x search.Index) []int {
	t.Helper()
	all := search.Found{}
	err := x.Walk(t.Context(), func(docs []search.Document) error {
		for _, d := range docs {
			all.Hits = append(all.Hits, search.Hit{Document: d})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	numbers := ids(all)
	slices.Sort(numbers)
	return numbers
}

func walks(t *testing.T, x search.Store) {
	put(t, x, Mail()...)
	if got := walk(t, x); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("walked over %v", got)
	}
}

func rebuilds(t *testing.T, x search.Store) {
	put(t, x, Mail()[:3]...)
	w, err := x.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, x, Mail()[3]) // reaches both
	put(t, w, Mail()[0], Mail()[4])
	known := Mail()[2]
	known.Status, known.Revision, known.Text, known.TextKnown = api.StatusSent, 101, "", false
	put(t, x, known) // its text comes from the index in use
	if got := ids(find(t, x, search.Query{Where: query.All{}, Size: 10})); !slices.Equal(got,
		[]int{3, 2, 1, 0}) {
		t.Errorf("while it is built, %v are found", got)
	}
	if err := x.Swap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ids(find(t, x, search.Query{Where: query.All{}, Size: 10})); !slices.Equal(got,
		[]int{4, 3, 2, 0}) {
		t.Errorf("after the swap, %v are found", got)
	}
	if found := find(t, x, search.Query{Where: parse(t, "status:sent rezept"),
		Size: 10}); found.Total != 1 {
		t.Errorf("the text of a document that was put while the index was built is lost")
	}
	put(t, x, Mail()[1])
	if got := walk(t, x); len(got) != 5 {
		t.Errorf("after the swap, there are %v", got)
	}
	if err := x.Swap(t.Context()); err == nil {
		t.Error("an index was swapped with nothing")
	}
}

func dropped(t *testing.T, x search.Store) {
	put(t, x, Mail()[:2]...)
	w, err := x.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, Mail()[4])
	for range 2 {
		if err := x.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Put(t.Context(), Mail()[3:4]); err == nil {
		t.Error("an index that was dropped takes documents")
	}
	put(t, x, Mail()[2])
	if got := walk(t, x); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("there are %v", got)
	}
}

func begunAgain(t *testing.T, x search.Store) {
	put(t, x, Mail()[:2]...)
	first, err := x.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, first, Mail()[4])
	second, err := x.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, second, Mail()[3])
	if err := first.Put(t.Context(), Mail()[2:3]); err == nil {
		t.Error("the first of two indexes begun takes documents")
	}
	if err := x.Swap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := walk(t, x); !slices.Equal(got, []int{3}) {
		t.Errorf("there are %v", got)
	}
}

// many: documents in many batches, each changed once, all found.
func many(t *testing.T, x search.Store) {
	const batches, each = 20, 60
	for round := range 2 {
		for b := range batches {
			var docs []search.Document
			for i := range each {
				n := b*each + i
				d := Mail()[0]
				d.QueueID, d.Created, d.Revision = ID(n), Began.Add(time.Duration(n)*time.Second), int64(100+round)
				d.Subject, d.Status = fmt.Sprintf("Number %d", n), []api.MessageStatus{api.StatusQueued,
					api.StatusSent}[round]
				docs = append(docs, d)
			}
			put(t, x, docs...)
		}
	}
	found := find(t, x, search.Query{Where: parse(t, "status:sent number"), Size: 3, Skip: 500,
		Facets: true})
	if diff := cmp.Diff([]int{699, 698, 697}, ids(found)); diff != "" || found.Total != batches*each {
		t.Errorf("total %d (-want +got):\n%s", found.Total, diff)
	}
	if diff := cmp.Diff([]search.Count{{Value: "sent", Count: batches * each}},
		found.Facets[query.Status]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, n := range []int{0, 77, 1199} {
		if got := ids(find(t, x, search.Query{Where: parse(t, fmt.Sprintf("subject:%d", n)),
			Size: 5})); !slices.Equal(got, []int{n}) {
			t.Errorf("number %d: found %v", n, got)
		}
	}
	if got := walk(t, x); len(got) != batches*each {
		t.Errorf("walked over %d", len(got))
	}
}

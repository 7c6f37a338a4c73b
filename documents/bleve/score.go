package bleve

import (
	"context"
	"math"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"github.com/postroom/postroom/documents/query"
)

// weights are what a word counts for in each field: a subject is short, and says what a message is about.
var weights = map[query.Field]float64{query.Subject: 3, query.Text: 1, query.To: 2, query.From: 2, query.ID: 2}

// BM25's usual constants. Lengths of texts are not taken into account: what is indexed of a text is an excerpt.
const saturation = 1.2

// score says how well each document fits: BM25 over the words of the query that are wanted, in all fields in which they are looked for.
func score(ctx context.Context, snapshot *scorch.IndexSnapshot, found []part, n query.Node) error {
	total, err := snapshot.DocCount()
	if err != nil {
		return err
	}
	for i := range found {
		found[i].scores = make(map[uint32]float64, min(found[i].numbers.GetCardinality(), 1<<16))
	}
	for field, weight := range weights {
		for _, mark := range query.Marks(n, field) {
			for _, word := range wordsOf(mark) {
				if err := scoreWord(ctx, snapshot, found, string(field), word, weight, float64(total)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wordsOf are the words of a step. What merely begins so does not count.
func wordsOf(n query.Node) []string {
	switch n := n.(type) {
	case query.Term:
		return []string{n.Value}
	case query.Phrase:
		return n.Words
	}
	return nil
}

func scoreWord(ctx context.Context, snapshot *scorch.IndexSnapshot, found []part, field, word string, weight, total float64) error {
	with := 0.0
	for _, segment := range snapshot.Segments() {
		d, err := segment.Segment().Dictionary(field)
		if err != nil {
			return err
		}
		list, err := d.PostingsList([]byte(word), segment.Deleted(), nil)
		if err != nil {
			return err
		}
		with += float64(list.Count())
	}
	rare := weight * math.Log(1+(total-with+0.5)/(with+0.5))
	for _, f := range found {
		if err := scoreSegment(ctx, f, field, word, rare); err != nil {
			return err
		}
	}
	return nil
}

func scoreSegment(ctx context.Context, f part, field, word string, rare float64) error {
	d, err := f.segment.Segment().Dictionary(field)
	if err != nil {
		return err
	}
	list, err := d.PostingsList([]byte(word), f.segment.Deleted(), nil)
	if err != nil {
		return err
	}
	postings := list.Iterator(true, false, false, nil)
	for i := 0; ; i++ {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := postings.Next()
		if err != nil || p == nil {
			return err
		}
		if number := uint32(p.Number()); f.numbers.Contains(number) {
			often := float64(max(p.Frequency(), 1))
			f.scores[number] += rare * often * (saturation + 1) / (often + saturation)
		}
	}
}

package bleve

import (
	"context"
	"math"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"github.com/postroom/postroom/outbox/search/query"
)

// weights are the weights of a word in each field. A subject is short and describes the message.
var weights = map[query.Field]float64{query.Subject: 3, query.Text: 1, query.To: 2, query.From: 2,
	query.ID: 2}

// BM25's usual constants. Text lengths are ignored: the index has only excerpts of texts.
const saturation = 1.2

// score returns the BM25 score of each document, over the positive words of the query in all their fields.
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

// wordsOf returns a step's words, except for prefixes.
func wordsOf(n query.Node) []string {
	switch n := n.(type) {
	case query.Term:
		return []string{n.Value}
	case query.Phrase:
		if n.Prefix {
			return n.Words[:len(n.Words)-1]
		}
		return n.Words
	}
	return nil
}

func scoreWord(ctx context.Context, snapshot *scorch.IndexSnapshot, found []part, field, word string, weight,
	total float64) error {
	with := 0.0
	for _, segment := range snapshot.Segments() {
		list, err := postingsOf(segment, field, word)
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
	list, err := postingsOf(f.segment, field, word)
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

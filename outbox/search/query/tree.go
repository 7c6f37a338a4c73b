package query

import "time"

// Field is a field of the index that a step looks at.
type Field string

// The fields of the index. Subject and Text hold words, in order; the others hold whole values, each an
// alternative.
const (
	Subject Field = "subject"
	Text    Field = "text"
	To      Field = "to"      // each recipient's address, local part, domain; folded
	From    Field = "from"    // as To
	Status  Field = "status"  // as the email log names it
	Lane    Field = "lane"    // as the API names it
	Account Field = "account" // as it is written
	Gateway Field = "gateway" // as it is written
	Tag     Field = "tag"     // as it is written
	Code    Field = "code"    // error name, in capitals, and SMTP code
	ID      Field = "id"      // queue id, Message-ID, idempotency key; by FoldID
)

// Node is a step of a query.
type Node interface{ node() }

// The steps of a query.
type (
	// All matches every document.
	All struct{}
	// None matches no document.
	None struct{}
	// And matches documents that all of its parts match. It has at least two parts.
	And []Node
	// Or matches documents that any of its parts matches. It has at least two parts.
	Or []Node
	// Not matches documents that its part does not match.
	Not struct{ Part Node }
	// Term matches documents with a value, or a word, in a field.
	Term struct {
		Field Field
		Value string
	}
	// Prefix matches documents with a value, or a word, with a prefix.
	Prefix struct {
		Field Field
		Value string
	}
	// Phrase matches documents with consecutive words. It has at least two words.
	Phrase struct {
		Field  Field
		Words  []string
		Prefix bool // the last term is the beginning of a word
	}
	// Created matches documents by the acceptance time of their message.
	Created struct {
		From  time.Time // this time or later; zero means no limit
		Until time.Time // before this time; zero means no limit
	}
)

func (All) node()     {}
func (None) node()    {}
func (And) node()     {}
func (Or) node()      {}
func (Not) node()     {}
func (Term) node()    {}
func (Prefix) node()  {}
func (Phrase) node()  {}
func (Created) node() {}

// Both returns a query for the documents that both a and b match.
func Both(a, b Node) Node {
	if _, ok := a.(All); ok {
		return b
	}
	if _, ok := b.(All); ok {
		return a
	}
	var all And
	for _, n := range []Node{a, b} {
		if part, ok := n.(And); ok {
			all = append(all, part...)
		} else {
			all = append(all, n)
		}
	}
	return all
}

// anyOf returns one step of alternatives.
func anyOf(nodes []Node) Node {
	switch len(nodes) {
	case 0:
		return None{}
	case 1:
		return nodes[0]
	}
	return Or(nodes)
}

// Marks returns the steps of a query to highlight in a field. Negations are not highlighted.
func Marks(n Node, field Field) []Node {
	switch n := n.(type) {
	case And:
		return marksOf(n, field)
	case Or:
		return marksOf(n, field)
	case Term:
		return only(n, n.Field == field)
	case Prefix:
		return only(n, n.Field == field)
	case Phrase:
		return only(n, n.Field == field)
	}
	return nil
}

func marksOf(parts []Node, field Field) []Node {
	var marks []Node
	for _, part := range parts {
		marks = append(marks, Marks(part, field)...)
	}
	return marks
}

func only(n Node, ok bool) []Node {
	if !ok {
		return nil
	}
	return []Node{n}
}

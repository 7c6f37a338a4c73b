package query

import "time"

// Field is a field of the index that a step looks at.
type Field string

// The fields of the index. Subject and Text hold words, in order; the others hold whole values, each an alternative.
const (
	Subject Field = "subject"
	Text    Field = "text"
	To      Field = "to"      // of each recipient: address, local part, domain; folded
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

// The steps.
type (
	// All finds every document.
	All struct{}
	// None finds no document.
	None struct{}
	// And finds what every one of its parts finds. It has two parts or more.
	And []Node
	// Or finds what any of its parts finds. It has two parts or more.
	Or []Node
	// Not finds everything but what its part finds.
	Not struct{ Part Node }
	// Term finds documents with a value, or a word, in a field.
	Term struct {
		Field Field
		Value string
	}
	// Prefix finds documents with a value, or a word, that begins so.
	Prefix struct {
		Field Field
		Value string
	}
	// Phrase finds documents with these words one after the other. It has two words or more.
	Phrase struct {
		Field Field
		Words []string
	}
	// Created finds documents by when their message was accepted.
	Created struct {
		From  time.Time // this moment or later; zero: no bound
		Until time.Time // before this moment; zero: no bound
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

// Both finds what two queries find.
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

// anyOf makes one step of alternatives.
func anyOf(nodes []Node) Node {
	switch len(nodes) {
	case 0:
		return None{}
	case 1:
		return nodes[0]
	}
	return Or(nodes)
}

// Marks are the steps of a query that point at words of a field in what it finds: those to be highlighted. Negations point at nothing.
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

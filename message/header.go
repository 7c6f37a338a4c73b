package message

import "strings"

// Header is one header field as a person would read it: the value is neither encoded nor folded.
type Header struct {
	Name  string
	Value string
}

// Columns of a header line. RFC 5322 section 2.1.1 asks for 78 at most, RFC 2047 section 2 for 76 where encoded words are; 998 is the hard
// limit of what a relay must carry.
const (
	maxColumns = 76
	maxLine    = 998
)

// headerWriter writes header fields and folds them: a line passes 76 columns only where one word alone does, such as a URL.
type headerWriter struct {
	buf   []byte
	col   int  // columns written in this line
	bare  bool // nothing but the field's name is in this line
	keeps bool // the first word stays in the line of the name
}

// text writes a field for people, such as Subject: whatever would not survive as it is becomes encoded words, down to runs of blanks, words
// too long for a line, and text that merely looks like an encoded word.
func (w *headerWriter) text(name, value string) {
	w.begin(name)
	w.unstructured(strings.Split(value, " "), needsEncodingInText)
	w.end()
}

// field writes any other field. ASCII is encoded only where it looks like an encoded word, since programs read these fields: the URL in a
// List-Unsubscribe has to stay whole.
func (w *headerWriter) field(name, value string) {
	w.begin(name)
	w.unstructured(strings.Split(strings.Trim(value, " \t"), " "), needsEncoding)
	w.end()
}

// identifiers writes a field of message ids. The first stays beside the name, however long: some programs look no further.
func (w *headerWriter) identifiers(name string, ids ...string) {
	w.begin(name)
	w.keeps = true
	for _, id := range ids {
		w.word(" ", id)
	}
	w.end()
}

func (w *headerWriter) begin(name string) {
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, ':')
	w.col, w.bare, w.keeps = len(name)+1, true, false
}

func (w *headerWriter) end() { w.buf = append(w.buf, "\r\n"...) }

// take returns what was written and starts anew.
func (w *headerWriter) take() []byte {
	field := w.buf
	w.buf = nil
	return field
}

// word writes blanks and a word, in a new line when this one is full.
func (w *headerWriter) word(space, word string) {
	if w.col+len(space)+len(word) > maxColumns && w.mayFold(len(space)+len(word)) {
		w.buf = append(w.buf, "\r\n"...)
		w.col = 0
	}
	w.buf = append(w.buf, space...)
	w.buf = append(w.buf, word...)
	w.col += len(space) + len(word)
	w.bare = w.bare && word == ""
}

// mayFold reports whether a line may end before a word of this size. Right after the name that is worth it only if the word then fits.
func (w *headerWriter) mayFold(size int) bool {
	if !w.bare || w.col+size > maxLine {
		return true
	}
	return !w.keeps && size <= maxColumns
}

// unstructured writes words separated by one blank each; an empty word stands for one more blank. What lies between the first and the last
// word that needs encoding is encoded in one run, because blanks between two encoded words are no part of the text (RFC 2047 section 6.2).
func (w *headerWriter) unstructured(words []string, needs func(string) bool) {
	from, to := runToEncode(words, needs)
	w.plain(words[:from])
	if from < to {
		w.encoded(strings.Join(words[from:to], " "))
	}
	w.plain(words[to:])
}

func (w *headerWriter) plain(words []string) {
	space := " "
	for _, word := range words {
		if word == "" { // blanks travel with the word after them: a line of nothing but blanks would end the header for some
			space += " "
			continue
		}
		w.word(space, word)
		space = " "
	}
}

func (w *headerWriter) encoded(s string) {
	room := maxColumns - w.col - 1
	if room < minEncodedWord {
		room = maxEncodedWord
	}
	for _, word := range encodeWords(s, room) {
		w.word(" ", word)
	}
}

// runToEncode returns the words to encode, words[from:to].
func runToEncode(words []string, needs func(string) bool) (from, to int) {
	from, to = len(words), len(words)
	for i, word := range words {
		if !needs(word) {
			continue
		}
		if from == len(words) {
			from = i
		}
		to = i + 1
	}
	if to-from == 1 && words[from] == "" && len(words) > 1 { // a blank too many is encoded together with a neighbour
		if to < len(words) {
			to++
		} else {
			from--
		}
	}
	return from, to
}

func needsEncoding(word string) bool {
	return !isASCII(word) || strings.Contains(word, "=?")
}

func needsEncodingInText(word string) bool {
	return word == "" || len(word) >= maxColumns || strings.IndexByte(word, '\t') >= 0 || needsEncoding(word)
}

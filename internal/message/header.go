package message

import (
	"iter"
	"slices"
	"strings"
)

// Header is a header field with its value decoded and unfolded.
type Header struct {
	Name  string
	Value string
}

// Columns of a header line. RFC 5322 section 2.1.1 recommends at most 78. RFC 2047 section 2 allows 76 with
// encoded words. Relays must carry up to 998.
const (
	maxColumns = 76
	maxLine    = 998
)

// headerWriter writes and folds header fields. A line exceeds 76 columns only if a single word does, such as
// a URL.
type headerWriter struct {
	buf   []byte
	col   int  // columns written in this line
	bare  bool // only the field's name is in this line
	keeps bool // the first word stays on the line of the name
}

// text writes an unstructured field such as Subject. Text that would not survive is encoded: non-ASCII, runs
// of blanks, words too long for a line, and text that looks like an encoded word.
func (w *headerWriter) text(name, value string) {
	w.begin(name)
	w.unstructured(strings.Split(upright(value), " "), needsEncodingInText)
	w.end()
}

// field writes any other field. ASCII is encoded only if it looks like an encoded word: programs read these
// fields, and the URL of a List-Unsubscribe must stay whole.
func (w *headerWriter) field(name, value string) {
	w.begin(name)
	if value = strings.Trim(value, " \t"); needsEncoding(value) {
		w.unstructured(strings.Split(value, " "), needsEncoding)
	} else {
		w.plain(strings.SplitSeq(value, " "))
	}
	w.end()
}

// identifiers writes a field of message ids. The first id stays on the line of the name: some programs read
// only that line.
// Without ids it writes nothing.
func (w *headerWriter) identifiers(name string, ids ...string) {
	if len(ids) == 0 || ids[0] == "" {
		return
	}
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

// word writes blanks and a word, on a new line if this one is full.
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

// mayFold reports whether a line may end before a word of this size. Right after the name it may only if the
// word then fits.
func (w *headerWriter) mayFold(size int) bool {
	if !w.bare || w.col+size > maxLine {
		return true
	}
	return !w.keeps && size <= maxColumns
}

// unstructured writes words separated by one blank; an empty word is one more blank. All words from the first
// to the last one that needs encoding are encoded together: blanks between two encoded words are not part of
// the text (RFC 2047 section 6.2).
func (w *headerWriter) unstructured(words []string, needs func(string) bool) {
	from, to := runToEncode(words, needs)
	w.plain(slices.Values(words[:from]))
	if from < to {
		w.encoded(strings.Join(words[from:to], " "))
	}
	w.plain(slices.Values(words[to:]))
}

func (w *headerWriter) plain(words iter.Seq[string]) {
	space := " "
	for word := range words {
		if word == "" { // blanks stay with the next word: a line of blanks can end the header
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
	for _, word := range encodeWords(s, room, maxEncodedWord) {
		w.word(" ", word)
	}
}

// enclosed writes encoded words between two texts that stick to them.
func (w *headerWriter) enclosed(before, s, after string) {
	words := encodeWords(s, maxEncodedWord-len(before)-len(after), maxEncodedWord-len(after))
	words[0] = before + words[0]
	words[len(words)-1] += after
	for _, word := range words {
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
	// an extra blank is encoded together with a neighbour
	if to-from == 1 && words[from] == "" && len(words) > 1 {
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

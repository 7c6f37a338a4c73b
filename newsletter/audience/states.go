package audience

import "encoding/binary"

// chunkStates are the states of a list in a chunk, as lua/write.lua stores them.
type chunkStates struct {
	sparse []byte // an offset of two bytes and a state, in order
	dense  []byte // two bits of each subscriber; nil: they are sparse
}

// readStates reads what lua/write.lua wrote. An empty text has no states.
func readStates(text string) (chunkStates, error) {
	switch {
	case text == "":
		return chunkStates{}, nil
	case text[0] == 'd' && len(text) == 1+chunkSize/4:
		return chunkStates{dense: []byte(text[1:])}, nil
	case text[0] == 's' && len(text)%3 == 1:
		return chunkStates{sparse: []byte(text[1:])}, nil
	}
	return chunkStates{}, errRecord
}

// offset returns the offset of a sparse member.
func (c chunkStates) offset(i int) int { return int(binary.BigEndian.Uint16(c.sparse[3*i:])) }

// pages returns the pages of the chunk that have a subscriber of a state; of any, if it is None.
func (c chunkStates) pages(state State) []int {
	var pages []int
	add := func(page int) {
		if n := len(pages); n == 0 || pages[n-1] != page {
			pages = append(pages, page)
		}
	}
	for i := range len(c.sparse) / 3 {
		if state == None || State(c.sparse[3*i+2]) == state {
			add(c.offset(i) / pageSize)
		}
	}
	for i, b := range c.dense {
		for ; b != 0; b >>= 2 {
			if has := State(b & 3); has != None && (state == None || has == state) {
				add(i * 4 / pageSize)
				break
			}
		}
	}
	return pages
}

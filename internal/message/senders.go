package message

import "bytes"

// HeaderAddress is an address in a field of a header.
type HeaderAddress struct {
	Field   string // its name, such as From
	Address string // as written
}

// sendingFields are the fields that name authors and senders (RFC 5322 sections 3.6.2 and 3.6.6).
var sendingFields = map[string]string{
	"from": "From", "sender": "Sender", "resent-from": "Resent-From", "resent-sender": "Resent-Sender",
}

// Senders returns all authors and senders that the header of a composed message names, in its order. A field
// that can't be read is one whose address is empty.
func Senders(composed []byte) []HeaderAddress {
	header := composed
	if end := bytes.Index(composed, []byte("\r\n\r\n")); end >= 0 {
		header = composed[:end+2]
	}
	var f faults
	var all []HeaderAddress
	for _, field := range f.parseFields(header) {
		name := sendingFields[field.name]
		if name == "" {
			continue
		}
		list, err := ParseAddressList(field.value())
		if err != nil || len(list) == 0 {
			all = append(all, HeaderAddress{Field: name})
		}
		for _, a := range list {
			all = append(all, HeaderAddress{Field: name, Address: a.Address})
		}
	}
	return all
}

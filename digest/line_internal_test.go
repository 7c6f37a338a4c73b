package digest

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// FuzzReadLine: a line that is read is written as it was meant, and other text is refused.
func FuzzReadLine(f *testing.F) {
	whole := line{returned: 1, id: "01234567890123456789", entityType: `a "post"`, entityID: `\3`,
		at: 1795000000000, priority: 3, actorID: "u77", actorName: "Ann Smïth", title: "A walk by the lake",
		url: "https://a.example/3", payload: []byte(`{"a":[1,"2"]}`)}
	f.Add(whole.text())
	f.Add(line{}.text())
	for _, bad := range []string{"", "[", "[]", "{}", "[0,1]", `["0","","",""]`, "[1e3]",
		whole.text()[:40], `[0,"","","",0,0,"","","","","",]`, `[0,"","","",0,0,"","","","","",{},1]`} {
		f.Add(bad)
		if _, err := readLine(bad); err == nil {
			f.Errorf("%q is read", bad)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := readLine(text)
		if err != nil {
			return
		}
		said := first.entityType + first.entityID + first.id + first.actorID + first.actorName + first.actURL +
			first.title + first.url
		if strings.ContainsFunc(said, unicode.IsControl) {
			return // check refuses it
		}
		second, err := readLine(first.text())
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%q is %+v, and then %+v, %v", text, first, second, err)
		}
	})
}

package audience_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// bring imports a file without errors.
func (b *bench) bring(t testing.TB, file string, o api.SubscriberImportOptions) api.SubscriberImport {
	t.Helper()
	got, err := b.Imports.Run(t.Context(), "", strings.NewReader(file), o)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != "done" || got.Lines != got.Added+got.Changed+got.Known+got.Repeated+got.Bad {
		t.Errorf("the import ends with %+v", got)
	}
	return got
}

// export exports all subscribers of an account.
func (b *bench) export(t testing.TB, account, format string) string {
	t.Helper()
	var out bytes.Buffer
	q := api.SubscriberExportQuery{Format: format}
	q.Account = account
	if err := b.Export(t.Context(), "", q, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// people is a file of new subscribers.
func people(from, to int) string {
	var file strings.Builder
	file.WriteString("Email,Name,attributes.city,attributes.seats:number,attributes.plan,attributes.vip:bool,attributes.since:date\n")
	for n := from; n < to; n++ {
		fmt.Fprintf(&file, "ann.%d@mail%d.example,Ann %d,Vienna,%d,pro,yes,2029-01-02\n", n, n%100, n, n)
	}
	return file.String()
}

// subscribed are options that put all on a list.
func subscribed(lists ...string) api.SubscriberImportOptions {
	return api.SubscriberImportOptions{ListID: lists, State: "subscribed", Consent: "I want news"}
}

// TestImportOfFiles: the forms of files, and the reports about their errors.
func TestImportOfFiles(t *testing.T) {
	const ann = `{"email":"ann@example.net","name":"Jürgen"}`
	for name, c := range map[string]struct {
		file   string
		o      api.SubscriberImportOptions
		want   string // added bad repeated, delimiter charset
		errors string // line: reason; separated by /
		person string // ann@example.net, as JSON
	}{
		"plain": {"email,name\nann@example.net,Jürgen\n", api.SubscriberImportOptions{}, "1 0 0 , utf-8",
			"", ann},
		"no last break": {"email;name\r\nann@example.net;Jürgen", api.SubscriberImportOptions{}, "1 0 0 ; utf-8",
			"", ann},
		"BOM":          {"\uFEFFe-mail\tFull Name\nann@example.net\tJürgen\n", api.SubscriberImportOptions{}, "1 0 0 tab utf-8", "", ann},
		"Windows-1252": {"E-Mail Address|name\nann@example.net|J\xfcrgen\n", api.SubscriberImportOptions{}, "1 0 0 | windows-1252", "", ann},
		"UTF-16LE BOM": {wide("\uFEFFemail,name\r\nann@example.net,Jürgen\r\n", binary.LittleEndian), api.SubscriberImportOptions{}, "1 0 0 , utf-16le", "", ann},
		"UTF-16BE": {wide("email;name\nann@example.net;Jürgen\n", binary.BigEndian), api.SubscriberImportOptions{},
			"1 0 0 ; utf-16be", "", ann},
		"given charset": {"email,name\nann@example.net,J\xc3\xbcrgen\n", api.SubscriberImportOptions{Charset: "windows-1252"}, "1 0 0 , windows-1252", "",
			`{"email":"ann@example.net","name":"JÃ¼rgen"}`},
		"two names": {"Email,First Name,Last Name\nann@example.net,Jürgen,\n", api.SubscriberImportOptions{}, "1 0 0 , utf-8", "", ann},
		"addresses only": {"ann@example.net\nbob@example.net\n", api.SubscriberImportOptions{}, "2 0 0 , utf-8",
			"", `{"email":"ann@example.net"}`},
		"line break in a cell": {"email,attributes.note\n\"ann@example.net\",\"a \"\"b\"\"\r\nc, d\"\nbob@example.net,x\n",
			api.SubscriberImportOptions{}, "2 0 0 , utf-8", "", `{"email":"ann@example.net","attributes":{"note":"a \"b\"\r\nc, d"}}`},
		"formula": {"email,attributes.note,attributes.n:number\nann@example.net,'=1+1,'-5\n", api.SubscriberImportOptions{}, "1 0 0 , utf-8", "",
			`{"email":"ann@example.net","attributes":{"n":-5,"note":"=1+1"}}`},
		"mapping": {"Mail,Seats,Tags,When\nann@example.net,3,x,2.1.2030\n",
			api.SubscriberImportOptions{Columns: "Mail:email, seats:attributes.seats:number,Tags:attributes.tags:list,When:attributes.when:date"}, "1 0 0 , utf-8", "",
			`{"email":"ann@example.net","attributes":{"seats":3,"tags":["x"],"when":"2030-01-02"}}`},
		"JSONL": {"{\"email\":\"ann@example.net\",\"tags\":[\"a\"],\"attributes\":{\"n\":1}}\n\n{\"email\":\"bob@example.net\",\"upsert\":true}\n{\n[]\n{} {}\n",
			api.SubscriberImportOptions{JSONL: true}, "1 4 0  utf-8",
			`3: has the unknown field "upsert"/4: isn't valid JSON/5: is no JSON object/6: has more than one JSON object`,
			`{"email":"ann@example.net","tags":["a"],"attributes":{"n":1}}`},
		"repeats": {"email,name\nann@example.net,Jürgen\nANN@example.net,Other\nann@EXAMPLE.net,Other\n", api.SubscriberImportOptions{}, "1 0 2 , utf-8", "", ann},
		"faults": {"email,name,attributes.n:number\nann@example.net,Jürgen,\nann\n,x,\nbob@example.net,\"a\" b,\neve@example.net,a \"b\",1\n" +
			"joe@example.net,a,1,2\nkim@example.net,a,one\nnul@example.net,\x00,\n" + strings.Repeat("x", 10<<20) + "\nlea@example.net,\xff,1\n",
			api.SubscriberImportOptions{Charset: "utf-8"}, "1 9 0 , utf-8",
			`3: email is not a valid email address: it has no @/4: has no address/5: has a quote inside a cell: such a cell begins and ends with one, and a quote in it is doubled/` +
				`6: has a quote inside a cell: such a cell begins and ends with one, and a quote in it is doubled/7: has 4 cells, and there are 3 columns/` +
				`8: attributes.n must be a number, with a point before its fraction, not "one"/9: has a NUL: is it text?/10: is longer than 65,536 bytes/11: is not in the character set of the file`, ann},
		"quote without end": {"email,name\nann@example.net,Jürgen\nbob@example.net,\"b\neve@example.net,b\n", api.SubscriberImportOptions{}, "1 1 0 , utf-8",
			"3: has a quote that does not end", ann},
		"quote without end in a long file": {"email,name\nann@example.net,Jürgen\nbob@example.net,\"b\n" + strings.Repeat("eve@example.net,b\n", 20_000),
			api.SubscriberImportOptions{}, "2 1 ",
			"3: has more than 65,536 bytes with its line breaks: does a quote not end?", ann},
		"10,000 cells": {"email,name\nann@example.net,Jürgen\nbob@example.net" + strings.Repeat(",", 10_000) + "\n", api.SubscriberImportOptions{}, "1 1 0 , utf-8",
			"3: has more than 1,000 columns", ann},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			got := b.bring(t, c.file, c.o)
			summary := fmt.Sprintf("%d %d %d %s %s", got.Added, got.Bad, got.Repeated, got.Delimiter, got.Charset)
			if !strings.HasPrefix(summary, c.want) {
				t.Errorf("%s, want %s", summary, c.want)
			}
			var faults []string
			for _, e := range got.Errors {
				faults = append(faults, fmt.Sprintf("%d: %s", e.Line, e.Reason))
			}
			if diff := cmp.Diff(c.errors, strings.Join(faults, "/")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			line, _, _ := strings.Cut(b.export(t, "", "jsonl"), "\n")
			line = strings.Replace(strings.Replace(line, `"id":"s0",`, "", 1), `,"created":"2030-01-02T03:04:05Z"`,
				"", 1)
			if diff := cmp.Diff(c.person, line); diff != "" {
				t.Errorf("the subscriber (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLineEndsOfEverySystem: CR, LF and CRLF end a line in every character set, and the lines of errors count
// each of them once. An interrupted import continues after them.
func TestLineEndsOfEverySystem(t *testing.T) {
	t.Parallel()
	charsets := map[string]func(string) string{
		"utf-8":        func(s string) string { return s },
		"utf-16le":     func(s string) string { return wide(s, binary.LittleEndian) },
		"utf-16be":     func(s string) string { return "\xfe\xff" + wide(s, binary.BigEndian) },
		"windows-1252": func(s string) string { return strings.ReplaceAll(s, "ü", "\xfc") },
	}
	for end, name := range map[string]string{"\n": "LF", "\r": "CR", "\r\n": "CRLF"} {
		for charset, encode := range charsets {
			t.Run(name+" "+charset, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				lines := []string{"email,name,attributes.note", `ann@example.net,Jürgen,"a` + "\rb\nc\r\nd" + `"`,
					"nobody", "",
					"eve@example.net,,"}
				file := encode(strings.Join(lines, end) + end)
				got, err := b.Imports.Run(t.Context(), "", iotest.OneByteReader(strings.NewReader(file)),
					api.SubscriberImportOptions{})
				if err != nil || got.Added != 2 || got.Bad != 1 || got.Errors[0].Line != 6 || got.Charset != charset ||
					got.Bytes != int64(len(file)) {
					t.Errorf("%+v, %v", got, err)
				}
				ann, err := b.Get(t.Context(), "", api.SubscriberAccount{}, "ann@example.net")
				if err != nil || ann.Name != "Jürgen" || ann.Attributes["note"] != "a\rb\nc\r\nd" {
					t.Errorf("%+v, %v", ann, err)
				}
				file = encode(strings.ReplaceAll(people(0, 5000), "\n", end))
				o := api.SubscriberImportOptions{ID: "broken"}
				if _, err := b.Imports.Run(t.Context(), "", broken{strings.NewReader(file[:len(file)/2])},
					o); err == nil {
					t.Fatal("a file that breaks off is no error")
				}
				if got := b.bring(t, file, o); got.Added != 5000 || got.Bytes != int64(len(file)) {
					t.Errorf("it goes on with %+v", got)
				}
				jsonl := encode("{\"email\":\"a@example.net\"}" + end + end + "{\"email\":\"b@example.net\"}" + end)
				if got := b.bring(t, jsonl, api.SubscriberImportOptions{JSONL: true}); got.Added != 2 {
					t.Errorf("JSONL: %+v", got)
				}
			})
		}
	}
}

// wide returns a text in UTF-16.
func wide(text string, order binary.AppendByteOrder) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// TestAnEmptyFileIsRefused: it is most often a failed export or a wrong path. Headings alone aren't an error.
func TestAnEmptyFileIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, file := range []string{"", "\uFEFF", "\n", "\r\n\r\n", "\uFEFF\r", "\xff\xfe",
		"\xff\xfe\r\x00\n\x00", "sep=;\n"} {
		for _, jsonl := range []bool{false, true} {
			_, err := b.Imports.Run(t.Context(), "", strings.NewReader(file),
				api.SubscriberImportOptions{JSONL: jsonl})
			if file == "sep=;\n" && jsonl {
				continue
			}
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "file: is empty") {
				t.Errorf("%q: %v", file, err)
			}
		}
	}
	if got := b.bring(t, "email,name\n", api.SubscriberImportOptions{}); got.Lines != 0 {
		t.Errorf("headings alone: %+v", got)
	}
}

// TestTheSeparatorLineOfExcel sets the delimiter and isn't a data line.
func TestTheSeparatorLineOfExcel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n, c := range []struct{ file, delimiter, want string }{
		{"sep=;\nemail;name\nx@a.example;A,B\n", "", ";"},
		{"\uFEFFSEP=;\r\nemail;name\r\nx@a.example;A,B\r\n", ";", ";"},
		{"\"sep=|\"\remail|name\rx@a.example|A,B\r", "", "|"},
		{"sep=\t\nemail\tname\nx@a.example\tA,B\n", "tab", "tab"},
		{"sep=:\nemail:name\nx@a.example:A,B\n", "", ":"},
		{wide("\uFEFFsep=;\r\nemail;name\r\nx@a.example;A,B\r\n", binary.LittleEndian), "", ";"},
		{"sep=,\nemail,name\nx@a.example,\"A,B\"\nbad,\n", "", ","},
	} {
		o := api.SubscriberImportOptions{Account: fmt.Sprint("a", n), Delimiter: c.delimiter}
		got := b.bring(t, c.file, o)
		x, err := b.Get(t.Context(), "", api.SubscriberAccount{Account: o.Account}, "x@a.example")
		if err != nil || x.Name != "A,B" || got.Delimiter != c.want || got.Lines != 1+got.Bad ||
			got.Bad > 0 && got.Errors[0].Line != 4 {
			t.Errorf("%q: %+v, %+v, %v", c.file, x, got, err)
		}
	}
	_, err := b.Imports.Run(t.Context(), "", strings.NewReader("sep=;\nemail;name\nx@a.example;A\n"),
		api.SubscriberImportOptions{Delimiter: ","})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "delimiter: differs") {
		t.Errorf("another delimiter: %v", err)
	}
}

// TestTwoColumnsOfOneMeaningAreRefused: the answer names both, and the option that says which one counts.
func TestTwoColumnsOfOneMeaningAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ headings, columns, first, second string }{
		{"email,email,name", "", "email", "email"},
		{"mail,E-Mail", "", "mail", "E-Mail"},
		{"Address,Recipient", "", "Address", "Recipient"},
		{"email,name,Full Name", "", "name", "Full Name"},
		{"email,First name,firstname", "", "First name", "firstname"},
		{"email,tags,Labels", "", "tags", "Labels"},
		{"email,attributes.a:number,attributes.a:number", "", "attributes.a:number", "attributes.a:number"},
		{"A,B", "A:email,B:email", "A", "B"},
		{"email,email", "email:email", "email", "email"},
		{"email,a,b", "email:email,a:attributes.x,b:attributes.x", "a", "b"},
	} {
		_, err := b.Imports.Run(t.Context(), "", strings.NewReader(c.headings+"\na@a.example,b@a.example,N\n"),
			api.SubscriberImportOptions{Columns: c.columns})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), fmt.Sprintf("%q and %q", c.first,
			c.second)) ||
			!strings.Contains(err.Error(), "option columns") {
			t.Errorf("%s: %v", c.headings, err)
		}
	}
	got := b.bring(t, "email,attributes.a,attributes.a:number\na@a.example,x,\nb@a.example,,1\nc@a.example,x,1\n",
		api.SubscriberImportOptions{})
	if got.Added != 2 || got.Bad != 1 || got.Errors[0].Reason != "has two values of attributes.a" {
		t.Errorf("two values of one attribute: %+v", got)
	}
}

// TestHeadingsInTheLanguagesOfTheForms are known: German, French and English, also as a Mac spells them.
func TestHeadingsInTheLanguagesOfTheForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n, c := range []struct{ file, name, locale string }{
		{"E-Mail-Adresse;Vorname;Nachname\na@a.example;Jürgen;Müller\n", "Jürgen Müller", ""},
		{"Vorname;Name;E-Mail;Sprache;Adresse\nJürgen;Müller;a@a.example;de;Weg 1\n", "Jürgen Müller", "de"},
		{"Vollständiger Name;E-Mail Adresse;Vorname\nDr. Jürgen Müller;a@a.example;Jürgen\n", "Dr. Jürgen Müller", ""},
		{"Prénom,Nom,Adresse e-mail,Langue\nZoé,Dupré,a@a.example,fr\n", "Zoé Dupré", "fr"},
		{"Pre\u0301nom,Nom de famille,Courriel\nZoé,Dupré,a@a.example\n", "Zoé Dupré", ""},
		{"Nom complet;Adresse électronique;Fuseau horaire\nZoé Dupré;a@a.example;Europe/Paris\n", "Zoé Dupré", ""},
		{"name,first name,last name,email,Address\nAnn,Anna,Bell,a@a.example,Street 1\n", "Ann", ""},
		{"Address,Name\na@a.example,Ann\n", "Ann", ""},
	} {
		account := fmt.Sprint("a", n)
		b.bring(t, c.file, api.SubscriberImportOptions{Account: account})
		got, err := b.Get(t.Context(), "", api.SubscriberAccount{Account: account}, "a@a.example")
		if err != nil || got.Name != c.name || got.Locale != c.locale {
			t.Errorf("%q: %+v, %v", c.file, got, err)
		}
	}
}

// TestImportRefused: faults of a whole file, or of the options.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "double")
	for name, c := range map[string]struct {
		file, want string
		o          api.SubscriberImportOptions
	}{
		"zip":       {"PK\x03\x04xxxx", "file: is a zip archive, or a spreadsheet: unpack it, or save it as CSV", api.SubscriberImportOptions{}},
		"gzip":      {"\x1f\x8bxxxx", "file: is compressed with gzip: unpack it", api.SubscriberImportOptions{}},
		"no column": {"a,b\n1,2\n", "file: has no column of addresses", api.SubscriberImportOptions{}},
		"missing column": {"a,b\n1,2\n", `file: has no column "mail"`,
			api.SubscriberImportOptions{Columns: "Mail:email"}},
		"bad mapping":    {"a,b\n1,2\n", `columns: columns has "a:x"`, api.SubscriberImportOptions{Columns: "a:x"}},
		"10,000 columns": {"email" + strings.Repeat(",a", 10_000) + "\n", "file: its first line has more than 1,000 columns", api.SubscriberImportOptions{}},
		"long headings":  {strings.Repeat("a", 10<<20), "file: its first line is longer than 65,536 bytes", api.SubscriberImportOptions{}},
		"no consent":     {"", "consent: is required with state subscribed", api.SubscriberImportOptions{ListID: []string{"weekly"}}},
		"long consent": {"", "consent: has 501 bytes", api.SubscriberImportOptions{Consent: strings.Repeat("x",
			501)}},
		"no state":     {"", "state: must be subscribed, pending or left", api.SubscriberImportOptions{State: "gone"}},
		"no existing":  {"", "existing: must be merge, skip or replace", api.SubscriberImportOptions{Existing: "drop"}},
		"no charset":   {"", "charset: must be", api.SubscriberImportOptions{Charset: "koi8"}},
		"no delimiter": {"email\n", "delimiter: must be", api.SubscriberImportOptions{Delimiter: "x"}},
		"confirm": {"", "confirm: requires state pending", api.SubscriberImportOptions{ListID: []string{"weekly"},
			Confirm: true, Consent: "x"}},
		"id": {"", "id: must be", api.SubscriberImportOptions{ID: "a b"}},
		"twice a list": {"", "listId: is there twice", api.SubscriberImportOptions{ListID: []string{"weekly",
			"weekly"}, State: "left"}},
		"no list": {"", "ListNotFound", api.SubscriberImportOptions{ListID: []string{"daily"},
			State: "left"}},
		"no account": {"", "AccountNotFound", api.SubscriberImportOptions{Account: "nobody"}},
	} {
		_, err := b.Imports.Run(t.Context(), "", strings.NewReader(c.file), c.o)
		got := fault.CodeOf(err)
		if f, ok := err.(*fault.Error); ok && len(f.Fields) > 0 {
			got = f.Fields[0].Key + ": " + f.Fields[0].Message
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %v (%s), want %s", name, err, got, c.want)
		}
	}
	if list, err := b.Imports.List(t.Context(), "", api.SubscriberAccount{}); err != nil ||
		len(list.Imports) != 0 {
		t.Errorf("refused imports are listed: %+v, %v", list, err)
	}
	if _, err := b.Imports.Run(t.Context(), "shop", strings.NewReader("x@y.example"),
		api.SubscriberImportOptions{
			Account: "other"}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("an import of another account: %v", err)
	}
}

// broken is a file that breaks off.
type broken struct{ r io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestImportGoesOn: an import that is interrupted at any place, even while a batch is written, and continued,
// makes no one twice, and counts everybody.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	file := people(0, 6000) + people(3000, 3600) + "ann\n" // more than three batches
	for _, at := range []int{0, 100, len(file) / 3} {
		b := setup(t)
		b.list(t, "weekly", "double")
		o := subscribed("weekly")
		o.ID = "big"
		if _, err := b.Imports.Run(t.Context(), "", broken{strings.NewReader(file[:at])}, o); err == nil {
			t.Fatal("a file that breaks off is no error")
		}
		// a process that dies while a batch is applied
		ctx, cancel := context.WithCancel(t.Context())
		r := io.MultiReader(strings.NewReader(file[:len(file)/2]), stopping{cancel},
			strings.NewReader(file[len(file)/2:]))
		if _, err := b.Imports.Run(ctx, "", r, o); err == nil {
			t.Fatal("an import whose context ends is done")
		}
		got := b.bring(t, file, o)
		if got.Added != 6000 || got.Repeated != 600 || got.Bad != 2 || got.Lines != 6602 {
			t.Errorf("%+v", got)
		}
		if c := b.counts(t, "weekly"); c.Subscribed != 6000 {
			t.Errorf("the list has %+v", c)
		}
		if n, err := b.Count(t.Context(), "default"); err != nil || n != 6000 {
			t.Errorf("there are %d subscribers, %v", n, err)
		}
		if n := strings.Count(b.export(t, "", "csv"), "\n"); n != 6001 {
			t.Errorf("the export has %d lines", n)
		}
	}
}

// stopping cancels a context when it is read.
type stopping struct{ cancel func() }

func (s stopping) Read([]byte) (int, error) { s.cancel(); return 0, io.EOF }

// TestImportIDs: an id stands for one file with its options.
func TestImportIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := func(file string, o api.SubscriberImportOptions) (api.SubscriberImport, error) {
		o.ID = "one"
		return b.Imports.Run(t.Context(), "", strings.NewReader(file), o)
	}
	file := people(0, 5000)
	if _, err := b.Imports.Run(t.Context(), "", broken{strings.NewReader(file[:len(file)/2])},
		api.SubscriberImportOptions{ID: "one"}); err == nil {
		t.Fatal("a file that breaks off is no error")
	}
	if got, err := b.Imports.Get(t.Context(), "", api.SubscriberAccount{}, "one"); err != nil ||
		got.State != "interrupted" || got.Error != "The file broke off" || got.Lines == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.Imports.Get(t.Context(), "shop", api.SubscriberAccount{}, "one"); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("another account sees it: %v", err)
	}
	for name, c := range map[string]struct {
		file string
		o    api.SubscriberImportOptions
	}{
		"another file":  {strings.Replace(file, "ann.7@", "ann.8000@", 1), api.SubscriberImportOptions{}},
		"shorter":       {file[:1000], api.SubscriberImportOptions{}},
		"other options": {file, api.SubscriberImportOptions{Tag: "x"}},
	} {
		if _, err := run(c.file, c.o); fault.CodeOf(err) != "ImportDiffers" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := run(file, api.SubscriberImportOptions{}); err != nil || got.Added != 5000 {
		t.Errorf("it goes on with %+v, %v", got, err)
	}
	if _, err := run(file, api.SubscriberImportOptions{}); fault.CodeOf(err) != "ImportExists" {
		t.Errorf("again: %v", err)
	}
	if done, err := b.Imports.Stop(t.Context(), "", api.SubscriberAccount{}, "one"); !done || err != nil {
		t.Errorf("it is not forgotten: %v, %v", done, err)
	}
	o := api.SubscriberImportOptions{DryRun: true}
	if got, err := run(people(0, 5001), o); err != nil || got.Known != 5000 || got.Added != 1 {
		t.Errorf("a dry run: %+v, %v", got, err)
	}
	if got, err := run(people(0, 5001), api.SubscriberImportOptions{}); err != nil || got.Known != 5000 ||
		got.Added != 1 {
		t.Errorf("after a dry run: %+v, %v", got, err)
	}
}

// TestTwoImportsAtOnce: two imports of the same addresses make each subscriber once, and both are complete.
func TestTwoImportsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "a", "single")
	b.list(t, "b", "single")
	var wait sync.WaitGroup
	var got [2]api.SubscriberImport
	for n, list := range []string{"a", "b"} {
		wait.Go(func() {
			var err error
			if got[n], err = b.Imports.Run(t.Context(), "", strings.NewReader(people(0, 6000)),
				subscribed(list)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got[0].Added+got[1].Added != 6000 || got[0].Changed+got[1].Changed != 6000 || got[0].Bad+got[1].Bad != 0 {
		t.Errorf("%+v\n%+v", got[0], got[1])
	}
	for _, list := range []string{"a", "b"} {
		if c := b.counts(t, list); c.Subscribed != 6000 {
			t.Errorf("list %s has %+v", list, c)
		}
	}
	if n, err := b.Count(t.Context(), "default"); err != nil || n != 6000 {
		t.Errorf("there are %d subscribers, %v", n, err)
	}
}

// TestImportStopped: an import that is asked to stop keeps what it applied, and continues later.
func TestImportStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := people(0, 8000)
	stop := stopping{func() {
		if done, err := b.Imports.Stop(t.Context(), "", api.SubscriberAccount{}, "slow"); !done || err != nil {
			t.Errorf("it can't be stopped: %v, %v", done, err)
		}
		if _, err := b.Imports.Run(t.Context(), "", strings.NewReader(file), api.SubscriberImportOptions{
			ID: "slow"}); fault.CodeOf(err) != "ImportRunning" {
			t.Errorf("a second one: %v", err)
		}
	}}
	got, err := b.Imports.Run(t.Context(), "", io.MultiReader(strings.NewReader(file[:len(file)/2]), stop,
		strings.NewReader(file[len(file)/2:])), api.SubscriberImportOptions{ID: "slow"})
	if err != nil || got.State != "interrupted" || got.Error != "It was stopped" || got.Lines == 8000 {
		t.Errorf("%+v, %v", got, err)
	}
	if got := b.bring(t, file, api.SubscriberImportOptions{ID: "slow"}); got.Added != 8000 {
		t.Errorf("it goes on: %+v", got)
	}
}

// TestImportOfDeadProcess: an import without progress for a minute is interrupted, and can be continued.
func TestImportOfDeadProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dead := errors.New("dead")
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = b.Imports.Run(t.Context(), "", r, api.SubscriberImportOptions{ID: "dead"})
	}()
	if _, err := io.WriteString(w, people(0, 3000)); err != nil {
		t.Fatal(err)
	}
	for n := 0; n == 0; { // its first batch, which is smaller on a slow machine
		var err error
		if n, err = b.Count(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
	}
	var got api.SubscriberImport
	var err error
	for range 1000 { // it may still store its progress
		b.Advance(61 * time.Second)
		if got, err = b.Imports.Get(t.Context(), "", api.SubscriberAccount{}, "dead"); got.State != "running" {
			break
		}
	}
	if err != nil || got.State != "interrupted" || got.Error != "The process that ran it has ended" {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range 1000 { // likewise
		got, err = b.Imports.Run(t.Context(), "", strings.NewReader(people(0, 3000)),
			api.SubscriberImportOptions{ID: "dead"})
		if fault.CodeOf(err) != "ImportRunning" || n == 999 {
			break
		}
		b.Advance(61 * time.Second)
	}
	if err != nil || got.Added != 3000 {
		t.Errorf("%+v, %v", got, err)
	}
	_ = w.CloseWithError(dead)
	<-ended
	// The first one notices that it was taken over, and writes nothing.
	if got, err := b.Imports.Get(t.Context(), "", api.SubscriberAccount{}, "dead"); err != nil ||
		got.State != "done" {
		t.Errorf("%+v, %v", got, err)
	}
}

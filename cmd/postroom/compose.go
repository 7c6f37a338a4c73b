package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/schedule"
)

// request makes the request that the flags describe.
func (s *sendCmd) request(con *console) (api.SubmitRequest, error) {
	req := api.SubmitRequest{
		Account: s.Account, Gateway: s.Gateway, RequireTLS: s.RequireTLS, Subject: s.Subject,
		IdempotencyKey: s.IdempotencyKey, Lane: api.Lane(s.Lane), Priority: api.Priority(s.Priority),
		Tags:             s.Tag,
		DeliveryAttempts: s.Attempts, DryRun: s.DryRun,
	}
	for _, step := range []func(*api.SubmitRequest, *console) error{s.addresses, s.template, s.content,
		s.attachments} {
		if err := step(&req, con); err != nil {
			return req, err
		}
	}
	var err error
	req.SendAt, err = optionalTime("--send-at", s.SendAt, parseWhen)
	return req, err
}

func (s *sendCmd) addresses(req *api.SubmitRequest, _ *console) error {
	for _, field := range []struct {
		flag  string
		texts []string
		out   *api.Addresses
	}{{"to", s.To, &req.To}, {"cc", s.CC, &req.CC}, {"bcc", s.BCC, &req.BCC}, {"reply-to", s.ReplyTo,
		&req.ReplyTo}} {
		for _, text := range field.texts {
			list, err := parseAddresses(text)
			if err != nil {
				return usage("--%s: %v", field.flag, err)
			}
			*field.out = append(*field.out, list...)
		}
	}
	if s.From != "" {
		from, err := oneAddress("--from", s.From)
		if err != nil {
			return err
		}
		req.From = &from
	}
	if s.Raw == "" && len(req.To)+len(req.CC)+len(req.BCC) == 0 {
		return usage("nobody to send to: give --to, --cc or --bcc")
	}
	return nil
}

// template names the template, and reads the data for it.
func (s *sendCmd) template(req *api.SubmitRequest, con *console) error {
	req.Template, req.Locale = s.Template, s.Locale
	if s.Params == "" {
		return nil
	}
	if s.Template == "" {
		return usage("--params fills a template: give --template, too")
	}
	params, err := con.readJSON("--params", s.Params)
	if err != nil {
		return err
	}
	req.Render = &api.Render{Params: params}
	return nil
}

func (s *sendCmd) content(req *api.SubmitRequest, con *console) error {
	if s.Raw != "" {
		if s.Text != "" || s.HTML != "" || len(s.Attach) > 0 {
			return usage("--raw is a whole message: leave --text, --html and --attach away")
		}
		raw, err := con.read("@"+s.Raw, s.Raw == "-")
		req.Raw = raw
		return err
	}
	if s.Text == "-" && s.HTML == "-" {
		return usage("only one of --text and --html can be standard input")
	}
	piped := s.Text == "" && s.HTML == "" && s.Template == "" && !con.inTTY
	text, err := con.read(s.Text, s.Text == "-" || piped)
	if err != nil {
		return err
	}
	html, err := con.read(s.HTML, s.HTML == "-")
	req.Text, req.HTML = string(text), string(html)
	return err
}

// read returns the content of a flag: the text itself, a file after @, or standard input.
func (c *console) read(value string, input bool) ([]byte, error) {
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case input || isFile && name == "-":
		content, err := io.ReadAll(c.in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return content, nil
	case isFile:
		return os.ReadFile(name)
	}
	return []byte(value), nil
}

func (s *sendCmd) attachments(req *api.SubmitRequest, _ *console) error {
	for _, file := range s.Attach {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("--attach: %w", err)
		}
		req.Attachments = append(req.Attachments, api.Attachment{Filename: filepath.Base(file), Content: content})
	}
	return nil
}

// parseAddresses parses addresses with names (RFC 5322 section 3.4). Postroom checks them more strictly.
func parseAddresses(text string) (api.Addresses, error) {
	list, err := mail.ParseAddressList(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address such as ada@example.com or 'Ada <ada@example.com>'", text)
	}
	out := make(api.Addresses, len(list))
	for i, a := range list {
		out[i] = api.Address{Name: a.Name, Address: a.Address}
	}
	return out, nil
}

func oneAddress(flag, text string) (api.Address, error) {
	list, err := parseAddresses(text)
	if err != nil || len(list) != 1 {
		return api.Address{}, usage("%s: %q is not one address, such as 'Shop <shop@example.com>'", flag, text)
	}
	return list[0], nil
}

// readJSON reads a flag that holds JSON: the text itself, a file after @, or - for standard input.
func (c *console) readJSON(flag, value string) (json.RawMessage, error) {
	text, err := c.read(value, value == "-")
	if err == nil && !json.Valid(text) {
		err = usage("%s is not JSON", flag)
	}
	return text, err
}

// optionalTime parses a flag that holds a time; nil: it is not given.
func optionalTime(flag, text string, parse func(string, time.Time) (time.Time, error)) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := parse(text, time.Now())
	if err != nil {
		return nil, usage("%s: %v", flag, err)
	}
	return &at, nil
}

// parseWhen parses a distance (10m, 7d, "in 10m", +10m) or a time.
func parseWhen(text string, now time.Time) (time.Time, error) {
	distance := strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(text, "in ")), "+")
	if d, err := schedule.ParseDuration(distance); err == nil && d >= 0 {
		return now.Add(d), nil
	}
	return parseTime(text)
}

// parseSince parses a distance into the past (2h, 7d, "2h ago") or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	age := strings.TrimSpace(strings.TrimSuffix(text, " ago"))
	if d, err := schedule.ParseDuration(age); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return parseTime(text)
}

// parseTime parses a time. Without a zone it is in the zone of this machine.
func parseTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04",
		"2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf(
		"%q is neither a distance such as 10m or 7d nor a time such as 2030-12-24T08:00:00Z", text)
}

package searchtest

import (
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search"
)

// Began is when the first of the documents was made.
var Began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// Mail returns what the tests look for. The n-th was made n hours after Began; its queue id ends in n.
func Mail() []search.Document {
	ended := Began.Add(30 * time.Hour)
	mail := []search.Document{
		{Account: "shop", Subject: "Your invoice for January", From: "billing@shop.test",
			To: []string{"ann@example.com"}, Status: api.StatusSent,
			Lane: api.Transactional, Tags: []string{"invoice"}, Gateway: "eu-1", Ended: &ended,
			Text: "Dear Ann, please find your invoice no. 2030-17 attached. The amount of 12.50 is due on 15 January."},
		{Account: "shop", Subject: "Your order has shipped", From: "orders@shop.test",
			To:     []string{"bob@example.com", "ann.smith@mail.example.com"},
			Status: api.StatusSent, Lane: api.Transactional, Tags: []string{"order", "Spring Sale"}, Gateway: "eu-1",
			Ended: &ended,
			Text:  "Dear Bob, your order left our house today. The invoice is in the parcel."},
		{Account: "Shop", Subject: "Crème brûlée, 東京タワー", From: "chef@cafe.test",
			To: []string{"carl@müller.example"}, Status: api.StatusQueued,
			Lane: api.Transactional, Text: "Ein Rezept für die Straße: Crème brûlée."},
		{Account: "news", Subject: "Spring sale: everything must go", From: "news@news.test",
			To: []string{"ann@example.com"}, Status: api.StatusDead,
			Lane: api.Bulk, Tags: []string{"Spring Sale"}, Gateway: "us-1", Code: "EENVELOPE", SMTPCode: 550,
			Ended: &ended,
			Text:  "The sale of the year. Your invoice will be smaller."},
		{Account: "news", Subject: "", From: "", To: []string{"postmaster@example.org"}, Status: api.StatusFailed,
			Lane: api.Bulk, Code: "EAUTH",
			Ended: &ended, TextKnown: true, MessageID: "<bounce-1@news.test>", Key: "Key-1",
			Text: "invoice invoice invoice invoice"},
	}
	for i := range mail {
		d := &mail[i]
		d.QueueID, d.Revision, d.Created, d.TextKnown = ID(i), 100, Began.Add(time.Duration(i)*time.Hour), true
		if d.MessageID == "" {
			d.MessageID = fmt.Sprintf("<M%d@shop.test>", i)
		}
	}
	return mail
}

// ID is the queue id of the n-th document.
func ID(n int) string { return fmt.Sprintf("01HZZZZZZZZZZZZZZZZZZ%05d", n) }

package senders

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/signedtoken"
)

// Path is the path of the page that a link leads to.
const Path = "/sender"

// mail is the mail to an address. A request that is repeated gives the same one, and so sends nothing twice.
func (p *Proofs) mail(account api.Account, base, address string, asked time.Time) (api.SubmitRequest, error) {
	id := requestID(account.Account, address, asked)
	token, err := p.Tokens.Sign(signedtoken.Sender, signedtoken.Token{Account: account.Account, MessageID: id,
		Recipient: signedtoken.Whole, Address: address})
	if err != nil {
		return api.SubmitRequest{}, err
	}
	ends := asked.Add(Lifetime)
	base = strings.TrimSuffix(base, "/")
	text := fmt.Sprintf(mailText, named(account), base, address, base+Path+"?"+url.Values{"t": {token}}.Encode(),
		ends.UTC().Format("2006-01-02 15:04 UTC"))
	return api.SubmitRequest{
		Account: p.account, To: api.Addresses{{Address: address}}, Lane: api.Transactional,
		Subject: "May this account send mail as " + address + "?", Text: text,
		Headers:        api.Headers{"Auto-Submitted": {"auto-generated"}},
		IdempotencyKey: "sender-" + id, DeliverBy: &ends, TrackOpens: new(false), TrackClicks: new(false),
	}, nil
}

// mailText has the account, the instance twice, the address, the link and its end.
const mailText = `The account %s of the mail service at
%s
asks to send mail as %s.

If you want that, open this page and press its button:

%s

The link works until %s.

If you do not know the account, ignore this mail. Then nothing happens, and it can't send mail as you.
`

// named returns the name and the id of an account, on one line.
func named(account api.Account) string {
	name := strings.Join(strings.Fields(account.Name), " ")
	if name == "" || name == account.Account {
		return account.Account
	}
	return fmt.Sprintf("%q (%s)", name, account.Account)
}

// requestID names a request by its time, account and address. Equal requests have equal names.
func requestID(account, address string, asked time.Time) string {
	id := ulid.ULID{}
	_ = id.SetTime(ulid.Timestamp(asked)) // fails in the year 10889
	sum := sha256.Sum256([]byte(account + "\x00" + address))
	_ = id.SetEntropy(sum[:10]) // fails for other lengths
	return id.String()
}

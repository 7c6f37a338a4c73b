package api

import "time"

// AccountDNS is what an account needs in the DNS.
type AccountDNS struct {
	Account string      `json:"account"`
	Checked *time.Time  `json:"checked" doc:"When the DNS was asked; null: it was not"`
	Trouble string      `json:"trouble,omitempty" doc:"Why the DNS could not be asked"`
	Records []DNSRecord `json:"records"`
}

// DNSRecord is a record to publish, and what was found in its place.
type DNSRecord struct {
	Purpose string   `json:"purpose" enum:"spf,dkim,dmarc,mx,returnPath,source,sender" doc:"returnPath: bounces come back to bounce.domain; source: an address that Postroom sends from itself, with a gateway of type mx; sender: it verifies a pending domain"`
	Name    string   `json:"name" doc:"DNS name"`
	Type    string   `json:"type" enum:"TXT,MX,PTR"`
	Value   string   `json:"value,omitempty" doc:"What to publish; absent: it depends on who runs the relay or takes the mail"`
	Status  string   `json:"status" enum:"unchecked,found,missing,differs"`
	Found   []string `json:"found,omitempty" doc:"What is published there"`
	Message string   `json:"message,omitempty" doc:"What was found, in words"`
	Advice  string   `json:"advice,omitempty" doc:"What to do"`
}

// AccountDNSQuery says whether the DNS is asked.
type AccountDNSQuery struct {
	Check string `query:"check" enum:"true,false" doc:"Whether the DNS is asked; true when absent"`
}

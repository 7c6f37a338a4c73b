package api

import "time"

// AccountDNS is the DNS records that an account needs.
type AccountDNS struct {
	Account string      `json:"account"`
	Checked *time.Time  `json:"checked" doc:"When DNS was queried. null if it wasn't"`
	Trouble string      `json:"trouble,omitempty" doc:"Why DNS couldn't be queried"`
	Records []DNSRecord `json:"records"`
}

// DNSRecord is a record to publish, and the records that were found.
type DNSRecord struct {
	Purpose string   `json:"purpose" enum:"spf,dkim,dmarc,mx,returnPath,source,sender" doc:"Purpose of the record. returnPath receives bounces for bounce.domain. source is for an address from which a gateway of type mx sends. sender verifies a pending domain"`
	Name    string   `json:"name" doc:"DNS name"`
	Type    string   `json:"type" enum:"TXT,MX,PTR"`
	Value   string   `json:"value,omitempty" doc:"Value to publish. Absent if it depends on whoever runs the relay or receives the mail"`
	Status  string   `json:"status" enum:"unchecked,found,missing,differs"`
	Found   []string `json:"found,omitempty" doc:"Values that are published now"`
	Message string   `json:"message,omitempty" doc:"Description of the result"`
	Advice  string   `json:"advice,omitempty" doc:"What to do"`
}

// AccountDNSQuery chooses whether to query DNS.
type AccountDNSQuery struct {
	Check string `query:"check" enum:"true,false" doc:"Whether to query DNS. Defaults to true"`
}

// Package senders lets an account prove by an email that an address is its to send as. Package server asks
// for the mail and answers the page that its link leads to. Package accounts has the record.
//
// The mail goes out as another account ([Options.Account]), which the operator names. An account can read,
// replay and readdress its own mail, and its relay sees it: a link in it would prove nothing.
//
// It promises:
//   - Only a POST from the page of the link verifies. Programs that follow links verify nothing.
//   - A link is sealed, names one account and one address, and works for a day after the mail was asked for.
//     It ends when the entry on the record is removed. So it does nothing for a later account of that name.
//   - A request that is repeated within ten minutes sends no second email, and sends the first one if that
//     was not accepted.
//   - An address gets at most [PerAddress] mails a day, whoever asks. An account asks
//     for at most [PerAccount].
//
// It never reports an email's result to the account, apart from a refusal of the request.
//
// # Redis
//
// The keys are in partition 0: senders:address:<hash> and senders:account:<id> (sorted sets of a day's
// emails, by their time). They expire after a day.
//
// If Redis is unreachable, every call returns Unavailable. A link that was not read for that reason works
// later.
package senders

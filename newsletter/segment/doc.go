// Package segment reads rules that select subscribers, writes them as sentences, and applies them. It is
// pure: it knows no Redis, and callers pass the subscriber.
//
// A rule is JSON: {"and":[…]}, {"or":[…]}, {"not":…}, or a term:
//
//	{"attribute":"seats","gte":3}             is, isNot, in, contains, startsWith, gt, gte, lt, lte, before,
//	                                          after, exists
//	{"tag":"beta"}                            has the tag
//	{"list":"weekly","state":"subscribed"}    the state on a list; any state, if it is absent
//	{"consent":"weekly","before":"-365d"}     when the subscription to a list was agreed to
//	{"campaign":"spring","did":"opened"}      what became of the mail of a campaign: got, opened or clicked
//	{"locale":"de"}                           the language; de holds for de-AT too
//	{"domain":"gmail.com"}                    the domain of the address
//	{"created":{"after":"-30d"}}              when the subscriber came
//
// before and after take a date, a time in RFC 3339, or a span before now: -30d, -12h. A date begins at
// midnight UTC. If a subscriber lacks an attribute, or it has another type than the term compares with, only
// isNot and exists:false match. got means that the mail arrived, as far as is known. opened and clicked count
// people's opens and clicks, not programs'. Each counts for all runs of the campaign together. To select
// people who did not open it, write {"not":…} around the term.
//
// It promises:
//   - A rule is read whole or refused, with the path of each error, such as and[2].attribute.
//   - A rule has at most 200 terms, 8 levels deep. So its cost is bounded. There are no patterns to match.
//   - Reading a rule and writing its sentence never panic, whatever the bytes are.
package segment

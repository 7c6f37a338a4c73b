// Package opensearch keeps the search index of package documents in an OpenSearch or an Elasticsearch, which
// any number of Postrooms share.
//
// It promises that
//   - what Put has taken was acknowledged by the cluster when it returns, and is found about a second later;
//   - an index is changed by external versions, so of two processes that write a document the one that read
//     it later wins, whatever the order;
//   - nothing but its own indexes is touched: those named as the alias and ".v" with a time, which also may
//     not be made by writing to a wrong name;
//   - the fields are exactly those of its template: nothing becomes a field because a mail contains it.
//
// Words are cut by package query, and written apart by spaces: the analyzer of the cluster only splits at
// these, so every index finds the same. The document itself is kept beside them, and not indexed.
//
// It was written against the published API of OpenSearch 2 and 3 and Elasticsearch 7.10 to 9, and is tested
// against a server made for that (internal/testopensearch), which knows these requests and no others; not
// against a live cluster.
//
// # Names in the cluster
//
// The alias (the setting documents.index), which searches and writes go to; <alias>.building, the alias of an
// index that is being built; indexes <alias>.v<time>; the index template <alias>.
//
// # When things fail
//
// The cluster is away, refuses a login, or has too much to do (429): the error says so, with the time it asks
// to be left alone; repeating does no harm. A single document that the cluster refuses for good is logged and
// left out; others of its batch are kept. An index that somebody deleted is made anew by Ready.
package opensearch

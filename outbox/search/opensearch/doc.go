// Package opensearch keeps the search index of package search in an OpenSearch or an Elasticsearch, which
// any number of instances share.
//
// It promises that
//   - the cluster has acknowledged the documents of a Put when it returns; they are found about a second
//     later;
//   - documents have external versions, so of two processes that write a document, the one that read it later
//     wins, in any order;
//   - only its own indexes are changed: those named by the alias and ".v" with a time. A write to a wrong
//     name creates no index;
//   - the fields are exactly its template's: no message's content adds a field.
//
// Package query splits text into words. They are written with spaces, at which the analyzer of the cluster
// splits, so every index finds the same. The document itself is stored beside them and not indexed.
//
// It was written against the published API of OpenSearch 2 and 3 and Elasticsearch 7.10 to 9. It is tested
// against a server that knows only these requests (cluster_test.go), not against a live cluster.
//
// # Names in the cluster
//
// The alias (the setting documents.index), which searches and writes go to; <alias>.building, the alias of an
// index that is being built; indexes <alias>.v<time>; the index template <alias>.
//
// # When things fail
//
// If the cluster is unreachable, refuses a login, or is overloaded (429), the error says so, with the delay
// that the cluster requested. You can repeat a request. A document that the cluster refuses permanently is
// logged and left out; the rest of its batch is kept. Ready creates a deleted index again.
package opensearch

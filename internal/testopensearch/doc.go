// Package testopensearch plays an OpenSearch, or an Elasticsearch, for tests: there is none on the machines
// that test Postroom. It is strict instead: what the published API does not describe fails the test.
package testopensearch

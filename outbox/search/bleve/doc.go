// Package bleve keeps the search index of package search in a directory of this process, with the index
// engine of bleve (scorch): no server to run, nothing to set up.
//
// It promises that
//   - what Put has taken is on disk when it returns;
//   - an index is written by one process: [Store.Ready] locks the directory, and answers [ErrOwned] for as
//     long as another process has it;
//   - a directory that can't be read never stops it: it is set aside, a new one is begun, and [Store.Fresh]
//     says so;
//   - an index that was being built when the process died leaves the one in use as it was;
//   - a search costs no more memory than its page, and eight bytes for each document of the index, kept from
//     one search to the next.
//
// It works on segments, the files of the engine, without bleve's own layer of mappings and queries. Every
// step of a query is a bitmap for each segment, so that totals and facets are counted without visiting
// documents. Times, which decide the order, are kept in memory. Package query splits words.
//
// # Files
//
// Its directory contains: lock; id, which names the index for as long as it lives; current, which names the
// subdirectory in use. Each index has a subdirectory, index-<time>. broken-<time> is the last one set aside,
// which may be deleted. It keeps nothing in Redis.
//
// # When things fail
//
// If the disk is full, Put fails and can be repeated; searches work. A search that takes too long ends with
// its context. Damage that shows only while searching makes that search fail, with an error that says so; a
// rebuild repairs it.
package bleve

// Package certificate has a TLS certificate that is in two files, and reads them again when they change. It
// serves the listeners of HTTP and SMTP, and the connections to Redis that prove who they are by one.
//
// A renewal replaces the files while Postroom runs. The next handshake has the new certificate; connections
// that exist keep theirs. Files that cannot be read, or that do not belong together because only one of them
// has been replaced yet, change nothing: the last good certificate stays in use, and a warning says so once.
//
// It never writes a file, and owns no keys of Redis.
package certificate
